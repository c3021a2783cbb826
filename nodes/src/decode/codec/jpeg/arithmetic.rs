//! The adaptive binary arithmetic decoder of annex D of the standard.
//!
//! Behind the last byte of a scan come zeros, as many as are asked for: encoders leave them out. So a cut cannot be told here.

use super::super::super::error::DecodeError;
use super::segments::behind_restart;

/// What was learned in one context: an index of [`ESTIMATES`], and in the highest bit the more probable decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Context(u8);

impl Context {
    /// Both decisions are equally probable, and nothing is learned.
    pub(super) const FIXED: Self = Self(113);
}

/// Takes decisions from the bytes of a scan.
#[derive(Debug)]
pub(super) struct Decider<'a> {
    bytes: &'a [u8],
    at: usize,
    code: u32,
    interval: u32,
    /// Shifts until the next byte is due; below zero while the first two bytes are.
    shifts: i32,
}

impl<'a> Decider<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, code: 0, interval: 0, shifts: -16 }
    }

    /// Where the next marker is to be looked for.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// One decision.
    pub(super) fn decide(&mut self, context: &mut Context) -> bool {
        while self.interval < 0x8000 {
            self.shifts -= 1;
            if self.shifts < 0 {
                self.code = self.code << 8 | u32::from(self.next_byte());
                self.shifts += 8;
                if self.shifts < 0 {
                    self.shifts += 1;
                    if self.shifts == 0 {
                        // Both first bytes are there: the shift below makes this the whole interval.
                        self.interval = 0x8000;
                    }
                }
            }
            self.interval <<= 1;
        }
        let (less_probable, after_less, after_more, switches) =
            ESTIMATES[usize::from(context.0 & 127) % ESTIMATES.len()];
        let less_probable = u32::from(less_probable);
        let probable = context.0 & 128;
        self.interval -= less_probable;
        let bound = self.interval << self.shifts;
        let is_lower = self.code < bound;
        if is_lower && self.interval >= 0x8000 {
            return probable != 0;
        }
        // Where the less probable part has become the larger one, the two change places.
        let is_exchanged = self.interval < less_probable;
        if !is_lower {
            self.code -= bound;
            self.interval = less_probable;
        }
        if is_lower != is_exchanged {
            context.0 = probable | after_more;
            probable != 0
        } else {
            context.0 = (probable ^ switches << 7) | after_less;
            probable == 0
        }
    }

    fn next_byte(&mut self) -> u8 {
        let Some(&byte) = self.bytes.get(self.at) else {
            return 0;
        };
        if byte < 0xff {
            self.at += 1;
            return byte;
        }
        let fill = self.bytes[self.at..].iter().take_while(|&&byte| byte == 0xff).count();
        if self.bytes.get(self.at + fill) != Some(&0) {
            return 0;
        }
        self.at += fill + 1;
        0xff
    }

    /// Whether all bytes before the next marker were taken, and zeros may have been since.
    pub(super) fn is_exhausted(&self) -> bool {
        match self.bytes.get(self.at..) {
            Some([0xff, next, ..]) => *next != 0,
            Some([0xff] | []) | None => true,
            Some(_) => false,
        }
    }

    /// Passes the restart marker number `n` (of 8), and what stands before it.
    pub(super) fn restart(&mut self, n: u8) -> Result<(), DecodeError> {
        *self = Self::new(self.bytes, behind_restart(self.bytes, self.at, n)?);
        Ok(())
    }
}

