//! What the layers and the models take on the CPU, image by image.
//!
//! ```text
//! cargo bench --workspace --features testing --bench layers -- \
//!     [--threads N] [--batch N] [--rounds N | --turns] [PART OF A NAME …]
//! ```
//!
//! Models compute batches, layers single images. One line a case: the name, milliseconds an image and processor milliseconds an image, medians of the rounds. Weights are
//! random. Cases take turns, so that what else runs on the machine disturbs all alike.
//!
//! With `--turns` each line that comes in is answered by a round, in seconds, and an empty line: `benches/compare_commits.py` and
//! `benches/models.py` measure several programs in turns by it.

use std::time::Instant;

use candle_core::{DType, Device, Result, Tensor};
use nodes::models::{
    ImageModel, Outputs, RandomWeights, arch,
    layers::{Activation, Channels, Conv, ConvSpec, Linear, Padding, max_pool_3x3_stride_2},
};

/// A round lasts at least so long.
const LEAST_SECONDS: f64 = 0.15;

struct Case {
    name: String,
    /// Images of one call.
    n_images: usize,
    call: Box<dyn Fn() -> Result<Tensor> + Send + Sync>,
    rounds: Vec<[f64; 2]>,
}

impl Case {
    fn new(name: &str, n_images: usize, call: impl Fn() -> Result<Tensor> + Send + Sync + 'static) -> Self {
        Self { name: name.to_owned(), n_images, call: Box::new(call), rounds: Vec::new() }
    }

    /// Seconds and processor seconds an image.
    fn round(&mut self, pool: &rayon::ThreadPool) {
        let (start, spent) = (Instant::now(), processor_seconds(pool));
        let mut n_images = 0;
        while n_images == 0 || start.elapsed().as_secs_f64() < LEAST_SECONDS {
            pool.install(|| (self.call)().expect("an output"));
            n_images += self.n_images;
        }
        let (took, spent) = (start.elapsed().as_secs_f64(), processor_seconds(pool) - spent);
        self.rounds.push([took, spent].map(|seconds| seconds / n_images as f64));
    }

    fn median(&self, which: usize) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(|round| round[which]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

/// What the threads of a pool have computed for so far, as the kernel counts it.
fn processor_seconds(pool: &rayon::ThreadPool) -> f64 {
    let of_threads = pool.broadcast(|_| {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN)
    });
    of_threads.iter().sum::<f64>() * 1e-9
}

/// Numbers between −scale and scale without a pattern.
fn noise(shape: &[usize], scale: f32) -> Tensor {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
    };
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|_| next()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor")
}

fn layer([n_read, n_out]: [usize; 2], kernel: usize, stride: usize, channels: Channels) -> Conv {
    let weight = noise(&[n_out, n_read, kernel, kernel], 0.1);
    let spec = ConvSpec { stride, padding: Padding::Centred, channels, activation: Activation::Relu };
    Conv::new(weight, noise(&[n_out], 0.1), spec).expect("a layer")
}

/// What a convolution gives, so that it lies in memory as it does in a model.
fn from_conv(n_channels: usize, side: usize) -> Tensor {
    let images = noise(&[1, n_channels, side, side], 1.0);
    layer([n_channels, n_channels], 1, 1, Channels::Mixed).forward(&images).expect("images")
}

fn conv(name: &str, [n_in, n_out]: [usize; 2], kernel: usize, stride: usize, side: usize, channels: Channels) -> Case {
    let n_read = if channels == Channels::Separate { 1 } else { n_in };
    let images = if n_in > 3 { from_conv(n_in, side) } else { noise(&[1, n_in, side, side], 1.0) };
    let layer = layer([n_read, n_out], kernel, stride, channels);
    Case::new(name, 1, move || layer.forward(&images))
}

fn linear(name: &str, n_rows: usize, [n_in, n_out]: [usize; 2], activation: Activation) -> Case {
    let layer = Linear::new(noise(&[n_out, n_in], 0.1), noise(&[n_out], 0.1), activation).expect("a layer");
    let values = noise(&[1, n_rows, n_in], 1.0);
    Case::new(name, 1, move || layer.forward(&values))
}

fn model(name: &str, n_images: usize) -> Case {
    let arch = arch(name).expect("a known architecture");
    let model = ImageModel::load(arch, &RandomWeights::new(arch, 1000, 0), DType::F32, &Device::Cpu);
    let model = model.expect("weights that fit");
    let images = noise(&[n_images, 3, 224, 224], 1.0);
    Case::new(&format!("model {name}"), n_images, move || Ok(model.forward(&images, Outputs::Logits).expect("logits")))
}

type Make = Box<dyn Fn() -> Case>;

