//! JPEG against Pillow 13.0.0, to the bit. `jpeg/make.py` made the files and what Pillow says of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nodes::decode::geometry::Geometry;
use nodes::decode::{
    Crop, DecodeError, Decoded, Interpolation, Limits, Preprocess, Reading, Resize, Scale, Scaling, Scratch, decode,
    decode_into,
};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Told {
    size: [u32; 2],
    crc32: u32,
    /// By denominator.
    scaled: BTreeMap<u32, u32>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/jpeg")
}

fn told() -> BTreeMap<String, Told> {
    serde_json::from_slice(&std::fs::read(folder().join("pillow.json")).unwrap()).unwrap()
}

fn given(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.jpg"))).unwrap()
}

fn decoded(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    decode(bytes, Limits::default())
}

/// The code of a refusal.
fn refused(bytes: &[u8]) -> &'static str {
    match decoded(bytes) {
        Ok(_) => "decoded",
        Err(error) => error.code(),
    }
}

/// Where the segments of a marker begin.
fn places(bytes: &[u8], marker: u8) -> Vec<usize> {
    (0..bytes.len() - 1).filter(|&at| bytes[at..at + 2] == [0xff, marker]).collect()
}

#[test]
fn every_picture_has_pillows_bytes() {
    let mut wrong = Vec::new();
    let told = told();
    assert!(told.len() > 100);
    for (name, told) in &told {
        match decoded(&given(name)) {
            Ok(got) if [got.width, got.height] != told.size => wrong.push(format!("{name}: wrong size")),
            Ok(got) if crc32fast::hash(&got.pixels) != told.crc32 => wrong.push(format!("{name}: other bytes")),
            Ok(_) => {}
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_picture_has_pillows_bytes_at_a_fraction_of_its_size() {
    let mut wrong = Vec::new();
    for (name, told) in told() {
        for (denominator, scale) in [(2, Scale::Half), (4, Scale::Quarter), (8, Scale::Eighth)] {
            let got = decode(&given(&name), Reading { scaling: Scaling::Fixed(scale), ..Reading::default() }).unwrap();
            assert_eq!([got.width, got.height], told.size.map(|side| side.div_ceil(denominator)), "{name}");
            if crc32fast::hash(&got.pixels) != told.scaled[&denominator] {
                wrong.push(format!("{name} at 1/{denominator}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
struct Draft {
    orientation: u8,
    size: [u32; 2],
    interpolation: Interpolation,
    denominator: u32,
    crc32: u32,
}

/// The bytes of a JPEG with a block of EXIF that says how it is turned.
fn turned(plain: &[u8], orientation: u8) -> Vec<u8> {
    let mut tag = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    tag.extend([orientation, 0, 0, 0, 0, 0, 0]);
    [&plain[..2], b"\xff\xe1", &(tag.len() as u16 + 2).to_be_bytes(), &tag, &plain[2..]].concat()
}

#[test]
fn what_is_made_much_smaller_has_the_bytes_of_pillows_draft_and_resize() {
    let cases: Vec<Draft> = serde_json::from_slice(&std::fs::read(folder().join("draft.json")).unwrap()).unwrap();
    assert!(cases.len() > 100);
    let plain = given("draft-301x237");
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for Draft { orientation, size: [width, height], interpolation, denominator, crc32 } in cases {
        let options =
            Preprocess { resize: Some(Resize::Exact { width, height }), interpolation, ..Preprocess::default() };
        let reading = Reading { scaling: Scaling::Toward(options), ..Reading::default() };
        let mut pixels = vec![0; width as usize * height as usize * 3];
        let original =
            decode_into(&turned(&plain, orientation), &options, reading, &mut scratch, |_, _| &mut pixels).unwrap();
        let whole = if orientation < 5 { [301, 237] } else { [237, 301] };
        assert_eq!([original.width, original.height], whole);
        if crc32fast::hash(&pixels) != crc32 {
            wrong.push(format!("{orientation}: {options} at 1/{denominator}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pixels of a picture, and how many of them lie in a row.
fn made(bytes: &[u8], options: &Preprocess, reading: Reading, scratch: &mut Scratch) -> (Vec<u8>, usize) {
    let (mut pixels, mut columns) = (Vec::new(), 0);
    decode_into(bytes, options, reading, scratch, |height, width| {
        pixels.resize(height * width * 3, 0);
        columns = width;
        &mut pixels[..]
    })
    .unwrap();
    (pixels, columns)
}

/// Of a picture of which a crop keeps little, little is decoded. What stood in that memory before is another picture.
#[test]
fn a_crop_has_the_bytes_of_a_crop_from_the_whole() {
    let noise = decoded(&given("noise-q100")).unwrap();
    assert!(noise.pixels.contains(&255));
    let files: Vec<_> = told().into_keys().filter(|name| !name.starts_with("draft")).collect();
    let mut n_parts = 0;
    for (n, name) in files.iter().enumerate() {
        let mut orientations = [1, n as u8 % 8 + 1].to_vec();
        orientations.dedup();
        for (orientation, scale) in orientations.into_iter().flat_map(|orientation| {
            [Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth].map(|scale| (orientation, scale))
        }) {
            let bytes = turned(&given(name), orientation);
            let reading = Reading { scaling: Scaling::Fixed(scale), ..Reading::default() };
            for (resize, interpolation) in [
                (None, Interpolation::Nearest),
                (Some(Resize::Exact { width: 29, height: 31 }), Interpolation::Nearest),
                (Some(Resize::Exact { width: 41, height: 17 }), Interpolation::Bilinear),
                (Some(Resize::Exact { width: 13, height: 35 }), Interpolation::Lanczos),
            ] {
                let whole = Preprocess { resize, interpolation, ..Preprocess::default() };
                let (all, columns) = made(&bytes, &whole, reading, &mut Scratch::default());
                let rows = all.len() / 3 / columns;
                for [width, height] in [[1, 1], [7, 3], [2, 12], [11, 9]] {
                    let crop = Crop { width: width.min(columns as u32), height: height.min(rows as u32) };
                    let mut scratch = Scratch::default();
                    for other in ["noise-q100", "noise-q100-progressive", "cmyk"] {
                        made(&given(other), &Preprocess::default(), Reading::default(), &mut scratch);
                    }
                    let (part, _) = made(&bytes, &Preprocess { crop: Some(crop), ..whole }, reading, &mut scratch);
                    let window = Geometry::of(
                        columns as u32,
                        rows as u32,
                        &Preprocess { crop: Some(crop), ..Preprocess::default() },
                    );
                    let [left, top] = window.origin.map(|place| place as usize);
                    let expected: Vec<u8> = (top..top + crop.height as usize)
                        .flat_map(|y| &all[(y * columns + left) * 3..][..crop.width as usize * 3])
                        .copied()
                        .collect();
                    assert!(part == expected, "{name}, orientation {orientation}, {scale:?}, {whole}, crop {crop}");
                    n_parts += 1;
                }
            }
        }
    }
    assert!(n_parts > 10_000);
}

#[test]
fn what_was_decoded_before_does_not_show() {
    let told: Vec<_> = told().into_iter().collect();
    let mut scratch = Scratch::default();
    let mut pixels = Vec::new();
    for (name, told) in told.iter().chain(told.iter().rev()) {
        decode_into(&given(name), &Preprocess::default(), Limits::default(), &mut scratch, |height, width| {
            pixels.resize(height * width * 3, 0);
            &mut pixels[..]
        })
        .unwrap();
        assert_eq!(crc32fast::hash(&pixels), told.crc32, "{name}");
    }
}

#[test]
fn no_beginning_of_a_file_is_a_picture() {
    for (name, _) in told() {
        let bytes = given(&name);
        for end in (3..bytes.len()).step_by(5).chain([bytes.len() - 1, bytes.len() - 2]) {
            match decoded(&bytes[..end]) {
                Err(DecodeError::Truncated { .. }) => {}
                // A table that is cut to nothing was never there, and a frame may be nonsense without its end.
                other => panic!("{name} cut at {end} of {}: {other:?}", bytes.len()),
            }
        }
    }
}

#[test]
fn a_picture_is_not_harmed_by_what_stands_behind_it_or_between_its_segments() {
    for name in ["420-35x33", "420-progressive", "420-arithmetic", "grey-sequential"] {
        let bytes = given(name);
        let whole = decoded(&bytes).unwrap();
        let with = |at: usize, more: &[u8]| [&bytes[..at], more, &bytes[at..]].concat();
        for more in [&b"trailing"[..], b"\xff", b"\0\xff\xd8\xff\xe0\0", &bytes] {
            assert_eq!(decoded(&with(bytes.len(), more)).unwrap(), whole, "{name}");
        }
        // Fill bytes, junk, comments, and metadata that break off; before the tables and before the end.
        for at in [places(&bytes, 0xdb)[0], bytes.len() - 2] {
            for more in [&b"\xff\xff"[..], b"junk", b"\xff\xfe\0\x04ok", b"\xff\xe1\0\x08Exif\0\0", b"\xff\xe0\0\x02"] {
                assert_eq!(decoded(&with(at, more)).unwrap(), whole, "{name} with {more:?} at {at}");
            }
        }
    }
}

#[test]
fn a_scan_that_ends_early_is_truncated_even_before_an_end_marker() {
    for name in ["420-35x33", "420-progressive", "restart-sequential", "scans-two", "cmyk"] {
        let bytes = given(name);
        for part in [3, 7, 9] {
            let begin = *places(&bytes, 0xda).last().unwrap();
            let cut = [&bytes[..begin + (bytes.len() - begin) * part / 10], b"\0\xff\xd9"].concat();
            assert_eq!(refused(&cut), "truncated", "{name} {part}");
        }
    }
}

#[test]
fn a_progressive_picture_without_one_of_its_scans_is_truncated() {
    for name in ["420-progressive", "grey-progressive", "scans-many", "scans-three", "arithmetic-progressive"] {
        let bytes = given(name);
        let scans = places(&bytes, 0xda);
        let last = *scans.last().unwrap();
        assert!(scans.len() > 2);
        assert_eq!(refused(&[&bytes[..last], b"\xff\xd9"].concat()), "truncated", "{name}");
    }
}

#[test]
fn wrong_restart_markers_are_damage() {
    for name in ["restart-sequential", "restart-progressive", "restart-arithmetic"] {
        let bytes = given(name);
        let (first, second) = (places(&bytes, 0xd0)[0], places(&bytes, 0xd1)[0]);
        let mut swapped = bytes.clone();
        (swapped[first + 1], swapped[second + 1]) = (0xd1, 0xd0);
        assert_eq!(refused(&swapped), "corrupt", "{name}");
        let without = [&bytes[..second], &bytes[second + 2..]].concat();
        assert!(matches!(refused(&without), "corrupt" | "truncated"), "{name}");
    }
}

#[test]
fn nonsense_is_refused_with_its_code() {
    let base = given("420-35x33");
    let progressive = given("420-progressive");
    let put = |bytes: &[u8], marker: u8, offset: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        let at = places(&bytes, marker)[0];
        bytes[at + offset] = value;
        bytes
    };
    let check = |bytes: Vec<u8>, code: &str, words: &str| {
        let error = decoded(&bytes).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    check(put(&base, 0xc0, 1, 0xc3), "unsupported", "lossless");
    check(put(&base, 0xc0, 1, 0xc5), "unsupported", "hierarchical");
    check(put(&base, 0xc0, 1, 0xcb), "unsupported", "lossless");
    check(put(&base, 0xc0, 4, 12), "unsupported", "12 bits");
    check(put(&base, 0xc0, 14, 0x31), "unsupported", "fraction");
    check(put(&base, 0xc0, 11, 0x02), "corrupt", "sampling factor");
    check(put(&base, 0xc0, 11, 0x44), "corrupt", "more than 10 blocks");
    check(put(&base, 0xc0, 12, 3), "corrupt", "quantisation table 3 is missing");
    check(put(&base, 0xc0, 6, 0), "corrupt", "35×0");
    check(put(&base, 0xc0, 3, 16), "corrupt", "frame header");
    check(put(&base, 0xda, 4, 0), "corrupt", "0 components");
    check(put(&base, 0xda, 5, 9), "corrupt", "no component 9");
    check(put(&base, 0xda, 6, 0x20), "corrupt", "Huffman table 2 is missing");
    check(put(&base, 0xdb, 4, 4), "corrupt", "no quantisation table 4");
    check(put(&base, 0xc4, 5, 3), "corrupt", "Huffman table");
    check(put(&progressive, 0xda, 12, 64), "corrupt", "progressive");
    let scans = places(&base, 0xda)[0];
    check([&base[..scans], b"\xff\xd9"].concat(), "corrupt", "first scan");
    check([&base[..base.len() - 2], &base[scans..]].concat(), "corrupt", "a scan follows");
}

/// A hostile file of a few hundred kilobytes would otherwise be gone through thousands of times.
#[test]
fn scans_without_end_are_refused() {
    let bytes = given("grey-progressive");
    let scans = places(&bytes, 0xda);
    // The one that brings the last bit of the first coefficients brings it again and again.
    let which = scans.iter().position(|&at| bytes[at + 7..at + 10] == [0, 0, 0x10]).unwrap();
    let again = &bytes[scans[which]..scans.get(which + 1).copied().unwrap_or(bytes.len() - 2)];
    let with = |n: usize| [&bytes[..bytes.len() - 2], &again.repeat(n), b"\xff\xd9"].concat();
    assert!(decoded(&with(20)).is_ok());
    let error = decoded(&with(200)).unwrap_err();
    assert_eq!(error.code(), "corrupt");
    assert!(error.to_string().contains("more than 100 times"), "{error}");
}

/// The most memory that the process has had, in bytes.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_header_that_lies_about_the_size_takes_no_memory() {
    for name in ["420-35x33", "420-progressive", "cmyk-progressive", "scans-three"] {
        let mut bytes = given(name);
        let frame = [0xc0, 0xc1, 0xc2].iter().find_map(|&marker| places(&bytes, marker).first().copied()).unwrap();
        // 13,000 by 13,000: within the limit of pixels; a gigabyte of coefficients.
        bytes[frame + 5..frame + 9].copy_from_slice(&[0x32, 0xc8, 0x32, 0xc8]);
        assert_eq!(refused(&bytes), "truncated", "{name}");
    }
    assert!(peak_bytes() < 200 << 20, "{} bytes", peak_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn damage_of_any_kind_ends_in_pixels_or_an_error(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        gap in prop::option::of((any::<prop::sample::Index>(), 0_usize..40)),
    ) {
        let names: Vec<String> = told().into_keys().collect();
        let mut bytes = given(&names[which.index(names.len())]);
        for (place, value) in edits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some((place, len)) = gap {
            let place = place.index(bytes.len());
            bytes.drain(place..(place + len).min(bytes.len()));
        }
        if let Ok(picture) = decode(&bytes, Limits { max_pixels: 1 << 20 }) {
            prop_assert_eq!(picture.pixels.len(), picture.width as usize * picture.height as usize * 3);
        }
    }
}
