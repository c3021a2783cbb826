//! Right files.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use engine::config::{Devices, Document, Limit, Mistake, OnError, Port, Size};

use super::kinds::{Arch, ArchModel, Batch, DecodeImage, Infer, Kinds, Model, OneOrMany, SinkJsonl, SourceFiles};
use super::{env, parse, parse_with};

const CLASSIFY: &str = r#"# yaml-language-server: $schema=flowgpu.schema.json
name: classify
vars: {photos: photos, size: 32}
run: {device: auto, max_rejects: 5%, threads: {io: 8}, queue_memory: 512MiB}
x-common: &common {dtype: f16}
nodes:
  photos:  {kind: source.files, with: {path: "${photos}/**/*.jpg"}}
  pixels:  {kind: decode.image, with: {preset: model}, queue: 4}
  batches: {kind: batch, from: pixels, with: {size: "${size}"}}
  scores:
    kind: infer
    ordered: false
    with:
      <<: *common
      model: {arch: resnet18, weights: w.safetensors}
  bad:     {kind: sink.jsonl, from: [pixels.rejects, scores], on_error: fail, with: {path: out/bad.jsonl}}
"#;

fn options<T: serde::de::DeserializeOwned>(document: &Document, node: &str) -> T {
    let with = document.node(node).expect("the node").with.clone();
    serde_yaml::with::singleton_map_recursive::deserialize(with).expect("its options")
}

#[test]
fn a_whole_file_means_what_it_says() {
    let document = parse(CLASSIFY).expect("a right file");
    assert_eq!(document.name.value, "classify");
    assert_eq!(document.run.device, Some(Devices::Auto));
    assert_eq!(document.run.max_rejects.map(|limit| limit.exceeded(6, 100)), Some(true));
    assert_eq!(document.run.queue_memory.map(Size::bytes), Some(512 << 20));
    assert_eq!(document.run.threads.and_then(|threads| threads.io).map(usize::from), Some(8));
    let names: Vec<&str> = document.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["photos", "pixels", "batches", "scores", "bad"]);
    let files: SourceFiles = options(&document, "photos");
    assert_eq!(files.path, OneOrMany::One("photos/**/*.jpg".into()));
    let pixels = document.node("pixels").expect("pixels");
    assert_eq!((pixels.from.is_none(), pixels.queue.map(usize::from)), (true, Some(4)));
    let batch: Batch = options(&document, "batches");
    assert_eq!(Some(batch.size), NonZeroU32::new(32));
    assert!(!document.node("scores").expect("scores").ordered);
    let bad = document.node("bad").expect("bad");
    assert_eq!(bad.on_error, OnError::Fail);
    let inputs = bad.from.as_ref().expect("inputs");
    assert_eq!((inputs[0].node.as_str(), inputs[0].port), ("pixels", Port::Rejects));
    assert_eq!((inputs[1].node.as_str(), inputs[1].port), ("scores", Port::Rows));
}

#[test]
fn anchors_and_merge_keys_fill_in_what_is_not_said() {
    let document = parse(CLASSIFY).expect("a right file");
    let infer: Infer = options(&document, "scores");
    assert_eq!(infer.dtype, super::kinds::Dtype::F16);
    let text = "name: a\nx-b: &b {size: 1, max_wait: 1s}\nx-c: &c {size: 2}\nnodes:\n  b: {kind: batch, with: {max_wait: 5ms, <<: [*c, *b]}}\n  c: {kind: batch, with: *b}\n";
    let document = parse(text).expect("a right file");
    let merged: Batch = options(&document, "b");
    assert_eq!(merged.size.get(), 2);
    assert_eq!(merged.max_wait.map(|wait| wait.get().as_millis()), Some(5));
    assert_eq!(options::<Batch>(&document, "c").size.get(), 1);
}

