//! The CUDA kernels' arithmetic, without a GPU: their source is C, so a C compiler builds it for the CPU, and what it
//! computes there is held against candle's own operations.
//!
//! What this cannot show is how they are launched: that is for `scripts/gpu-check.sh`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use candle_core::{D, Device, Tensor};

/// Blocks along y: fewer than there are planes, so that blocks must take them in turns.
const N_TURNS: usize = 3;
const N_THREADS: usize = 32;

/// The kernels' program, built once.
fn emulator() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("emulate");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda_kernels/emulate.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-o"])
            .args([&program, &source])
            .arg("-lm")
            .output()
            .expect("a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        (folder, program)
    });
    program
}

/// Runs `kernel` over `n_places` of each plane; gives `n_out` numbers.
fn run(kernel: &str, n_places: usize, numbers: &[usize], buffers: &[&[u8]], n_out: usize) -> Vec<f32> {
    let n_blocks = n_places.div_ceil(N_THREADS);
    let launch = [n_blocks, N_TURNS, N_THREADS, n_out];
    let mut child = Command::new(emulator())
        .arg(kernel)
        .args(launch.iter().chain(numbers).map(usize::to_string))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the emulator starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    for buffer in buffers {
        stdin.write_all(&(buffer.len() as u64).to_ne_bytes()).expect("written");
        stdin.write_all(buffer).expect("written");
    }
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{kernel}: {}", done.status);
    done.stdout.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
}

/// Numbers between −8 and 8 without a pattern.
fn noise(shape: &[usize], seed: u32) -> Tensor {
    let mut state = seed;
    let values: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 20) as f32 - 8.0
        })
        .collect();
    Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().and_then(|flat| flat.to_vec1()).expect("values")
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    bytemuck::cast_slice(&values(tensor)).to_vec()
}

fn assert_close(found: &[f32], wanted: &Tensor, what: &str) {
    let wanted = values(wanted);
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let is_close = (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0);
        assert!(is_close, "{what} at {place}: {found} is not {wanted}");
    }
}

/// A window's way over one axis: kernel, stride, zeros before and after.
#[derive(Clone, Copy, Debug)]
struct Window {
    kernel: usize,
    stride: usize,
    before: usize,
    after: usize,
}

impl Window {
    fn n_out(self, n_in: usize) -> usize {
        (n_in + self.before + self.after - self.kernel) / self.stride + 1
    }

    fn pad(self, images: &Tensor) -> Tensor {
        let pad = |images: &Tensor, axis| images.pad_with_zeros(axis, self.before, self.after);
        pad(images, D::Minus2).and_then(|images| pad(&images, D::Minus1)).expect("padded")
    }
}

const WINDOWS: [Window; 6] = [
    Window { kernel: 1, stride: 1, before: 0, after: 0 },
    Window { kernel: 1, stride: 2, before: 0, after: 0 },
    Window { kernel: 3, stride: 1, before: 1, after: 1 },
    Window { kernel: 3, stride: 2, before: 0, after: 1 },
    Window { kernel: 5, stride: 2, before: 1, after: 2 },
    Window { kernel: 7, stride: 2, before: 3, after: 3 },
];

const SIZES: [[usize; 2]; 3] = [[9, 13], [7, 7], [12, 8]];

#[test]
fn bytes_are_looked_up_channel_by_channel() {
    let pixels: Vec<u8> = (0..5 * 7 * 11 * 3).map(|n| (n * 31 % 256) as u8).collect();
    let tables: Vec<f32> = (0..3 * 256).map(|n| n as f32 * 0.5 - 100.0).collect();
    let found = run("planes", 77, &[5, 77], &[&pixels, bytemuck::cast_slice(&tables), &[]], pixels.len());
    let wanted = (0..5).flat_map(|row| {
        let (pixels, tables) = (&pixels, &tables);
        (0..3).flat_map(move |channel| {
            (0..77).map(move |place| tables[256 * channel + usize::from(pixels[(row * 77 + place) * 3 + channel])])
        })
    });
    assert_eq!(found, wanted.collect::<Vec<f32>>());
}

#[test]
fn a_matrix_product_of_the_windows_is_a_convolution() {
    for window in WINDOWS {
        for [height, width] in SIZES {
            let (images, weight) = (noise(&[2, 3, height, width], 1), noise(&[4, 3, window.kernel, window.kernel], 2));
            let [out_height, out_width] = [window.n_out(height), window.n_out(width)];
            let (n_taps, n_places) = (window.kernel * window.kernel, out_height * out_width);
            let Window { kernel, stride, before, .. } = window;
            let numbers = [6 * n_taps, height, width, out_height, out_width, kernel, stride, before, before];
            let columns = run("im2col", n_places, &numbers, &[&bytes(&images), &[], &[]], 6 * n_taps * n_places);
            let columns = Tensor::from_vec(columns, (2, 3 * n_taps, n_places), &Device::Cpu).expect("columns");
            let matrix = weight.reshape((1, 4, 3 * n_taps)).and_then(|matrix| matrix.broadcast_as((2, 4, 3 * n_taps)));
            let found = matrix.and_then(|matrix| matrix.matmul(&columns)).expect("a product");
            let wanted = window.pad(&images).conv2d(&weight, 0, stride, 1, 1).expect("candle");
            assert_close(&values(&found), &wanted, &format!("{window:?} over {height}×{width}"));
        }
    }
}

