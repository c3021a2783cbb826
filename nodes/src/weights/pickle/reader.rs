//! The operands of pickle instructions.

use super::malformed;
use crate::weights::error::WeightsFault;

/// Takes operands off the front; never beyond the end.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins at byte `start` of the file; positions count from the file's beginning.
    pub fn new(file: &'a [u8], start: usize) -> Self {
        Self { bytes: file, at: start.min(file.len()) }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn take(&mut self, length: u64) -> Result<&'a [u8], WeightsFault> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let taken = taken
            .ok_or_else(|| malformed(format!("breaks off at byte {}, in the middle of a value", self.bytes.len())))?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WeightsFault> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.try_into().expect("exactly N bytes were taken"))
    }

    pub fn byte(&mut self) -> Result<u8, WeightsFault> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, WeightsFault> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, WeightsFault> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, WeightsFault> {
        self.array().map(u64::from_le_bytes)
    }

    /// A signed number of `length` bytes, at most the 16 that any number in a weight file needs.
    pub fn long(&mut self, length: u64) -> Result<i128, WeightsFault> {
        let bytes = self.take(length)?;
        if bytes.len() > size_of::<i128>() {
            return Err(malformed(format!("has a number of {length} bytes")));
        }
        let is_negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
        let mut extended = [if is_negative { 0xff } else { 0 }; size_of::<i128>()];
        extended[..bytes.len()].copy_from_slice(bytes);
        Ok(i128::from_le_bytes(extended))
    }

    /// Text up to a line feed, as in the names of functions.
    pub fn line(&mut self) -> Result<&'a str, WeightsFault> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let length = length.ok_or_else(|| malformed("breaks off in the middle of a name"))?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).map_err(|_| malformed("has a name that is not text"))
    }
}
