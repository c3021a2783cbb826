//! Bringing what a model wants to the nodes before it that ask.

use std::collections::BTreeMap;
use std::path::Path;

use super::compile::Draft;
use super::dag::Dag;
use super::typing;
use crate::config::{Mistake, Mistakes};
use crate::node::{Advice, SpecError};

/// For each node that asks: the advice of those behind it.
pub(super) fn collect(
    drafts: &[Draft<'_>],
    dag: &Dag,
    base: &Path,
    mistakes: &mut Mistakes,
) -> BTreeMap<usize, Advice> {
    let mut collected = BTreeMap::new();
    for (node_idx, draft) in drafts.iter().enumerate() {
        if !draft.node.asks_advice() {
            continue;
        }
        let mut below = dag.descendants(node_idx);
        below.sort_unstable();
        match of_descendants(drafts, &below, base) {
            Ok(advice) => {
                collected.insert(node_idx, advice);
            }
            // Its types cannot be checked while this node's are unknown.
            Err(Refusal::Giver(giver, error)) => mistakes.push(typing::mistake(&drafts[giver], error)),
            Err(Refusal::Asker(message, label)) => {
                let message = format!("`{}`: {message}", draft.name);
                mistakes.push(Mistake::at(draft.decl.span_of(&["preset"]), message).label(label));
            }
        }
    }
    collected
}

/// Whose mistake it is that there is no advice.
enum Refusal {
    /// The options of a node that gives some are mistaken.
    Giver(usize, SpecError),
    /// What the node asks for is not to be had: what is wrong, and what to write.
    Asker(String, &'static str),
}

fn of_descendants(drafts: &[Draft<'_>], below: &[usize], base: &Path) -> Result<Advice, Refusal> {
    let mut found: Option<(&str, Advice)> = None;
    for &node_idx in below {
        let given = drafts[node_idx].node.advice(base).map_err(|error| Refusal::Giver(node_idx, error))?;
        match (&found, given) {
            (_, None) => {}
            (None, Some(advice)) => found = Some((&drafts[node_idx].name, advice)),
            (Some((_, first)), Some(advice)) if first.value == advice.value => {}
            (Some((name, first)), Some(advice)) => {
                let message = format!(
                    "the models behind it want different pixels: `{name}` {}, `{}` {}",
                    first.text, drafts[node_idx].name, advice.text
                );
                return Err(Refusal::Asker(message, "write two decode nodes, one for each model"));
            }
        }
    }
    let nothing = || {
        let message = "there is no model behind it to take the preset from".to_owned();
        Refusal::Asker(message, "say what it should do instead")
    };
    found.map(|(_, advice)| advice).ok_or_else(nothing)
}
