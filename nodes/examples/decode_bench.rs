//! CPU time of decoding a folder of pictures, in microseconds a picture, on one thread.
//!
//! `cargo run --release -p flowgpu-nodes --example decode_bench FOLDER` prints a line for decoding alone, and one for decoding,
//! resizing the shorter side to 256 and cropping 224, with each interpolation named behind the folder (default `bicubic`).
//! `benches/decode_vs_pillow.py` runs it in turns with Pillow.

use std::io::Write;
use std::path::PathBuf;

use nodes::decode::{Crop, Interpolation, Limits, Preprocess, Resize, Scratch, decode_into};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("a folder of pictures is needed")?);
    let mut interpolations: Vec<Interpolation> =
        arguments.map(|name| serde_json::from_value(name.into())).collect::<Result<_, _>>()?;
    if interpolations.is_empty() {
        interpolations.push(Interpolation::Bicubic);
    }
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>()?;

    let mut stdout = std::io::stdout().lock();
    let whole = Preprocess::default();
    writeln!(stdout, "decode {:.1}", microseconds_each(&files, &whole)?)?;
    for interpolation in interpolations {
        let (resize, crop) = (Some(Resize::Shorter(256)), Some(Crop::square(224)));
        let options = Preprocess { resize, crop, interpolation, ..Preprocess::default() };
        writeln!(stdout, "{interpolation} {:.1}", microseconds_each(&files, &options)?)?;
    }
    Ok(())
}

fn microseconds_each(files: &[Vec<u8>], options: &Preprocess) -> Result<f64, Box<dyn std::error::Error>> {
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    let mut run = |bytes: &[u8]| {
        decode_into(bytes, options, Limits::default(), &mut scratch, |height, width| {
            out.resize(height * width * 3, 0);
            &mut out[..]
        })
    };
    // Memory and caches as they are in the middle of a run.
    for bytes in files.iter().take(20) {
        run(bytes)?;
    }
    let start = cpu_nanoseconds()?;
    for bytes in files {
        run(bytes)?;
    }
    Ok((cpu_nanoseconds()? - start) as f64 / 1e3 / files.len() as f64)
}

/// This thread's time on a CPU, from the kernel's scheduler.
fn cpu_nanoseconds() -> Result<u64, Box<dyn std::error::Error>> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(statistics.split_whitespace().next().ok_or("no scheduler statistics")?.parse()?)
}
