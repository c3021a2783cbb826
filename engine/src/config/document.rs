//! A pipeline file as it was written.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compile::compile;
use super::secrets::Secrets;
use super::{KindSchemas, Mistake, Mistakes, NodeDecl, RunOptions, Source, Span, Spanned};

/// A larger file is no pipeline.
const LARGEST: usize = 4 << 20;

/// What one pipeline file says, with the place of everything in it.
///
/// Each node's kind exists and its options fit the kind's schema. Whether the nodes fit together is not known here.
#[derive(Clone, Debug)]
pub struct Document {
    /// The pipeline's name.
    pub name: Spanned<String>,
    /// How to run it.
    pub run: RunOptions,
    /// Its nodes, in the order of the file.
    pub nodes: Vec<NodeDecl>,
    pub(super) source: Arc<Source>,
    pub(super) secrets: Secrets,
    /// What is wrong with it already.
    pub(super) told: Mistakes,
}

impl Document {
    /// Reads the text of `file`, with `name=value` pairs put over its `vars`, and `env` for `${env:NAME}`.
    pub fn parse(
        text: &str,
        file: &Path,
        overrides: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &dyn KindSchemas,
    ) -> Result<Self, Mistakes> {
        Self::parse_mistaken(text, file, overrides, env, kinds)?.checked()
    }

    /// Reads `file`.
    pub fn read(
        file: &Path,
        overrides: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &dyn KindSchemas,
    ) -> Result<Self, Mistakes> {
        Self::read_mistaken(file, overrides, env, kinds)?.checked()
    }

    /// Reads `file` even if options in it are mistaken, as long as it is known which nodes there are and who reads whom.
    /// Then [`Document::mistakes`] has what is wrong, later stages add what they find, and no graph comes of it: so that
    /// one look at a file shows as much of what is wrong as can be known.
    pub fn read_mistaken(
        file: &Path,
        overrides: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &dyn KindSchemas,
    ) -> Result<Self, Mistakes> {
        let bytes = read_at_most(file, LARGEST + 1).map_err(|error| {
            let message = format!("cannot read `{}`: {}", file.display(), words(&error));
            refusal(Source::new(file, ""), Mistake::nowhere(message))
        })?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse_mistaken(text, file, overrides, env, kinds),
            Err(error) => Err(not_utf8(&bytes, error.valid_up_to(), file)),
        }
    }

    fn parse_mistaken(
        text: &str,
        file: &Path,
        overrides: &[(String, String)],
        env: &dyn Fn(&str) -> Option<String>,
        kinds: &dyn KindSchemas,
    ) -> Result<Self, Mistakes> {
        if text.len() > LARGEST {
            let mistake = Mistake::nowhere(format!("a pipeline of more than {} MiB", LARGEST >> 20));
            return Err(refusal(Source::new(file, ""), mistake));
        }
        compile(Arc::new(Source::new(file, text)), overrides, env, kinds)
    }

    fn checked(self) -> Result<Self, Mistakes> {
        if self.told.is_empty() { Ok(self) } else { Err(self.told) }
    }

    /// The file's name, as it was given.
    pub fn file(&self) -> &Path {
        self.source.file()
    }

    /// The folder that paths in the file are relative to.
    pub fn folder(&self) -> &Path {
        self.file().parent().unwrap_or(Path::new(""))
    }

    /// A path in the file as one to open. `-`, which means standard output, stays as it is.
    pub fn resolve(&self, path: &str) -> PathBuf {
        if path == "-" { PathBuf::from(path) } else { self.folder().join(path) }
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&NodeDecl> {
        self.nodes.iter().find(|node| node.name.value == name)
    }

    /// The file's text.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The mistakes that are known, and a place for those that later stages find. It never shows a secret of the file.
    pub fn mistakes(&self) -> Mistakes {
        self.told.clone()
    }

    /// The texts that must never be shown: what `${env:…}` gave outside of keys named `path`.
    pub fn secrets(&self) -> &[String] {
        self.secrets.as_slice()
    }

    /// `text` with every secret in it hidden.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.redact(text)
    }
}

/// The file's beginning: a device file may have no end.
fn read_at_most(file: &Path, n_bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(n_bytes as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refusal(source: Source, mistake: Mistake) -> Mistakes {
    let mut mistakes = Mistakes::new(Arc::new(source));
    mistakes.push(mistake);
    mistakes
}

fn not_utf8(bytes: &[u8], valid: usize, file: &Path) -> Mistakes {
    // A byte order mark, which the text is without, is three bytes.
    let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let at = valid.saturating_sub(mark);
    let (message, label) = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("the file is UTF-16", "save it as UTF-8"),
        _ => ("the file is not UTF-8 from here on", "save it as UTF-8"),
    };
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LARGEST)]);
    let mistake = Mistake::at(Span::new(at, at + '\u{fffd}'.len_utf8()), message).label(label);
    refusal(Source::new(file, text), mistake)
}

/// An error of the operating system without its number.
fn words(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        _ => error.to_string(),
    }
}
