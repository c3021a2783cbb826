//! Drives one node without a runtime: for the tests of kinds.

use std::path::Path;
use std::sync::Arc;

use super::{BuildCx, Cancel, Fault, Kind, Node, NodeKind, NodeSpec, RowMap, SpecCx, SpecError, Stage};
use crate::data::{Batch, ColumnBuilder, HeapPool, Reject, RowMut, Schema};

/// A node of one kind with its inputs' schemas, ready to be asked for its spec, built and driven.
pub struct Harness {
    node: Box<dyn Node>,
    inputs: Vec<Schema>,
    base: std::path::PathBuf,
}

impl Harness {
    /// A node of kind `K` with the options `with` (YAML).
    ///
    /// # Panics
    /// If the options do not parse.
    pub fn new<K: NodeKind>(with: &str, inputs: Vec<Schema>) -> Self {
        let value = serde_yaml::from_str(with).unwrap_or_else(|error| panic!("{with}: {error}"));
        let node = Kind::of::<K>().parse(value).unwrap_or_else(|error| panic!("{with}: {error}"));
        Harness { node, inputs, base: ".".into() }
    }

    /// Relative paths start from `base`.
    pub fn in_folder(mut self, base: &Path) -> Self {
        self.base = base.to_owned();
        self
    }

    /// What the node says it does.
    ///
    /// # Errors
    /// The node's.
    pub fn spec(&self) -> Result<NodeSpec, SpecError> {
        let cx = SpecCx { name: "node", inputs: &self.inputs, input_names: &["input"], advice: None, base: &self.base };
        self.node.spec(&cx)
    }

    /// The thing that runs.
    ///
    /// # Errors
    /// The node's.
    ///
    /// # Panics
    /// If the spec fails.
    pub fn build(&self) -> Result<Stage, Fault> {
        let spec = self.spec().unwrap_or_else(|error| panic!("{error}"));
        self.node.build(&BuildCx {
            name: "node",
            inputs: &self.inputs,
            spec: &spec,
            advice: None,
            base: &self.base,
            alloc: Arc::new(HeapPool::new()),
            cancel: Cancel::new(),
        })
    }

    /// Runs a node of the form [`Stage::Rows`] over a batch: the new columns of the rows that passed, their indices,
    /// and the rejects.
    ///
    /// # Panics
    /// If the node has another form or does not build.
    pub fn map(&self, batch: &Batch) -> Mapped {
        let stage = self.build().unwrap_or_else(|fault| panic!("{fault}"));
        let Stage::Rows(map) = stage else { panic!("{stage:?} is not a row map") };
        map_rows(&*map, &self.spec().unwrap_or_else(|error| panic!("{error}")), batch)
    }
}

/// What came of a batch.
pub struct Mapped {
    /// The new columns, over the rows that passed.
    pub columns: Vec<crate::data::Column>,
    /// The indices of the rows that passed.
    pub passed: Vec<usize>,
    /// The others.
    pub rejects: Vec<(usize, Reject)>,
}

fn map_rows(map: &dyn RowMap, spec: &NodeSpec, batch: &Batch) -> Mapped {
    let alloc = HeapPool::new();
    let mut builders: Vec<_> = spec.new_types().iter().map(ColumnBuilder::new).collect();
    let (mut passed, mut rejects) = (Vec::new(), Vec::new());
    for row_idx in 0..batch.n_rows() {
        match map.map_row(batch.row(row_idx), &mut RowMut::new(&mut builders, &alloc)) {
            Ok(()) => passed.push(row_idx),
            Err(reject) => {
                builders.iter_mut().for_each(|builder| builder.truncate(passed.len()));
                rejects.push((row_idx, reject));
            }
        }
        assert!(RowMut::new(&mut builders, &alloc).is_complete(passed.len()), "row {row_idx} left an output out");
    }
    Mapped { columns: builders.into_iter().map(ColumnBuilder::finish).collect(), passed, rejects }
}
