//! Layers become columns, and paths become lines.

use super::super::picture::Picture;
use super::mesh::{LABEL_LINE, Mesh, Path, StandsFor};
use super::{Layout, Piece, PlacedBox, PlacedEdge, PlacedLabel, Point, Rect};

/// The narrowest strip between two columns: room for an arrow's head.
const NARROWEST_STRIP: f64 = 16.0;
const WIDEST_STRIP: f64 = 84.0;

/// A layer on paper.
#[derive(Clone, Copy)]
struct Column {
    left: f64,
    right: f64,
}

/// Places everything.
pub(super) fn place(picture: &Picture, mesh: Mesh, heights: &[f64]) -> Layout {
    let top =
        mesh.vertices.iter().zip(heights).map(|(vertex, height)| height - vertex.above).fold(f64::INFINITY, f64::min);
    let top = if top.is_finite() { top } else { 0.0 };
    let heights: Vec<f64> = heights.iter().map(|height| height - top).collect();
    let columns = columns(&mesh, &heights);
    let edges: Vec<PlacedEdge> = mesh.paths.iter().map(|path| line(path, &mesh, &columns, &heights)).collect();
    let bottom = mesh.vertices.iter().zip(&heights).map(|(vertex, height)| height + vertex.below).fold(0.0, f64::max);
    let mut boxes = Vec::with_capacity(picture.nodes.len());
    for (node, face) in mesh.faces.into_iter().enumerate() {
        let column = columns[mesh.vertices[node].layer];
        let rect = Rect {
            x: column.left,
            y: heights[node] - face.height / 2.0,
            width: column.right - column.left,
            height: face.height,
        };
        boxes.push(PlacedBox { node, rect, face });
    }
    Layout { width: columns.last().map_or(0.0, |column| column.right), height: bottom, boxes, edges }
}

/// A column is as wide as the widest in it; the strip before it is the wider, the steeper the lines through it.
fn columns(mesh: &Mesh, heights: &[f64]) -> Vec<Column> {
    let mut rises = vec![0.0_f64; mesh.layers.len()];
    for path in &mesh.paths {
        for (at, pair) in path.vertices.windows(2).enumerate() {
            let port = if at == 0 { path.port } else { 0.0 };
            let rise = &mut rises[mesh.vertices[pair[1]].layer];
            *rise = rise.max((heights[pair[1]] - heights[pair[0]] - port).abs());
        }
    }
    let mut columns: Vec<Column> = Vec::with_capacity(mesh.layers.len());
    for (layer, rise) in mesh.layers.iter().zip(rises) {
        let strip = (10.0 + 0.45 * rise).clamp(NARROWEST_STRIP, WIDEST_STRIP).round();
        let left = columns.last().map_or(0.0, |before: &Column| before.right + strip);
        let width = layer.iter().map(|&vertex| mesh.vertices[vertex].width).fold(0.0, f64::max);
        columns.push(Column { left, right: left + width });
    }
    columns
}

fn line(path: &Path, mesh: &Mesh, columns: &[Column], heights: &[f64]) -> PlacedEdge {
    let column_of = |vertex: usize| columns[mesh.vertices[vertex].layer];
    let giver = path.vertices[0];
    let start = Point { x: column_of(giver).right, y: heights[giver] + path.port };
    let mut edge = PlacedEdge { edge: path.edge, start, pieces: Vec::new(), label: None };
    let mut from = start;
    for &vertex in &path.vertices[1..] {
        let column = column_of(vertex);
        let y = heights[vertex];
        from = bend(&mut edge.pieces, from, Point { x: column.left, y });
        if mesh.vertices[vertex].stands_for == StandsFor::Bend && column.right > column.left {
            from = bend(&mut edge.pieces, from, Point { x: column.right, y });
        }
    }
    if !path.label.is_empty() {
        let first = path.vertices[1];
        let column = column_of(first);
        let (width, height) = (mesh.vertices[first].width, path.label.len() as f64 * LABEL_LINE);
        let x = (column.left + column.right - width) / 2.0;
        let rect = Rect { x, y: heights[first] - 4.0 - height, width, height };
        edge.label = Some(PlacedLabel { rect, lines: path.label.clone() });
    }
    edge
}

/// Goes on to a point: straight if it is level, otherwise by a curve that is level at both ends.
fn bend(pieces: &mut Vec<Piece>, from: Point, to: Point) -> Point {
    if (from.y - to.y).abs() < 1e-6 {
        let to = Point { x: to.x, y: from.y };
        match pieces.last_mut() {
            Some(Piece::Line(end)) => *end = to,
            _ => pieces.push(Piece::Line(to)),
        }
        return to;
    }
    let middle = (from.x + to.x) / 2.0;
    pieces.push(Piece::Curve(Point { x: middle, y: from.y }, Point { x: middle, y: to.y }, to));
    to
}
