//! A copy of the pipeline with other settings.

use std::fs;
use std::io::Write;
use std::path::Path;

use engine::config::{Document, Edit, as_yaml, edited};
use engine::durable::disk::folder_of;

use crate::failure::{Failure, reason};
use crate::output;
use crate::pipeline::from_here;

/// Whether the copy can be written, before anything is measured.
pub(super) fn check(file: &Path, pipeline: &Path) -> Result<(), Failure> {
    if file.symlink_metadata().is_ok() {
        let message = format!("`{}` is there already: name another file with `--write`", file.display());
        return Err(Failure::usage(message));
    }
    match (folder_of(file).canonicalize(), folder_of(pipeline).canonicalize()) {
        (Ok(there), Ok(here)) if there == here => Ok(()),
        _ => Err(Failure::usage(format!(
            "`{}` is not in the folder of `{}`, which the paths in it start from: name a file there with `--write`",
            file.display(),
            pipeline.display()
        ))),
    }
}

/// Writes it, if there is anything to change.
pub(super) fn write(file: &Path, document: &Document, edits: &[Edit]) -> Result<(), Failure> {
    if edits.is_empty() {
        output::tell(&format!("{}: nothing to write\n", document.name.value));
        return Ok(());
    }
    let text = edited(document.source().text(), edits).map_err(|edit| Failure::Usage {
        message: format!(
            "cannot put `{}` into `{}` without changing more than that",
            edit.path.join("."),
            document.file().display()
        ),
        help: Some(format!("write by hand:\n{}", as_yaml(edits))),
    })?;
    let failed =
        |error: std::io::Error| Failure::fault(format!("cannot write `{}`: {}", file.display(), reason(&error)));
    // New, as it was before: nothing of anybody's is overwritten.
    let mut copy = fs::File::create_new(file).map_err(failed)?;
    copy.write_all(text.as_bytes()).map_err(failed)?;
    output::tell(&format!("{}: written to {}\n", document.name.value, from_here(file).display()));
    Ok(())
}
