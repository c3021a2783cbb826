//! `${name}`, `${env:NAME}` and `$$` inside a text.

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// `$$`, which is one `$`.
    Dollar,
    /// `${…}`: what is between the braces, and the byte at which the `$` stands.
    Reference { inside: &'t str, at: usize },
    /// `${` without a `}`, at a byte.
    Open { at: usize },
}

/// Cuts a text into its pieces.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut search = 0;
    while let Some(found) = text[search..].find('$') {
        let at = search + found;
        let rest = &text[at + 1..];
        let (piece, length) = if rest.starts_with('$') {
            (Piece::Dollar, 2)
        } else if let Some(inside) = rest.strip_prefix('{') {
            match inside.find('}') {
                Some(close) => (Piece::Reference { inside: &inside[..close], at }, close + 3),
                None => (Piece::Open { at }, text.len() - at),
            }
        } else {
            search = at + 1;
            continue;
        };
        if from < at {
            pieces.push(Piece::Text(&text[from..at]));
        }
        pieces.push(piece);
        from = at + length;
        search = from;
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    pieces
}

/// Whether a variable can be called so.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_escapes_and_plain_dollars() {
        let reference = |inside, at| Piece::Reference { inside, at };
        assert_eq!(pieces("a${b}c"), [Piece::Text("a"), reference("b", 1), Piece::Text("c")]);
        assert_eq!(pieces("$${b}"), [Piece::Dollar, Piece::Text("{b}")]);
        assert_eq!(pieces("5$ ${env:X}"), [Piece::Text("5$ "), reference("env:X", 3)]);
        assert_eq!(pieces("x${"), [Piece::Text("x"), Piece::Open { at: 1 }]);
        assert_eq!(pieces("$$$"), [Piece::Dollar, Piece::Text("$")]);
        assert_eq!(pieces(""), []);
    }
}
