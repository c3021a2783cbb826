//! Where rows come from.

pub mod synthetic_image;