#[test]
fn spans_lead_to_options_or_to_what_is_around_them() {
    let document = parse(CLASSIFY).expect("a right file");
    let source = document.source();
    let scores = document.node("scores").expect("scores");
    let at = |path: &[&str]| source.slice(scores.span_of(path)).to_owned();
    assert_eq!(at(&["model", "arch"]), "resnet18");
    assert_eq!(at(&["model", "sead"]), "{arch: resnet18, weights: w.safetensors}");
    assert_eq!(at(&["modle"]), "with");
    assert_eq!(source.slice(scores.key_span_of(&["model", "weights"])), "weights");
    assert_eq!(at(&["dtype"]), "f16");
    assert_eq!(source.slice(document.node("bad").expect("bad").from.as_ref().expect("from")[1].span), "scores");
    let bare = parse("name: a\nnodes: {b: {kind: decode.image}}").expect("a right file");
    let node = bare.node("b").expect("b");
    assert_eq!(bare.source().slice(node.span_of(&["crop"])), "b");
    assert_eq!(source.slice(scores.kind.span), "infer");
    let location = source.location(scores.name.span.start);
    assert_eq!((location.line, location.column), (10, 3));
}

#[test]
fn set_goes_over_vars_and_keeps_text_as_text() {
    let text = "name: a\nvars: {label: '5', size: 1, paths: [x]}\nnodes:\n  f: {kind: source.files, with: {path: \"${paths}\"}}\n  b: {kind: batch, with: {size: \"${size}\"}}\n  s: {kind: sink.jsonl, with: {path: \"${label}\"}}\n";
    let document =
        parse_with(text, &[("size", "64"), ("label", "7"), ("paths", "[p/*.jpg, q]")]).expect("a right file");
    assert_eq!(options::<Batch>(&document, "b").size.get(), 64);
    assert_eq!(options::<SinkJsonl>(&document, "s").path, "7");
    let paths = OneOrMany::Many(vec!["p/*.jpg".into(), "q".into()]);
    assert_eq!(options::<SourceFiles>(&document, "f").path, paths);
    let document = parse(text).expect("a right file");
    assert_eq!(options::<SourceFiles>(&document, "f").path, OneOrMany::Many(vec!["x".into()]));
}

#[test]
fn set_reaches_variables_made_of_variables_and_takes_types_as_the_file_would() {
    let text = "name: a\nvars: {root: r, sub: '${root}/s', n: '${env:UNSET}', k: auto}\nnodes:\n  f: {kind: source.files, with: {path: '${sub}'}}\n  b: {kind: batch, with: {size: '${n}'}}\n  t: {kind: transform.topk, with: {k: '${k}'}}\n  s: {kind: sink.jsonl, with: {path: '${root}'}}\n";
    let overrides = [("root", "x"), ("root", "\"2024\""), ("n", "5"), ("k", "3")];
    let document = parse_with(text, &overrides).expect("a right file");
    let path = OneOrMany::One("2024/s".into());
    assert_eq!(options::<SourceFiles>(&document, "f").path, path);
    assert_eq!(options::<Batch>(&document, "b").size.get(), 5);
    assert_eq!(options::<super::kinds::TransformTopk>(&document, "t").k, 3);
    assert_eq!(options::<SinkJsonl>(&document, "s").path, "2024");
}

#[test]
fn variables_take_their_type_and_escapes_stay_dollars() {
    let text = "name: a\nvars: {root: '${env:DATA}', set: '${root}/train'}\nnodes:\n  f: {kind: source.files, with: {path: '${set}/$${x}/$5/${env:N}'}}\n  b: {kind: batch, with: {size: '${env:N}'}}\n";
    let document = parse(text).expect("a right file");
    let path = OneOrMany::One("/mnt/data/train/${x}/$5/12".into());
    assert_eq!(options::<SourceFiles>(&document, "f").path, path);
    assert_eq!(options::<Batch>(&document, "b").size.get(), 12);
}

#[test]
fn the_environment_is_secret_outside_of_paths() {
    let text = "name: a\nvars: {t: '${env:TOKEN}'}\nnodes:\n  f: {kind: source.files, with: {path: '${env:DATA}'}}\n  i: {kind: infer, with: {model: m, token: 'Bearer ${t}'}}\n";
    let document = parse(text).expect("a right file");
    assert_eq!(document.secrets(), ["hunter22"]);
    assert_eq!(document.redact("Bearer hunter22 at /mnt/data"), "Bearer *** at /mnt/data");
    let mut mistakes = document.mistakes();
    mistakes.push(Mistake::at(document.name.span, "bad token hunter22"));
    assert!(!mistakes.to_string().contains("hunter22"));
    let wrong = parse(&text.replace("token:", "dtype:")).expect_err("a wrong dtype");
    assert!(!wrong.to_string().contains("hunter22"), "{wrong}");
}

