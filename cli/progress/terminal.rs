//! What the place that is written to can show: width, letters, colours, a cursor that moves.

use std::io::IsTerminal;

pub use engine::graph::render::Charset;

/// The properties of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Its size; `None` where it is no terminal, or does not say.
    pub size: Option<Size>,
    /// The letters that it can show.
    pub charset: Charset,
    /// Whether to use colour.
    pub colour: Colour,
    /// Whether its cursor can be moved.
    pub cursor: Cursor,
}

/// Columns and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

/// Whether to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Yes.
    On,
    /// No.
    Off,
}

/// Whether what is written can be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// A terminal.
    Moves,
    /// A pipe, a file, or a terminal that can only append.
    Stays,
}

impl Terminal {
    /// A pipe that takes all letters: what tests and files get.
    pub const PIPE: Self = Self { size: None, charset: Charset::Unicode, colour: Colour::Off, cursor: Cursor::Stays };

    /// The standard error stream, where progress goes.
    #[must_use]
    pub fn stderr() -> Self {
        let size = if std::io::stderr().is_terminal() { Tty::Yes(stderr_size()) } else { Tty::No };
        Self::from_environment(|name| std::env::var(name).ok(), size)
    }

    /// The standard output stream.
    #[must_use]
    pub fn stdout() -> Self {
        let size = if std::io::stdout().is_terminal() { Tty::Yes(size_of(std::io::stdout())) } else { Tty::No };
        Self::from_environment(|name| std::env::var(name).ok(), size)
    }

    /// The same from given variables. The locale is the first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set, as in POSIX;
    /// `NO_COLOR` and `CLICOLOR=0` turn colour off, `CLICOLOR_FORCE` turns it on even in a pipe.
    #[must_use]
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>, tty: Tty) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name)).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8");
        let can_move = tty != Tty::No && set("TERM").is_some_and(|term| term != "dumb");
        let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let wanted = forced || (can_move && variable("CLICOLOR").is_none_or(|value| value != "0"));
        Self {
            size: match tty {
                Tty::Yes(size) => size,
                Tty::No => None,
            },
            charset: if unicode { Charset::Unicode } else { Charset::Ascii },
            colour: if wanted && set("NO_COLOR").is_none() { Colour::On } else { Colour::Off },
            cursor: if can_move { Cursor::Moves } else { Cursor::Stays },
        }
    }

    /// Columns, where they are limited.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        self.size.map(|size| size.width)
    }
}

/// Whether an output is a terminal, and the size that it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tty {
    /// It is.
    Yes(Option<Size>),
    /// It is not.
    No,
}

/// The present size of the terminal at the standard error stream.
#[must_use]
pub fn stderr_size() -> Option<Size> {
    size_of(std::io::stderr())
}

fn size_of(stream: impl std::os::fd::AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let (width, height) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (width > 0 && height > 0).then_some(Size { width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], tty: Tty) -> (Charset, Colour, Cursor) {
        let value =
            |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let terminal = Terminal::from_environment(value, tty);
        (terminal.charset, terminal.colour, terminal.cursor)
    }

    const TTY: Tty = Tty::Yes(None);

    #[test]
    fn a_terminal_with_a_unicode_locale_gets_everything() {
        let expected = (Charset::Unicode, Colour::On, Cursor::Moves);
        assert_eq!(check(&[("TERM", "xterm"), ("LANG", "en_GB.UTF-8")], TTY), expected);
        assert_eq!(check(&[("TERM", "xterm"), ("LANG", "C"), ("LC_ALL", "C.utf8")], TTY), expected);
    }

    #[test]
    fn the_locale_decides_the_letters() {
        assert_eq!(check(&[("TERM", "xterm"), ("LANG", "C.UTF-8"), ("LC_ALL", "C")], TTY).0, Charset::Ascii);
        assert_eq!(check(&[("LANG", "C.UTF-8"), ("LC_ALL", "")], TTY).0, Charset::Unicode);
        assert_eq!(check(&[], TTY).0, Charset::Ascii);
    }

    #[test]
    fn colour_can_be_turned_off_and_forced() {
        let terminal = [("TERM", "xterm")];
        for (name, value, expected) in [
            ("NO_COLOR", "1", Colour::Off),
            ("NO_COLOR", "", Colour::On),
            ("CLICOLOR", "0", Colour::Off),
            ("CLICOLOR", "1", Colour::On),
        ] {
            assert_eq!(check(&[terminal[0], (name, value)], TTY).1, expected, "{name}={value}");
        }
        assert_eq!(check(&[("CLICOLOR_FORCE", "1")], Tty::No).1, Colour::On);
        assert_eq!(check(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], Tty::No).1, Colour::Off);
    }

    #[test]
    fn a_pipe_and_a_dumb_terminal_only_append() {
        assert_eq!(check(&[("TERM", "xterm")], Tty::No), (Charset::Ascii, Colour::Off, Cursor::Stays));
        assert_eq!(check(&[("TERM", "dumb")], TTY), (Charset::Ascii, Colour::Off, Cursor::Stays));
        assert_eq!(check(&[], TTY).2, Cursor::Stays);
    }
}
