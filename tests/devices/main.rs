//! `flowgpu devices` and `flowgpu plan` as their users meet them: the real binaries, with a stand-in for the driver's
//! library that tells of GPUs which a file describes.

mod gauge;
mod inventory;
mod machine;
mod plans;
mod visibility;
