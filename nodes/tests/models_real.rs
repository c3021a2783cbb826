//! The published weights against the reference figures of `tests/reference.json`: the networks alone, and on photographs.
#![cfg(feature = "testing")]

use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use nodes::decode::{Limits, Scratch, decode_into};
use nodes::models::{ImageModel, Normalize, Outputs, Preset, arch};
use serde::Deserialize;
use serde_json::Value;

const LITE0: &str = "efficientnet-lite0-57934424.pth";
const MOBILENET: &str = "mobilenet_v2-b0353104.pth";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file that `scripts/fetch_test_assets.py` fetched.
fn asset(name: &str) -> PathBuf {
    let folder = std::env::var_os("FLOWGPU_TEST_ASSETS").expect("scripts/test.sh sets FLOWGPU_TEST_ASSETS");
    Path::new(&folder).join(name)
}

fn reference() -> Value {
    let text = std::fs::read_to_string(root().join("tests/reference.json")).expect("the reference");
    serde_json::from_str(&text).expect("the reference as JSON")
}

fn model(arch_name: &str, weights: &Path) -> ImageModel {
    let source = nodes::weights::open(weights).expect("weights that open");
    let arch = arch(arch_name).expect("a known architecture");
    ImageModel::load(arch, &source, DType::F32, &Device::Cpu).expect("weights that fit")
}

fn row(model: &ImageModel, images: &Tensor, outputs: Outputs) -> Vec<f32> {
    model.forward(images, outputs).expect("an output").to_vec2::<f32>().expect("rows").remove(0)
}

#[derive(Deserialize)]
struct SinInput {
    logits_first5: [f32; 5],
    argmax: usize,
    max: f32,
    sum: f32,
}

fn check_sin_input(arch_name: &str, weights: &Path, tolerance: f32) {
    let wanted: SinInput = serde_json::from_value(reference()["sin_input"][arch_name].take()).expect("figures");
    let values: Vec<f32> = (0..3 * 224 * 224).map(|n| (0.01 * f64::from(n)).sin() as f32).collect();
    let images = Tensor::from_vec(values, (1, 3, 224, 224), &Device::Cpu).expect("an image");
    let logits = row(&model(arch_name, weights), &images, Outputs::Logits);
    for (found, wanted) in logits.iter().zip(wanted.logits_first5) {
        assert!((found - wanted).abs() < tolerance, "{arch_name}: {found} is not {wanted}");
    }
    let best = best(&logits);
    assert_eq!(best, wanted.argmax, "{arch_name}");
    assert!((logits[best] - wanted.max).abs() < tolerance, "{arch_name}: {} is not {}", logits[best], wanted.max);
    let sum = logits.iter().sum::<f32>();
    assert!((sum - wanted.sum).abs() < 100.0 * tolerance, "{arch_name}: {sum} is not {}", wanted.sum);
}

fn best(logits: &[f32]) -> usize {
    ranked(logits)[0]
}

/// Classes from the likeliest on.
fn ranked(logits: &[f32]) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..logits.len()).collect();
    classes.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    classes
}

fn probability(logits: &[f32], class: usize) -> f64 {
    let exp = |logit: f32| f64::from(logit).exp();
    exp(logits[class]) / logits.iter().copied().map(exp).sum::<f64>()
}

#[test]
fn efficientnet_lite0_gives_the_reference_logits() {
    check_sin_input("efficientnet_lite0", &asset(LITE0), 1e-3);
}

#[test]
fn mobilenet_v2_gives_the_reference_logits() {
    check_sin_input("mobilenet_v2", &asset(MOBILENET), 1e-3);
}

#[test]
fn the_quick_start_model_in_half_precision_is_close_to_the_reference() {
    check_sin_input("efficientnet_lite0", &root().join("pipelines/models/efficientnet_lite0"), 0.05);
}

