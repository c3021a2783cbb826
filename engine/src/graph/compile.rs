//! `Document` to [`Graph`]: the passes in order, every mistake of each collected.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dag::Dag;
use super::graph::{Edge, Graph, GraphNode, Merge, Written};
use super::{advice, origins, paths, resolve, typing};
use crate::config::{Document, KindSchemas, Mistake, Mistakes, OnError, Port};
use crate::data::Schema;
use crate::node::{KindRef, Node, NodeSpec, Registry, Role};

impl KindSchemas for Registry {
    fn names(&self) -> Vec<&str> {
        self.iter().map(|kind| kind.name()).collect()
    }

    fn schema(&self, kind: &str) -> Option<&serde_json::Value> {
        self.get(kind).map(|kind| kind.schema())
    }
}

/// The kinds and parsed options of a document's nodes; `None` where they were mistaken.
pub(super) struct Kinds<'a> {
    pub(super) registry: &'a Registry,
    roles: Vec<Role>,
    nodes: Vec<Option<(KindRef, Arc<dyn Node>)>>,
}

impl<'a> Kinds<'a> {
    fn parse(document: &Document, registry: &'a Registry, mistakes: &mut Mistakes) -> Self {
        // Options that do not fit their schema have been told.
        let is_told = !mistakes.is_empty();
        let parse = |decl: &crate::config::NodeDecl| {
            let kind = registry.get(&decl.kind.value)?.clone();
            match kind.parse(decl.with.clone()) {
                Ok(node) => Some((kind, Arc::from(node))),
                Err(_) if is_told => None,
                Err(error) => {
                    mistakes.push(decl.misfit(&error));
                    None
                }
            }
        };
        let role =
            |decl: &crate::config::NodeDecl| registry.get(&decl.kind.value).map_or(Role::Transform, |kind| kind.role());
        let roles = document.nodes.iter().map(role).collect();
        Kinds { registry, roles, nodes: document.nodes.iter().map(parse).collect() }
    }

    /// What node `node_idx` of the document is for.
    pub(super) fn role(&self, node_idx: usize) -> Role {
        self.roles[node_idx]
    }

    /// The options of node `node_idx` of the document.
    pub(super) fn node(&self, node_idx: usize) -> Option<&Arc<dyn Node>> {
        self.nodes[node_idx].as_ref().map(|(_, node)| node)
    }
}

/// A node on its way into the graph.
pub(super) struct Draft<'a> {
    /// The declaration that it comes from; an implicit node has that of the node it was made for.
    pub(super) decl: &'a crate::config::NodeDecl,
    pub(super) written: Written,
    pub(super) name: String,
    pub(super) kind: KindRef,
    pub(super) node: Arc<dyn Node>,
    pub(super) with: serde_yaml::Value,
    pub(super) inputs: Vec<Edge>,
}

impl Draft<'_> {
    pub(super) fn merge(&self) -> Merge {
        match self.inputs.len() {
            0 | 1 => Merge::Single,
            _ if self.node.joins() => Merge::Join,
            _ => Merge::Union,
        }
    }
}

