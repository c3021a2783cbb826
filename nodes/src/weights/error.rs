//! What can be wrong with a weight file, in words that name the file and what was expected of it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A weight file, or a folder of them, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}`{}{fault}", .path.display(), .fault.joint())]
pub struct WeightsError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: WeightsFault,
}

impl WeightsError {
    pub(super) fn new(path: &Path, fault: impl Into<WeightsFault>) -> Self {
        Self { path: path.to_path_buf(), fault: fault.into() }
    }
}

/// What is wrong with a weight file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsFault {
    /// The operating system refused.
    #[error("{}", refused(.0))]
    Io(#[from] io::Error),

    /// A socket, a pipe, a device.
    #[error("is neither a file nor a folder")]
    NotAFile,

    /// No bytes at all.
    #[error("is empty")]
    Empty,

    /// The first bytes are those of no format that is read here.
    #[error("{0}; weights are read from safetensors, from files made by `torch.save`, and from Hugging Face folders")]
    Unrecognised(String),

    /// The folder has no weight file.
    #[error("has no weight file: looked for {looked_for}{}", found_instead(.found))]
    NoneInFolder {
        /// The names and patterns tried.
        looked_for: String,
        /// What is there instead.
        found: Vec<String>,
    },

    /// The folder has several weight files and nothing says which one is meant.
    #[error("has several weight files: {}; name the one you mean", listed(.0))]
    SeveralInFolder(Vec<String>),

    /// A part lies beyond the end of the file.
    #[error("truncated: {part} ends at byte {} and the file has {}", grouped(*.end), grouped(*.len))]
    Truncated {
        /// What ends too late, such as "tensor `fc.weight`".
        part: String,
        /// Where it would end.
        end: u64,
        /// How long the file is.
        len: u64,
    },

    /// A part of the file is not what its format asks for.
    #[error("{part} {problem}")]
    Malformed {
        /// Which part, such as "the header".
        part: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A pickle names a class or function other than the few that tensors need.
    #[error("asks to run {}: refused; only tensors are read from it. Save the model's `state_dict()` alone, or as safetensors", quoted(.0))]
    Refused(String),

    /// The file is whole, but there is no tensor in it.
    #[error("holds no tensors{}", found_instead(.0))]
    NoTensors(Vec<String>),
}

impl WeightsFault {
    pub(super) fn malformed(part: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Malformed { part: part.into(), problem: problem.into() }
    }

    /// What stands between the file's name and the fault: most faults go on as a sentence about the file.
    fn joint(&self) -> &'static str {
        match self {
            Self::Truncated { .. } | Self::Malformed { .. } => ": ",
            _ => " ",
        }
    }

    /// A tensor's entry is wrong.
    pub(super) fn tensor(name: &str, problem: impl Into<String>) -> Self {
        Self::malformed(format!("tensor {}", quoted(name)), problem)
    }
}

/// A tensor whose values could not be turned into a candle tensor.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {cause}", .path.display())]
pub struct ReadValuesError {
    /// The file that it lies in.
    pub path: PathBuf,
    /// candle's error.
    pub cause: candle_core::Error,
}

/// A name out of a file, safe to print: control characters escaped, cut at 120 characters.
pub(super) fn quoted(name: &str) -> Quoted<'_> {
    Quoted(name)
}

pub(super) struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        write!(f, "`")?;
        for character in characters.by_ref().take(120) {
            match character.is_control() {
                true => write!(f, "{}", character.escape_default())?,
                false => write!(f, "{character}")?,
            }
        }
        match characters.next() {
            Some(_) => write!(f, "…`"),
            None => write!(f, "`"),
        }
    }
}

/// `46,830,592`: sizes are compared by eye.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const LISTED: usize = 8;

/// At most eight names, quoted.
pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| quoted(name).to_string()).collect();
    match names.len() > LISTED {
        true => format!("{}, …", shown.join(", ")),
        false => shown.join(", "),
    }
}

/// An error of the operating system without its number.
fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be read: permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

fn found_instead(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; found {}", listed(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let check = |number, expected| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(46_830_592, "46,830,592");
        check(u64::MAX, "18,446,744,073,709,551,615");
    }

    #[test]
    fn names_from_files_cannot_steer_the_terminal() {
        assert_eq!(quoted("fc.weight").to_string(), "`fc.weight`");
        assert_eq!(quoted("a\u{1b}[2Jb\n").to_string(), "`a\\u{1b}[2Jb\\n`");
        assert_eq!(quoted(&"x".repeat(500)).to_string(), format!("`{}…`", "x".repeat(120)));
    }

    #[test]
    fn a_truncated_file_is_reported_with_both_sizes() {
        let fault = WeightsFault::Truncated { part: "tensor `fc.weight`".into(), end: 46_830_592, len: 1000 };
        assert_eq!(
            WeightsError::new(Path::new("x.safetensors"), fault).to_string(),
            "`x.safetensors`: truncated: tensor `fc.weight` ends at byte 46,830,592 and the file has 1,000"
        );
    }
}
