//! `source.files`: files by glob.

use std::path::Path;
use std::sync::Arc;

use engine::data::{ColumnType, Role};
use engine::node::{
    BuildCx, Cancel, Count, Counting, Fault, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage,
    normalised,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{REMOTE_READERS, bytes_source};
use super::files_fetch::ReadFile;
use super::files_list::{Exclude, FilesList};
use super::listing::{Braces, Listed, Locators, Patterns, spec_error};
use super::manifest::Manifest;
use super::paths::OneOrMany;
use crate::store::{Location, StoreOptions, Stores, redacted};
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
/// are not UTF-8 the other bytes and `%` are percent-encoded; of a URL what is not secret: no user info, no query string.
/// `id`, the same. `bytes`, the content. `label`, with `label_from`.
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
    ///
    /// URLs (`s3://`, `gs://`, `az://`, `http://`, `https://`) are taken too. `s3://bucket/photos/**/*.jpg` lists a bucket
    /// page by page, and work starts with the first page. Without a wildcard it is one object, or a list in braces
    /// (`{000..099}`); these, and files on web servers, are read without being listed.
    path: Option<OneOrMany>,
    /// A file with one path or URL a line, beside `path` or instead of it: its files come behind those of `path`. Relative
    /// paths in it start from the pipeline file's folder. Blank lines are passed over, and nothing else is special. It may be
    /// a URL, and be packed by gzip or zstd.
    manifest: Option<String>,
    /// A glob or a list of globs of files that are left out, by the rules of `path`: `photos/thumbs/**`, `**/*-small.jpg`.
    /// For objects it is matched against what comes after the bucket, for web servers after the host.
    exclude: Option<OneOrMany>,
    /// `parent` adds the column `label`: the name of the folder that the file is in.
    label_from: Option<LabelFrom>,
    /// The most bytes of a file; a larger one is a reject `too_large`. Default 1GiB.
    max_file_bytes: Option<Size>,
    /// How objects in stores and files on web servers are reached.
    #[serde(default)]
    store: StoreOptions,
}

/// Where labels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabelFrom {
    /// The name of the folder that a file is in.
    Parent,
}

impl Files {
    fn patterns(&self, base: &Path) -> Result<Option<Patterns>, SpecError> {
        self.path.as_ref().map(|path| Patterns::parse("path", path, base, Braces::Glob)).transpose()
    }

    fn manifest(&self, base: &Path) -> Result<Option<Location>, SpecError> {
        let location = self.manifest.as_ref().map(|manifest| Location::parse(manifest, base)).transpose();
        location.map_err(|error| spec_error(error).at(&["manifest"]))
    }

    /// Lists what the options say.
    fn list(&self, base: &Path, stores: &Stores, cancel: &Cancel, is_resumed: bool) -> Result<FilesList, SpecError> {
        let listed = self.patterns(base)?;
        let listed = listed.map(|patterns| Listed::new(patterns, stores.clone(), cancel.clone(), is_resumed));
        let manifest = self.manifest(base)?.map(|location| Manifest::new(stores.clone(), location, base, cancel));
        Ok(FilesList::new(listed, manifest, Exclude::parse(self.exclude.as_ref(), base)?))
    }
}

impl NodeKind for Files {
    const NAME: &'static str = "source.files";
    const EXAMPLE: &'static str = r#"photos: {kind: source.files, with: {path: "photos/**/*.jpg"}}"#;
    const INCIDENTAL: &'static [&'static str] = &["store"];
}

