//! Where the row is that a reject calls by its uri.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use engine::data::{Reject, code};
use engine::node::Item;
use percent_encoding::percent_decode_str;

use super::form::Form;
use crate::store::{Location, Stores};

/// What a uri stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// A file that is a row.
    File,
    /// All rows of a file.
    Whole,
    /// All rows of a row group.
    Group { container: &'a str, number: usize },
    /// A row of a file.
    Row { container: &'a str, name: &'a str },
}

/// Tells what uris stand for.
pub(super) struct Places {
    pub(super) base: PathBuf,
    pub(super) stores: Stores,
    /// Whether rows of tables can be read: then a table that could not be opened means its rows.
    pub(super) has_tables: bool,
    /// The last file that holds rows: the next row is most likely one of it too.
    last: String,
}

impl Places {
    pub(super) fn new(base: &Path, stores: &Stores, has_tables: bool) -> Self {
        Places { base: base.to_owned(), stores: stores.clone(), has_tables, last: String::new() }
    }

    /// What `uri` stands for. A `#` may stand in the name of a file too, so it is looked what there is, unless the name
    /// before it says what it is.
    pub(super) fn target<'a>(&mut self, uri: &'a str) -> Target<'a> {
        let Some(at) = self.container_len(uri) else {
            return match Form::of_name(uri) {
                Some(Form::Tar | Form::Parquet) => Target::Whole,
                Some(Form::Jsonl | Form::Csv) if self.has_tables => Target::Whole,
                _ => Target::File,
            };
        };
        let (container, name) = (&uri[..at], &uri[at + 1..]);
        if self.last != container {
            container.clone_into(&mut self.last);
        }
        let group = name.strip_prefix("group-").filter(|_| Form::of_name(container) == Some(Form::Parquet));
        match group.and_then(|number| number.parse().ok()) {
            Some(number) => Target::Group { container, number },
            None => Target::Row { container, name },
        }
    }

    /// Where the `#` behind the name of a file that holds rows stands.
    fn container_len(&self, uri: &str) -> Option<usize> {
        let behind = uri.strip_prefix(&*self.last).filter(|_| !self.last.is_empty());
        if behind.is_some_and(|behind| behind.starts_with('#')) {
            return Some(self.last.len());
        }
        let mut marks = uri.match_indices('#').map(|(at, _)| at);
        if let Some(at) = marks.clone().find(|&at| Form::of_name(&uri[..at]).is_some()) {
            return Some(at);
        }
        if Location::is_url(uri) {
            // In what a web server is asked for there is no `#`.
            let is_web = uri.starts_with("http://") || uri.starts_with("https://");
            return marks.find(|&at| is_web || self.is_object(&uri[..at]));
        }
        if self.base.join(uri).exists() {
            return None;
        }
        marks.find(|&at| self.path(&uri[..at]).is_file())
    }

    fn is_object(&self, uri: &str) -> bool {
        Location::parse(uri, &self.base).is_ok_and(|location| self.stores.stat(&location).is_ok())
    }

    fn path(&self, uri: &str) -> PathBuf {
        path(uri, &self.base)
    }
}

/// The local path that a uri was made of. In names that are not UTF-8 other bytes are percent-encoded there.
fn path(uri: &str, base: &Path) -> PathBuf {
    let path = base.join(uri);
    if !uri.contains('%') || path.symlink_metadata().is_ok() {
        return path;
    }
    let decoded = base.join(decoded(uri));
    if decoded.symlink_metadata().is_ok() { decoded } else { path }
}

fn decoded(uri: &str) -> OsString {
    let mut path = Vec::with_capacity(uri.len());
    for (part_idx, part) in uri.split('/').enumerate() {
        if part_idx > 0 {
            path.push(b'/');
        }
        let bytes: Vec<u8> = percent_decode_str(part).collect();
        // A name that is UTF-8 stands there as it is.
        path.extend_from_slice(if std::str::from_utf8(&bytes).is_err() { &bytes } else { part.as_bytes() });
    }
    OsString::from_vec(path)
}

/// The file that a reject calls `uri`, as an item.
pub(super) fn item(uri: &str, base: &Path) -> Result<Item, Reject> {
    let locator = if !Location::is_url(uri) {
        path(uri, base).into_os_string()
    } else if uri.contains("***") {
        let message = format!("`{uri}` is a URL of which something secret was left out: it cannot be asked for again");
        return Err(Reject::new(code::UNSUPPORTED, message));
    } else {
        OsStr::from_bytes(uri.as_bytes()).to_owned()
    };
    Ok(Item { uri: uri.to_owned(), id: None, locator, size_hint: 0 })
}

/// Says of a URL that is refused what may be missing from it.
pub(super) fn with_hint(uri: &str, reject: Reject) -> Reject {
    let is_web = uri.starts_with("http://") || uri.starts_with("https://");
    if !is_web || !matches!(reject.code, code::PERMISSION | code::NOT_FOUND) {
        return reject;
    }
    let message = format!(
        "{}; user info and query strings are not in reject files: if the URL had one, list it in a `manifest` of `source.files`",
        reject.message
    );
    Reject::new(reject.code, message)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::StoreOptions;

    #[test]
    fn uris_are_files_or_rows_by_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a#1.jpg", "table", "odd.jpg"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let row = |container, name| Target::Row { container, name };
        for (uri, expected) in [
            ("a#1.jpg", Target::File),
            ("gone#1.jpg", Target::File),
            ("table#7", row("table", "7")),
            ("gone.tar#d/1#2", row("gone.tar", "d/1#2")),
            ("d#/x.tar#1", row("d#/x.tar", "1")),
            ("https://h/list#3", row("https://h/list", "3")),
            ("s3://b/x.parquet#12", row("s3://b/x.parquet", "12")),
            ("x.parquet#group-3", Target::Group { container: "x.parquet", number: 3 }),
            ("x.tar#group-3", row("x.tar", "group-3")),
            ("x.tar.gz", Target::Whole),
            ("x.csv", Target::File),
            ("odd.jpg", Target::File),
        ] {
            let stores = Stores::new(StoreOptions::default());
            assert_eq!(Places::new(folder.path(), &stores, false).target(uri), expected, "{uri}");
            let has_tables = Places::new(folder.path(), &stores, true).target("x.csv");
            assert_eq!(has_tables, Target::Whole);
        }
    }

    #[test]
    fn names_that_are_not_utf8_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let name = OsStr::from_bytes(b"100%\xff.jpg");
        fs::write(folder.path().join(name), "").unwrap();
        fs::write(folder.path().join("50%25.jpg"), "").unwrap();
        assert_eq!(path("100%25%FF.jpg", folder.path()), folder.path().join(name));
        assert_eq!(path("50%25.jpg", folder.path()), folder.path().join("50%25.jpg"));
        assert_eq!(path("none%FF.jpg", folder.path()), folder.path().join("none%FF.jpg"));
        assert_eq!(item("https://h/a?***", folder.path()).unwrap_err().code, code::UNSUPPORTED);
    }
}
