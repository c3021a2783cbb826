//! Drives one node without a runtime: for the tests of kinds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    BuildCx, Cancel, Fault, Fold, Item, Kind, Node, NodeKind, NodeSpec, Reading, RowMap, Sink, SourceStage, SpecCx,
    SpecError, Stage,
};
use crate::data::{Batch, Column, ColumnBuilder, HeapPool, Reject, RowMut, RowPos, Schema};

/// A node of one kind with its inputs' schemas, ready to be asked for its spec, built and driven.
pub struct Harness {
    node: Box<dyn Node>,
    inputs: Vec<Schema>,
    input_names: Vec<String>,
    base: PathBuf,
    cancel: Cancel,
}

impl Harness {
    /// A node of kind `K` with the options `with` (YAML). The inputs are called `input_0`, `input_1`, …
    ///
    /// # Panics
    /// If the options do not parse.
    pub fn new<K: NodeKind>(with: &str, inputs: Vec<Schema>) -> Self {
        Harness::parse::<K>(with, inputs).unwrap_or_else(|error| panic!("{with}: {error}"))
    }

    /// As [`Harness::new`], for options that may be wrong.
    ///
    /// # Errors
    /// What the parser says.
    pub fn parse<K: NodeKind>(with: &str, inputs: Vec<Schema>) -> Result<Self, String> {
        let value = serde_yaml::from_str(with).map_err(|error| error.to_string())?;
        let node = Kind::of::<K>().parse(value)?;
        let input_names = (0..inputs.len()).map(|input_idx| format!("input_{input_idx}")).collect();
        Ok(Harness { node, inputs, input_names, base: ".".into(), cancel: Cancel::new() })
    }

    /// Relative paths start from `base`.
    pub fn in_folder(mut self, base: &Path) -> Self {
        self.base = base.to_owned();
        self
    }

    /// The node, for the questions that need no inputs.
    pub fn node(&self) -> &dyn Node {
        &*self.node
    }

