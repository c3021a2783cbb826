//! `decode.test_fault`: a decoder that kills the process, or does not come back.

use std::path::PathBuf;
use std::sync::Arc;

use engine::data::{Reject, RowMut, RowRef};
use engine::node::{BuildCx, Fault, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use schemars::JsonSchema;
use serde::Deserialize;

use super::model_faults::How;
use super::wait::wait_for;

/// Passes on rows as they are, but for the chosen ones.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecodeFault {
    /// The rows, by their index in the source.
    rows: Vec<u64>,
    /// How they end the process, if they do.
    how: Option<How>,
    /// They wait before that until this file exists, in the pipeline's folder.
    until: Option<PathBuf>,
    /// How long every other row takes, in microseconds.
    #[serde(default)]
    micros: u64,
}

impl NodeKind for DecodeFault {
    const NAME: &'static str = "decode.test_fault";
    const EXAMPLE: &'static str = "breaks: {kind: decode.test_fault, with: {rows: [3], how: abort}}";
}

impl Node for DecodeFault {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Ok(NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[]) })
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let until = self.until.as_ref().map(|path| cx.base.join(path));
        Ok(Stage::Rows(Arc::new(DecodeFault { until, ..self.clone() })))
    }
}

impl RowMap for DecodeFault {
    fn map_row(&self, row: RowRef<'_>, _out: &mut RowMut<'_>) -> Result<(), Reject> {
        let index = row.pos().index;
        if !self.rows.contains(&index) {
            std::thread::sleep(std::time::Duration::from_micros(self.micros));
            return Ok(());
        }
        wait_for(self.until.as_deref());
        if let Some(how) = self.how {
            how.end("decode.test_fault", &format!("row {index}"));
        }
        Ok(())
    }
}
