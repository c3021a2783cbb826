//! What a node makes of its inputs' columns, and the mistakes found on the way.

use std::num::NonZeroUsize;

use super::{FileStamp, ModelNeed};
use crate::data::{ColumnType, Field, Role, Schema};

/// Where an output column comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// It is an input's column, passed on without a copy.
    Input {
        /// The index of the input: 0 except in joins.
        input: usize,
        /// The index of the column in that input's schema.
        column: usize,
    },
    /// The node makes it.
    New,
}

/// A column that a node gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Name, type, role.
    pub field: Field,
    /// Where it comes from.
    pub from: From,
}

/// What a node does to the columns, known before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// The columns it gives, in order. New ones are numbered in this order among themselves.
    pub outputs: Vec<Output>,
    /// The rows of its batches, if it makes batches of a planned size.
    pub batch: Option<usize>,
    /// One line that says what it does, for graphs: "256 bicubic, crop 224 (from model)".
    pub detail: String,
    /// What its model needs of a device, if it runs one.
    pub need: Option<ModelNeed>,
    /// Other files that it reads beside the data and that decide its results, such as labels.
    pub files: Vec<FileStamp>,
    /// How many items a source reads at the same time where each is waited for and costs next to nothing meanwhile.
    pub readers: Option<NonZeroUsize>,
}

impl NodeSpec {
    /// A spec that passes on all columns of `input` but those in `used`, which the node uses up.
    pub fn passing(input: &Schema, used: &[usize]) -> Self {
        let outputs = input.fields.iter().enumerate().filter(|(column, _)| !used.contains(column));
        let outputs = outputs
            .map(|(column, field)| Output { field: field.clone(), from: From::Input { input: 0, column } })
            .collect();
        NodeSpec { outputs, ..NodeSpec::default() }
    }

    /// Adds a column that the node makes.
    ///
    /// # Errors
    /// If a column of that name is passed on.
    pub fn with_new(mut self, name: &str, ty: ColumnType, role: Role) -> Result<Self, SpecError> {
        if self.outputs.iter().any(|output| &*output.field.name == name) {
            return Err(SpecError::new(format!("there is a column `{name}` already"))
                .note("give the new one another name with `as`"));
        }
        self.outputs.push(Output { field: Field::new(name, ty, role), from: From::New });
        Ok(self)
    }

    /// Says in one line what the node does.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Says how many items are worth being read at the same time.
    pub fn with_readers(mut self, readers: NonZeroUsize) -> Self {
        self.readers = Some(readers);
        self
    }

    /// Says what the node's model needs of a device.
    pub fn with_need(mut self, need: ModelNeed) -> Self {
        self.need = Some(need);
        self
    }

    /// The schema that the outputs form.
    pub fn schema(&self) -> Schema {
        Schema { fields: self.outputs.iter().map(|output| output.field.clone()).collect(), batch: self.batch }
    }

    /// The types of the new columns, in order.
    pub fn new_types(&self) -> Vec<ColumnType> {
        self.outputs.iter().filter(|output| output.from == From::New).map(|output| output.field.ty.clone()).collect()
    }
}

/// A mistake in a node's options or inputs, found by its kind. The graph adds the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// Where: keys from `with` inwards, such as `["model", "weights"]`; empty: the node's input.
    pub option: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// A few words under the position: what to write instead.
    pub label: Option<String>,
    /// Further lines: alternatives, reasons.
    pub notes: Vec<String>,
}

impl SpecError {
    /// A mistake about the node's input.
    pub fn new(message: impl Into<String>) -> Self {
        SpecError { option: Vec::new(), message: message.into(), label: None, notes: Vec::new() }
    }

    /// Says in which option, by the keys from `with` inwards.
    pub fn at(mut self, option: &[&str]) -> Self {
        self.option = option.iter().map(|&key| key.to_owned()).collect();
        self
    }

    /// Says under the position what to write instead.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a line.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The column that a node reads: the one that `column` names, or the only one that `fits`.
///
/// # Errors
/// If there is no such column, or several fit; `what` ("an image", "logits") and `hint` ("put a `decode.image` node
/// between them") make the message.
pub fn find_column(
    schema: &Schema,
    column: Option<&str>,
    what: &str,
    hint: &str,
    fits: impl Fn(&Field) -> bool,
) -> Result<usize, SpecError> {
    if let Some(name) = column {
        let Some(found) = schema.index_of(name) else {
            return Err(unknown_column(schema, name).at(&["column"]));
        };
        if !fits(&schema.fields[found]) {
            let ty = &schema.fields[found].ty;
            return Err(SpecError::new(format!("the column `{name}` is {ty}, and {what} is needed")).at(&["column"]));
        }
        return Ok(found);
    }
    let found: Vec<_> = schema.fields.iter().enumerate().filter(|(_, field)| fits(field)).collect();
    match found[..] {
        [(column, _)] => Ok(column),
        [] => Err(SpecError::new(format!("{what} is needed, and the input gives {}", schema.names())).label(hint)),
        _ => {
            let names: Vec<_> = found.iter().map(|(_, field)| format!("`{}`", field.name)).collect();
            Err(SpecError::new(format!("several columns could be meant: {}", names.join(", ")))
                .label("say which with `column`"))
        }
    }
}

/// The mistake of naming a column that `schema` does not have, with the nearest one that it has.
pub fn unknown_column(schema: &Schema, name: &str) -> SpecError {
    let error = SpecError::new(format!("there is no column `{name}`")).note(format!("columns: {}", schema.names()));
    let distance = |field: &&Field| strsim::damerau_levenshtein(&field.name, name);
    match schema.fields.iter().min_by_key(distance) {
        Some(nearest) if distance(&nearest) <= (name.chars().count() / 3).max(1) => {
            error.label(format!("did you mean `{}`?", nearest.name))
        }
        _ => error,
    }
}
