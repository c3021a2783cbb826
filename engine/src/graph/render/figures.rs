//! Figures for people: grouped integers, rates, shares.

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Rows a second, with three figures where the number is small: `2,310/s`, `23.1/s`, `0.04/s`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    if !per_s.is_finite() || per_s <= 0.0 {
        return "0/s".to_owned();
    }
    if per_s >= 99.95 {
        return format!("{}/s", grouped(per_s.round() as u64));
    }
    if per_s >= 9.995 { format!("{per_s:.1}/s") } else { format!("{per_s:.2}/s") }
}

/// A share of 1 as `97 %`. What is not nothing is at least `1 %`, and what is not all at most `99 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", whole_percent(share))
}

/// The number of [`percent`].
#[must_use]
pub fn whole_percent(share: f64) -> u8 {
    if share.is_nan() || share <= 0.0 {
        return 0;
    }
    if share >= 1.0 {
        return 100;
    }
    // A sliver under half a thousandth is noise of the clock, not work.
    if share < 0.0005 {
        return 0;
    }
    (share * 100.0).round().clamp(1.0, 99.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_grouped_by_three() {
        for (n, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_000_000, "1,000,000"), (12_345, "12,345")] {
            assert_eq!(grouped(n), shown);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn rates_keep_three_figures() {
        let cases = [
            (0.0, "0/s"),
            (f64::NAN, "0/s"),
            (-1.0, "0/s"),
            (0.5, "0.50/s"),
            (9.996, "10.0/s"),
            (99.96, "100/s"),
            (2310.4, "2,310/s"),
        ];
        for (per_s, shown) in cases {
            assert_eq!(rate(per_s), shown);
        }
    }

    #[test]
    fn shares_round_away_from_nothing_and_all() {
        let cases = [
            (0.0, "0 %"),
            (0.0001, "0 %"),
            (0.002, "1 %"),
            (0.5, "50 %"),
            (0.999, "99 %"),
            (1.0, "100 %"),
            (7.0, "100 %"),
        ];
        for (share, shown) in cases {
            assert_eq!(percent(share), shown);
        }
        assert_eq!(percent(f64::NAN), "0 %");
    }
}
