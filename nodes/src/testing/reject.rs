//! `transform.test_reject`: rows that are rejected.

use std::sync::Arc;

use engine::data::{Reject, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::rows::Which;

/// Rejects some rows with the code `test`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RejectSome(Which);

impl NodeKind for RejectSome {
    const NAME: &'static str = "transform.test_reject";
    const EXAMPLE: &'static str = "some: {kind: transform.test_reject, with: {share: 0.1}}";
}

impl Node for RejectSome {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(self.clone())))
    }
}

impl RowMap for RejectSome {
    fn map_row(&self, row: RowRef<'_>, _out: &mut RowMut<'_>) -> Result<(), Reject> {
        if self.0.includes(row) {
            return Err(Reject::new("test", format!("row {} is rejected on purpose", row.pos())));
        }
        Ok(())
    }
}
