//! A reader of pickles that runs nothing.
//!
//! Python's pickle is a program for a small stack machine which may call any function there is. [`Pickle::read`]
//! interprets only the instructions that `torch.save` writes, and of functions knows only the few that describe tensors
//! (`global.rs`); another name is an error that says which one. Memory is bounded: there are at most four million
//! values, whatever the file's length, nothing is copied as often as it is recalled, and text stays in the file.

mod call;
mod global;
mod machine;
mod reader;
mod value;

pub use machine::MAX_NAME;
use machine::Machine;
pub use value::{StorageRef, TensorRef, Value, ValueId};

use super::error::WeightsFault;

/// An unpickled object.
#[derive(Debug)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: ValueId,
}

impl<'a> Pickle<'a> {
    /// Reads the pickle at byte `start` of `file`; also returns where it ends.
    pub fn read(file: &'a [u8], start: usize) -> Result<(Self, usize), WeightsFault> {
        let mut machine = Machine::new(file, start);
        let root = machine.run()?;
        let end = machine.position();
        Ok((Self { values: machine.values, root }, end))
    }

    /// The object itself.
    pub fn root(&self) -> &Value<'a> {
        self.get(self.root)
    }

    /// A value that another one refers to.
    pub fn get(&self, id: ValueId) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    /// The text-keyed pairs of a dictionary; none for another value.
    pub fn items<'s>(&'s self, value: &'s Value<'a>) -> impl Iterator<Item = (&'a str, &'s Value<'a>)> {
        let pairs: &[_] = if let Value::Dict(pairs) = value { pairs } else { &[] };
        pairs.iter().filter_map(|(key, value)| match self.get(*key) {
            Value::Text(key) => Some((*key, self.get(*value))),
            _ => None,
        })
    }

    /// Every storage that the pickle names.
    pub fn storages(&self) -> impl Iterator<Item = &StorageRef<'a>> {
        self.values.iter().filter_map(|value| if let Value::Storage(storage) = value { Some(storage) } else { None })
    }
}

fn malformed(problem: impl Into<String>) -> WeightsFault {
    WeightsFault::malformed("the pickle", problem)
}

#[cfg(test)]
mod tests;
