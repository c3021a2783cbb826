//! Texts that come from elsewhere, without the secrets that may be in them.

use engine::config::without_secret_parts;

/// What stands in a secret's place.
const HIDDEN: &str = "***";

/// Names whose values are secrets wherever they are written as `name=value` or `name: value`, in lower case and without
/// `-` and `_`. A name that ends in one of these is one too: `X-Amz-Signature`, `aws_secret_access_key`.
const SECRET_NAMES: [&str; 12] = [
    "accesskey",
    "accesskeyid",
    "accountkey",
    "authorization",
    "credential",
    "key",
    "passwd",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
];

/// `text` in which user info and query strings of URLs, and the values of names that sound like secrets
/// (`token=…`, `Signature=…`, `password: …`, `Bearer …`) are hidden.
pub fn redacted(text: &str) -> String {
    without_named(&without_secret_parts(text))
}

/// Hides the values of names that sound like secrets.
fn without_named(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        rest = after;
        if after.starts_with("//") || !is_secret_name(before) {
            continue;
        }
        let value = after.trim_start_matches([' ', '"', '\'']);
        shown.push_str(&after[..after.len() - value.len()]);
        // `Authorization: Bearer abc`: the scheme is no secret, what follows is.
        let scheme_len = ["Bearer ", "Basic ", "AWS4-HMAC-SHA256 "]
            .iter()
            .find(|scheme| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
            .map_or(0, |scheme| scheme.len());
        shown.push_str(&value[..scheme_len]);
        let value = &value[scheme_len..];
        let value_len = value.find(ends_value).unwrap_or(value.len());
        if value_len > 0 {
            shown.push_str(HIDDEN);
        }
        rest = &value[value_len..];
    }
    shown.push_str(rest);
    shown
}

fn ends_value(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '&' | ',' | ';' | '"' | '\'' | '`' | '<' | '>' | ')' | '}')
}

/// Whether the word that `before` ends with, less its `=` or `:`, names a secret.
fn is_secret_name(before: &str) -> bool {
    let before = before[..before.len() - 1].trim_end_matches(['"', '\'']);
    let start = before.rfind(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')));
    let word = &before[start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))..];
    let name: String = word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| name.ends_with(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redacted(text), expected);
    }

    #[test]
    fn query_strings_and_user_info_of_urls_are_hidden() {
        check(
            "GET https://b.s3.amazonaws.com/k.jpg?X-Amz-Credential=AKIA%2F2026&X-Amz-Signature=0123abcd failed",
            "GET https://b.s3.amazonaws.com/k.jpg?*** failed",
        );
        check(
            "(https://a.blob.core.windows.net/c/k?sv=2024-01-01&sig=AbC%2Fd%3D): 403",
            "(https://a.blob.core.windows.net/c/k?***): 403",
        );
        check(
            "`https://storage.googleapis.com/b/k?GoogleAccessId=x@y.iam&Expires=1&Signature=qqq` is gone",
            "`https://storage.googleapis.com/b/k?***` is gone",
        );
        check("https://user:pass@host/a and http://tok@h:80/b?c", "https://***@host/a and http://***@h:80/b?***");
        check("https://user:pa/s?s@host/a", "https://***@host/a");
        check("http://127.0.0.1:9000/b/a@2x.jpg", "http://127.0.0.1:9000/b/a@2x.jpg");
        check("s3://AKIA:se/cret@bucket/key", "s3://***@bucket/key");
    }

    #[test]
    fn values_of_names_that_sound_like_secrets_are_hidden() {
        check("token=abc&x=1", "token=***&x=1");
        check("Authorization: Bearer ya29.abc, next", "Authorization: Bearer ***, next");
        check("authorization: AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=12ab", {
            "authorization: AWS4-HMAC-SHA256 ***, Signature=***"
        });
        check("aws_secret_access_key=abc/def+ rest", "aws_secret_access_key=*** rest");
        check(r#"{"access_token": "ya29.x", "n": 1}"#, r#"{"access_token": "***", "n": 1}"#);
        check("password: hunter2; ok", "password: ***; ok");
        check("AccountKey=abc==;EndpointSuffix=core", "AccountKey=***;EndpointSuffix=core");
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["", "no such file", "a: b = c", "ratio=0.5, x=?", "https://host/path/ü.jpg", "über?=1", "::=="] {
            check(text, text);
        }
    }

    #[test]
    fn nothing_secret_is_left_wherever_it_is_put() {
        let urls = [
            "https://u:S3CRET@h/p",
            "https://h/p?X-Amz-Security-Token=S3CRET",
            "https://h/p?sig=S3CRET#f",
            "s3://S3CRET:S3CRET@b/k",
            "az://c/k?sv=1&sig=S3CRET",
        ];
        for url in urls {
            for text in [url.to_owned(), format!("({url})"), format!("for `{url}`: x"), format!("a\n{url}\nb <{url}>")]
            {
                assert!(!redacted(&text).contains("S3CRET"), "{}", redacted(&text));
            }
        }
    }
}
