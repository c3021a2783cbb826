//! `source.test_slow`: a listing and a store that take a while.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use engine::data::{Reject, RowMut};
use engine::node::{
    BuildCx, Fault, Fetch, Item, List, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage, Stamp,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::wait::wait_for;
use crate::source::columns::bytes_source;
use crate::source::synthetic::{Numbers, Zeros};

/// Rows as those of `source.synthetic`, which take a while to be listed and fetched.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowSource {
    /// How many.
    count: u64,
    /// Bytes of each.
    #[serde(default)]
    bytes: usize,
    /// How long it takes to list one, in microseconds.
    #[serde(default)]
    micros: u64,
    /// How long it takes to fetch one, in microseconds.
    #[serde(default)]
    fetch_micros: u64,
    /// The listing ends only when this file exists, in the pipeline's folder.
    list_until: Option<PathBuf>,
    /// The last row is fetched only when this file exists, in the pipeline's folder.
    fetch_until: Option<PathBuf>,
}

impl NodeKind for SlowSource {
    const NAME: &'static str = "source.test_slow";
    const EXAMPLE: &'static str = "rows: {kind: source.test_slow, with: {count: 1000, micros: 500}}";
}

impl Node for SlowSource {
    fn spec(&self, _cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(bytes_source(format!("{} slow rows", self.count)))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let n_items = self.count;
        let here = |path: &Option<PathBuf>| path.as_ref().map(|path| cx.base.join(path));
        let numbers = Numbers { next: 0, end: n_items };
        Ok(Stage::Source(SourceStage {
            list: Box::new(SlowList {
                numbers,
                wait: Duration::from_micros(self.micros),
                until: here(&self.list_until),
            }),
            reading: Reading::Rows(Arc::new(SlowFetch {
                zeros: Zeros::new(self.bytes),
                wait: Duration::from_micros(self.fetch_micros),
                last: n_items.saturating_sub(1),
                until: here(&self.fetch_until),
            })),
            count: Some(Box::new(move |_| Some(n_items))),
        }))
    }
}

struct SlowList {
    numbers: Numbers,
    wait: Duration,
    until: Option<PathBuf>,
}

impl List for SlowList {
    /// One at a time: whoever asks for many does not have to wait for the last.
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let max = if self.wait.is_zero() { max } else { max.min(1) };
        std::thread::sleep(self.wait);
        let n_before = items.len();
        self.numbers.next_items(max, items)?;
        if items.len() == n_before {
            wait_for(self.until.as_deref());
        }
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.numbers.seek(index)
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

struct SlowFetch {
    zeros: Zeros,
    wait: Duration,
    last: u64,
    until: Option<PathBuf>,
}

impl Fetch for SlowFetch {
    fn fetch(&self, index: u64, item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        if !self.wait.is_zero() {
            std::thread::sleep(self.wait);
        }
        if index == self.last {
            wait_for(self.until.as_deref());
        }
        self.zeros.fetch(index, item, out)
    }
}
