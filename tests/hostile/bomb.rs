//! A small file that would be a very large picture.

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
  photos: {kind: source.files, with: {path: "in/*.png"}}
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
