//! The shape of a graph: order and cycles. The one file that sees petgraph.

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Bfs, Reversed};

/// Nodes `0..n` and directed edges between them.
pub(super) struct Dag {
    graph: DiGraph<(), ()>,
}

impl Dag {
    /// `n` nodes with `edges` from, to.
    pub(super) fn new(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut graph = DiGraph::with_capacity(n, n);
        (0..n).for_each(|_| {
            graph.add_node(());
        });
        for (from, to) in edges {
            graph.update_edge(NodeIndex::new(from), NodeIndex::new(to), ());
        }
        Dag { graph }
    }

    /// The nodes, each after those that lead to it, ties by number; or the cycles, each as its nodes in ascending order.
    pub(super) fn order(&self) -> Result<Vec<usize>, Vec<Vec<usize>>> {
        if toposort(&self.graph, None).is_err() {
            return Err(self.cycles());
        }
        // petgraph's order is one of many; ours is the one nearest to the order of the file.
        let n = self.graph.node_count();
        let mut missing: Vec<_> = self
            .graph
            .node_indices()
            .map(|node| self.graph.neighbors_directed(node, petgraph::Incoming).count())
            .collect();
        let mut order = Vec::with_capacity(n);
        let mut ready: std::collections::BTreeSet<_> = (0..n).filter(|&node| missing[node] == 0).collect();
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for next in self.graph.neighbors(NodeIndex::new(node)) {
                missing[next.index()] -= 1;
                if missing[next.index()] == 0 {
                    ready.insert(next.index());
                }
            }
        }
        Ok(order)
    }

    fn cycles(&self) -> Vec<Vec<usize>> {
        let mut cycles: Vec<Vec<_>> = tarjan_scc(&self.graph)
            .into_iter()
            .filter(|component| component.len() > 1 || self.graph.contains_edge(component[0], component[0]))
            .map(|component| component.into_iter().map(NodeIndex::index).collect())
            .collect();
        cycles.iter_mut().for_each(|cycle: &mut Vec<usize>| cycle.sort_unstable());
        cycles.sort();
        cycles
    }

    /// The nodes that `node` leads to, nearest first, without itself.
    pub(super) fn descendants(&self, node: usize) -> Vec<usize> {
        let mut walk = Bfs::new(&self.graph, NodeIndex::new(node));
        let mut found = Vec::new();
        while let Some(next) = walk.next(&self.graph) {
            if next.index() != node {
                found.push(next.index());
            }
        }
        found
    }

    /// The nodes that lead to `node`, nearest first, without itself.
    pub(super) fn ancestors(&self, node: usize) -> Vec<usize> {
        let reversed = Reversed(&self.graph);
        let mut walk = Bfs::new(reversed, NodeIndex::new(node));
        let mut found = Vec::new();
        while let Some(next) = walk.next(reversed) {
            if next.index() != node {
                found.push(next.index());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_file_where_edges_leave_a_choice() {
        assert_eq!(Dag::new(5, [(0, 3), (3, 1), (1, 4), (2, 4)]).order(), Ok(vec![0, 2, 3, 1, 4]));
    }

    #[test]
    fn every_cycle_is_named() {
        assert_eq!(Dag::new(6, [(0, 1), (2, 1), (1, 2), (3, 3), (4, 5)]).order(), Err(vec![vec![1, 2], vec![3]]));
    }

    #[test]
    fn ancestors_and_descendants_are_those_along_edges() {
        let dag = Dag::new(5, [(0, 1), (1, 2), (3, 2), (2, 4)]);
        assert_eq!(dag.descendants(1), [2, 4]);
        assert_eq!(dag.ancestors(2).len(), 3);
    }
}
