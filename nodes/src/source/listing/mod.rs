//! Which files a source reads: paths, globs and lists in braces, of local files and of objects in stores, as items in a
//! fixed order.
//!
//! Promises: items come in the order written, each file once; a bucket is listed page by page, and the items of a page are
//! given before the next one is asked for; what is secret in a URL is in no item.

mod braces;
mod bucket_walk;
mod listed;
mod locators;
mod pattern;
mod patterns;
mod stamps;

pub(super) use listed::Listed;
pub(super) use locators::{Locators, has_secrets, secret_line, unreadable};
pub(super) use pattern::{bucket_key, tidy};
pub(super) use patterns::{Braces, Patterns, spec_error};
