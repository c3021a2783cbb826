//! Pictures that the tests draw.

use super::picture::{EdgeKind, Live, Origin, Picture, PictureEdge, PictureNode, Role};

fn node(name: &str, kind: &str, role: Role, detail: &str, columns: &[&str]) -> PictureNode {
    PictureNode {
        name: name.to_owned(),
        kind: kind.to_owned(),
        role,
        detail: detail.to_owned(),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        origin: Origin::Written,
        live: None,
    }
}

fn inserted(node: PictureNode) -> PictureNode {
    PictureNode { origin: Origin::Inserted, ..node }
}

fn rows(from: &str, to: &str, label: &str) -> PictureEdge {
    PictureEdge { from: from.to_owned(), to: to.to_owned(), label: label.to_owned(), carries: EdgeKind::Rows }
}

fn rejects(from: &str, to: &str) -> PictureEdge {
    let label = "id, uri, node, code, message".to_owned();
    PictureEdge { from: from.to_owned(), to: to.to_owned(), label, carries: EdgeKind::Rejects }
}

fn live(rows_per_s: f64, busy: f64, starved: f64, blocked: f64) -> Live {
    Live { rows_per_s, busy, starved, blocked, rejects: 0, limits_run: false }
}

/// The chain of the quick start.
pub(super) fn classify() -> Picture {
    let nodes = vec![
        node("photos", "source.files", Role::Source, "photos/**/*.jpg", &["id", "uri", "bytes"]),
        node("pixels", "decode.image", Role::Decode, "256 bicubic, crop 224 (from model)", &["image u8 [224,224,3]"]),
        node("batches", "batch", Role::Batch, "32", &["image u8 [32,224,224,3]"]),
        node("scores", "infer", Role::Infer, "efficientnet_lite0 f32", &["logits f32 [32,1000]"]),
        node("labels", "transform.topk", Role::Transform, "5, imagenet1k", &["labels list<5>"]),
        node("out", "sink.jsonl", Role::Sink, "out/labels.jsonl", &[]),
    ];
    let edges = vec![
        rows("photos", "pixels", "id, uri, bytes"),
        rows("pixels", "batches", "id, uri, image u8 [224,224,3]"),
        rows("batches", "scores", "id, uri, image u8 [32,224,224,3]"),
        rows("scores", "labels", "id, uri, logits f32 [32,1000]"),
        rows("labels", "out", "id, uri, labels list<5>"),
    ];
    Picture { title: "classify".to_owned(), nodes, edges }
}

/// The same with the figures of a run.
pub(super) fn classify_live() -> Picture {
    let mut picture = classify();
    let figures = [
        live(2412.0, 0.09, 0.0, 0.88),
        Live { rejects: 17, limits_run: true, ..live(2310.0, 0.97, 0.02, 0.01) },
        live(2310.0, 0.03, 0.95, 0.02),
        live(2310.0, 0.52, 0.46, 0.02),
        live(2310.0, 0.06, 0.94, 0.0),
        live(2310.0, 0.02, 0.98, 0.0),
    ];
    for (node, live) in picture.nodes.iter_mut().zip(figures) {
        node.live = Some(live);
    }
    picture
}

/// A fan-out to two models, joined.
pub(super) fn two_models() -> Picture {
    let image = "image u8 [224,224,3]";
    let batch = "image u8 [32,224,224,3]";
    let nodes = vec![
        node("photos", "source.files", Role::Source, "photos/**/*.jpg", &["id", "uri", "bytes"]),
        node("pixels", "decode.image", Role::Decode, "256 bicubic, crop 224 (from model)", &[image]),
        inserted(node("lite.batch", "batch", Role::Batch, "32", &[batch])),
        node("lite", "infer", Role::Infer, "efficientnet_lite0 f32", &["logits f32 [32,1000]"]),
        node("lite_top", "transform.topk", Role::Transform, "5, imagenet1k", &["lite list<5>"]),
        inserted(node("mobile.batch", "batch", Role::Batch, "16", &["image u8 [16,224,224,3]"])),
        node("mobile", "infer", Role::Infer, "mobilenet_v2 f32", &["logits f32 [16,1000]"]),
        node("mobile_top", "transform.topk", Role::Transform, "5, imagenet1k", &["mobile list<5>"]),
        node("both", "transform.join", Role::Transform, "", &["lite list<5>", "mobile list<5>"]),
        node("out", "sink.jsonl", Role::Sink, "out/both.jsonl", &[]),
    ];
    let edges = vec![
        rows("photos", "pixels", "id, uri, bytes"),
        rows("pixels", "lite.batch", image),
        rows("lite.batch", "lite", batch),
        rows("lite", "lite_top", "logits f32 [32,1000]"),
        rows("pixels", "mobile.batch", image),
        rows("mobile.batch", "mobile", "image u8 [16,224,224,3]"),
        rows("mobile", "mobile_top", "logits f32 [16,1000]"),
        rows("lite_top", "both", "lite list<5>"),
        rows("mobile_top", "both", "mobile list<5>"),
        rows("both", "out", "lite list<5>, mobile list<5>"),
    ];
    Picture { title: "two-models".to_owned(), nodes, edges }
}

