//! Bringing what a model wants to the nodes before it that ask.

use std::collections::BTreeMap;
use std::path::Path;

use super::compile::Draft;
use super::dag::Dag;
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
        match of_descendants(drafts, &dag.descendants(node_idx), base) {
            Ok(advice) => {
                collected.insert(node_idx, advice);
            }
            // A giver with mistaken options tells them itself when its types are checked.
            Err(None) => {}
            Err(Some((message, label))) => {
                let message = format!("`{}`: {message}", draft.name);
                mistakes.push(Mistake::at(draft.decl.span_of(&["preset"]), message).label(label));
            }
        }
    }
    collected
}

fn of_descendants(
    drafts: &[Draft<'_>],
    below: &[usize],
    base: &Path,
) -> Result<Advice, Option<(String, &'static str)>> {
    let mut found: Option<(&str, Advice)> = None;
    for &node_idx in below {
        let given = match drafts[node_idx].node.advice(base) {
            Ok(given) => given,
            Err(SpecError { .. }) => return Err(None),
        };
        match (&found, given) {
            (_, None) => {}
            (None, Some(advice)) => found = Some((&drafts[node_idx].name, advice)),
            (Some((_, first)), Some(advice)) if first.value == advice.value => {}
            (Some((name, first)), Some(advice)) => {
                let message = format!(
                    "the models behind it want different pixels: `{name}` {}, `{}` {}",
                    first.text, drafts[node_idx].name, advice.text
                );
                return Err(Some((message, "write two decode nodes, one for each model")));
            }
        }
    }
    let nothing =
        || Some(("there is no model behind it to take the preset from".to_owned(), "say what it should do instead"));
    found.map(|(_, advice)| advice).ok_or_else(nothing)
}
