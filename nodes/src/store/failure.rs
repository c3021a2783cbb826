//! Why one request failed, before it is known whether it is sent again.

use std::error::Error;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};

use super::answer::element;
use super::error::{ErrorKind, StoreError};
use super::location::Location;
use super::redacted::redacted;
use super::watched::{Seen, seen};

/// A store's own words are cut after so many letters.
const MAX_LETTERS: usize = 300;

/// Why one request failed. Its text has no secrets in it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    what: String,
    help: Option<String>,
    pub(super) retry_after: Option<Duration>,
    /// Fewer tries than its kind has.
    pub(super) max_tries: Option<u32>,
    n_tries: u32,
    /// Whose permission it was that did not suffice.
    credentials: Option<String>,
}

impl Failure {
    pub(super) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Failure {
            kind,
            what: what.into(),
            help: None,
            retry_after: None,
            max_tries: None,
            n_tries: 1,
            credentials: None,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn tried(self, n_tries: u32) -> Self {
        Failure { n_tries, ..self }
    }

    /// Says whose permission did not suffice.
    pub(super) fn asked_with(self, credentials: Option<&str>) -> Self {
        match self.kind {
            ErrorKind::PermissionDenied => Failure { credentials: credentials.map(str::to_owned), ..self },
            _ => self,
        }
    }

    pub(super) fn timeout(limit: Duration) -> Self {
        Failure::new(ErrorKind::Timeout, format!("no answer within {:.1} s", limit.as_secs_f64()))
    }

    pub(super) fn changed() -> Self {
        Failure::new(ErrorKind::Changed, "it was replaced meanwhile")
    }

    pub(super) fn too_large(n_bytes: u64, max_bytes: u64) -> Self {
        Failure::new(ErrorKind::TooLarge, format!("it has {n_bytes} bytes, more than the limit {max_bytes}"))
    }

    /// What an error of the client for stores means, with what was seen on the wire.
    pub(super) fn of_store(error: &object_store::Error) -> Self {
        let seen = seen();
        let transport = chain(error).find_map(|error| error.downcast_ref::<HttpError>());
        if seen.is_credentials && seen.status.is_none_or(|status| status >= 300) {
            return Failure::new(ErrorKind::Config, "no credentials were found").help(
                "set the cloud's environment variables (such as `AWS_ACCESS_KEY_ID`), or `anonymous: true` under \
                 `store:` for a public bucket",
            );
        }
        let text = error.to_string();
        let said = Said::of(&text);
        match (seen.status, transport) {
            (Some(status), _) if status >= 300 => Failure::of_status(status, said, seen),
            (_, Some(transport)) if transport.kind() == HttpErrorKind::Timeout => {
                Failure::new(ErrorKind::Timeout, "no answer in time")
            }
            (_, Some(transport)) => Failure::of_transport(transport),
            // Some calls are answered with 200 and an error after it.
            (Some(_), None) if matches!(said.code, Some("InternalError" | "SlowDown" | "ServiceUnavailable")) => {
                Failure::of_status(503, said, seen)
            }
            _ => {
                let kind = match error {
                    object_store::Error::NotFound { .. } => ErrorKind::NotFound,
                    object_store::Error::InvalidPath { .. } => ErrorKind::Unsupported,
                    _ => ErrorKind::Other,
                };
                Failure::new(kind, shortened(&redacted(&text)))
            }
        }
    }

    /// What the status of an answer means.
    pub(super) fn of_status(status: u16, said: Said<'_>, seen: Seen) -> Self {
        let code = said.code.unwrap_or_default();
        let kind = match (status, code) {
            (400, "RequestTimeout") | (408, _) => ErrorKind::Timeout,
            (400, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") | (401 | 403, _) => {
                ErrorKind::PermissionDenied
            }
            (400, "AuthorizationHeaderMalformed") | (301 | 302 | 307 | 308, _) => ErrorKind::Config,
            (404 | 410, _) => ErrorKind::NotFound,
            (412, _) => ErrorKind::Changed,
            (429, _) | (503, "SlowDown") => ErrorKind::Throttled,
            (501 | 505, _) => ErrorKind::Unsupported,
            (500.., _) => ErrorKind::Unavailable,
            _ => ErrorKind::Other,
        };
        let mut what = match code {
            "NoSuchBucket" => "the bucket does not exist".to_owned(),
            // Nothing else is asked for under a condition.
            _ if status == 412 => "it was replaced meanwhile".to_owned(),
            _ => format!("the store answered {status}{}", named(status)),
        };
        for part in [said.code, said.message].into_iter().flatten() {
            what = format!("{what}: {}", shortened(&redacted(part)));
        }
        let failure = Failure { retry_after: seen.retry_after, ..Failure::new(kind, what) };
        match (kind, seen.region.as_deref().or(said.region)) {
            (ErrorKind::Config, Some(region)) => {
                let region = shortened(&redacted(region));
                failure.help(format!("the bucket is in the region `{region}`: write `region: {region}` under `store:`"))
            }
            (ErrorKind::Config, None) => {
                failure.help("the bucket may be in another region: set `region:` under `store:`")
            }
            (ErrorKind::PermissionDenied, _) => {
                failure.help("check the credentials in the environment, or set `anonymous: true` for a public bucket")
            }
            _ => failure,
        }
    }

    /// A connection that could not be made, or broke.
    pub(super) fn of_transport(error: &(dyn Error + 'static)) -> Self {
        let last = chain(error).last().map(ToString::to_string).unwrap_or_default();
        let what = last.split(" (os error").next().unwrap_or_default();
        let mut letters = what.chars();
        let what: String =
            letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect());
        let what = shortened(&redacted(&what));
        if what.contains("certificate") {
            return Failure::new(ErrorKind::Config, what)
                .help("install the certificates of the authority that signed it");
        }
        let failure = Failure::new(ErrorKind::Network, what);
        match failure.what.contains("lookup") || failure.what.contains("not known") {
            // A name that does not exist will not soon.
            true => Failure { max_tries: Some(3), ..failure },
            false => failure,
        }
    }

    /// The error, when no more tries are left, of doing `what` (`read`, `list`) at `location`.
    pub(super) fn at(self, what: &str, location: &Location) -> StoreError {
        let message = match self.kind {
            ErrorKind::NotFound if !self.what.contains("bucket") => format!("`{location}` does not exist"),
            ErrorKind::PermissionDenied => format!("no permission to {what} `{location}`: {}", self.what),
            _ => format!("cannot {what} `{location}`: {}", self.what),
        };
        let tried = (self.n_tries > 1).then(|| format!("tried {} times", self.n_tries));
        let details: Vec<_> = self.credentials.into_iter().chain(tried).collect();
        let message = match details.is_empty() {
            true => message,
            false => format!("{message} ({})", details.join(", ")),
        };
        let error = StoreError::new(self.kind, message);
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }

    /// What happened, for the log.
    pub(super) fn what(&self) -> &str {
        &self.what
    }
}

/// What the body of an error answer says: no more of it is ever shown, as it may repeat the request with its signature.
#[derive(Clone, Copy, Default)]
pub(super) struct Said<'a> {
    code: Option<&'a str>,
    message: Option<&'a str>,
    region: Option<&'a str>,
}

