//! One thing that is wrong in a pipeline file, and what to write instead.

use super::{Span, nearest};

/// Something wrong in a pipeline, told so that it can be put right: where, what, and what was likely meant.
///
/// ```
/// use engine::config::{Mistake, Span};
///
/// let mistake = Mistake::at(Span::new(12, 18), "node `pixles` does not exist")
///     .label("did you mean `pixels`?")
///     .note("nodes above: photos, pixels");
/// assert_eq!(mistake.notes.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mistake {
    /// Where it is; `None` for what is not in the file, such as a `--set`.
    pub span: Option<Span>,
    /// What is wrong: lower case, no full stop, names in backticks.
    pub message: String,
    /// What stands beside the underlining; may be empty.
    pub label: String,
    /// Lines below, such as the list of what is possible.
    pub notes: Vec<String>,
    /// Other places that have to do with it.
    pub secondary: Vec<(Span, String)>,
}

impl Mistake {
    /// A mistake at a place in the file.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::nowhere(message) }
    }

    /// A mistake that has no place in the file.
    pub fn nowhere(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: String::new(), notes: Vec::new(), secondary: Vec::new() }
    }

    /// Sets the words beside the underlining.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a line below.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds another place that has to do with it.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push((span, text.into()));
        self
    }

    /// Asks "did you mean …?" beside the underlining if one of `names` is near to what was written.
    #[must_use]
    pub fn suggest<'a>(self, written: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(written, names) {
            Some(name) => self.label(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// The same with every text passed through `change`.
    pub(super) fn map_texts(mut self, change: impl Fn(&str) -> String) -> Self {
        self.message = change(&self.message);
        self.label = change(&self.label);
        self.notes = self.notes.iter().map(|note| change(note)).collect();
        self.secondary = self.secondary.into_iter().map(|(span, text)| (span, change(&text))).collect();
        self
    }
}
