//! Files that nodes write: no two on one, none that another node reads.

use std::path::{Component, Path, PathBuf};

use super::compile::Draft;
use crate::config::{Mistake, Mistakes};

/// Checks the paths of all nodes against each other.
pub(super) fn check(drafts: &[Draft<'_>], base: &Path, mistakes: &mut Mistakes) {
    let written: Vec<_> = drafts
        .iter()
        .enumerate()
        .flat_map(|(node_idx, draft)| draft.node.writes(base).into_iter().map(move |path| (node_idx, normal(&path))))
        .collect();
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
        if let Some(reader) = drafts.iter().find(|reader| reader.node.reads(base, path)) {
            let message = format!("`{}` writes a file that `{}` reads", draft.name, reader.name);
            mistakes.push(Mistake::at(span, message).label("give it another path"));
        }
    }
}

/// `path` without `.` and `..`, so that equal files compare equal without touching the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            _ => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_compare_equal() {
        assert_eq!(normal(Path::new("a/./b/../out.jsonl")), Path::new("a/out.jsonl"));
        assert_eq!(normal(Path::new("../x")), Path::new("../x"));
    }
}
