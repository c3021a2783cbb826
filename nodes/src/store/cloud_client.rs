//! The clients of the clouds' stores, made from options and environment.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::aws_profile::Profile;
use super::environment::Environment;
use super::error::{ErrorKind, StoreError};
use super::location::{Cloud, Container};
use super::options::StoreOptions;
use super::redacted::redacted;
use super::s3_uploads::{S3Uploads, Signing};
use super::tls::Authorities;
use super::watched::Connector;
use super::web;

/// No connection takes longer to make.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the client of each cloud can do.
pub(super) trait Client: ObjectStore + MultipartStore + PaginatedListStore {}

impl<T: ObjectStore + MultipartStore + PaginatedListStore> Client for T {}

/// The client of one bucket.
pub(super) struct CloudClient {
    pub(super) client: Arc<dyn Client>,
    /// What S3 says of uploads under way; the others end those of themselves that are not gone on with.
    pub(super) uploads: Option<S3Uploads>,
    /// Where the credentials come from, in words.
    pub(super) credentials: String,
}

/// The client for one bucket.
///
/// # Errors
/// If options or environment make no sense.
pub(super) fn client(
    container: &Container,
    options: &StoreOptions,
    environment: &Environment,
) -> Result<CloudClient, StoreError> {
    match container.cloud {
        Cloud::S3 => s3(container, options, environment),
        Cloud::Google => google(container, options, environment),
        Cloud::Azure => azure(container, options, environment),
    }
}

fn s3(container: &Container, options: &StoreOptions, environment: &Environment) -> Result<CloudClient, StoreError> {
    let mut builder = AmazonS3Builder::new().with_client_options(client_options(options));
    for (name, value) in environment.with_prefix("AWS_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    let has = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    let others = [
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::SecretAccessKey,
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ];
    let has_credentials = others.into_iter().any(|key| has(&builder, key));
    let mut credentials = asked_with(
        options,
        environment,
        &[
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ],
    );
    let profile = if options.anonymous { Profile::default() } else { Profile::read(environment)? };
    if let (false, Some(key_id), Some(secret)) = (has_credentials, profile.access_key_id, profile.secret_access_key) {
        builder = builder.with_access_key_id(key_id).with_secret_access_key(secret);
        let name = environment.get("AWS_PROFILE").unwrap_or("default");
        credentials = format!("asked with the profile `{name}` in `~/.aws`");
        if let Some(token) = profile.session_token {
            builder = builder.with_token(token);
        }
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    } else if let (false, Some(region)) = (has(&builder, AmazonS3ConfigKey::Region), profile.region) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    let value = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
    let endpoint = value(&builder, AmazonS3ConfigKey::S3Endpoint).or(value(&builder, AmazonS3ConfigKey::Endpoint));
    if endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://")) {
        builder = builder.with_allow_http(true);
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let is_set = |key| value(&builder, key).is_some_and(|value| value == "true");
    let signing = match (is_set(AmazonS3ConfigKey::SkipSignature), is_set(AmazonS3ConfigKey::RequestPayer)) {
        (true, _) => Signing::Anonymous,
        (false, true) => Signing::Paying,
        (false, false) => Signing::Signed,
    };
    let region = value(&builder, AmazonS3ConfigKey::Region).unwrap_or_else(|| "us-east-1".to_owned());
    let url = match endpoint {
        Some(endpoint) if is_set(AmazonS3ConfigKey::VirtualHostedStyleRequest) => endpoint,
        Some(endpoint) => format!("{}/{}", endpoint.trim_end_matches('/'), container.name),
        None => format!("https://s3.{region}.amazonaws.com/{}", container.name),
    };
    let builder = builder.with_bucket_name(&*container.name).with_retry(no_retries()).with_http_connector(Connector);
    let client = Arc::new(builder.build().map_err(|error| bad(container, &error))?);
    let http = web::client(options).map_err(|error| bad(container, &error))?;
    let uploads = S3Uploads { client: client.clone(), http, url, region, signing };
    Ok(CloudClient { client, uploads: Some(uploads), credentials })
}

