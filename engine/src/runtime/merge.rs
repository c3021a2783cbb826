//! Several inputs as one: unions and joins, by position.
//!
//! The merge never refuses input from one branch while the next row of another is missing. That is what makes branches
//! with different batch sizes safe: were the merge to stop reading the faster branch, the node that feeds both would
//! stop too, and the slower branch's batch would never fill. What it holds of the faster branch is bounded by what the
//! slower one can hold, because the node that feeds both waits for the slower one's queue. Rows of a later source are
//! left where they are until the earlier source has ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::Select;

use super::exit::{Exit, Step};
use super::message::Message;
use super::outlets::Outlets;
use super::pace::GRAIN_ROWS;
use super::project::project;
use super::queue::{Packet, Receiver};
use super::shared::Me;
use super::stats::NodeStats;
use crate::data::{Batch, RejectRow, RowPos};
use crate::graph::Merge;

/// A stage that merges: the whole of a join node, or what stands before a node that reads a union.
pub(super) struct Merging {
    me: Me,
    merge: Merge,
    branches: Vec<Branch>,
    outlets: Outlets,
    /// Rejects that a join holds until all branches have passed them: a row rejected in several is one reject.
    rejects: BTreeMap<RowPos, Arc<RejectRow>>,
}

struct Branch {
    input: Receiver<Message>,
    batches: VecDeque<Batch>,
    upto: RowPos,
    ended: bool,
}

impl Merging {
    /// `inputs` with the number of the first source that each carries.
    pub(super) fn new(me: Me, merge: Merge, inputs: Vec<(Receiver<Message>, u32)>, outlets: Outlets) -> Self {
        let branches = inputs.into_iter().map(|(input, source)| Branch {
            input,
            batches: VecDeque::new(),
            upto: RowPos::start_of(source),
            ended: false,
        });
        Merging { me, merge, branches: branches.collect(), outlets, rejects: BTreeMap::new() }
    }

    /// Runs until all inputs have ended.
    pub(super) fn run(mut self) -> Exit {
        match self.drive() {
            Ok(()) => self.outlets.end(),
            Err(exit) => exit,
        }
    }

    fn drive(&mut self) -> Step {
        loop {
            self.me.shared.check()?;
            let frontier = self.branches.iter().map(|branch| branch.upto).min().unwrap_or(RowPos::END);
            match self.merge {
                Merge::Join => self.emit_joined(frontier)?,
                Merge::Union | Merge::Single => self.emit_union(frontier)?,
            }
            // Not when the watermark says so: a branch whose end is still to come must find somebody to tell.
            if self.branches.iter().all(|branch| branch.ended) {
                return Ok(());
            }
            self.read(frontier)?;
        }
    }

    /// Reads one message from any branch that may be read.
    fn read(&mut self, frontier: RowPos) -> Step {
        let readable: Vec<_> = self
            .branches
            .iter()
            .enumerate()
            .filter(|(_, branch)| !branch.ended && (branch.upto == frontier || branch.upto.source == frontier.source))
            .map(|(branch_idx, _)| branch_idx)
            .collect();
        let mut select = Select::new();
        for &branch_idx in &readable {
            select.recv(self.branches[branch_idx].input.channel());
        }
        let start = Instant::now();
        let operation = select.select();
        let branch_idx = readable[operation.index()];
        let packet = operation.recv(self.branches[branch_idx].input.channel()).map_err(|_| Exit::Cancelled)?;
        NodeStats::add_time(&self.me.stats.starved, start);
        self.take(branch_idx, packet)
    }

    fn take(&mut self, branch_idx: usize, packet: Packet<Message>) -> Step {
        let branch = &mut self.branches[branch_idx];
        let Some(message) = branch.input.took(packet) else {
            branch.ended = true;
            branch.upto = RowPos::END;
            return Ok(());
        };
        branch.upto = message.upto;
        if let Some(batch) = message.batch {
            if self.merge == Merge::Join {
                self.me.stats.rows_in.fetch_add(batch.n_rows() as u64, Ordering::Relaxed);
            }
            branch.batches.push_back(batch);
        }
        if self.merge != Merge::Join {
            return if message.rejects.is_empty() { Ok(()) } else { self.pass_rejects(message.rejects) };
        }
        for reject in message.rejects {
            let first = self.rejects.entry(reject.pos).or_insert_with(|| reject.clone());
            if reject.node_index < first.node_index {
                *first = reject;
            }
        }
        Ok(())
    }

