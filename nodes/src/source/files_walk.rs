//! Walking folders in a fixed order with the memory of one folder a level.
//!
//! Depth first; the entries of one folder in byte order, a folder's name taken with its `/`: the order in which object
//! stores list the same names.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::{Cancel, Item, normalised};

use super::files_glob::{Glob, Places};

/// A walk over all that a list of globs matches, in the order of the list, each path once.
pub(super) struct Walk {
    base: PathBuf,
    globs: Arc<[Glob]>,
    /// The globs' prefixes as normalised paths.
    roots: Vec<PathBuf>,
    n_begun: usize,
    /// The number of the last glob that is walked, and one more.
    end: usize,
    /// The folders from the prefix down to where the walk is.
    folders: Vec<Folder>,
    cancel: Cancel,
}

struct Folder {
    path: PathBuf,
    uri: String,
    /// Device and inode, by which a loop of links is seen.
    identity: (u64, u64),
    entries: std::vec::IntoIter<Entry>,
}

struct Entry {
    name: OsString,
    places: Places,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    File,
    Folder,
}

impl Walk {
    /// A walk from `base`, the pipeline file's folder. It ends early when the run drains.
    pub(super) fn new(base: &Path, globs: Arc<[Glob]>, cancel: Cancel) -> Self {
        let roots = globs.iter().map(|glob| normalised(&base.join(&glob.prefix))).collect();
        Walk { base: base.to_owned(), end: globs.len(), globs, roots, n_begun: 0, folders: Vec::new(), cancel }
    }

    /// A walk over what glob `number` matches and none before it does.
    pub(super) fn of_glob(base: &Path, globs: Arc<[Glob]>, number: usize, cancel: Cancel) -> Self {
        Walk { n_begun: number, end: number + 1, ..Walk::new(base, globs, cancel) }
    }

    /// The next path that matches. A folder that cannot be read is one, so that it becomes a reject.
    pub(super) fn next_item(&mut self) -> Option<Item> {
        while !self.cancel.is_draining() {
            let Some(folder) = self.folders.last_mut() else {
                let begun = self.begin_glob()?;
                if begun.is_some() {
                    return begun;
                }
                continue;
            };
            let Some(entry) = folder.entries.next() else {
                self.folders.pop();
                continue;
            };
            let path = folder.path.join(&entry.name);
            let uri = join_uri(&folder.uri, &entry.name);
            let glob = &self.globs[self.n_begun - 1];
            let listed = glob.accepts(entry.places) && (entry.form == Form::File || glob.has_extension);
            let unreadable = match entry.form {
                Form::Folder if glob.leads_on(entry.places) => self.enter(path.clone(), &uri, entry.places).is_err(),
                _ => false,
            };
            if (listed || unreadable) && !self.was_listed(&path, unreadable) {
                return Some(self.item(uri, &path));
            }
        }
        None
    }

    /// Enters the next glob's prefix: `None` if there is no further glob, an item if the prefix cannot be read.
    fn begin_glob(&mut self) -> Option<Option<Item>> {
        let glob = self.globs[..self.end].get(self.n_begun)?;
        let (prefix, start) = (glob.prefix.clone(), glob.start());
        self.n_begun += 1;
        let mut root = self.base.join(&prefix);
        if root.as_os_str().is_empty() {
            root.push(".");
        }
        match self.enter(root.clone(), &prefix, start) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Some((!self.was_listed(&root, true)).then(|| self.item(prefix, &root)))
            }
            _ => Some(None),
        }
    }

    /// Reads a folder and makes it the one that the walk is in, unless it is one that the walk came through.
    fn enter(&mut self, path: PathBuf, uri: &str, places: Places) -> std::io::Result<()> {
        let glob = &self.globs[self.n_begun - 1];
        let metadata = fs::metadata(&path)?;
        let identity = (metadata.dev(), metadata.ino());
        if self.folders.iter().any(|folder| folder.identity == identity) {
            return Ok(());
        }
        let mut entries = match glob.only_name(places) {
            Some(name) => named_entry(glob, places, &path, name).into_iter().collect(),
            None => read_entries(glob, places, &path, &self.cancel)?,
        };
        entries.sort_unstable_by(Entry::order);
        self.folders.push(Folder { path, uri: uri.to_owned(), identity, entries: entries.into_iter() });
        Ok(())
    }

    /// The item at `path`, which a later run finds from `base` wherever it is started.
    fn item(&self, uri: String, path: &Path) -> Item {
        let locator = path.strip_prefix(&self.base).unwrap_or(path).into();
        Item { uri, id: None, locator, size_hint: 0 }
    }

    /// Whether an earlier glob lists `path` too.
    fn was_listed(&self, path: &Path, unreadable: bool) -> bool {
        let n_earlier = self.n_begun - 1;
        if n_earlier == 0 {
            return false;
        }
        let path = normalised(path);
        self.globs[..n_earlier].iter().zip(&self.roots).any(|(glob, root)| {
            let places = glob.places_of(root, &path);
            glob.accepts(places) || (unreadable && glob.leads_on(places))
        })
    }
}

