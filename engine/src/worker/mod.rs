//! Running a model on a batch: the executor seam and its implementations.
