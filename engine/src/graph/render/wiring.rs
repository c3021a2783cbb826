//! The edges of a picture as indices: only those between its nodes, and none that closes a circle.

use std::collections::{BTreeSet, HashMap};

use super::picture::{EdgeKind, Picture};

/// One edge that can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// Index into `Picture::edges`.
    pub edge: usize,
    /// Index into `Picture::nodes`.
    pub from: usize,
    /// Index into `Picture::nodes`.
    pub to: usize,
    /// What travels.
    pub carries: EdgeKind,
}

/// Who is connected with whom. Free of circles.
#[derive(Debug)]
pub(super) struct Wiring {
    /// The edges, in the picture's order.
    pub links: Vec<Link>,
    /// All nodes, each after those that feed it, otherwise in the picture's order.
    pub order: Vec<usize>,
}

impl Wiring {
    pub(super) fn of(picture: &Picture) -> Self {
        let mut index_of = HashMap::new();
        for (idx, node) in picture.nodes.iter().enumerate() {
            index_of.entry(node.name.as_str()).or_insert(idx);
        }
        let mut links = Vec::new();
        for (edge, line) in picture.edges.iter().enumerate() {
            if let (Some(&from), Some(&to)) = (index_of.get(line.from.as_str()), index_of.get(line.to.as_str())) {
                links.push(Link { edge, from, to, carries: line.carries });
            }
        }
        let order = order_nodes(picture.nodes.len(), &links);
        let mut place = vec![0; order.len()];
        for (at, &node) in order.iter().enumerate() {
            place[node] = at;
        }
        links.retain(|link| place[link.from] < place[link.to]);
        Self { links, order }
    }

    /// The links into a node, in the picture's order.
    pub(super) fn into(&self, node: usize) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(move |link| link.to == node)
    }
}

/// Takes the first node that waits for nobody; where all wait for each other (a circle), the first of them.
fn order_nodes(n_nodes: usize, links: &[Link]) -> Vec<usize> {
    let mut waits_for = vec![0_usize; n_nodes];
    let mut feeds = vec![Vec::new(); n_nodes];
    for link in links.iter().filter(|link| link.from != link.to) {
        waits_for[link.to] += 1;
        feeds[link.from].push(link.to);
    }
    let mut ready: BTreeSet<usize> = (0..n_nodes).filter(|&node| waits_for[node] == 0).collect();
    let mut left: BTreeSet<usize> = (0..n_nodes).collect();
    let mut order = Vec::with_capacity(n_nodes);
    while let Some(node) = ready.pop_first().or_else(|| left.first().copied()) {
        left.remove(&node);
        order.push(node);
        for &next in &feeds[node] {
            waits_for[next] = waits_for[next].saturating_sub(1);
            if waits_for[next] == 0 && left.contains(&next) {
                ready.insert(next);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_node_comes_after_those_that_feed_it() {
        for seed in 0..50 {
            let picture = samples::random(30, seed);
            let wiring = Wiring::of(&picture);
            assert_eq!(wiring.order.len(), 30);
            assert_eq!(wiring.links.len(), picture.edges.len());
        }
    }

    #[test]
    fn circles_are_opened_and_loose_ends_left_out() {
        let wiring = Wiring::of(&samples::broken());
        let ends: Vec<_> = wiring.links.iter().map(|link| (link.from, link.to)).collect();
        assert_eq!(ends, [(0, 1), (1, 2)]);
    }
}