impl Entry {
    fn order(&self, other: &Entry) -> Ordering {
        let (a, b) = (self.name.as_bytes(), other.name.as_bytes());
        let n_common = a.len().min(b.len());
        let tail = |entry: &Entry, name: &[u8]| match name.get(n_common) {
            Some(&byte) => Some(byte),
            None => (entry.form == Form::Folder).then_some(b'/'),
        };
        a[..n_common].cmp(&b[..n_common]).then_with(|| tail(self, a).cmp(&tail(other, b))).then_with(|| a.cmp(b))
    }
}

/// The entries of a folder that match or lead on.
fn read_entries(glob: &Glob, places: Places, path: &Path, cancel: &Cancel) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if cancel.is_draining() {
            break;
        }
        let name = entry.file_name();
        let places = glob.step(places, &name);
        if places.is_empty() {
            continue;
        }
        let form = match entry.file_type()? {
            kind if kind.is_dir() => Form::Folder,
            kind if kind.is_symlink() => form_of(&entry.path()),
            _ => Form::File,
        };
        if is_wanted(glob, places, form) {
            entries.push(Entry { name, places, form });
        }
    }
    Ok(entries)
}

/// The entry called `name`, found without reading the folder.
fn named_entry(glob: &Glob, places: Places, folder: &Path, name: &str) -> Option<Entry> {
    let path = folder.join(name);
    let places = glob.step(places, OsStr::new(name));
    let form = match fs::symlink_metadata(&path) {
        Ok(_) => form_of(&path),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
        // It cannot even be looked at: taken for what the glob wants, so that reading it says why.
        Err(_) if glob.accepts(places) => Form::File,
        Err(_) => Form::Folder,
    };
    is_wanted(glob, places, form).then(|| Entry { name: name.into(), places, form })
}

fn is_wanted(glob: &Glob, places: Places, form: Form) -> bool {
    match form {
        Form::File => glob.accepts(places),
        Form::Folder => glob.leads_on(places) || (glob.accepts(places) && glob.has_extension),
    }
}

/// What a path is behind its links; a broken link is a file, one that cannot be read.
fn form_of(path: &Path) -> Form {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Form::Folder,
        _ => Form::File,
    }
}

