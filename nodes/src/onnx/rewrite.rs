//! A model's file as it goes to ONNX Runtime: with operators before its graph, and without its weights.
//!
//! The file is a protobuf message, and is changed as one: what is not changed is copied byte for byte, known or not. Of large
//! weights, what is left is where in the file they lie. ONNX Runtime maps them from there, where it would otherwise hold the copy
//! that it was given, one that it parsed and one that it computes with.

use prost::Message;

use super::fields::{Field, Fields, put};
use super::prefix::Prefix;
use super::proto::{StringPair, TensorPlace, ValueInfo};

/// Fields of a model, of its graph and of a tensor.
const GRAPH: u32 = 7;
const INITIALIZER: u32 = 5;
const INPUT: u32 = 11;
const RAW_DATA: u32 = 9;

/// Weights of fewer bytes stay: shapes and the like, which are looked at before anything is computed.
const LEAST: usize = 4096;

/// What is changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rewrite<'a> {
    /// Operators that are put before the input of this name.
    pub prefix: Option<(Prefix, &'a str)>,
    /// The name of the file, in its own folder, whose large weights are left in it.
    pub weights_in: Option<&'a str>,
}

impl Rewrite<'_> {
    /// The model `file` so changed.
    ///
    /// # Errors
    /// Bytes that are no such message.
    pub fn apply(&self, file: &[u8]) -> Result<Vec<u8>, prost::DecodeError> {
        let mut out = Vec::with_capacity(if self.weights_in.is_some() { 0 } else { file.len() + 1024 });
        for field in Fields(file) {
            let field = field?;
            if field.number == GRAPH {
                put(GRAPH, &self.graph(file, field.body)?, &mut out);
            } else {
                out.extend_from_slice(field.whole);
            }
        }
        Ok(out)
    }

    fn graph(&self, file: &[u8], graph: &[u8]) -> Result<Vec<u8>, prost::DecodeError> {
        // The nodes of a graph are in the order in which they can be computed.
        let mut out = self.prefix.map(|(prefix, name)| prefix.addition(name).encode_to_vec()).unwrap_or_default();
        if self.weights_in.is_none() {
            out.reserve(graph.len());
        }
        for field in Fields(graph) {
            let field = field?;
            match (field.number, self.weights_in, self.prefix) {
                (INPUT, _, Some((_, name))) if ValueInfo::decode(field.body)?.name == name => {}
                (INITIALIZER, Some(name), _) if field.body.len() >= LEAST => refer(file, &field, name, &mut out)?,
                _ => out.extend_from_slice(field.whole),
            }
        }
        Ok(out)
    }
}

/// Puts a stored tensor behind `out`, its large values as their place in the file.
fn refer(file: &[u8], tensor: &Field<'_>, name: &str, out: &mut Vec<u8>) -> Result<(), prost::DecodeError> {
    let mut kept = Vec::new();
    let mut values: Option<&[u8]> = None;
    for field in Fields(tensor.body) {
        let field = field?;
        if field.number == RAW_DATA && field.body.len() >= LEAST && values.is_none() {
            values = Some(field.body);
        } else {
            kept.extend_from_slice(field.whole);
        }
    }
    let Some(values) = values else {
        out.extend_from_slice(tensor.whole);
        return Ok(());
    };
    let offset = values.as_ptr() as usize - file.as_ptr() as usize;
    let pair = |key: &str, value: String| StringPair { key: key.to_owned(), value };
    let external_data = vec![
        pair("location", name.to_owned()),
        pair("offset", offset.to_string()),
        pair("length", values.len().to_string()),
    ];
    kept.extend_from_slice(&TensorPlace { external_data, data_location: 1 }.encode_to_vec());
    put(INITIALIZER, &kept, out);
    Ok(())
}
