//! Answers before the client for stores reads them into memory: bounded, and listings without what it cannot read.
//!
//! The clouds' consoles make a folder by writing an empty object whose key ends in `/`. The client would take that for an
//! object of the folder's name, which is not there. At keys that it has no form for, such as `a//b`, it would give up the
//! whole page, and it would take `/a` for `a`: these are noted apart.

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody};

use super::location::can_be_named;

/// A page of 1,000 keys, each as long as it may be and with all that is said of it, is smaller by far.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// The elements that a page has one of for each object, with the element in it that is the object's key.
const OBJECTS: [(&str, &str); 2] = [("Contents", "Key"), ("Blob", "Name")];

/// Of an error no more is read than this: it says what it is at its beginning.
const MAX_ERROR_BYTES: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
#[error("the answer has more than {0} bytes")]
struct TooLarge(usize);

/// Whether the answer to a request is a page of a listing.
pub(super) fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"))
}

/// An object whose key the client for stores has no form for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unnamed {
    pub(super) key: String,
    pub(super) size: u64,
}

/// The page without folders and without what cannot be named, and the latter.
pub(super) async fn readable_page(response: HttpResponse) -> Result<(HttpResponse, Vec<Unnamed>), HttpError> {
    let (parts, body) = response.into_parts();
    let (page, is_whole) = start_of(body, MAX_PAGE_BYTES).await?;
    if !is_whole {
        return Err(HttpError::new(HttpErrorKind::Unknown, TooLarge(MAX_PAGE_BYTES)));
    }
    let mut unnamed = Vec::new();
    let page = match str::from_utf8(&page) {
        Ok(text) => {
            let mut text = text.to_owned();
            for (object, key) in OBJECTS {
                text = cut_unreadable(&text, object, key, &mut unnamed);
            }
            text.into()
        }
        Err(_) => Bytes::from(page),
    };
    Ok((HttpResponse::from_parts(parts, HttpResponseBody::from(page)), unnamed))
}

/// An error of which only the beginning is read, whatever follows.
pub(super) async fn bounded_error(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let (start, _) = start_of(body, MAX_ERROR_BYTES).await?;
    // What is cut off in the middle of a letter is text up to there.
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(String::from_utf8_lossy(&start).into_owned())))
}

/// Up to `max` bytes of a body, and whether that is all of it.
async fn start_of(body: HttpResponseBody, max: usize) -> Result<(Vec<u8>, bool), HttpError> {
    let mut start = Vec::new();
    let mut pieces = body.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        let n_bytes = piece.len().min(max - start.len());
        start.extend_from_slice(&piece[..n_bytes]);
        if n_bytes < piece.len() {
            return Ok((start, false));
        }
    }
    Ok((start, true))
}

fn cut_unreadable(page: &str, object: &str, key: &str, unnamed: &mut Vec<Unnamed>) -> String {
    let (start, end) = (format!("<{object}>"), format!("</{object}>"));
    let mut kept = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find(&start) {
        let Some(object_len) = rest[at..].find(&end).map(|len| len + end.len()) else { break };
        let object = &rest[at..at + object_len];
        let key = element(object, key).map(plain).unwrap_or_default();
        let is_unnamed = !can_be_named(&key);
        let is_cut = is_unnamed || key.ends_with('/');
        kept.push_str(&rest[..if is_cut { at } else { at + object_len }]);
        let size = ["Size", "Content-Length"].iter().find_map(|name| element(object, name)?.trim().parse().ok());
        match size.unwrap_or(0) {
            0 if key.ends_with('/') => {}
            size if is_unnamed => unnamed.push(Unnamed { key, size }),
            _ => {}
        }
        rest = &rest[at + object_len..];
    }
    kept.push_str(rest);
    kept
}

/// The text that is written with entities.
fn plain(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        let entity = after.split_once(';').and_then(|(name, after)| Some((letter(name)?, after)));
        match entity {
            Some((letter, after)) => (text, rest) = (text + letter.encode_utf8(&mut [0; 4]), after),
            None => (text, rest) = (text + "&", after),
        }
    }
    text + rest
}

/// What an entity stands for.
fn letter(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)
        }
    }
}

/// What stands in the first element of that name, as it is written.
pub(super) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let after = text.split_once(&format!("<{name}>"))?.1;
    after.split_once(&format!("</{name}>")).map(|(content, _)| content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_cut_out_and_nothing_else() {
        let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>0</Size></Contents>");
        let page = |keys: &[&str]| {
            let objects: String = keys.iter().map(|key| object(key)).collect();
            format!("<R><Prefix>a/</Prefix>{objects}<Next>x/</Next></R>")
        };
        let cut = |page: &str| cut_unreadable(page, "Contents", "Key", &mut Vec::new());
        assert_eq!(cut(&page(&["a/", "a/b", "a/c/", "a/c/d/"])), page(&["a/b"]));
        for text in [page(&["a", "b"]), page(&[]), String::new(), "<Contents><Key>a/</Key>".to_owned()] {
            assert_eq!(cut(&text), text);
        }
    }

    #[test]
    fn what_cannot_be_named_is_cut_out_and_told() {
        let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>7</Size></Contents>");
        let page: String = ["/a", "a&amp;b", "a//b&lt;c", "b/../c", "c&#x1;d&#10;", "d"].map(object).concat();
        let mut unnamed = Vec::new();
        let cut = cut_unreadable(&page, "Contents", "Key", &mut unnamed);
        assert_eq!(cut, ["a&amp;b", "d"].map(object).concat());
        let told = ["/a", "a//b<c", "b/../c", "c\u{1}d\n"].map(|key| Unnamed { key: key.to_owned(), size: 7 });
        assert_eq!(unnamed, told);
        assert_eq!(plain("&;&#xZ;&#1114112;&lt&amp;amp;"), "&;&#xZ;&#1114112;&lt&amp;");
    }

    #[test]
    fn of_an_endless_error_only_the_beginning_is_read() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        for (n_bytes, expected) in [(10, 10), (MAX_ERROR_BYTES, MAX_ERROR_BYTES), (10 << 20, MAX_ERROR_BYTES)] {
            let response = HttpResponse::new(HttpResponseBody::from(vec![b'x'; n_bytes]));
            let bounded = runtime.block_on(bounded_error(response)).unwrap();
            assert_eq!(runtime.block_on(bounded.into_body().bytes()).unwrap().len(), expected);
        }
    }

    #[test]
    fn a_page_beyond_all_measure_is_an_error() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let response = HttpResponse::new(HttpResponseBody::from(vec![b'x'; MAX_PAGE_BYTES + 1]));
        assert!(runtime.block_on(readable_page(response)).is_err());
    }
}
