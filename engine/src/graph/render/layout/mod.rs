//! Where each box, line and label of a drawing goes: a layered layout from left to right.
//!
//! 1. Each node gets a layer, one more than the last of those that feed it (`mesh`). Between any two layers of nodes
//!    lies one for labels, and a long edge has a vertex in each layer that it passes.
//! 2. The order inside layers is improved until fewer lines cross (`ordering`).
//! 3. Heights are chosen so that edges are straight wherever they can be, long ones first (`heights`).
//! 4. Layers become columns, and edges lines (`route`).
//!
//! Promises, whatever the picture: boxes and labels do not overlap; no line touches a box other than its two ends, nor
//! any label but its own; lines only ever go to the right; the same picture gives the same layout. They hold by
//! construction: a line bends only in the empty strips between columns, and inside a column it runs level, in a row of
//! its own.

pub mod face;
mod heights;
pub mod measure;
mod mesh;
mod ordering;
mod route;

use self::face::Face;
use self::mesh::Mesh;
use super::picture::Picture;
use super::wiring::Wiring;

/// A drawing's geometry, in pixels from the top left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// From the left of the first box to the right of the last.
    pub width: f64,
    /// From the highest to the lowest point.
    pub height: f64,
    /// One box for each node, in the picture's order.
    pub boxes: Vec<PlacedBox>,
    /// The edges that can be drawn, in the picture's order.
    pub edges: Vec<PlacedEdge>,
}

/// An upright rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left side.
    pub x: f64,
    /// Upper side.
    pub y: f64,
    /// Extent to the right.
    pub width: f64,
    /// Extent downwards.
    pub height: f64,
}

/// A point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
}

/// A node's box and what stands in it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedBox {
    /// Index into [`Picture::nodes`].
    pub node: usize,
    /// Where it is.
    pub rect: Rect,
    /// What is written in it, placed from its top left corner.
    pub face: Face,
}

/// An edge's line and label.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedEdge {
    /// Index into [`Picture::edges`].
    pub edge: usize,
    /// On the right side of the box that gives.
    pub start: Point,
    /// The pieces of the line, each from where the one before ends; the last ends on the left side of the box that
    /// takes, level.
    pub pieces: Vec<Piece>,
    /// The label, if the edge has one.
    pub label: Option<PlacedLabel>,
}

/// A piece of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Piece {
    /// Straight to a point.
    Line(Point),
    /// A cubic Bézier curve: two control points and the end.
    Curve(Point, Point, Point),
}

/// An edge's label: lines of text above the line.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedLabel {
    /// The room that the text takes.
    pub rect: Rect,
    /// The lines, from the top.
    pub lines: Vec<String>,
}

/// Lays a picture out.
#[must_use]
pub fn layout(picture: &Picture) -> Layout {
    let wiring = Wiring::of(picture);
    let mut mesh = Mesh::new(picture, &wiring);
    ordering::reduce_crossings(&mut mesh);
    mesh.place_ports();
    let heights = heights::choose(&mesh);
    route::place(picture, mesh, &heights)
}

impl Rect {
    /// The right side.
    #[must_use]
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// The lower side.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// Whether the two share more than a border.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }

    /// Whether the point lies inside, not on the border.
    #[must_use]
    pub fn contains(&self, point: Point) -> bool {
        self.x < point.x && point.x < self.right() && self.y < point.y && point.y < self.bottom()
    }
}

impl PlacedEdge {
    /// Points along the line, `per_piece` on each piece, both ends included.
    #[must_use]
    pub fn sampled(&self, per_piece: usize) -> Vec<Point> {
        let mut points = vec![self.start];
        let mut from = self.start;
        for piece in &self.pieces {
            for step in 1..=per_piece {
                points.push(piece.at(from, step as f64 / per_piece as f64));
            }
            from = piece.end();
        }
        points
    }
}

impl Piece {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> Point {
        match self {
            Self::Line(end) | Self::Curve(_, _, end) => *end,
        }
    }

