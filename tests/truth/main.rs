//! The whole pipeline against other people's figures: published weights, labelled photographs, and what the libraries
//! that the models come from say of them (`tests/reference.json`).
//!
//! The models alone are tested beside their code; here it is the pipeline file, its defaults and presets, and the rows
//! that come out.

#[path = "../examples/npy.rs"]
mod npy;
#[path = "../examples/workplace.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use npy::Array;
use workplace::{PIPELINES, Workplace};

const LITE0: &str = "efficientnet-lite0-57934424.pth";
const MOBILENET: &str = "mobilenet_v2-b0353104.pth";

/// A file or folder that `scripts/fetch_test_assets.py` fetches.
fn asset(name: &str) -> String {
    let home = || PathBuf::from(std::env::var_os("HOME").expect("a home"));
    let cache = || std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    let folder =
        std::env::var_os("FLOWGPU_TEST_ASSETS").map_or_else(|| cache().join("flowgpu/test-assets"), PathBuf::from);
    let path = folder.join(name);
    assert!(path.exists(), "`{}` is missing: run `scripts/fetch_test_assets.py` once", path.display());
    path.into_os_string().into_string().expect("UTF-8")
}

fn reference() -> Value {
    serde_json::from_str(include_str!("../reference.json")).expect("JSON")
}

/// What the program says of a photograph.
struct Classified {
    /// The file's name, without `.jpg`.
    name: String,
    /// The right class, with which the name ends.
    class: u64,
    /// Every class with its probability, likeliest first.
    labels: Vec<(u64, f64)>,
}

