//! `infer.test_conformance`: the models of the conformance suite for executors, as nodes, so that they can be loaded in
//! another process by their options alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::data::{ColumnType, DType, Dim, HeapPool, Role, Tensor};
use engine::node::{
    BuildCx, Fault, InferStage, LoadModel, Model, ModelError, Node, NodeKind, NodeSpec, Padding, SpecCx, SpecError,
    Stage,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// A model that is a simple function of its input: the first column.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conformance {
    /// Which.
    model: Which,
}

/// What a model does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// Twice each value.
    Double,
    /// The input.
    Echo,
    /// The first byte of each row: no work at all, however large the input is.
    First,
    /// The input; where its first value is 0, once a file exists.
    Gate(Gate),
    /// The input, but it fails where its first value is 1 and panics where that is 2.
    Moody,
    /// The first half of the rows.
    Halve,
    /// Nothing: it cannot be loaded.
    NoWeights,
}

/// What a job waits for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Gate {
    /// The file.
    until: PathBuf,
}

impl NodeKind for Conformance {
    const NAME: &'static str = engine::worker::conformance::KIND;
    const EXAMPLE: &'static str = "same: {kind: infer.test_conformance, with: {model: echo}}";
}

impl Node for Conformance {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let spec = NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[0]) };
        spec.with_new("output", ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Any] }, Role::Result)
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        Ok(Stage::Infer(InferStage { model: Arc::new(self.model.clone()), inputs: vec![0], padding: Padding::None }))
    }
}

impl LoadModel for Which {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        match self {
            Which::NoWeights => Err(Fault::permanent("no weights")),
            model => Ok(Box::new(model.clone())),
        }
    }
}

impl Model for Which {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let first = || inputs[0].view().to_f32().first().copied();
        match self {
            Which::Double => return Ok(vec![double(&inputs[0])]),
            Which::Halve => return Ok(vec![inputs[0].rows(0, inputs[0].n_rows() / 2)]),
            Which::First => return Ok(vec![first_bytes(&inputs[0])]),
            Which::Gate(gate) if first() == Some(0.0) => wait_for(&gate.until)?,
            Which::Moody if first() == Some(1.0) => return Err(ModelError::Failed("no ones".to_owned())),
            Which::Moody if first() == Some(2.0) => panic!("no twos"),
            Which::Echo | Which::Gate(_) | Which::Moody | Which::NoWeights => {}
        }
        Ok(inputs.to_vec())
    }
}

fn double(input: &Tensor) -> Tensor {
    let doubled: Vec<_> = input.view().to_f32().iter().map(|value| value * 2.0).collect();
    Tensor::from_slice(&HeapPool::new(), DType::F32, input.shape().to_vec(), &doubled)
}

fn first_bytes(input: &Tensor) -> Tensor {
    let bytes: Vec<u8> = (0..input.n_rows()).map(|row_idx| input.row(row_idx).bytes[0]).collect();
    Tensor::from_slice(&HeapPool::new(), DType::U8, vec![bytes.len(), 1], &bytes)
}

/// Waits until there is a file, but not for ever.
fn wait_for(path: &Path) -> Result<(), ModelError> {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > engine::worker::conformance::PATIENCE {
            return Err(ModelError::Failed(format!("`{}` never came", path.display())));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
