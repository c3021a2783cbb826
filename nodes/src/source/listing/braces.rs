//! Lists in braces, as a shell expands them: `shard-{000..099}.tar`, `{train,val}-{0..9}.tar`.
//!
//! Each list multiplies what is around it, the last one fastest. A range counts up or down, by a step if it has one
//! (`{0..10..2}`), and its numbers have as many digits as the longer of its ends where one of these begins with a zero.
//! What is neither a range nor has a comma stays as it is written, and so does what `\` stands before.

/// More words than this are no list that somebody wrote.
pub(super) const MAX_WORDS: usize = 1_000_000;

/// The words that `text` stands for; `None` if there are too many.
pub(super) fn expand(text: &str) -> Option<Vec<String>> {
    let Some((before, inside, after)) = first_list(text) else { return Some(vec![text.to_owned()]) };
    let mut middles = Vec::new();
    match range(inside) {
        Some(numbers) => middles = numbers?,
        None => {
            for part in split(inside) {
                middles.extend(expand(part)?);
                if middles.len() > MAX_WORDS {
                    return None;
                }
            }
        }
    }
    let endings = expand(after)?;
    if middles.len().checked_mul(endings.len())? > MAX_WORDS {
        return None;
    }
    let words = middles.iter().flat_map(|middle| endings.iter().map(move |end| format!("{before}{middle}{end}")));
    Some(words.collect())
}

/// `text` with each range as a list of its numbers, which is what globs know; `None` if there are too many.
pub(super) fn with_ranges_as_lists(text: &str) -> Option<String> {
    let Some((before, inside, after)) = first_list(text) else { return Some(text.to_owned()) };
    let inside = match range(inside) {
        Some(numbers) => numbers?.join(","),
        None => with_ranges_as_lists(inside)?,
    };
    Some(format!("{before}{{{inside}}}{}", with_ranges_as_lists(after)?))
}

/// Whether there is a list in it.
pub(super) fn has_list(text: &str) -> bool {
    first_list(text).is_some()
}

/// What comes before, in and after the first list.
fn first_list(text: &str) -> Option<(&str, &str, &str)> {
    let mut start = 0;
    loop {
        let open = start + find(&text[start..], |letter| letter == '{')?;
        let mut depth = 0usize;
        let close = find(&text[open..], |letter| {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        if let Some(close) = close {
            let inside = &text[open + 1..open + close];
            if range(inside).is_some() || split(inside).len() > 1 {
                return Some((&text[..open], inside, &text[open + close + 1..]));
            }
        }
        start = open + 1;
    }
}

/// The first letter that is the one, those behind `\` aside.
fn find(text: &str, mut is_it: impl FnMut(char) -> bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if !is_escaped && letter != '\\' && is_it(letter) {
            return Some(at);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    None
}

/// The parts between commas that are in no inner list.
fn split(inside: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = inside;
    loop {
        let mut depth = 0usize;
        let comma = find(rest, |letter| {
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            letter == ',' && depth == 0
        });
        let Some(comma) = comma else {
            parts.push(rest);
            return parts;
        };
        parts.push(&rest[..comma]);
        rest = &rest[comma + 1..];
    }
}

/// The numbers of `000..099` or `9..0..3`: `None` if it is no range, and `Some(None)` if there are too many.
fn range(inside: &str) -> Option<Option<Vec<String>>> {
    let mut ends = inside.split("..");
    let (first_text, last_text, step_text) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let number = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        (!digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(())?;
        text.parse::<i64>().ok()
    };
    let (first, last) = (number(first_text)?, number(last_text)?);
    let step = step_text.map_or(Some(1), number)?.unsigned_abs().max(1);
    let has_zero = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0')
    };
    let is_padded = has_zero(first_text) || has_zero(last_text);
    let width = if is_padded { first_text.len().max(last_text.len()) } else { 0 };
    let n_steps = first.abs_diff(last) / step;
    if n_steps >= MAX_WORDS as u64 {
        return Some(None);
    }
    let numbers = (0..=n_steps).map(|word| {
        let away = i128::from(word * step);
        let number = i128::from(first) + if first <= last { away } else { -away };
        format!("{number:0width$}")
    });
    Some(Some(numbers.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What bash 5.2 gives for each of these.
    #[test]
    fn lists_are_expanded_as_a_shell_does() {
        for (text, expected) in [
            ("a.tar", "a.tar"),
            ("s-{000..003}.tar", "s-000.tar s-001.tar s-002.tar s-003.tar"),
            ("{8..11}", "8 9 10 11"),
            ("{08..11}", "08 09 10 11"),
            ("{3..1}", "3 2 1"),
            ("{1..10..4}", "1 5 9"),
            ("{-1..1}", "-1 0 1"),
            ("{a,b}-{0..1}.tar", "a-0.tar a-1.tar b-0.tar b-1.tar"),
            ("{a,b{1..2},c}x", "ax b1x b2x cx"),
            ("{,x}y", "y xy"),
            ("{a}{1}{}", "{a}{1}{}"),
            ("{a{0..1}}", "{a0} {a1}"),
            ("{0..1", "{0..1"),
            (r"\{0..1}", r"\{0..1}"),
            ("{0..x}", "{0..x}"),
            ("{0..1}{a,b}", "0a 0b 1a 1b"),
        ] {
            assert_eq!(expand(text).unwrap().join(" "), expected, "{text}");
        }
    }

    #[test]
    fn lists_that_nobody_can_have_meant_are_refused_without_making_them() {
        for text in ["{0..99999999999}", "{0..999}{0..999}{0..999}", "{-9223372036854775808..9223372036854775807}"] {
            assert_eq!(expand(text), None, "{text}");
        }
        assert_eq!(expand("{0..999}{0..999}").unwrap().len(), 1_000_000);
    }

    #[test]
    fn globs_get_the_numbers_of_ranges() {
        assert_eq!(with_ranges_as_lists("a-{08..10}*.{tar,{1..2}}").unwrap(), "a-{08,09,10}*.{tar,{1,2}}");
        assert_eq!(with_ranges_as_lists("{x}/*").unwrap(), "{x}/*");
    }
}
