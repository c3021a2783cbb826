//! Every architecture, under every naming scheme, against what torchvision, timm and transformers compute from the same
//! made-up weights. `golden/make.py` made the figures.

use candle_core::{DType, Device, Tensor};
use indexmap::IndexMap;
use nodes::models::{ARCHS, ImageModel, Outputs, RandomWeights, arch};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    arch: String,
    scheme: String,
    outputs: Vec<GoldenOutput>,
    shapes: IndexMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
struct GoldenOutput {
    input: [usize; 2],
    logits: Summary,
    features: Summary,
}

#[derive(Deserialize)]
struct Summary {
    n: usize,
    argmax: usize,
    sum: f64,
    abs_max: f64,
    step: usize,
    values: Vec<f64>,
}

fn sin_input(height: usize, width: usize) -> Tensor {
    let values: Vec<f32> = (0..3 * height * width).map(|n| (0.01 * n as f64).sin() as f32).collect();
    Tensor::from_vec(values, (1, 3, height, width), &Device::Cpu).expect("a tensor")
}

fn check_summary(what: &str, found: &[f32], golden: &Summary) {
    assert_eq!(found.len(), golden.n, "{what}");
    // A thousandth of the largest value, or of one where all are small.
    let tolerance = 1e-3 * golden.abs_max.max(1.0);
    for (value_idx, wanted) in golden.values.iter().enumerate() {
        let found = f64::from(found[value_idx * golden.step]);
        assert!((found - wanted).abs() <= tolerance, "{what}[{}]: {found} is not {wanted}", value_idx * golden.step);
    }
    let largest = (0..found.len()).max_by(|&a, &b| found[a].total_cmp(&found[b]));
    assert_eq!(largest, Some(golden.argmax), "{what}");
    let sum: f64 = found.iter().copied().map(f64::from).sum();
    let wanted = golden.sum;
    assert!((sum - wanted).abs() <= tolerance * (golden.n as f64).sqrt(), "sum of {what}: {sum} is not {wanted}");
}

fn check(golden: &str) {
    let golden: Golden = serde_json::from_str(golden).expect("a golden output");
    let arch = arch(&golden.arch).expect("a known architecture");
    let source = RandomWeights::of_shapes(golden.shapes, 0);
    let model = ImageModel::load(arch, &source, DType::F32, &Device::Cpu).expect("weights that fit");
    for output in &golden.outputs {
        let [height, width] = output.input;
        let images = sin_input(height, width);
        for (outputs, summary) in [(Outputs::Logits, &output.logits), (Outputs::Features, &output.features)] {
            let what = format!("{} ({}) {height}×{width} {outputs:?}", golden.arch, golden.scheme);
            let rows = model.forward(&images, outputs).expect("an output");
            check_summary(&what, &rows.to_vec2::<f32>().expect("rows")[0], summary);
        }
    }
}

macro_rules! golden {
    ($($name:ident: $file:literal,)*) => {
        $(#[test] fn $name() { check(include_str!(concat!("golden/", $file))); })*

        #[test]
        fn every_architecture_has_a_golden_output() {
            for arch in ARCHS {
                let stem = format!("{}.", arch.name());
                assert!([$($file),*].iter().any(|file| file.starts_with(&stem)), "{stem}");
            }
        }
    };
}

golden! {
    efficientnet_lite0_timm: "efficientnet_lite0.timm.json",
    mobilenet_v2_timm: "mobilenet_v2.timm.json",
    mobilenet_v2_torchvision: "mobilenet_v2.torchvision.json",
    resnet18_huggingface: "resnet18.huggingface.json",
    resnet18_timm: "resnet18.timm.json",
    resnet18_torchvision: "resnet18.torchvision.json",
    resnet50_huggingface: "resnet50.huggingface.json",
    resnet50_timm: "resnet50.timm.json",
    resnet50_torchvision: "resnet50.torchvision.json",
    vit_base_patch16_224_huggingface: "vit_base_patch16_224.huggingface.json",
    vit_base_patch16_224_timm: "vit_base_patch16_224.timm.json",
    vit_base_patch16_224_torchvision: "vit_base_patch16_224.torchvision.json",
}
