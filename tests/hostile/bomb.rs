//! A small file that would be a very large picture.

use std::fs;

use crate::told;
use crate::workplace::Workplace;

const SIDE: u32 = 20_000;

/// A whole and valid PNG file of 20,000×20,000 pixels, one bit each: 1.2 GB as RGB.
pub fn png() -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE, SIDE);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().expect("memory can be written to");
    writer.write_image_data(&vec![0; (SIDE / 8 * SIDE) as usize]).expect("memory can be written to");
    writer.finish().expect("memory can be written to");
    assert!(file.len() < 200_000, "{} bytes", file.len());
    file
}

const DECODE: &str = r#"
name: bombs
nodes:
  photos: {kind: source.files, with: {path: "in/*"}}
  pixels: {kind: decode.image, with: {resize: 64, crop: 64}}
  out: {kind: sink.jsonl, with: {path: out/sizes.jsonl}}
"#;

#[test]
fn pictures_that_would_fill_the_memory_are_rejected_without_taking_it() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", DECODE);
    for index in 0..8 {
        workplace.write(&format!("in/{index}.png"), png());
    }
    // Less than one of the pictures takes. Each thread's own arena would take address space, not memory.
    let limited = ["env", "MALLOC_ARENA_MAX=2", "sh", "-c", "ulimit -v 900000 && exec \"$@\"", "sh"];
    let program: Vec<_> = limited.into_iter().chain([env!("CARGO_BIN_EXE_flowgpu"), "run"]).collect();
    workplace.command(&program, &["p.yaml"]).expect(3);
    let rejects = workplace.rows("out/bombs.rejects.jsonl");
    assert_eq!(rejects.len(), 8);
    for (index, reject) in rejects.iter().enumerate() {
        assert_eq!(told(reject), [&format!("in/{index}.png"), "pixels", "too_large"]);
        assert!(reject["message"].as_str().expect("a message").contains("20000×20000"), "{reject}");
    }
}

/// Files that are kept for the decoders: each says to be far larger than a machine's memory, or packs such a size into little.
const KEPT: [&str; 10] = [
    "formats/gif-huge-canvas.gif",
    "formats/gif-huge-frame.gif",
    "formats/png-20000x20000.png",
    "formats/tiff-huge-tiles.tif",
    "formats/tiff-huge.tif",
    "formats/webp-huge-canvas.webp",
    "formats/webp-huge-frame.webp",
    "given/bmp-huge.bmp",
    "given/jpeg-huge-header.jpg",
    "given/png-bomb.png",
];

#[test]
fn a_bomb_of_each_format_is_rejected_within_little_memory() {
    let workplace = Workplace::new();
    workplace.write("p.yaml", DECODE);
    let folder = format!("{}/nodes/tests/images", env!("CARGO_MANIFEST_DIR"));
    for name in KEPT {
        let path = format!("{folder}/{name}");
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        workplace.write(&format!("in/{}", name.replace('/', "-")), bytes);
    }
    let limited = ["env", "MALLOC_ARENA_MAX=2", "sh", "-c", "ulimit -v 900000 && exec \"$@\"", "sh"];
    let program: Vec<_> = limited.into_iter().chain([env!("CARGO_BIN_EXE_flowgpu"), "run"]).collect();
    workplace.command(&program, &["p.yaml"]).expect(3);
    let rejects = workplace.rows("out/bombs.rejects.jsonl");
    let told: Vec<_> = rejects.iter().map(|reject| told(reject).map(str::to_owned)).collect();
    assert_eq!(told.len(), KEPT.len(), "{told:?}");
    for ([uri, node, code], name) in told.iter().zip(KEPT) {
        assert_eq!((uri.as_str(), node.as_str()), (format!("in/{}", name.replace('/', "-")).as_str(), "pixels"));
        assert_eq!(code, "too_large", "{uri}");
    }
}
