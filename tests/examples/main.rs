//! Every example of `pipelines/`, run by the program in a copy of its folder: the right labels, the same ones each time.

mod containers;
mod copies;
mod embedders;
mod npy;
mod onnx;
mod workplace;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use npy::Array;
use workplace::{PIPELINES, Workplace};

/// Cats as ImageNet has them: tabby, tiger cat, Egyptian cat.
const CATS: [u64; 3] = [281, 282, 285];
const ESPRESSO: [u64; 1] = [967];
/// Missile and projectile: one thing under two names.
const MISSILE: [u64; 2] = [657, 744];

/// The examples' folder as a fresh clone has it.
fn clone() -> Workplace {
    let workplace = Workplace::new();
    for entry in fs::read_dir(PIPELINES).expect("the examples").map(|entry| entry.expect("an entry")) {
        if entry.path().is_file() {
            fs::copy(entry.path(), workplace.path(entry.file_name().to_str().expect("UTF-8"))).expect("a copy");
        }
    }
    for entry in fs::read_dir(Path::new(PIPELINES).join("photos"))
        .expect("the photographs")
        .map(|entry| entry.expect("an entry"))
    {
        let name = entry.file_name().into_string().expect("UTF-8");
        workplace.write(&format!("photos/{name}"), fs::read(entry.path()).expect("a photograph"));
    }
    workplace
}

fn names_of_examples() -> Vec<String> {
    let entries = fs::read_dir(PIPELINES).expect("the examples").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.filter_map(|name| Some(name.to_str()?.strip_suffix(".yaml")?.to_owned())).collect();
    names.sort();
    names
}

/// Index and score of a row's labels, best first.
fn labels(row: &Value, column: &str) -> Vec<(u64, f64)> {
    let labels = row[column].as_array().unwrap_or_else(|| panic!("no `{column}` in {row}"));
    labels
        .iter()
        .map(|label| (label["index"].as_u64().expect("an index"), label["score"].as_f64().expect("a score")))
        .collect()
}

fn row<'a>(rows: &'a [Value], uri: &str) -> &'a Value {
    rows.iter().find(|row| row["uri"] == uri).unwrap_or_else(|| panic!("no row `{uri}`"))
}

#[test]
fn every_example_runs_and_leaves_nothing_unfinished() {
    let outputs = [
        ("embed-clip", 0, vec!["clip.parquet"]),
        ("embed-dinov2", 0, vec!["dinov2.parquet"]),
        ("embed-siglip", 0, vec!["shards", "siglip.parquet"]),
        ("embeddings", 0, vec!["embeddings.ids.jsonl", "embeddings.npy"]),
        ("faces", 0, vec!["faces.parquet"]),
        ("from-shards", 0, vec!["labels.parquet", "shards"]),
        ("quickstart", 0, vec!["labels.jsonl"]),
        ("rejects", 3, vec!["broken.csv", "decoded.jsonl", "rejects.rejects.jsonl"]),
        ("shards", 0, vec!["shards"]),
        ("two-models", 0, vec!["two-models.jsonl"]),
        ("union", 0, vec!["union.csv"]),
    ];
    let tested: Vec<_> = outputs.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    assert_eq!(names_of_examples(), tested, "each example is run here");
    for (name, code, files) in outputs {
        let mut workplace = clone();
        match name {
            "faces" => workplace = workplace.with_onnxruntime(onnx::library()),
            "from-shards" | "embed-siglip" => drop(workplace.run(&["shards.yaml"]).expect(0)),
            _ => {}
        }
        let model = name.strip_prefix("embed-").map(|of| embedders::write(&workplace, of).1);
        let mut args = vec![format!("{name}.yaml")];
        args.extend(model.into_iter().flat_map(|model| ["--set".to_owned(), model]));
        workplace.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).expect(code);
        assert_eq!(workplace.names("out"), files, "{name}");
    }
}

