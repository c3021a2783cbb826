//! `infer.test`: a model that adds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::config::Devices;
use engine::data::{ColumnType, DType, Dim, Field, HeapPool, Role, Schema, Tensor};
use engine::node::{
    BuildCx, Fault, FileStamp, InferStage, LoadModel, Model, ModelError, ModelNeed, Node, NodeKind, NodeSpec, Padding,
    SpecCx, SpecError, Stage, find_column,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::model_faults::{Crash, How, ModelFaults, OnRows, Slow};

/// A model that gives 1, 2, … `n` times the sum of a row's elements.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestModel {
    /// How many numbers a row gets.
    #[serde(default = "default_n")]
    n: usize,
    /// How long a batch takes, in microseconds.
    #[serde(default)]
    micros: u64,
    /// The column to read. Default: the only tensor.
    column: Option<String>,
    /// The name of the new column.
    #[serde(default = "default_as", rename = "as")]
    output: String,
    /// Rows of a batch.
    #[serde(default = "default_batch")]
    batch: usize,
    /// Whether part batches are computed as they are.
    #[serde(default)]
    unpadded: bool,
    /// How it fails, if it does.
    fail: Option<Fail>,
    /// Batches, over all instances, that are computed before it fails.
    #[serde(default)]
    after: usize,
    /// A batch of more rows is too much for the device's memory.
    max_rows: Option<usize>,
    /// Rows that end the process.
    crash: Option<Crash>,
    /// Rows that never end.
    hang: Option<OnRows>,
    /// Rows that take long.
    slow: Option<Slow>,
    /// Rows that panic.
    panic: Option<OnRows>,
    /// Where it may run.
    device: Option<Devices>,
    /// A file that it says it is loaded from; from the pipeline's folder.
    weights: Option<std::path::PathBuf>,
    /// What it says that it needs of a device.
    #[serde(default)]
    need: Need,
}

/// What a model says that it needs of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Need {
    /// For weights.
    weights: u64,
    /// For one row.
    activations_per_row: u64,
    /// For scratch memory.
    workspace: u64,
}

/// How a model fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Fail {
    /// It cannot be loaded.
    Load,
    /// It ends its process when it is loaded.
    LoadCrash,
    /// A batch fails.
    Forward,
    /// A batch panics.
    Panic,
    /// A batch does not fit into the device's memory.
    OutOfMemory,
}

fn default_n() -> usize {
    4
}

fn default_batch() -> usize {
    8
}

fn default_as() -> String {
    "logits".to_owned()
}

impl TestModel {
    fn find(&self, input: &Schema) -> Result<usize, SpecError> {
        let fits = |field: &Field| field.ty.fixed_shape().is_some();
        find_column(input, self.column.as_deref(), "a tensor", "put a `transform.test_tensor` node between them", fits)
    }
}

impl NodeKind for TestModel {
    const NAME: &'static str = "infer.test";
    const INCIDENTAL: &'static [&'static str] = &["batch", "micros", "device"];
    const EXAMPLE: &'static str = "sums: {kind: infer.test, with: {n: 4, micros: 500}}";
}

impl Node for TestModel {
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        let column = self.find(cx.input())?;
        let ty = ColumnType::Tensor { dtype: DType::F32, shape: vec![Dim::Fixed(self.n)] };
        let spec = NodeSpec { batch: cx.input().batch, ..NodeSpec::passing(cx.input(), &[column]) };
        let Need { weights, activations_per_row, workspace } = self.need;
        let devices = self.device.clone();
        let files = self.weights.iter().filter_map(|path| FileStamp::of(&cx.base.join(path))).collect();
        let need = ModelNeed { weights, activations_per_row, workspace, devices, files, ..ModelNeed::default() };
        Ok(spec.with_new(&self.output, ty, Role::Result)?.with_detail(format!("sums, {}", self.n)).with_need(need))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        let column = self.find(cx.input()).map_err(|error| Fault::permanent(error.to_string()))?;
        let faults = ModelFaults {
            crash: self.crash.clone(),
            hang: self.hang.clone(),
            slow: self.slow.clone(),
            panic: self.panic.clone(),
            base: cx.base.to_owned(),
        };
        let padding = if self.unpadded { Padding::None } else { Padding::ToPlan };
        let model = Loader { options: self.clone(), faults, n_computed: Arc::default() };
        Ok(Stage::Infer(InferStage { model: Arc::new(model), inputs: vec![column], padding }))
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.batch)
    }
}

#[derive(Debug)]
struct Loader {
    options: TestModel,
    faults: ModelFaults,
    n_computed: Arc<AtomicUsize>,
}

impl LoadModel for Loader {
    fn load(&self) -> Result<Box<dyn Model>, Fault> {
        match self.options.fail {
            Some(Fail::Load) => return Err(Fault::permanent("the model fails to load on purpose")),
            Some(Fail::LoadCrash) => How::Abort.end("infer.test", "while loading"),
            _ => {}
        }
        let (options, faults, n_computed) = (self.options.clone(), self.faults.clone(), self.n_computed.clone());
        Ok(Box::new(Sums { options, faults, n_computed, alloc: HeapPool::new() }))
    }
}

struct Sums {
    options: TestModel,
    faults: ModelFaults,
    n_computed: Arc<AtomicUsize>,
    alloc: HeapPool,
}

impl Model for Sums {
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let [input] = inputs else { return Err(ModelError::Failed(format!("{} inputs", inputs.len()))) };
        let n_rows = input.n_rows();
        if self.options.max_rows.is_some_and(|max_rows| n_rows > max_rows) {
            return Err(ModelError::OutOfMemory(format!("{n_rows} rows")));
        }
        if self.n_computed.fetch_add(1, Ordering::Relaxed) >= self.options.after {
            match self.options.fail {
                Some(Fail::Forward) => return Err(ModelError::Failed("it fails on purpose".to_owned())),
                Some(Fail::OutOfMemory) => return Err(ModelError::OutOfMemory("on purpose".to_owned())),
                Some(Fail::Panic) => panic!("the model panics on purpose"),
                Some(Fail::Load | Fail::LoadCrash) | None => {}
            }
        }
        self.faults.strike(input);
        if self.options.micros > 0 {
            std::thread::sleep(Duration::from_micros(self.options.micros));
        }
        let mut values = Vec::with_capacity(n_rows * self.options.n);
        for row_idx in 0..n_rows {
            let sum: f32 = input.row(row_idx).to_f32().iter().sum();
            values.extend((1..=self.options.n).map(|factor| sum * factor as f32));
        }
        Ok(vec![Tensor::from_slice(&self.alloc, DType::F32, vec![n_rows, self.options.n], &values)])
    }
}
