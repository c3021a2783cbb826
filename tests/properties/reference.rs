//! What a pipeline must give, worked out row by row.

use std::collections::{BTreeMap, BTreeSet};

/// A row's position: the rank of its source and its index in it.
pub type Pos = (usize, u64);

/// The rows on one edge: their positions in order, and the int columns that they carry.
#[derive(Clone, Debug)]
pub struct Stream {
    pub node: String,
    pub columns: Vec<String>,
    pub rows: Vec<Pos>,
    /// The sources that feed it.
    pub sources: BTreeSet<usize>,
    /// Whether a position can come more than once.
    pub repeats: bool,
}

impl Stream {
    /// The rows as a JSONL sink writes them.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        let line = |&(_, index): &Pos| {
            let mut row = serde_json::Map::new();
            row.insert("uri".to_owned(), format!("synthetic/{index}").into());
            self.columns.iter().for_each(|column| {
                row.insert(column.clone(), index.into());
            });
            serde_json::Value::Object(row)
        };
        self.rows.iter().map(line).collect()
    }
}

/// Rejected rows: the first node in the order of the file for each position.
#[derive(Default)]
pub struct Rejects {
    first: BTreeMap<Pos, (usize, String, &'static str)>,
}

impl Rejects {
    pub fn add(&mut self, pos: Pos, node_idx: usize, node: &str, code: &'static str) {
        let entry = (node_idx, node.to_owned(), code);
        let first = self.first.entry(pos).or_insert_with(|| entry.clone());
        if entry.0 < first.0 {
            *first = entry;
        }
    }

    /// Uri, node, code, in order.
    pub fn rows(self) -> Vec<(String, String, String)> {
        let row = |((_, index), (_, node, code)): (Pos, (usize, String, &'static str))| {
            (format!("synthetic/{index}"), node, code.to_owned())
        };
        self.first.into_iter().map(row).collect()
    }
}
