//! What is said where a glob matches nothing.

use std::path::Path;

use engine::node::{Cancel, Fault, normalised};

use super::files_glob::Glob;
use super::files_walk::Walk;

/// The files that are looked at for a hint.
const MAX_HINT_FILES: usize = 10_000;

/// Says that a glob matches nothing, where was looked, and what is there instead.
pub(super) fn no_match(glob: &Glob, base: &Path, cancel: &Cancel) -> Fault {
    let looked_in = base.join(&glob.prefix);
    let looked_in = normalised(&std::path::absolute(&looked_in).unwrap_or(looked_in));
    let fault = Fault::permanent(format!("`{}` matches no file (looked in `{}`)", glob.text, looked_in.display()));
    if !looked_in.is_dir() {
        let existing = looked_in.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        return fault.help(format!(
            "that folder does not exist; the nearest one that does is `{}`; paths are relative to the pipeline file",
            existing.display()
        ));
    }
    if base.join(&glob.text).is_dir() {
        let folder = glob.text.trim_end_matches('/');
        return fault.help(format!("`{folder}` is a folder; for all files in it write `{folder}/**`"));
    }
    let mut walk = Walk::new(base, [glob.with_any_name()].into(), cancel.clone());
    let mut by_extension: indexmap::IndexMap<String, usize> = indexmap::IndexMap::new();
    for _ in 0..MAX_HINT_FILES {
        let Some(item) = walk.next_item() else { break };
        let extension = Path::new(&item.uri).extension().and_then(|extension| extension.to_str());
        *by_extension.entry(extension.unwrap_or_default().to_owned()).or_default() += 1;
    }
    let files = |n_files: usize| if n_files == 1 { "is 1".to_owned() } else { format!("are {n_files}") };
    match by_extension.iter().max_by_key(|(_, n_files)| **n_files) {
        Some((extension, &n_files)) if extension.is_empty() => {
            fault.help(format!("there {} files without an extension there", files(n_files)))
        }
        Some((extension, &n_files)) => fault.help(format!("there {} `*.{extension}` there", files(n_files))),
        None => fault.help("there are no files at all in the folders that it reaches"),
    }
}
