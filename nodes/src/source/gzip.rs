//! Gzip, as a row of members: each is checked by its sum and its length.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Unpacks one member after the other, up to the end or to zeros, with which tapes and some tools fill up.
pub(super) struct Gzip<R> {
    /// `None` behind the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(super) fn new(packed: R) -> Self {
        Gzip { member: Some(GzDecoder::new(packed)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n_bytes = member.read(into)?;
            if n_bytes > 0 || into.is_empty() {
                return Ok(n_bytes);
            }
            // The member's sum and length were right, or else this was an error.
            let Some(mut packed) = self.member.take().map(GzDecoder::into_inner) else { break };
            match packed.fill_buf()?.first() {
                None | Some(0) => {}
                Some(_) => self.member = Some(GzDecoder::new(packed)),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// What comes out, and how it ends.
    fn unpacked(bytes: &[u8]) -> (Vec<u8>, io::Result<usize>) {
        let mut text = Vec::new();
        let ended = Gzip::new(BufReader::with_capacity(7, bytes)).read_to_end(&mut text);
        (text, ended)
    }

    #[test]
    fn members_come_out_one_after_the_other_and_zeros_end_them() {
        let two = [packed(b"first "), packed(b"second")].concat();
        for bytes in
            [two.clone(), [&two[..], &[0; 600]].concat(), [packed(b"first "), packed(b""), packed(b"second")].concat()]
        {
            let (text, ended) = unpacked(&bytes);
            assert_eq!((text.as_slice(), ended.unwrap()), (&b"first second"[..], 12));
        }
    }

    #[test]
    fn a_wrong_sum_a_wrong_length_and_a_missing_end_are_errors_behind_what_came_out() {
        let whole = [packed(b"first "), packed(b"second")].concat();
        for at in 1..=8 {
            let mut damaged = whole.clone();
            let place = damaged.len() - at;
            damaged[place] ^= 1;
            let (text, ended) = unpacked(&damaged);
            assert_eq!(text, b"first second", "the byte {at} before the end");
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidInput);
            let (text, ended) = unpacked(&whole[..whole.len() - at]);
            assert_eq!(text, b"first second");
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        let (text, ended) = unpacked(&[&whole[..], b"rubbish"].concat());
        assert_eq!(text, b"first second");
        assert!(ended.is_err());
    }
}
