//! What a node is: the traits that kinds implement, what they are told, and the registry that lists them.
//!
//! A kind is one type: its fields are the options of `with`, its docs are the manual, [`Node::spec`] says what it
//! makes of its inputs' columns and [`Node::build`] makes the thing that runs. The receiver of each running trait is
//! its concurrency contract: `&self` is called from many threads at once, `&mut self` from one. The runtime, not the
//! node, does parallelism, order, timing, catching of panics and rejects.

mod cancel;
mod context;
mod counting;
mod device;
mod devices;
mod fault;
pub mod harness;
mod kind;
mod model;
mod need;
mod objects;
mod path;
mod registry;
mod shard;
mod spec;
mod stage;

pub use cancel::Cancel;
pub use context::{BuildCx, SpecCx};
pub use counting::Counting;
pub use device::{Device, DeviceInfo, OpenCpu, OpenDevice};
pub use devices::Devices;
pub use fault::{Fault, FaultKind, reason};
pub use kind::{Advice, Node, NodeKind, Parts, Role};
pub use model::{Computed, LoadModel, Model, ModelError, Pending, Span, SpanStage, monotonic_ns};
pub use need::{FileStamp, HostNeed, ModelNeed};
pub use objects::Objects;
pub use path::{is_url, normalised};
pub use registry::{Kind, KindRef, Registry};
pub use shard::{Shard, named_with, numbered};
pub use spec::{From, NodeSpec, Output, SpecError, find_column, unknown_column};
pub use stage::{
    Count, Durable, Entries, Entry, Fetch, Fold, InferStage, Item, List, Padding, Place, Reading, RowMap, Sealed, Sink,
    SinkPos, SourceStage, Stage, Stamp, Unpack,
};
