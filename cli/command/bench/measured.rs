//! Nodes of a pipeline as they are measured: sources start over until the time is up, sinks only count.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::data::{Batch, RowPos};
use engine::node::{
    Advice, BuildCx, Durable, Fault, Item, List, Node, NodeSpec, Objects, Parts, Sealed, Sink, SinkPos, SpecCx,
    SpecError, Stage,
};

use super::clock::Clock;

/// A node in place of `inner`.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) inner: Arc<dyn Node>,
    pub(super) node_idx: usize,
    pub(super) part: Part,
    pub(super) clock: Arc<Clock>,
}

/// What the node is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A source, of which so many items are repeated, or all.
    Source { limit: Option<u64> },
    /// The end.
    Sink,
}

impl Node for Measured {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        self.inner.spec(cx)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let Part::Source { limit } = self.part else {
            return Ok(Stage::Sink(Box::new(Counting { node_idx: self.node_idx, clock: self.clock.clone() })));
        };
        let mut stage = self.inner.build(cx)?;
        if let Stage::Source(source) = &mut stage {
            let inner = std::mem::replace(&mut source.list, Box::new(Nothing));
            source.list = Box::new(Repeating { inner, at: 0, limit, clock: self.clock.clone() });
            source.count = None;
        }
        Ok(stage)
    }

    fn advice(&self, base: &Path) -> Result<Option<Advice>, SpecError> {
        self.inner.advice(base)
    }

    fn asks_advice(&self) -> bool {
        self.inner.asks_advice()
    }

    fn batch_size(&self) -> Option<usize> {
        self.inner.batch_size()
    }

    fn joins(&self) -> bool {
        self.inner.joins()
    }

    fn writes(&self, _base: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        None
    }

    fn spools(&self) -> bool {
        false
    }

    fn parts(&self) -> Parts {
        Parts::Apart
    }

    fn tidy(&self, _base: &Path, _outputs: &[Sealed]) -> Result<(), Fault> {
        Ok(())
    }

    fn reads(&self, base: &Path, path: &Path) -> bool {
        self.inner.reads(base, path)
    }
}

/// A listing that starts over at its end, until the time is up.
struct Repeating {
    inner: Box<dyn List>,
    /// Items since it began.
    at: u64,
    limit: Option<u64>,
    clock: Arc<Clock>,
}

impl List for Repeating {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        if self.clock.is_over() {
            return Ok(());
        }
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.at));
        let before = items.len();
        self.inner.next_items(max.min(usize::try_from(left).unwrap_or(max)), items)?;
        if items.len() == before && self.at > 0 {
            self.inner.seek(0)?;
            self.at = 0;
            return self.next_items(max, items);
        }
        self.at += (items.len() - before) as u64;
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.at = index;
        self.inner.seek(index)
    }

    fn is_fixed(&self) -> bool {
        self.inner.is_fixed()
    }
}

/// What stands for a listing while it is wrapped.
struct Nothing;

impl List for Nothing {
    fn next_items(&mut self, _max: usize, _items: &mut Vec<Item>) -> Result<(), Fault> {
        Ok(())
    }

    fn seek(&mut self, _index: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// A sink that keeps nothing.
struct Counting {
    node_idx: usize,
    clock: Arc<Clock>,
}

impl Sink for Counting {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.clock.count(self.node_idx, batch.n_rows());
        Ok(())
    }

    fn cut(&mut self, _upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        Ok((SinkPos::default(), Box::new(|| Ok(()))))
    }

    fn resume(&mut self, _at: &SinkPos) -> Result<u64, Fault> {
        Ok(0)
    }

    fn seal(self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        Ok(Vec::new())
    }

    fn unfinished(&self) -> Option<PathBuf> {
        None
    }
}
