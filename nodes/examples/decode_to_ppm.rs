//! Decodes files and writes each as a PPM, for comparing with other decoders.
//!
//! `cargo run -p flowgpu-nodes --example decode_to_ppm OUT_FOLDER < LIST_OF_FILES` prints a line for each: the path, then
//! `ok WIDTH HEIGHT FORMAT ORIENTATION PPM`, or the error's code and message; separated by tabs.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&folder)?;
    let mut out = std::io::stdout().lock();
    for (n, path) in std::io::stdin().lock().lines().enumerate() {
        let path = path?;
        let bytes = std::fs::read(&path)?;
        let decoded =
            catch_unwind(AssertUnwindSafe(|| nodes::decode::decode(&bytes, nodes::decode::Limits::default())));
        match decoded {
            Ok(Ok(picture)) => {
                let name = folder.join(format!("{n}.ppm"));
                let mut file = std::io::BufWriter::new(std::fs::File::create(&name)?);
                writeln!(file, "P6 {} {} 255", picture.width, picture.height)?;
                file.write_all(&picture.pixels)?;
                let (format, orientation) = (picture.format.name(), picture.orientation as u8);
                writeln!(
                    out,
                    "{path}\tok\t{}\t{}\t{format}\t{orientation}\t{}",
                    picture.width,
                    picture.height,
                    name.display()
                )?;
            }
            Ok(Err(error)) => writeln!(out, "{path}\t{}\t{error}", error.code())?,
            Err(_) => writeln!(out, "{path}\tpanic\t")?,
        }
    }
    Ok(())
}
