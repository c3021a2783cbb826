//! A JPEG of 500×375, as a photograph of ImageNet has it, to the pixels that a model gets, and the parts of that:
//! `cargo bench --workspace --features testing --bench decode`.
//!
//! One thread, with its memory from the picture before, as in a run. `photos/make.py` made the files.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nodes::decode::resample::{ResampleBuffers, Span, Target, Window, resample};
use nodes::decode::{Crop, Interpolation, Limits, Preprocess, Resize, Scratch, decode, decode_into};

const FILES: [(&str, &[u8]); 2] = [
    ("4:2:0", include_bytes!("photos/coffee-420.jpg").as_slice()),
    ("4:4:4", include_bytes!("photos/coffee-444.jpg").as_slice()),
];
const INTERPOLATIONS: [Interpolation; 3] = [Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Lanczos];
/// The whole photograph with its shorter side at 256.
const RESIZED: [u32; 2] = [341, 256];

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode 500x375");
    for (name, file) in FILES {
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(name, |bencher| {
            let mut decoder = Decoder::new(Preprocess::default());
            bencher.iter(|| decoder.decode(file));
        });
    }
    group.finish();
}

fn preprocessing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode 500x375, resize 256, crop 224");
    for interpolation in INTERPOLATIONS {
        group.bench_function(interpolation.name(), |bencher| {
            let (resize, crop) = (Some(Resize::Shorter(256)), Some(Crop::square(224)));
            let mut decoder = Decoder::new(Preprocess { resize, crop, interpolation, ..Preprocess::default() });
            bencher.iter(|| decoder.decode(FILES[0].1));
        });
    }
    group.finish();
}

fn resizing(criterion: &mut Criterion) {
    let photo = decode(FILES[0].1, Limits::default()).expect("a JPEG");
    let size = [photo.width, photo.height];
    let window = Window { from: size.map(Span::whole), resized: RESIZED.map(u64::from), origin: [0, 0], size: RESIZED };
    let stride = RESIZED[0] as usize * 3;
    let mut group = criterion.benchmark_group("resize 500x375 to 341x256");
    for interpolation in INTERPOLATIONS {
        group.bench_function(interpolation.name(), |bencher| {
            let mut buffers = ResampleBuffers::default();
            let mut out = vec![0; stride * RESIZED[1] as usize];
            bencher.iter(|| {
                let target = Target { bytes: &mut out, stride };
                resample(&photo.pixels, size, window, interpolation, &mut buffers, target);
            });
        });
    }
    group.finish();
}

/// Options, and memory that is kept from picture to picture.
struct Decoder {
    options: Preprocess,
    scratch: Scratch,
    out: Vec<u8>,
}

impl Decoder {
    fn new(options: Preprocess) -> Self {
        Decoder { options, scratch: Scratch::default(), out: Vec::new() }
    }

    fn decode(&mut self, file: &[u8]) {
        let Decoder { options, scratch, out } = self;
        decode_into(file, options, Limits::default(), scratch, |height, width| {
            out.resize(height * width * 3, 0);
            &mut out[..]
        })
        .expect("a JPEG");
    }
}

criterion_group!(benches, decoding, preprocessing, resizing);
criterion_main!(benches);