    /// What the node says it does.
    ///
    /// # Errors
    /// The node's.
    pub fn spec(&self) -> Result<NodeSpec, SpecError> {
        let names: Vec<_> = self.input_names.iter().map(String::as_str).collect();
        let cx = SpecCx { name: "node", inputs: &self.inputs, input_names: &names, advice: None, base: &self.base };
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
        let alone = BuildCx::alone("node", &self.inputs, &spec, &self.base, Arc::new(HeapPool::new()));
        self.node.build(&BuildCx { cancel: self.cancel.clone(), ..alone })
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

    /// Builds a source.
    ///
    /// # Errors
    /// The node's.
    ///
    /// # Panics
    /// If the node has another form.
    pub fn source(&self) -> Result<SourceStage, Fault> {
        match self.build()? {
            Stage::Source(source) => Ok(source),
            stage => panic!("{stage:?} is not a source"),
        }
    }

    /// All items that a source lists, asked for in portions of `portion`.
    ///
    /// # Errors
    /// The node's.
    ///
    /// # Panics
    /// If the node has another form.
    pub fn items(&self, portion: usize) -> Result<Vec<Item>, Fault> {
        let mut source = self.source()?;
        let mut items = Vec::new();
        loop {
            let before = items.len();
            source.list.next_items(portion, &mut items)?;
            assert!(items.len() - before <= portion, "{} items in a portion of {portion}", items.len() - before);
            if items.len() == before {
                return Ok(items);
            }
        }
    }

    /// What a source fetches for each of `items`, with the columns `id` and `uri` filled in as the runtime does.
    ///
    /// # Panics
    /// If the node has another form or does not build.
    pub fn fetch(&self, items: &[Item]) -> Mapped {
        let source = self.source().unwrap_or_else(|fault| panic!("{fault}"));
        let spec = self.spec().unwrap_or_else(|error| panic!("{error}"));
        rows(&spec, items.len(), |item_idx, out| {
            let item = &items[item_idx];
            out.text(0, item.id.as_ref().unwrap_or(&item.uri));
            out.text(1, &item.uri);
            let Reading::Rows(fetch) = &source.reading else { panic!("its items hold rows") };
            fetch.fetch(item_idx as u64, item, out).map(drop)
        })
    }

    /// What a source makes of item number `index`, from its row `skip` on, with the columns `id` and `uri` filled in as the
    /// runtime does.
    ///
    /// # Panics
    /// If the node has another form or does not build, or the item cannot be opened.
    pub fn unpack(&self, index: u64, item: &Item, skip: u32) -> Mapped {
        let source = self.source().unwrap_or_else(|fault| panic!("{fault}"));
        let Reading::Unpacked(unpack) = source.reading else { panic!("its items are rows") };
        let mut opened = unpack.open(index, item, skip).unwrap_or_else(|reject| panic!("{}", reject.message));
        let entries: Vec<_> = std::iter::from_fn(|| opened.next_entry()).collect();
        let spec = self.spec().unwrap_or_else(|error| panic!("{error}"));
        rows(&spec, entries.len(), |row_idx, out| {
            let entry = &entries[row_idx];
            out.text(0, entry.id.as_ref().unwrap_or(&entry.uri));
            out.text(1, &entry.uri);
            match &entry.content {
                Ok(_) => unpack.read(item, entry, out),
                Err(reject) => Err(reject.clone()),
            }
        })
    }

    /// Builds a fold.
    ///
    /// # Panics
    /// If the node has another form or does not build.
    pub fn fold(&self) -> Box<dyn Fold> {
        match self.build().unwrap_or_else(|fault| panic!("{fault}")) {
            Stage::Fold(fold) => fold,
            stage => panic!("{stage:?} is not a fold"),
        }
    }

    /// Builds a sink.
    ///
    /// # Errors
    /// The node's.
    ///
    /// # Panics
    /// If the node has another form.
    pub fn sink(&self) -> Result<Box<dyn Sink>, Fault> {
        match self.build()? {
            Stage::Sink(sink) => Ok(sink),
            stage => panic!("{stage:?} is not a sink"),
        }
    }
}

/// A batch of `n_rows` rows of `schema` at the positions from `first` on; `write` writes each column of a row once.
pub fn batch(schema: &Schema, first: u64, n_rows: usize, mut write: impl FnMut(u64, &mut RowMut<'_>)) -> Batch {
    let alloc = HeapPool::new();
    let mut builders: Vec<_> = schema.fields.iter().map(|field| ColumnBuilder::new(&field.ty)).collect();
    let positions: Vec<_> = (first..first + n_rows as u64).map(|index| RowPos::new(0, index)).collect();
    for pos in &positions {
        write(pos.index, &mut RowMut::new(&mut builders, &alloc));
    }
    Batch::new(positions, builders.into_iter().map(ColumnBuilder::finish).collect())
}

/// What came of a batch.
pub struct Mapped {
    /// The new columns, over the rows that passed.
    pub columns: Vec<Column>,
    /// The indices of the rows that passed.
    pub passed: Vec<usize>,
    /// The others.
    pub rejects: Vec<(usize, Reject)>,
}

fn map_rows(map: &dyn RowMap, spec: &NodeSpec, batch: &Batch) -> Mapped {
    rows(spec, batch.n_rows(), |row_idx, out| map.map_row(batch.row(row_idx), out))
}

fn rows(spec: &NodeSpec, n_rows: usize, mut row: impl FnMut(usize, &mut RowMut<'_>) -> Result<(), Reject>) -> Mapped {
    let alloc = HeapPool::new();
    let mut builders: Vec<_> = spec.new_types().iter().map(ColumnBuilder::new).collect();
    let (mut passed, mut rejects) = (Vec::new(), Vec::new());
    for row_idx in 0..n_rows {
        match row(row_idx, &mut RowMut::new(&mut builders, &alloc)) {
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
