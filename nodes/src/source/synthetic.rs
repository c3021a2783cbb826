//! `source.synthetic`: rows made up, for tests and measurements.

use std::sync::Arc;

use bytes::Bytes;
use engine::data::{Reject, RowMut};
use engine::node::{
    BuildCx, Fault, Fetch, Item, List, Node, NodeKind, NodeSpec, Reading, SourceStage, SpecCx, SpecError, Stage, Stamp,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::columns::{BYTES, bytes_source};
use super::synthetic_image;

/// Rows that are made up: the same ones for the same options.
///
/// # Input
/// None.
///
/// # Output
/// `uri`: `synthetic/0`, `synthetic/1`, … `id`, the same. `bytes`: with `images` a JPEG file, with `rows` the given number
/// of zero bytes.
///
/// # Example
/// ```yaml
/// photos: {kind: source.synthetic, with: {images: {count: 10000, size: [500, 375], seed: 1}}}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// JPEG files, encoded while the pipeline runs. Either this or `rows`.
    images: Option<Images>,
    /// Rows without an image, as cheap as rows can be. Either this or `images`.
    rows: Option<Rows>,
}

/// Images to be made.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Images {
    /// How many.
    count: u64,
    /// Width and height in pixels.
    size: [Side; 2],
    /// Another seed makes other images. Default 0.
    #[serde(default)]
    seed: u64,
}

/// A width or a height that a JPEG file can have.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Side(#[schemars(range(min = 1, max = 65_500))] u32);

/// Rows to be made.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rows {
    /// How many.
    pub(crate) count: u64,
    /// Bytes of each. Default 0.
    #[serde(default)]
    pub(crate) bytes: usize,
}

/// The largest width and height of a JPEG file that common programs write.
const MAX_SIDE: u32 = 65_500;

impl NodeKind for Synthetic {
    const NAME: &'static str = "source.synthetic";
    const EXAMPLE: &'static str =
        "photos: {kind: source.synthetic, with: {images: {count: 10000, size: [500, 375], seed: 1}}}";
}

impl Node for Synthetic {
    fn spec(&self, _cx: &SpecCx<'_>) -> Result<NodeSpec, SpecError> {
        match (&self.images, &self.rows) {
            (Some(images), None) => {
                let [Side(width), Side(height)] = images.size;
                if [width, height].iter().any(|side| !(1..=MAX_SIDE).contains(side)) {
                    let message =
                        format!("an image of {width}×{height} cannot be made: sides are from 1 to {MAX_SIDE}");
                    return Err(SpecError::new(message).at(&["images", "size"]));
                }
                Ok(bytes_source(format!("{} images {width}×{height}", images.count)))
            }
            (None, Some(rows)) => Ok(bytes_source(format!("{} rows", rows.count))),
            _ => Err(SpecError::new("either `images` or `rows` is needed, and only one of them")
                .at(&[])
                .label("write `images: {count: 100, size: [500, 375]}` or `rows: {count: 100}`")),
        }
    }

    fn build(&self, _cx: &BuildCx<'_>) -> Result<Stage, Fault> {
        match (self.images, self.rows) {
            (Some(images), _) => Ok(stage(images.count, Arc::new(images))),
            (None, Some(rows)) => Ok(stage(rows.count, Arc::new(Zeros::new(rows.bytes)))),
            (None, None) => Err(Fault::bug("neither `images` nor `rows` was given")),
        }
    }
}

fn stage(n_items: u64, fetch: Arc<dyn Fetch>) -> Stage {
    let list = Box::new(Numbers { next: 0, end: n_items });
    Stage::Source(SourceStage { list, reading: Reading::Rows(fetch), count: Some(Box::new(move |_| Some(n_items))) })
}

/// Lists `synthetic/0` and so on.
pub(crate) struct Numbers {
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl List for Numbers {
    fn next_items(&mut self, max: usize, items: &mut Vec<Item>) -> Result<(), Fault> {
        let end = self.end.min(self.next.saturating_add(max as u64));
        items.extend((self.next..end).map(|index| Item {
            uri: format!("synthetic/{index}"),
            id: None,
            locator: Default::default(),
            size_hint: 0,
        }));
        self.next = self.next.max(end);
        Ok(())
    }

    fn seek(&mut self, index: u64) -> Result<(), Fault> {
        self.next = index;
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

impl Fetch for Images {
    fn fetch(&self, index: u64, _item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        let [Side(width), Side(height)] = self.size;
        out.bytes(BYTES, synthetic_image::jpeg(index, width, height, self.seed).into());
        Ok(Stamp::NONE)
    }
}

/// Gives every row the same bytes.
pub(crate) struct Zeros(Bytes);

impl Zeros {
    pub(crate) fn new(n_bytes: usize) -> Self {
        Zeros(if n_bytes == 0 { Bytes::new() } else { vec![0; n_bytes].into() })
    }
}

impl Fetch for Zeros {
    fn fetch(&self, _index: u64, _item: &Item, out: &mut RowMut<'_>) -> Result<Stamp, Reject> {
        out.bytes(BYTES, self.0.clone());
        Ok(Stamp::NONE)
    }
}

#[cfg(test)]
mod tests {
    use engine::data::Column;
    use engine::node::harness::Harness;

    use super::*;

    #[test]
    fn images_are_jpeg_files_of_the_size_and_the_same_each_time() {
        let source = Harness::new::<Synthetic>("images: {count: 3, size: [40, 30], seed: 5}", vec![]);
        let items = source.items(2).unwrap();
        assert_eq!(items.len(), 3);
        assert_eq!(items[2].uri, "synthetic/2");
        let files = |mapped: engine::node::harness::Mapped| match &mapped.columns[2] {
            Column::Bytes(bytes) => bytes.values().to_vec(),
            _ => panic!("not bytes"),
        };
        let first = files(source.fetch(&items));
        assert_eq!(first, files(source.fetch(&items)));
        assert_ne!(first[0], first[1]);
        for file in first {
            let image = image::load_from_memory_with_format(&file, image::ImageFormat::Jpeg).unwrap();
            assert_eq!((image.width(), image.height()), (40, 30));
        }
    }

    #[test]
    fn rows_have_the_bytes_asked_for() {
        let source = Harness::new::<Synthetic>("rows: {count: 2500, bytes: 3}", vec![]);
        let items = source.items(1000).unwrap();
        assert_eq!(items.len(), 2500);
        let mapped = source.fetch(&items[..2]);
        let Column::Bytes(bytes) = &mapped.columns[2] else { panic!() };
        assert_eq!(bytes.values(), [[0u8; 3].as_slice(), &[0; 3]]);
    }

    #[test]
    fn a_listing_goes_on_where_seek_says() {
        let mut source = Harness::new::<Synthetic>("rows: {count: 10}", vec![]).source().unwrap();
        let mut items = Vec::new();
        source.list.seek(8).unwrap();
        source.list.next_items(5, &mut items).unwrap();
        assert_eq!(items.iter().map(|item| item.uri.as_str()).collect::<Vec<_>>(), ["synthetic/8", "synthetic/9"]);
        source.list.seek(12).unwrap();
        source.list.next_items(5, &mut items).unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!(source.count.unwrap()(&engine::node::Counting::default()), Some(10));
    }

    #[test]
    fn exactly_one_of_images_and_rows_is_taken() {
        for with in ["{}", "{rows: {count: 1}, images: {count: 1, size: [1, 1]}}", "images: {count: 1, size: [0, 1]}"] {
            assert!(Harness::new::<Synthetic>(with, vec![]).spec().is_err(), "{with}");
        }
    }
}
