//! What is secret in URLs: user info, and query strings, which sign and authorise.

use std::ops::Range;

/// What stands in a secret's place.
const HIDDEN: &str = "***";

/// `text` with the user info and the query string of each URL in it hidden.
pub fn without_secret_parts(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut upto = 0;
    for part in secret_parts(text) {
        shown.push_str(&text[upto..part.start]);
        shown.push_str(HIDDEN);
        upto = part.end;
    }
    shown.push_str(&text[upto..]);
    shown
}

/// The same with as many bytes as before, so that places in it stay right.
pub(super) fn covered(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut upto = 0;
    for part in secret_parts(text) {
        shown.push_str(&text[upto..part.start]);
        shown.push_str(&"*".repeat(part.len()));
        upto = part.end;
    }
    shown.push_str(&text[upto..]);
    shown
}

/// Where user info and query strings are. A `?` without a `=` behind it is taken for one of a glob, but for web servers, which have none.
fn secret_parts(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let end = start + url_len(&text[start..]);
        let url = &text[start..end];
        let is_web = ["http://", "https://"].iter().any(|scheme| text[..start].ends_with(scheme));
        let authority = &url[..url.find(['/', '?', '#', '\\']).unwrap_or(url.len())];
        // A password may hold a `/` or a `?` that nobody encoded: then its `@` comes later.
        let user = authority.rfind('@').or_else(|| {
            let (colon, at) = (authority.find(':')?, url.rfind('@')?);
            let is_port =
                authority[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) && colon + 1 < authority.len();
            (colon < at && !is_port).then_some(at)
        });
        if let Some(length) = user.filter(|length| *length > 0) {
            parts.push(start..start + length);
        }
        let behind = user.map_or(0, |at| at + 1);
        if let Some(query) = url[behind..].find('?').map(|at| behind + at + 1)
            && (is_web || url[query..].contains('='))
            && query < url.len()
        {
            parts.push(start + query..end);
        }
        from = end;
    }
    parts
}

/// Bytes of the URL that `text` begins with, behind its scheme. A `)` belongs to it if its `(` does.
fn url_len(text: &str) -> usize {
    let mut n_open = 0_usize;
    let ends = |letter: char| {
        match letter {
            '(' => n_open += 1,
            ')' if n_open == 0 => return true,
            ')' => n_open -= 1,
            _ => {}
        }
        letter.is_whitespace() || letter.is_control() || matches!(letter, '"' | '\'' | '`' | '<' | '>' | '|')
    };
    text.find(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_info_and_query_strings_are_hidden() {
        let check = |text: &str, expected: &str| {
            assert_eq!(without_secret_parts(text), expected);
            assert_eq!(covered(text).len(), text.len());
            assert!(!covered(text).contains("S3CRET"), "{}", covered(text));
        };
        check("`https://u:S3CRET@h/a.jpg?sig=S3CRET` is gone", "`https://***@h/a.jpg?***` is gone");
        check("[\"http://S3CRET@h:80/x\", 's3://b/k?a=S3CRET&b=c']", "[\"http://***@h:80/x\", 's3://b/k?***']");
        check("http://u:S3C/RE?T@h/x", "http://***@h/x");
        check("http://[/x?ü=S3CRET", "http://[/x?***");
        check("http://h/k?S3CRET", "http://h/k?***");
        check("(https://h/k?sig=S3CRET): 403", "(https://h/k?***): 403");
        check("https://h/a(1).jpg?sig=S3CRET", "https://h/a(1).jpg?***");
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["", "a://", "://", "http://h:80/a@2x.jpg", "s3://b/img-?.jpg", "a = b?c=d", "http://h/ü"] {
            assert_eq!((without_secret_parts(text), covered(text)), (text.to_owned(), text.to_owned()));
        }
    }
}
