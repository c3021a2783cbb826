//! Rows of a node, made here and by the reference.

use std::path::PathBuf;

use engine::data::{Batch, Column, Role as ColumnRole};
use engine::graph::{Graph, GraphNode};
use engine::node::{Item, NodeKind, Role};
use engine::runtime::{Sampled, Sampler};
use nodes::decode::image::Image;
use serde_json::{Value as Json, json};

use super::figures::{Decoder, Kind, Refused, Side};
use super::reference::{Content, Look, Reference, Rules};
use crate::failure::Failure;

/// The listing whose items a sample is spread over: what a source lists first. A walk over more would take long, and the names
/// would fill memory.
pub(super) const LISTED: usize = 65_536;

/// The source whose items the reference opens by name.
const FILES: &str = "source.files";

/// The two sides of a comparison.
pub(super) struct Checking<'a> {
    pub(super) graph: &'a Graph,
    pub(super) reference: &'a mut Reference,
    /// Files for each node.
    pub(super) limit: usize,
}

/// A picture as pixels: rows of RGB.
pub(super) struct Picture<'a> {
    pub(super) size: [usize; 2],
    pub(super) pixels: &'a [u8],
}

impl Checking<'_> {
    /// Compares what a node decodes.
    pub(super) fn decoder(&mut self, node_idx: usize) -> Result<Decoder, Failure> {
        let node = &self.graph.nodes[node_idx];
        let mut found = Decoder { name: node.name.clone(), rules: node.spec.detail.clone(), ..Decoder::default() };
        let options = options(node);
        let image = match serde_json::from_value::<Image>(options.clone()) {
            Ok(image) if node.kind.name() == Image::NAME => image,
            _ => {
                found.left_out.push(format!("nodes of the kind `{}` are not compared", node.kind.name()));
                return Ok(found);
            }
        };
        let mistaken = |error: engine::node::SpecError| Failure::fault(error.message);
        let preprocess = image.preprocess(node.advice.as_ref()).map_err(mistaken)?;
        let rules = Rules { preprocess, max_pixels: image.max_pixels(), options };
        let bytes = image.column(&node.schemas[0]).map_err(mistaken)?;
        let sources = self.sources(node_idx);
        for &source_idx in &sources {
            let source = &self.graph.nodes[source_idx];
            let Some(mut sampler) = Sampler::new(self.graph, source_idx, node_idx)? else {
                found.left_out.push(format!("no row of `{}` comes here by itself", source.name));
                continue;
            };
            // Where several sources feed a node, each has its part; and so has each item that holds many rows.
            let limit = self.limit.div_ceil(sources.len());
            let items = sampler.items(limit, LISTED)?;
            let n_rows = if sampler.holds_many() { limit.div_ceil(items.len().max(1)) } else { 1 };
            for (index, item) in items {
                for sub in 0..n_rows as u32 {
                    let Some(sampled) = sampler.take(index, &item, sub)? else { break };
                    self.compare(&mut found, source, &item, &sampled, (&rules, bytes, image.output()), node)?;
                }
            }
        }
        Ok(found)
    }

    /// The sources of a node, by their places in the graph.
    pub(super) fn sources(&self, node_idx: usize) -> Vec<usize> {
        let numbers = self.graph.sources_of(node_idx);
        let is_one = |at: &usize| self.graph.nodes[*at].source.is_some_and(|number| numbers.contains(&number));
        self.graph.with_role(Role::Source).filter(is_one).collect()
    }

    fn compare(
        &mut self,
        found: &mut Decoder,
        source: &GraphNode,
        item: &Item,
        sampled: &Sampled,
        (rules, bytes, output): (&Rules, usize, &str),
        node: &GraphNode,
    ) -> Result<(), Failure> {
        found.n_files += 1;
        let schema = &node.schemas[0];
        let name = sampled.before.as_ref().zip(schema.index_of_role(ColumnRole::Uri));
        let uri = &name.map_or_else(|| item.uri.clone(), |(row, column)| row.row(0).text(column).to_owned());
        let refused =
            |by, code: &str, why: &str| Refused { uri: uri.clone(), by, code: code.to_owned(), why: why.to_owned() };
        let Some(before) = &sampled.before else {
            if let Err(reject) = &sampled.after {
                found.unread.push(refused(Side::Here, reject.code, &reject.message));
            }
            return Ok(());
        };
        let path: PathBuf = self.graph.base.join(&item.locator);
        let content = match &before.columns()[bytes] {
            _ if source.kind.name() == FILES => Content::Path(&path),
            Column::Bytes(values) => Content::Bytes(&values.values()[0]),
            _ => return Err(Failure::fault(format!("`{}` decodes no bytes", node.name))),
        };
        let look = self.reference.look(content, rules)?;
        match (&sampled.after, &look) {
            (Err(_), Look { refused: Some(_), .. }) => found.n_refused_by_both += 1,
            (Err(reject), _) => found.refused_by_one.push(refused(Side::Here, reject.code, &reject.message)),
            (Ok(_), Look { refused: Some(code), .. }) => {
                found.refused_by_one.push(refused(Side::Pillow, code, &look.why));
            }
            (Ok(after), Look { kind, size, pixels, .. }) => {
                let name = kind.as_deref().unwrap_or("?");
                let figures = found.kinds.entry(name.to_owned()).or_insert_with(Kind::new);
                let column = node.output.index_of(output);
                let Some(ours) = column.and_then(|column| picture(after, column)) else {
                    return Err(Failure::fault(format!("`{}` gives no pixels", node.name)));
                };
                match size {
                    Some(size) if *size == ours.size && pixels.len() == ours.pixels.len() => {
                        figures.add(uri, ours.pixels, pixels);
                    }
                    _ => figures.add_other_size(uri, ours.size, size.unwrap_or_default()),
                }
            }
        }
        Ok(())
    }
}

/// The options of a node, as they were written.
pub(super) fn options(node: &GraphNode) -> Json {
    match json!(node.with) {
        Json::Null => json!({}),
        options => options,
    }
}

/// The picture in a column of a single row.
pub(super) fn picture(row: &Batch, column: usize) -> Option<Picture<'_>> {
    let tensor = match &row.columns()[column] {
        Column::Dense(tensor) => tensor,
        Column::Ragged(tensors) => tensors.values().first()?,
        _ => return None,
    };
    match *tensor.shape() {
        [1, height, width, 3] => Some(Picture { size: [width, height], pixels: tensor.bytes() }),
        _ => None,
    }
}
