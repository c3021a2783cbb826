//! CLIP, SigLIP and DINOv2 against what transformers computes from the same made-up weights.
//! `golden/make_embedders.py` made the figures.

mod embedders;

use candle_core::{DType, Device, Tensor};
use embedders::{Golden, Summary, TINY};
use nodes::models::{ImageModel, Length, Outputs, RandomWeights};

fn sin_input(height: usize, width: usize) -> Tensor {
    let values: Vec<f32> = (0..3 * height * width).map(|n| (0.01 * n as f64).sin() as f32).collect();
    Tensor::from_vec(values, (1, 3, height, width), &Device::Cpu).expect("a tensor")
}

fn load(golden: Golden) -> ImageModel {
    let arch = golden.arch();
    ImageModel::load(arch, &RandomWeights::of_shapes(golden.shapes, 0), DType::F32, &Device::Cpu)
        .expect("weights that fit")
}

fn features(model: &ImageModel, [height, width]: [usize; 2]) -> Vec<f32> {
    let rows = model.forward(&sin_input(height, width), Outputs::Features).expect("features");
    rows.to_vec2::<f32>().expect("rows").remove(0)
}

/// The largest difference, in parts of the largest value.
fn difference(what: &str, found: &[f32], golden: &Summary) -> f64 {
    assert_eq!(found.len(), golden.n, "{what}");
    let largest = (0..found.len()).max_by(|&a, &b| found[a].total_cmp(&found[b]));
    assert_eq!(largest, Some(golden.argmax), "{what}");
    let sum: f64 = found.iter().copied().map(f64::from).sum();
    let allowed = 1e-5 * golden.abs_max * golden.n as f64;
    assert!((sum - golden.sum).abs() <= allowed, "sum of {what}: {sum} is not {}", golden.sum);
    let differences =
        golden.values.iter().enumerate().map(|(idx, wanted)| (f64::from(found[idx * golden.step]) - wanted).abs());
    differences.fold(0.0, f64::max) / golden.abs_max
}

fn check(name: &str, golden: &str) {
    let mut golden = Golden::parse(golden);
    let outputs = std::mem::take(&mut golden.outputs);
    assert!(!outputs.is_empty(), "{name}");
    let model = load(golden);
    for output in outputs {
        let what = format!("{name} {:?}", output.input);
        let difference = difference(&what, &features(&model, output.input), &output.features);
        assert!(difference <= 1e-5, "{what}: {difference}");
    }
}

macro_rules! golden {
    ($($name:ident: $file:literal,)*) => {
        $(#[test] fn $name() { check(stringify!($name), include_str!(concat!("golden/", $file))); })*
    };
}

golden! {
    clip_base_patch32: "clip.base_patch32.json",
    clip_tiny: "clip.tiny.json",
    clip_tiny_gelu: "clip.tiny_gelu.json",
    clip_tiny_vision: "clip.tiny_vision.json",
    clip_tiny_vision_with_projection: "clip.tiny_vision_with_projection.json",
    siglip_base_patch16_224: "siglip.base_patch16_224.json",
    siglip_tiny: "siglip.tiny.json",
    siglip_tiny_vision: "siglip.tiny_vision.json",
    dinov2_small: "dinov2.small.json",
    dinov2_tiny: "dinov2.tiny.json",
    dinov2_tiny_swiglu: "dinov2.tiny_swiglu.json",
    dinov2_tiny_registers: "dinov2.tiny_registers.json",
}

#[test]
fn features_of_length_one_are_the_features_divided_by_their_length() {
    for (name, json) in TINY {
        let golden = Golden::parse(json);
        let size = golden.outputs[0].input;
        let model = load(golden);
        let raw = features(&model, size);
        let unit = features(&model.with_length(Length::One), size);
        let length = raw.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        assert!(length > 2.0, "{name}: {length}");
        for (raw, unit) in raw.iter().zip(unit) {
            assert!((f64::from(*raw) / length - f64::from(unit)).abs() < 1e-7, "{name}: {raw} {unit}");
        }
    }
}

#[test]
fn an_embedder_has_no_logits() {
    for (name, json) in TINY {
        let golden = Golden::parse(json);
        let [height, width] = golden.outputs[0].input;
        let error =
            load(golden).forward(&sin_input(height, width), Outputs::Logits).expect_err("no logits").to_string();
        assert!(error.ends_with("` gives no logits"), "{name}: {error}");
    }
}

#[test]
fn clip_and_siglip_take_images_of_their_own_size_only() {
    for (_, json) in &TINY[..3] {
        let golden = Golden::parse(json);
        let [side, _] = golden.outputs[0].input;
        let error = load(golden).forward(&sin_input(side + 14, side), Outputs::Features).expect_err("another size");
        assert!(
            error.to_string().ends_with(&format!("takes images of {side}×{side}, found {}×{side}", side + 14)),
            "{error}"
        );
    }
}
