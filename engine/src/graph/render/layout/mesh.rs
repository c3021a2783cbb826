//! The graph as layers of vertices, in which each line goes from one layer to the next.
//!
//! Nodes are on even layers. On the odd ones, and on even ones that an edge passes by, stand bends: vertices that only
//! a line goes through. The first bend of an edge carries its label.

use super::super::picture::{EdgeKind, Picture, PictureEdge};
use super::super::plain::{one_line, width};
use super::super::wiring::Wiring;
use super::face::Face;
use super::measure::{mono, wrap};

/// Size of the font of labels.
pub(super) const LABEL_SIZE: f64 = 10.0;
/// Height of a line of a label.
pub(super) const LABEL_LINE: f64 = 12.0;
const LABEL_COLUMNS: usize = 18;
const LABEL_LINES: usize = 3;

/// What goes through a layer.
#[derive(Debug)]
pub(super) struct Vertex {
    /// Its layer.
    pub layer: usize,
    /// Whether it is a node's, or a line's.
    pub stands_for: StandsFor,
    /// The room that it takes to the side.
    pub width: f64,
    /// The room that it takes above its height.
    pub above: f64,
    /// The room that it takes below.
    pub below: f64,
}

/// What a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandsFor {
    /// The node of the same index.
    Node,
    /// A place where a line passes.
    Bend,
}

/// An edge as the vertices that it goes through.
#[derive(Debug)]
pub(super) struct Path {
    /// Index into `Picture::edges`.
    pub edge: usize,
    /// What travels.
    pub carries: EdgeKind,
    /// From the node that gives to the one that takes, one in each layer.
    pub vertices: Vec<usize>,
    /// How far below the middle of the giving box the line starts.
    pub port: f64,
    /// The lines of its label.
    pub label: Vec<String>,
}

/// Layers, vertices and paths.
#[derive(Debug)]
pub(super) struct Mesh {
    /// The vertices; the first are the nodes, in the picture's order.
    pub vertices: Vec<Vertex>,
    /// The vertices of each layer, from the top.
    pub layers: Vec<Vec<usize>>,
    /// The edges.
    pub paths: Vec<Path>,
    /// What stands in the nodes' boxes.
    pub faces: Vec<Face>,
}

impl Mesh {
    pub(super) fn new(picture: &Picture, wiring: &Wiring) -> Self {
        let faces: Vec<Face> = picture.nodes.iter().map(Face::of).collect();
        let ranks = ranks(wiring);
        let n_layers = ranks.iter().max().map_or(0, |last| 2 * last + 1);
        let mut mesh = Self { vertices: Vec::new(), layers: vec![Vec::new(); n_layers], paths: Vec::new(), faces };
        for (node, face) in mesh.faces.iter().enumerate() {
            let half = face.height / 2.0;
            let (layer, width) = (2 * ranks[node], face.width);
            mesh.vertices.push(Vertex { layer, stands_for: StandsFor::Node, width, above: half, below: half });
        }
        for link in &wiring.links {
            let mut path = Path {
                edge: link.edge,
                carries: link.carries,
                vertices: vec![link.from],
                port: 0.0,
                label: label_lines(&picture.edges[link.edge]),
            };
            for layer in 2 * ranks[link.from] + 1..2 * ranks[link.to] {
                let carried: &[String] = if path.vertices.len() == 1 { &path.label } else { &[] };
                let width = carried.iter().map(|line| mono(line, LABEL_SIZE).ceil()).fold(0.0, f64::max);
                let above = if carried.is_empty() { 3.0 } else { carried.len() as f64 * LABEL_LINE + 5.0 };
                path.vertices.push(mesh.vertices.len());
                mesh.vertices.push(Vertex { layer, stands_for: StandsFor::Bend, width, above, below: 3.0 });
            }
            path.vertices.push(link.to);
            mesh.paths.push(path);
        }
        mesh.fill_layers(wiring);
        mesh
    }

    /// Puts the vertices into their layers in the order in which a walk along the edges meets them, rejects last: so
    /// branches start out side by side, in the order of the file.
    fn fill_layers(&mut self, wiring: &Wiring) {
        let mut paths_of = vec![Vec::new(); self.faces.len()];
        for carries in [EdgeKind::Rows, EdgeKind::Rejects] {
            for (idx, path) in self.paths.iter().enumerate().filter(|(_, path)| path.carries == carries) {
                paths_of[path.vertices[0]].push(idx);
            }
        }
        let mut seen = vec![false; self.faces.len()];
        let mut stack: Vec<usize> =
            wiring.order.iter().rev().copied().filter(|&n| wiring.into(n).next().is_none()).collect();
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            self.layers[self.vertices[node].layer].push(node);
            for &idx in &paths_of[node] {
                let vertices = &self.paths[idx].vertices;
                for &bend in &vertices[1..vertices.len() - 1] {
                    self.layers[self.vertices[bend].layer].push(bend);
                }
            }
            stack.extend(
                paths_of[node].iter().rev().map(|&idx| self.paths[idx].vertices.last().copied().unwrap_or(node)),
            );
        }
    }

    /// The place of each vertex in its layer.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.vertices.len()];
        for layer in &self.layers {
            for (place, &vertex) in layer.iter().enumerate() {
                places[vertex] = place;
            }
        }
        places
    }

    /// Rows leave a box in the middle; rejects beside them, on the side to which they go.
    pub(super) fn place_ports(&mut self) {
        let places = self.places();
        let mut rows_place: Vec<Option<usize>> = vec![None; self.faces.len()];
        for path in self.paths.iter().filter(|path| path.carries == EdgeKind::Rows) {
            let place = &mut rows_place[path.vertices[0]];
            *place = place.or(Some(places[path.vertices[1]]));
        }
        for path in self.paths.iter_mut().filter(|path| path.carries == EdgeKind::Rejects) {
            let Some(rows_place) = rows_place[path.vertices[0]] else {
                continue;
            };
            let offset = self.faces[path.vertices[0]].height / 2.0 - 11.0;
            path.port = if places[path.vertices[1]] < rows_place { -offset } else { offset };
        }
    }
}

/// The columns of a schema: one that fits on a line is not broken, and a type keeps its shape. Rejects say what they are.
fn label_lines(edge: &PictureEdge) -> Vec<String> {
    let bind = |column: &str| match width(column) < LABEL_COLUMNS {
        true => column.replace(' ', "\u{a0}"),
        false => column.replace(" [", "\u{a0}["),
    };
    let columns = one_line(&edge.label).split(", ").map(bind).collect::<Vec<_>>().join(", ");
    match edge.carries {
        EdgeKind::Rows => wrap(&columns, LABEL_COLUMNS, LABEL_LINES),
        EdgeKind::Rejects => {
            let mut lines = vec!["rejects".to_owned()];
            lines.append(&mut wrap(&columns, LABEL_COLUMNS, LABEL_LINES - 1));
            lines
        }
    }
}

/// The length of the longest way to each node; a node that only gives stands just before the first that takes.
fn ranks(wiring: &Wiring) -> Vec<usize> {
    let mut ranks = vec![0; wiring.order.len()];
    for &node in &wiring.order {
        ranks[node] = wiring.into(node).map(|link| ranks[link.from] + 1).max().unwrap_or(0);
    }
    for &node in wiring.order.iter().rev() {
        if wiring.into(node).next().is_some() {
            continue;
        }
        let first_taker = wiring.links.iter().filter(|link| link.from == node).map(|link| ranks[link.to]).min();
        ranks[node] = first_taker.map_or(ranks[node], |taker| taker - 1);
    }
    ranks
}
