//! Why a command did not do what it was asked to, as people read it.

use std::fmt::Write;
use std::process;

use anstyle::{AnsiColor, Style};
use engine::config::{Look, Mistakes};
use engine::graph::render::plain::for_terminal;
pub(crate) use engine::node::reason;
use engine::node::{Fault, FaultKind};
use engine::schedule::PlanError;

use crate::output;
use crate::progress::{Charset, Colour, Terminal};

/// Exit codes.
pub(crate) mod exit {
    /// Everything was done.
    pub(crate) const DONE: u8 = 0;
    /// Something failed that may work another time.
    pub(crate) const FAULT: u8 = 1;
    /// The command line or a pipeline is wrong.
    pub(crate) const USAGE: u8 = 2;
    /// Done, and rows were rejected.
    pub(crate) const REJECTS: u8 = 3;
    /// Asked to stop.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// What a bug asks for.
const PLEASE_REPORT: &str = "this is a bug in flowgpu: please report it, with this message and the pipeline";

/// The ends of a command that are not its proper one.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Pipelines are wrong.
    Mistakes(Box<Mistakes>),
    /// The command line is wrong in a way that clap cannot know.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do, if that is known.
        help: Option<String>,
    },
    /// Something failed.
    Fault(Box<Fault>),
    /// Nobody reads standard output any more.
    ReaderGone,
    /// The main thread panicked, which it has told.
    Panicked,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: None }
    }

    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Failure::Fault(Box::new(Fault::transient(message)))
    }

    /// Tells it on the standard error stream and says the exit code.
    pub(crate) fn tell(&self) -> u8 {
        let terminal = Terminal::stderr();
        let (text, code) = match self {
            Failure::Mistakes(mistakes) => (mistakes.render(look(&terminal)), exit::USAGE),
            Failure::Usage { message: text, help } => {
                (message("error", text, &terminal) + &help_line(help.as_deref(), &terminal), exit::USAGE)
            }
            Failure::Fault(fault) => (fault_text(fault, &terminal), fault_code(fault)),
            Failure::ReaderGone => (String::new(), exit::DONE),
            Failure::Panicked => (String::new(), exit::FAULT),
        };
        output::tell(&text);
        code
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Failure::Mistakes(Box::new(mistakes))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Fault(Box::new(fault))
    }
}

impl From<PlanError> for Failure {
    fn from(PlanError(error): PlanError) -> Self {
        Failure::Usage { message: error.message, help: Some(error.help) }
    }
}

/// How mistakes are drawn there.
pub(crate) fn look(terminal: &Terminal) -> Look {
    Look { colour: terminal.colour == Colour::On, ascii: terminal.charset == Charset::Ascii }
}

/// What happened, in which node, and what to do.
pub(crate) fn fault_text(fault: &Fault, terminal: &Terminal) -> String {
    if fault.kind == FaultKind::Closed {
        return String::new();
    }
    let help = match (&fault.help, fault.kind) {
        (Some(help), _) => Some(help.as_str()),
        (None, FaultKind::Bug) => Some(PLEASE_REPORT),
        (None, _) => None,
    };
    let mut text = message("fault", &fault.to_string(), terminal);
    for detail in &fault.details {
        text.push_str(&indented(detail, terminal));
    }
    text.push_str(&help_line(help, terminal));
    text
}

pub(crate) fn fault_code(fault: &Fault) -> u8 {
    match fault.kind {
        FaultKind::Permanent => exit::USAGE,
        FaultKind::Transient | FaultKind::Bug => exit::FAULT,
        FaultKind::Closed => exit::DONE,
    }
}

fn message(word: &str, message: &str, terminal: &Terminal) -> String {
    let word = painted(word, Style::new().bold().fg_color(Some(AnsiColor::Red.into())), terminal);
    format!("{word}: {}\n", lines(message, terminal))
}

fn help_line(help: Option<&str>, terminal: &Terminal) -> String {
    let Some(help) = help else { return String::new() };
    let word = painted("help", Style::new().bold().fg_color(Some(AnsiColor::Cyan.into())), terminal);
    format!("  {word}: {}\n", lines(help, terminal))
}

/// A detail under the message, and what its first line announces under that.
fn indented(detail: &str, terminal: &Terminal) -> String {
    let mut text = String::new();
    for (line_idx, line) in detail.trim_end().lines().enumerate() {
        let indent = if line_idx == 0 { "  " } else { "    " };
        // Writing into a String does not fail.
        let _ = writeln!(text, "{indent}{}", for_terminal(line, terminal.charset));
    }
    text
}

/// Every line by itself, made harmless: messages hold names of files.
fn lines(text: &str, terminal: &Terminal) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(|line| for_terminal(line, terminal.charset)).collect();
    lines.join("\n  ")
}

fn painted(word: &str, style: Style, terminal: &Terminal) -> String {
    match terminal.colour {
        Colour::On => format!("{style}{word}{style:#}"),
        Colour::Off => word.to_owned(),
    }
}

/// Ends the process at once: for a second wish to stop, when the first is still being followed.
pub(crate) fn abort_now() -> ! {
    process::exit(i32::from(exit::INTERRUPTED))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn details_stand_under_the_message_and_last_words_under_those_harmlessly() {
        let fault = Fault::transient("worker 1 (cuda:0, pid 8123) died of signal 6 (abort)")
            .in_node("scores")
            .detail("likely: a bug")
            .detail("its last words:\nthread 'main' panicked\n\x1b[2Jgone\n")
            .help("try another model");
        assert_eq!(
            fault_text(&fault, &Terminal::PIPE),
            "fault: `scores`: worker 1 (cuda:0, pid 8123) died of signal 6 (abort)\n  likely: a bug\n  its last words:\n    \
             thread 'main' panicked\n    \u{fffd}[2Jgone\n  help: try another model\n"
        );
    }

    #[test]
    fn a_reason_has_no_number() {
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(reason(&io::Error::other("Odd")), "odd");
    }
}
