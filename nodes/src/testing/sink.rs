//! `sink.test_slow`: a disk that cannot keep up, or fills up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::data::{Batch, RowPos};
use engine::node::{
    BuildCx, Durable, Fault, Node, NodeKind, NodeSpec, Objects, Parts, Sealed, Sink, SinkPos, SpecCx, SpecError, Stage,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::wait::wait_for;
use crate::sink::SinkStore;
use crate::sink::jsonl::{Jsonl, JsonlSink};
use crate::sink::rotate::Rotate;
use crate::store::StoreOptions;

/// Writes as `sink.jsonl` does, and waits with each row.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowSink {
    /// The file to write.
    path: String,
    /// The columns to write.
    columns: Option<Vec<String>>,
    /// How long a row takes, in microseconds.
    #[serde(default)]
    micros: u64,
    /// Rows that are written before it fails.
    fault_after: Option<u64>,
    /// Several files instead of one.
    rotate: Option<Rotate>,
    /// How the store of a `path` that is a URL is reached.
    #[serde(default)]
    #[schemars(with = "StoreOptions")]
    store: SinkStore,
    /// It writes nothing before this file exists, in the pipeline's folder.
    until: Option<PathBuf>,
}

impl SlowSink {
    fn jsonl(&self) -> Jsonl {
        let (path, columns, store) = (self.path.clone(), self.columns.clone(), self.store.clone());
        Jsonl { path, columns, compression: None, rotate: self.rotate, store }
    }
}

impl NodeKind for SlowSink {
    const NAME: &'static str = "sink.test_slow";
    const EXAMPLE: &'static str = "out: {kind: sink.test_slow, with: {path: out.jsonl, micros: 500}}";
}

impl Node for SlowSink {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        self.jsonl().spec(cx)
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let inner = Box::new(self.jsonl().writer(cx)?);
        let options = SlowSink { until: self.until.as_ref().map(|path| cx.base.join(path)), ..self.clone() };
        Ok(Stage::Sink(Box::new(Slow { inner, options, n_rows: 0 })))
    }

    fn writes(&self, base: &Path) -> Vec<PathBuf> {
        self.jsonl().writes(base)
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        self.jsonl().objects()
    }

    fn spools(&self) -> bool {
        self.jsonl().spools()
    }

    fn parts(&self) -> Parts {
        self.jsonl().parts()
    }

    fn tidy(&self, base: &Path, outputs: &[Sealed]) -> Result<(), Fault> {
        self.jsonl().tidy(base, outputs)
    }
}

struct Slow {
    inner: Box<JsonlSink>,
    options: SlowSink,
    n_rows: u64,
}

impl Sink for Slow {
    fn write(&mut self, batch: &Batch) -> Result<(), Fault> {
        wait_for(self.options.until.as_deref());
        self.n_rows += batch.n_rows() as u64;
        if self.options.fault_after.is_some_and(|after| self.n_rows > after) {
            return Err(Fault::transient("the sink fails on purpose"));
        }
        std::thread::sleep(Duration::from_micros(self.options.micros * batch.n_rows() as u64));
        self.inner.write(batch)
    }

    fn cut(&mut self, upto: RowPos) -> Result<(SinkPos, Durable), Fault> {
        self.inner.cut(upto)
    }

    fn closed(&mut self) -> Vec<Sealed> {
        self.inner.closed()
    }

    fn resume(&mut self, at: &SinkPos) -> Result<u64, Fault> {
        self.n_rows = at.rows;
        self.inner.resume(at)
    }

    fn seal(self: Box<Self>) -> Result<Vec<Sealed>, Fault> {
        self.inner.seal()
    }

    fn unfinished(&self) -> Option<PathBuf> {
        self.inner.unfinished()
    }
}
