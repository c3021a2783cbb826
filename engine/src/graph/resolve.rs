//! Names to indices: who reads whom.

use crate::config::{Document, Mistake, Mistakes, NodeDecl, Port, list, nearest};
use crate::node::Role;

use super::Edge;
use super::compile::Kinds;

/// The edges into each node of the document, in the order of `from`, as far as they could be resolved.
pub(super) fn edges(document: &Document, kinds: &Kinds<'_>, mistakes: &mut Mistakes) -> Vec<Vec<Edge>> {
    let resolve = |node_idx: usize| match &document.nodes[node_idx].from {
        None => from_above(document, kinds, node_idx, mistakes),
        Some(_) => from_written(document, kinds, node_idx, mistakes),
    };
    let edges: Vec<_> = (0..document.nodes.len()).map(resolve).collect();
    check_ends(document, kinds, &edges, mistakes);
    edges
}

/// `from` left out means the node written just above.
fn from_above(document: &Document, kinds: &Kinds<'_>, node_idx: usize, mistakes: &mut Mistakes) -> Vec<Edge> {
    let decl = &document.nodes[node_idx];
    if kinds.role(node_idx) == Role::Source {
        return Vec::new();
    }
    let Some(above) = node_idx.checked_sub(1) else {
        let message = format!("`{}` has nothing to read: there is no node above it", decl.name.value);
        mistakes.push(Mistake::at(decl.name.span, message).label("put a source above it, or say `from`"));
        return Vec::new();
    };
    if kinds.role(above) == Role::Sink {
        let message =
            format!("`{}` would read `{}`, which is a sink", decl.name.value, document.nodes[above].name.value);
        mistakes.push(Mistake::at(decl.name.span, message).label("say with `from` what it reads"));
        return Vec::new();
    }
    vec![Edge { from: above, port: Port::Rows }]
}

fn from_written(document: &Document, kinds: &Kinds<'_>, node_idx: usize, mistakes: &mut Mistakes) -> Vec<Edge> {
    let decl = &document.nodes[node_idx];
    let inputs = decl.from.as_deref().unwrap_or_default();
    if kinds.role(node_idx) == Role::Source {
        let span = inputs.first().map_or(decl.name.span, |input| input.span);
        mistakes.push(
            Mistake::at(span, format!("`{}` is a source and reads no node", decl.name.value)).label("remove `from`"),
        );
        return Vec::new();
    }
    let mut edges = Vec::new();
    for input in inputs {
        let Some(from) = document.nodes.iter().position(|other| other.name.value == input.node) else {
            let names =
                || document.nodes.iter().map(|other| other.name.value.as_str()).filter(|name| *name != decl.name.value);
            let mistake = Mistake::at(input.span, format!("node `{}` does not exist", input.node));
            mistakes.push(mistake.suggest(&input.node, names()).note(format!("nodes: {}", list(names()))));
            continue;
        };
        let edge = Edge { from, port: input.port };
        if kinds.role(from) == Role::Sink {
            let message = format!("`{}` is a sink and gives no rows", input.node);
            mistakes.push(Mistake::at(input.span, message).label("name a node before it"));
        } else if edges.contains(&edge) {
            mistakes.push(Mistake::at(input.span, format!("`{input}` is named twice")).label("name it once"));
        } else if edge.port == Port::Rejects && kinds.role(from) == Role::Batch {
            let message = format!("`{}` only puts rows together and rejects none", input.node);
            mistakes.push(Mistake::at(input.span, message).label("name the node that may reject rows"));
        } else {
            edges.push(edge);
        }
    }
    edges
}

/// Every path begins in a source and ends in a sink.
fn check_ends(document: &Document, kinds: &Kinds<'_>, edges: &[Vec<Edge>], mistakes: &mut Mistakes) {
    if document.nodes.is_empty() {
        return;
    }
    for role in [Role::Source, Role::Sink] {
        if !(0..document.nodes.len()).any(|node_idx| kinds.role(node_idx) == role) {
            let word = role.word();
            let examples = list(kinds.registry.iter().filter(|kind| kind.role() == role).map(|kind| kind.name()));
            let mistake = Mistake::at(document.nodes[0].name.span, format!("the pipeline has no {word}"));
            mistakes.push(mistake.label(format!("add a node of a {word} kind")).note(format!("kinds: {examples}")));
        }
    }
    for (node_idx, decl) in document.nodes.iter().enumerate() {
        let is_read = edges.iter().flatten().any(|edge| edge.from == node_idx && edge.port == Port::Rows);
        if kinds.role(node_idx) != Role::Sink && !is_read && !is_wanted(document, decl) {
            let message = format!("nothing reads `{}`", decl.name.value);
            mistakes.push(Mistake::at(decl.name.span, message).label("add a sink behind it, or remove it"));
        }
        let wants = decl.from.as_ref().map_or(edges[node_idx].len(), Vec::len);
        if kinds.node(node_idx).is_some_and(|node| node.joins()) && wants < 2 {
            let message = format!("`{}` joins, and has only one input", decl.name.value);
            let span = decl.from.as_ref().and_then(|from| from.first()).map_or(decl.name.span, |from| from.span);
            mistakes.push(Mistake::at(span, message).label("write `from: [a, b]`"));
        }
    }
}

/// Whether some `from` names the node, even if that edge was refused for another reason or the name was misspelt.
fn is_wanted(document: &Document, decl: &NodeDecl) -> bool {
    let name = decl.name.value.as_str();
    let names = || document.nodes.iter().map(|other| other.name.value.as_str());
    let mut inputs = document
        .nodes
        .iter()
        .filter_map(|other| other.from.as_ref())
        .flatten()
        .filter(|input| input.port == Port::Rows);
    inputs.any(|input| {
        input.node == name || (names().all(|other| other != input.node) && nearest(&input.node, names()) == Some(name))
    })
}

/// Tells the cycles.
pub(super) fn check_cycles(document: &Document, cycles: &[Vec<usize>], mistakes: &mut Mistakes) {
    for cycle in cycles {
        let first = cycle[0];
        let names: Vec<_> =
            cycle.iter().map(|&node_idx| format!("`{}`", document.nodes[node_idx].name.value)).collect();
        let decl = &document.nodes[first];
        let back = decl
            .from
            .iter()
            .flatten()
            .find(|input| cycle.iter().any(|&node_idx| document.nodes[node_idx].name.value == input.node));
        let span = back.map_or(decl.name.span, |input| input.span);
        let message = match cycle.len() {
            1 => format!("{} reads itself", names[0]),
            _ => format!("{} read each other in a cycle", names.join(", ")),
        };
        mistakes.push(Mistake::at(span, message).label("a pipeline goes from its sources to its sinks"));
    }
}
