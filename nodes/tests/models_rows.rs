//! What a row's result may depend on, for every architecture: on the row and the weights, and on nothing else.

mod embedders;

use candle_core::{DType, Device, Tensor};
use embedders::{every_arch, file, renamed};
use nodes::models::{Arch, ArchRef, ImageModel, InputSize, Outputs};

const N_ROWS: usize = 4;

fn model(arch: &ArchRef) -> ImageModel {
    ImageModel::load(arch.clone(), &file(&**arch, 1), DType::F32, &Device::Cpu).expect("weights that fit")
}

fn size(arch: &dyn Arch) -> [usize; 2] {
    match arch.input_size() {
        InputSize::AtLeast(least) => [least + 16, least + 31],
        InputSize::Exactly(height, width) => [height, width],
    }
}

/// Four images, none like another.
fn images([height, width]: [usize; 2]) -> Tensor {
    let values: Vec<f32> = (0..N_ROWS * 3 * height * width).map(|n| (n as f32 * 0.37).sin() * 2.0).collect();
    Tensor::from_vec(values, (N_ROWS, 3, height, width), &Device::Cpu).expect("images")
}

fn rows_of(images: &Tensor, rows: &[usize]) -> Tensor {
    let rows: Vec<Tensor> = rows.iter().map(|&row| images.narrow(0, row, 1).expect("a row")).collect();
    Tensor::cat(&rows, 0).expect("a batch")
}

fn bits(model: &ImageModel, images: &Tensor) -> Vec<Vec<u32>> {
    let rows = model.forward(images, model.arch().outputs()[0]).expect("an output");
    let rows = rows.to_vec2::<f32>().expect("rows");
    assert!(rows.iter().flatten().all(|value| value.is_finite()));
    rows.into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect()
}

fn in_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a pool").install(work)
}

fn check(name: &str) {
    let (_, arch) = every_arch().into_iter().find(|(known, _)| *known == name).expect("a known architecture");
    let model = model(&arch);
    let images = images(size(&*arch));
    let whole = in_threads(2, || bits(&model, &images));
    assert_ne!(whole[0], whole[1], "the images make no difference");

    let one_thread = in_threads(1, || bits(&model, &images));
    assert_eq!(whole, one_thread, "one thread or two");

    let alone = bits(&model, &rows_of(&images, &[2]));
    assert_eq!(whole[2], alone[0], "alone");

    let padding = images.narrow(0, 0, 2).and_then(|rows| rows.zeros_like()).expect("zeros");
    let part = Tensor::cat(&[rows_of(&images, &[0, 3]), padding], 0).expect("a padded batch");
    let part = in_threads(2, || bits(&model, &part));
    assert_eq!(whole[0], part[0], "in a part batch");
    assert_eq!(whole[3], part[1], "in a part batch, at another place");

    let turned = in_threads(2, || bits(&model, &rows_of(&images, &[1, 2, 3, 0])));
    assert_eq!([&whole[1], &whole[2], &whole[3], &whole[0]].map(Vec::clone), turned[..], "at another place");
}

#[test]
fn rows_of_efficientnet_lite0_stand_alone() {
    check("efficientnet_lite0");
}

#[test]
fn rows_of_mobilenet_v2_stand_alone() {
    check("mobilenet_v2");
}

#[test]
fn rows_of_resnet18_stand_alone() {
    check("resnet18");
}

#[test]
fn rows_of_resnet50_stand_alone() {
    check("resnet50");
}

#[test]
fn rows_of_vit_base_patch16_224_stand_alone() {
    check("vit_base_patch16_224");
}

#[test]
fn rows_of_embedders_stand_alone() {
    for (name, _) in embedders::TINY {
        check(name);
    }
}

#[test]
fn the_same_weights_under_other_names_give_equal_bits() {
    for (name, arch) in every_arch() {
        let images = images(size(&*arch)).narrow(0, 0, 1).expect("an image");
        // Canonical names are those of a file for most, and of no file for the embedders.
        let schemes = arch.schemes();
        let load = |scheme| {
            let params = renamed(&*arch, scheme, 1);
            ImageModel::load(arch.clone(), &params, DType::F32, &Device::Cpu).expect("weights that fit")
        };
        let expected = bits(&load(schemes[0]), &images);
        for &scheme in &schemes[1..] {
            assert_eq!(bits(&load(scheme), &images), expected, "{name} named by {}", scheme.name);
        }
    }
}

#[test]
fn weights_in_half_precision_give_nearly_the_same() {
    for (name, arch) in every_arch() {
        let images = images(size(&*arch)).narrow(0, 0, 1).expect("an image");
        let outputs = |dtype| {
            let model =
                ImageModel::load(arch.clone(), &file(&*arch, 1), dtype, &Device::Cpu).expect("weights that fit");
            let images = images.to_dtype(dtype).expect("images");
            model.forward(&images, arch.outputs()[0]).expect("outputs").to_vec2::<f32>().expect("a row").remove(0)
        };
        let exact = outputs(DType::F32);
        let largest = exact.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        for (dtype, tolerance) in [(DType::F16, 0.02), (DType::BF16, 0.15)] {
            for (found, exact) in outputs(dtype).iter().zip(&exact) {
                let difference = (found - exact).abs() / largest;
                assert!(difference < tolerance, "{name} {dtype:?}: {found} is not {exact}");
            }
            assert_ne!(outputs(dtype), exact, "{name} {dtype:?} was not rounded");
        }
    }
}

#[test]
fn images_of_a_size_that_cannot_be_taken_are_refused() {
    for (_, arch) in every_arch() {
        let model = model(&arch);
        let outputs = arch.outputs()[0];
        let error = |shape: &[usize]| {
            let images = Tensor::zeros(shape, DType::F32, &Device::Cpu).expect("images");
            model.forward(&images, outputs).expect_err("a refusal").to_string()
        };
        let name = arch.name();
        let (wanted, least) = match arch.input_size() {
            InputSize::AtLeast(least) => (format!("at least {least}×{least}"), least),
            InputSize::Exactly(height, width) => (format!("{height}×{width}"), height),
        };
        let short = least - 1;
        assert_eq!(error(&[1, 3, short, 64]), format!("`{name}` takes images of {wanted}, found {short}×64"));
        assert_eq!(
            error(&[1, 4, 224, 224]),
            format!("`{name}` takes images as [rows, 3, height, width], found [1, 4, 224, 224]")
        );
        let [height, width] = size(&*arch);
        let none = Tensor::zeros((0, 3, height, width), DType::F32, &Device::Cpu).expect("no images");
        assert_eq!(model.forward(&none, Outputs::Features).expect("no rows").dims(), [0, arch.n_features()]);
    }
}
