//! Figures for people.

use std::time::Duration;

pub use engine::graph::render::figures::{grouped, percent, rate};

const SECONDS_PER_MINUTE: u64 = 60;
const SECONDS_PER_HOUR: u64 = 3_600;
const SECONDS_PER_DAY: u64 = 86_400;

/// A time in its two largest units: `0.84 s`, `12.3 s`, `7 m 12 s`, `2 h 5 m`, `3 d 4 h`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    whole_duration(time)
}

/// As [`duration`], without parts of a second: for times that are guessed.
#[must_use]
pub fn whole_duration(time: Duration) -> String {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_millis() >= 500));
    let (large, large_word, small, small_word) = match seconds {
        0..SECONDS_PER_MINUTE => return format!("{seconds} s"),
        SECONDS_PER_MINUTE..SECONDS_PER_HOUR => (seconds / 60, "m", seconds % 60, "s"),
        SECONDS_PER_HOUR..SECONDS_PER_DAY => (seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => (seconds / SECONDS_PER_DAY, "d", seconds % SECONDS_PER_DAY / 3_600, "h"),
    };
    let large = grouped(large);
    if small == 0 { format!("{large} {large_word}") } else { format!("{large} {large_word} {small} {small_word}") }
}

/// A size in powers of a thousand, with three figures: `17 B`, `9.40 MB`, `214 MB`, `1.20 TB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1_000 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1_000.0;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1_000.0;
        unit += 1;
    }
    let places = if size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    format!("{size:.places$} {}", UNITS[unit])
}

/// A number and its noun: `1 row`, `2,310 rows`.
#[must_use]
pub fn count(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_two_largest_units() {
        let cases = [
            (0.0, "0.00 s"),
            (0.844, "0.84 s"),
            (9.996, "10.0 s"),
            (12.34, "12.3 s"),
            (59.96, "1 m"),
            (432.0, "7 m 12 s"),
            (3_600.0, "1 h"),
            (7_530.0, "2 h 5 m"),
            (273_600.0, "3 d 4 h"),
        ];
        for (seconds, shown) in cases {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), shown);
        }
        assert_eq!(whole_duration(Duration::from_millis(12_600)), "13 s");
        assert_eq!(whole_duration(Duration::from_millis(59_700)), "1 m");
        assert_eq!(duration(Duration::MAX), "213,503,982,334,601 d 7 h");
    }

    #[test]
    fn sizes_have_three_figures() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (9_400_000, "9.40 MB"),
            (213_600_000, "214 MB"),
            (999_600_000, "1.00 GB"),
            (u64::MAX, "18.4 EB"),
        ];
        for (n, shown) in cases {
            assert_eq!(bytes(n), shown);
        }
    }

    #[test]
    fn one_of_a_thing_has_no_s() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "reject"), "0 rejects");
        assert_eq!(count(2_310, "row"), "2,310 rows");
    }
}
