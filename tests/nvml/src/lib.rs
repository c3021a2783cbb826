//! A stand-in for the NVIDIA management library: a shared library with the symbols that flowgpu asks for, which tells of
//! the GPUs that a file describes.
//!
//! `FLOWGPU_STANDIN` names the file, which is read at `nvmlInit`; see [`description`] for what stands in it. A symbol that
//! is not here is an error of that call, as with an old driver.

pub mod description;
mod machine;
mod symbols;
