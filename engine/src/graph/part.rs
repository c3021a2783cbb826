//! Some nodes of a graph as a graph of their own, so that what they can do is measured apart from the others.

use std::collections::BTreeMap;

use super::dag::Dag;
use super::graph::{Graph, GraphNode, Merge, RowOrigin};
use super::origins::{merged, of_inputs};
use crate::node::Role;

impl Graph {
    /// The graph of those of `nodes` that `is_kept` names by index, run as this one. Edges too are by index in `nodes`; what
    /// the kept nodes read of the others is left out. Sources keep their order.
    ///
    /// # Panics
    /// If there is a cycle: what was taken from a graph has none.
    pub fn part(&self, nodes: Vec<GraphNode>, is_kept: impl Fn(usize) -> bool) -> Graph {
        let kept: Vec<usize> = (0..nodes.len()).filter(|&node_idx| is_kept(node_idx)).collect();
        let place: BTreeMap<usize, usize> = kept.iter().enumerate().map(|(new, &old)| (old, new)).collect();
        let nodes = nodes.into_iter().enumerate().filter(|(node_idx, _)| place.contains_key(node_idx));
        let mut nodes: Vec<GraphNode> = nodes.map(|(_, node)| node).collect();
        for node in &mut nodes {
            node.inputs.retain(|edge| place.contains_key(&edge.from));
            node.inputs.iter_mut().for_each(|edge| edge.from = place[&edge.from]);
            if node.inputs.len() < 2 {
                node.merge = Merge::Single;
            }
        }
        let mut sources: Vec<usize> =
            (0..nodes.len()).filter(|&node_idx| nodes[node_idx].kind.role() == Role::Source).collect();
        sources.sort_by_key(|&node_idx| nodes[node_idx].source);
        nodes.iter_mut().for_each(|node| node.source = None);
        (0..).zip(sources).for_each(|(number, node_idx)| nodes[node_idx].source = Some(number));
        let edges = nodes.iter().enumerate().flat_map(|(to, node)| node.inputs.iter().map(move |edge| (edge.from, to)));
        let order = Dag::new(nodes.len(), edges.collect::<Vec<_>>()).order().expect("a part of a graph has no cycle");
        for &node_idx in &order {
            let node = &nodes[node_idx];
            nodes[node_idx].origins = match node.source {
                Some(number) => BTreeMap::from([(RowOrigin::Source(number), 1)]),
                None => merged(node.merge, of_inputs(&node.inputs, |from| &nodes[from].origins)),
            };
        }
        Graph { nodes, order, ..self.clone() }
    }
}
