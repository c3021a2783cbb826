//! What the members of a sample in an archive are called.

/// The longest ending of a uri that is taken for one.
const MAX_EXTENSION: usize = 8;

/// The name of the sample with this id: a relative path that stays below where it is unpacked, without a dot in its last
/// part.
pub(super) fn sample_key(id: &str) -> String {
    let path = id.split_once("://").map_or(id, |(_, path)| path);
    let plain = |char: char| if char.is_control() || char == '\\' { '_' } else { char };
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."))
        .map(|part| part.chars().map(plain).collect())
        .collect();
    let Some((last, folders)) = parts.split_last() else { return "_".to_owned() };
    let folders: String = folders.iter().map(|folder| format!("{folder}/")).collect();
    format!("{folders}{}", last.replace('.', "_"))
}

/// The ending of a uri, in small letters, if it looks like one; otherwise `bin`.
pub(super) fn uri_extension(uri: &str) -> String {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let name = name.split(['?', '#']).next().unwrap_or(name);
    match name.rsplit_once('.') {
        Some((stem, extension))
            if !stem.is_empty()
                && (1..=MAX_EXTENSION).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            extension.to_ascii_lowercase()
        }
        _ => "bin".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_nowhere_else_and_has_no_dot_in_its_last_part() {
        let check = |id: &str, expected: &str| assert_eq!(sample_key(id), expected, "{id}");
        check("photos/cat.v2.jpg", "photos/cat_v2_jpg");
        check("s3://bucket/v1.0/a.jpg", "bucket/v1.0/a_jpg");
        check("/../../etc/./passwd", "etc/passwd");
        check("a\nb\\c", "a_b_c");
        check("..", "_");
        check("", "_");
        check("shard-000.tar#0001", "shard-000_tar#0001");
    }

    #[test]
    fn the_ending_of_a_uri_is_a_short_word() {
        let check = |uri: &str, expected: &str| assert_eq!(uri_extension(uri), expected, "{uri}");
        check("a/b.JPG", "jpg");
        check("http://h/x.png?size=1.5", "png");
        check("a.d/b", "bin");
        check(".hidden", "bin");
        check("a.b c", "bin");
    }
}
