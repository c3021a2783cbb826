//! Listing, page by page.

use std::sync::Arc;

use object_store::list::{PaginatedListOptions, PaginatedListResult};

use super::bucket::Bucket;
use super::cloud::head_of;
use super::cloud_client::Client;
use super::error::StoreError;
use super::failure::Failure;
use super::local::Walk;
use super::location::{Container, Location};
use super::meta::Meta;
use super::stores::Stores;
use super::tries::Tries;
use super::watched::{Unnamed, seeing, unnamed};
use super::wish::Wish;

/// Files of a page of a local listing; the clouds' pages have as many.
const PAGE_LEN: usize = 1000;

/// Objects in the order of their keys. Never empty. Keys that cannot be named are among them: reading such an object is an
/// error of kind `Unsupported`.
pub type Page = Vec<(Location, Meta)>;

/// The pages of a listing. Each is asked for when it is wanted and not before. After an error there are no more.
pub struct Pages {
    prefix: Location,
    listing: Listing,
}

enum Listing {
    Local(Walk),
    Cloud { stores: Stores, bucket: Arc<Bucket>, client: Arc<dyn Client>, container: Container, next: Next },
    Ended,
}

/// Where the next page begins.
enum Next {
    After(Option<String>),
    Token(String),
}

impl Pages {
    pub(super) fn local(prefix: Location, walk: Walk) -> Self {
        Pages { prefix, listing: Listing::Local(walk) }
    }

    pub(super) fn cloud(
        stores: Stores,
        prefix: Location,
        bucket: Arc<Bucket>,
        client: Arc<dyn Client>,
        container: Container,
        after: Option<String>,
    ) -> Self {
        Pages { prefix, listing: Listing::Cloud { stores, bucket, client, container, next: Next::After(after) } }
    }

    fn next_page(&mut self) -> Result<Option<Page>, StoreError> {
        loop {
            let page = match &mut self.listing {
                Listing::Ended => return Ok(None),
                Listing::Local(walk) => {
                    let page = walk.next_page(PAGE_LEN, &self.prefix)?;
                    if page.len() < PAGE_LEN {
                        self.listing = Listing::Ended;
                    }
                    page
                }
                Listing::Cloud { stores, bucket, client, container, next } => {
                    let request = list(bucket.clone(), client.clone(), self.prefix.key().into_owned(), next);
                    let result = stores.block_on_until(Wish::Drain, request)?;
                    let (result, unnamed) = result.map_err(|failure| failure.at("list", &self.prefix))?;
                    let objects = result.result.objects.into_iter().map(|object| {
                        let size = object.size;
                        let meta = head_of(&object).with_size(size);
                        (Location::object(container.clone(), object.location.into()), meta)
                    });
                    let mut page: Page = objects.collect();
                    page.extend(unnamed.into_iter().map(|Unnamed { key, size }| {
                        let meta = Meta { size, etag: None, modified: None };
                        (Location::object(container.clone(), key), meta)
                    }));
                    page.sort_by(|(one, _), (other, _)| one.key().as_bytes().cmp(other.key().as_bytes()));
                    match result.page_token {
                        Some(token) => *next = Next::Token(token),
                        None => self.listing = Listing::Ended,
                    }
                    page
                }
            };
            if !page.is_empty() {
                return Ok(Some(page));
            }
        }
    }
}

async fn list(
    bucket: Arc<Bucket>,
    client: Arc<dyn Client>,
    prefix: String,
    next: &Next,
) -> Result<(PaginatedListResult, Vec<Unnamed>), Failure> {
    let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
    let mut tries = Tries::new(&bucket);
    loop {
        let permit = tries.permit().await;
        let (offset, page_token) = match next {
            Next::After(after) => (after.clone(), None),
            Next::Token(token) => (None, Some(token.clone())),
        };
        let options = PaginatedListOptions { offset, page_token, ..PaginatedListOptions::default() };
        let request = async {
            let page = client.list_paginated(prefix.as_deref(), options).await;
            page.map(|page| (page, unnamed())).map_err(|error| Failure::of_store(&error))
        };
        let result = seeing(bucket.timely(0, request)).await;
        if let Some(ended) = tries.end(permit, result).await {
            return ended;
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = self.next_page();
        if page.is_err() {
            self.listing = Listing::Ended;
        }
        page.transpose()
    }
}