fn google(container: &Container, options: &StoreOptions, environment: &Environment) -> Result<CloudClient, StoreError> {
    let mut builder = GoogleCloudStorageBuilder::new().with_client_options(client_options(options));
    if let Some(path) = environment.get("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (name, value) in environment.with_prefix("GOOGLE_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_bucket_name(&*container.name).with_retry(no_retries()).with_http_connector(Connector);
    let variables =
        ["GOOGLE_SERVICE_ACCOUNT", "SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];
    let credentials = asked_with(options, environment, &variables);
    let client = Arc::new(builder.build().map_err(|error| bad(container, &error))?);
    Ok(CloudClient { client, uploads: None, credentials })
}

fn azure(container: &Container, options: &StoreOptions, environment: &Environment) -> Result<CloudClient, StoreError> {
    let mut builder = MicrosoftAzureBuilder::new().with_client_options(client_options(options));
    for (name, value) in environment.with_prefix("AZURE_") {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = environment.get("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    if let Some(account) = &container.account {
        let (name, host) = account.split_once('.').unwrap_or((account, ""));
        builder = builder.with_account(name).with_use_fabric_endpoint(host.ends_with("fabric.microsoft.com"));
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_container_name(&*container.name).with_retry(no_retries()).with_http_connector(Connector);
    let variables =
        ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"];
    let credentials = asked_with(options, environment, &variables);
    let client = Arc::new(builder.build().map_err(|error| bad(container, &error))?);
    Ok(CloudClient { client, uploads: None, credentials })
}

/// Says in words with which credentials a store is asked: those of the first of `variables` that is set.
fn asked_with(options: &StoreOptions, environment: &Environment, variables: &[&str]) -> String {
    if options.anonymous {
        return "asked without credentials".to_owned();
    }
    match variables.iter().find(|name| environment.get(name).is_some()) {
        Some(name) => format!("asked with the credentials in `{name}`"),
        None => "asked with the credentials of this machine".to_owned(),
    }
}

fn client_options(options: &StoreOptions) -> ClientOptions {
    let is_http = options.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    // How long an answer may take is for the callers to say: they know how many bytes it has.
    ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(options.timeout.get().min(CONNECT_TIMEOUT))
        .with_pool_max_idle_per_host(options.max_in_flight.get() as usize)
        .with_allow_http(is_http)
        .with_no_system_certificates(Authorities::of_system() == Authorities::None)
}

/// Requests are sent again by [`Tries`](super::tries::Tries) alone.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

fn bad(container: &Container, error: &dyn std::error::Error) -> StoreError {
    let message = format!("`{container}` cannot be reached as configured: {}", redacted(&error.to_string()));
    StoreError::new(ErrorKind::Config, message).help("see docs/stores.md for the environment variables of each cloud")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::store::location::{Location, Place};

    fn made(location: &str, options: &str, variables: &[(&str, &str)]) -> Result<String, StoreError> {
        let location = Location::parse(location, Path::new("/")).unwrap();
        let Place::Object(container, _) = location.place() else { panic!("{location}") };
        let options = serde_yaml::from_str(options).unwrap();
        client(container, &options, &Environment::of(variables.iter().copied()))
            .map(|made| format!("{:?}", made.client))
    }

    fn shows(location: &str, options: &str, variables: &[(&str, &str)], part: &str) {
        let client = made(location, options, variables).unwrap();
        assert!(client.contains(part), "no {part} in {client}");
    }

    #[test]
    fn s3_is_configured_by_options_before_the_environment() {
        let keys = [("AWS_ACCESS_KEY_ID", "AKIA1"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")];
        shows("s3://b/k", "{}", &keys, "https://s3.eu-west-1.amazonaws.com/b");
        shows("s3://b/k", "{}", &keys, "AKIA1");
        shows("s3://b/k", "region: us-west-2", &keys, "https://s3.us-west-2.amazonaws.com/b");
        shows("s3://b/k", "endpoint: 'http://127.0.0.1:9000/'", &keys, "http://127.0.0.1:9000/b");
        shows("s3://b/k", "{}", &[("AWS_ENDPOINT_URL", "http://h:1")], "http://h:1/b");
        shows("s3://b/k", "anonymous: true", &[], "skip_signature: true");
        assert_eq!(made("s3://b/k", "{}", &keys[..1]).unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn google_is_configured_by_options_and_environment() {
        shows("gs://b/k", "anonymous: true", &[], "skip_signature: true");
        shows("gs://b/k", "{anonymous: true, endpoint: 'http://127.0.0.1:4443/'}", &[], "http://127.0.0.1:4443");
        let error = made("gs://b/k", "{}", &[("GOOGLE_SERVICE_ACCOUNT", "/nowhere.json")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }

    #[test]
    fn azure_takes_the_account_from_the_location_or_the_environment() {
        let variables = [("AZURE_STORAGE_ACCOUNT_NAME", "acc"), ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")];
        shows("az://c/k", "{}", &variables, "acc.blob.core.windows.net");
        shows("abfss://c@other.dfs.core.windows.net/k", "{}", &variables, "other.blob.core.windows.net");
        shows("az://c@other/k", "anonymous: true", &[], "other.blob.core.windows.net");
        let error = made("az://c/k", "{}", &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("`az://c`"), "{error}");
    }
}
