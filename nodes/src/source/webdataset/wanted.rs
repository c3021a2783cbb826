//! What is wanted of a sample.

use std::sync::Arc;

use engine::config::Size;
use engine::data::ColumnType;

use crate::source::paths::OneOrMany;

const IMAGES: [&str; 8] = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff"];
const MAX_MEMBER_BYTES: u64 = 1 << 30;
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// What is wanted of a sample, and within which bounds.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Extensions of the member that becomes `bytes`: the first that is there.
    pub(super) image: Vec<String>,
    pub(super) carried: Vec<Carried>,
    pub(super) max_member_bytes: u64,
    pub(super) max_header_bytes: u64,
}

impl Wanted {
    /// What options say: the extensions of images, those of members that are carried along, each with its column, and limits.
    pub(super) fn new<'a>(
        image: Option<&OneOrMany>,
        carry: impl IntoIterator<Item = (&'a String, &'a String)>,
        max_member_bytes: Option<Size>,
        max_header_bytes: Option<Size>,
    ) -> Self {
        let tidy = |extension: &str| extension.strip_prefix('.').unwrap_or(extension).to_lowercase();
        let image = match image {
            Some(image) => image.texts().iter().map(|extension| tidy(extension)).collect(),
            None => IMAGES.map(str::to_owned).to_vec(),
        };
        let carried = carry.into_iter();
        let carried =
            carried.map(|(column, extension)| Carried { column: column.as_str().into(), extension: tidy(extension) });
        Wanted {
            image,
            carried: carried.collect(),
            max_member_bytes: max_member_bytes.map_or(MAX_MEMBER_BYTES, Size::bytes),
            max_header_bytes: max_header_bytes.map_or(MAX_HEADER_BYTES, Size::bytes),
        }
    }
}

/// A member that becomes a column.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) column: Arc<str>,
    /// In lower case.
    pub(super) extension: String,
}

impl Carried {
    /// Numbers of classes are what `webdataset` decodes as numbers too.
    pub(super) fn ty(&self) -> ColumnType {
        if self.extension == "cls" { ColumnType::Int } else { ColumnType::Text }
    }
}