#[test]
fn the_quick_start_tells_a_cat_an_espresso_and_a_missile() {
    let workplace = clone();
    workplace.run(&["quickstart.yaml"]).expect(0);
    let rows = workplace.rows("out/labels.jsonl");
    let uris: Vec<_> = rows.iter().map(|row| row["uri"].as_str().expect("a uri")).collect();
    let expected = ["astronaut.jpg", "hubble_deep_field.jpg", "rocket.jpg", "camera.png", "chelsea.png", "coffee.png"];
    assert_eq!(uris, expected.map(|name| format!("photos/{name}")));
    assert!(rows.iter().all(|row| labels(row, "labels").len() == 5));
    assert_eq!(row(&rows, "photos/coffee.png")["labels"][0]["label"], "espresso");

    let reference: Value = serde_json::from_str(include_str!("../reference.json")).expect("JSON");
    let reference = &reference["classification"]["efficientnet_lite0/tf127_bicubic256"];
    for (name, classes, n_close) in
        [("chelsea.png", &CATS[..], 3), ("coffee.png", &ESPRESSO, 1), ("rocket.jpg", &MISSILE, 2)]
    {
        let uri = format!("photos/{name}");
        let found = labels(row(&rows, &uri), "labels");
        let best: BTreeSet<_> = found[..classes.len()].iter().map(|(index, _)| *index).collect();
        assert_eq!(best, classes.iter().copied().collect(), "{name}: {found:?}");
        for wanted in &reference[&uri]["top5"].as_array().expect("five")[..n_close] {
            let (index, score) = (wanted[0].as_u64().expect("an index"), wanted[3].as_f64().expect("a score"));
            let found =
                found.iter().find(|(found, _)| *found == index).unwrap_or_else(|| panic!("{name} has no {index}"));
            assert!((found.1 - score).abs() < 0.01, "{name}, class {index}: {} is not {score}", found.1);
        }
    }
}

#[test]
fn shards_and_tables_give_the_labels_of_the_folder() {
    let workplace = clone();
    workplace.run(&["quickstart.yaml"]).expect(0);
    let labels: Vec<_> = workplace.rows("out/labels.jsonl").iter().map(|row| row["labels"].clone()).collect();
    let check = |source: &str, ids: [&str; 6]| {
        let rows = containers::classified(&workplace, source);
        assert_eq!(rows.iter().map(|row| row["id"].as_str().expect("an id")).collect::<Vec<_>>(), ids, "{source}");
        assert_eq!(rows.iter().map(|row| row["labels"].clone()).collect::<Vec<_>>(), labels, "{source}");
        rows
    };
    workplace.run(&["shards.yaml"]).expect(0);
    assert_eq!(workplace.names("out/shards"), ["photos-00000.tar", "photos-00001.tar"]);
    let shards = r#"{kind: source.webdataset, with: {path: "out/shards/photos-*.tar"}}"#;
    let stems = ["astronaut_jpg", "hubble_deep_field_jpg", "rocket_jpg", "camera_png", "chelsea_png", "coffee_png"];
    check(shards, stems.map(|stem| format!("photos/{stem}")).each_ref().map(String::as_str));

    containers::write_by_datasets(&workplace);
    let names = ["astronaut.jpg", "hubble_deep_field.jpg", "rocket.jpg", "camera.png", "chelsea.png", "coffee.png"];
    let paths = names.map(|name| format!("{PIPELINES}/photos/{name}"));
    for (kind, ids) in [("bytes", names), ("paths", paths.each_ref().map(String::as_str))] {
        let rows = check(&format!("{{kind: source.parquet, with: {{path: {kind}.parquet}}}}"), ids);
        assert_eq!(rows.iter().map(|row| row["shot"].as_u64()).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5].map(Some));
    }
}

