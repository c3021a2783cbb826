//! `transform.test_spin`: rows that cost.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::data::{Reject, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

/// Keeps a core busy with each row.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spin {
    /// How long in microseconds.
    micros: u64,
}

impl NodeKind for Spin {
    const NAME: &'static str = "transform.test_spin";
    const EXAMPLE: &'static str = "busy: {kind: transform.test_spin, with: {micros: 500}}";
}

impl Node for Spin {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(*self)))
    }
}

impl RowMap for Spin {
    fn map_row(&self, _row: RowRef<'_>, _out: &mut RowMut<'_>) -> Result<(), Reject> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(self.micros) {
            black_box(0);
        }
        Ok(())
    }
}
