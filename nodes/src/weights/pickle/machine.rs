//! The stack machine: one instruction after the other, each known or refused.

use std::collections::HashMap;

use super::global::Global;
use super::malformed;
use super::reader::Reader;
use super::value::{Value, ValueId};
use crate::weights::error::WeightsFault;

/// The limit of everything that is counted: values, stack, groups, memo, copied pairs. Some thousand tensors make a hundred
/// thousand values.
pub(super) const MAX_VALUES: usize = 4_000_000;

/// The longest name of a tensor or storage: a name may be recalled any number of times for two bytes each.
pub const MAX_NAME: usize = 1000;

/// Pickle's machine in the middle of a program.
pub(super) struct Machine<'a> {
    reader: Reader<'a>,
    pub values: Vec<Value<'a>>,
    stack: Vec<ValueId>,
    marks: Vec<usize>,
    memo: HashMap<u64, ValueId>,
    /// Pairs copied out of lists so far: one list may be copied any number of times for a few bytes each.
    pub n_copied: usize,
}

impl<'a> Machine<'a> {
    pub fn new(file: &'a [u8], start: usize) -> Self {
        Self {
            reader: Reader::new(file, start),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            n_copied: 0,
        }
    }

    /// Where in the file the next instruction is.
    pub fn position(&self) -> usize {
        self.reader.position()
    }

    /// Runs up to the end of the program and returns what it leaves.
    pub fn run(&mut self) -> Result<ValueId, WeightsFault> {
        loop {
            let at = self.reader.position();
            match self.reader.byte()? {
                0x80 => drop(self.reader.byte()?),
                0x95 => drop(self.reader.u64()?),
                b'.' => return self.pop(),
                b'(' => {
                    bounded(self.marks.len(), "open groups")?;
                    self.marks.push(self.stack.len());
                }
                b'0' => drop(self.pop()?),
                b'1' => drop(self.pop_mark()?),
                b'2' => {
                    let top = self.top()?;
                    self.push_again(top)?;
                }
                b'N' => self.push(Value::None)?,
                0x88 => self.push(Value::Bool(true))?,
                0x89 => self.push(Value::Bool(false))?,
                b'K' => self.int(|reader| reader.byte().map(i128::from))?,
                b'M' => self.int(|reader| reader.u16().map(i128::from))?,
                b'J' => self.int(|reader| reader.u32().map(|value| i128::from(value.cast_signed())))?,
                0x8a => self.int(|reader| reader.byte().and_then(|length| reader.long(length.into())))?,
                0x8b => self.int(|reader| reader.u32().and_then(|length| reader.long(length.into())))?,
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
                        return Err(malformed(format!("names a function by something other than text, at byte {at}")));
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
                    let problem =
                        format!("has the instruction {other:#04x} at byte {at}, which `torch.save` does not write");
                    return Err(malformed(problem));
                }
            }
        }
    }

    pub fn push(&mut self, value: Value<'a>) -> Result<(), WeightsFault> {
        bounded(self.values.len(), "values")?;
        self.values.push(value);
        self.push_again(ValueId(self.values.len() as u32 - 1))
    }

    /// Pushes a value that is there already.
    pub fn push_again(&mut self, id: ValueId) -> Result<(), WeightsFault> {
        bounded(self.stack.len(), "values on its stack")?;
        self.stack.push(id);
        Ok(())
    }

    pub fn value(&self, id: ValueId) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    pub fn top(&self) -> Result<ValueId, WeightsFault> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(top) if self.stack.len() > floor => Ok(*top),
            _ => Err(malformed(format!("takes from an empty stack at byte {}", self.reader.position()))),
        }
    }

    pub fn pop(&mut self) -> Result<ValueId, WeightsFault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_mark(&mut self) -> Result<Vec<ValueId>, WeightsFault> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark)),
            None => Err(malformed(format!("closes a group that it did not open, at byte {}", self.reader.position()))),
        }
    }

    fn int(&mut self, read: impl Fn(&mut Reader<'a>) -> Result<i128, WeightsFault>) -> Result<(), WeightsFault> {
        let value = read(&mut self.reader)?;
        self.push(Value::Int(value))
    }

    fn text(&mut self, length: impl Fn(&mut Reader<'a>) -> Result<u64, WeightsFault>) -> Result<(), WeightsFault> {
        let length = length(&mut self.reader)?;
        let bytes = self.reader.take(length)?;
        // Python 2 wrote bytes and text alike.
        self.push(std::str::from_utf8(bytes).map_or(Value::Bytes, Value::Text))
    }

    fn bytes(&mut self, length: impl Fn(&mut Reader<'a>) -> Result<u64, WeightsFault>) -> Result<(), WeightsFault> {
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
            Value::Dict(dict) if rest.is_empty() => dict.extend(pairs.iter().map(|[key, value]| (*key, *value))),
            _ => return Err(malformed("sets items of something other than a dictionary")),
        }
        Ok(())
    }

    fn memoize(&mut self, key: u64) -> Result<(), WeightsFault> {
        let top = self.top()?;
        bounded(self.memo.len(), "kept values")?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<(), WeightsFault> {
        let Some(id) = self.memo.get(&key) else {
            return Err(malformed(format!("recalls value {key}, which it did not keep")));
        };
        self.push_again(*id)
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), WeightsFault> {
        match Global::find(module, name) {
            Some(global) => self.push(Value::Global(global)),
            None => Err(WeightsFault::Refused(format!("{module}.{name}"))),
        }
    }
}

/// An error if there are as many of `what` as there may be.
pub(super) fn bounded(count: usize, what: &str) -> Result<(), WeightsFault> {
    match count < MAX_VALUES {
        true => Ok(()),
        false => Err(malformed(format!("has more than {MAX_VALUES} {what}"))),
    }
}
