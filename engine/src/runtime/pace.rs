//! What rows of a stage take, learned from those before: how large the next grain may be.

/// A grain is to take about this long: a hand-over costs a hundredth of it.
const GRAIN_NANOS: f64 = 500_000.0;
/// A grain is to give about as many bytes at most, so that queues bounded in bytes have something to bound.
const GRAIN_BYTES: f64 = 1_048_576.0;
/// Rows of a grain at most.
pub(super) const GRAIN_ROWS: usize = 1024;

/// What rows have taken so far, recent ones counting more.
#[derive(Default)]
pub(super) struct Pace {
    nanos_per_row: f64,
    bytes_per_row: f64,
    input_per_row: f64,
    n_grains: u64,
}

/// What a grain was like.
#[derive(Clone, Copy)]
pub(super) struct Past {
    pub(super) n_rows: usize,
    pub(super) nanos: u64,
    /// Bytes that it gave.
    pub(super) bytes: usize,
    /// Bytes that a row of its input had.
    pub(super) input_per_row: f64,
}

impl Pace {
    /// Takes a grain that has ended into account.
    pub(super) fn learn(&mut self, grain: Past) {
        let weight = if self.n_grains == 0 { 1.0 } else { 0.2 };
        self.n_grains += 1;
        let rows = grain.n_rows.max(1) as f64;
        self.nanos_per_row += weight * (grain.nanos as f64 / rows - self.nanos_per_row);
        self.bytes_per_row += weight * (grain.bytes as f64 / rows - self.bytes_per_row);
        self.input_per_row += weight * (grain.input_per_row - self.input_per_row);
    }

    /// Whether a grain has ended: until then nothing can be said about bytes.
    pub(super) fn is_known(&self) -> bool {
        self.n_grains > 0
    }

    /// Rows of the next grain, from rows of so many bytes each. Before the first grain has ended nothing is known, so
    /// grains are single rows.
    pub(super) fn grain_rows(&self, input_per_row: f64) -> usize {
        if !self.is_known() {
            return 1;
        }
        let scale = self.scale(input_per_row);
        let by_time = GRAIN_NANOS / (self.nanos_per_row * scale).max(1.0);
        let by_bytes = GRAIN_BYTES / (self.bytes_per_row * scale).max(1.0);
        (by_time.min(by_bytes) as usize).clamp(1, GRAIN_ROWS)
    }

    /// Bytes that rows will give.
    pub(super) fn bytes_of(&self, n_rows: usize) -> usize {
        (self.bytes_per_row * n_rows as f64) as usize
    }

    /// Bytes that the next grain will give.
    pub(super) fn grain_bytes(&self, input_per_row: f64) -> usize {
        (self.bytes_per_row * self.scale(input_per_row)) as usize * self.grain_rows(input_per_row)
    }

    /// Larger rows than those before take and give more, in proportion: large photographs after thumbnails must not come
    /// in grains of as many. That smaller ones take less has to show itself first.
    fn scale(&self, input_per_row: f64) -> f64 {
        if self.input_per_row > 0.0 { (input_per_row / self.input_per_row).max(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(n_rows: usize, nanos: u64, bytes: usize, input_per_row: f64) -> Pace {
        let mut pace = Pace::default();
        pace.learn(Past { n_rows, nanos, bytes, input_per_row });
        pace
    }

    #[test]
    fn grains_are_single_rows_until_one_has_ended() {
        let pace = Pace::default();
        assert_eq!((pace.is_known(), pace.grain_rows(1e6)), (false, 1));
    }

    #[test]
    fn grains_are_bounded_in_time_in_bytes_and_in_rows() {
        let check = |nanos, bytes, expected| assert_eq!(after(1, nanos, bytes, 0.0).grain_rows(0.0), expected);
        check(50_000, 1, 10);
        check(1, 262_144, 4);
        check(1, 1, GRAIN_ROWS);
        check(50_000_000, 36_000_000, 1);
    }

    #[test]
    fn large_rows_after_small_ones_come_in_small_grains() {
        // 100 thumbnails of 2 kB, 12 kB of pixels each; then photographs of 1.2 MB.
        let pace = after(100, 1_000_000, 1_200_000, 2_000.0);
        assert_eq!(pace.grain_rows(2_000.0), 50);
        assert_eq!(pace.grain_rows(1_000.0), 50);
        assert_eq!(pace.grain_rows(1_200_000.0), 1);
        assert_eq!(pace.grain_bytes(1_200_000.0), 7_200_000);
    }
}
