//! How stores are reached: what users write under `store:`.

use std::num::NonZeroU32;

use engine::config::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::error::{ErrorKind, StoreError};

/// How object stores and web servers are reached. Credentials do not belong here: they come from the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreOptions {
    /// The server, for a store that is not the cloud's own (MinIO, R2, Ceph): `https://host:port`. Plain `http://` is
    /// allowed. Default: the cloud's own.
    pub endpoint: Option<String>,
    /// The bucket's region. Default: from `AWS_REGION` or `AWS_DEFAULT_REGION`, then from `~/.aws/config`, then
    /// us-east-1.
    pub region: Option<String>,
    /// Sends no credentials: for public buckets. Default false.
    pub anonymous: bool,
    /// The most requests in flight to one bucket or host. Fewer are sent while it asks to slow down. Default 256.
    pub max_in_flight: NonZeroU32,
    /// The longest wait for an answer, and for each next piece of it. What comes or goes slower than 64 KiB a second on
    /// the whole counts as no answer too. Default 30s.
    pub timeout: Duration,
    /// How often a request is sent that the store refuses for now (429, 503, other 5xx), that gets no answer, or whose
    /// connection breaks. Default 8.
    pub attempts: NonZeroU32,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            endpoint: None,
            region: None,
            anonymous: false,
            max_in_flight: const { NonZeroU32::new(256).expect("it is more than zero") },
            timeout: std::time::Duration::from_secs(30).into(),
            attempts: const { NonZeroU32::new(8).expect("it is more than zero") },
        }
    }
}

impl StoreOptions {
    /// What is wrong with them that their schema does not say.
    ///
    /// # Errors
    /// Of kind `Config`.
    pub fn check(&self) -> Result<(), StoreError> {
        let Some(endpoint) = &self.endpoint else { return Ok(()) };
        let bad = |what: &str| {
            let message = format!("the endpoint {what}");
            StoreError::new(ErrorKind::Config, message).help("write it as `https://host:port`")
        };
        let url = Url::parse(endpoint).map_err(|error| bad(&format!("is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("is no `http` or `https` URL"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(bad("has a user, a password or a query string; credentials come from the environment"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_documented_defaults() {
        let options: StoreOptions = serde_yaml::from_str("{}").unwrap();
        assert_eq!(options, StoreOptions::default());
        let options: StoreOptions = serde_yaml::from_str("{anonymous: true, timeout: 5s, attempts: 2}").unwrap();
        assert_eq!((options.anonymous, options.timeout.get().as_secs(), options.attempts.get()), (true, 5, 2));
        assert!(serde_yaml::from_str::<StoreOptions>("{attempts: 0}").is_err());
        assert!(serde_yaml::from_str::<StoreOptions>("{secret_key: x}").is_err());
    }

    #[test]
    fn an_endpoint_is_a_server_and_nothing_else() {
        let check = |endpoint: &str| StoreOptions { endpoint: Some(endpoint.to_owned()), ..Default::default() }.check();
        for good in ["http://127.0.0.1:9000", "https://s3.example.com/", "https://host/prefix"] {
            check(good).unwrap();
        }
        for bad in ["host:9000", "ftp://host", "https://key:S3CRET@host", "https://host/?sig=S3CRET"] {
            let error = check(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(!error.to_string().contains("S3CRET"), "{error}");
        }
    }
}
