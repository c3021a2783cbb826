//! `transform.test_fault`: a node that fails in the middle of a run.

use engine::data::{Batch, RowPos};
use engine::node::{BuildCx, Fault, Fold, Node, NodeKind, NodeSpec, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

/// Passes on batches until a number of rows went through, then fails.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultAfter {
    /// Rows that go through.
    after: usize,
    /// What happens with the next one.
    #[serde(default)]
    how: How,
}

/// How a node fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    /// A fault after which a retry may succeed.
    #[default]
    Transient,
    /// A fault after which it will not.
    Permanent,
    /// A fault of the program.
    Bug,
    /// A panic outside of any row.
    Panic,
}

impl NodeKind for FaultAfter {
    const NAME: &'static str = "transform.test_fault";
    const EXAMPLE: &'static str = "breaks: {kind: transform.test_fault, with: {after: 100}}";
}

impl Node for FaultAfter {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Fold(Box::new(Counted { options: *self, n_rows: 0 })))
    }
}

struct Counted {
    options: FaultAfter,
    n_rows: usize,
}

impl Fold for Counted {
    fn push(&mut self, batch: Batch, out: &mut Vec<Batch>) -> Result<(), Fault> {
        self.n_rows += batch.n_rows();
        if self.n_rows <= self.options.after {
            out.push(batch);
            return Ok(());
        }
        let message = format!("failed on purpose after {} rows", self.options.after);
        match self.options.how {
            How::Transient => Err(Fault::transient(message)),
            How::Permanent => Err(Fault::permanent(message)),
            How::Bug => Err(Fault::bug(message)),
            How::Panic => panic!("{message}"),
        }
    }

    fn held(&self) -> Option<RowPos> {
        None
    }

    fn flush(&mut self, _out: &mut Vec<Batch>) -> Result<(), Fault> {
        Ok(())
    }
}
