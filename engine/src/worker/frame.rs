//! What the coordinator and a worker say to each other.
//!
//! Each frame is a MessagePack map with one key, the frame's name, in a length prefix of four bytes (little-endian).
//! `docs/worker-protocol.md` describes them for workers in other languages; a change here is a change there, and a new
//! [`PROTOCOL`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::{Buffer, DType, Schema, SharedAt, Tensor};
use crate::node::{DeviceInfo, FaultKind, FileStamp, Span};

/// The version of the frames.
pub const PROTOCOL: u32 = 1;
/// Bytes that a frame may have. Bulk data never travel in frames.
pub const MAX_FRAME: usize = 1 << 20;

/// From the coordinator to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Map an arena. Its file descriptor comes with the frame.
    Arena(ArenaFrame),
    /// Load a model.
    Load(Load),
    /// Compute a batch.
    Run(Run),
    /// Finish what was taken and leave.
    Stop,
}

/// From a worker to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first frame: who it is.
    Hello(Hello),
    /// The worker cannot open its device, and leaves.
    Refused(Refusal),
    /// A model is loaded.
    Ready(Ready),
    /// A model cannot be loaded.
    LoadFailed(LoadFailed),
    /// A batch was computed.
    Done(DoneFrame),
    /// A batch was not computed.
    JobFailed(JobFailed),
}

/// Who a worker is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the frames that it speaks: [`PROTOCOL`].
    pub protocol: u32,
    /// The version of the program and a hash of its source.
    pub build: String,
    /// Its process.
    pub pid: u32,
    /// The device that it has opened.
    pub device: DeviceInfo,
}

/// Why a worker leaves, or a model is not there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whether it helps to try again.
    pub kind: FaultKind,
    /// What happened.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Memory to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArenaFrame {
    /// Its number, by which tensors name it.
    pub id: u32,
    /// Bytes to map: more than the file has at first, because it grows.
    pub reserve: u64,
    /// What the worker may do with it.
    pub access: Access,
}

/// What a worker may do with an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Inputs: what lies in it never changes while a job names it.
    Read,
    /// Outputs: a job may write where its frame says.
    Write,
}

/// A model to load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Its number, by which jobs name it.
    pub model: u32,
    /// The node's name.
    pub node: String,
    /// The node's kind.
    pub kind: String,
    /// The node's options as in the pipeline file, variables put in.
    pub with: serde_json::Value,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// The columns of the node's input.
    pub input: Schema,
    /// Files as they were when the run was planned.
    pub files: Vec<FileStamp>,
    /// What is known of the device's memory from earlier workers.
    pub caps: Vec<Cap>,
}

/// The most rows of a shape that fit into a device's memory at once, found by running out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// One row's shape, input by input.
    pub shape: Vec<Vec<usize>>,
    /// Rows.
    pub rows: usize,
}

/// A model that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Which.
    pub model: u32,
    /// Batches that it is worth sending before the first is done.
    pub depth: u32,
}

/// A model that is not there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFailed {
    /// Which.
    pub model: u32,
    /// Why.
    pub refusal: Refusal,
}

/// A batch to compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its number, unique for the worker's life.
    pub job: u64,
    /// The model.
    pub model: u32,
    /// The inputs, in arenas.
    pub inputs: Vec<TensorAt>,
    /// Where outputs may be written.
    pub output: SharedAt,
    /// Bytes that they may take.
    pub output_len: u64,
}

/// A tensor in an arena: row-major, native byte order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorAt {
    /// Where its first byte lies.
    pub at: SharedAt,
    /// The element type.
    pub dtype: DType,
    /// The dimensions, rows first.
    pub shape: Vec<usize>,
}

impl TensorAt {
    /// Where `tensor` lies, if other processes can find it there.
    pub fn of(tensor: &Tensor) -> Option<TensorAt> {
        Some(TensorAt { at: tensor.shared()?, dtype: tensor.dtype(), shape: tensor.shape().to_vec() })
    }

    /// The tensor as a worker says that it has written it into `slot`, which it was given for its outputs.
    ///
    /// # Errors
    /// If it does not lie there.
    pub fn within(&self, slot: &Buffer) -> Result<Tensor, String> {
        self.n_bytes()?;
        let start = slot.shared().filter(|start| start.arena == self.at.arena);
        let offset = start.and_then(|start| usize::try_from(self.at.offset.checked_sub(start.offset)?).ok());
        offset
            .and_then(|offset| Tensor::at(self.dtype, self.shape.clone(), slot.clone(), offset))
            .ok_or_else(|| format!("a tensor at {} of arena {}, outside of its slot", self.at.offset, self.at.arena))
    }

    /// The bytes that it takes: shapes in frames may be any.
    ///
    /// # Errors
    /// If there is no such tensor.
    pub(super) fn n_bytes(&self) -> Result<u64, String> {
        if self.shape.is_empty() {
            return Err("a tensor without rows".to_owned());
        }
        let size = self.dtype.size() as u64;
        if !self.at.offset.is_multiple_of(size) {
            return Err(format!("a tensor of {} at {}, which is no multiple of {size}", self.dtype, self.at.offset));
        }
        // Dimensions of 0 count as 1 here, so that no part of the product overflows either.
        let most = self.shape.iter().try_fold(size, |product, &dim| product.checked_mul(dim.max(1) as u64));
        let most = most.filter(|most| isize::try_from(*most).is_ok());
        let most = most.ok_or_else(|| format!("a tensor of {:?}, which no memory holds", self.shape))?;
        Ok(if self.shape.contains(&0) { 0 } else { most })
    }
}

/// A batch that was computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneFrame {
    /// Which.
    pub job: u64,
    /// The outputs, within the memory that the job named.
    pub outputs: Vec<TensorAt>,
    /// Microseconds that the model computed.
    pub micros: u64,
    /// What the device did when.
    pub spans: Vec<Span>,
    /// The most rows of this shape that the device holds, where that was met.
    pub cap: Option<Cap>,
}

/// A batch that was not computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFailed {
    /// Which.
    pub job: u64,
    /// Why.
    pub reason: FailReason,
}

/// Why a batch was not computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// Not even one row fits into the device's memory.
    OutOfMemory(String),
    /// The model said so.
    Failed(String),
    /// The model panicked.
    Panicked(String),
    /// The outputs have another number of rows than the inputs.
    Rows {
        /// Rows of the inputs.
        wanted: usize,
        /// Rows of the output.
        found: usize,
    },
    /// The outputs need so many bytes, and the job had room for fewer.
    OutputTooLarge(u64),
    /// The device is lost; the worker leaves.
    DeviceLost(String),
    /// The job names memory or a model that the worker does not have.
    Malformed(String),
}
