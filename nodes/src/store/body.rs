//! The answer to a request for bytes.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use super::error::ErrorKind;
use super::failure::Failure;
use super::meta::Head;

/// What is slower than this on the whole is no answer.
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;

/// The answer to a request for bytes.
pub(super) struct Answer {
    pub(super) head: Head,
    /// Where in the object the body starts: a server that knows no ranges starts at 0 whatever was asked.
    pub(super) start: u64,
    pub(super) body: BoxStream<'static, Result<Bytes, Failure>>,
}

/// Takes a body piece by piece, none of which may be long in coming, and all of which must come at a minimal rate.
pub(super) struct Pieces {
    body: BoxStream<'static, Result<Bytes, Failure>>,
    /// How many bytes are still to be passed over.
    n_skipped: u64,
    /// How many bytes are wanted after these; no end is known if there is none.
    n_left: Option<u64>,
    timeout: Duration,
    /// Time that was spent waiting, and bytes that came.
    waited: Duration,
    n_come: u64,
}

/// The longest that a request with so many bytes may take.
pub(super) fn time_for(n_bytes: u64, timeout: Duration) -> Duration {
    timeout + Duration::from_secs(n_bytes / SLOWEST_BYTES_PER_S)
}

impl Answer {
    /// The bytes `from..end` of the object, or all after `from` if no end is known.
    pub(super) fn pieces(self, from: u64, end: Option<u64>, timeout: Duration) -> Result<Pieces, Failure> {
        let Some(n_skipped) = from.checked_sub(self.start) else {
            return Err(Failure::new(ErrorKind::Other, "the answer starts after what was asked for"));
        };
        let n_left = end.map(|end| end.saturating_sub(from));
        Ok(Pieces { body: self.body, n_skipped, n_left, timeout, waited: Duration::ZERO, n_come: 0 })
    }
}

impl Pieces {
    /// The next piece; none at the end.
    ///
    /// # Errors
    /// If the body breaks, ends too early, or does not come in time.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if self.n_left == Some(0) {
                return Ok(None);
            }
            let began = Instant::now();
            let allowed = time_for(self.n_come, self.timeout).saturating_sub(self.waited).min(self.timeout);
            let piece = tokio::time::timeout(allowed, self.body.next()).await;
            self.waited += began.elapsed();
            let mut piece = match piece {
                Err(_) => return Err(Failure::timeout(self.timeout)),
                Ok(Some(piece)) => piece?,
                Ok(None) if self.n_left.is_none() && self.n_skipped == 0 => return Ok(None),
                Ok(None) => return Err(Failure::new(ErrorKind::Network, "the body ended too early")),
            };
            self.n_come += piece.len() as u64;
            let n_skipped = self.n_skipped.min(piece.len() as u64);
            self.n_skipped -= n_skipped;
            let mut piece = piece.split_off(n_skipped as usize);
            if let Some(n_left) = &mut self.n_left {
                piece.truncate(usize::try_from(*n_left).unwrap_or(usize::MAX));
                *n_left -= piece.len() as u64;
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(future)
    }

    fn pieces(from: u64, end: Option<u64>, start: u64, parts: &[&'static str]) -> Result<Vec<u8>, Failure> {
        let body =
            futures_util::stream::iter(parts.to_vec()).map(|part| Ok(Bytes::from_static(part.as_bytes()))).boxed();
        let answer = Answer { head: Head::default(), start, body };
        run(async {
            let mut pieces = answer.pieces(from, end, Duration::from_secs(60))?;
            let mut all = Vec::new();
            while let Some(piece) = pieces.next().await? {
                all.extend_from_slice(&piece);
            }
            Ok(all)
        })
    }

    #[test]
    fn what_was_not_asked_for_is_cut_off_at_both_ends() {
        let parts = ["abc", "", "defg", "hij"];
        assert_eq!(pieces(0, None, 0, &parts).unwrap(), b"abcdefghij");
        assert_eq!(pieces(4, Some(8), 0, &parts).unwrap(), b"efgh");
        assert_eq!(pieces(4, None, 4, &parts).unwrap(), b"abcdefghij");
        assert_eq!(pieces(5, Some(5), 0, &parts).unwrap(), b"");
    }

    #[test]
    fn a_body_that_ends_too_early_or_starts_too_late_is_a_failure() {
        assert_eq!(pieces(0, Some(11), 0, &["abcdefghij"]).unwrap_err().kind, ErrorKind::Network);
        assert_eq!(pieces(11, None, 0, &["abcdefghij"]).unwrap_err().kind, ErrorKind::Network);
        assert_eq!(pieces(0, Some(3), 1, &["abc"]).unwrap_err().kind, ErrorKind::Other);
    }
}
