//! The graph as a [`Picture`].

use super::graph::{Graph, GraphNode, Written};
use super::reject_schema;
use super::render::{EdgeKind, Origin, Picture, PictureEdge, PictureNode};
use crate::config::Port;
use crate::data::{ColumnType, Dim, Field, Role as Column, Schema};
use crate::node::{From, Role};

impl Graph {
    /// What the renderings draw. Secrets are made unreadable.
    pub fn picture(&self) -> Picture {
        let nodes = self.nodes.iter().map(|node| self.picture_node(node)).collect();
        let edges = self.nodes.iter().flat_map(|node| {
            node.inputs.iter().map(|edge| {
                let (label, carries) = match edge.port {
                    Port::Rows => (travelling(&self.nodes[edge.from].output), EdgeKind::Rows),
                    Port::Rejects => (travelling(&reject_schema(edge.from)), EdgeKind::Rejects),
                };
                PictureEdge {
                    from: self.nodes[edge.from].name.clone(),
                    to: node.name.clone(),
                    label: self.redact(&label.join(", ")),
                    carries,
                }
            })
        });
        Picture { title: self.name.clone(), nodes, edges: edges.collect() }
    }

    fn picture_node(&self, node: &GraphNode) -> PictureNode {
        let columns = match node.kind.role() {
            Role::Batch => node.output.fields.iter().filter_map(|field| batched(field, node.output.batch)).collect(),
            _ => columns(node.output.fields.iter().filter(|field| node.source.is_some() || is_made(node, field))),
        };
        PictureNode {
            name: node.name.clone(),
            kind: node.kind.name().to_owned(),
            role: node.kind.role(),
            detail: self.redact(&node.spec.detail),
            columns: columns.iter().map(|column| self.redact(column)).collect(),
            origin: match node.written {
                Written::Explicit => Origin::Written,
                Written::Implicit => Origin::Inserted,
            },
            live: None,
        }
    }
}

fn is_made(node: &GraphNode, field: &Field) -> bool {
    node.spec.outputs.iter().any(|output| output.field == *field && output.from == From::New)
}

/// What a batch makes of a tensor column: `image u8 [32,224,224,3]`.
fn batched(field: &Field, rows: Option<usize>) -> Option<String> {
    let ColumnType::Tensor { dtype, shape } = &field.ty else { return None };
    let shape = std::iter::once(Dim::Fixed(rows?)).chain(shape.iter().copied()).collect();
    Some(format!("{} {}", field.name, ColumnType::Tensor { dtype: *dtype, shape }))
}

/// The columns that matter on an edge: all but those that sinks write only when they are named, and payloads.
fn travelling(schema: &Schema) -> Vec<String> {
    let matters = |field: &&Field| field.role != Column::Auxiliary || field.ty == ColumnType::Bytes;
    let fields = schema.fields.iter().filter(matters);
    fields.map(|field| batched(field, schema.batch).unwrap_or_else(|| format!("{} {}", field.name, field.ty))).collect()
}

fn columns<'a>(fields: impl Iterator<Item = &'a Field>) -> Vec<String> {
    fields.map(|field| format!("{} {}", field.name, field.ty)).collect()
}