fn classify(arch: &str, weights: &str, options: &str) -> Vec<Classified> {
    let workplace = Workplace::new();
    workplace.write(
        "p.yaml",
        format!(
            "
name: truth
nodes:
  photos: {{kind: source.files, with: {{path: '{}/*.jpg'}}}}
  pixels: {{kind: decode.image, with: {{preset: model}}}}
  scores: {{kind: infer, with: {{model: {{arch: {arch}, weights: '{}'}}, batch: 7{options}}}}}
  labels: {{kind: transform.topk, with: {{k: 1000}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
",
            asset("imagenet20"),
            asset(weights),
        ),
    );
    workplace.run(&["p.yaml"]).expect(0);
    let rows = workplace.rows("out.jsonl");
    assert_eq!(rows.len(), 20);
    let read = |row: &Value| {
        let name = Path::new(row["uri"].as_str().expect("a uri"))
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name")
            .to_owned();
        let class = name.rsplit('_').next().and_then(|class| class.parse().ok()).expect("a class");
        let labels = row["labels"].as_array().expect("labels").iter();
        let labels =
            labels.map(|label| (label["index"].as_u64().expect("an index"), label["score"].as_f64().expect("a score")));
        Classified { name, class, labels: labels.collect() }
    };
    rows.iter().map(read).collect()
}

fn check(arch: &str, weights: &str, options: &str, key: &str, tolerance: f64) {
    let reference = reference();
    let key = format!("{arch}/{key}");
    let (mut n_top1, mut n_top5, mut n_compared) = (0_i64, 0_i64, 0);
    for Classified { name, class, labels } in classify(arch, weights, options) {
        n_top1 += i64::from(labels[0].0 == class);
        n_top5 += i64::from(labels[..5].iter().any(|(index, _)| *index == class));
        let total: f64 = labels.iter().map(|(_, score)| score).sum();
        assert!(labels.len() == 1000 && (total - 1.0).abs() < 1e-4, "{name}: probabilities sum to {total}");
        let Some(wanted) = reference["classification"][&key].get(format!("imagenet20/{name}.jpg")) else { continue };
        n_compared += 1;
        let found: BTreeMap<_, _> = labels.iter().copied().collect();
        let wanted = wanted["top5"].as_array().expect("five");
        assert_eq!(labels[0].0, wanted[0][0].as_u64().expect("a class"), "{key} {name}");
        for wanted in wanted {
            let (class, score) = (wanted[0].as_u64().expect("a class"), wanted[3].as_f64().expect("a score"));
            assert!(
                (found[&class] - score).abs() < tolerance,
                "{key} {name}, class {class}: {} is not {score}",
                found[&class]
            );
        }
    }
    assert_eq!(n_compared, 14);
    let wanted = &reference["accuracy_foolbox20_top1_top5_n"][&key];
    for (place, found) in [n_top1, n_top5].into_iter().enumerate() {
        let wanted = wanted[place].as_i64().expect("a count");
        assert!((found - wanted).abs() <= 1, "{key}: {found} right of 20, the reference has {wanted}");
    }
}

#[test]
fn efficientnet_lite0_classifies_as_its_reference_by_its_own_preset() {
    check("efficientnet_lite0", LITE0, "", "tf127_bicubic256", 0.03);
}

#[test]
fn mobilenet_v2_classifies_as_its_reference_by_its_own_preset() {
    check("mobilenet_v2", MOBILENET, "", "imagenet_bilinear256", 0.03);
}

#[test]
fn half_precision_keeps_the_best_class_of_each_photograph() {
    check("mobilenet_v2", MOBILENET, ", dtype: f16", "imagenet_bilinear256", 0.03);
}

#[test]
fn the_quick_start_model_classifies_as_the_weights_that_it_was_made_from() {
    let folder = format!("{PIPELINES}/models/efficientnet_lite0");
    let from_folder = {
        let workplace = Workplace::new();
        workplace.write(
            "p.yaml",
            format!(
                "
name: truth
nodes:
  photos: {{kind: source.files, with: {{path: '{}/*.jpg'}}}}
  pixels: {{kind: decode.image, with: {{preset: model}}}}
  scores: {{kind: infer, with: {{model: '{folder}'}}}}
  labels: {{kind: transform.topk, with: {{k: 1}}}}
  out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}
",
                asset("imagenet20"),
            ),
        );
        workplace.run(&["p.yaml"]).expect(0);
        workplace.rows("out.jsonl")
    };
    for (row, from_file) in from_folder.iter().zip(classify("efficientnet_lite0", LITE0, "")) {
        let Classified { name, labels, .. } = from_file;
        let best = &row["labels"][0];
        assert_eq!(best["index"].as_u64(), Some(labels[0].0), "{name}");
        assert!(
            (best["score"].as_f64().expect("a score") - labels[0].1).abs() < 0.01,
            "{name}: {best} is not {}",
            labels[0].1
        );
    }
}

#[test]
fn pooled_features_are_those_of_the_reference() {
    let workplace = Workplace::new();
    let photos = ["chelsea.png", "coffee.png"].map(|name| format!("{PIPELINES}/photos/{name}"));
    workplace.write(
        "p.yaml",
        format!(
            "
name: truth
nodes:
  photos: {{kind: source.files, with: {{path: {photos:?}}}}}
  pixels: {{kind: decode.image, with: {{preset: model}}}}
  vectors: {{kind: infer, with: {{model: {{arch: mobilenet_v2, weights: '{}'}}, outputs: features}}}}
  out: {{kind: sink.npy, with: {{path: out.npy}}}}
",
            asset(MOBILENET),
        ),
    );
    workplace.run(&["p.yaml"]).expect(0);
    let array = Array::parse(&workplace.read("out.npy"));
    assert_eq!(array.shape, [2, 1280]);
    let reference = reference();
    for (index, name) in ["chelsea.png", "coffee.png"].into_iter().enumerate() {
        let wanted = &reference["embeddings_mobilenet_v2_pool1280"][format!("photos/{name}")];
        let norm = array.row(index).iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        let wanted_norm = wanted["norm"].as_f64().expect("a norm");
        assert!((norm / wanted_norm - 1.0).abs() < 1e-3, "{name}: {norm} is not {wanted_norm}");
        let first = wanted["mobilenet_v2_pool1280_first5"].as_array().expect("five");
        for (found, wanted) in array.row(index).iter().zip(first) {
            let wanted = wanted.as_f64().expect("a figure");
            let error = (f64::from(*found) - wanted).abs();
            // The files are lossless: nothing but the networks' and the resampling's own rounding is between them.
            assert!(error < 1e-3 * wanted.max(1.0), "{name}: {found} is not {wanted}");
        }
    }
}
