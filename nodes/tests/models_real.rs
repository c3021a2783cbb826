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

/// Committed photographs that are, byte for byte, those of the reference.
const COMMITTED: [&str; 3] = ["photos/chelsea.png", "photos/coffee.png", "photos/rocket.jpg"];

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
    sum: f64,
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
    let sum = logits.iter().copied().map(f64::from).sum::<f64>();
    // A thousand logits: what is off in all of them the same way shows here first.
    assert!((sum - wanted.sum).abs() < 10.0 * f64::from(tolerance), "{arch_name}: {sum} is not {}", wanted.sum);
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

/// Whose decoder and filter made the pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pixels {
    Own,
    /// The reference's figures come from these, so that only the network's arithmetic differs.
    Pillow,
}

impl Pixels {
    /// The network's input for a photograph of the reference, by its name there. `key` is the reference's name for the
    /// preset, such as `tf127_bicubic256`.
    fn input(self, name: &str, preset: Preset, key: &str) -> Tensor {
        let pixels = match self {
            Self::Own => own_pixels(&photograph(name), preset),
            Self::Pillow => {
                let (_, filter) = key.split_once('_').expect("normalisation and filter");
                read(&asset(&format!("pillow-13.0.0-pixels/{filter}/{name}.rgb")))
            }
        };
        preset.normalize.to_tensor(&pixels, 1, 224, 224).expect("a tensor")
    }
}

fn own_pixels(path: &Path, preset: Preset) -> Vec<u8> {
    let mut pixels = vec![0; 224 * 224 * 3];
    decode_into(&read(path), &preset.pixels, Limits::default(), &mut Scratch::default(), |height, width| {
        assert_eq!((height, width), (224, 224));
        &mut pixels
    })
    .expect("a picture");
    pixels
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The reference's `photos/` are committed, the others fetched.
fn photograph(name: &str) -> PathBuf {
    if name.starts_with("photos/") { root().join("pipelines").join(name) } else { asset(name) }
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

/// How far a probability may be off: single precision sums in another order.
const ALLOWED: f64 = 1e-4;

fn check_photographs(arch_name: &str, weights: &str, preset: Preset, key: &str, pixels: Pixels) {
    let reference = reference();
    let full_key = format!("{arch_name}/{key}");
    let model = model(arch_name, &asset(weights));
    let [mut n_top1, mut n_top5, mut n_compared] = [0_i64; 3];
    let photographs = labelled().into_iter().map(|(name, class)| (name, Some(class)));
    for (name, class) in photographs.chain(COMMITTED.map(|name| (name.to_owned(), None))) {
        let logits = row(&model, &pixels.input(&name, preset, key), Outputs::Logits);
        let ranked = ranked(&logits);
        n_top1 += i64::from(class == Some(ranked[0]));
        n_top5 += i64::from(class.is_some_and(|class| ranked[..5].contains(&class)));
        let Some(wanted) = reference["classification"][&full_key].get(&name) else {
            continue;
        };
        n_compared += 1;
        for (place, wanted) in wanted["top5"].as_array().expect("five").iter().enumerate() {
            let class = wanted[0].as_u64().expect("a class") as usize;
            let wanted = wanted[3].as_f64().expect("a probability");
            let found = probability(&logits, class);
            assert!(
                (found - wanted).abs() < ALLOWED,
                "{full_key} {name} class {class} from {pixels:?}: {found} is not {wanted}"
            );
            assert!(place > 0 || class == ranked[0], "{full_key} {name} from {pixels:?}: {} is not {class}", ranked[0]);
        }
    }
    assert_eq!(n_compared, 17, "14 labelled photographs and three others have figures");
    let wanted = &reference["accuracy_foolbox20_top1_top5_n"][&full_key];
    for (place, found) in [n_top1, n_top5].into_iter().enumerate() {
        let wanted = wanted[place].as_i64().expect("a count");
        assert_eq!(found, wanted, "{full_key} from {pixels:?}: right of 20");
    }
}

fn check_efficientnet_lite0(pixels: Pixels) {
    let preset = arch("efficientnet_lite0").expect("an architecture").preset();
    check_photographs("efficientnet_lite0", LITE0, preset, "tf127_bicubic256", pixels);
    let preset = Preset { normalize: Normalize::Imagenet, ..arch("mobilenet_v2").expect("an architecture").preset() };
    check_photographs("efficientnet_lite0", LITE0, preset, "imagenet_bilinear256", pixels);
}

fn check_mobilenet_v2(pixels: Pixels) {
    let preset = arch("mobilenet_v2").expect("an architecture").preset();
    check_photographs("mobilenet_v2", MOBILENET, preset, "imagenet_bilinear256", pixels);
}

#[test]
fn efficientnet_lite0_classifies_photographs_as_the_reference_does() {
    check_efficientnet_lite0(Pixels::Own);
}

#[test]
fn efficientnet_lite0_classifies_the_pixels_of_pillow_as_the_reference_does() {
    check_efficientnet_lite0(Pixels::Pillow);
}

#[test]
fn mobilenet_v2_classifies_photographs_as_the_reference_does() {
    check_mobilenet_v2(Pixels::Own);
}

#[test]
fn mobilenet_v2_classifies_the_pixels_of_pillow_as_the_reference_does() {
    check_mobilenet_v2(Pixels::Pillow);
}

fn check_features(pixels: Pixels) {
    let reference = reference();
    let model = model("mobilenet_v2", &asset(MOBILENET));
    for name in ["photos/chelsea.png", "photos/coffee.png"] {
        let preset = model.arch().preset();
        let features = row(&model, &pixels.input(name, preset, "imagenet_bilinear256"), Outputs::Features);
        let wanted = &reference["embeddings_mobilenet_v2_pool1280"][name];
        let norm = features.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        let wanted_norm = wanted["norm"].as_f64().expect("a norm");
        assert!((norm / wanted_norm - 1.0).abs() < 1e-3, "{name} from {pixels:?}: {norm} is not {wanted_norm}");
        let first = wanted["mobilenet_v2_pool1280_first5"].as_array().expect("five");
        for (found, wanted) in features.iter().zip(first) {
            let wanted = wanted.as_f64().expect("a figure");
            // The reference is rounded to five decimals, which shows in the small ones.
            let allowed = 1e-3 * wanted + 5e-6;
            assert!((f64::from(*found) - wanted).abs() <= allowed, "{name} from {pixels:?}: {found} is not {wanted}");
        }
    }
}

#[test]
fn pooled_features_of_photographs_are_those_of_the_reference() {
    check_features(Pixels::Own);
}

#[test]
fn pooled_features_of_the_pixels_of_pillow_are_those_of_the_reference() {
    check_features(Pixels::Pillow);
}
