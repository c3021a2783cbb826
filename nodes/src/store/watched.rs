//! What servers say beyond what the client for stores passes on: the status, `Retry-After`, the bucket's region.
//!
//! [`Watched`] stands between the clients and the network and notes what comes back for whoever runs under [`seeing`].

use std::cell::RefCell;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

pub(super) use super::answer::Unnamed;
use super::answer::{bounded_error, is_listing, readable_page};
use super::retry_after::retry_after;

tokio::task_local! {
    static SEEN: RefCell<Seen>;
}

/// What the last answer said.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    pub(super) region: Option<String>,
    /// It was not the store that was asked, but the machine's own source of credentials.
    pub(super) is_credentials: bool,
    /// What was in a page of a listing and cannot be named.
    pub(super) unnamed: Vec<Unnamed>,
}

/// Runs `request` so that [`seen`] tells what its answers said.
pub(super) async fn seeing<T>(request: impl Future<Output = T>) -> T {
    SEEN.scope(RefCell::default(), request).await
}

/// What the last answer to the request under way said.
pub(super) fn seen() -> Seen {
    SEEN.try_with(|seen| seen.borrow().clone()).unwrap_or_default()
}

/// What could not be named in the page that came last.
pub(super) fn unnamed() -> Vec<Unnamed> {
    SEEN.try_with(|seen| std::mem::take(&mut seen.borrow_mut().unnamed)).unwrap_or_default()
}

fn note(seen: Seen) {
    // Outside of `seeing` nobody asks.
    let _ = SEEN.try_with(|last| *last.borrow_mut() = seen);
}

/// Connects the clients for stores through [`Watched`].
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Watched(client)))
    }
}

#[derive(Debug)]
struct Watched(HttpClient);

/// Where clouds' machines ask for credentials.
const CREDENTIAL_HOSTS: [&str; 5] =
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "metadata", "metadata.google.internal"];

impl Watched {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().host().unwrap_or_default();
        let is_credentials = CREDENTIAL_HOSTS.contains(&host) || host.starts_with("sts.");
        note(Seen { is_credentials, ..Seen::default() });
        let is_listing = is_listing(&request);
        let response = self.0.execute(request).await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        note(Seen {
            status: Some(response.status().as_u16()),
            retry_after: header("retry-after").and_then(|text| retry_after(text, SystemTime::now())),
            region: header("x-amz-bucket-region").map(str::to_owned),
            is_credentials,
            unnamed: Vec::new(),
        });
        match (response.status().is_success(), is_listing) {
            (true, true) => {
                let (response, unnamed) = readable_page(response).await?;
                // Outside of `seeing` nobody asks.
                let _ = SEEN.try_with(|seen| seen.borrow_mut().unnamed = unnamed);
                Ok(response)
            }
            (true, false) => Ok(response),
            (false, _) => bounded_error(response).await,
        }
    }
}

/// As the trait is without the macro that it is written with.
impl HttpService for Watched {
    fn call<'service, 'call>(
        &'service self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'service: 'call,
        Self: 'call,
    {
        Box::pin(self.send(request))
    }
}
