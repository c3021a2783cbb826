//! Small files to be read, some of which cannot be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use image::{ImageFormat, Rgb, RgbImage};

use crate::dice::Dice;

/// A file of the input.
pub struct InputFile {
    /// Relative to the pipeline file.
    pub path: String,
    pub content: Content,
}

/// What is in it.
pub enum Content {
    /// A picture like no other of the case.
    Picture(u32),
    /// The first bytes of one.
    Truncated(u32),
    /// No picture.
    Garbage,
    Empty,
    /// A link to a file that is not there.
    Dangling,
    /// A folder with the name of a picture.
    Folder,
    /// A tar with so many pictures, the first of which has this number.
    Shard(u32, u32),
    /// A table with so many lines.
    Lines(u32),
    /// A file that names rows of others, as rejects.
    Rejects(Vec<String>),
}

impl InputFile {
    /// Draws `n_files` files below `folder`, in the order in which they are listed.
    pub fn draw(dice: &mut Dice, folder: &str, n_files: u64) -> Vec<InputFile> {
        let content = |dice: &mut Dice, number| match dice.between(0, 29) {
            0 => Content::Garbage,
            1 => Content::Empty,
            2 => Content::Dangling,
            3 => Content::Folder,
            4 => Content::Truncated(number),
            _ => Content::Picture(number),
        };
        let file = |number| {
            let path = format!("{folder}/{:02}/{number:04}.png", number / 50);
            InputFile { path, content: content(dice, number) }
        };
        (0..n_files as u32).map(file).collect()
    }

    /// Draws tars or tables with `n_rows` rows in all, and gives the uris of these.
    pub fn draw_holding(dice: &mut Dice, folder: &str, n_rows: u64, ending: &str) -> (Vec<InputFile>, Vec<String>) {
        let (mut files, mut uris) = (Vec::new(), Vec::new());
        let mut first = 0;
        while first < n_rows as u32 {
            let n_held = (dice.between(0, 90) as u32).min(n_rows as u32 - first);
            let path = format!("{folder}/{:03}.{ending}", files.len());
            let content = if ending == "tar" { Content::Shard(first, n_held) } else { Content::Lines(n_held) };
            let name = |row: u32| if ending == "tar" { format!("{:04}", first + row) } else { (row + 1).to_string() };
            uris.extend((0..n_held).map(|row| format!("{path}#{}", name(row))));
            files.push(InputFile { path, content });
            first += n_held;
        }
        (files, uris)
    }

    /// Draws tars and single pictures, of which some rows were rejected, and gives the uris of these.
    pub fn draw_rejected(dice: &mut Dice, folder: &str, n_rows: u64) -> (Vec<InputFile>, Vec<String>) {
        let (mut files, mut uris) = InputFile::draw_holding(dice, folder, n_rows / 2, "tar");
        let pictures = InputFile::draw(dice, folder, n_rows / 2);
        uris.extend(pictures.iter().map(|file| file.path.clone()));
        files.extend(pictures);
        let share = dice.between(20, 100);
        uris.retain(|_| dice.chance(share));
        let path = format!("{folder}/rejects.jsonl");
        files.push(InputFile { path, content: Content::Rejects(uris.clone()) });
        (files, uris)
    }

    /// Makes the file.
    pub fn write(&self, base: &Path) {
        let path = base.join(&self.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        match &self.content {
            Content::Picture(number) => fs::write(path, png(*number)).expect("a file"),
            Content::Truncated(number) => {
                let bytes = png(*number);
                fs::write(path, &bytes[..bytes.len() / 2]).expect("a file");
            }
            Content::Garbage => fs::write(path, "this is no picture").expect("a file"),
            Content::Empty => fs::write(path, "").expect("a file"),
            Content::Dangling => symlink("nowhere", path).expect("a link"),
            Content::Folder => fs::create_dir(path).expect("a folder"),
            Content::Shard(first, n_pictures) => {
                let pictures: Vec<_> =
                    (*first..first + n_pictures).map(|number| (format!("{number:04}.png"), png(number))).collect();
                let members = pictures.iter().map(|(name, picture)| (name.as_str(), picture.as_slice()));
                fs::write(path, nodes::testing::tar_of(members)).expect("a file");
            }
            Content::Lines(n_lines) => {
                let lines: String = (0..*n_lines).map(|number| format!("{{\"number\": {number}}}\n")).collect();
                fs::write(path, lines).expect("a file");
            }
            Content::Rejects(uris) => {
                let lines: String = uris.iter().map(|uri| format!("{{\"uri\": \"{uri}\"}}\n")).collect();
                fs::write(path, lines).expect("a file");
            }
        }
    }
}

fn png(number: u32) -> Vec<u8> {
    let picture = RgbImage::from_fn(8, 6, |x, y| Rgb([number as u8, (number >> 8) as u8 + x as u8, y as u8]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).expect("a picture");
    bytes.into_inner()
}
