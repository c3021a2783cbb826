//! Networks on whole batches in one call, as devices other than the CPU run them: the CPU itself goes row by row.

mod embedders;

use candle_core::{DType, Device, Tensor};
use embedders::{every_arch, file};
use nodes::models::{InputSize, ParamReader, load};

#[test]
fn a_network_gives_a_row_of_a_batch_what_it_gives_the_row_alone() {
    for (name, arch) in every_arch() {
        let source = file(&*arch, 3);
        let checked = load::check(&*arch, &source).expect("weights that fit");
        let network = arch.build(&ParamReader::new(&*arch, &source, checked, DType::F32, &Device::Cpu)).expect("built");
        let (height, width) = match arch.input_size() {
            InputSize::Exactly(height, width) => (height, width),
            // Odd, so that windows do not come out even.
            InputSize::AtLeast(least) => (least.max(65), least.max(97)),
        };
        let values = (0..2 * 3 * height * width).map(|n| ((n * 7919) % 2003) as f32 / 1001.5 - 1.0);
        let images = Tensor::from_iter(values, &Device::Cpu).and_then(|images| images.reshape((2, 3, height, width)));
        let images = images.expect("images");
        let outputs = |images: &Tensor| {
            let outputs = network.forward(images, arch.outputs()[0]).and_then(|outputs| outputs.to_vec2::<f32>());
            outputs.unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let together = outputs(&images);
        for (row_idx, together) in together.iter().enumerate() {
            let alone = outputs(&images.narrow(0, row_idx, 1).expect("a row"));
            let scale = alone[0].iter().fold(0f32, |scale, value| scale.max(value.abs()));
            for (together, alone) in together.iter().zip(&alone[0]) {
                assert!((together - alone).abs() <= 1e-4 * scale, "{name}, row {row_idx}: {together} is not {alone}");
            }
        }
        assert_ne!(together[0], together[1], "{name}: the images differ");
    }
}
