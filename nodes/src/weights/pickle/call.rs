//! What calls of the known functions and references to storages stand for. Nothing is called: tensors are described.

use super::global::Global;
use super::machine::{MAX_NAME, Machine, bounded};
use super::malformed;
use super::value::{StorageRef, TensorRef, Value, ValueId};
use crate::weights::error::WeightsFault;
use crate::weights::layout::MAX_DIMS;

impl<'a> Machine<'a> {
    /// What a call of one of the known functions would give.
    pub fn call(&mut self, function: ValueId, arguments: ValueId) -> Result<(), WeightsFault> {
        let (Value::Global(global), Value::Tuple(arguments)) = (self.value(function), self.value(arguments)) else {
            return Err(malformed("calls something other than a function"));
        };
        match (*global, arguments.as_slice()) {
            (Global::OrderedDict, []) => self.push(Value::Dict(Vec::new())),
            (Global::OrderedDict, [pairs]) => {
                let pairs = self.pairs(*pairs)?;
                self.n_copied += pairs.len();
                bounded(self.n_copied, "copied pairs")?;
                self.push(Value::Dict(pairs))
            }
            (Global::RebuildTensor, [storage, offset, shape, strides, rest @ ..]) => {
                let tensor = self.tensor([*storage, *offset, *shape, *strides], rest)?;
                self.push(Value::Tensor(Box::new(tensor)))
            }
            (Global::RebuildParameter, [tensor, ..]) | (Global::Size, [tensor]) => {
                let same = *tensor;
                self.push_again(same)
            }
            (global, arguments) => Err(malformed(format!("calls {global:?} with {} arguments", arguments.len()))),
        }
    }

    fn pairs(&self, list: ValueId) -> Result<Vec<(ValueId, ValueId)>, WeightsFault> {
        let fail = || malformed("makes a dictionary of something other than pairs");
        let Value::List(list) = self.value(list) else {
            return Err(fail());
        };
        let pair = |id: &ValueId| match self.value(*id) {
            Value::Tuple(pair) | Value::List(pair) => {
                <[ValueId; 2]>::try_from(pair.as_slice()).ok().map(|[key, value]| (key, value))
            }
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
            return Err(malformed("makes a tensor of something other than a storage"));
        };
        // Behind `requires_grad` and the hooks: flags that change what the elements mean, such as a pending negation.
        if rest.get(2).is_some_and(|flags| !matches!(self.value(*flags), Value::Dict(pairs) if pairs.is_empty())) {
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
            Value::Tuple(items) | Value::List(items) if items.len() > MAX_DIMS => {
                let n_dims = items.len();
                Err(malformed(format!("has a tensor of {n_dims} dimensions; at most {MAX_DIMS} are read")))
            }
            Value::Tuple(items) | Value::List(items) => items.iter().map(|item| self.count(*item)).collect(),
            _ => Err(malformed("has a tensor whose shape is not a list of numbers")),
        }
    }

    fn count(&self, id: ValueId) -> Result<usize, WeightsFault> {
        match self.value(id) {
            Value::Int(value) => usize::try_from(*value).map_err(|_| malformed(format!("counts with {value}"))),
            _ => Err(malformed("counts with something other than a number")),
        }
    }

    /// `("storage", class, key, location, count)` and, in old files, the view `(key, offset, count)` or `None`.
    pub fn storage(&self, id: ValueId) -> Result<StorageRef<'a>, WeightsFault> {
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
        if key.len() > MAX_NAME {
            return Err(malformed(format!("has a storage whose name is {} bytes long", key.len())));
        }
        let view = match rest.first().map(|view| self.value(*view)) {
            None | Some(Value::None) => None,
            Some(Value::Tuple(view)) => match view.as_slice() {
                [_, offset, length] => Some((self.count(*offset)?, self.count(*length)?)),
                _ => return Err(fail()),
            },
            Some(_) => return Err(fail()),
        };
        Ok(StorageRef { key, element: *element, n_elements: self.count(*n_elements)?, view })
    }

    /// State given to an object: torch gives a state dict its `_metadata`, which says nothing of its tensors.
    pub fn build(&mut self) -> Result<(), WeightsFault> {
        self.pop()?;
        match self.value(self.top()?) {
            Value::Dict(_) => Ok(()),
            _ => Err(malformed("gives state to something other than a dictionary")),
        }
    }
}