#[test]
fn no_part_of_a_long_secret_is_shown() {
    let long = "s3cr3t-".repeat(40);
    let env = |_: &str| Some(long.clone());
    let text = "name: a\nvars: {t: '${env:T}'}\nnodes:\n  i: {kind: infer, with: {model: m, dtype: '${t}', share: '${t}', memory: 'x${t}'}}\n  k: {kind: '${t}', from: '${t}.${t}'}\n";
    let mistakes = Document::parse(text, Path::new("p.yaml"), &[], &env, &Kinds::new()).expect_err("mistakes");
    assert_eq!(mistakes.len(), 5);
    assert!(!mistakes.to_string().contains("s3cr3t"), "{mistakes}");
    assert!(!mistakes.to_json().iter().any(|mistake| mistake.to_string().contains("s3cr3t")));
}

#[test]
fn enums_with_values_read_from_maps() {
    let document = parse(CLASSIFY).expect("a right file");
    let infer: Infer = options(&document, "scores");
    let model = ArchModel { arch: Arch::Resnet18, weights: "w.safetensors".into(), seed: 0 };
    assert_eq!(infer.model, Model::Arch(model));
}

#[test]
fn paths_are_relative_to_the_file() {
    let document = parse(CLASSIFY).expect("a right file");
    assert_eq!(document.resolve("out/x.jsonl"), PathBuf::from("dir/out/x.jsonl"));
    assert_eq!(document.resolve("/abs"), PathBuf::from("/abs"));
    assert_eq!(document.resolve("-"), PathBuf::from("-"));
    assert_eq!(document.folder(), Path::new("dir"));
}

#[test]
fn line_ends_and_byte_order_marks_make_no_difference() {
    let document = parse(&format!("\u{feff}{}", CLASSIFY.replace('\n', "\r\n"))).expect("a right file");
    assert_eq!(document.nodes.len(), 5);
    let location = document.source().location(document.nodes[0].name.span.start);
    assert_eq!((location.line, location.column), (7, 3));
    assert_eq!(document.source().slice(document.nodes[0].kind.span), "source.files");
}

#[test]
fn all_forms_of_an_option_are_accepted() {
    let text = "name: a\nrun: {max_rejects: 10, device: 'cuda:0,2', limit: 5, quiet: true}\nnodes:\n  a: {kind: decode.image, with: {resize: 256, crop: 224, interpolation: bicubic, alpha: false}}\n  b: {kind: decode.image, from: a, with: {resize: [256, 128], crop: null}}\n  c: {kind: infer, with: {model: m, device: cpu, normalize: half, memory: 1000, share: 0.5}}\n  d: {kind: infer, with: {model: m, normalize: {mean: [0, 0, 0], std: [1, 1.5, 2]}, memory: 2GiB, share: 5%}}\n  e: {kind: transform.scale, with: {by: range, low: 0, high: 1.5}}\n  f: {kind: source.synthetic, with: {images: {count: 3, size: [4, 5]}}}\n  g: {kind: decode.image, with: }\n";
    let document = parse(text).expect("a right file");
    assert_eq!(document.run.max_rejects, Some(Limit::Count(10)));
    assert_eq!(document.run.device, Some(Devices::Cuda(vec![0, 2])));
    for node in ["a", "b", "g"] {
        options::<DecodeImage>(&document, node);
    }
    for node in ["c", "d"] {
        options::<Infer>(&document, node);
    }
    options::<super::kinds::TransformScale>(&document, "e");
    options::<super::kinds::SourceSynthetic>(&document, "f");
}

#[test]
fn a_file_is_read_from_disk_or_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.yaml");
    std::fs::write(&file, CLASSIFY).expect("written");
    let document = Document::read(&file, &[], &env, &Kinds::new()).expect("a right file");
    assert_eq!(document.folder(), folder.path());
    let missing = Document::read(&folder.path().join("q.yaml"), &[], &env, &Kinds::new()).expect_err("no file");
    assert!(missing.to_string().contains("q.yaml`: there is no such file"), "{missing}");
}
