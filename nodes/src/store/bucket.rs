//! One bucket or web host, with the client and the limiter that all its callers share.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::body::{Answer, time_for};
use super::cloud;
use super::cloud_client::{self, Client, CloudClient};
use super::environment::Environment;
use super::error::{ErrorKind, StoreError};
use super::failure::Failure;
use super::limiter::Limiter;
use super::location::{Location, Place};
use super::meta::Head;
use super::options::StoreOptions;
use super::redacted::redacted;
use super::s3_uploads::S3Uploads;
use super::web::{self, Ranges};

pub(super) struct Bucket {
    /// How the log calls it.
    pub(super) name: String,
    backend: Backend,
    pub(super) limiter: Arc<Limiter>,
    pub(super) timeout: Duration,
    pub(super) attempts: u32,
}

enum Backend {
    Cloud(CloudClient),
    Web(reqwest::Client),
}

impl Bucket {
    /// What all places in the same bucket or on the same host have in common; none for local paths.
    pub(super) fn name_of(location: &Location) -> Option<String> {
        match location.place() {
            Place::Local(_) => None,
            Place::Object(container, _) => Some(container.to_string()),
            Place::Web(url) => Some(url.origin().ascii_serialization()),
        }
    }

    /// The bucket or host that `location` is in.
    ///
    /// # Errors
    /// If options or environment make no sense.
    pub(super) fn of(
        location: &Location,
        options: &StoreOptions,
        environment: &Environment,
    ) -> Result<Self, StoreError> {
        options.check()?;
        let backend = match location.place() {
            Place::Local(_) => return Err(StoreError::new(ErrorKind::Unsupported, format!("`{location}` is local"))),
            Place::Object(container, _) => Backend::Cloud(cloud_client::client(container, options, environment)?),
            Place::Web(_) => Backend::Web(web::client(options).map_err(|error| {
                let message = format!("cannot reach web servers: {}", redacted(&error.without_url().to_string()));
                StoreError::new(ErrorKind::Config, message)
            })?),
        };
        Ok(Bucket {
            name: Bucket::name_of(location).unwrap_or_default(),
            backend,
            limiter: Arc::new(Limiter::new(options.max_in_flight.get())),
            timeout: options.timeout.get(),
            attempts: options.attempts.get(),
        })
    }

    /// The client of a cloud.
    ///
    /// # Errors
    /// If it is a web server, which can do no more than answer GET.
    pub(super) fn cloud(&self, what: &str, location: &Location) -> Result<Arc<dyn Client>, StoreError> {
        match &self.backend {
            Backend::Cloud(cloud) => Ok(cloud.client.clone()),
            Backend::Web(_) => {
                let message = format!("cannot {what} `{location}`: a web server can only be read from");
                Err(StoreError::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Who asks, in words; nothing for web servers.
    pub(super) fn credentials(&self) -> Option<&str> {
        match &self.backend {
            Backend::Cloud(cloud) => Some(&cloud.credentials),
            Backend::Web(_) => None,
        }
    }

    /// What can say which uploads are under way, where that is of use.
    pub(super) fn uploads(&self) -> Option<&S3Uploads> {
        match &self.backend {
            Backend::Cloud(cloud) => cloud.uploads.as_ref(),
            Backend::Web(_) => None,
        }
    }

    /// Asks what is known of an object.
    pub(super) async fn head(&self, location: &Location) -> Result<(Head, Ranges), Failure> {
        match (&self.backend, location.place()) {
            (Backend::Cloud(cloud), Place::Object(_, key)) => {
                let head = self.timely(0, cloud::head(&*cloud.client, key)).await?;
                Ok((head, Ranges::Known))
            }
            (Backend::Web(client), Place::Web(url)) => self.timely(0, web::head(client, url)).await,
            _ => Err(elsewhere()),
        }
    }

    /// Asks for bytes, of the version `known` if there is one.
    pub(super) async fn get(
        &self,
        location: &Location,
        range: Option<Range<u64>>,
        known: Option<&Head>,
    ) -> Result<Answer, Failure> {
        match (&self.backend, location.place()) {
            (Backend::Cloud(cloud), Place::Object(_, key)) => {
                self.timely(0, cloud::get(&*cloud.client, key, range, known)).await
            }
            (Backend::Web(client), Place::Web(url)) => self.timely(0, web::get(client, url, range, known)).await,
            _ => Err(elsewhere()),
        }
    }

    /// Ends what takes longer than a request with so many bytes may.
    pub(super) async fn timely<T>(
        &self,
        n_bytes: u64,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = time_for(n_bytes, self.timeout);
        tokio::time::timeout(limit, request).await.unwrap_or_else(|_| Err(Failure::timeout(limit)))
    }
}

fn elsewhere() -> Failure {
    Failure::new(ErrorKind::Other, "it is in another store")
}
