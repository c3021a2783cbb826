//! A node that is only there to be built, in a graph that was checked before.

use std::fmt;
use std::sync::Arc;

use engine::node::{BuildCx, Fault, Node, NodeSpec, SpecCx, SpecError, Stage};

type Build = dyn Fn(&BuildCx<'_>) -> Result<Stage, Fault> + Send + Sync;

/// A node by what it is built as. It writes nothing.
pub(super) struct Stub(Box<Build>);

impl Stub {
    pub(super) fn node(build: impl Fn(&BuildCx<'_>) -> Result<Stage, Fault> + Send + Sync + 'static) -> Arc<dyn Node> {
        Arc::new(Stub(Box::new(build)))
    }
}

impl fmt::Debug for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stub")
    }
}

impl Node for Stub {
    fn spec(&self, _cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        Err(SpecError::new("what stands in for a node was given its columns before"))
    }

    fn build(&self, cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        (self.0)(cx)
    }
}
