//! What is drawn: names, texts and figures, and nothing that would need the graph itself.

use serde::Serialize;

pub use crate::node::Role;

/// A graph as its reader sees it.
///
/// Nodes are in the order in which they were written; edges name their ends. An edge whose end is no node of the
/// picture, and one that would close a circle, is not drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Picture {
    /// The pipeline's name.
    pub title: String,
    /// The nodes, in the order of the file.
    pub nodes: Vec<PictureNode>,
    /// The edges, in the order of their targets' `from`.
    pub edges: Vec<PictureEdge>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PictureNode {
    /// Its name, unique in the picture.
    pub name: String,
    /// Its kind, such as `decode.image`.
    pub kind: String,
    /// What it is for.
    pub role: Role,
    /// The options that matter, in one line: `256 bicubic, crop 224 (from model)`.
    pub detail: String,
    /// The columns that it gives, each as text: `logits f32 [32,1000]`. Empty for a sink.
    pub columns: Vec<String>,
    /// Who put it there.
    pub origin: Origin,
    /// Figures of a run, if there was one.
    pub live: Option<Live>,
}

/// Who put a node into the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The pipeline file says it.
    Written,
    /// It was put in because its neighbours need it.
    Inserted,
}

/// Figures of one node in a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Live {
    /// Rows handled in a second.
    pub rows_per_s: f64,
    /// Share of the time spent working, 0 to 1.
    pub busy: f64,
    /// Share of the time spent waiting for input.
    pub starved: f64,
    /// Share of the time spent waiting for room behind it.
    pub blocked: f64,
    /// Rows rejected.
    pub rejects: u64,
    /// Whether this node sets the pace of the run.
    pub limits_run: bool,
}

/// One edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PictureEdge {
    /// The name of the node that gives.
    pub from: String,
    /// The name of the node that takes.
    pub to: String,
    /// The columns that travel, as text: `id, uri, image u8 [224,224,3]`.
    pub label: String,
    /// What travels.
    pub carries: EdgeKind,
}

/// What travels along an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// Rows.
    Rows,
    /// What the giving node could not handle.
    Rejects,
}

impl Picture {
    /// Whether any node has figures of a run.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.nodes.iter().any(|node| node.live.is_some())
    }
}