    fn pass_rejects(&mut self, rejects: Vec<Arc<RejectRow>>) -> Step {
        // Rejects may run ahead of the watermark, which stays where it is.
        let upto = self.outlets.sent_upto();
        self.outlets.emit(None, rejects, Vec::new(), upto)
    }

    /// Sends all rows before `frontier`, in the order of (position, branch).
    fn emit_union(&mut self, frontier: RowPos) -> Step {
        let mut pieces: Vec<Batch> = Vec::new();
        let mut n_rows = 0;
        while let Some(piece) = self.next_piece(frontier) {
            let end = piece.positions().last().copied();
            n_rows += piece.n_rows();
            pieces.push(piece);
            if n_rows >= GRAIN_ROWS {
                let upto = end.unwrap_or(frontier);
                self.outlets.emit(Some(Batch::concat(&pieces)), Vec::new(), Vec::new(), upto)?;
                pieces.clear();
                n_rows = 0;
            }
        }
        let batch = (!pieces.is_empty()).then(|| Batch::concat(&pieces));
        self.outlets.emit(batch, Vec::new(), Vec::new(), frontier)
    }

    /// The longest run of rows of one branch that come before those of all others and before `frontier`.
    fn next_piece(&mut self, frontier: RowPos) -> Option<Batch> {
        let heads = self.branches.iter().enumerate().filter_map(|(branch_idx, branch)| {
            let head = *branch.batches.front()?.positions().first()?;
            (head < frontier).then_some((head, branch_idx))
        });
        let mut heads: Vec<_> = heads.collect();
        heads.sort_unstable();
        let &(_, branch_idx) = heads.first()?;
        let bound = heads.get(1).copied();
        let branch = &mut self.branches[branch_idx];
        let batch = branch.batches.pop_front()?;
        let n_rows = batch
            .positions()
            .iter()
            .take_while(|&&pos| pos < frontier && bound.is_none_or(|other| (pos, branch_idx) < other))
            .count();
        if n_rows < batch.n_rows() {
            branch.batches.push_front(batch.slice(n_rows..batch.n_rows()));
        }
        Some(batch.slice(0..n_rows))
    }

    /// Sends the rows before `frontier` that every branch has.
    fn emit_joined(&mut self, frontier: RowPos) -> Step {
        let parts: Vec<_> = self.branches.iter_mut().map(|branch| branch.take_before(frontier)).collect();
        let later = self.rejects.split_off(&frontier);
        let rejects: Vec<_> = std::mem::replace(&mut self.rejects, later).into_values().collect();
        let Some(parts) = parts.into_iter().collect::<Option<Vec<_>>>() else {
            return self.outlets.emit(None, rejects, Vec::new(), frontier);
        };
        let common = common_positions(&parts);
        let aligned: Vec<_> = parts.iter().map(|part| only(part, &common)).collect();
        let inputs: Vec<_> = aligned.iter().collect();
        let batch = project(&self.me.node().spec, &inputs, Vec::new());
        self.outlets.emit(Some(batch), rejects, Vec::new(), frontier)
    }
}

impl Branch {
    /// Takes out the rows before `frontier`, if there are any.
    fn take_before(&mut self, frontier: RowPos) -> Option<Batch> {
        let mut parts = Vec::new();
        while let Some(batch) = self.batches.pop_front() {
            let n_rows = batch.positions().partition_point(|&pos| pos < frontier);
            if n_rows > 0 {
                parts.push(batch.slice(0..n_rows));
            }
            if n_rows < batch.n_rows() {
                self.batches.push_front(batch.slice(n_rows..batch.n_rows()));
                break;
            }
        }
        (!parts.is_empty()).then(|| Batch::concat(&parts))
    }
}

fn common_positions(parts: &[Batch]) -> Vec<RowPos> {
    let mut common = parts[0].positions().to_vec();
    for part in &parts[1..] {
        common.retain(|pos| part.positions().binary_search(pos).is_ok());
    }
    common
}

fn only(part: &Batch, positions: &[RowPos]) -> Batch {
    if part.n_rows() == positions.len() {
        return part.clone();
    }
    let indices: Vec<_> = part
        .positions()
        .iter()
        .enumerate()
        .filter(|(_, pos)| positions.binary_search(pos).is_ok())
        .map(|(row_idx, _)| row_idx)
        .collect();
    part.take(&indices)
}
