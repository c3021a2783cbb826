//! What a pickle can hold here: plain data, and descriptions of tensors and storages.

use super::global::Global;
use crate::weights::element::Element;

/// A value's place among all values of its pickle. Values refer to each other by place, so that a pickle that contains
/// itself, or is nested a million deep, is as harmless as any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueId(pub u32);

/// One unpickled value. Text is borrowed from the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float,
    Text(&'a str),
    Bytes,
    Tuple(Vec<ValueId>),
    List(Vec<ValueId>),
    /// Pairs in the order they were set; a later pair replaces an earlier one of the same key.
    Dict(Vec<(ValueId, ValueId)>),
    Global(Global),
    Storage(StorageRef<'a>),
    Tensor(Box<TensorRef<'a>>),
}

/// Elements kept outside of the pickle, known by a key.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageRef<'a> {
    pub key: &'a str,
    pub element: Element,
    pub n_elements: usize,
    /// The part of the keyed storage that this one is, as offset and length; only old files have such.
    pub view: Option<(usize, usize)>,
}

/// A tensor: its shape, and how it takes its elements out of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorRef<'a> {
    pub storage: StorageRef<'a>,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<usize>,
}
