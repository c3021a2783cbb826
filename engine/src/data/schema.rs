//! The names and types of the columns that travel along an edge.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::DType;

/// One dimension of a tensor column's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dim {
    /// The same in every row.
    Fixed(usize),
    /// Differs from row to row.
    Any,
}

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// Opaque bytes: an encoded file.
    Bytes,
    /// Signed 64-bit integers.
    Int,
    /// Double-precision numbers.
    Float,
    /// A tensor a row; the shape is that of one row, without the leading dimension of the batch.
    Tensor {
        /// The element type.
        dtype: DType,
        /// The dimensions of one row.
        shape: Vec<Dim>,
    },
    /// A list of records a row, such as the best labels.
    List(Vec<(Arc<str>, ColumnType)>),
}

impl ColumnType {
    /// The shape of a row, if it is a tensor of one shape.
    pub fn fixed_shape(&self) -> Option<(DType, Vec<usize>)> {
        let ColumnType::Tensor { dtype, shape } = self else { return None };
        let dims = shape.iter().map(|dim| match dim {
            Dim::Fixed(n) => Some(*n),
            Dim::Any => None,
        });
        Some((*dtype, dims.collect::<Option<Vec<_>>>()?))
    }

    /// Bytes that a row of this type takes, where that is known before the run.
    pub fn row_bytes(&self) -> Option<usize> {
        match self {
            ColumnType::Int | ColumnType::Float => Some(8),
            ColumnType::Tensor { .. } => {
                let (dtype, shape) = self.fixed_shape()?;
                Some(shape.iter().product::<usize>() * dtype.size())
            }
            ColumnType::Text | ColumnType::Bytes | ColumnType::List(_) => None,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnType::Text => f.write_str("text"),
            ColumnType::Bytes => f.write_str("bytes"),
            ColumnType::Int => f.write_str("int"),
            ColumnType::Float => f.write_str("float"),
            ColumnType::Tensor { dtype, shape } => {
                let dims: Vec<_> = shape
                    .iter()
                    .map(|dim| match dim {
                        Dim::Fixed(n) => n.to_string(),
                        Dim::Any => "?".to_owned(),
                    })
                    .collect();
                write!(f, "{dtype} [{}]", dims.join(","))
            }
            ColumnType::List(fields) => {
                let names: Vec<_> = fields.iter().map(|(name, _)| &**name).collect();
                write!(f, "list<{}>", names.join(","))
            }
        }
    }
}

/// What a column is for, which decides whether a sink writes it when nothing else was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Where the row came from. Written.
    Uri,
    /// The row's id, where it differs from the uri. Written.
    Id,
    /// The source carried it along, or a node made it as a result. Written.
    Result,
    /// On the way to a result (`width`, `format`, an id that equals the uri). Written only when named.
    Auxiliary,
}

/// A named, typed column of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The column's name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: ColumnType,
    /// What it is for.
    pub role: Role,
    /// The node that made it, by index; equal names of equal origin are the same column in a join.
    pub origin: Option<usize>,
}

impl Field {
    /// A column that a node makes. The graph fills in the origin.
    pub fn new(name: impl Into<Arc<str>>, ty: ColumnType, role: Role) -> Self {
        Field { name: name.into(), ty, role, origin: None }
    }
}

/// The columns of an edge, and whether its rows come in batches of a planned size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The columns in order.
    pub fields: Vec<Field>,
    /// The planned rows of a batch behind a batch node, absent elsewhere.
    pub batch: Option<usize>,
}

impl Schema {
    /// The index of the column called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| &*field.name == name)
    }

    /// The index of the first column with `role`.
    pub fn index_of_role(&self, role: Role) -> Option<usize> {
        self.fields.iter().position(|field| field.role == role)
    }

    /// The columns' names, for messages: `id`, `uri`, `image`.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        if names.is_empty() { "no columns".to_owned() } else { names.join(", ") }
    }

    /// Whether a union may take both: the same names, types and roles in the same order.
    pub fn same_columns(&self, other: &Schema) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|(a, b)| a.name == b.name && a.ty == b.ty)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> = self.fields.iter().map(|field| format!("{} {}", field.name, field.ty)).collect();
        f.write_str(&shown.join(", "))
    }
}
