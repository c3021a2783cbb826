//! A node that is only there to be built, in a graph that was checked before.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::node::{Advice, BuildCx, Fault, Node, NodeSpec, Objects, Parts, Sealed, SpecCx, SpecError, Stage};

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

    fn advice(&self, _base: &Path) -> Result<Option<Advice>, SpecError> {
        Ok(None)
    }

    fn asks_advice(&self) -> bool {
        false
    }

    fn batch_size(&self) -> Option<usize> {
        None
    }

    fn joins(&self) -> bool {
        false
    }

    fn writes(&self, _base: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn objects(&self) -> Option<Arc<dyn Objects>> {
        None
    }

    fn spools(&self) -> bool {
        false
    }

    fn parts(&self) -> Parts {
        Parts::Apart
    }

    fn tidy(&self, _base: &Path, _outputs: &[Sealed]) -> Result<(), Fault> {
        Ok(())
    }

    fn reads(&self, _base: &Path, _path: &Path) -> bool {
        false
    }
}
