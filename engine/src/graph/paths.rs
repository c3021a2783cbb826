//! Files that nodes write: no two on one, none that another node reads.

use std::path::{Path, PathBuf};

use super::compile::Draft;
use crate::config::{Document, Mistake, Mistakes};
use crate::node::{Role, is_url, normalised};

/// Checks the paths of all nodes against each other.
pub(super) fn check(drafts: &[Draft<'_>], document: &Document, mistakes: &mut Mistakes) {
    let base = document.folder();
    check_standard_output(drafts, base, mistakes);
    let sinks = drafts.iter().filter(|draft| draft.kind.role() == Role::Sink);
    let first_output = first_file(sinks.flat_map(|draft| draft.node.writes(base)));
    let rejects = rejects(document.run.rejects.as_deref(), &document.name.value, base, first_output.as_deref());
    let rejects_shown = rejects.strip_prefix(base).unwrap_or(&rejects).display().to_string();
    let rejects = Written::of(&rejects);
    let of_run = [("report", &document.run.report), ("trace", &document.run.trace)];
    let of_run = of_run.map(|(what, path)| (what, path.as_deref().map(|path| Written::of(&base.join(path)))));
    let written: Vec<_> = drafts
        .iter()
        .enumerate()
        .flat_map(|(node_idx, draft)| {
            draft.node.writes(base).into_iter().map(move |path| (node_idx, Written::of(&path)))
        })
        .collect();
    // Reading an output is told with that output.
    let reads_rejects = |reader: &&Draft<'_>| {
        let is_read = [&rejects.named, &rejects.real].into_iter().any(|path| reader.node.reads(base, path));
        is_read && !written.iter().any(|(_, path)| reader.node.reads(base, &path.named))
    };
    if let Some(reader) = drafts.iter().find(reads_rejects) {
        let message = format!("`{}` reads the file of rejected rows, `{rejects_shown}`", reader.name);
        let mistake = Mistake::at(reader.decl.span_of(&["path"]), message);
        let is_free = |path: &String| !reader.node.reads(base, &normalised(&base.join(path)));
        let elsewhere = elsewhere(&rejects_shown).into_iter().find(is_free);
        let elsewhere = elsewhere.as_deref().unwrap_or("…");
        mistakes.push(mistake.label("this run would write its own rejects there").note(format!(
            "read other files, give the pipeline another `name`, or say `run: {{rejects: {elsewhere}}}`"
        )));
    }
    for (position, (node_idx, path)) in written.iter().enumerate() {
        let draft = &drafts[*node_idx];
        let span = draft.decl.span_of(&["path"]);
        if let Some((other, _)) =
            written[..position].iter().find(|(other, earlier)| earlier == path && other != node_idx)
        {
            let message = format!("`{}` and `{}` write the same file", drafts[*other].name, draft.name);
            mistakes.push(
                Mistake::at(span, message)
                    .label("give it another path")
                    .also(drafts[*other].decl.span_of(&["path"]), "written here too"),
            );
        }
        if let Some((what, _)) = of_run.iter().find(|(_, other)| other.as_ref() == Some(path)) {
            let message = format!("`{}` writes the file that `run` names for its {what}", draft.name);
            mistakes.push(Mistake::at(span, message).label("give it another path"));
        }
        if *path == rejects {
            let message = format!("`{}` writes the file of rejected rows, `{rejects_shown}`", draft.name);
            mistakes.push(Mistake::at(span, message).label("give it another path, or say `run: {rejects: …}`"));
        }
        if let Some(reader) = drafts.iter().find(|reader| reader.node.reads(base, &path.named)) {
            let message = format!("`{}` writes a file that `{}` reads", draft.name, reader.name);
            mistakes.push(Mistake::at(span, message).label("give it another path"));
        }
    }
}

/// Other files for rejects than `rejects`: beside it, and in a folder of their own.
fn elsewhere(rejects: &str) -> [String; 2] {
    let stem = rejects.strip_suffix(".rejects.jsonl").unwrap_or(rejects);
    let name_at = rejects.rfind('/').map_or(0, |at| at + 1);
    let (folder, name) = rejects.split_at(name_at);
    [format!("{stem}-again.rejects.jsonl"), format!("{folder}again/{name}")]
}

/// Rows of several sinks would be mixed there. A sink that writes no file writes to standard output.
fn check_standard_output(drafts: &[Draft<'_>], base: &Path, mistakes: &mut Mistakes) {
    let is_direct = |draft: &&Draft<'_>| draft.kind.role() == Role::Sink && draft.node.writes(base).is_empty();
    let mut direct = drafts.iter().filter(is_direct);
    let Some(first) = direct.next() else { return };
    for draft in direct {
        let message = format!("`{}` and `{}` both write to standard output", first.name, draft.name);
        let mistake = Mistake::at(draft.decl.span_of(&["path"]), message).label("give it a file");
        mistakes.push(mistake.also(first.decl.span_of(&["path"]), "written here too"));
    }
}

/// The first output that is a file, and not an object of a store.
pub(super) fn first_file(mut outputs: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    outputs.find(|path| !is_url(path))
}

/// The file of rejected rows: the one that `run.rejects` names, or one beside the first output that is a file.
pub(super) fn rejects(named: Option<&str>, pipeline: &str, base: &Path, first_output: Option<&Path>) -> PathBuf {
    match named {
        Some(path) => base.join(path),
        None => first_output.and_then(Path::parent).unwrap_or(base).join(format!("{pipeline}.rejects.jsonl")),
    }
}

/// A file that is written. Equal where the file is the same one.
struct Written {
    /// The path without `.` and `..`.
    named: PathBuf,
    /// The same with links to folders followed, as far as the folders exist.
    real: PathBuf,
}

impl Written {
    fn of(path: &Path) -> Self {
        if is_url(path) {
            return Written { named: path.to_owned(), real: path.to_owned() };
        }
        let named = normalised(path);
        let existing = named.ancestors().skip(1).find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
        let real = match existing {
            Some((folder, real)) => real.join(named.strip_prefix(folder).expect("a path begins with its ancestors")),
            None => named.clone(),
        };
        Written { named, real }
    }
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.real == other.real
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_compare_equal() {
        assert_eq!(normalised(Path::new("a/./b/../out.jsonl")), Path::new("a/out.jsonl"));
        assert_eq!(normalised(Path::new("../x")), Path::new("../x"));
    }

    #[test]
    fn links_to_folders_are_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("real")).expect("a new folder");
        std::os::unix::fs::symlink("real", folder.path().join("link")).expect("a new link");
        let written = |name: &str| Written::of(&folder.path().join(name));
        assert!(written("link/new/out.jsonl") == written("real/new/out.jsonl"));
        assert!(written("link/out.jsonl") != written("out.jsonl"));
    }
}
