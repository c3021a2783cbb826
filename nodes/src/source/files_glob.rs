//! One glob: which paths it matches, and into which folders it can lead.
//!
//! A glob is split at its slashes, and a path is matched part by part by a set of places in the pattern: the same set
//! says whether a folder has to be entered at all. `globset` matches one part.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use engine::node::SpecError;
use globset::{GlobBuilder, GlobMatcher};

/// The places of a pattern at which the next part of a path may stand: bit `i` is part `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places(u64);

impl Places {
    /// Whether no path through here can match.
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The most parts of a pattern behind its first wildcard: bits of [`Places`], less the one for its end.
const MAX_PARTS: usize = 63;

/// A glob as written, and made ready.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    /// As written.
    pub(super) text: String,
    /// The parts before the first wildcard, as one would write them; empty for the pipeline file's folder.
    pub(super) prefix: String,
    parts: Vec<Part>,
    /// Whether the last part has an extension, so that a folder of such a name is taken for a mistake of the data.
    pub(super) has_extension: bool,
}

#[derive(Clone, Debug)]
enum Part {
    /// `**`: any number of folders.
    AnyDepth,
    /// A part without a wildcard.
    Literal(String),
    /// A part with one.
    Wild(GlobMatcher, Hidden),
}

/// Whether names that begin with a dot are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    Matched,
    Skipped,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        let parts: Vec<_> = split(text).map_err(|message| SpecError::new(format!("`{text}`: {message}")))?;
        let Some(last) = parts.last() else {
            return Err(SpecError::new("the path is empty").label("write a glob, such as `photos/**/*.jpg`"));
        };
        let n_literal = parts.iter().take_while(|part| !is_wild(part)).count().min(parts.len() - 1);
        let mut prefix = parts[..n_literal].join("/");
        if text.starts_with('/') {
            prefix.insert(0, '/');
        }
        let mut wild = parts[n_literal..].to_vec();
        // `a/**` means every file below `a`: it ends in a name.
        if *last == "**" {
            wild.push("*");
        }
        if wild.len() > MAX_PARTS {
            return Err(SpecError::new(format!("`{text}` has more than {MAX_PARTS} parts behind its first wildcard")));
        }
        let parts = wild.iter().map(|part| Part::parse(part, text)).collect::<Result<_, _>>()?;
        Ok(Glob { text: text.to_owned(), prefix, parts, has_extension: has_extension(last) })
    }

    /// The same glob, which was written as `text`.
    pub(super) fn written_as(mut self, text: &str) -> Glob {
        self.text = text.to_owned();
        self
    }

    /// The same glob with any name in its last part.
    pub(super) fn with_any_name(&self) -> Glob {
        let mut glob = self.clone();
        let any = Part::parse("*", "*").expect("`*` is a glob");
        *glob.parts.last_mut().expect("a glob has a part") = any;
        glob.has_extension = false;
        glob
    }

    /// The places before the first part behind the prefix.
    pub(super) fn start(&self) -> Places {
        self.closed(1)
    }

    /// The places behind `name`, if it stands at one of `places`.
    pub(super) fn step(&self, places: Places, name: &OsStr) -> Places {
        let mut next = 0;
        for (part_idx, part) in self.parts.iter().enumerate() {
            if places.0 & (1 << part_idx) == 0 {
                continue;
            }
            match part {
                Part::AnyDepth if !is_hidden(name) => next |= 1 << part_idx,
                Part::AnyDepth => {}
                Part::Literal(text) if text.as_bytes() == name.as_bytes() => next |= 1 << (part_idx + 1),
                Part::Literal(_) => {}
                Part::Wild(matcher, hidden) => {
                    if (*hidden == Hidden::Matched || !is_hidden(name)) && matcher.is_match(Path::new(name)) {
                        next |= 1 << (part_idx + 1);
                    }
                }
            }
        }
        self.closed(next)
    }

    /// Whether a path that ends at `places` matches.
    pub(super) fn accepts(&self, places: Places) -> bool {
        places.0 & (1 << self.parts.len()) != 0
    }

    /// Whether a folder that ends at `places` can have matches in it.
    pub(super) fn leads_on(&self, places: Places) -> bool {
        places.0 & ((1 << self.parts.len()) - 1) != 0
    }

    /// The only name that can stand at `places`, where no folder has to be read to find it.
    pub(super) fn only_name(&self, places: Places) -> Option<&str> {
        let part_idx = places.0.trailing_zeros() as usize;
        match self.parts.get(part_idx)? {
            Part::Literal(text) if places.0 == 1 << part_idx => Some(text),
            _ => None,
        }
    }

    /// The places of `path`, a normalised path, if it lies below the prefix, normalised to `root`.
    pub(super) fn places_of(&self, root: &Path, path: &Path) -> Places {
        let Ok(below) = path.strip_prefix(root) else { return Places(0) };
        below.components().fold(self.start(), |places, part| self.step(places, part.as_os_str()))
    }

    /// Adds the places behind each `**`, which may stand for no folder at all.
    fn closed(&self, places: u64) -> Places {
        let mut closed = places;
        for (part_idx, part) in self.parts.iter().enumerate() {
            if closed & (1 << part_idx) != 0 && matches!(part, Part::AnyDepth) {
                closed |= 1 << (part_idx + 1);
            }
        }
        Places(closed)
    }
}