#[test]
fn mirrored_re_encoded_and_renamed_copies_are_still_told() {
    let workplace = clone();
    let photographs = [("chelsea.png", &CATS[..]), ("coffee.png", &ESPRESSO), ("rocket.jpg", &MISSILE)];
    for (name, _) in photographs {
        copies::make(&workplace, name);
    }
    let yaml = String::from_utf8(workplace.read("quickstart.yaml")).expect("UTF-8");
    let path = r#"["photos/*.jpg", "photos/*.png"]"#;
    assert!(yaml.contains(path));
    workplace.write("copies.yaml", yaml.replace(path, r#""copies/**""#));
    workplace.run(&["copies.yaml"]).expect(0);
    workplace.run(&["quickstart.yaml"]).expect(0);
    let rows = workplace.rows("out/labels.jsonl");
    assert_eq!(rows.len(), 6, "the quick start's own are back");
    workplace.run(&["copies.yaml"]).expect(0);
    let copied = workplace.rows("out/labels.jsonl");
    assert_eq!(copied.len(), photographs.len() * copies::KINDS.len());
    for (name, classes) in photographs {
        for kind in copies::KINDS {
            let found = row(&copied, &format!("copies/{name}/{kind}"));
            let best = labels(found, "labels")[0].0;
            assert!(classes.contains(&best), "{kind} of {name}: {found}");
            if copies::keeps_pixels(name, kind) {
                assert_eq!(found["labels"], row(&rows, &format!("photos/{name}"))["labels"], "{kind} of {name}");
            }
        }
    }
}

#[test]
fn embeddings_are_one_array_whose_rows_do_not_depend_on_each_other() {
    let workplace = clone();
    workplace.run(&["embeddings.yaml"]).expect(0);
    let all = Array::parse(&workplace.read("out/embeddings.npy"));
    assert_eq!((all.shape[0], all.shape[1]), (6, 1280));
    assert!(all.values.iter().all(|value| value.is_finite()));
    let ids = workplace.rows("out/embeddings.ids.jsonl");
    let yaml = String::from_utf8(workplace.read("embeddings.yaml")).expect("UTF-8");
    let path = r#"["${photos}/*.jpg", "${photos}/*.png"]"#;
    assert!(yaml.contains(path));
    for (index, id) in ids.iter().enumerate() {
        workplace.write("one.yaml", yaml.replace(path, &id.to_string()));
        workplace.run(&["one.yaml"]).expect(0);
        let one = Array::parse(&workplace.read("out/embeddings.npy"));
        assert_eq!(one.shape, [1, 1280]);
        let same = one.values.iter().zip(all.row(index)).all(|(one, all)| one.to_bits() == all.to_bits());
        assert!(same, "row {index}, {id}");
        assert!(index == 0 || all.row(index) != all.row(0), "rows differ from each other");
    }
}

#[test]
fn embedders_from_folders_give_a_vector_of_each_photograph() {
    for (name, is_normalized) in [("clip", true), ("siglip", true), ("dinov2", false)] {
        let workplace = clone();
        let (n_features, model) = embedders::write(&workplace, name);
        let yaml = String::from_utf8(workplace.read(&format!("embed-{name}.yaml"))).expect("UTF-8");
        let sink = format!("{{kind: sink.parquet, with: {{path: out/{name}.parquet}}}}");
        assert!(yaml.contains(&sink), "{yaml}");
        workplace.write("p.yaml", yaml.replace(&sink, "{kind: sink.jsonl, with: {path: out/p.jsonl}}"));
        workplace.run(&["shards.yaml"]).expect(0);
        workplace.run(&["p.yaml", "--set", &model]).expect(0);
        let rows = workplace.rows("out/p.jsonl");
        assert_eq!(rows.len(), 6, "{name}");
        let vector = |row: &Value| -> Vec<f64> {
            let values = row["features"].as_array().expect("a vector").iter();
            values.map(|value| value.as_f64().expect("a number")).collect()
        };
        for row in &rows {
            let length = vector(row).iter().map(|value| value * value).sum::<f64>().sqrt();
            assert_eq!(vector(row).len(), n_features, "{name}");
            assert_eq!((length - 1.0).abs() < 1e-5, is_normalized, "{name}: {length}");
        }
        assert!(vector(&rows[0]) != vector(&rows[5]), "{name}: the pictures differ");
    }
}

/// The most certain of a photograph's anchors.
fn best_face(row: &Value) -> f64 {
    let anchors = row["conf"].as_array().expect("anchors");
    assert_eq!(anchors.len(), 10_752, "two for each of 16², 32² and 64² cells");
    anchors.iter().map(|scores| scores[1].as_f64().expect("a score")).fold(0.0, f64::max)
}

#[test]
fn an_onnx_model_finds_the_astronauts_face_on_threads_and_in_workers() {
    let workplace = clone().with_onnxruntime(onnx::library());
    let yaml = String::from_utf8(workplace.read("faces.yaml")).expect("UTF-8");
    let sink = "{kind: sink.parquet, with: {path: out/faces.parquet}}";
    assert!(yaml.contains(sink));
    workplace.write("faces.yaml", yaml.replace(sink, "{kind: sink.jsonl, with: {path: out/faces.jsonl}}"));
    workplace.run(&["faces.yaml"]).expect(0);
    let rows = workplace.rows("out/faces.jsonl");
    // The reference finds one face in the astronaut's picture, of 0.99948, and none in the cat's.
    assert!((best_face(row(&rows, "photos/astronaut.jpg")) - 0.9995).abs() < 0.001);
    assert!(best_face(row(&rows, "photos/chelsea.png")) < 0.9);
    let bytes = workplace.read("out/faces.jsonl");
    workplace.run(&["faces.yaml", "--fresh", "--isolation", "process"]).expect(0);
    assert!(workplace.read("out/faces.jsonl") == bytes);
}

#[test]
fn a_model_of_another_layout_and_order_of_colours_gives_the_scores_of_the_reference() {
    let workplace = clone().with_onnxruntime(onnx::library());
    let assets = std::env::var_os("FLOWGPU_TEST_ASSETS").expect("scripts/test.sh sets FLOWGPU_TEST_ASSETS");
    let model = Path::new(&assets).join("onnx/open-nsfw.onnx");
    // Blue, green, red minus 104, 117, 123; 256×256 bilinear, then 224 from the centre.
    let mean = [123.0, 117.0, 104.0].map(|value| value / 255.0);
    let std = 1.0 / 255.0;
    workplace.write(
        "p.yaml",
        format!(
            "name: p\nnodes:\n  photos: {{kind: source.files, with: {{path: [photos/chelsea.png]}}}}\n  pixels: {{kind: decode.image, \
             with: {{resize: [256, 256], crop: 224}}}}\n  scores: {{kind: infer, with: {{model: '{}', channels: bgr, normalize: \
             {{mean: {mean:?}, std: [{std}, {std}, {std}]}}}}}}\n  out: {{kind: sink.jsonl, with: {{path: out/p.jsonl}}}}\n",
            model.display()
        ),
    );
    workplace.run(&["p.yaml"]).expect(0);
    let scores = &workplace.rows("out/p.jsonl")[0]["outputs"];
    let wanted = [0.999931, 6.9e-5];
    for (place, wanted) in wanted.into_iter().enumerate() {
        assert!((scores[place].as_f64().expect("a score") - wanted).abs() < 1e-4, "{scores}");
    }
}

#[test]
fn without_onnx_runtime_a_run_says_how_to_get_it() {
    let workplace = clone().with_onnxruntime("/nowhere/libonnxruntime.so".into());
    workplace.command(&[env!("CARGO_BIN_EXE_flowgpu"), "validate"], &["faces.yaml"]).expect(0);
    let said = workplace.run(&["faces.yaml"]).expect(2);
    assert!(said.contains("pip install onnxruntime") && said.contains("/nowhere/libonnxruntime.so"), "{said}");
}

#[test]
fn two_models_are_joined_row_by_row() {
    let workplace = clone();
    workplace.run(&["two-models.yaml"]).expect(0);
    workplace.run(&["quickstart.yaml"]).expect(0);
    let alone = workplace.rows("out/labels.jsonl");
    let both = workplace.rows("out/two-models.jsonl");
    assert_eq!(both.len(), 6);
    for (both, alone) in both.iter().zip(&alone) {
        let keys: Vec<_> = both.as_object().expect("a row").keys().collect();
        assert_eq!(keys, ["uri", "lite0", "resnet18"]);
        assert_eq!(both["uri"], alone["uri"]);
        assert_eq!(labels(both, "lite0"), labels(alone, "labels")[..3]);
        assert_eq!(labels(both, "resnet18").len(), 1);
    }
}

/// As flowgpu advises where two models want different pixels.
#[test]
fn models_that_want_different_pixels_have_a_decode_node_each() {
    let workplace = clone();
    workplace.write(
        "p.yaml",
        r#"
name: p
nodes:
  photos: {kind: source.files, with: {path: "photos/*.png"}}
  sharp:  {kind: decode.image, from: photos, with: {preset: model}}
  lite0:  {kind: infer, with: {model: models/efficientnet_lite0, batch: 2, as: lite0_logits}}
  first:  {kind: transform.topk, with: {k: 5, labels: imagenet1k, as: first}}
  smooth: {kind: decode.image, from: photos, with: {preset: model}}
  mobile: {kind: infer, with: {model: {arch: mobilenet_v2, weights: random}, as: mobile_logits}}
  second: {kind: transform.topk, with: {k: 1, as: second}}
  both:   {kind: transform.join, from: [first, second]}
  sized:  {kind: transform.select, with: {keep: [first, second, width]}}
  out:    {kind: sink.jsonl, with: {path: out/both.jsonl}}
"#,
    );
    workplace.run(&["p.yaml"]).expect(0);
    workplace.run(&["quickstart.yaml"]).expect(0);
    let alone = workplace.rows("out/labels.jsonl");
    let both = workplace.rows("out/both.jsonl");
    assert_eq!(both.iter().map(|row| row["width"].as_u64().expect("a width")).collect::<Vec<_>>(), [512, 451, 600]);
    for row_of_both in &both {
        let uri = row_of_both["uri"].as_str().expect("a uri");
        assert_eq!(row_of_both["first"], row(&alone, uri)["labels"]);
        assert_eq!(labels(row_of_both, "second").len(), 1);
    }
}

#[test]
fn a_union_gives_the_rows_of_its_first_input_first() {
    let workplace = clone();
    workplace.run(&["union.yaml"]).expect(0);
    let table = String::from_utf8(workplace.read("out/union.csv")).expect("UTF-8");
    let uris: Vec<_> = table.lines().map(|line| line.split(',').next().expect("a cell")).collect();
    let expected = ["astronaut.jpg", "hubble_deep_field.jpg", "rocket.jpg", "camera.png", "chelsea.png", "coffee.png"];
    assert_eq!(uris[0], "uri");
    assert_eq!(uris[1..], expected.map(|name| format!("photos/{name}")));
}

#[test]
fn rejects_go_to_a_table_of_their_own_and_the_others_are_done() {
    let workplace = clone();
    let said = workplace.run(&["rejects.yaml"]).expect(3);
    assert!(said.contains("out/rejects.rejects.jsonl"), "{said}");
    let table = String::from_utf8(workplace.read("out/broken.csv")).expect("UTF-8");
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines[0], "id,uri,node,code,message");
    assert!(lines[1].starts_with("photos/LICENSES.md,photos/LICENSES.md,pixels,unsupported,"), "{table}");
    assert_eq!(lines.len(), 2);
    let rejects = workplace.rows("out/rejects.rejects.jsonl");
    assert_eq!(
        (rejects.len(), &rejects[0]["uri"], &rejects[0]["node"]),
        (1, &"photos/LICENSES.md".into(), &"pixels".into())
    );
    workplace.run(&["quickstart.yaml"]).expect(0);
    let all = workplace.rows("out/labels.jsonl");
    let decoded = workplace.rows("out/decoded.jsonl");
    assert_eq!(decoded.len(), 6);
    for decoded in decoded {
        let uri = decoded["uri"].as_str().expect("a uri");
        assert_eq!(labels(&decoded, "labels"), labels(row(&all, uri), "labels")[..1]);
    }
}

#[test]
fn a_limit_takes_the_first_rows_of_each_source() {
    let workplace = clone();
    workplace.run(&["quickstart.yaml"]).expect(0);
    let all = workplace.read("out/labels.jsonl");
    workplace.run(&["quickstart.yaml", "--limit", "2", "--fresh"]).expect(0);
    let two = workplace.read("out/labels.jsonl");
    assert!(all.starts_with(&two) && two.iter().filter(|&&byte| byte == b'\n').count() == 2);
    workplace.run(&["union.yaml", "--limit", "2"]).expect(0);
    let table = String::from_utf8(workplace.read("out/union.csv")).expect("UTF-8");
    let uris: Vec<_> = table.lines().skip(1).map(|line| line.split(',').next().expect("a cell")).collect();
    assert_eq!(
        uris,
        ["photos/astronaut.jpg", "photos/hubble_deep_field.jpg", "photos/camera.png", "photos/chelsea.png"]
    );
}

#[test]
fn outputs_are_the_same_bytes_each_time_with_any_number_of_threads_and_any_queue() {
    let workplace = clone();
    let runs = [
        "{}",
        "{threads: {io: 1, rows: 1, model: 1}}",
        "{threads: {io: 7, rows: 5, model: 3}}",
        "{queue_memory: 1B}",
        "{threads: {io: 3, rows: 4, model: 1}, queue_memory: 300kB}",
    ];
    for (name, output) in [
        ("quickstart", "labels.jsonl"),
        ("two-models", "two-models.jsonl"),
        ("union", "union.csv"),
        ("embeddings", "embeddings.npy"),
    ] {
        let yaml = String::from_utf8(workplace.read(&format!("{name}.yaml"))).expect("UTF-8");
        let output = format!("out/{output}");
        workplace.run(&[&format!("{name}.yaml")]).expect(0);
        let first = workplace.read(&output);
        for run in runs {
            let narrow = if run == "{}" { "" } else { ", queue: 1" };
            let nodes = yaml.replace("{kind: decode.image", &format!("{{kind: decode.image{narrow}"));
            let nodes = nodes.replace("{kind: infer", &format!("{{kind: infer{narrow}"));
            workplace.write("again.yaml", nodes.replace("\nnodes:", &format!("\nrun: {run}\nnodes:")));
            workplace.run(&["again.yaml"]).expect(0);
            assert!(workplace.read(&output) == first, "{name} with {run}");
        }
    }
}