/// `name` below `folder`. Where a name is not UTF-8, the bytes that are not are percent-encoded, and its `%`.
pub(super) fn join_uri(folder: &str, name: &OsStr) -> String {
    let mut uri = String::with_capacity(folder.len() + 1 + name.len());
    uri.push_str(folder);
    if !folder.is_empty() && !folder.ends_with('/') {
        uri.push('/');
    }
    match name.to_str() {
        Some(name) => uri.push_str(name),
        None => {
            for chunk in name.as_bytes().utf8_chunks() {
                uri.push_str(&chunk.valid().replace('%', "%25"));
                chunk.invalid().iter().for_each(|&byte| uri.push_str(percent_encoding::percent_encode_byte(byte)));
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    /// The uris that the globs list.
    fn walk(base: &Path, globs: &[&str]) -> Vec<String> {
        let globs = globs.iter().map(|glob| Glob::parse(glob).unwrap()).collect();
        let mut walk = Walk::new(base, globs, Cancel::new());
        std::iter::from_fn(|| walk.next_item()).map(|item| item.uri).collect()
    }

    /// A folder with these files, and folders where a name ends in `/`.
    fn tree(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !name.ends_with('/') {
                fs::write(path, name).unwrap();
            }
        }
        folder
    }

    #[test]
    fn the_order_is_that_of_the_bytes_of_whole_paths() {
        let names = ["a/z.txt", "a-b.txt", "a.txt", "a0.txt", "B.txt", "a/b/c.txt", "a/b.txt", "ä.txt"];
        let folder = tree(&names);
        let mut expected = names;
        expected.sort_unstable_by_key(|name| name.as_bytes());
        assert_eq!(walk(folder.path(), &["**/*.txt"]), expected);
        // `-` and `.` are before `/`, and `0` is behind it.
        assert_eq!(expected, ["B.txt", "a-b.txt", "a.txt", "a/b.txt", "a/b/c.txt", "a/z.txt", "a0.txt", "ä.txt"]);
    }

    #[test]
    fn globs_come_in_the_order_written_and_a_path_only_once() {
        let folder = tree(&["a/1.jpg", "a/2.png", "b/3.jpg", "b/4.png"]);
        let globs = ["b/*.jpg", "**/*.png", "./a/../b/*", "**/*.jpg", "a/1.jpg"];
        assert_eq!(walk(folder.path(), &globs), ["b/3.jpg", "a/2.png", "b/4.png", "a/1.jpg"]);
    }

    #[test]
    fn a_folder_is_listed_only_if_the_glob_ends_in_an_extension() {
        let folder = tree(&["x.jpg/in.jpg", "y.jpg", "z/"]);
        assert_eq!(walk(folder.path(), &["*.jpg"]), ["x.jpg", "y.jpg"]);
        assert_eq!(walk(folder.path(), &["*"]), ["y.jpg"]);
        assert_eq!(walk(folder.path(), &["**/*.jpg"]), ["x.jpg", "x.jpg/in.jpg", "y.jpg"]);
    }

    #[test]
    fn links_to_folders_are_followed_and_loops_end() {
        let folder = tree(&["a/b/1.txt"]);
        symlink(folder.path().join("a"), folder.path().join("a/b/up")).unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        symlink("self", folder.path().join("self")).unwrap();
        assert_eq!(walk(folder.path(), &["**/*.txt"]), ["a/b/1.txt", "link/b/1.txt"]);
    }

    #[test]
    fn broken_links_are_listed() {
        let folder = tree(&[]);
        symlink("nowhere", folder.path().join("x.jpg")).unwrap();
        symlink("loop.jpg", folder.path().join("loop.jpg")).unwrap();
        assert_eq!(walk(folder.path(), &["*.jpg"]), ["loop.jpg", "x.jpg"]);
        assert_eq!(walk(folder.path(), &["x.jpg"]), ["x.jpg"]);
    }

    #[test]
    fn uris_are_as_one_would_write_them() {
        let folder = tree(&["in/a.txt", "b.txt"]);
        let base = folder.path().join("in");
        assert_eq!(walk(&base, &["./*.txt"]), ["a.txt"]);
        assert_eq!(walk(&base, &["../*.txt"]), ["../b.txt"]);
        let absolute = format!("{}/**", folder.path().display());
        assert_eq!(
            walk(&base, &[&absolute]),
            [format!("{}/b.txt", folder.path().display()), format!("{}/in/a.txt", folder.path().display())]
        );
    }

    #[test]
    fn names_that_are_not_utf8_are_percent_encoded_in_their_bad_bytes_only() {
        let folder = tree(&["50%.txt", "d/"]);
        let name = OsStr::from_bytes(b"d/1%-\xff-\xc3\xa4.txt");
        fs::write(folder.path().join(name), "").unwrap();
        let globs = [Glob::parse("**").unwrap()].into();
        let mut walk = Walk::new(folder.path(), globs, Cancel::new());
        let items: Vec<_> = std::iter::from_fn(|| walk.next_item()).collect();
        assert_eq!(items[0].uri, "50%.txt");
        assert_eq!(items[1].uri, "d/1%25-%FF-ä.txt");
        assert!(fs::read(folder.path().join(&items[1].locator)).is_ok());
    }

    #[test]
    fn a_literal_part_is_looked_up_in_a_folder_without_listing_it() {
        let folder = tree(&["a/images/1.jpg", "a/labels/1.jpg", "b/images/2.jpg", "c/3.jpg"]);
        assert_eq!(walk(folder.path(), &["*/images/*.jpg"]), ["a/images/1.jpg", "b/images/2.jpg"]);
        assert_eq!(walk(folder.path(), &["a/images"]), [] as [&str; 0]);
        assert_eq!(walk(folder.path(), &["a/nothing/*", "a/images/1.jpg/x"]), [] as [&str; 0]);
    }

    #[test]
    fn a_draining_run_ends_the_walk() {
        let folder = tree(&["1.txt", "2.txt"]);
        let cancel = Cancel::new();
        let mut walk = Walk::new(folder.path(), [Glob::parse("*").unwrap()].into(), cancel.clone());
        assert!(walk.next_item().is_some());
        cancel.drain();
        assert!(walk.next_item().is_none());
    }

    /// All files below `folder`, by a plain walk.
    fn files_below(folder: &Path, uri: &str, files: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let uri = format!("{uri}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => files_below(&entry.path(), &format!("{uri}/"), files),
                false => files.push(uri),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_lists_what_a_plain_walk_finds_and_whole_paths_match(
            names in prop::collection::vec("[ab-]{1,2}(/[ab0]{1,2}){0,3}(\\.t)?", 1..20),
            globs in prop::collection::vec(
                (prop::collection::vec(prop::sample::select(&["**", "*", "a", "b?", "[ab]*", "{a,ab}"][..]), 0..4),
                 prop::sample::select(&["*", "**", "a*", "*.t", "b", "?0"][..])),
                1..4,
            ),
        ) {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                let path = folder.path().join(name);
                // A name may be both a file's and a folder's: the first one stays.
                if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
                    fs::write(path, "").unwrap();
                }
            }
            let mut files = Vec::new();
            files_below(folder.path(), "", &mut files);
            files.sort();
            let mut expected: Vec<String> = Vec::new();
            let globs: Vec<_> = globs.iter().map(|(parts, last)| [&parts[..], &[*last]].concat().join("/")).collect();
            for glob in &globs {
                let whole = globset::GlobBuilder::new(glob).literal_separator(true).build().unwrap().compile_matcher();
                let new: Vec<_> = files.iter().filter(|file| whole.is_match(file) && !expected.contains(file)).collect();
                let new: Vec<String> = new.into_iter().cloned().collect();
                expected.extend(new);
            }
            let globs: Vec<_> = globs.iter().map(String::as_str).collect();
            prop_assert_eq!(walk(folder.path(), &globs), expected);
        }
    }
}
