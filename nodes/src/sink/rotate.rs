//! When a part of an output is complete, and how far the one that is being written has come.

use std::num::NonZeroU64;

use engine::config::Size;
use engine::node::{Fault, SinkPos, SpecError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of an output instead of one file: `{rows: 100000}`, `{bytes: 512MiB}`, or both. A part ends with the row that
/// reaches the one or the other. Each has a number in its name: `out/e.parquet` is `out/e-00000.parquet`, and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotate {
    /// Rows of a part.
    pub rows: Option<NonZeroU64>,
    /// Bytes of a part, before they are compressed.
    pub bytes: Option<Size>,
}

impl Rotate {
    /// Whether a part is complete.
    pub(super) fn is_full(&self, rows: u64, size: u64) -> bool {
        self.rows.is_some_and(|most| rows >= most.get()) || self.bytes.is_some_and(|most| size >= most.bytes())
    }

    /// Finds what makes no sense in the option `rotate` of an output to `path`.
    pub(super) fn check(rotate: Option<&Rotate>, path: &str) -> Result<(), SpecError> {
        let Some(rotate) = rotate else { return Ok(()) };
        if path == engine::durable::STDOUT {
            let error = SpecError::new("standard output has no parts").at(&["rotate"]);
            return Err(error.label("leave it out, or write to a file"));
        }
        if rotate.rows.is_none() && rotate.bytes.is_none() {
            let error = SpecError::new("`rotate` does not say when a part is complete").at(&["rotate"]);
            return Err(error.label("say `rows` or `bytes`"));
        }
        if rotate.bytes.is_some_and(|bytes| bytes.bytes() == 0) {
            return Err(SpecError::new("a part has at least 1 byte").at(&["rotate", "bytes"]));
        }
        Ok(())
    }
}

/// How far an output of parts has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Rows in all parts.
    pub(super) rows: u64,
    /// Bytes of the parts that are complete.
    pub(super) closed_bytes: u64,
    /// The part that is being written.
    pub(super) part: Part,
}

/// The part that is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Its number, from 0 on.
    pub(super) part: u32,
    /// Its rows.
    pub(super) rows: u64,
    /// Its bytes before they are compressed: what `rotate` goes by.
    pub(super) size: u64,
}

/// What a position says of an output of parts.
#[derive(Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    part: Part,
    /// Bytes of the part in its file.
    bytes: u64,
}

impl Progress {
    /// One more row of so many bytes.
    pub(super) fn add_row(&mut self, size: u64) {
        self.rows += 1;
        self.part.rows += 1;
        self.part.size += size;
    }

    /// The part is complete with so many bytes.
    pub(super) fn close(&mut self, bytes: u64) {
        self.closed_bytes += bytes;
        self.part = Part { part: self.part.part + 1, ..Part::default() };
    }

    /// Whether the part would be one of no rows behind others.
    pub(super) fn is_superfluous(&self) -> bool {
        self.part.part > 0 && self.part.rows == 0
    }

    /// The position where the part's file has `bytes` bytes.
    pub(super) fn position(&self, bytes: u64) -> Result<SinkPos, Fault> {
        let more = serde_json::to_value(Note { part: self.part, bytes });
        let more = more.map_err(|error| Fault::bug(format!("a position is no JSON: {error}")))?;
        Ok(SinkPos { rows: self.rows, bytes: self.closed_bytes + bytes, more })
    }

    /// What `at` says, and how many bytes the file of its part has there. A position of an output without parts says
    /// nothing of them.
    pub(super) fn at(at: &SinkPos) -> Result<(Progress, u64), Fault> {
        if at.more.is_null() {
            let part = Part { part: 0, rows: at.rows, size: at.bytes };
            return Ok((Progress { rows: at.rows, closed_bytes: 0, part }, at.bytes));
        }
        let bad =
            || Fault::permanent("the journal does not say where the output stood").help("start afresh with `--fresh`");
        let Note { part, bytes } = serde_json::from_value(at.more.clone()).map_err(|_| bad())?;
        let closed_bytes = at.bytes.checked_sub(bytes).ok_or_else(bad)?;
        Ok((Progress { rows: at.rows, closed_bytes, part }, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_the_row_that_reaches_either_limit() {
        let rotate: Rotate = serde_yaml::from_str("{rows: 3, bytes: 1KiB}").unwrap();
        assert!(!rotate.is_full(2, 1023));
        assert!(rotate.is_full(3, 0) && rotate.is_full(1, 1024));
        assert!(serde_yaml::from_str::<Rotate>("{rows: 0}").is_err());
    }

    #[test]
    fn what_makes_no_parts_is_a_mistake() {
        let check = |rotate: &str, path: &str| {
            let rotate: Rotate = serde_yaml::from_str(rotate).unwrap();
            Rotate::check(Some(&rotate), path).map_err(|error| error.message)
        };
        assert_eq!(check("{rows: 1}", "o.jsonl"), Ok(()));
        assert_eq!(check("{}", "o.jsonl").unwrap_err(), "`rotate` does not say when a part is complete");
        assert_eq!(check("{bytes: 0}", "o.jsonl").unwrap_err(), "a part has at least 1 byte");
        assert_eq!(check("{rows: 1}", "-").unwrap_err(), "standard output has no parts");
    }

    #[test]
    fn a_position_reads_back_as_the_progress_that_it_was_made_of() {
        let part = Part { part: 2, rows: 7, size: 900 };
        let progress = Progress { rows: 207, closed_bytes: 5_000, part };
        let pos = progress.position(450).unwrap();
        assert_eq!((pos.rows, pos.bytes), (207, 5_450));
        assert_eq!(Progress::at(&pos).unwrap(), (progress, 450));
        let whole = SinkPos { rows: 4, bytes: 90, ..SinkPos::default() };
        assert_eq!(Progress::at(&whole).unwrap().1, 90);
        assert!(Progress::at(&SinkPos { bytes: 10, ..pos }).is_err());
    }
}
