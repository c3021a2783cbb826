//! Which valid name was meant by one that is not.

/// The candidate that `name` is most likely a slip of, if any is near enough.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // What is that long is no slip of a name, and measuring it would take its length times theirs.
    if name.len() > 100 {
        return None;
    }
    let written = name.to_lowercase();
    let allowed = (written.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&written, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// The names in alphabetical order, with commas between.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn either<S: AsRef<str>>(parts: &[S]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_no_strangers() {
        let names = ["interpolation", "resize", "k", "decode.image"];
        assert_eq!(nearest("interpolatoin", names), Some("interpolation"));
        assert_eq!(nearest("Resize", names), Some("resize"));
        assert_eq!(nearest("decode.imgae", names), Some("decode.image"));
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest("quality", names), None);
    }

    #[test]
    fn lists_are_sorted_and_alternatives_read_well() {
        assert_eq!(list(["b", "a", "b"]), "a, b");
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
        assert_eq!(either(&["a"]), "a");
    }
}
