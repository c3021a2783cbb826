//! Which sample a member belongs to, as the Python library `webdataset` sees it.

use percent_encoding::percent_encode_byte;

/// The key and the extension of a member called `name`: `a/b.seg.png` is `seg.png` of the sample `a/b`. `None` for a name
/// without an extension, which belongs to no sample.
pub(super) fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let dot = start + name[start..].iter().position(|&byte| byte == b'.')?;
    if dot > start {
        return Some((&name[..dot], &name[dot + 1..]));
    }
    // A name that begins with its dot is an extension of its folder, if that has no dot itself.
    let folder = name[..start].strip_suffix(b"/")?;
    let last = folder.rsplit(|&byte| byte == b'/').next()?;
    (!last.contains(&b'.')).then(|| (&name[..start], &name[dot + 1..]))
}

/// Whether a member is about the archive, and not data: `__name__`, or something in such a folder.
pub(super) fn is_meta(name: &[u8]) -> bool {
    let slash = name.iter().position(|&byte| byte == b'/');
    let first = &name[..slash.unwrap_or(name.len())];
    let is_marked = first.starts_with(b"__") && first.ends_with(b"__");
    is_marked && (slash.is_none() || first.len() >= 4)
}

/// A key or a name as text: bytes that are not UTF-8 and control characters are percent-encoded, and then `%` too.
pub(super) fn shown(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name)
        && !text.chars().any(char::is_control)
    {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || letter == '%' {
                let mut bytes = [0; 4];
                letter.encode_utf8(&mut bytes).bytes().for_each(|byte| shown.push_str(percent_encode_byte(byte)));
            } else {
                shown.push(letter);
            }
        }
        chunk.invalid().iter().for_each(|&byte| shown.push_str(percent_encode_byte(byte)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `webdataset.tariterators.base_plus_ext` of 1.0.2 gives.
    #[test]
    fn names_are_split_at_the_first_dot_of_their_last_part() {
        for (name, expected) in [
            ("a.jpg", Some(("a", "jpg"))),
            ("a/b.c/d.seg.PNG", Some(("a/b.c/d", "seg.PNG"))),
            ("./a.jpg", Some(("./a", "jpg"))),
            ("a.", Some(("a", ""))),
            ("a", None),
            ("a.b/c", None),
            (".hidden", None),
            ("a/.hidden", Some(("a/", "hidden"))),
            ("a.b/.hidden", None),
            ("a.b/c/.hidden.x", Some(("a.b/c/", "hidden.x"))),
            ("/.x", Some(("/", "x"))),
            ("../.x", None),
            ("", None),
        ] {
            let split = split(name.as_bytes());
            let expected = expected.map(|(key, extension): (&str, &str)| (key.as_bytes(), extension.as_bytes()));
            assert_eq!(split, expected, "{name}");
        }
    }

    #[test]
    fn what_is_about_the_archive_is_no_data() {
        for (name, expected) in [
            ("__index__", true),
            ("__index__/a.jpg", true),
            ("___", true),
            ("___/a.jpg", false),
            ("__index__.jpg", false),
            ("a/__index__", false),
            ("__a", false),
        ] {
            assert_eq!(is_meta(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn names_are_shown_without_what_could_break_a_line() {
        assert_eq!(shown("ä 100%/b".as_bytes()), "ä 100%/b");
        assert_eq!(shown(b"a\n%\xff\x1b"), "a%0A%25%FF%1B");
    }
}