impl Node for Files {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let patterns = self.patterns(cx.base)?;
        let manifest = self.manifest(cx.base)?;
        Exclude::parse(self.exclude.as_ref(), cx.base)?;
        self.store.check().map_err(|error| spec_error(error).at(&["store", "endpoint"]))?;
        let shown = manifest.as_ref().map(|_| redacted(self.manifest.as_deref().unwrap_or_default()));
        let detail: Vec<_> = patterns.iter().map(Patterns::detail).chain(shown).collect();
        if detail.is_empty() {
            return Err(SpecError::new("either `path` or `manifest` is needed")
                .at(&[])
                .label("write `path: \"photos/**/*.jpg\"`, or `manifest: photos.txt` with one path a line"));
        }
        let mut spec = bytes_source(detail.join(", "));
        // What is in a list is not known yet.
        if manifest.is_some() || patterns.as_ref().is_some_and(Patterns::are_remote) {
            spec = spec.with_readers(REMOTE_READERS);
        }
        match self.label_from {
            Some(LabelFrom::Parent) => spec.with_new("label", ColumnType::Text, Role::Result),
            None => Ok(spec),
        }
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let bad = |error: SpecError| Fault::permanent(error.to_string());
        let (patterns, manifest) = (self.patterns(cx.base).map_err(bad)?, self.manifest(cx.base).map_err(bad)?);
        let stores = Stores::within(self.store.clone(), &cx.cancel);
        if !cx.is_resumed {
            if let Some(patterns) = &patterns {
                patterns.check(&cx.cancel)?;
            }
            if let Some(manifest) = &manifest {
                stores.stat(manifest).map_err(|error| Fault::from(error).help("it is the `manifest`"))?;
            }
        }
        let list = self.list(cx.base, &stores, &cx.cancel, cx.is_resumed).map_err(bad)?;
        // What costs requests is not listed twice.
        let is_local =
            !patterns.as_ref().is_some_and(Patterns::has_buckets) && manifest.as_ref().is_none_or(Location::is_local);
        let no_secrets =
            || Locators { base: cx.base.to_owned(), secrets: [].into(), manifest: None, stores: stores.clone() };
        let locators = patterns.as_ref().map_or_else(no_secrets, |patterns| patterns.locators(&stores));
        let read = ReadFile {
            locators: Locators { manifest, ..locators },
            max_bytes: self.max_file_bytes.map_or(MAX_FILE_BYTES, Size::bytes),
            label: self.label_from,
        };
        // Counted by a walk of its own, which ends when counting is to.
        let (base, cancel) = (cx.base.to_owned(), cx.cancel.clone());
        let counted = if is_local { Some(self.list(&base, &stores, &cancel, true).map_err(bad)?) } else { None };
        Ok(Stage::Source(SourceStage {
            list: Box::new(list),
            reading: Reading::Rows(Arc::new(read)),
            count: counted.map(|counted| Box::new(move |counting: &Counting| counted.count(counting)) as Count),
        }))
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        let is_listed = self.patterns(base).is_ok_and(|patterns| patterns.is_some_and(|patterns| patterns.reads(path)));
        let manifest = self.manifest(base).ok().flatten();
        is_listed || manifest.is_some_and(|manifest| manifest.local_path() == Some(&*normalised(path)))
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

    fn texts(column: &Column, n_rows: usize) -> Vec<String> {
        let Column::Text(text) = column else { panic!("no text") };
        (0..n_rows).map(|row_idx| text.get(row_idx).to_owned()).collect()
    }

    #[test]
    fn a_manifest_names_files_behind_those_of_the_path_and_excludes_hold_for_both() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/1.jpg", "a/thumbs/2.jpg", "b/3.jpg", "b/thumbs/4.jpg", "#5.jpg"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), name).unwrap();
        }
        let list = b"./b//3.jpg\r\n\n  \nb/thumbs/4.jpg\n#5.jpg\nnone.jpg\nftp://u:S3CRET@h/a\n\xff.jpg\n\
            https://h/thumbs/a.jpg?sig=S3CRET\nhttps://u:S3CRET@localhost:1/x/6.jpg?sig=S3CRET";
        fs::write(folder.path().join("list.txt"), list).unwrap();
        let with = "{path: 'a/**/*.jpg', manifest: list.txt, exclude: '**/thumbs/**', label_from: parent, \
                    store: {attempts: 1, timeout: 1s}}";
        let source = source(folder.path(), with);
        let items = source.items(2).unwrap();
        let uris: Vec<_> = items.iter().map(|item| item.uri.as_str()).collect();
        let expected =
            ["a/1.jpg", "b/3.jpg", "#5.jpg", "none.jpg", "ftp://***@h/a", "%FF.jpg", "https://localhost:1/x/6.jpg"];
        assert_eq!(uris, expected);
        assert!(items.iter().all(|item| !item.locator.to_string_lossy().contains("S3CRET")));
        let mapped = source.fetch(&items);
        assert_eq!(mapped.passed, [0, 1, 2]);
        assert_eq!(texts(&mapped.columns[3], 3)[..2], ["a", "b"]);
        assert!(mapped.rejects.iter().all(|(_, reject)| !reject.message.contains("S3CRET")), "{:?}", mapped.rejects);
        assert_eq!(codes(&mapped), [code::NOT_FOUND, code::UNSUPPORTED, code::NOT_FOUND, code::IO]);
        let stage = source.source().unwrap();
        assert_eq!(stage.count.unwrap()(&Counting::default()), Some(7));
        let mut list = stage.list;
        let mut rest = Vec::new();
        list.seek(5).unwrap();
        list.next_items(9, &mut rest).unwrap();
        assert_eq!(rest, items[5..]);
        // The line is not that URL any more.
        fs::write(folder.path().join("list.txt"), [b'x'; 400]).unwrap();
        let reject = &source.fetch(&items[6..]).rejects[0].1;
        assert_eq!(reject.code, code::NOT_FOUND, "{}", reject.message);
    }

    #[test]
    fn a_source_of_nothing_and_a_list_that_is_not_there_are_mistakes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(source(folder.path(), "{}").spec().unwrap_err().message.contains("`path` or `manifest`"));
        let fault = source(folder.path(), "manifest: none.txt").source().map(|_| ()).unwrap_err();
        assert!(fault.message.contains("none.txt") && fault.message.contains("does not exist"), "{}", fault.message);
        assert_eq!(
            source(folder.path(), "{path: a, exclude: ['x', 'a[']}").spec().unwrap_err().option,
            ["exclude", "1"]
        );
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
