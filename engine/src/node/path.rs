//! Comparing paths without looking at the disk.

use std::path::{Component, Path, PathBuf};

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
    fn paths_that_are_written_differently_are_the_same() {
        for (path, expected) in
            [("a/./b/../c", "a/c"), ("./a//b/", "a/b"), ("../a/../../b", "../../b"), ("/../a/..", "/"), ("a/..", "")]
        {
            assert_eq!(normalised(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
