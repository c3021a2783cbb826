//! A part of a run that is a run of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Shard `index` of `of`: one of several slices of every source's listing, with outputs of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// Which one, from 0 on.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// Endings that go with the one before them.
const PACKED: [&str; 2] = ["gz", "zst"];

impl Shard {
    /// The shard's own name for the output `path`: `out/labels.jsonl` is `out/labels-00003-of-00016.jsonl`.
    pub fn name(self, path: &str) -> String {
        let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
        let stem_of = |name: &str| name.rfind('.').filter(|&dot| dot > 0);
        let end = match stem_of(name) {
            Some(dot) if PACKED.contains(&&name[dot + 1..]) => stem_of(&name[..dot]).unwrap_or(dot),
            Some(dot) => dot,
            None => name.len(),
        };
        let (stem, extension) = name.split_at(end);
        let slash = if path.contains('/') { "/" } else { "" };
        format!("{folder}{slash}{stem}-{self}{extension}")
    }
}

/// `00003-of-00016`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05}-of-{:05}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_its_own_name_for_each_output() {
        let shard = Shard { index: 3, of: 16 };
        let check = |path: &str, expected: &str| assert_eq!(shard.name(path), expected);
        check("out/labels.jsonl", "out/labels-00003-of-00016.jsonl");
        check("labels.v2.jsonl.gz", "labels.v2-00003-of-00016.jsonl.gz");
        check("/data.d/out", "/data.d/out-00003-of-00016");
        check("a/.hidden", "a/.hidden-00003-of-00016");
        check(".gz", ".gz-00003-of-00016");
        check("x.gz", "x-00003-of-00016.gz");
    }
}
