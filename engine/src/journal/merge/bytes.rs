//! Counting the rows in lines while they are copied.

/// Counts lines that end outside of double quotes: a cell of a table may hold line ends.
#[derive(Debug)]
pub(super) enum LineCount {
    /// Quotes mean nothing.
    Plain {
        /// Line ends so far.
        n_lines: u64,
    },
    /// A quote begins or ends a cell, and two of them inside one are one: either way the state is right at line ends.
    Quoted {
        /// Line ends outside of quotes so far.
        n_lines: u64,
        /// Whether an odd number of quotes has been seen.
        is_open: bool,
    },
}

impl LineCount {
    /// Counts on.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        match self {
            LineCount::Plain { n_lines } => *n_lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64,
            LineCount::Quoted { n_lines, is_open } => {
                for &byte in bytes {
                    *is_open ^= byte == b'"';
                    *n_lines += u64::from(byte == b'\n' && !*is_open);
                }
            }
        }
    }

    /// Lines so far.
    pub(super) fn n_lines(&self) -> u64 {
        match self {
            LineCount::Plain { n_lines } | LineCount::Quoted { n_lines, .. } => *n_lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_outside_of_quotes_wherever_the_bytes_are_cut() {
        let text = b"a,\"b\nc\"\n\"\"\"\n\"\"\",d\n\"\"\n";
        for cut in 0..=text.len() {
            let mut count = LineCount::Quoted { n_lines: 0, is_open: false };
            count.add(&text[..cut]);
            count.add(&text[cut..]);
            assert_eq!(count.n_lines(), 3, "cut at {cut}");
        }
        let mut count = LineCount::Plain { n_lines: 0 };
        count.add(text);
        assert_eq!(count.n_lines(), 5);
    }
}
