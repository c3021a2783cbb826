//! The published weights against the reference figures of `tests/reference.json`.

use candle_core::{DType, Device, Tensor};
use indexmap::IndexMap;
use nodes::models::{ImageModel, Outputs, Params, arch};

fn check(arch_name: &str, file: &str) {
    let reference: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/reference.json")).expect("the reference");
    let folder = std::env::var("FLOWGPU_TEST_ASSETS")
        .expect("FLOWGPU_TEST_ASSETS names the folder of fetched weights");
    let path = std::path::Path::new(&folder).join(file);
    let tensors = candle_core::safetensors::load(path, &Device::Cpu).expect("the weights");
    let source = Params::new(IndexMap::from_iter(tensors));
    let model = ImageModel::load(
        arch(arch_name).expect("an arch"),
        &source,
        DType::F32,
        &Device::Cpu,
    )
    .expect("weights that fit");
    let values: Vec<f32> = (0..3 * 224 * 224)
        .map(|n| (0.01 * f64::from(n)).sin() as f32)
        .collect();
    let images = Tensor::from_vec(values, (1, 3, 224, 224), &Device::Cpu).expect("an image");
    let logits = model
        .forward(&images, Outputs::Logits)
        .expect("logits")
        .to_vec2::<f32>()
        .expect("rows")
        .remove(0);
    let wanted = &reference["sin_input"][arch_name];
    println!(
        "{arch_name} {:?} {:?} {wanted}",
        &logits[..5],
        logits.iter().sum::<f32>()
    );
    for (found, wanted) in logits
        .iter()
        .zip(wanted["logits_first5"].as_array().expect("figures"))
    {
        let wanted = wanted.as_f64().expect("a figure");
        assert!(
            (f64::from(*found) - wanted).abs() < 1e-3,
            "{arch_name}: {found} is not {wanted}"
        );
    }
    let largest = (0..logits.len())
        .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
        .map(|idx| idx as u64);
    assert_eq!(largest, wanted["argmax"].as_u64());
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    assert!((max - wanted["max"].as_f64().expect("a figure")).abs() < 1e-3);
    let sum: f64 = logits.iter().copied().map(f64::from).sum();
    assert!(
        (sum - wanted["sum"].as_f64().expect("a figure")).abs() < 1e-2,
        "{sum}"
    );
}

#[test]
fn efficientnet_lite0_gives_the_reference_logits() {
    check("efficientnet_lite0", "efficientnet-lite0.safetensors");
}

#[test]
fn mobilenet_v2_gives_the_reference_logits() {
    check("mobilenet_v2", "mobilenet_v2.safetensors");
}
