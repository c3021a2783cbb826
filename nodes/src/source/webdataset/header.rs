//! One block of 512 bytes that says what follows in a tar.

/// Headers and padding come in units of this.
pub(super) const BLOCK: usize = 512;

/// A block of a tar.
pub(super) struct Header([u8; BLOCK]);

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file.
    File,
    /// A regular file of which only parts are stored.
    Sparse,
    /// A folder, a link, a device: nothing is stored for it, whatever its size says.
    Bodiless,
    /// GNU: the next member's name.
    LongName,
    /// PAX: more about the next member.
    Pax,
    /// PAX: more about all members that follow.
    GlobalPax,
    /// Something else, that has a body.
    Unknown,
}

impl Header {
    pub(super) fn new(block: [u8; BLOCK]) -> Self {
        Header(block)
    }

    /// Whether it marks the end.
    pub(super) fn is_end(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }

    /// Whether its sum is right: of unsigned bytes, or of signed ones as some old programs had it.
    pub(super) fn has_right_sum(&self) -> bool {
        let is_summed = |at: usize| !(148..156).contains(&at);
        let bytes = || self.0.iter().enumerate().filter(|&(at, _)| is_summed(at)).map(|(_, &byte)| byte);
        let spaces = 8 * i64::from(b' ');
        let unsigned = spaces + bytes().map(i64::from).sum::<i64>();
        let signed = spaces + bytes().map(|byte| i64::from(byte as i8)).sum::<i64>();
        number(&self.0[148..156]).is_some_and(|sum| sum == unsigned || sum == signed)
    }

    pub(super) fn kind(&self) -> Kind {
        match self.0[156] {
            0 if self.0[..100].split(|&byte| byte == 0).next().is_some_and(|name| name.ends_with(b"/")) => {
                Kind::Bodiless
            }
            0 | b'0' | b'7' => Kind::File,
            b'S' => Kind::Sparse,
            b'1'..=b'6' => Kind::Bodiless,
            b'L' => Kind::LongName,
            b'x' | b'X' => Kind::Pax,
            b'g' => Kind::GlobalPax,
            _ => Kind::Unknown,
        }
    }

    /// The bytes of its body; `None` if that is no number, or a negative one.
    pub(super) fn size(&self) -> Option<u64> {
        u64::try_from(number(&self.0[124..136])?).ok()
    }

    /// Its name, with what the newer form has before it.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = text(&self.0[..100]);
        let prefix = text(&self.0[345..500]);
        if &self.0[257..263] == b"ustar\0" && !prefix.is_empty() {
            return [prefix, b"/", name].concat();
        }
        name.to_owned()
    }

    /// For the old form of sparse files: whether a block follows that says more.
    pub(super) fn is_extended(&self) -> bool {
        self.0[482] != 0
    }

    /// The same in such a block.
    pub(super) fn goes_on(&self) -> bool {
        self.0[504] != 0
    }
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A number in octal digits, or where the first bit is set in binary.
fn number(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first == 0x80 || first == 0xff {
        let start = if first == 0xff { -1 } else { 0 };
        return rest.iter().try_fold(start, |number: i64, &byte| number.checked_mul(256)?.checked_add(i64::from(byte)));
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0, |number: i64, &digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0\0", Some(0)),
            (b"77777777777\0", Some(0o77_777_777_777)),
            (b"\x80\0\0\0\0\0\0\x02\0\0\0\0", Some(2 << 32)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"0000649\0", None),
            (b"-000644\0", None),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}
