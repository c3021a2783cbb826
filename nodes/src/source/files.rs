//! `source.files`: files by glob.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::{
    BuildCx, Cancel, Counting, Fault, Item, List, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage,
    normalised,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::bytes_source;
use super::files_fetch::ReadFile;
use super::files_glob::Glob;
use super::files_walk::Walk;
use engine::config::Size;

/// The default of `max_file_bytes`.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Files of which one knows the names or a pattern of them, each read whole.
///
/// A folder is walked depth first, its entries in the order of their bytes, a folder's name taken with its `/`. Globs
/// come in the order written, and a file that several match is read once. Links to folders are followed; a link that
/// leads back to a folder on its own path is not.
///
/// Names that begin with a dot are passed over, and folders of such names not entered, unless the pattern's part begins
/// with a dot too. Folders are passed over, except where the pattern ends in an extension (`*.jpg`) and the folder's name
/// matches: that is a reject (`is_directory`). What is listed and cannot be read is a reject: `not_found`,
/// `permission_denied`, `too_large`, `unsupported` (a pipe, a device), `io`. A folder that cannot be read is one too.
///
/// A glob that matches nothing at the start of the run is an error.
///
/// # Input
/// None.
///
/// # Output
/// `uri`, the file's path relative to the pipeline file as one would write it (absolute if the pattern is); in names that
/// are not UTF-8 the other bytes and `%` are percent-encoded. `id`, the same. `bytes`, the content.
///
/// # Example
/// ```yaml
/// photos: {kind: source.files, with: {path: ["photos/**/*.{jpg,jpeg}", scans/cover.png]}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// A glob or a list of globs, relative to the pipeline file. `**` between slashes is any number of folders, `*` any
    /// part of a name, `?` one character, `[a-z]` one of several, `{jpg,png}` one of several words; `\` before one of
    /// these takes away its meaning.
    path: OneOrMany,
    /// The most bytes of a file; a larger one is a reject `too_large`. Default 1GiB.
    max_file_bytes: Option<Size>,
}

/// One glob, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    /// One glob.
    One(String),
    /// Several, in order.
    Many(#[schemars(length(min = 1))] Vec<String>),
}

impl Files {
    fn globs(&self) -> Result<Arc<[Glob]>, SpecError> {
        match &self.path {
            OneOrMany::One(glob) => Ok([Glob::parse(glob).map_err(|error| error.at(&["path"]))?].into()),
            OneOrMany::Many(globs) if globs.is_empty() => {
                Err(SpecError::new("the list of globs is empty").at(&["path"]))
            }
            OneOrMany::Many(globs) => globs
                .iter()
                .enumerate()
                .map(|(glob_idx, glob)| Glob::parse(glob).map_err(|error| error.at(&["path", &glob_idx.to_string()])))
                .collect(),
        }
    }
}

impl NodeKind for Files {
    const NAME: &'static str = "source.files";
    const EXAMPLE: &'static str = r#"photos: {kind: source.files, with: {path: "photos/**/*.jpg"}}"#;

    fn spec(&self, _cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let globs = self.globs()?;
        let detail: Vec<_> = globs.iter().map(|glob| glob.text.as_str()).collect();
        Ok(bytes_source(detail.join(", ")))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let globs = self.globs().map_err(|error| Fault::permanent(error.to_string()))?;
        for glob in globs.iter() {
            let mut walk = Walk::new(cx.base, [glob.clone()].into(), cx.cancel.clone());
            if !cx.is_resumed && walk.next_item().is_none() && !cx.cancel.is_draining() {
                return Err(no_match(glob, cx.base, &cx.cancel));
            }
        }
        let list = Listing { base: cx.base.to_owned(), globs: globs.clone(), cancel: cx.cancel.clone(), walk: None };
        let base = cx.base.to_owned();
        let max_bytes = self.max_file_bytes.map_or(MAX_FILE_BYTES, Size::bytes);
        Ok(Stage::Source(SourceStage {
            list: Box::new(list),
            reading: Reading::Rows(Arc::new(ReadFile { base: base.clone(), max_bytes })),
            count: Some(Box::new(move |counting| count(&base, globs, counting))),
        }))
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        let Ok(globs) = self.globs() else { return false };
        let path = normalised(path);
        globs.iter().any(|glob| {
            let root = normalised(&base.join(&glob.prefix));
            glob.accepts(glob.places_of(&root, &path))
        })
    }
}

