//! Files packed as `source.webdataset` and the tables take them.

use crate::mutate::Random;
use crate::sums::crc32;

/// A gzip member that stores its bytes as they are.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(0xffff).peekable();
    if bytes.is_empty() {
        packed.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        packed.push(u8::from(blocks.peek().is_none()));
        packed.extend_from_slice(&length.to_le_bytes());
        packed.extend_from_slice(&(!length).to_le_bytes());
        packed.extend_from_slice(block);
    }
    packed.extend_from_slice(&crc32(bytes).to_le_bytes());
    packed.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    packed
}

/// Now and then packed, now and then damaged after that.
pub fn maybe_packed(random: &mut Random, bytes: Vec<u8>) -> Vec<u8> {
    let mut packed = match random.below(8) {
        0 => gzip(&bytes),
        1 => zstd::encode_all(&bytes[..], 1).expect("memory"),
        2 => {
            let half = random.below(bytes.len() + 1);
            [gzip(&bytes[..half]), gzip(&bytes[half..])].concat()
        }
        _ => return bytes,
    };
    if random.one_in(3) {
        let at = random.below(packed.len());
        match random.below(3) {
            0 => packed.truncate(at),
            1 => packed[at] ^= 1 << random.below(8),
            _ => packed.extend_from_slice(&bytes[..bytes.len().min(20)]),
        }
    }
    packed
}
