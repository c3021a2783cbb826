//! Pillow, in a Python process that answers questions.
//!
//! The process runs a script that is part of this program, reads the user's files by itself, and writes nothing. Questions and
//! answers are lines of JSON over its standard streams, each followed by as many bytes as it says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nodes::decode::Preprocess;
use nodes::infer::Twin;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::failure::{Failure, reason};

const SCRIPT: &str = include_str!("reference.py");

/// A picture of more bytes than this is not taken over the pipe: no limit of a node asks for as much.
const MOST_BYTES: u64 = 8 << 30;

/// The process.
pub(super) struct Reference {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it is.
    pub(super) about: About,
}

/// What the figures come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// The version of Python.
    pub(super) python: String,
    /// The version of Pillow.
    pub(super) pillow: String,
}

/// A file as the reference sees it.
#[derive(Debug, Deserialize)]
pub(super) struct Look {
    /// Format, mode and sampling: absent if Pillow does not know the format.
    pub(super) kind: Option<String>,
    /// Width and height of the result, if there is one.
    pub(super) size: Option<[usize; 2]>,
    /// A word for why there is none.
    pub(super) refused: Option<String>,
    /// The same at length.
    #[serde(default)]
    pub(super) why: String,
    /// The result: rows of RGB.
    #[serde(skip)]
    pub(super) pixels: Vec<u8>,
}

/// Where the reference finds a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// It reads it by itself.
    Path(&'a Path),
    /// It has no name that Python could open.
    Bytes(&'a [u8]),
}

/// What is to be done with a file.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Sizes and filter.
    pub(super) preprocess: Preprocess,
    /// The limit.
    pub(super) max_pixels: u64,
    /// The node's options as they were written, for its rules of colour.
    pub(super) options: Json,
}

#[derive(Deserialize)]
struct Version {
    version: Option<String>,
    missing: Option<String>,
}

#[derive(Deserialize)]
struct Hello {
    python: String,
    pillow: Version,
    program: String,
}

impl Reference {
    /// Starts `python` and asks what it has.
    ///
    /// # Errors
    /// If there is no such program, or it has no Pillow: with what to do.
    pub(super) fn start(python: &Path) -> Result<Self, Failure> {
        let shown = python.display();
        let started = Command::new(python).arg("-c").arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| Failure::Usage {
            message: match error.kind() {
                io::ErrorKind::NotFound => format!("`{shown}` not found"),
                _ => format!("`{shown}` cannot be started: {}", reason(&error)),
            },
            help: Some("install Python 3.8 or newer with Pillow, or name one: `--python venv/bin/python`".to_owned()),
        })?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let Some(answers) = answers else { return Err(Failure::fault("the reference has no standard output")) };
        let about = About { python: String::new(), pillow: String::new() };
        let mut reference = Reference { child, questions, answers, about };
        let (hello, _) = reference.hear().map_err(|_| Failure::Usage {
            message: format!("`{shown}` does not answer as Python 3.8 or newer would"),
            help: Some("name another one: `--python venv/bin/python`".to_owned()),
        })?;
        let hello: Hello = serde_json::from_value(hello).map_err(|error| strange(&error))?;
        let Some(pillow) = hello.pillow.version else {
            let why = hello.pillow.missing.unwrap_or_default();
            return Err(Failure::Usage {
                message: format!("Pillow is not importable in `{}` (Python {}): {why}", hello.program, hello.python),
                help: Some("`pip install pillow`, or name another Python: `--python venv/bin/python`".to_owned()),
            });
        };
        reference.about = About { python: hello.python, pillow };
        Ok(reference)
    }

    /// What it makes of a file.
    ///
    /// # Errors
    /// If the process does not answer.
    pub(super) fn look(&mut self, content: Content<'_>, rules: &Rules) -> Result<Look, Failure> {
        let mut question = json!({
            "ask": "pixels",
            "preprocess": rules.preprocess,
            "max_pixels": rules.max_pixels,
            "options": rules.options,
        });
        let bytes = match content {
            Content::Path(path) => {
                question["path"] = json!(hex(path.as_os_str().as_bytes()));
                &[]
            }
            Content::Bytes(bytes) => bytes,
        };
        let (look, pixels) = self.ask(question, bytes)?;
        let look: Look = serde_json::from_value(look).map_err(|error| strange(&error))?;
        Ok(Look { pixels, ..look })
    }

    /// Why a module cannot be imported; nothing if it can.
    ///
    /// # Errors
    /// If the process does not answer.
    pub(super) fn lacks(&mut self, module: &str) -> Result<Option<String>, Failure> {
        let (version, _) = self.ask(json!({"ask": "module", "name": module}), &[])?;
        let version: Version = serde_json::from_value(version).map_err(|error| strange(&error))?;
        Ok(version.missing)
    }

    /// Has torchvision build a network; why it cannot, if it cannot.
    ///
    /// # Errors
    /// If the process does not answer.
    pub(super) fn build(&mut self, twin: &Twin) -> Result<Option<String>, Failure> {
        let question = json!({
            "ask": "twin",
            "arch": twin.arch,
            "weights": hex(twin.weights.as_os_str().as_bytes()),
            "n_classes": twin.n_classes,
            "mean": twin.mean,
            "std": twin.std,
        });
        let (answer, _) = self.ask(question, &[])?;
        Ok(answer["why"].as_str().map(str::to_owned))
    }

    /// What that network gives for pixels.
    ///
    /// # Errors
    /// If the process does not answer.
    pub(super) fn logits(&mut self, size: [usize; 2], pixels: &[u8]) -> Result<Vec<f64>, Failure> {
        let (answer, _) = self.ask(json!({"ask": "logits", "size": size}), pixels)?;
        serde_json::from_value(answer["logits"].clone()).map_err(|error| strange(&error))
    }

    fn ask(&mut self, mut question: Json, bytes: &[u8]) -> Result<(Json, Vec<u8>), Failure> {
        question["n_bytes"] = json!(bytes.len());
        let told = match &mut self.questions {
            Some(questions) => writeln!(questions, "{question}")
                .and_then(|()| questions.write_all(bytes))
                .and_then(|()| questions.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        told.and_then(|()| self.hear()).map_err(|error| self.silent(&error))
    }

    fn hear(&mut self) -> io::Result<(Json, Vec<u8>)> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let answer: Json = serde_json::from_str(&line)?;
        let n_bytes = answer["n_bytes"].as_u64().unwrap_or(0);
        if n_bytes > MOST_BYTES {
            return Err(io::Error::other("an answer of more bytes than there can be"));
        }
        let mut bytes = Vec::new();
        (&mut self.answers).take(n_bytes).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != n_bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((answer, bytes))
    }

    /// The process has ended, or says something else than it should.
    fn silent(&mut self, error: &io::Error) -> Failure {
        self.questions = None;
        match self.child.wait() {
            Ok(status) if error.kind() == io::ErrorKind::UnexpectedEof || error.kind() == io::ErrorKind::BrokenPipe => {
                Failure::fault(format!("the Python process has ended ({status}) in the middle of its work"))
            }
            _ => Failure::fault(format!("the Python process does not answer: {}", reason(error))),
        }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // Without questions it ends by itself.
        self.questions = None;
        let _ = self.child.wait();
    }
}

fn strange(error: &serde_json::Error) -> Failure {
    Failure::fault(format!("the Python process answers something unexpected: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
