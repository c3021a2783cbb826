//! Operators before a graph, so that it takes pixels: `u8 [rows, height, width, 3]`, red, green, blue.
//!
//! The graph's entry for the input that pixels come in by is taken out; its name is what the last of the new operators gives.

use schemars::JsonSchema;
use serde::Deserialize;

use super::element::Element;
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphAddition, NodeProto, TensorProto, TensorShape, TensorType,
    TypeProto, ValueInfo, attribute_type,
};
use crate::models::Normalize;

/// The name of the input that takes the pixels. No other name of a graph begins like it.
pub const PIXELS: &str = "flowgpu/pixels";

/// How a graph wants its pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefix {
    /// Which colour comes first.
    pub channels: Channels,
    /// Where the colours lie.
    pub layout: Layout,
    /// What becomes of a byte.
    pub normalize: Normalize,
    /// The type of the graph's numbers.
    pub element: Element,
}

/// The order of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red, as OpenCV and Caffe have them.
    Bgr,
}

/// Where the colours lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[rows, 3, height, width]`: one plane for each colour.
    Nchw,
    /// `[rows, height, width, 3]`: the colours of a pixel side by side.
    Nhwc,
}

impl Prefix {
    /// What a graph is given so that its input `name` is computed from [`PIXELS`].
    pub(super) fn addition(&self, name: &str) -> GraphAddition {
        let mut chain = Chain { last: PIXELS.to_owned(), nodes: Vec::new(), stored: Vec::new() };
        if self.channels == Channels::Bgr {
            let order = chain.store("order", Element::INT64, vec![3], [2_i64, 1, 0].map(i64::to_le_bytes).concat());
            chain.push("Gather", Some(order), vec![int("axis", 3)]);
        }
        // Before bytes become numbers of four times their size.
        if self.layout == Layout::Nchw {
            let axes = AttributeProto {
                name: "perm".to_owned(),
                ints: vec![0, 3, 1, 2],
                ty: attribute_type::INTS,
                ..AttributeProto::default()
            };
            chain.push("Transpose", None, vec![axes]);
        }
        if self.element != Element::UINT8 {
            chain.push("Cast", None, vec![int("to", i64::from(Element::FLOAT.0))]);
        }
        if self.normalize != Normalize::None {
            let (mut mean, mut std) = self.normalize.mean_std();
            if self.channels == Channels::Bgr {
                mean.reverse();
                std.reverse();
            }
            let shape = match self.layout {
                Layout::Nchw => vec![1, 3, 1, 1],
                Layout::Nhwc => vec![1, 1, 1, 3],
            };
            // Two operators on the numbers that people know: a factor and an offset would be rounded once more.
            for (what, operator, figures) in [("mean", "Sub", mean), ("std", "Div", std)] {
                let values = figures.map(|figure| (figure as f32).to_le_bytes()).concat();
                let values = chain.store(what, Element::FLOAT, shape.clone(), values);
                chain.push(operator, Some(values), Vec::new());
            }
        }
        if !matches!(self.element, Element::FLOAT | Element::UINT8) {
            chain.push("Cast", None, vec![int("to", i64::from(self.element.0))]);
        }
        chain.end(name)
    }
}

fn int(name: &str, int: i64) -> AttributeProto {
    AttributeProto { name: name.to_owned(), int, ty: attribute_type::INT, ..AttributeProto::default() }
}

/// Operators one behind the other.
struct Chain {
    /// What the last one gives.
    last: String,
    nodes: Vec<NodeProto>,
    stored: Vec<TensorProto>,
}

impl Chain {
    fn push(&mut self, operator: &str, second: Option<String>, attribute: Vec<AttributeProto>) {
        let name = format!("flowgpu/{}_{operator}", self.nodes.len());
        let input = std::iter::once(std::mem::replace(&mut self.last, name.clone())).chain(second).collect();
        self.nodes.push(NodeProto { input, output: vec![name.clone()], name, op_type: operator.to_owned(), attribute });
    }

    fn store(&mut self, what: &str, element: Element, dims: Vec<i64>, raw_data: Vec<u8>) -> String {
        let name = format!("flowgpu/{what}");
        self.stored.push(TensorProto { dims, data_type: element.0, name: name.clone(), raw_data });
        name
    }

    /// The last operator gives the graph's own input.
    fn end(mut self, name: &str) -> GraphAddition {
        match self.nodes.last_mut() {
            Some(node) => node.output = vec![name.to_owned()],
            None => {
                let node = NodeProto {
                    input: vec![self.last],
                    output: vec![name.to_owned()],
                    name: "flowgpu/0_Identity".to_owned(),
                    op_type: "Identity".to_owned(),
                    attribute: Vec::new(),
                };
                self.nodes.push(node);
            }
        }
        let open = |name: &str| Dimension { value: Some(DimensionValue::Named(format!("flowgpu_{name}"))) };
        let dim =
            vec![open("rows"), open("height"), open("width"), Dimension { value: Some(DimensionValue::Fixed(3)) }];
        let tensor = TensorType { elem_type: Element::UINT8.0, shape: Some(TensorShape { dim }) };
        let input = ValueInfo { name: PIXELS.to_owned(), ty: Some(TypeProto { tensor: Some(tensor) }) };
        GraphAddition { node: self.nodes, initializer: self.stored, input: vec![input] }
    }
}