/// A picture as the preset has it.
fn image(path: &Path, preset: Preset) -> Tensor {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut pixels = vec![0; 224 * 224 * 3];
    decode_into(&bytes, &preset.pixels, Limits::default(), &mut Scratch::default(), |height, width| {
        assert_eq!((height, width), (224, 224));
        &mut pixels
    })
    .expect("a picture");
    preset.normalize.to_tensor(&pixels, 1, 224, 224).expect("a tensor")
}

/// The labelled photographs and their classes, which their names end with.
fn labelled() -> Vec<(String, usize)> {
    let mut names: Vec<String> = std::fs::read_dir(asset("imagenet20"))
        .expect("the labelled photographs")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".jpg"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 20);
    let class = |name: &str| name.trim_end_matches(".jpg").rsplit('_').next().and_then(|class| class.parse().ok());
    names.into_iter().map(|name| (format!("imagenet20/{name}"), class(&name).expect("a class"))).collect()
}

fn check_photographs(arch_name: &str, weights: &str, preset: Preset, key: &str) {
    let reference = reference();
    let key = format!("{arch_name}/{key}");
    let model = model(arch_name, &asset(weights));
    let [mut n_top1, mut n_top5, mut n_compared] = [0_i64; 3];
    for (name, class) in labelled() {
        let logits = row(&model, &image(&asset(&name), preset), Outputs::Logits);
        let ranked = ranked(&logits);
        n_top1 += i64::from(ranked[0] == class);
        n_top5 += i64::from(ranked[..5].contains(&class));
        let Some(wanted) = reference["classification"][&key].get(&name) else {
            continue;
        };
        n_compared += 1;
        for (place, wanted) in wanted["top5"].as_array().expect("five").iter().enumerate() {
            let class = wanted[0].as_u64().expect("a class") as usize;
            let wanted = wanted[3].as_f64().expect("a probability");
            let found = probability(&logits, class);
            assert!((found - wanted).abs() < 0.03, "{key} {name} class {class}: {found} is not {wanted}");
            assert!(place > 0 || class == ranked[0], "{key} {name}: {} is not {class}", ranked[0]);
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
fn efficientnet_lite0_classifies_photographs_as_the_reference_does() {
    let preset = arch("efficientnet_lite0").expect("an architecture").preset();
    check_photographs("efficientnet_lite0", LITE0, preset, "tf127_bicubic256");
    let preset = Preset { normalize: Normalize::Imagenet, ..arch("mobilenet_v2").expect("an architecture").preset() };
    check_photographs("efficientnet_lite0", LITE0, preset, "imagenet_bilinear256");
}

#[test]
fn mobilenet_v2_classifies_photographs_as_the_reference_does() {
    let preset = arch("mobilenet_v2").expect("an architecture").preset();
    check_photographs("mobilenet_v2", MOBILENET, preset, "imagenet_bilinear256");
}

#[test]
fn pooled_features_of_photographs_are_those_of_the_reference() {
    let reference = reference();
    let model = model("mobilenet_v2", &asset(MOBILENET));
    for name in ["chelsea.png", "coffee.png"] {
        let path = root().join("pipelines/photos").join(name);
        let features = row(&model, &image(&path, model.arch().preset()), Outputs::Features);
        let wanted = &reference["embeddings_mobilenet_v2_pool1280"][format!("photos/{name}")];
        let norm = features.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        let wanted_norm = wanted["norm"].as_f64().expect("a norm");
        assert!((norm / wanted_norm - 1.0).abs() < 1e-3, "{name}: {norm} is not {wanted_norm}");
        let first = wanted["mobilenet_v2_pool1280_first5"].as_array().expect("five");
        for (found, wanted) in features.iter().zip(first) {
            let wanted = wanted.as_f64().expect("a figure");
            // A thousandth of a large feature; the decoder's rounding shows in small ones.
            assert!((f64::from(*found) - wanted).abs() < 5e-3, "{name}: {found} is not {wanted}");
        }
    }
}
