//! Checksums, to be made right again in inputs that were changed.

/// As in gzip, zip and PNG.
pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), |sum, _| step(sum)))
}

#[test]
fn the_sum_is_the_known_one() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}
