//! `transform.test_delay`: rows that take a while.

use std::sync::Arc;
use std::time::Duration;

use engine::data::{Reject, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::rows::hash;

/// Waits with each row, some more and some less.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// The longest wait in microseconds.
    micros: u64,
    /// Another seed waits otherwise.
    #[serde(default)]
    seed: u64,
}

impl NodeKind for Delay {
    const NAME: &'static str = "transform.test_delay";
    const EXAMPLE: &'static str = "slow: {kind: transform.test_delay, with: {micros: 500}}";
    // A run that was begun slowly may be ended fast.
    const INCIDENTAL: &'static [&'static str] = &["micros", "seed"];
}

impl Node for Delay {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(*self)))
    }
}

impl RowMap for Delay {
    fn map_row(&self, row: RowRef<'_>, _out: &mut RowMut<'_>) -> Result<(), Reject> {
        let micros = hash(self.seed, row.pos().index) % self.micros.saturating_add(1).max(1);
        std::thread::sleep(Duration::from_micros(micros));
        Ok(())
    }
}
