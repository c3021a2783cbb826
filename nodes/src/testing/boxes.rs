//! `source.test_boxes`: items that hold rows, of sizes that vary.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use bytes::Bytes;
use engine::data::{Reject, RowMut, code};
use engine::node::{
    BuildCx, Entries, Entry, Fault, Item, List, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError,
    Stage, Unpack,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::rows::hash;
use crate::source::columns::{BYTES, bytes_source};

/// Boxes of rows: box `b` has a number of rows that depends on it, from none on.
///
/// # Input
/// None.
///
/// # Output
/// `uri`: `box/0#0`, `box/0#1`, … `id`, the same. `bytes`, empty.
///
/// # Example
/// ```yaml
/// rows: {kind: source.test_boxes, with: {boxes: 20, most: 30}}
/// ```
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Boxes {
    /// How many boxes.
    boxes: u64,
    /// The most rows of one.
    most: u64,
    /// Boxes that are open at once. Default 1.
    #[serde(default = "one")]
    open: usize,
    /// How long each row takes to be read.
    #[serde(default)]
    micros: u64,
    /// Every so many boxes one cannot be opened, and another one panics in its middle; 0 is none.
    #[serde(default)]
    bad_every: u64,
}

fn one() -> usize {
    1
}

/// How many rows box number `number` has of at most `most`.
pub fn rows_in_box(number: u64, most: u64) -> u64 {
    hash(17, number) % (most + 1)
}

/// The uris of all rows that [`Boxes`] gives, bad boxes aside.
pub fn box_uris(boxes: u64, most: u64) -> Vec<String> {
    (0..boxes).flat_map(|number| (0..rows_in_box(number, most)).map(move |row| format!("box/{number}#{row}"))).collect()
}

impl NodeKind for Boxes {
    const NAME: &'static str = "source.test_boxes";
    const EXAMPLE: &'static str = "rows: {kind: source.test_boxes, with: {boxes: 20, most: 30}}";
}

impl Node for Boxes {
    fn spec(&self, _cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(bytes_source(format!("{} boxes", self.boxes)))
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Source(SourceStage {
            list: Box::new(Numbers { next: 0, end: self.boxes }),
            reading: Reading::Unpacked(Arc::new(self.clone())),
            count: None,
        }))
    }
}

struct Numbers {
    next: u64,
    end: u64,
}

impl List for Numbers {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let end = self.end.min(self.next + max as u64);
        let item = |number| {
            let uri = format!("box/{number}");
            Item { locator: (&uri).into(), uri, id: None, size_hint: 0 }
        };
        items.extend((self.next..end).map(item));
        self.next = end;
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.next = index.min(self.end);
        Ok(())
    }
}

impl Unpack for Boxes {
    fn open(&self, _index: u64, item: &Item, skip: u32) -> Result<Box<dyn Entries>, Reject> {
        let number = item.uri.rsplit('/').next().and_then(|number| number.parse().ok());
        let number: u64 = number.ok_or_else(|| Reject::new(code::CORRUPT, "a box without a number"))?;
        if self.bad_every > 0 && number % self.bad_every == 1 {
            return Err(Reject::new(code::CORRUPT, format!("`{}` cannot be opened", item.uri)));
        }
        let rows = rows_in_box(number, self.most);
        let panics = self.bad_every > 0 && number % self.bad_every == 2;
        let panic_at = panics.then_some(rows / 2);
        Ok(Box::new(Rows { number, next: skip.into(), rows, panic_at, wait: Duration::from_micros(self.micros) }))
    }

    fn read(&self, _item: &Item, _entry: &Entry, out: &mut RowMut<'_>) -> Result<(), Reject> {
        out.bytes(BYTES, Bytes::new());
        Ok(())
    }

    fn n_open(&self) -> usize {
        self.open
    }
}

struct Rows {
    number: u64,
    next: u64,
    rows: u64,
    panic_at: Option<u64>,
    wait: Duration,
}

impl Entries for Rows {
    fn next_entry(&mut self) -> Option<Entry> {
        if self.next >= self.rows {
            return None;
        }
        sleep(self.wait);
        assert!(self.panic_at != Some(self.next), "there is a hole in the box");
        let uri = format!("box/{}#{}", self.number, self.next);
        self.next += 1;
        Some(Entry { uri, id: None, bytes: 0, content: Ok(Box::new(())) })
    }
}
