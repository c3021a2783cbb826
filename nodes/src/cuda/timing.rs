//! What a GPU did when, on the clock that all processes share.
//!
//! A GPU's events tell how much time lies between them and not when they were. The host knows two bounds: nothing began
//! before the batch was started, and all had ended when the waiting thread was told so. That thread sleeps on the last
//! event, so the end is near the truth; where it came late, because it was still busy with the batch before, the batch
//! seems to have been that much later.

use engine::node::{Span, SpanStage};

/// The spans of one batch: `elapsed_ms` from the first mark to the others, as
/// [`Marks::elapsed_ms`](super::streams::Marks::elapsed_ms) has them, on the host's clock between `started_ns` and
/// `ended_ns`.
pub(super) fn spans(elapsed_ms: [f32; 5], started_ns: u64, ended_ns: u64) -> Vec<Span> {
    let [uploaded, computing, computed, downloading, downloaded] = elapsed_ms.map(nanoseconds);
    let first = ended_ns.saturating_sub(downloaded).max(started_ns);
    let span = |stage, start: u64, end: u64| {
        let [start_ns, end_ns] = [start, end.max(start)].map(|since| first.saturating_add(since));
        Span { stage, start_ns, end_ns }
    };
    vec![
        span(SpanStage::Upload, 0, uploaded),
        span(SpanStage::Compute, computing, computed),
        span(SpanStage::Download, downloading, downloaded),
    ]
}

fn nanoseconds(ms: f32) -> u64 {
    // A conversion of a negative number or a NaN gives zero.
    (f64::from(ms) * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(started_ns: u64, ended_ns: u64, expected: [[u64; 2]; 3]) {
        let found = spans([1.0, 1.5, 3.5, 4.0, 4.25], started_ns, ended_ns);
        let stages = [SpanStage::Upload, SpanStage::Compute, SpanStage::Download];
        let wanted = stages.into_iter().zip(expected);
        let wanted: Vec<Span> = wanted.map(|(stage, [start_ns, end_ns])| Span { stage, start_ns, end_ns }).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn spans_end_when_the_host_was_told() {
        let second = 1_000_000_000;
        check(
            second,
            2 * second,
            [
                [2 * second - 4_250_000, 2 * second - 3_250_000],
                [2 * second - 2_750_000, 2 * second - 750_000],
                [2 * second - 250_000, 2 * second],
            ],
        );
    }

    #[test]
    fn nothing_begins_before_it_was_started() {
        let started = 5_000_000;
        check(
            started,
            started + 4_000_000,
            [
                [started, started + 1_000_000],
                [started + 1_500_000, started + 3_500_000],
                [started + 4_000_000, started + 4_250_000],
            ],
        );
    }

    #[test]
    fn a_clock_that_makes_no_sense_makes_no_panic() {
        for spans in [spans([f32::NAN; 5], 7, 9), spans([-1.0, f32::INFINITY, -2.0, 0.0, 0.0], 7, 9)] {
            assert!(spans.iter().all(|span| span.start_ns >= 7 && span.end_ns >= span.start_ns));
        }
    }
}