/// Table D.2: the size of the less probable part, the estimates that follow a less and a more probable decision, and whether the
/// former makes the two change places. The last entry is for decisions of equal probability.
static ESTIMATES: [(u16, u8, u8, u8); 114] = [
    (0x5a1d, 1, 1, 1),
    (0x2586, 14, 2, 0),
    (0x1114, 16, 3, 0),
    (0x080b, 18, 4, 0),
    (0x03d8, 20, 5, 0),
    (0x01da, 23, 6, 0),
    (0x00e5, 25, 7, 0),
    (0x006f, 28, 8, 0),
    (0x0036, 30, 9, 0),
    (0x001a, 33, 10, 0),
    (0x000d, 35, 11, 0),
    (0x0006, 9, 12, 0),
    (0x0003, 10, 13, 0),
    (0x0001, 12, 13, 0),
    (0x5a7f, 15, 15, 1),
    (0x3f25, 36, 16, 0),
    (0x2cf2, 38, 17, 0),
    (0x207c, 39, 18, 0),
    (0x17b9, 40, 19, 0),
    (0x1182, 42, 20, 0),
    (0x0cef, 43, 21, 0),
    (0x09a1, 45, 22, 0),
    (0x072f, 46, 23, 0),
    (0x055c, 48, 24, 0),
    (0x0406, 49, 25, 0),
    (0x0303, 51, 26, 0),
    (0x0240, 52, 27, 0),
    (0x01b1, 54, 28, 0),
    (0x0144, 56, 29, 0),
    (0x00f5, 57, 30, 0),
    (0x00b7, 59, 31, 0),
    (0x008a, 60, 32, 0),
    (0x0068, 62, 33, 0),
    (0x004e, 63, 34, 0),
    (0x003b, 32, 35, 0),
    (0x002c, 33, 9, 0),
    (0x5ae1, 37, 37, 1),
    (0x484c, 64, 38, 0),
    (0x3a0d, 65, 39, 0),
    (0x2ef1, 67, 40, 0),
    (0x261f, 68, 41, 0),
    (0x1f33, 69, 42, 0),
    (0x19a8, 70, 43, 0),
    (0x1518, 72, 44, 0),
    (0x1177, 73, 45, 0),
    (0x0e74, 74, 46, 0),
    (0x0bfb, 75, 47, 0),
    (0x09f8, 77, 48, 0),
    (0x0861, 78, 49, 0),
    (0x0706, 79, 50, 0),
    (0x05cd, 48, 51, 0),
    (0x04de, 50, 52, 0),
    (0x040f, 50, 53, 0),
    (0x0363, 51, 54, 0),
    (0x02d4, 52, 55, 0),
    (0x025c, 53, 56, 0),
    (0x01f8, 54, 57, 0),
    (0x01a4, 55, 58, 0),
    (0x0160, 56, 59, 0),
    (0x0125, 57, 60, 0),
    (0x00f6, 58, 61, 0),
    (0x00cb, 59, 62, 0),
    (0x00ab, 61, 63, 0),
    (0x008f, 61, 32, 0),
    (0x5b12, 65, 65, 1),
    (0x4d04, 80, 66, 0),
    (0x412c, 81, 67, 0),
    (0x37d8, 82, 68, 0),
    (0x2fe8, 83, 69, 0),
    (0x293c, 84, 70, 0),
    (0x2379, 86, 71, 0),
    (0x1edf, 87, 72, 0),
    (0x1aa9, 87, 73, 0),
    (0x174e, 72, 74, 0),
    (0x1424, 72, 75, 0),
    (0x119c, 74, 76, 0),
    (0x0f6b, 74, 77, 0),
    (0x0d51, 75, 78, 0),
    (0x0bb6, 77, 79, 0),
    (0x0a40, 77, 48, 0),
    (0x5832, 80, 81, 1),
    (0x4d1c, 88, 82, 0),
    (0x438e, 89, 83, 0),
    (0x3bdd, 90, 84, 0),
    (0x34ee, 91, 85, 0),
    (0x2eae, 92, 86, 0),
    (0x299a, 93, 87, 0),
    (0x2516, 86, 71, 0),
    (0x5570, 88, 89, 1),
    (0x4ca9, 95, 90, 0),
    (0x44d9, 96, 91, 0),
    (0x3e22, 97, 92, 0),
    (0x3824, 99, 93, 0),
    (0x32b4, 99, 94, 0),
    (0x2e17, 93, 86, 0),
    (0x56a8, 95, 96, 1),
    (0x4f46, 101, 97, 0),
    (0x47e5, 102, 98, 0),
    (0x41cf, 103, 99, 0),
    (0x3c3d, 104, 100, 0),
    (0x375e, 99, 93, 0),
    (0x5231, 105, 102, 0),
    (0x4c0f, 106, 103, 0),
    (0x4639, 107, 104, 0),
    (0x415e, 103, 99, 0),
    (0x5627, 105, 106, 1),
    (0x50e7, 108, 107, 0),
    (0x4b85, 109, 103, 0),
    (0x5597, 110, 109, 0),
    (0x504f, 111, 107, 0),
    (0x5a10, 110, 111, 1),
    (0x5522, 112, 109, 0),
    (0x59eb, 112, 111, 1),
    (0x5a1d, 113, 113, 0),
];
