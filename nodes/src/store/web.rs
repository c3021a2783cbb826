//! Web servers: one URL, one GET.
//!
//! Nothing is asked of a server but GET, as URLs are often signed for that alone. Ranges are asked for and not relied on.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::stream::try_unfold;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MATCH, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, redirect};
use url::Url;

use super::body::Answer;
use super::error::ErrorKind;
use super::failure::{Failure, Said};
use super::meta::Head;
use super::options::StoreOptions;
use super::retry_after::{retry_after, seconds_of};
use super::tls::Authorities;
use super::watched::Seen;

const MAX_REDIRECTS: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for one host, and those that it redirects to.
pub(super) fn client(options: &StoreOptions) -> Result<Client, reqwest::Error> {
    let redirects = redirect::Policy::custom(|attempt| {
        let was_secure = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        // A library's log has addresses with whatever user info a server puts into them.
        let has_user = !attempt.url().username().is_empty() || attempt.url().password().is_some();
        if attempt.previous().len() > MAX_REDIRECTS || was_secure && attempt.url().scheme() != "https" || has_user {
            attempt.stop()
        } else {
            attempt.follow()
        }
    });
    let mut builder = Client::builder();
    if Authorities::of_system() == Authorities::None {
        builder = builder.tls_certs_only([]);
    }
    builder
        .user_agent(concat!("flowgpu/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(options.timeout.get().min(CONNECT_TIMEOUT))
        .pool_max_idle_per_host(options.max_in_flight.get() as usize)
        .redirect(redirects)
        .build()
}

/// Asks for bytes, of the version `known` if there is one. Whether the server knows ranges is seen by where the answer
/// starts.
pub(super) async fn get(
    client: &Client,
    url: &Url,
    range: Option<Range<u64>>,
    known: Option<&Head>,
) -> Result<Answer, Failure> {
    let response = send(client, url, range, known).await?;
    match response.status().as_u16() {
        200 | 206 => {}
        status => return Err(failure_of(status, response.headers())),
    }
    let (head, range) = head_of(&response)?;
    let body = try_unfold(response, |mut response| async move {
        let piece = response.chunk().await.map_err(of_reqwest)?;
        Ok(piece.map(|piece| (piece, response)))
    });
    Ok(Answer { head, start: range.map_or(0, |range| range.start), body: body.boxed() })
}

/// Asks what is known of the object, and whether the server knows ranges.
pub(super) async fn head(client: &Client, url: &Url) -> Result<(Head, Ranges), Failure> {
    let response = send(client, url, Some(0..1), None).await?;
    match response.status().as_u16() {
        200 => Ok((head_of(&response)?.0, Ranges::Unknown)),
        206 => Ok((head_of(&response)?.0, Ranges::Known)),
        // There is no first byte in an empty object.
        416 if header(response.headers(), &CONTENT_RANGE) == Some("bytes */0") => {
            Ok((Head { size: Some(0), ..version_of(response.headers()) }, Ranges::Known))
        }
        status => Err(failure_of(status, response.headers())),
    }
}

/// Whether a server answers with the part that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranges {
    Known,
    Unknown,
}

async fn send(
    client: &Client,
    url: &Url,
    range: Option<Range<u64>>,
    known: Option<&Head>,
) -> Result<Response, Failure> {
    // A compressed answer has another length and other ranges.
    let mut request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
    if let Some(range) = range {
        request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
    }
    // A weak tag never matches.
    if let Some(etag) = known.and_then(|known| known.etag.as_ref()).filter(|etag| !etag.starts_with("W/")) {
        request = request.header(IF_MATCH, etag);
    }
    request.send().await.map_err(of_reqwest)
}

fn failure_of(status: u16, headers: &HeaderMap) -> Failure {
    if (300..400).contains(&status) {
        return Failure::new(
            ErrorKind::Other,
            "it redirects too often, from `https` to `http`, or to a URL with a user",
        );
    }
    let retry_after = header(headers, &RETRY_AFTER).and_then(|text| retry_after(text, SystemTime::now()));
    Failure::of_status(status, Said::default(), Seen { retry_after, ..Seen::default() })
}

/// What an answer says of the whole object, and which part of it the body is.
fn head_of(response: &Response) -> Result<(Head, Option<Range<u64>>), Failure> {
    let version = version_of(response.headers());
    if response.status().as_u16() != 206 {
        return Ok((Head { size: response.content_length(), ..version }, None));
    }
    let bad = || Failure::new(ErrorKind::Other, "the server sent a part without saying which");
    let text = header(response.headers(), &CONTENT_RANGE).ok_or_else(bad)?;
    let (range, size) = content_range(text).ok_or_else(bad)?;
    Ok((Head { size, ..version }, Some(range)))
}

fn version_of(headers: &HeaderMap) -> Head {
    let modified = header(headers, &LAST_MODIFIED).and_then(seconds_of);
    Head {
        size: None,
        etag: header(headers, &ETAG).map(str::to_owned),
        modified: modified.and_then(|seconds| Some((i64::try_from(seconds).ok()?, 0))),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The part and the size of the whole in `bytes 0-99/1000` or `bytes 0-99/*`.
fn content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = first.trim().parse().ok()?..last.trim().parse::<u64>().ok()?.checked_add(1)?;
    let size = match size.trim() {
        "*" => None,
        size => Some(size.parse::<u64>().ok()?),
    };
    (range.start < range.end && size.is_none_or(|size| range.end <= size)).then_some((range, size))
}

pub(super) fn of_reqwest(error: reqwest::Error) -> Failure {
    if error.is_timeout() {
        return Failure::new(ErrorKind::Timeout, "no answer in time");
    }
    // The URL may have secrets in it; the place is named elsewhere.
    Failure::of_transport(&error.without_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_a_part_and_perhaps_a_size() {
        for (text, expected) in [
            ("bytes 0-99/1000", Some((0..100, Some(1000)))),
            ("bytes 5-5/*", Some((5..6, None))),
            ("bytes 0-99/50", None),
            ("bytes 9-3/50", None),
            ("bytes 0-18446744073709551615/*", None),
            ("bytes */50", None),
            ("0-99/1000", None),
            ("", None),
        ] {
            assert_eq!(content_range(text), expected, "{text}");
        }
    }
}
