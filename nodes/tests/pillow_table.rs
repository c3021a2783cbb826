//! Every picture of two folders against what Pillow 13.0.0 makes of it, as `scripts/pillow_table.py` wrote it down: those that
//! Pillow tests itself with, of all formats, whole and broken, and those of `images/make_formats.py`.
#![cfg(feature = "testing")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use nodes::decode::{Alpha, Colour, Colours, DecodeError, Decoded, Grey16, Limits, Reading, decode};

/// Over which the second sum of the table lays a picture.
const GROUND: Colour = Colour([200, 30, 90]);

/// One line of the table.
struct Line<'a> {
    name: &'a str,
    pillow: &'a str,
    ours: &'a str,
}

fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images")
}

fn sum(pixels: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(pixels))
}

/// What the third column of the table should say.
fn verdict(line: &Line<'_>, bytes: &[u8]) -> String {
    let pillow: Vec<&str> = line.pillow.split(' ').collect();
    let picture = match decode(bytes, Limits::default()) {
        Ok(picture) => picture,
        Err(error) => return error.code().to_owned(),
    };
    let [_format, _mode, size, drop, over] = pillow[..] else {
        return format!("rgb {}", sum(&picture.pixels));
    };
    if format!("{}×{}", picture.width, picture.height) != size {
        return format!("{}×{}", picture.width, picture.height);
    }
    if sum(&picture.pixels) != drop {
        return if line.ours.starts_with("near ") {
            mean(line.ours, &picture)
        } else {
            format!("rgb {}", sum(&picture.pixels))
        };
    }
    let reading =
        Reading { colours: Colours { alpha: Alpha::Over(GROUND), ..Colours::default() }, ..Reading::default() };
    match (over, decode(bytes, reading)) {
        ("-", Ok(_)) => "=".to_owned(),
        (over, Ok(picture)) if sum(&picture.pixels) == over => "=".to_owned(),
        (_, Ok(_)) => "other pixels over a colour".to_owned(),
        (_, Err(error)) => format!("over a colour: {error}"),
    }
}

/// The mean colour that was expected, if it is near enough, or the one that was found.
fn mean(expected: &str, picture: &Decoded) -> String {
    let mut sums = [0u64; 3];
    for pixel in picture.pixels.chunks_exact(3) {
        sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += u64::from(value));
    }
    let found = sums.map(|sum| sum as f64 / (picture.pixels.len() / 3) as f64);
    let stated: Vec<f64> = expected.split(' ').skip(1).filter_map(|mean| mean.parse().ok()).collect();
    if stated.len() == 3 && stated.iter().zip(found).all(|(stated, found)| (stated - found).abs() <= 3.0) {
        return expected.to_owned();
    }
    format!("near {:.2} {:.2} {:.2}", found[0], found[1], found[2])
}

fn check(folder: &Path, table: &str) {
    let table = std::fs::read_to_string(images().join(table)).unwrap();
    let mut wrong = String::new();
    let mut count = 0;
    for line in table.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, pillow, ours] = columns[..] else { panic!("three columns: {line}") };
        let line = Line { name, pillow, ours };
        let bytes = std::fs::read(folder.join(line.name)).unwrap();
        let got = verdict(&line, &bytes);
        if got != line.ours {
            let said = decode(&bytes, Limits::default()).err().map(|error| error.to_string()).unwrap_or_default();
            writeln!(wrong, "{}\t{}\t{got}, and not {} {said}", line.name, line.pillow, line.ours).unwrap();
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 300, "{count} lines");
}

#[test]
fn pillows_own_test_pictures_end_as_the_table_says() {
    let assets = std::env::var_os("FLOWGPU_TEST_ASSETS").expect("scripts/test.sh sets FLOWGPU_TEST_ASSETS");
    check(&Path::new(&assets).join("pillow-13.0.0-images"), "pillow-tests.txt");
}

#[test]
fn pictures_made_by_hand_end_as_the_table_says() {
    check(&images().join("formats"), "formats.txt");
}

#[test]
fn long_greys_are_scaled_where_that_is_asked_for() {
    let reading = Reading { colours: Colours { grey16: Grey16::Scale, ..Colours::default() }, ..Reading::default() };
    let scaled = |name: &str| {
        let bytes = std::fs::read(images().join("formats").join(name)).unwrap();
        let picture = decode(&bytes, reading).unwrap();
        assert!(picture.pixels.chunks_exact(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]));
        picture.pixels.chunks_exact(3).take(19).map(|pixel| pixel[0]).collect::<Vec<_>>()
    };
    // The samples that `make_formats.py` writes into each row.
    let png = [0u16, 1, 64, 128, 200, 254, 255, 256, 1000, 0x7fff, 0x8000, 0xffff, 0, 1, 64, 128, 200, 254, 255];
    assert_eq!(scaled("png-grey-16.png"), png.map(|grey| (grey >> 8) as u8));
    let tiff = [0u16, 1, 64, 127, 128, 200, 254, 255, 256, 1000, 0x7fff, 0x8000, 0xffff, 0x1234, 5, 6, 7, 8, 9];
    assert_eq!(scaled("tiff-ramp-16.tif"), tiff.map(|grey| (grey >> 8) as u8));
    // Samples of twelve bits, two in three bytes, from the start of the first strip.
    let bytes = std::fs::read(images().join("formats/tiff-grey-12-ii.tif")).unwrap();
    let row = &bytes[8..8 + 29];
    let twelve: Vec<u8> =
        row.chunks(3).flat_map(|three| [three[0], three[1] << 4 | three.get(2).map_or(0, |b| b >> 4)]).collect();
    assert_eq!(scaled("tiff-grey-12-ii.tif"), twelve[..19]);
}

#[test]
fn hand_made_pictures_with_any_byte_flipped_or_cut_end_in_pixels_or_an_error() {
    // No expectation but an end without a panic, and within the limit: two bytes in each file at places that differ from file
    // to file, and every byte of the directories, which stand at the end or the beginning.
    let limits = Limits { max_pixels: 1 << 16 };
    let mut outcomes = [0; 2];
    let mut count = |result: Result<Decoded, DecodeError>| match result {
        Ok(picture) => {
            assert_eq!(picture.pixels.len(), picture.width as usize * picture.height as usize * 3);
            outcomes[0] += 1;
        }
        Err(_) => outcomes[1] += 1,
    };
    let mut paths: Vec<_> =
        std::fs::read_dir(images().join("formats")).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    for (n, path) in paths.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        let ends = (0..bytes.len().min(40)).chain(bytes.len().saturating_sub(250)..bytes.len());
        for place in ends.chain((n % 7..bytes.len()).step_by(bytes.len() / 20 + 1)) {
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] ^= flip;
                count(decode(&bytes, limits));
            }
            count(decode(&bytes[..place], limits));
        }
    }
    assert!(outcomes.iter().all(|&count| count > 1000), "{outcomes:?}");
}
