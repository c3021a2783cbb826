//! `transform.test_panic`: rows on which the code breaks.

use std::sync::Arc;

use engine::data::{Reject, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::rows::Which;

/// Panics on some rows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Panic(Which);

impl NodeKind for Panic {
    const NAME: &'static str = "transform.test_panic";
    const EXAMPLE: &'static str = "some: {kind: transform.test_panic, with: {rows: [3]}}";
}

impl Node for Panic {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(self.clone())))
    }
}

impl RowMap for Panic {
    fn map_row(&self, row: RowRef<'_>, _out: &mut RowMut<'_>) -> Result<(), Reject> {
        assert!(!self.0.includes(row), "row {} panics on purpose", row.pos());
        Ok(())
    }
}
