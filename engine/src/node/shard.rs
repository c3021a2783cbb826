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
        named_with(path, &format!("-{self}"))
    }
}

/// The output `path` with `suffix` before its ending: `labels.jsonl.gz` with `-2` is `labels-2.jsonl.gz`.
pub fn named_with(path: &str, suffix: &str) -> String {
    let (folder, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
    let (stem, extension) = name.split_at(stem_len(name));
    format!("{folder}{stem}{suffix}{extension}")
}

/// The file name `name` as that of a numbered part: what is before the number, the number, and the ending.
pub fn numbered(name: &str) -> Option<(&str, u32, &str)> {
    let (stem, _) = name.split_at(stem_len(name));
    // What lies beside an output is named after it.
    let stem = stem.strip_suffix(".ids").unwrap_or(stem);
    let extension = &name[stem.len()..];
    let (stem, digits) = stem.rsplit_once('-')?;
    let is_number = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((stem, digits.parse().ok().filter(|_| is_number)?, extension))
}

fn stem_len(name: &str) -> usize {
    let stem_of = |name: &str| name.rfind('.').filter(|&dot| dot > 0);
    match stem_of(name) {
        Some(dot) if PACKED.contains(&&name[dot + 1..]) => stem_of(&name[..dot]).unwrap_or(dot),
        Some(dot) => dot,
        None => name.len(),
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

    #[test]
    fn the_number_of_a_part_reads_back() {
        let check = |name: &str, expected| assert_eq!(numbered(name), expected, "{name}");
        check("e-00012.parquet", Some(("e", 12, ".parquet")));
        check("a-b-123456.jsonl.gz", Some(("a-b", 123_456, ".jsonl.gz")));
        check("f-00001.ids.jsonl", Some(("f", 1, ".ids.jsonl")));
        check("e-0012.parquet", None);
        check("e-00003-of-00016.parquet", Some(("e-00003-of", 16, ".parquet")));
        check("e.parquet", None);
        assert_eq!(numbered(&named_with("e.tar.zst", "-00007")), Some(("e", 7, ".tar.zst")));
    }
}
