//! What a picture becomes does not depend on the pictures that were decoded before it in the same memory.

use std::path::Path;

use nodes::decode::{Limits, Preprocess, Scratch, decode_into};

#[test]
fn a_picture_has_the_same_pixels_in_memory_that_has_been_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/given");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let decode = |file: &[u8], scratch: &mut Scratch| {
        let mut pixels = Vec::new();
        decode_into(file, &Preprocess::default(), Limits::default(), scratch, |height, width| {
            pixels.resize(width * height * 3, 1);
            &mut pixels
        })
        .map(|_| pixels)
    };
    let mut used = Scratch::default();
    let mut wrong = Vec::new();
    for (path, file) in paths.iter().zip(&files) {
        let fresh = decode(file, &mut Scratch::default());
        // Everything else has been through the same memory before.
        for other in &files {
            let _ = decode(other, &mut used);
        }
        if decode(file, &mut used) != fresh {
            wrong.push(path.file_name().unwrap());
        }
    }
    assert!(files.len() > 100);
    assert!(wrong.is_empty(), "{wrong:?}");
}
