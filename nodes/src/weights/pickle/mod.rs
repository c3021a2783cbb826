//! A reader of pickles that runs nothing.
//!
//! Python's pickle is a program for a small stack machine which may call any function there is. [`Pickle::read`]
//! interprets only the instructions that `torch.save` writes, and of functions knows only the few that describe tensors
//! ([`Global`]); another name is an error that says which one. Memory is bounded: a value costs at least one byte of the
//! file, there are at most [`MAX_VALUES`], and text stays in the file.

mod global;
mod reader;
mod value;

use std::collections::HashMap;

use global::Global;
use reader::Reader;
pub use value::{StorageRef, TensorRef, Value, ValueId};

use super::error::WeightsFault;

/// Some thousand tensors make a hundred thousand values.
const MAX_VALUES: usize = 4_000_000;

/// An unpickled object.
#[derive(Debug)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: ValueId,
}

impl<'a> Pickle<'a> {
    /// Reads the pickle at byte `start` of `file`; also returns where it ends.
    pub fn read(file: &'a [u8], start: usize) -> Result<(Self, usize), WeightsFault> {
        let mut machine = Machine {
            reader: Reader::new(file, start),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let root = machine.run()?;
        let end = machine.reader.position();
        Ok((
            Self {
                values: machine.values,
                root,
            },
            end,
        ))
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
    pub fn items<'s>(
        &'s self,
        value: &'s Value<'a>,
    ) -> impl Iterator<Item = (&'a str, &'s Value<'a>)> {
        let pairs: &[_] = if let Value::Dict(pairs) = value {
            pairs
        } else {
            &[]
        };
        pairs
            .iter()
            .filter_map(|(key, value)| match self.get(*key) {
                Value::Text(key) => Some((*key, self.get(*value))),
                _ => None,
            })
    }

    /// Every storage that the pickle names.
    pub fn storages(&self) -> impl Iterator<Item = &StorageRef<'a>> {
        self.values.iter().filter_map(|value| {
            if let Value::Storage(storage) = value {
                Some(storage)
            } else {
                None
            }
        })
    }
}

