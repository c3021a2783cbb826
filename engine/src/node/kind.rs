//! The traits that each kind of node implements.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{BuildCx, Fault, NodeSpec, Objects, Sealed, SpecCx, SpecError, Stage};

/// What a kind is for; the word before the dot in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Gives rows.
    Source,
    /// From bytes to tensors.
    Decode,
    /// Puts rows together.
    Batch,
    /// Runs a model.
    Infer,
    /// Other work on rows.
    Transform,
    /// Takes rows out.
    Sink,
}

impl Role {
    /// All roles, in the order of a pipeline.
    pub const ALL: [Role; 6] = [Role::Source, Role::Decode, Role::Batch, Role::Infer, Role::Transform, Role::Sink];

    /// The role of a kind by its name, `None` if the name has none.
    pub fn of(kind: &str) -> Option<Role> {
        Some(match kind.split('.').next()? {
            "source" => Role::Source,
            "decode" => Role::Decode,
            "batch" => Role::Batch,
            "infer" => Role::Infer,
            "transform" => Role::Transform,
            "sink" => Role::Sink,
            _ => return None,
        })
    }

    /// The word in names of kinds.
    pub fn word(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Decode => "decode",
            Role::Batch => "batch",
            Role::Infer => "infer",
            Role::Transform => "transform",
            Role::Sink => "sink",
        }
    }
}

/// What a node wants of those before it: a model its preprocessing. Opaque to the engine, which only finds who gives it
/// to whom and whether two givers agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The wish, in the form that the kinds concerned agree on.
    pub value: serde_json::Value,
    /// The same in words, for messages.
    pub text: String,
}

/// How what shards have written of a sink's output becomes what one run would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Rows are lines: one part after the other.
    Lines,
    /// Compressed pieces, of which any number make a file: one part after the other.
    Pieces,
    /// As lines, but each part has a header line, of which the first stays. Lines may go on inside double quotes.
    LinesAfterHeader,
    /// They stay as they are, beside a list of them.
    Apart,
}

/// A kind of node: its name and its options.
///
/// The type's doc comment is the kind's manual, those of its fields are its options' (in the JSON Schema and in
/// `flowgpu nodes`). Derive `JsonSchema`, and `Deserialize` with `deny_unknown_fields`.
pub trait NodeKind: Node + DeserializeOwned + JsonSchema + 'static {
    /// The name in pipeline files: `decode.image`.
    const NAME: &'static str;
    /// A node of this kind as one would write it, in YAML, for the manual.
    const EXAMPLE: &'static str;

    /// Raised when the same input begins to give other results: runs that were begun with another one are not gone on
    /// with.
    const REVISION: u32 = 1;
    /// The options that decide how fast or where results are made, and not what they are: `batch`, or `store.timeout` for
    /// one that lies in another.
    const INCIDENTAL: &'static [&'static str] = &[];
}

/// A node by its options: what it does to columns, and how it is built.
pub trait Node: Debug + Send + Sync {
    /// What the node makes of its inputs' columns. Pure, except that it may read what `with` names beside the data:
    /// a model's header, a file of labels.
    ///
    /// # Errors
    /// A mistake in the options, or inputs that do not fit.
    fn spec(&self, cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError>;

    /// The thing that runs.
    ///
    /// # Errors
    /// What cannot be: a missing file, a path that may not be written.
    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault>;

    /// What this node wants of those before it.
    ///
    /// # Errors
    /// A mistake in the options.
    fn advice(&self, _base: &Path) -> Result<Option<Advice>, SpecError> {
        Ok(None)
    }

    /// Whether this node asks for the advice of those behind it (`preset: model`).
    fn asks_advice(&self) -> bool {
        false
    }

    /// For kinds that read batches: the size wanted, so that a batch node is put before them where there is none.
    fn batch_size(&self) -> Option<usize> {
        None
    }

    /// Whether several inputs are merged row by row into one (a join) instead of following each other (a union).
    fn joins(&self) -> bool {
        false
    }

    /// The final paths of the files that the node writes, and the URLs of its objects. Of an output that has parts, the one
    /// that they are named after.
    fn writes(&self, _base: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// For sinks whose outputs are objects of a store: what gives them their place there.
    fn objects(&self) -> Option<Arc<dyn Objects>> {
        None
    }

    /// For sinks: whether the node goes on from what it has kept in its [spool](BuildCx::spool), and not from its outputs.
    fn spools(&self) -> bool {
        false
    }

    /// For sinks: how the outputs of shards become one.
    fn parts(&self) -> Parts {
        Parts::Apart
    }

    /// For sinks: takes away what an older run has left that does not belong beside `outputs`, which are all that a complete
    /// run has written and have their names.
    ///
    /// # Errors
    /// If something may not be removed.
    fn tidy(&self, _base: &Path, _outputs: &[Sealed]) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether the node reads the file `path`, which another one writes.
    fn reads(&self, _base: &Path, _path: &Path) -> bool {
        false
    }
}
