//! Pictures of which some are too large for a first run, in whatever holds them.

use std::fs;
use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};
use nodes::testing::{parquet_of, tar_of};
use serde_json::Value as Json;

use crate::program::{Done, Folder};

/// How many pictures there are.
pub const N_PICTURES: u8 = 12;

/// Whether a picture is too large for the first run.
pub fn is_large(number: u8) -> bool {
    number % 3 == 1
}

/// A picture of a colour of its own.
pub fn picture(number: u8) -> Vec<u8> {
    let side = if is_large(number) { 20 } else { 5 };
    let pixels = RgbImage::from_pixel(side, side, Rgb([number * 20, number, 200]));
    let mut file = Cursor::new(Vec::new());
    pixels.write_to(&mut file, ImageFormat::Png).expect("a picture");
    file.into_inner()
}

pub fn pictures() -> Vec<Vec<u8>> {
    (0..N_PICTURES).map(picture).collect()
}

/// Writes a pipeline file that decodes pictures of at most `max_pixels` pixels, into `out/<name>.jsonl`.
pub fn pipeline(folder: &Folder, name: &str, source: &str, max_pixels: u32) {
    let text = format!(
        "name: {name}\nnodes:\n  rows: {{kind: {source}}}\n  pixels: {{kind: decode.image, with: {{resize: [4, 4], max_pixels: \
         {max_pixels}}}}}\n  out: {{kind: sink.jsonl, with: {{path: out/{name}.jsonl, columns: [id, uri, width, image]}}}}\n"
    );
    folder.write(&format!("{name}.yaml"), &text);
}

/// Runs a pipeline of [`pipeline`].
pub fn run(folder: &Folder, name: &str, source: &str, max_pixels: u32) -> Done {
    pipeline(folder, name, source, max_pixels);
    folder.run(&["run", &format!("{name}.yaml")])
}

/// The lines that a run has written.
pub fn lines(folder: &Folder, name: &str) -> Vec<String> {
    folder.read(&format!("out/{name}.jsonl")).lines().map(str::to_owned).collect()
}

pub fn uri(line: &str) -> String {
    let line: Json = serde_json::from_str(line).expect("JSON");
    line["uri"].as_str().expect("a uri").to_owned()
}

/// The rejects of a run: uris and codes.
pub fn rejects(folder: &Folder, name: &str) -> Vec<(String, String)> {
    let rejects = folder.rows(&format!("out/{name}.rejects.jsonl"));
    let text = |row: &Json, key: &str| row[key].as_str().expect("a text").to_owned();
    rejects.iter().map(|row| (text(row, "uri"), text(row, "code"))).collect()
}

/// Writes the pictures as files.
pub fn as_files(folder: &Folder) {
    fs::create_dir_all(folder.path("photos")).expect("a folder");
    for (number, picture) in pictures().iter().enumerate() {
        fs::write(folder.path(&format!("photos/{number:02}.png")), picture).expect("a file");
    }
}

/// The pictures as samples `d/00`, `d/01` and so on.
pub fn as_tar() -> Vec<u8> {
    let pictures = pictures();
    let names: Vec<_> = (0..pictures.len()).map(|number| format!("d/{number:02}.png")).collect();
    tar_of(names.iter().zip(&pictures).map(|(name, picture)| (name.as_str(), picture.as_slice())))
}

/// The pictures in row groups of four.
pub fn as_parquet() -> Vec<u8> {
    parquet_of(&pictures(), 4)
}
