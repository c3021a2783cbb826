//! A pipeline in two: what comes before the first batch, and the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::config::{OnError, Port};
use engine::data::{Batch, ColumnType, Role as ColumnRole, Schema};
use engine::graph::{Edge, Graph, GraphNode, Merge, Written};
use engine::node::{From, KindRef, Node, NodeSpec, Output, Registry, Role, Stage};

use super::memory;
use super::sample::Sampled;
use super::stub::Stub;

/// Where a graph is cut.
pub(crate) struct Parts {
    /// By node: whether it is a batch or infer node, or behind one.
    is_back: Vec<bool>,
    /// The nodes in front whose rows those behind read.
    pub(super) border: Vec<usize>,
}

impl Parts {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut is_back = vec![false; graph.nodes.len()];
        for &node_idx in &graph.order {
            let node = &graph.nodes[node_idx];
            is_back[node_idx] = matches!(node.kind.role(), Role::Batch | Role::Infer)
                || node.inputs.iter().any(|edge| is_back[edge.from]);
        }
        let is_read = |from: usize| {
            let mut readers = graph.readers(from, Port::Rows).into_iter();
            readers.any(|(reader, _)| is_back[reader])
        };
        let border = (0..graph.nodes.len()).filter(|&node_idx| !is_back[node_idx] && is_read(node_idx)).collect();
        Parts { is_back, border }
    }

    /// What comes before the first batch. The sinks that are put behind it are its last nodes, in the order of the border.
    pub(super) fn front(&self, graph: &Graph, registry: &Registry) -> Graph {
        let mut nodes = graph.nodes.clone();
        let n_nodes = nodes.len();
        for &from in &self.border {
            let node = &graph.nodes[from];
            let mut sink = stub(format!("{}.end", node.name), kind(registry, "sink.jsonl"), nothing());
            sink.inputs = vec![Edge { from, port: Port::Rows }];
            sink.schemas = vec![node.output.clone()];
            nodes.push(sink);
        }
        graph.part(nodes, |node_idx| node_idx >= n_nodes || !self.is_back[node_idx])
    }

    /// What comes from the first batch on, with `sampled` in the place of what comes before.
    ///
    /// # Errors
    /// Why it cannot be had apart.
    pub(super) fn back(&self, graph: &Graph, registry: &Registry, sampled: &Sampled) -> Result<Graph, String> {
        let mut nodes = graph.nodes.clone();
        // Rows of the same sources are joined by their positions, so they come from one source here too.
        let mut sources: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for (&border, batches) in self.border.iter().zip(&sampled.batches) {
            let name = graph.nodes[border].name.clone();
            if batches.is_empty() {
                return Err(format!("no row came to `{name}` in time"));
            }
            let read = graph.sources_of(border);
            let source = *sources.entry(read.clone()).or_insert_with(|| {
                nodes.push(numbers(registry, format!("{name}.rows"), read.first().copied()));
                nodes.len() - 1
            });
            nodes[border] = fed(&graph.nodes[border], registry, source, &nodes[source].output, batches);
        }
        let mut is_kept: Vec<bool> = (0..nodes.len())
            .map(|node_idx| self.is_back.get(node_idx) != Some(&false) || self.border.contains(&node_idx))
            .collect();
        // What reads nothing but rejects of the first part.
        for &node_idx in &graph.order {
            let reads = nodes[node_idx].inputs.iter().any(|edge| is_kept[edge.from]);
            is_kept[node_idx] &= reads;
        }
        if !graph.with_role(Role::Infer).any(|node_idx| is_kept[node_idx]) {
            return Err("its models read nothing but rejects".to_owned());
        }
        Ok(graph.part(nodes, |node_idx| is_kept[node_idx]))
    }
}

fn kind(registry: &Registry, name: &str) -> KindRef {
    registry.get(name).expect("a kind that is always there").clone()
}

/// What is replaced before it is built.
fn nothing() -> Arc<dyn Node> {
    Stub::node(|_| Ok(Stage::Pass))
}

fn stub(name: String, kind: KindRef, node: Arc<dyn Node>) -> GraphNode {
    GraphNode {
        name,
        kind,
        node,
        with: Default::default(),
        inputs: Vec::new(),
        merge: Merge::Single,
        schemas: Vec::new(),
        spec: NodeSpec::default(),
        output: Schema::default(),
        advice: None,
        on_error: OnError::Reject,
        ordered: true,
        queue: None,
        written: Written::Implicit,
        origins: BTreeMap::new(),
        source: None,
    }
}

/// A source of rows without content, in the place of source number `number`.
fn numbers(registry: &Registry, name: String, number: Option<u32>) -> GraphNode {
    let node = Stub::node(|_| Ok(Stage::Source(memory::numbers())));
    let mut source = stub(name, kind(registry, "source.synthetic"), node);
    let columns = [("id", ColumnRole::Id), ("uri", ColumnRole::Uri)];
    for (name, role) in columns {
        source.spec = source.spec.with_new(name, ColumnType::Text, role).expect("the names differ");
    }
    (source.output, source.source) = (source.spec.schema(), number);
    source
}

/// What gives the batches in memory for the rows of `source`, as `node` would.
fn fed(node: &GraphNode, registry: &Registry, source: usize, input: &Schema, batches: &Arc<Vec<Batch>>) -> GraphNode {
    let batches = batches.clone();
    let feeding = Stub::node(move |_| Ok(Stage::Fold(memory::feeding(batches.clone()))));
    let mut fed = stub(node.name.clone(), kind(registry, "transform.select"), feeding);
    let fields = node.output.fields.iter().enumerate();
    let outputs = fields.map(|(column, field)| Output { field: field.clone(), from: From::Input { input: 0, column } });
    fed.spec = NodeSpec { outputs: outputs.collect(), batch: node.output.batch, ..NodeSpec::default() };
    fed.inputs = vec![Edge { from: source, port: Port::Rows }];
    (fed.schemas, fed.output) = (vec![input.clone()], node.output.clone());
    fed
}