struct Machine<'a> {
    reader: Reader<'a>,
    values: Vec<Value<'a>>,
    stack: Vec<ValueId>,
    marks: Vec<usize>,
    memo: HashMap<u64, ValueId>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<ValueId, WeightsFault> {
        loop {
            let at = self.reader.position();
            match self.reader.byte()? {
                0x80 => drop(self.reader.byte()?),
                0x95 => drop(self.reader.u64()?),
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'1' => drop(self.pop_mark()?),
                b'2' => {
                    let top = self.top()?;
                    self.stack.push(top);
                }
                b'N' => self.push(Value::None)?,
                0x88 => self.push(Value::Bool(true))?,
                0x89 => self.push(Value::Bool(false))?,
                b'K' => self.int(|reader| reader.byte().map(i128::from))?,
                b'M' => self.int(|reader| reader.u16().map(i128::from))?,
                b'J' => {
                    self.int(|reader| reader.u32().map(|value| i128::from(value.cast_signed())))?
                }
                0x8a => {
                    self.int(|reader| reader.byte().and_then(|length| reader.long(length.into())))?
                }
                0x8b => {
                    self.int(|reader| reader.u32().and_then(|length| reader.long(length.into())))?
                }
                b'G' => {
                    self.reader.u64()?;
                    self.push(Value::Float)?;
                }
                0x8c | b'U' => self.text(|reader| reader.byte().map(u64::from))?,
                b'X' | b'T' => self.text(|reader| reader.u32().map(u64::from))?,
                0x8d => self.text(Reader::u64)?,
                b'C' => self.bytes(|reader| reader.byte().map(u64::from))?,
                b'B' => self.bytes(|reader| reader.u32().map(u64::from))?,
                0x8e => self.bytes(Reader::u64)?,
                b')' => self.push(Value::Tuple(Vec::new()))?,
                0x85 => self.tuple(1)?,
                0x86 => self.tuple(2)?,
                0x87 => self.tuple(3)?,
                b't' => {
                    let items = self.pop_mark()?;
                    self.push(Value::Tuple(items))?;
                }
                b']' => self.push(Value::List(Vec::new()))?,
                b'a' => {
                    let item = self.pop()?;
                    self.append(vec![item])?;
                }
                b'e' => {
                    let items = self.pop_mark()?;
                    self.append(items)?;
                }
                b'}' => self.push(Value::Dict(Vec::new()))?,
                b's' => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.set(vec![key, value])?;
                }
                b'u' => {
                    let items = self.pop_mark()?;
                    self.set(items)?;
                }
                b'q' => {
                    let key = self.reader.byte()?;
                    self.memoize(key.into())?;
                }
                b'r' => {
                    let key = self.reader.u32()?;
                    self.memoize(key.into())?;
                }
                0x94 => self.memoize(self.memo.len() as u64)?,
                b'h' => {
                    let key = self.reader.byte()?;
                    self.recall(key.into())?;
                }
                b'j' => {
                    let key = self.reader.u32()?;
                    self.recall(key.into())?;
                }
                b'c' => {
                    let (module, name) = (self.reader.line()?, self.reader.line()?);
                    self.global(module, name)?;
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let (Value::Text(module), Value::Text(name)) =
                        (self.value(module).clone(), self.value(name).clone())
                    else {
                        return Err(malformed(format!(
                            "names a function by something other than text, at byte {at}"
                        )));
                    };
                    self.global(module, name)?;
                }
                b'i' => {
                    let (module, name) = (self.reader.line()?, self.reader.line()?);
                    return Err(WeightsFault::Refused(format!("{module}.{name}")));
                }
                b'R' | 0x81 => {
                    let (arguments, function) = (self.pop()?, self.pop()?);
                    self.call(function, arguments)?;
                }
                b'b' => self.build()?,
                b'Q' => {
                    let id = self.pop()?;
                    let storage = self.storage(id)?;
                    self.push(Value::Storage(storage))?;
                }
                other => {
                    let problem = format!(
                        "has the instruction {other:#04x} at byte {at}, which `torch.save` does not write"
                    );
                    return Err(malformed(problem));
                }
            }
        }
    }

    fn push(&mut self, value: Value<'a>) -> Result<(), WeightsFault> {
        if self.values.len() == MAX_VALUES {
            return Err(malformed(format!("holds more than {MAX_VALUES} values")));
        }
        self.stack.push(ValueId(self.values.len() as u32));
        self.values.push(value);
        Ok(())
    }

    fn value(&self, id: ValueId) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    fn top(&self) -> Result<ValueId, WeightsFault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(top) if self.stack.len() > floor => Ok(*top),
            _ => Err(malformed(format!(
                "takes from an empty stack at byte {}",
                self.reader.position()
            ))),
        }
    }

    fn pop(&mut self) -> Result<ValueId, WeightsFault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_mark(&mut self) -> Result<Vec<ValueId>, WeightsFault> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(malformed(format!(
                "closes a group that it did not open, at byte {}",
                self.reader.position()
            ))),
        }
    }

    fn int(
        &mut self,
        read: impl Fn(&mut Reader<'a>) -> Result<i128, WeightsFault>,
    ) -> Result<(), WeightsFault> {
        let value = read(&mut self.reader)?;
        self.push(Value::Int(value))
    }

    fn text(
        &mut self,
        length: impl Fn(&mut Reader<'a>) -> Result<u64, WeightsFault>,
    ) -> Result<(), WeightsFault> {
        let length = length(&mut self.reader)?;
        let bytes = self.reader.take(length)?;
        // Python 2 wrote bytes and text alike.
        self.push(std::str::from_utf8(bytes).map_or(Value::Bytes, Value::Text))
    }

    fn bytes(
        &mut self,
        length: impl Fn(&mut Reader<'a>) -> Result<u64, WeightsFault>,
    ) -> Result<(), WeightsFault> {
        let length = length(&mut self.reader)?;
        self.reader.take(length)?;
        self.push(Value::Bytes)
    }

    fn tuple(&mut self, n_items: usize) -> Result<(), WeightsFault> {
        let mut items = Vec::with_capacity(n_items);
        for _ in 0..n_items {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Value::Tuple(items))
    }

    fn append(&mut self, items: Vec<ValueId>) -> Result<(), WeightsFault> {
        let target = self.top()?;
        match &mut self.values[target.0 as usize] {
            Value::List(list) => list.extend(items),
            _ => return Err(malformed("appends to something other than a list")),
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<ValueId>) -> Result<(), WeightsFault> {
        let target = self.top()?;
        let (pairs, rest) = items.as_chunks::<2>();
        match &mut self.values[target.0 as usize] {
            Value::Dict(dict) if rest.is_empty() => {
                dict.extend(pairs.iter().map(|[key, value]| (*key, *value)))
            }
            _ => return Err(malformed("sets items of something other than a dictionary")),
        }
        Ok(())
    }

    fn memoize(&mut self, key: u64) -> Result<(), WeightsFault> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<(), WeightsFault> {
        let Some(id) = self.memo.get(&key) else {
            return Err(malformed(format!(
                "recalls value {key}, which it did not keep"
            )));
        };
        self.stack.push(*id);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), WeightsFault> {
        match Global::find(module, name) {
            Some(global) => self.push(Value::Global(global)),
            None => Err(WeightsFault::Refused(format!("{module}.{name}"))),
        }
    }

    /// What a call of one of the known functions would give.
    fn call(&mut self, function: ValueId, arguments: ValueId) -> Result<(), WeightsFault> {
        let (Value::Global(global), Value::Tuple(arguments)) =
            (self.value(function), self.value(arguments))
        else {
            return Err(malformed("calls something other than a function"));
        };
        match (*global, arguments.as_slice()) {
            (Global::OrderedDict, []) => self.push(Value::Dict(Vec::new())),
            (Global::OrderedDict, [pairs]) => {
                let pairs = self.pairs(*pairs)?;
                self.push(Value::Dict(pairs))
            }
            (Global::RebuildTensor, [storage, offset, shape, strides, rest @ ..]) => {
                let tensor = self.tensor([*storage, *offset, *shape, *strides], rest)?;
                self.push(Value::Tensor(Box::new(tensor)))
            }
            (Global::RebuildParameter, [tensor, ..]) | (Global::Size, [tensor]) => {
                let same = *tensor;
                self.stack.push(same);
                Ok(())
            }
            (global, arguments) => Err(malformed(format!(
                "calls {global:?} with {} arguments",
                arguments.len()
            ))),
        }
    }

    fn pairs(&self, list: ValueId) -> Result<Vec<(ValueId, ValueId)>, WeightsFault> {
        let fail = || malformed("makes a dictionary of something other than pairs");
        let Value::List(list) = self.value(list) else {
            return Err(fail());
        };
        let pair = |id: &ValueId| match self.value(*id) {
            Value::Tuple(pair) | Value::List(pair) => <[ValueId; 2]>::try_from(pair.as_slice())
                .ok()
                .map(|[key, value]| (key, value)),
            _ => None,
        };
        list.iter().map(|id| pair(id).ok_or_else(fail)).collect()
    }

    fn tensor(
        &self,
        [storage, offset, shape, strides]: [ValueId; 4],
        rest: &[ValueId],
    ) -> Result<TensorRef<'a>, WeightsFault> {
        let Value::Storage(storage) = self.value(storage) else {
            return Err(malformed(
                "makes a tensor of something other than a storage",
            ));
        };
        // Behind `requires_grad` and the hooks: flags that change what the elements mean, such as a pending negation.
        if rest.get(2).is_some_and(
            |flags| !matches!(self.value(*flags), Value::Dict(pairs) if pairs.is_empty()),
        ) {
            return Err(malformed("has a tensor with metadata, which is not read"));
        }
        Ok(TensorRef {
            storage: storage.clone(),
            offset: self.count(offset)?,
            shape: self.counts(shape)?,
            strides: self.counts(strides)?,
        })
    }

    fn counts(&self, id: ValueId) -> Result<Vec<usize>, WeightsFault> {
        match self.value(id) {
            Value::Tuple(items) | Value::List(items) => {
                items.iter().map(|item| self.count(*item)).collect()
            }
            _ => Err(malformed(
                "has a tensor whose shape is not a list of numbers",
            )),
        }
    }

    fn count(&self, id: ValueId) -> Result<usize, WeightsFault> {
        match self.value(id) {
            Value::Int(value) => {
                usize::try_from(*value).map_err(|_| malformed(format!("counts with {value}")))
            }
            _ => Err(malformed("counts with something other than a number")),
        }
    }

    /// `("storage", class, key, location, count)` and, in old files, the view `(key, offset, count)` or `None`.
    fn storage(&self, id: ValueId) -> Result<StorageRef<'a>, WeightsFault> {
        let fail = || malformed("refers to something other than a storage");
        let Value::Tuple(parts) = self.value(id) else {
            return Err(fail());
        };
        let [kind, class, key, _location, n_elements, rest @ ..] = parts.as_slice() else {
            return Err(fail());
        };
        let (Value::Text("storage"), Value::Global(Global::Storage(element)), Value::Text(key)) =
            (self.value(*kind), self.value(*class), self.value(*key))
        else {
            return Err(fail());
        };
        let view = match rest.first().map(|view| self.value(*view)) {
            None | Some(Value::None) => None,
            Some(Value::Tuple(view)) => match view.as_slice() {
                [_, offset, length] => Some((self.count(*offset)?, self.count(*length)?)),
                _ => return Err(fail()),
            },
            Some(_) => return Err(fail()),
        };
        Ok(StorageRef {
            key,
            element: *element,
            n_elements: self.count(*n_elements)?,
            view,
        })
    }

    /// State given to an object: torch gives a state dict its `_metadata`, which says nothing of its tensors.
    fn build(&mut self) -> Result<(), WeightsFault> {
        self.pop()?;
        match self.value(self.top()?) {
            Value::Dict(_) => Ok(()),
            _ => Err(malformed(
                "gives state to something other than a dictionary",
            )),
        }
    }
}

fn malformed(problem: impl Into<String>) -> WeightsFault {
    WeightsFault::malformed("the pickle", problem)
}

#[cfg(test)]
mod tests;