impl<'a> Said<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let element = |name: &str| element(text, name).map(str::trim);
        let message = element("Message").map(|message| message.lines().next().unwrap_or_default());
        Said { code: element("Code"), message: message.filter(|text| !text.is_empty()), region: element("Region") }
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn named(status: u16) -> &'static str {
    match status {
        400 => " (bad request)",
        401 => " (unauthorized)",
        403 => " (forbidden)",
        404 => " (not found)",
        416 => " (no such range)",
        429 => " (too many requests)",
        500 => " (internal error)",
        502 => " (bad gateway)",
        503 => " (slow down)",
        504 => " (gateway timeout)",
        _ => "",
    }
}

fn shortened(text: &str) -> String {
    let shown: String =
        text.chars().take(MAX_LETTERS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, kind: ErrorKind, part: &str) {
        let location = Location::parse("s3://b/k", std::path::Path::new("/")).unwrap();
        let error = Failure::of_status(status, Said::of(body), Seen::default()).at("read", &location);
        assert_eq!(error.kind(), kind, "{status} {body}");
        assert!(error.to_string().contains(part) && error.to_string().contains("`s3://b"), "{error}");
    }

    #[test]
    fn a_status_and_its_code_say_what_kind_of_failure_it_is() {
        let xml = |code: &str| format!("x: <?xml?><Error><Code>{code}</Code><Message>Some words.</Message></Error>");
        check(404, &xml("NoSuchKey"), ErrorKind::NotFound, "does not exist");
        check(404, &xml("NoSuchBucket"), ErrorKind::NotFound, "the bucket does not exist");
        check(403, &xml("AccessDenied"), ErrorKind::PermissionDenied, "403 (forbidden): AccessDenied: Some words.");
        check(400, &xml("ExpiredToken"), ErrorKind::PermissionDenied, "ExpiredToken");
        check(400, &xml("RequestTimeout"), ErrorKind::Timeout, "RequestTimeout");
        check(412, &xml("PreconditionFailed"), ErrorKind::Changed, "it was replaced meanwhile");
        check(429, "", ErrorKind::Throttled, "429");
        check(503, &xml("SlowDown"), ErrorKind::Throttled, "SlowDown");
        check(503, "<html>", ErrorKind::Unavailable, "503");
        check(500, &xml("InternalError"), ErrorKind::Unavailable, "InternalError");
        check(301, "", ErrorKind::Config, "301");
        check(418, "", ErrorKind::Other, "418");
    }

    #[test]
    fn of_an_answers_body_only_code_and_message_are_shown() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>No match, token=S3CRET</Message>\
            <AWSAccessKeyId>S3CRET</AWSAccessKeyId><StringToSign>S3CRET</StringToSign></Error>";
        let location = Location::parse("s3://b/k", std::path::Path::new("/")).unwrap();
        let error = Failure::of_status(403, Said::of(body), Seen::default()).at("read", &location);
        assert!(!error.to_string().contains("S3CRET"), "{error}");
        assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
    }

    #[test]
    fn a_bucket_elsewhere_is_an_error_that_says_where() {
        let seen = Seen { region: Some("eu-west-1".to_owned()), ..Seen::default() };
        let location = Location::parse("s3://b/k", std::path::Path::new("/")).unwrap();
        let error = Failure::of_status(301, Said::default(), seen).at("read", &location);
        assert!(error.what_to_do().is_some_and(|help| help.contains("`region: eu-west-1`")), "{error:?}");
    }
}
