//! Decodes pictures for whoever compares them: `scripts/jpeg_vs_pillow.py`.
//!
//! Reads a path from each line of standard input. Writes `ok WIDTH HEIGHT` and the RGB bytes of the upright picture, or the code and
//! the message of the refusal.

use std::io::{BufRead, Write};

use nodes::decode::{Limits, decode};

fn main() -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    for path in std::io::stdin().lock().lines() {
        match decode(&std::fs::read(path?)?, Limits::default()) {
            Ok(picture) => {
                writeln!(stdout, "ok {} {}", picture.width, picture.height)?;
                stdout.write_all(&picture.pixels)?;
            }
            Err(error) => writeln!(stdout, "{} {error}", error.code())?,
        }
        stdout.flush()?;
    }
    Ok(())
}
