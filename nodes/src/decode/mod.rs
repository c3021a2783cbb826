//! From encoded bytes to pixels.
//!
//! [`codec`] turns a file's bytes into an RGB raster by the rules of [`colours`], [`orientation`] sets it upright, [`geometry`] says which part of it at
//! which size is wanted, [`resample`] makes that part, and [`pixels`] runs the four of them over reused memory. [`preprocess`]
//! holds the options that people write.
//!
//! Promises: the pixels that Pillow's `convert("RGB")`, `exif_transpose` and `resize` and torchvision's `CenterCrop` give, within
//! the tolerance that each codec's tests state; a typed error with a stable code for every input that is no picture.
//!
//! [`image`] is the kind; nothing else in here knows of rows, graphs or threads.

pub mod codec;
pub mod colours;
mod crop;
pub mod error;
mod extent;
pub mod geometry;
mod ifd;
pub mod image;
mod interpolation;
mod letterbox;
pub mod orientation;
pub mod pixels;
pub mod preprocess;
pub mod resample;
mod resample_kernel;
mod resize;

pub use codec::{Decoded, Format, Limits, Reading, Scale, Scaling, decode};
pub use colours::{Alpha, Colour, Colours, Grey16};
pub use error::DecodeError;
pub use letterbox::Fit;
pub use pixels::{Original, Scratch, decode_into, with_scratch};
pub use preprocess::{Anchor, Crop, Interpolation, Letterbox, Preprocess, Resize, Rounding};
