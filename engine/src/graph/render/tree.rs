//! A picture as a tree, for media that have lines only.
//!
//! Each node hangs under the last node that all its rows must have passed (its immediate dominator): in a chain that
//! is the node before it, and a join hangs under the node at which its branches parted. So the indentation is the flow,
//! and a branch ends where its rows meet those of another.

use super::picture::EdgeKind;
use super::wiring::Wiring;

/// One line of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeLine {
    /// Index into `Picture::nodes`.
    pub node: usize,
    /// What each ancestor and the node itself add to the indentation, from the left.
    pub indent: Vec<Indent>,
    /// What the node reads, where the tree does not say it.
    pub reads: Reads,
}

/// One step of indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indent {
    /// The only child of its parent.
    Only,
    /// A branch with others below it.
    Branch,
    /// The last branch.
    LastBranch,
    /// Beside a line under [`Indent::Branch`].
    Beside,
    /// Under the last branch.
    Under,
}

/// What a node reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The rows of its parent in the tree, or nothing.
    AsDrawn,
    /// Links, to be written out.
    Links(Vec<usize>),
}

/// The lines from the top.
pub(super) fn lines_of(wiring: &Wiring) -> Vec<TreeLine> {
    let parents = dominators(wiring);
    let mut children = vec![Vec::new(); parents.len()];
    let mut roots = Vec::new();
    for &node in &wiring.order {
        match parents[node] {
            Some(parent) => children[parent].push(node),
            None => roots.push(node),
        }
    }
    let mut lines = Vec::with_capacity(parents.len());
    // A stack and not recursion: the depth is the length of the longest chain, which the reader's file decides.
    let mut stack: Vec<(usize, Vec<Indent>)> = roots.into_iter().rev().map(|root| (root, Vec::new())).collect();
    while let Some((node, indent)) = stack.pop() {
        let siblings = &children[node];
        for (at, &child) in siblings.iter().enumerate().rev() {
            let mut deeper = indent.clone();
            if let Some(last) = deeper.last_mut() {
                *last = match *last {
                    Indent::Branch => Indent::Beside,
                    Indent::LastBranch => Indent::Under,
                    same => same,
                };
            }
            deeper.push(match (siblings.len(), at + 1 == siblings.len()) {
                (1, _) => Indent::Only,
                (_, true) => Indent::LastBranch,
                (_, false) => Indent::Branch,
            });
            stack.push((child, deeper));
        }
        lines.push(TreeLine { node, indent, reads: reads_of(wiring, node, parents[node]) });
    }
    lines
}

fn reads_of(wiring: &Wiring, node: usize, parent: Option<usize>) -> Reads {
    let links: Vec<usize> = (0..wiring.links.len()).filter(|&link| wiring.links[link].to == node).collect();
    match links.as_slice() {
        [] => Reads::AsDrawn,
        [only] if Some(wiring.links[*only].from) == parent && wiring.links[*only].carries == EdgeKind::Rows => {
            Reads::AsDrawn
        }
        _ => Reads::Links(links),
    }
}

/// For each node the last node that lies on every way to it.
fn dominators(wiring: &Wiring) -> Vec<Option<usize>> {
    let n_nodes = wiring.order.len();
    let mut parents: Vec<Option<usize>> = vec![None; n_nodes];
    let mut depths = vec![0_usize; n_nodes];
    for &node in &wiring.order {
        let mut feeders = wiring.into(node).map(|link| link.from);
        let Some(first) = feeders.next() else {
            continue;
        };
        let common = feeders.try_fold(first, |common, feeder| meet(common, feeder, &parents, &depths));
        parents[node] = common;
        depths[node] = common.map_or(0, |parent| depths[parent] + 1);
    }
    parents
}

/// The deepest node above or at both.
fn meet(mut a: usize, mut b: usize, parents: &[Option<usize>], depths: &[usize]) -> Option<usize> {
    while a != b {
        if depths[a] >= depths[b] {
            a = parents[a]?;
        } else {
            b = parents[b]?;
        }
    }
    Some(a)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_join_hangs_where_its_branches_parted() {
        let picture = samples::two_models();
        let wiring = Wiring::of(&picture);
        let parents = dominators(&wiring);
        let name_of = |name: &str| picture.nodes.iter().position(|node| node.name == name).expect("in the sample");
        assert_eq!(parents[name_of("both")], Some(name_of("pixels")));
        assert_eq!(parents[name_of("out")], Some(name_of("both")));
    }

    #[test]
    fn each_node_has_one_line_below_its_parent() {
        for seed in 0..50 {
            let picture = samples::random(30, seed);
            let mut nodes: Vec<usize> = lines_of(&Wiring::of(&picture)).iter().map(|line| line.node).collect();
            nodes.sort_unstable();
            assert_eq!(nodes, (0..30).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let chain = samples::chain(3_000);
        assert_eq!(lines_of(&Wiring::of(&chain)).len(), 3_000);
    }
}
