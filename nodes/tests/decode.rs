//! Decoding and resizing against Pillow 13.0.0. `images/make.py` made the files and what Pillow says of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nodes::decode::resample::{ResampleBuffers, Span, Target, Window, resample};
use nodes::decode::{Crop, DecodeError, Interpolation, Limits, Preprocess, Resize, Scratch, decode, decode_into};
use serde::Deserialize;

#[derive(Deserialize)]
struct Told {
    files: BTreeMap<String, Verdict>,
    resized: Vec<Resized>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Verdict {
    Refused { refused: String },
    Opened { format: String, size: [u32; 2], orientation: u8, cuts: Vec<(usize, Cut)> },
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
enum Cut {
    Same,
    Other,
    Refused,
}

#[derive(Deserialize)]
struct Resized {
    source: String,
    size: [u32; 2],
    filter: Interpolation,
    file: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

fn told() -> Told {
    serde_json::from_slice(&std::fs::read(folder().join("pillow.json")).unwrap()).unwrap()
}

fn given(name: &str) -> Vec<u8> {
    std::fs::read(folder().join("given").join(name)).unwrap()
}

/// Reads an 8-bit RGB PNG without the code under test.
fn reference(path: &str) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(folder().join(path)).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    assert_eq!(reader.info().color_type, png::ColorType::Rgb, "{path}");
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    (reader.info().width, reader.info().height, pixels)
}

/// Files that Pillow opens and this decoder refuses, and why; the reverse happens in no file here.
fn refused_here(name: &str) -> Option<&'static str> {
    match name {
        // libjpeg makes up the missing part in grey.
        "jpeg-cut-with-end-marker.jpg" => Some("truncated"),
        // libjpeg puts coefficients that stand beyond a block into its last place, and says nothing.
        "jpeg-damaged-scan.jpg" => Some("corrupt"),
        _ => None,
    }
}

fn differences(a: &[u8], b: &[u8]) -> (u8, f64) {
    assert_eq!(a.len(), b.len());
    let most = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    (most, sum as f64 / a.len().max(1) as f64)
}

#[test]
fn every_kind_of_file_gives_the_pixels_that_pillow_gives() {
    let mut wrong = Vec::new();
    for (name, verdict) in told().files {
        let Verdict::Opened { format, size, orientation, .. } = verdict else {
            continue;
        };
        let got = decode(&given(&name), Limits::default());
        if let Some(code) = refused_here(&name) {
            assert_eq!(got.unwrap_err().code(), code, "{name}");
            continue;
        }
        let got = match got {
            Ok(got) => got,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let (width, height, expected) = reference(&format!("pillow/{name}.png"));
        assert_eq!([width, height], size, "{name}");
        let head = (got.format.name(), got.width, got.height, got.orientation as u8);
        if head != (&*format, width, height, orientation) {
            wrong.push(format!("{name}: {head:?}, and Pillow says {format} {size:?} {orientation}"));
            continue;
        }
        let (most, mean) = differences(&got.pixels, &expected);
        if most > 0 {
            wrong.push(format!("{name}: off by up to {most}, {mean:.3} on average"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_pillow_refuses_is_refused_with_its_code() {
    let mut codes = BTreeMap::new();
    for (name, verdict) in told().files {
        let Verdict::Refused { refused } = verdict else {
            continue;
        };
        match decode(&given(&name), Limits::default()) {
            Ok(_) => panic!("{name} was decoded, and Pillow says {refused}"),
            Err(error) => codes.insert(name, error.code()),
        };
    }
    let expected = BTreeMap::from([
        ("bmp-huge.bmp", "too_large"),
        ("bmp-jpeg-inside.bmp", "unsupported"),
        ("empty.jpg", "empty"),
        ("gif-no-frame.gif", "truncated"),
        ("gif-too-few-pixels.gif", "truncated"),
        ("jpeg-12-bit.jpg", "unsupported"),
        ("jpeg-hierarchical.jpg", "unsupported"),
        ("jpeg-huge-header.jpg", "too_large"),
        ("jpeg-lossless.jpg", "unsupported"),
        ("jpeg-no-height.jpg", "corrupt"),
        ("jpeg-no-tables.jpg", "corrupt"),
        ("noise.jpg", "unsupported"),
        ("page.jpg", "unsupported"),
        ("png-adler-wrong.png", "corrupt"),
        ("png-bomb.png", "too_large"),
        ("png-header-crc-wrong.png", "corrupt"),
        ("png-noise-idat.png", "corrupt"),
        ("png-zero-width.png", "corrupt"),
        ("text.jpg", "unsupported"),
        ("webp-lossless-damaged.webp", "corrupt"),
    ]);
    let expected = expected.into_iter().map(|(name, code)| (name.to_owned(), code)).collect();
    assert_eq!(codes, expected);
}

#[test]
fn a_file_cut_anywhere_is_refused_where_pillow_refuses_it() {
    let mut wrong = Vec::new();
    for (name, verdict) in told().files {
        let Verdict::Opened { format, cuts, .. } = verdict else {
            continue;
        };
        let bytes = given(&name);
        let Ok(whole) = decode(&bytes, Limits::default()) else {
            continue;
        };
        for (place, cut) in cuts {
            let got = decode(&bytes[..place], Limits::default());
            let fine = match (&got, cut) {
                (Err(error), Cut::Refused) => place < 2 || matches!(error, DecodeError::Truncated { .. }),
                (Ok(got), Cut::Same) => *got == whole,
                // By the last bits of the scan, libjpeg sometimes does without the two bytes of the end marker.
                (Err(DecodeError::Truncated { .. }), Cut::Same) => format == "jpeg",
                _ => false,
            };
            if !fine {
                let got = got.map(|_| "decoded").map_err(|error| format!("{}: {error}", error.code()));
                wrong.push(format!("{name} cut at {place} of {}: {got:?}, and Pillow: {cut:?}", bytes.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_cut_and_every_flipped_byte_ends_in_pixels_or_an_error() {
    // No expectation but an end without a panic of this code or the decoders': the files are small enough to try them all.
    let small = |name: &str| given(name).len() < 700 || name.starts_with("jpeg-2x3") || name.starts_with("jpeg-1x37.");
    for (name, _) in told().files.iter().filter(|(name, _)| small(name)) {
        let bytes = given(name);
        let limits = Limits { max_pixels: 1 << 20 };
        for place in 0..bytes.len() {
            let _ = decode(&bytes[..place], limits);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] ^= flip;
                if let Ok(picture) = decode(&bytes, limits) {
                    assert_eq!(picture.pixels.len(), picture.width as usize * picture.height as usize * 3);
                }
            }
        }
    }
}

#[test]
fn resizing_gives_pillows_bytes() {
    let mut buffers = ResampleBuffers::default();
    for Resized { source, size, filter, file } in told().resized {
        let (width, height, pixels) = reference(&format!("resized/{source}.png"));
        let (_, _, expected) = reference(&format!("resized/{file}"));
        let mut got = vec![0; expected.len()];
        let from = [width, height].map(Span::whole);
        let window = Window { from, resized: size.map(u64::from), origin: [0, 0], size };
        let target = Target { bytes: &mut got, stride: size[0] as usize * 3 };
        resample(&pixels, [width, height], window, filter, &mut buffers, target);
        assert!(got == expected, "{file}: off by {:?}", differences(&got, &expected));
    }
}

#[test]
fn a_crop_has_the_bytes_of_a_crop_from_the_whole() {
    let bytes = given("bmp-24.bmp");
    let mut scratch = Scratch::default();
    for interpolation in
        [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Lanczos]
    {
        for resize in
            [None, Some(Resize::Shorter(24)), Some(Resize::Shorter(90)), Some(Resize::Exact { width: 43, height: 20 })]
        {
            let whole = Preprocess { resize, interpolation, ..Preprocess::default() };
            let mut all = Vec::new();
            let (all_height, all_width) = run(&bytes, &whole, &mut scratch, &mut all);
            for crop in [Crop::square(16), Crop { width: 11, height: 18 }] {
                let mut part = Vec::new();
                let size = run(&bytes, &Preprocess { crop: Some(crop), ..whole }, &mut scratch, &mut part);
                assert_eq!(size, (crop.height as usize, crop.width as usize));
                // Python's round of a half goes to the even neighbour.
                let half = |span: usize| span / 2 + (span % 4 == 3) as usize;
                let (top, left) = (half(all_height - size.0), half(all_width - size.1));
                for y in 0..size.0 {
                    let expected = &all[((top + y) * all_width + left) * 3..][..size.1 * 3];
                    assert_eq!(
                        &part[y * size.1 * 3..][..size.1 * 3],
                        expected,
                        "{resize:?} {crop:?} {interpolation} row {y}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_picture_smaller_than_its_crop_lies_on_black() {
    let (width, height, pixels) = reference("pillow/bmp-24.bmp.png");
    let (width, height) = (width as usize, height as usize);
    let options = Preprocess { crop: Some(Crop { width: 50, height: 38 }), ..Preprocess::default() };
    // Memory that was used before: what lies around must be cleared.
    let mut out = vec![99; 50 * 38 * 3];
    run(&given("bmp-24.bmp"), &options, &mut Scratch::default(), &mut out);
    for y in 0..38 {
        for x in 0..50 {
            let got = &out[(y * 50 + x) * 3..][..3];
            let inside = (x.wrapping_sub((50 - width) / 2), y.wrapping_sub((38 - height) / 2));
            if inside.0 < width && inside.1 < height {
                assert_eq!(got, &pixels[(inside.1 * width + inside.0) * 3..][..3]);
            } else {
                assert_eq!(got, [0, 0, 0]);
            }
        }
    }
}

#[test]
fn the_upright_picture_is_the_one_that_is_resized() {
    let options = Preprocess { resize: Some(Resize::Shorter(9)), ..Preprocess::default() };
    let mut scratch = Scratch::default();
    let mut first = Vec::new();
    assert_eq!(run(&given("exif-1.jpg"), &options, &mut scratch, &mut first), (13, 9));
    let mut turned = Vec::new();
    assert_eq!(run(&given("exif-6.jpg"), &options, &mut scratch, &mut turned), (9, 13));
}

#[test]
fn a_result_beyond_the_limit_is_refused_before_its_memory_is_asked_for() {
    let options = Preprocess { resize: Some(Resize::Shorter(1000)), ..Preprocess::default() };
    let limits = Limits { max_pixels: 500_000 };
    let result = decode_into(&given("bmp-24.bmp"), &options, limits, &mut Scratch::default(), |_, _| unreachable!());
    assert_eq!(result.unwrap_err().code(), "too_large");
}

fn run(bytes: &[u8], options: &Preprocess, scratch: &mut Scratch, out: &mut Vec<u8>) -> (usize, usize) {
    let mut size = (0, 0);
    decode_into(bytes, options, Limits::default(), scratch, |height, width| {
        size = (height, width);
        out.resize(height * width * 3, 99);
        &mut out[..]
    })
    .unwrap();
    size
}