impl Part {
    fn parse(part: &str, glob: &str) -> Result<Self, SpecError> {
        if part == "**" {
            return Ok(Part::AnyDepth);
        }
        if part == ".." {
            return Err(SpecError::new(format!("`{glob}`: `..` cannot follow a wildcard")));
        }
        if part.contains("**") {
            return Err(SpecError::new(format!("`{glob}`: `**` stands alone between slashes"))
                .label(format!("write `{}`", part.replacen("**", "**/*", 1))));
        }
        if !is_wild(part) {
            return Ok(Part::Literal(part.to_owned()));
        }
        let matcher = GlobBuilder::new(part).literal_separator(true).backslash_escape(true).build();
        let matcher = matcher.map_err(|error| SpecError::new(format!("`{glob}` is no glob: {}", error.kind())))?;
        let hidden = if part.starts_with('.') { Hidden::Matched } else { Hidden::Skipped };
        Ok(Part::Wild(matcher.compile_matcher(), hidden))
    }
}

/// The parts between slashes, without empty ones and `.`.
fn split(text: &str) -> Result<Vec<&str>, &'static str> {
    let mut depth = 0usize;
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth > 0 => return Err("a `/` cannot stand between `{` and `}`: write the globs as a list"),
            '\0' => return Err("a path has no NUL in it"),
            _ => {}
        }
    }
    Ok(text.split('/').filter(|part| !part.is_empty() && *part != ".").collect())
}

fn is_wild(part: &str) -> bool {
    part.contains(['*', '?', '[', '{', '\\'])
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().first() == Some(&b'.')
}

fn has_extension(part: &str) -> bool {
    match part.rsplit_once('.') {
        Some((stem, extension)) => {
            !stem.is_empty() && !extension.is_empty() && !extension.chars().all(|c| "*?".contains(c))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::node::normalised;

    fn matches(glob: &str, path: &str) -> bool {
        let glob = Glob::parse(glob).unwrap();
        glob.accepts(glob.places_of(&normalised(Path::new(&glob.prefix)), Path::new(path)))
    }

    #[test]
    fn globs_match_as_in_a_shell() {
        let cases = [
            ("photos/*.jpg", "photos/a.jpg", true),
            ("photos/*.jpg", "photos/b/a.jpg", false),
            ("photos/**/*.jpg", "photos/a.jpg", true),
            ("photos/**/*.jpg", "photos/b/c/a.jpg", true),
            ("photos/**/*.jpg", "other/a.jpg", false),
            ("photos/**", "photos/a", true),
            ("photos/**", "photos/b/c/a", true),
            ("photos/**", "photos", false),
            ("**/x/**/y", "x/y", true),
            ("**/x/**/y", "a/x/b/x/c/y", true),
            ("**/x/**/y", "a/b/y", false),
            ("*/a?[0-9].{jpg,png}", "d/ab7.png", true),
            ("*/a?[0-9].{jpg,png}", "d/abc.png", false),
            ("./photos//*.jpg", "photos/a.jpg", true),
            ("photos/cat.jpg", "photos/cat.jpg", true),
            ("a/*", "a/.hidden", false),
            ("a/**/*", "a/.git/config", false),
            ("a/.*", "a/.hidden", true),
            ("a/.git/*", "a/.git/config", true),
            ("a/[[]b].txt", "a/[b].txt", true),
            (r"a/\*.txt", "a/*.txt", true),
            (r"a/\*.txt", "a/b.txt", false),
        ];
        for (glob, path, expected) in cases {
            assert_eq!(matches(glob, path), expected, "{glob} and {path}");
        }
    }

    #[test]
    fn a_folder_is_entered_only_if_something_in_it_can_match() {
        let glob = Glob::parse("photos/20??/*/[a-m]*.jpg").unwrap();
        let leads_on = |path: &str| glob.leads_on(glob.places_of(Path::new("photos"), Path::new(path)));
        assert!(leads_on("photos/2024"));
        assert!(leads_on("photos/2024/may"));
        assert!(!leads_on("photos/1999"));
        assert!(!leads_on("photos/2024/may/deeper"));
    }

    #[test]
    fn the_prefix_ends_before_the_first_wildcard_and_before_the_name() {
        for (glob, prefix) in [
            ("photos/a/*.jpg", "photos/a"),
            ("*.jpg", ""),
            ("a/b.jpg", "a"),
            ("/x/**", "/x"),
            ("../x/*", "../x"),
            ("/*", "/"),
        ] {
            assert_eq!(Glob::parse(glob).unwrap().prefix, prefix, "{glob}");
        }
    }

    #[test]
    fn folders_are_taken_for_data_only_by_an_extension() {
        for (glob, expected) in
            [("*.jpg", true), ("a.*/*", false), ("*.{jpg,png}", true), ("*.*", false), ("**", false), (".x", false)]
        {
            assert_eq!(Glob::parse(glob).unwrap().has_extension, expected, "{glob}");
        }
    }

    #[test]
    fn what_is_no_glob_is_refused_with_a_reason() {
        for (glob, reason) in [
            ("", "empty"),
            ("a/**.jpg", "stands alone"),
            ("*/../a", "cannot follow a wildcard"),
            ("{a/b,c}/*", "as a list"),
            ("a[", "is no glob"),
            ("a{b", "is no glob"),
        ] {
            let error = Glob::parse(glob).unwrap_err();
            assert!(error.message.contains(reason), "{glob}: {error}");
        }
    }
}
