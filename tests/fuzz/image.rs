//! `decode.image`: every format, at the size that it has and scaled down.

use engine::data::{Column, ColumnType, Field, Role, Schema};
use engine::node::harness::{Harness, batch};
use nodes::decode::image::Image;

use crate::mutate::Random;
use crate::sums::crc32;
use crate::target::{Check, Target, nothing_made};

pub const TARGET: Target = Target {
    name: "image",
    n_cases: 6_000,
    max_memory: 64 << 20,
    seeds: &["nodes/tests/images/given", "nodes/tests/images/formats", "nodes/tests/images/pillow", "nodes/tests/jpeg"],
    made: nothing_made,
    dress,
    prepare,
};

const MAX_PIXELS: i64 = 300_000;
const FORMATS: [&str; 6] = ["JPEG", "PNG", "WebP", "GIF", "BMP", "TIFF"];

fn prepare() -> Check {
    let schema = Schema { fields: vec![Field::new("bytes", ColumnType::Bytes, Role::Auxiliary)], batch: None };
    let options = [
        format!("{{max_pixels: {MAX_PIXELS}}}"),
        format!("{{max_pixels: {MAX_PIXELS}, resize: 40, crop: 32, alpha: {{over: white}}, grey16: scale}}"),
    ];
    let [whole, small] = options.map(|with| Harness::new::<Image>(&with, vec![schema.clone()]));
    Box::new(move |input| {
        let row = batch(&schema, 0, 1, |_, out| out.bytes(0, input.to_vec().into()));
        let mapped = whole.map(&row);
        let again = whole.map(&row);
        assert_eq!(pixels(&mapped.columns[0]), pixels(&again.columns[0]), "decoded twice");
        assert_eq!(mapped.rejects, again.rejects);
        if let [Column::Ragged(image), Column::Int(width), Column::Int(height), Column::Text(format), ..] =
            &mapped.columns[..]
            && !mapped.passed.is_empty()
        {
            let (width, height) = (width.values()[0], height.values()[0]);
            assert!(width > 0 && height > 0 && width.saturating_mul(height) <= MAX_PIXELS, "{width}×{height}");
            assert_eq!(image.values()[0].shape(), [1, height as usize, width as usize, 3]);
            assert!(FORMATS.contains(&format.get(0)), "{}", format.get(0));
        }
        let scaled = small.map(&row);
        assert_eq!(scaled.passed, mapped.passed, "the size decides: {:?} {:?}", scaled.rejects, mapped.rejects);
    })
}

fn pixels(column: &Column) -> Option<Vec<u8>> {
    match column {
        Column::Ragged(images) => images.values().first().map(|image| image.bytes().to_vec()),
        Column::Dense(images) => {
            (images.n_rows() > 0).then(|| images.row(0).to_f32().iter().map(|value| *value as u8).collect())
        }
        _ => panic!("the first column is the image"),
    }
}

/// Makes the sums of a PNG file's chunks right.
fn dress(random: &mut Random, mut file: Vec<u8>) -> Vec<u8> {
    if !file.starts_with(b"\x89PNG\r\n\x1a\n") || random.one_in(6) {
        return file;
    }
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        let Some(end) = at.checked_add(8 + length).filter(|end| end + 4 <= file.len()) else { break };
        let sum = crc32(&file[at + 4..end]);
        file[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    file
}
