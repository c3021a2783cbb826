//! Some items of a source, each taken to a node and through it by itself.
//!
//! For commands that look at what a pipeline makes of a user's own files without running it: nothing is written, and no sink, batch
//! or model is opened unless it is asked for.

use std::sync::Arc;

use super::alone::{Alone, ways};
use super::running::Part;
use crate::data::{Alloc, Batch, Column, HeapPool, Reject, RowPos, Tensor, code};
use crate::graph::Graph;
use crate::node::{Fault, Item, Model, Reading, Stage};

/// Items are asked for in pieces of this many.
const LISTED_AT_ONCE: usize = 1024;

/// A source, a node behind it, and what is between them.
pub struct Sampler<'g> {
    source: Alone<'g>,
    number: u32,
    between: Vec<Alone<'g>>,
    node: Alone<'g>,
}

/// What became of one item.
#[derive(Debug)]
pub struct Sampled {
    /// The row as it came to the node, if it came that far.
    pub before: Option<Batch>,
    /// The row as the node gives it, or why it was rejected.
    pub after: Result<Batch, Reject>,
}

impl<'g> Sampler<'g> {
    /// Builds what is needed. Where several ways lead from the source to the node, the first is taken; nothing, if none does on
    /// which a row can go by itself.
    ///
    /// # Errors
    /// If one of the nodes cannot be built; a source that finds nothing is one.
    pub fn new(graph: &'g Graph, source_idx: usize, node_idx: usize) -> Result<Option<Self>, Fault> {
        let alloc: Arc<dyn Alloc> = Arc::new(HeapPool::new());
        let way = ways(graph, source_idx, node_idx).into_iter().next();
        let (Some(way), Some(number)) = (way, graph.nodes[source_idx].source) else { return Ok(None) };
        // As at the start of a run: a glob that matches nothing is told.
        let source = Alone::build(graph, source_idx, Part::default(), &alloc)?;
        let built = way.iter().map(|&node_idx| Alone::build(graph, node_idx, Alone::RESUMED, &alloc));
        let mut between = built.collect::<Result<Vec<_>, _>>()?;
        Ok(between.pop().map(|node| Sampler { source, number, between, node }))
    }

    /// Whether an item of the source may hold many rows.
    pub fn holds_many(&mut self) -> bool {
        matches!(self.source.stage(), Stage::Source(source) if matches!(source.reading, Reading::Unpacked(_)))
    }

    /// At most `n_items` items, evenly spread over the first `among` that the source lists; with their indices.
    ///
    /// # Errors
    /// If the source cannot be listed.
    pub fn items(&mut self, n_items: usize, among: usize) -> Result<Vec<(u64, Item)>, Fault> {
        let Stage::Source(source) = self.source.stage() else {
            return Err(Fault::bug("a source that gives no rows"));
        };
        let mut listed = Vec::new();
        while listed.len() < among {
            let before = listed.len();
            source.list.next_items(LISTED_AT_ONCE.min(among - before), &mut listed)?;
            if listed.len() == before {
                break;
            }
        }
        let n_items = n_items.min(listed.len());
        let wanted = (0..n_items).map(|nth| nth * listed.len() / n_items);
        Ok(wanted.map(|index| (index as u64, listed[index].clone())).collect())
    }

    /// Fetches row `sub` of an item, 0 where items are rows, and takes it to the node and through it. Nothing, if the item
    /// holds many rows and has no such one.
    ///
    /// # Errors
    /// A fault of a node; what is wrong with the row itself is in the result.
    pub fn take(&mut self, index: u64, item: &Item, sub: u32) -> Result<Option<Sampled>, Fault> {
        let mut row = self.source.fetch(RowPos { source: self.number, index, sub }, item)?;
        if sub > 0 && matches!(&row, Err(reject) if reject.code == code::NOT_FOUND) {
            return Ok(None);
        }
        for node in &mut self.between {
            row = match row {
                Ok(batch) => node.pass(batch)?,
                Err(_) => break,
            };
        }
        match row {
            Err(reject) => Ok(Some(Sampled { before: None, after: Err(reject) })),
            Ok(batch) => Ok(Some(Sampled { before: Some(batch.clone()), after: self.node.pass(batch)? })),
        }
    }
}

/// A node's model by itself, on the CPU.
pub struct LoneModel {
    model: Box<dyn Model>,
    inputs: Vec<usize>,
}

impl LoneModel {
    /// Loads it.
    ///
    /// # Errors
    /// If the node has no model, or it cannot be loaded.
    pub fn load(graph: &Graph, node_idx: usize) -> Result<Self, Fault> {
        let alloc: Arc<dyn Alloc> = Arc::new(HeapPool::new());
        let mut alone = Alone::build(graph, node_idx, Part::default(), &alloc)?;
        let Stage::Infer(stage) = alone.stage() else {
            return Err(Fault::permanent("it has no model").in_node(&graph.nodes[node_idx].name));
        };
        let model = stage.model.load().map_err(|fault| fault.in_node(&graph.nodes[node_idx].name))?;
        Ok(LoneModel { model, inputs: stage.inputs.clone() })
    }

    /// What the model gives for rows that have been through the batch node before it.
    ///
    /// # Errors
    /// If it cannot compute them.
    pub fn compute(&mut self, rows: &Batch) -> Result<Vec<Tensor>, Fault> {
        let inputs = self.inputs.iter().map(|&column| match &rows.columns()[column] {
            Column::Dense(tensor) => Ok(tensor.clone()),
            _ => Err(Fault::bug("a model's input is no batch of tensors")),
        });
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        self.model.forward(&inputs).map_err(|error| Fault::transient(error.to_string()))
    }
}
