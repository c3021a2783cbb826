//! Which uploads in parts are under way for a key in an S3 bucket: the client for stores cannot say it.
//!
//! It is needed for the moment between asking for an upload and knowing its name: who is killed then leaves one that no
//! record names.

use std::sync::Arc;

use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Client;

use super::answer::element;
use super::error::ErrorKind;
use super::failure::{Failure, Said};
use super::redacted::redacted;
use super::watched::Seen;
use super::web::of_reqwest;

/// What a query string need not encode.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An answer with 1,000 uploads is smaller by far.
const MAX_BYTES: usize = 64 << 20;

/// Asks a bucket about uploads.
pub(super) struct S3Uploads {
    pub(super) client: Arc<AmazonS3>,
    pub(super) http: Client,
    /// Where the bucket is.
    pub(super) url: String,
    pub(super) region: String,
    pub(super) signing: Signing,
}

/// How requests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signing {
    Anonymous,
    Signed,
    /// Signed, and the one who asks pays.
    Paying,
}

impl S3Uploads {
    /// The names of the uploads that are under way for exactly this key.
    pub(super) async fn of_key(&self, key: &str) -> Result<Vec<String>, Failure> {
        let other = |what: &dyn std::fmt::Display| Failure::new(ErrorKind::Other, redacted(&what.to_string()));
        let url = format!("{}?prefix={}&uploads=", self.url, utf8_percent_encode(key, QUERY));
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.parse().map_err(|_| other(&"the bucket's address is no URL"))?;
        if self.signing != Signing::Anonymous {
            let credential =
                self.client.credentials().get_credential().await.map_err(|error| Failure::of_store(&error))?;
            let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
            let authorizer = authorizer.with_request_payer(self.signing == Signing::Paying);
            authorizer.try_authorize(&mut request, None).map_err(|error| other(&error))?;
        }
        let mut response = self.http.get(&url).headers(request.headers().clone()).send().await.map_err(of_reqwest)?;
        let status = response.status().as_u16();
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(of_reqwest)? {
            if text.len() + piece.len() > MAX_BYTES {
                return Err(other(&"the list of uploads is too long"));
            }
            text.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&text);
        if status != 200 {
            return Err(Failure::of_status(status, Said::of(&text), Seen::default()));
        }
        Ok(uploads_of(&text, key))
    }
}

fn uploads_of(text: &str, key: &str) -> Vec<String> {
    let uploads = text.split("<Upload>").skip(1);
    let of_key = uploads.filter(|upload| element(upload, "Key").is_some_and(|written| unescaped(written) == key));
    of_key.filter_map(|upload| element(upload, "UploadId").map(unescaped)).collect()
}

/// A text without XML's escapes.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let escape = after.split_once(';');
        let letter = escape.and_then(|(name, _)| match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            name => {
                let number = name.strip_prefix('#')?;
                let number = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(number)
            }
        });
        match (letter, escape) {
            (Some(letter), Some((_, behind))) => {
                plain.push(letter);
                rest = behind;
            }
            _ => {
                plain.push('&');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uploads_of_a_key_are_found_among_those_of_its_prefix() {
        let upload = |key: &str, id: &str| format!("<Upload><Key>{key}</Key><UploadId>{id}</UploadId></Upload>");
        let text = format!(
            "<R><Bucket>b</Bucket>{}{}{}{}</R>",
            upload("a&amp;b", "1"),
            upload("a&amp;b2", "2"),
            upload("a&#38;b", "3&gt;"),
            upload("a", "4")
        );
        assert_eq!(uploads_of(&text, "a&b"), ["1", "3>"]);
        assert_eq!(uploads_of(&text, "c"), Vec::<String>::new());
        assert_eq!(uploads_of("<html>", "a"), Vec::<String>::new());
    }

    #[test]
    fn escapes_that_are_none_stay() {
        for (text, expected) in
            [("a &amp; b", "a & b"), ("&", "&"), ("&x;&#xe9;", "&x;é"), ("&#99999999;", "&#99999999;")]
        {
            assert_eq!(unescaped(text), expected);
        }
    }
}
