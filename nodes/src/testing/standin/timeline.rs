//! When the engines of a device do what. Pure arithmetic: the time of day comes in, and nothing waits here.

use engine::node::{Span, SpanStage};

use super::description::Times;

/// The engines that all streams of a device share.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    upload: Engine,
    download: Engine,
}

/// The engine that computes one stream's batches.
#[derive(Debug, Default)]
pub(super) struct Stream {
    compute: Engine,
}

/// Does one thing at a time.
#[derive(Debug, Default)]
struct Engine {
    /// When it has done all that it was given.
    free_ns: u64,
}

impl Engine {
    /// Its next free `length` from `ready_ns` on.
    fn book(&mut self, stage: SpanStage, ready_ns: u64, length: u64) -> Span {
        let start_ns = ready_ns.max(self.free_ns);
        self.free_ns = start_ns + length;
        Span { stage, start_ns, end_ns: self.free_ns }
    }
}

impl Timeline {
    /// A batch's upload, computation and download: each after the one before it, and after all that its engine was
    /// given already.
    pub(super) fn book(&mut self, stream: &mut Stream, now_ns: u64, times: Times) -> [Span; 3] {
        let upload = self.upload.book(SpanStage::Upload, now_ns, times.upload);
        let compute = stream.compute.book(SpanStage::Compute, upload.end_ns, times.compute);
        let download = self.download.book(SpanStage::Download, compute.end_ns, times.download);
        [upload, compute, download]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { upload: 10, compute: 10, download: 10 };

    fn starts_and_end(spans: [Span; 3]) -> [u64; 4] {
        assert_eq!(spans.map(|span| span.stage), [SpanStage::Upload, SpanStage::Compute, SpanStage::Download]);
        let [upload, compute, download] = spans;
        [upload.start_ns, compute.start_ns, download.start_ns, download.end_ns]
    }

    #[test]
    fn the_stages_of_a_stream_overlap() {
        let (mut timeline, mut stream) = (Timeline::default(), Stream::default());
        assert_eq!(starts_and_end(timeline.book(&mut stream, 100, TIMES)), [100, 110, 120, 130]);
        assert_eq!(starts_and_end(timeline.book(&mut stream, 101, TIMES)), [110, 120, 130, 140]);
        assert_eq!(starts_and_end(timeline.book(&mut stream, 102, TIMES)), [120, 130, 140, 150]);
    }

    #[test]
    fn with_three_slots_a_hundred_batches_take_the_time_of_a_hundred_and_two() {
        let (mut timeline, mut stream) = (Timeline::default(), Stream::default());
        let mut ends = Vec::new();
        for n in 0..100usize {
            // A batch starts when the third before it has been waited for.
            let now = n.checked_sub(3).map_or(0, |before| ends[before]);
            ends.push(starts_and_end(timeline.book(&mut stream, now, TIMES))[3]);
        }
        assert_eq!(ends[99], 1020);
    }

    #[test]
    fn one_slot_hides_nothing() {
        let (mut timeline, mut stream) = (Timeline::default(), Stream::default());
        let end = (0..100).fold(0, |now, _| starts_and_end(timeline.book(&mut stream, now, TIMES))[3]);
        assert_eq!(end, 3000);
    }

    #[test]
    fn two_streams_compute_at_once_and_share_the_way_in_and_out() {
        let (mut timeline, mut one, mut two) = (Timeline::default(), Stream::default(), Stream::default());
        let times = Times { upload: 10, compute: 100, download: 10 };
        assert_eq!(starts_and_end(timeline.book(&mut one, 0, times)), [0, 10, 110, 120]);
        assert_eq!(starts_and_end(timeline.book(&mut two, 0, times)), [10, 20, 120, 130]);
    }

    #[test]
    fn an_idle_engine_starts_when_it_is_told_to() {
        let (mut timeline, mut stream) = (Timeline::default(), Stream::default());
        timeline.book(&mut stream, 0, TIMES);
        assert_eq!(starts_and_end(timeline.book(&mut stream, 1000, TIMES)), [1000, 1010, 1020, 1030]);
    }
}