impl Graph {
    /// Resolves and type-checks a document.
    ///
    /// # Errors
    /// All mistakes that were found, at their positions.
    pub fn compile(document: &Document, registry: &Registry) -> Result<Graph, Mistakes> {
        let mut mistakes = document.mistakes();
        let is_told = !mistakes.is_empty();
        let kinds = Kinds::parse(document, registry, &mut mistakes);
        let edges = resolve::edges(document, &kinds, &mut mistakes);
        let shape = |edges: &[Vec<Edge>]| {
            let pairs = edges.iter().enumerate().flat_map(|(to, from)| from.iter().map(move |edge| (edge.from, to)));
            Dag::new(edges.len(), pairs.collect::<Vec<_>>())
        };
        if let Err(cycles) = shape(&edges).order() {
            resolve::check_cycles(document, &cycles, &mut mistakes);
            return Err(mistakes);
        }
        if is_told || kinds.nodes.iter().any(Option::is_none) || edges_are_missing(document, &kinds, &edges) {
            // Types behind a gap are unknown; what can be said before it was said.
            return Err(mistakes);
        }
        let drafts = drafts(document, &kinds, edges);
        let dag = shape(&drafts.iter().map(|draft| draft.inputs.clone()).collect::<Vec<_>>());
        let order = dag.order().expect("batch nodes were put into edges of a graph without cycles");
        let advice = advice::collect(&drafts, &dag, document.folder(), &mut mistakes);
        let sources = origins::number_sources(&drafts, &dag, &mut mistakes);
        let (origins, unjoinable) = origins::trace(&drafts, &order, &sources, &mut mistakes);
        let types = typing::check(&drafts, &order, &advice, &unjoinable, document.folder(), &mut mistakes);
        paths::check(&drafts, document, &mut mistakes);
        check_order(&drafts, &dag, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let nodes = assemble(drafts, types, advice, origins, &sources);
        mistakes.into_result(Graph {
            name: document.name.value.clone(),
            base: document.folder().to_owned(),
            run: document.run.clone(),
            nodes,
            order,
            secrets: document.secrets().to_vec(),
        })
    }
}

fn edges_are_missing(document: &Document, kinds: &Kinds<'_>, edges: &[Vec<Edge>]) -> bool {
    edges.iter().enumerate().any(|(node_idx, edges)| {
        let least = if kinds.node(node_idx).is_some_and(|node| node.joins()) { 2 } else { 1 };
        let wanted = document.nodes[node_idx].from.as_ref().map_or(1, Vec::len).max(least);
        kinds.role(node_idx) != Role::Source && edges.len() < wanted
    })
}

/// The nodes with a batch node put before each that reads batches and has none.
fn drafts<'a>(document: &'a Document, kinds: &Kinds<'_>, edges: Vec<Vec<Edge>>) -> Vec<Draft<'a>> {
    let needs_batch = |node_idx: usize| {
        let size = kinds.node(node_idx)?.batch_size()?;
        match edges[node_idx][..] {
            [Edge { from, port: Port::Rows }] if kinds.role(from) == Role::Batch => None,
            _ => Some(size),
        }
    };
    let sizes: Vec<_> = (0..document.nodes.len()).map(needs_batch).collect();
    // Where each node of the document comes to stand: after the implicit nodes before it and its own.
    let mut n_implicit = 0;
    let place: Vec<_> = sizes
        .iter()
        .enumerate()
        .map(|(node_idx, size)| {
            n_implicit += usize::from(size.is_some());
            node_idx + n_implicit
        })
        .collect();
    let mut drafts = Vec::with_capacity(document.nodes.len() + n_implicit);
    for (node_idx, (decl, size)) in document.nodes.iter().zip(sizes).enumerate() {
        let (kind, node) = kinds.nodes[node_idx].clone().expect("nodes with mistaken options were told before");
        let mut inputs: Vec<_> =
            edges[node_idx].iter().map(|edge| Edge { from: place[edge.from], port: edge.port }).collect();
        if let Some(size) = size {
            let (kind, node, with) = implicit_batch(kinds.registry, size);
            let name = format!("{}.batch", decl.name.value);
            drafts.push(Draft { decl, written: Written::Implicit, name, kind, node, with, inputs });
            inputs = vec![Edge { from: drafts.len() - 1, port: Port::Rows }];
        }
        let name = decl.name.value.clone();
        let with = decl.with.clone();
        drafts.push(Draft { decl, written: Written::Explicit, name, kind, node, with, inputs });
    }
    drafts
}

fn implicit_batch(registry: &Registry, size: usize) -> (KindRef, Arc<dyn Node>, serde_yaml::Value) {
    let kind = registry.get("batch").expect("a registry with kinds that read batches has the kind `batch`").clone();
    let mut with = serde_yaml::Mapping::new();
    with.insert("size".into(), (size as u64).into());
    let with = serde_yaml::Value::from(with);
    let node = kind.parse(with.clone()).expect("`batch` takes a size");
    (kind, Arc::from(node), with)
}

/// Nodes that merge rely on the order of their inputs.
fn check_order(drafts: &[Draft<'_>], dag: &Dag, mistakes: &mut Mistakes) {
    for (node_idx, draft) in drafts.iter().enumerate() {
        if draft.decl.ordered || draft.written == Written::Implicit {
            continue;
        }
        if let Some(&merging) = dag.descendants(node_idx).iter().find(|&&below| drafts[below].merge() != Merge::Single)
        {
            let message = format!(
                "`{}` has `ordered: false`, and `{}` merges rows by their order",
                draft.name, drafts[merging].name
            );
            mistakes.push(Mistake::at(draft.decl.name.span, message).label("leave `ordered` out"));
        }
    }
}

fn assemble(
    drafts: Vec<Draft<'_>>,
    types: Vec<Option<typing::Typed>>,
    mut advice: BTreeMap<usize, crate::node::Advice>,
    origins: Vec<BTreeMap<super::RowOrigin, u32>>,
    sources: &BTreeMap<usize, u32>,
) -> Vec<GraphNode> {
    let nodes = drafts.into_iter().zip(types).zip(origins).enumerate().map(|(node_idx, ((draft, typed), origins))| {
        let typed = typed.unwrap_or(typing::Typed {
            schemas: Vec::new(),
            spec: NodeSpec::default(),
            output: Schema::default(),
        });
        GraphNode {
            merge: draft.merge(),
            on_error: if draft.written == Written::Explicit { draft.decl.on_error } else { OnError::Reject },
            ordered: draft.written == Written::Implicit || draft.decl.ordered,
            queue: draft.decl.queue.map(std::num::NonZeroUsize::get),
            name: draft.name,
            kind: draft.kind,
            node: draft.node,
            with: draft.with,
            inputs: draft.inputs,
            schemas: typed.schemas,
            spec: typed.spec,
            output: typed.output,
            advice: advice.remove(&node_idx),
            written: draft.written,
            origins,
            source: sources.get(&node_idx).copied(),
        }
    });
    nodes.collect()
}
