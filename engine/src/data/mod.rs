//! What rows are made of: batches, columns, tensors, schemas, row positions and rejects.
//!
//! Everything here is a value: cheap to clone (payloads are shared), never locked, and free of any notion of threads,
//! files or models. A [`Batch`] is columnar; its tensors are contiguous with the rows as leading dimension.

mod batch;
mod buffer;
mod builder;
mod column;
mod dtype;
mod position;
mod reject;
mod schema;
mod tensor;

pub use batch::{Batch, RowRef};
pub use buffer::{Alloc, Buffer, BufferMut, HeapPool, Memory, SharedAt};
pub use builder::{ColumnBuilder, RowMut};
pub use column::{Column, ListColumn, Slice, TextColumn};
pub use dtype::DType;
pub use position::RowPos;
pub use reject::{Reject, RejectRow, code};
pub use schema::{ColumnType, Dim, Field, Role, Schema};
pub use tensor::{Tensor, TensorRef};