/// Names, and how to make the cases: only those that are wanted are made.
fn cases(n_images: usize) -> Vec<(&'static str, Make)> {
    use Channels::{Mixed, Separate};
    let mut cases: Vec<(&'static str, Make)> = Vec::new();
    let convs = [
        ("conv 7x7 stride 2, 3 to 64, 224", [3, 64], 7, 2, 224, Mixed),
        ("conv 3x3 stride 2, 3 to 32, 224", [3, 32], 3, 2, 224, Mixed),
        ("conv 3x3, 64 to 64, 56", [64, 64], 3, 1, 56, Mixed),
        ("conv 3x3 stride 2, 128 to 128, 56", [128, 128], 3, 2, 56, Mixed),
        ("conv 3x3, 256 to 256, 14", [256, 256], 3, 1, 14, Mixed),
        ("conv 3x3, 512 to 512, 7", [512, 512], 3, 1, 7, Mixed),
        ("conv 1x1, 64 to 256, 56", [64, 256], 1, 1, 56, Mixed),
        ("conv 1x1, 256 to 64, 56", [256, 64], 1, 1, 56, Mixed),
        ("conv 1x1, 1024 to 256, 14", [1024, 256], 1, 1, 14, Mixed),
        ("conv 1x1, 512 to 2048, 7", [512, 2048], 1, 1, 7, Mixed),
        ("conv 1x1 stride 2, 256 to 512, 56", [256, 512], 1, 2, 56, Mixed),
        ("conv 1x1, 16 to 96, 112", [16, 96], 1, 1, 112, Mixed),
        ("conv 1x1, 144 to 24, 56", [144, 24], 1, 1, 56, Mixed),
        ("depthwise 3x3, 144, 56", [144, 144], 3, 1, 56, Separate),
        ("depthwise 3x3 stride 2, 96, 112", [96, 96], 3, 2, 112, Separate),
        ("depthwise 3x3, 576, 14", [576, 576], 3, 1, 14, Separate),
        ("depthwise 5x5, 672, 14", [672, 672], 5, 1, 14, Separate),
    ];
    for (name, widths, kernel, stride, side, channels) in convs {
        cases.push((name, Box::new(move || conv(name, widths, kernel, stride, side, channels))));
    }
    for (name, n_rows, widths, activation) in [
        ("linear 197 rows, 768 to 2304", 197, [768, 2304], Activation::Identity),
        ("linear 197 rows, 768 to 3072, gelu", 197, [768, 3072], Activation::Gelu),
        ("linear 197 rows, 3072 to 768", 197, [3072, 768], Activation::Identity),
        ("linear 1 row, 2048 to 1000", 1, [2048, 1000], Activation::Identity),
    ] {
        cases.push((name, Box::new(move || linear(name, n_rows, widths, activation))));
    }
    let pool = "max pool 3x3 stride 2, 64, 112";
    cases.push((
        pool,
        Box::new(move || {
            let images = from_conv(64, 112);
            Case::new(pool, 1, move || max_pool_3x3_stride_2(&images))
        }),
    ));
    for (name, arch) in [
        ("model mobilenet_v2", "mobilenet_v2"),
        ("model efficientnet_lite0", "efficientnet_lite0"),
        ("model resnet18", "resnet18"),
        ("model resnet50", "resnet50"),
        ("model vit_base_patch16_224", "vit_base_patch16_224"),
    ] {
        cases.push((name, Box::new(move || model(arch, n_images))));
    }
    cases
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    let (mut n_threads, mut n_images, mut n_rounds, mut in_turns, mut wanted) = (1, 1, 9, false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number behind the option");
        match argument.as_str() {
            "--threads" => n_threads = number(),
            "--batch" => n_images = number(),
            "--rounds" => n_rounds = number(),
            "--turns" => in_turns = true,
            // Cargo says it to every bench.
            "--bench" => {}
            _ => wanted.push(argument),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a pool");
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let mut cases: Vec<Case> =
        cases(n_images).iter().filter(|(name, _)| is_wanted(name)).map(|(_, make)| make()).collect();
    for case in &cases {
        pool.install(|| (case.call)().expect("an output"));
    }
    if in_turns {
        for _ in std::io::stdin().lines() {
            for case in &mut cases {
                case.round(&pool);
                let [seconds, of_processors] = case.rounds[case.rounds.len() - 1];
                println!("{}\t{seconds}\t{of_processors}", case.name);
            }
            println!();
        }
        return;
    }
    for _ in 0..n_rounds {
        cases.iter_mut().for_each(|case| case.round(&pool));
    }
    for case in &cases {
        println!("{:<40} {:>9.4} ms  {:>9.4} ms of a processor", case.name, case.median(0) * 1e3, case.median(1) * 1e3);
    }
}
