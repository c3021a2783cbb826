//! Giving outputs their final names, in folders and in stores.

use super::{Cut, OutputRecord, SealedRun, StateFolder};
use crate::durable::{disk, is_there, publish};
use crate::graph::Graph;
use crate::node::{Fault, Objects, Place, Sealed};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Publishes the parts that were complete with a cut.
///
/// # Errors
/// If a part is not there, or cannot be given its name.
pub fn publish_closed(graph: &Graph, cut: &Cut) -> Result<(), Fault> {
    for (sink, cut) in &cut.sinks {
        publish_of(graph, sink, &cut.closed)?;
    }
    Ok(())
}

/// Publishes the outputs of a run that is sealed, and its rejects, and takes away what older runs have left beside them.
///
/// # Errors
/// If an output is not there, or cannot be given its name.
pub fn publish_sealed(graph: &Graph, sealed: &SealedRun) -> Result<(), Fault> {
    let mut by_sink: BTreeMap<&str, Vec<Sealed>> = BTreeMap::new();
    for OutputRecord { node, sealed, .. } in &sealed.outputs {
        by_sink.entry(node).or_default().push(sealed.clone());
    }
    for (sink, outputs) in &by_sink {
        publish_of(graph, sink, outputs)?;
    }
    publish(&graph.base, sealed.rejects.as_slice())?;
    for (sink, outputs) in &by_sink {
        let node = graph.nodes.iter().find(|node| node.name == *sink);
        node.map_or(Ok(()), |node| node.node.tidy(&graph.base, outputs)).map_err(|fault| fault.in_node(sink))?;
    }
    Ok(())
}

/// What is not as the finished run has left it, if something is.
///
/// # Errors
/// A store that does not answer.
pub(super) fn gone(graph: &Graph, sealed: &SealedRun) -> Result<Option<String>, Fault> {
    let outputs = sealed.outputs.iter().map(|output| (Some(&*output.node), &output.sealed));
    for (sink, output) in outputs.chain(sealed.rejects.iter().map(|rejects| (None, rejects))) {
        if !stays(graph, sink, output)? {
            return Ok(Some(format!("`{}` is not as the finished run has left it", graph.redact(&output.path))));
        }
    }
    Ok(None)
}

/// Whether an output, of a sink if it is one of rows, is there as it was sealed.
pub(super) fn stays(graph: &Graph, sink: Option<&str>, output: &Sealed) -> Result<bool, Fault> {
    match (output.place, sink) {
        (Place::Object, Some(sink)) => objects(graph, sink)?.is_there(&output.path, output.bytes),
        _ => Ok(is_there(&graph.base, output)),
    }
}

/// Gives outputs of a sink their names.
pub(super) fn publish_of(graph: &Graph, sink: &str, outputs: &[Sealed]) -> Result<(), Fault> {
    for output in outputs {
        match &output.spooled {
            Some(spooled) if output.place == Place::Object => {
                let local = graph.base.join(spooled);
                publish_object(&*objects(graph, sink)?, &local, output).map_err(|fault| fault.in_node(sink))?;
            }
            _ => publish(&graph.base, std::slice::from_ref(output)).map_err(|fault| fault.in_node(sink))?,
        }
    }
    Ok(())
}

/// Where the file is gone, it was published before: the run died before it could say so.
fn publish_object(objects: &dyn Objects, local: &Path, output: &Sealed) -> Result<(), Fault> {
    if !local.exists() && objects.is_there(&output.path, output.bytes)? {
        return Ok(());
    }
    objects.publish(local, &output.path)?;
    disk::remove(local)
}

fn objects(graph: &Graph, sink: &str) -> Result<Arc<dyn Objects>, Fault> {
    let node = graph.nodes.iter().find(|node| node.name == sink);
    let objects = node.and_then(|node| node.node.objects());
    objects.ok_or_else(|| Fault::bug("an output is an object, and its sink knows no store").in_node(sink))
}

/// Ends what an earlier run has left under way in stores, before what is known of it goes.
///
/// # Errors
/// A store that does not do it.
pub(super) fn abandon(graph: &Graph, folder: &StateFolder) -> Result<(), Fault> {
    for node in graph.sinks().map(|sink| &graph.nodes[sink]) {
        if let Some(objects) = node.node.objects() {
            objects.abandon(&folder.spool_of(&node.name)).map_err(|fault| fault.in_node(&node.name))?;
        }
    }
    Ok(())
}

/// Removes what sinks have kept of a run that is done, and needs no more.
///
/// # Errors
/// If it may not be removed.
pub fn clear_spool(folder: &StateFolder) -> Result<(), Fault> {
    let spool = folder.spool();
    if !spool.exists() {
        return Ok(());
    }
    std::fs::remove_dir_all(&spool).map_err(|error| Fault::io("remove", &spool, &error))
}
