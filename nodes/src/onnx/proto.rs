//! The parts of ONNX's protobuf format that are read or written here, by their field numbers in `onnx.proto`.
//!
//! Reading passes over everything else, weights above all, without copying it. Nothing that was read is written back by
//! these types, because what they leave out would be lost: see [`super::prefix`].

use prost::Message;

/// A model, read for its signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelHeader {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<GraphHeader>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSet>,
}

/// The version of a domain of operators.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

/// A graph, read for its signature.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphHeader {
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<InitializerHeader>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfo>,
}

/// A stored tensor without its values.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InitializerHeader {
    #[prost(int64, repeated, tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<StringPair>,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StringPair {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A name and its type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) ty: Option<TypeProto>,
}

/// A type: a tensor's, or one that is told by its number alone.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor: Option<TensorType>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShape>,
}

/// Dimensions.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorShape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<Dimension>,
}

/// A number, a name, or neither.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Dimension {
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub(super) value: Option<DimensionValue>,
}

/// A number or a name.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum DimensionValue {
    #[prost(int64, tag = "1")]
    Fixed(i64),
    #[prost(string, tag = "2")]
    Named(String),
}

/// What is put into a graph.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GraphAddition {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
}

/// An operator at work.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<AttributeProto>,
}

/// An attribute of an operator.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(int64, tag = "3")]
    pub(super) int: i64,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    /// Which of the fields counts: [`attribute_type`].
    #[prost(int32, tag = "20")]
    pub(super) ty: i32,
}

/// The numbers of the kinds of attributes.
pub(super) mod attribute_type {
    pub(in super::super) const INT: i32 = 2;
    pub(in super::super) const INTS: i32 = 7;
}

/// A stored tensor.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    /// Little-endian.
    #[prost(bytes = "vec", tag = "9")]
    pub(super) raw_data: Vec<u8>,
}

/// Where the values of a stored tensor are, which stands behind the rest of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorPlace {
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<StringPair>,
    /// 1: in another file.
    #[prost(int32, tag = "14")]
    pub(super) data_location: i32,
}
