//! What rows are made of: batches, columns, tensors, schemas and row positions.