struct Listing {
    base: PathBuf,
    globs: Arc<[Glob]>,
    cancel: Cancel,
    walk: Option<Walk>,
}

impl Listing {
    fn walk(&mut self) -> &mut Walk {
        self.walk.get_or_insert_with(|| Walk::new(&self.base, self.globs.clone(), self.cancel.clone()))
    }
}

impl List for Listing {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let walk = self.walk();
        for _ in 0..max {
            match walk.next_item() {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.walk = None;
        let walk = self.walk();
        for _ in 0..index {
            if walk.next_item().is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Walks without keeping anything.
fn count(base: &Path, globs: Arc<[Glob]>, counting: &Counting) -> Option<u64> {
    let mut walk = Walk::new(base, globs, counting.cancel.clone());
    let mut n_items = 0;
    while walk.next_item().is_some() {
        n_items += 1;
        counting.came_to(n_items);
    }
    (!counting.cancel.is_draining()).then_some(n_items)
}

/// The files that are looked at for a hint.
const MAX_HINT_FILES: usize = 10_000;

/// Says that a glob matches nothing, where was looked, and what is there instead.
fn no_match(glob: &Glob, base: &Path, cancel: &Cancel) -> Fault {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use engine::data::{Column, code};
    use engine::node::harness::{Harness, Mapped};

    use super::*;

    fn source(base: &Path, with: &str) -> Harness {
        Harness::new::<Files>(with, vec![]).in_folder(base)
    }

    fn codes(mapped: &Mapped) -> Vec<&'static str> {
        mapped.rejects.iter().map(|(_, reject)| reject.code).collect()
    }

    #[test]
    fn files_are_read_whole_and_named_by_their_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        let content: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        fs::write(folder.path().join("d/a.bin"), &content).unwrap();
        fs::write(folder.path().join("d/b.bin"), "").unwrap();
        let source = source(folder.path(), "path: d/*.bin");
        let items = source.items(1).unwrap();
        let mapped = source.fetch(&items);
        let [Column::Text(id), Column::Text(uri), Column::Bytes(bytes)] = &mapped.columns[..] else { panic!() };
        assert_eq!((id.get(1), uri.get(0), uri.get(1)), ("d/b.bin", "d/a.bin", "d/b.bin"));
        assert_eq!(bytes.values()[0], content);
        assert!(bytes.values()[1].is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_one_reject_each_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("1.jpg")).unwrap();
        symlink("nowhere", path("2.jpg")).unwrap();
        symlink("3.jpg", path("3.jpg")).unwrap();
        fs::write(path("4.jpg"), "gone").unwrap();
        fs::write(path("5.jpg"), "more than four bytes").unwrap();
        symlink("/dev/null", path("6.jpg")).unwrap();
        fs::write(path("7.jpg"), "good").unwrap();
        let source = source(folder.path(), "{path: '*.jpg', max_file_bytes: 4B}");
        let items = source.items(100).unwrap();
        fs::remove_file(path("4.jpg")).unwrap();
        let mapped = source.fetch(&items);
        assert_eq!(mapped.passed, [6]);
        let expected =
            [code::IS_DIRECTORY, code::NOT_FOUND, code::IO, code::NOT_FOUND, code::TOO_LARGE, code::UNSUPPORTED];
        assert_eq!(codes(&mapped), expected);
        for (item_idx, reject) in &mapped.rejects {
            assert!(reject.message.contains(&items[*item_idx].uri), "{}", reject.message);
        }
    }

    #[test]
    fn files_and_folders_without_permission_are_rejects() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("a.txt"), "a").unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        fs::write(folder.path().join("b/in.txt"), "b").unwrap();
        fs::write(folder.path().join("c.txt"), "c").unwrap();
        for name in ["a.txt", "b"] {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let base = folder.path().to_owned();
        // Only this thread becomes another user: the superuser may read everything.
        let checked = std::thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            }
            assert!(fs::read(base.join("a.txt")).is_err(), "the file is readable");
            let source = source(&base, "path: '**/*.txt'");
            let items = source.items(100).unwrap();
            let uris: Vec<_> = items.iter().map(|item| item.uri.as_str()).collect();
            assert_eq!(uris, ["a.txt", "b", "c.txt"]);
            let mapped = source.fetch(&items);
            assert_eq!(codes(&mapped), [code::PERMISSION, code::PERMISSION]);
            assert_eq!(mapped.passed, [2]);
        });
        checked.join().unwrap();
        fs::set_permissions(folder.path().join("b"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_glob_that_matches_nothing_says_where_it_looked_and_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("photos")).unwrap();
        for name in ["1.jpeg", "2.jpeg", "3.txt"] {
            fs::write(folder.path().join("photos").join(name), "").unwrap();
        }
        let check = |with: &str, message: &str, help: &str| {
            let fault = source(folder.path(), with).source().map(|_| ()).unwrap_err();
            assert_eq!(fault.kind, engine::node::FaultKind::Permanent);
            let root = folder.path().display().to_string();
            assert_eq!(fault.message.replace(&root, "ROOT"), message);
            assert_eq!(fault.help.unwrap().replace(&root, "ROOT"), help);
        };
        check(
            "path: 'photos/**/*.jpg'",
            "`photos/**/*.jpg` matches no file (looked in `ROOT/photos`)",
            "there are 2 `*.jpeg` there",
        );
        check(
            "path: ['photos/*', 'fotos/a/*.jpg']",
            "`fotos/a/*.jpg` matches no file (looked in `ROOT/fotos/a`)",
            "that folder does not exist; the nearest one that does is `ROOT`; paths are relative to the pipeline file",
        );
        check(
            "path: photos",
            "`photos` matches no file (looked in `ROOT`)",
            "`photos` is a folder; for all files in it write `photos/**`",
        );
    }

    #[test]
    fn seek_goes_to_the_item_of_that_index_and_count_counts() {
        let folder = tempfile::tempdir().unwrap();
        (0..10).for_each(|n| fs::write(folder.path().join(format!("{n}.txt")), "").unwrap());
        let mut source = source(folder.path(), "path: '*.txt'").source().unwrap();
        for index in [7, 0, 9] {
            let mut items = Vec::new();
            source.list.seek(index).unwrap();
            source.list.next_items(1, &mut items).unwrap();
            assert_eq!(items[0].uri, format!("{index}.txt"));
        }
        let mut items = Vec::new();
        source.list.seek(11).unwrap();
        source.list.next_items(1, &mut items).unwrap();
        assert!(items.is_empty());
        assert_eq!(source.count.unwrap()(&Counting::default()), Some(10));
    }

    #[test]
    fn it_knows_which_outputs_it_would_read() {
        let node = source(Path::new("/p"), "path: 'a/**/*.jsonl'");
        let reads = |path: &str| node.node().reads(Path::new("/p"), Path::new(path));
        assert!(reads("/p/a/b/out.jsonl"));
        assert!(reads("/p/x/../a/out.jsonl"));
        assert!(!reads("/p/out.jsonl"));
    }

    #[test]
    fn a_file_whose_name_is_not_utf8_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "content").unwrap();
        let source = source(folder.path(), "path: '*.txt'");
        let mapped = source.fetch(&source.items(9).unwrap());
        let Column::Bytes(bytes) = &mapped.columns[2] else { panic!() };
        assert_eq!(bytes.values()[0], "content");
    }
}