#[test]
fn depthwise_is_a_convolution_of_each_channel_with_bias_and_relu6() {
    for window in WINDOWS {
        for [height, width] in SIZES {
            let images = noise(&[2, 4, height, width], 1);
            let (weight, bias) = (noise(&[4, 1, window.kernel, window.kernel], 2), noise(&[4], 3));
            let [out_height, out_width] = [window.n_out(height), window.n_out(width)];
            let Window { kernel, stride, before, .. } = window;
            let numbers = [8, 4, height, width, out_height, out_width, kernel, stride, before, before, 2];
            let buffers = [bytes(&images), bytes(&weight), bytes(&bias)];
            let buffers: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
            let n_places = out_height * out_width;
            let found = run("depthwise", n_places, &numbers, &buffers, 8 * n_places);
            let sums = window.pad(&images).conv2d(&weight, 0, stride, 1, 4).expect("candle");
            let wanted = bias.reshape((1, 4, 1, 1)).and_then(|bias| sums.broadcast_add(&bias)?.clamp(0f32, 6f32));
            assert_close(&found, &wanted.expect("candle"), &format!("{window:?} over {height}×{width}"));
        }
    }
}

#[test]
fn the_pool_takes_the_largest_of_each_window_and_the_border_never_wins() {
    for [height, width] in [[9, 13], [8, 8], [1, 1], [2, 3]] {
        // Below zero throughout, so that a border of zeros would show.
        let images = (noise(&[2, 3, height, width], 1) - 9.0).expect("images");
        let [out_height, out_width] = [height.div_ceil(2), width.div_ceil(2)];
        let numbers = [6, height, width, out_height, out_width];
        let n_places = out_height * out_width;
        let found = run("max_pool", n_places, &numbers, &[&bytes(&images), &[], &[]], 6 * n_places);
        let lowest = (images + 100.0).expect("above zero");
        let padded = lowest.pad_with_zeros(D::Minus2, 1, 1).and_then(|padded| padded.pad_with_zeros(D::Minus1, 1, 1));
        let wanted = padded.and_then(|padded| padded.max_pool2d_with_stride(3, 2)? - 100.0).expect("candle");
        assert_close(&found, &wanted, &format!("{height}×{width}"));
    }
}

#[test]
fn a_nan_shows_in_the_output_of_every_kernel() {
    let mut image = vec![1f32; 25];
    image[12] = f32::NAN;
    let image: &[u8] = bytemuck::cast_slice(&image);
    let has_nan = |values: &[f32]| values.iter().any(|value| value.is_nan());
    assert!(has_nan(&run("max_pool", 9, &[1, 5, 5, 3, 3], &[image, &[], &[]], 9)));
    let one: &[u8] = bytemuck::cast_slice(&[1f32]);
    for activation in 0..6 {
        assert!(has_nan(&run("bias_activation", 25, &[1, 25, 1, activation], &[image, one, &[]], 25)));
        assert!(has_nan(&run("join", 25, &[1, 25, activation], &[image, image, &[]], 25)));
        let numbers = [1, 1, 5, 5, 5, 5, 1, 1, 0, 0, activation];
        assert!(has_nan(&run("depthwise", 25, &numbers, &[image, one, one], 25)));
    }
}

#[test]
fn bias_and_activation_are_added_in_place() {
    let sums = noise(&[2, 5, 37], 1);
    let activations: [fn(&Tensor) -> candle_core::Result<Tensor>; 6] = [
        |sums| Ok(sums.clone()),
        Tensor::relu,
        |sums| sums.clamp(0f32, 6f32),
        Tensor::gelu_erf,
        Tensor::gelu,
        |sums| sums * candle_nn::ops::sigmoid(&(sums * 1.702)?)?,
    ];
    for (code, activate) in activations.iter().enumerate() {
        let bias = noise(&[5], 2);
        let found = run("bias_activation", 37, &[10, 37, 5, code], &[&bytes(&sums), &bytes(&bias), &[]], 370);
        let wanted = bias.reshape((1, 5, 1)).and_then(|bias| activate(&sums.broadcast_add(&bias)?)).expect("candle");
        assert_close(&found, &wanted, &format!("along channels, activation {code}"));

        let bias = noise(&[37], 2);
        let found = run("bias_activation", 37, &[10, 37, 0, code], &[&bytes(&sums), &bytes(&bias), &[]], 370);
        let wanted = sums.broadcast_add(&bias).and_then(|sums| activate(&sums)).expect("candle");
        assert_close(&found, &wanted, &format!("along columns, activation {code}"));

        let other = noise(&[2, 5, 37], 3);
        let found = run("join", 37, &[10, 37, code], &[&bytes(&sums), &bytes(&other), &[]], 370);
        let wanted = (&sums + &other).and_then(|sums| activate(&sums)).expect("candle");
        assert_close(&found, &wanted, &format!("joined, activation {code}"));
    }
}
