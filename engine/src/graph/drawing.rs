//! The graph as a [`Picture`].

use super::graph::{Graph, GraphNode, Written};
use super::reject_schema;
use super::render::{EdgeKind, Origin, Picture, PictureEdge, PictureNode, Role as Colour};
use crate::config::Port;
use crate::node::Role;

impl Graph {
    /// What the renderings draw. Secrets are made unreadable.
    pub fn picture(&self) -> Picture {
        let nodes = self.nodes.iter().map(|node| self.picture_node(node)).collect();
        let edges = self.nodes.iter().flat_map(|node| {
            node.inputs.iter().map(|edge| {
                let (label, carries) = match edge.port {
                    Port::Rows => (columns(self.nodes[edge.from].output.fields.iter()), EdgeKind::Rows),
                    Port::Rejects => (columns(reject_schema(edge.from).fields.iter()), EdgeKind::Rejects),
                };
                PictureEdge {
                    from: self.nodes[edge.from].name.clone(),
                    to: node.name.clone(),
                    label: label.join(", "),
                    carries,
                }
            })
        });
        Picture { title: self.name.clone(), nodes, edges: edges.collect() }
    }

    fn picture_node(&self, node: &GraphNode) -> PictureNode {
        let made = node.output.fields.iter().filter(|field| {
            node.kind.role() == Role::Batch
                || node.source.is_some()
                || node
                    .spec
                    .outputs
                    .iter()
                    .any(|output| output.field == **field && output.from == crate::node::From::New)
        });
        PictureNode {
            name: node.name.clone(),
            kind: node.kind.name().to_owned(),
            role: colour(node.kind.role()),
            detail: self.redact(&node.spec.detail),
            columns: columns(made),
            origin: match node.written {
                Written::Explicit => Origin::Written,
                Written::Implicit => Origin::Inserted,
            },
            live: None,
        }
    }
}

fn columns<'a>(fields: impl Iterator<Item = &'a crate::data::Field>) -> Vec<String> {
    fields.map(|field| format!("{} {}", field.name, field.ty)).collect()
}

fn colour(role: Role) -> Colour {
    match role {
        Role::Source => Colour::Source,
        Role::Decode => Colour::Decode,
        Role::Batch => Colour::Batch,
        Role::Infer => Colour::Infer,
        Role::Transform => Colour::Transform,
        Role::Sink => Colour::Sink,
    }
}
