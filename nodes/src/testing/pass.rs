//! `transform.test_pass`: the least that a node can do.

use std::sync::Arc;

use engine::data::{ColumnType, Reject, Role, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds a column with the row's index in its source.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// The name of the new column.
    #[serde(default = "default_as", rename = "as")]
    output: String,
}

fn default_as() -> String {
    "pass".to_owned()
}

impl NodeKind for Pass {
    const NAME: &'static str = "transform.test_pass";
    const EXAMPLE: &'static str = "numbered: {kind: transform.test_pass, with: {as: number}}";
}

impl Node for Pass {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let spec = NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) };
        spec.with_new(&self.output, ColumnType::Int, Role::Result)
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Rows(Arc::new(Index)))
    }
}

struct Index;

impl RowMap for Index {
    fn map_row(&self, row: RowRef<'_>, out: &mut RowMut<'_>) -> Result<(), Reject> {
        out.int(0, row.pos().index as i64);
        Ok(())
    }
}
