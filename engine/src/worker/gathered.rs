//! A job's result, put together from the pieces in which it was computed.

use super::{Done, Job, JobError};
use crate::data::{Alloc, Tensor};
use crate::node::{Computed, ModelError, SpanStage};
use crate::worker::frame::Cap;

/// What the pieces of a job have come to so far, in order.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pieces: Vec<Computed>,
    failed: Option<JobError>,
    micros: u64,
    /// Rows of the largest piece.
    widest: usize,
}

impl Gathered {
    /// Adds a piece of `n_rows` rows that took `micros` by the clock.
    pub(super) fn add(&mut self, n_rows: usize, computed: Computed, micros: u64) {
        // The device's own word, where it gives one: by the clock, batches that overlap take longer than they compute.
        let spans = computed.spans.iter().filter(|span| span.stage == SpanStage::Compute);
        let nanos: Vec<_> = spans.map(|span| span.end_ns.saturating_sub(span.start_ns)).collect();
        self.micros += if nanos.is_empty() { micros } else { nanos.iter().sum::<u64>() / 1000 };
        self.widest = self.widest.max(n_rows);
        self.pieces.push(computed);
    }

    /// Says that a piece failed. The first that did is the reason.
    pub(super) fn fail(&mut self, error: JobError) {
        self.failed.get_or_insert(error);
    }

    /// Whether a job of `n_rows` rows was computed in smaller pieces.
    pub(super) fn is_cut(&self, n_rows: usize) -> bool {
        self.failed.is_none() && self.widest < n_rows
    }

    /// The result; `cap` is the rows that are known to fit.
    pub(super) fn done(self, job: &Job, cap: Cap, alloc: &dyn Alloc) -> Done {
        let is_cut = self.is_cut(job.n_rows());
        let cap = is_cut.then_some(Cap { rows: cap.rows.min(self.widest), ..cap });
        let mut spans = Vec::new();
        let pieces = self.pieces.into_iter().map(|piece| {
            spans.extend(piece.spans);
            piece.outputs
        });
        let pieces: Vec<_> = pieces.collect();
        let outcome = match self.failed {
            Some(error) => Err(error),
            None => joined(pieces, alloc),
        };
        Done { id: job.id, outcome, micros: self.micros, worker: 0, spans, cap }
    }
}

/// The pieces' outputs as those of the whole.
fn joined(mut pieces: Vec<Vec<Tensor>>, alloc: &dyn Alloc) -> Result<Vec<Tensor>, JobError> {
    if pieces.len() == 1 {
        return Ok(pieces.remove(0));
    }
    let n_outputs = pieces.first().map_or(0, Vec::len);
    let of = |output_idx: usize| -> Option<Vec<&Tensor>> { pieces.iter().map(|piece| piece.get(output_idx)).collect() };
    (0..n_outputs)
        .map(|output_idx| of(output_idx).and_then(|tensors| concatenated(&tensors, alloc)))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            ModelError::Failed("the model gave outputs of other shapes for a part of the batch".into()).into()
        })
}

/// `None` if they are no parts of one tensor.
fn concatenated(tensors: &[&Tensor], alloc: &dyn Alloc) -> Option<Tensor> {
    let (first, rest) = tensors.split_first()?;
    let row = |tensor: &Tensor| (tensor.dtype(), tensor.shape().get(1..).map(<[usize]>::to_vec));
    if rest.iter().any(|tensor| row(tensor) != row(first)) {
        return None;
    }
    let mut shape = first.shape().to_vec();
    *shape.first_mut()? = tensors.iter().map(|tensor| tensor.n_rows()).sum();
    let mut buffer = alloc.alloc(tensors.iter().map(|tensor| tensor.bytes().len()).sum());
    let mut rest = buffer.bytes_mut();
    for tensor in tensors {
        let (into, left) = rest.split_at_mut(tensor.bytes().len());
        into.copy_from_slice(tensor.bytes());
        rest = left;
    }
    Some(Tensor::new(first.dtype(), shape, buffer.freeze()))
}