    fn at(&self, from: Point, t: f64) -> Point {
        let mix = |a: f64, b: f64, c: f64, d: f64| {
            let s = 1.0 - t;
            s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
        };
        match self {
            Self::Line(end) => Point { x: from.x + (end.x - from.x) * t, y: from.y + (end.y - from.y) * t },
            Self::Curve(b, c, d) => Point { x: mix(from.x, b.x, c.x, d.x), y: mix(from.y, b.y, c.y, d.y) },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::picture::EdgeKind;
    use super::super::samples;
    use super::*;

    fn check(picture: &Picture) {
        let placed = layout(picture);
        let page = Rect { x: -0.01, y: -0.01, width: placed.width + 0.02, height: placed.height + 0.02 };
        assert_eq!(placed.boxes.len(), picture.nodes.len());
        let mut rects: Vec<Rect> = placed.boxes.iter().map(|placed| placed.rect).collect();
        rects.extend(placed.edges.iter().filter_map(|edge| edge.label.as_ref()).map(|label| label.rect));
        for (at, rect) in rects.iter().enumerate() {
            assert!(
                rect.x >= page.x && rect.y >= page.y && rect.right() <= page.right() && rect.bottom() <= page.bottom()
            );
            for other in &rects[at + 1..] {
                assert!(!rect.overlaps(other), "{rect:?} and {other:?}");
            }
        }
        for edge in &placed.edges {
            let line = &picture.edges[edge.edge];
            let of = |name: &str| {
                placed.boxes.iter().find(|placed| picture.nodes[placed.node].name == name).expect("a node").rect
            };
            let (from, to) = (of(&line.from), of(&line.to));
            let points = edge.sampled(60);
            let end = points[points.len() - 1];
            assert_eq!((edge.start.x, end.x), (from.right(), to.x));
            assert!(edge.start.y > from.y && edge.start.y < from.bottom() && end.y > to.y && end.y < to.bottom());
            for pair in points.windows(2) {
                assert!(pair[0].x <= pair[1].x, "goes left: {pair:?}");
                // Also the middle between two samples, so that a corner between them is seen.
                let middle = Point { x: (pair[0].x + pair[1].x) / 2.0, y: (pair[0].y + pair[1].y) / 2.0 };
                for point in [pair[0], middle] {
                    let hit = rects.iter().find(|rect| rect.contains(point));
                    assert_eq!(hit, None, "{} to {} at {point:?}", line.from, line.to);
                    assert!(page.contains(point), "{point:?} outside {page:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn nothing_overlaps_and_no_line_touches_what_it_does_not_belong_to(n_nodes in 1_usize..45, seed: u64) {
            check(&samples::random(n_nodes, seed));
        }
    }

    #[test]
    fn the_pipelines_of_the_documents_are_drawn_cleanly() {
        for picture in
            [samples::classify(), samples::classify_live(), samples::two_models(), samples::union_with_rejects()]
        {
            check(&picture);
        }
        check(&samples::hostile());
    }

    #[test]
    fn a_layout_is_the_same_each_time() {
        for seed in 0..10 {
            let picture = samples::random(30, seed);
            assert_eq!(layout(&picture), layout(&picture));
        }
    }

    #[test]
    fn a_chain_is_one_straight_line() {
        let placed = layout(&samples::classify());
        for edge in &placed.edges {
            assert_eq!(edge.pieces.len(), 1, "{edge:?}");
            assert_eq!(edge.pieces[0].end().y, edge.start.y);
        }
    }

    #[test]
    fn rejects_leave_the_main_line_straight() {
        let picture = samples::union_with_rejects();
        let placed = layout(&picture);
        let main = placed
            .edges
            .iter()
            .filter(|edge| ["scores.batch", "scores", "out"].contains(&&*picture.edges[edge.edge].to));
        for edge in main {
            assert!(edge.pieces.iter().all(|piece| matches!(piece, Piece::Line(_))), "{edge:?}");
        }
        let rejects =
            placed.edges.iter().find(|edge| picture.edges[edge.edge].carries == EdgeKind::Rejects).expect("one");
        assert!(rejects.pieces.iter().any(|piece| matches!(piece, Piece::Curve(..))));
    }

    /// An edge past `n` nodes of a chain must leave the chain's row, run level, and come back.
    #[test]
    fn a_long_edge_bends_only_at_its_ends() {
        for n_nodes in [4, 10, 25] {
            let mut picture = samples::chain(n_nodes);
            let mut past = picture.edges[0].clone();
            past.to = picture.nodes[n_nodes - 1].name.clone();
            picture.edges.push(past);
            check(&picture);
            let placed = layout(&picture);
            let curves =
                placed.edges[n_nodes - 1].pieces.iter().filter(|piece| matches!(piece, Piece::Curve(..))).count();
            assert!(curves <= 2, "{curves} curves past {n_nodes} nodes");
        }
    }
}
