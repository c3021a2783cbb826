//! Values of the environment that stand where no path is.

use crate::scene::Scene;
use crate::server::Server;

#[test]
fn values_of_the_environment_are_shown_nowhere() {
    let server = Server::with_bucket("bucket");
    server.preload("bucket", "k", 1, 20);
    let scene = Scene::new();
    let source = format!(
        "  photos: {{kind: source.files, with: {{path: s3://bucket/k000000, store: {{endpoint: '{}', region: '${{env:KEY}}', \
         attempts: 2, timeout: 2s}}}}}}\n",
        server.url()
    );
    let refused = source.replace(&server.url(), "http://127.0.0.1:1/${env:KEY}");
    let rows = "  rows: {kind: source.synthetic, with: {rows: {count: 3}}}\n";
    let out = "  out: {kind: sink.jsonl, with: {path: out/rows.jsonl}}\n";
    for (what, nodes) in [
        ("a region", format!("{source}{out}")),
        ("an address", format!("{refused}{out}")),
        ("a number", rows.replace('3', "${env:KEY}") + out),
        ("an option that is none", format!("{rows}  out: {{kind: sink.jsonl, with: {{path: o, ${{env:KEY}}: 1}}}}\n")),
        ("a column", format!("{rows}  out: {{kind: sink.jsonl, with: {{path: o, columns: ['${{env:KEY}}']}}}}\n")),
        ("a kind", format!("{rows}  x: {{kind: 'transform.${{env:KEY}}'}}\n{out}")),
        ("a node", format!("{rows}  out: {{kind: sink.jsonl, from: '${{env:KEY}}', with: {{path: o}}}}\n")),
        ("a name", format!("{rows}  pixels: {{kind: decode.image, with: {{as: '${{env:KEY}}'}}}}\n{out}")),
        (
            "a model",
            format!(
                "{source}  p: {{kind: decode.image}}\n  m: {{kind: infer, with: {{model: {{arch: '${{env:KEY}}'}}}}}}\n{out}"
            ),
        ),
        (
            "a template",
            format!("{rows}  s: {{kind: transform.select, with: {{columns: {{uri: '${{env:KEY}}'}}}}}}\n{out}"),
        ),
        ("a device", format!("run: {{device: '${{env:KEY}}'}}\n{rows}{out}")),
    ] {
        let yaml = match nodes.strip_prefix("run:") {
            Some(rest) => format!("name: env\nrun:{}", rest.replacen('\n', "\nnodes:\n", 1)),
            None => format!("name: env\nnodes:\n{nodes}"),
        };
        scene.give("p.yaml", yaml);
        let ended = scene.everything("p.yaml");
        assert!(ended.code().is_some(), "{what}");
        if what == "a region" {
            ended.expect(0);
        }
    }
}

#[test]
fn variables_that_hold_values_of_the_environment_are_shown_nowhere() {
    let scene = Scene::new();
    scene.give(
        "p.yaml",
        "name: vars\nvars: {a: '${env:KEY}', b: 'x-${a}'}\nnodes:\n  rows: {kind: source.synthetic, with: {rows: {count: 3}}}\n  \
         out: {kind: sink.jsonl, with: {path: out/rows.jsonl, columns: ['${b}']}}\n",
    );
    scene.everything("p.yaml").expect(2);
    scene.flowgpu(&["run", "p.yaml", "--set", "nothing=1"]).expect(2);
}
