//! Reading, listing and writing where data are: local paths, `s3://`, `gs://`, `az://` and `http(s)://` alike.
//!
//! For nodes, which are blocking code on threads: everything here blocks, and no request needs a thread beyond its
//! caller's. A [`Location`] is a place, [`Stores`] does things there. What failed is a [`StoreError`] of a kind, after
//! all tries: a request that may succeed later is sent again here and nowhere else, under one adaptive limit for each
//! endpoint and bucket, so that those who are told to slow down do so together.
//!
//! Promises: memory is bounded by what was asked for; bytes from different versions of an object are never mixed;
//! secrets (user info, query strings, keys, tokens) stand in no error, log or `Display`.
//!
//! Must not know: what the bytes mean, rows, nodes. The manual is docs/stores.md.

mod answer;
mod aws_profile;
mod body;
mod bucket;
mod cloud;
mod cloud_client;
mod environment;
mod error;
mod failure;
mod fetch;
mod leftover;
mod limiter;
mod local;
mod location;
mod meta;
mod options;
mod pages;
mod reader;
mod redacted;
mod retry_after;
mod s3_uploads;
mod stores;
mod tls;
mod tries;
mod upload;
mod watched;
mod web;
mod wish;

pub use environment::Environment;
pub use error::{ErrorKind, StoreError};
pub use limiter::Standing;
pub use location::Location;
pub use meta::Meta;
pub use options::StoreOptions;
pub use pages::{Page, Pages};
pub use reader::Reader;
pub use redacted::redacted;
pub use stores::Stores;