/// Two sources in one, and the rejects of a node written out.
pub(super) fn union_with_rejects() -> Picture {
    let nodes = vec![
        node("cats", "source.files", Role::Source, "cats/*.jpg", &["id", "uri", "bytes"]),
        node("dogs", "source.files", Role::Source, "dogs/*.jpg", &["id", "uri", "bytes"]),
        node("pixels", "decode.image", Role::Decode, "224x224 bilinear", &["image u8 [224,224,3]"]),
        node("bad", "sink.csv", Role::Sink, "out/bad.csv", &[]),
        inserted(node("scores.batch", "batch", Role::Batch, "32", &["image u8 [32,224,224,3]"])),
        node("scores", "infer", Role::Infer, "resnet18 f32", &["features f32 [32,512]"]),
        node("out", "sink.npy", Role::Sink, "out/features.npy", &[]),
    ];
    let edges = vec![
        rows("cats", "pixels", "id, uri, bytes"),
        rows("dogs", "pixels", "id, uri, bytes"),
        rejects("pixels", "bad"),
        rows("pixels", "scores.batch", "image u8 [224,224,3]"),
        rows("scores.batch", "scores", "image u8 [32,224,224,3]"),
        rows("scores", "out", "features f32 [32,512]"),
    ];
    Picture { title: "union".to_owned(), nodes, edges }
}

/// Names and details out of everything that means something to one of the formats.
pub(super) fn hostile() -> Picture {
    let names = [
        "end",
        "a\"b'c`d",
        "x[1](2){3}<b>&amp;</b>",
        "line\nend\ttab\\",
        "\x1b[2J\u{9b}\u{202e}esc",
        "画像 #quot; --> |x| ;%%",
        "</text></svg><script>alert(1)</script>",
        "]]>",
    ];
    let nodes = names.iter().map(|name| node(name, "kind\"<&", Role::Infer, "`a` #35; \"\n\\", &["c<\">"])).collect();
    let edges = names.windows(2).map(|pair| rows(pair[0], pair[1], "l\"<`|]\n#;&")).collect();
    Picture { title: "t\"<&`\n\x1b: #".to_owned(), nodes, edges }
}

/// A circle, an edge from nowhere, an edge to nowhere, and a node that feeds itself.
pub(super) fn broken() -> Picture {
    let nodes = ["a", "b", "c"].map(|name| node(name, "batch", Role::Batch, "", &[])).to_vec();
    let edges = vec![
        rows("a", "b", ""),
        rows("b", "c", ""),
        rows("c", "a", ""),
        rows("a", "a", ""),
        rows("nowhere", "a", ""),
        rows("a", "nowhere", ""),
    ];
    Picture { title: "broken".to_owned(), nodes, edges }
}

/// One node after the other.
pub(super) fn chain(n_nodes: usize) -> Picture {
    let names: Vec<String> = (0..n_nodes).map(|idx| format!("n{idx}")).collect();
    let nodes = names.iter().map(|name| node(name, "transform.select", Role::Transform, "", &[])).collect();
    let edges = names.windows(2).map(|pair| rows(&pair[0], &pair[1], "")).collect();
    Picture { title: "chain".to_owned(), nodes, edges }
}

/// A random graph without circles: sources, then nodes that read one to three of those before them.
pub(super) fn random(n_nodes: usize, seed: u64) -> Picture {
    let mut dice = Dice(seed);
    let schemas = ["id, uri, bytes", "image u8 [224,224,3]", "logits f32 [32,1000]", "a list<5>, b list<5>", ""];
    let details = ["", "32", "256 bicubic, crop 224 (from model)", "out/labels.jsonl", "efficientnet_lite0 f32"];
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for idx in 0..n_nodes {
        let role = if idx < 2 { Role::Source } else { Role::ALL[1 + dice.below(5)] };
        let name = format!("{}{idx}", ["n", "node_", "a_rather_long_name_"][dice.below(3)]);
        let detail = details[dice.below(details.len())];
        for _ in 0..if idx < 2 { 0 } else { 1 + dice.below(3) } {
            // Mostly a near neighbour, as in written pipelines; sometimes a far one, for long edges.
            let back = 1 + if dice.below(4) == 0 { dice.below(idx) } else { dice.below(idx.min(4)) };
            let from: &PictureNode = &nodes[idx - back];
            let carries = if dice.below(6) == 0 { EdgeKind::Rejects } else { EdgeKind::Rows };
            let label = schemas[dice.below(schemas.len())].to_owned();
            edges.push(PictureEdge { from: from.name.clone(), to: name.clone(), label, carries });
        }
        nodes.push(node(&name, &format!("{}.some", role.word()), role, detail, &["x f32 [8]"]));
    }
    Picture { title: format!("random {seed}"), nodes, edges }
}

/// A small generator of numbers, so that a seed gives the same graph everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// Checks one XML element: tags nest, attributes are quoted, and no `<`, `&` or quote stands where it would be read.
pub(super) fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml.trim_end();
    while let Some((text, after)) = rest.split_once('<') {
        assert_references(text);
        let (tag, after) = after.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic()), "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            let mut attributes = tag[name.len()..].trim_end_matches('/').split('"');
            while let Some(before) = attributes.next() {
                let Some(value) = attributes.next() else {
                    break;
                };
                assert!(before.starts_with(' ') && before.ends_with('='), "<{tag}>");
                assert_references(value);
            }
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(!open.is_empty() || after.trim().is_empty(), "something follows the element: {after:.40}");
        rest = after;
    }
    assert_eq!(open, Vec::<&str>::new());
    assert_eq!(rest.trim(), "");
}

fn assert_references(text: &str) {
    for after in text.split('&').skip(1) {
        let name = after.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name}");
    }
}
