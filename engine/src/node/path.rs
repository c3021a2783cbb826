//! Comparing paths without looking at the disk.

use std::path::{Component, Path, PathBuf};

/// Whether `path` is a URL: an output there is an object of a store. Purely by the text.
pub fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|path| path.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.'))
    })
}

/// `path` without `.`, and without `..` where the folder before it is known. Purely by the text.
pub fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir if normal.has_root() => {}
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme() {
        for (path, expected) in [
            ("s3://b/k", true),
            ("http://h", true),
            ("a/b://c", false),
            ("out/x", false),
            ("1://", false),
            ("://x", false),
        ] {
            assert_eq!(is_url(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn paths_that_are_written_differently_are_the_same() {
        for (path, expected) in
            [("a/./b/../c", "a/c"), ("./a//b/", "a/b"), ("../a/../../b", "../../b"), ("/../a/..", "/"), ("a/..", "")]
        {
            assert_eq!(normalised(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
