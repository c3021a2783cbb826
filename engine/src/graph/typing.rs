//! The columns of every edge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::compile::Draft;
use super::graph::Merge;
use crate::config::{Mistake, Mistakes, Port};
use crate::data::{ColumnType, Field, Role, Schema};
use crate::node::{Advice, From, NodeSpec, SpecCx, SpecError};

/// What is known of a node's columns.
pub(super) struct Typed {
    pub(super) schemas: Vec<Schema>,
    pub(super) spec: NodeSpec,
    pub(super) output: Schema,
}

/// Asks each node for its spec, in order; `None` for nodes with a mistake in or before them.
pub(super) fn check(
    drafts: &[Draft<'_>],
    order: &[usize],
    advice: &BTreeMap<usize, Advice>,
    unjoinable: &BTreeSet<usize>,
    base: &Path,
    mistakes: &mut Mistakes,
) -> Vec<Option<Typed>> {
    let mut types: Vec<Option<Typed>> = drafts.iter().map(|_| None).collect();
    for &node_idx in order {
        let draft = &drafts[node_idx];
        let inputs = draft.inputs.iter().map(|edge| match edge.port {
            Port::Rows => types[edge.from].as_ref().map(|typed| typed.output.clone()),
            Port::Rejects => Some(reject_schema(edge.from)),
        });
        let Some(inputs) = inputs.collect::<Option<Vec<_>>>() else { continue };
        // What is wrong with these has been told.
        if (draft.node.asks_advice() && !advice.contains_key(&node_idx)) || unjoinable.contains(&node_idx) {
            continue;
        }
        let Some(schemas) = merge(drafts, node_idx, inputs, mistakes) else { continue };
        let input_names: Vec<_> = draft.inputs.iter().map(|edge| drafts[edge.from].name.as_str()).collect();
        let cx = SpecCx {
            name: &draft.name,
            inputs: &schemas,
            input_names: &input_names,
            advice: advice.get(&node_idx),
            base,
        };
        match draft.node.spec(&cx) {
            Ok(mut spec) => {
                fill_origins(&mut spec, node_idx);
                let output = spec.schema();
                types[node_idx] = Some(Typed { schemas, spec, output });
            }
            Err(error) => mistakes.push(mistake(draft, error)),
        }
    }
    types
}

/// The columns of `node.rejects`.
pub(crate) fn reject_schema(node_idx: usize) -> Schema {
    let columns = [
        ("id", Role::Id),
        ("uri", Role::Uri),
        ("node", Role::Result),
        ("code", Role::Result),
        ("message", Role::Result),
    ];
    let fields =
        columns.map(|(name, role)| Field { origin: Some(node_idx), ..Field::new(name, ColumnType::Text, role) });
    Schema { fields: fields.into(), batch: None }
}

/// The input schemas as the node gets them: those of a union are one.
fn merge(drafts: &[Draft<'_>], node_idx: usize, inputs: Vec<Schema>, mistakes: &mut Mistakes) -> Option<Vec<Schema>> {
    let draft = &drafts[node_idx];
    if draft.merge() != Merge::Union {
        return Some(inputs);
    }
    let mut merged = inputs[0].clone();
    merged.batch = None;
    for (input_idx, input) in inputs.iter().enumerate().skip(1) {
        if !merged.same_columns(input) {
            let names = [draft.inputs[0], draft.inputs[input_idx]].map(|edge| &drafts[edge.from].name);
            let message = format!("`{}` reads nodes that give different columns", draft.name);
            let span = draft
                .decl
                .from
                .as_ref()
                .and_then(|from| from.get(input_idx))
                .map_or(draft.decl.name.span, |from| from.span);
            let mistake = Mistake::at(span, message).label("a union needs equal names and types in the same order");
            mistakes.push(
                mistake.note(format!("`{}` gives {merged}", names[0])).note(format!("`{}` gives {input}", names[1])),
            );
            return None;
        }
        for (field, other) in merged.fields.iter_mut().zip(&input.fields) {
            if field.origin != other.origin {
                field.origin = Some(node_idx);
            }
        }
    }
    Some(vec![merged])
}

fn fill_origins(spec: &mut NodeSpec, node_idx: usize) {
    for output in &mut spec.outputs {
        if output.from == From::New || output.field.origin.is_none() {
            output.field.origin = Some(node_idx);
        }
    }
}

/// A kind's complaint with its place in the file.
pub(super) fn mistake(draft: &Draft<'_>, error: SpecError) -> Mistake {
    let span = if error.option.is_empty() {
        draft.decl.from.as_ref().and_then(|from| from.first()).map_or(draft.decl.name.span, |from| from.span)
    } else {
        let path: Vec<_> = error.option.iter().map(String::as_str).collect();
        draft.decl.span_of(&path)
    };
    let mistake = Mistake::at(span, format!("`{}`: {}", draft.name, error.message));
    let mistake = error.label.into_iter().fold(mistake, Mistake::label);
    error.notes.into_iter().fold(mistake, Mistake::note)
}
