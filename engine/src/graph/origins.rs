//! Where rows come from: the numbers of sources, and how many times each row reaches each node.
//!
//! Sources are numbered so that every union concatenates them in ascending order. Then the order of positions is the
//! order of rows on every edge, and merging needs nothing but positions. Two unions that want opposite orders could
//! each wait for rows that the other holds back, so that is a mistake.

use std::collections::{BTreeMap, BTreeSet};

use super::compile::Draft;
use super::dag::Dag;
use super::graph::{Edge, Merge, RowOrigin};
use crate::config::{Mistake, Mistakes, Port};
use crate::node::Role;

/// How many times each row of an origin comes.
pub(super) type Origins = BTreeMap<RowOrigin, u32>;

/// The number of each source, by the index of its node.
pub(super) fn number_sources(drafts: &[Draft<'_>], dag: &Dag, mistakes: &mut Mistakes) -> BTreeMap<usize, u32> {
    let sources: Vec<_> = (0..drafts.len()).filter(|&node_idx| drafts[node_idx].kind.role() == Role::Source).collect();
    let rank = |node_idx: usize| sources.iter().position(|&source| source == node_idx);
    let sources_above = |node_idx: usize| {
        let mut above: Vec<_> = dag.ancestors(node_idx).into_iter().filter_map(rank).collect();
        above.extend(rank(node_idx));
        above
    };
    let mut precedence = Vec::new();
    for draft in drafts.iter().filter(|draft| draft.inputs.len() > 1) {
        let mut earlier: Vec<usize> = Vec::new();
        for edge in &draft.inputs {
            let fresh: Vec<_> =
                sources_above(edge.from).into_iter().filter(|source| !earlier.contains(source)).collect();
            precedence.extend(earlier.iter().flat_map(|&before| fresh.iter().map(move |&after| (before, after))));
            earlier.extend(fresh);
        }
    }
    let order = Dag::new(sources.len(), precedence).order().unwrap_or_else(|cycles| {
        let names: Vec<_> = cycles[0].iter().map(|&rank| format!("`{}`", drafts[sources[rank]].name)).collect();
        let reads_several = |draft: &&Draft<'_>| {
            let above: BTreeSet<_> = draft.inputs.iter().flat_map(|edge| sources_above(edge.from)).collect();
            draft.inputs.len() > 1 && cycles[0].iter().filter(|rank| above.contains(rank)).count() > 1
        };
        let spans: Vec<_> = drafts
            .iter()
            .filter(reads_several)
            .flat_map(|draft| draft.decl.from.iter().flatten().take(1))
            .map(|from| from.span)
            .collect();
        let span = spans.last().copied().unwrap_or(drafts[0].decl.name.span);
        let mistake = Mistake::at(span, format!("nodes read {} in opposite orders", names.join(" and ")));
        let mistake = mistake.label("name them in the same order everywhere");
        mistakes.push(
            spans
                .first()
                .filter(|first| **first != span)
                .into_iter()
                .fold(mistake, |mistake, first| mistake.also(*first, "the other order")),
        );
        (0..sources.len()).collect()
    });
    order.iter().enumerate().map(|(number, &rank)| (sources[rank], number as u32)).collect()
}

/// For each node: where the rows on its output come from, and how many times each of them comes. Also the joins whose
/// inputs cannot be joined.
pub(super) fn trace(
    drafts: &[Draft<'_>],
    order: &[usize],
    sources: &BTreeMap<usize, u32>,
    mistakes: &mut Mistakes,
) -> (Vec<Origins>, BTreeSet<usize>) {
    let mut unjoinable = BTreeSet::new();
    let mut origins = vec![Origins::new(); drafts.len()];
    for &node_idx in order {
        let draft = &drafts[node_idx];
        if let Some(&source) = sources.get(&node_idx) {
            origins[node_idx] = BTreeMap::from([(RowOrigin::Source(source), 1)]);
            continue;
        }
        let inputs = of_inputs(&draft.inputs, |from| &origins[from]);
        if draft.merge() == Merge::Join && !check_join(draft, &inputs, drafts, mistakes) {
            unjoinable.insert(node_idx);
        }
        origins[node_idx] = merged(draft.merge(), inputs);
    }
    (origins, unjoinable)
}

/// Where the rows of each input come from, when that is known of the nodes that are read.
pub(super) fn of_inputs<'a>(inputs: &[Edge], known: impl Fn(usize) -> &'a Origins) -> Vec<Origins> {
    let of = |edge: &Edge| match edge.port {
        Port::Rows => known(edge.from).clone(),
        Port::Rejects => BTreeMap::from([(RowOrigin::Rejects(edge.from), 1)]),
    };
    inputs.iter().map(of).collect()
}

/// Where the rows of a node with these inputs come from.
pub(super) fn merged(merge: Merge, inputs: Vec<Origins>) -> Origins {
    match merge {
        // All of a join's are the same ones.
        Merge::Join => inputs.into_iter().next().unwrap_or_default(),
        Merge::Single | Merge::Union => inputs.into_iter().fold(BTreeMap::new(), |mut sum, input| {
            input.into_iter().for_each(|(origin, times)| *sum.entry(origin).or_insert(0) += times);
            sum
        }),
    }
}

/// Tells what keeps the inputs from being joined, and whether nothing does.
fn check_join(draft: &Draft<'_>, inputs: &[Origins], drafts: &[Draft<'_>], mistakes: &mut Mistakes) -> bool {
    let n_before = mistakes.len();
    let span = |input_idx: usize| {
        draft.decl.from.as_ref().and_then(|from| from.get(input_idx)).map_or(draft.decl.name.span, |from| from.span)
    };
    for (input_idx, input) in inputs.iter().enumerate() {
        let name = &drafts[draft.inputs[input_idx].from].name;
        if input.values().any(|&times| times > 1) {
            let message = format!("`{}` joins `{name}`, which gives rows more than once", draft.name);
            mistakes.push(Mistake::at(span(input_idx), message).label("join before the union"));
        } else if !input.keys().eq(inputs[0].keys()) {
            let first = &drafts[draft.inputs[0].from].name;
            let message =
                format!("`{}` joins `{first}` and `{name}`, whose rows come from different sources", draft.name);
            mistakes.push(Mistake::at(span(input_idx), message).label("a join needs branches of the same sources"));
        }
    }
    mistakes.len() == n_before
}
