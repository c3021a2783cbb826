//! How far pixels may be from Pillow's.

use serde::Serialize;

/// The largest difference of one sample that is allowed, and the mean one over a picture, of 255.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Bound {
    /// The largest.
    pub(super) most: u8,
    /// The mean.
    pub(super) mean: f64,
}

/// Lossless formats are decoded to the same bytes; resampling is Pillow's own arithmetic.
const LOSSLESS: Bound = Bound { most: 1, mean: 0.01 };

/// JPEG leaves open how its cosine transform is rounded.
const JPEG: Bound = Bound { most: 5, mean: 0.7 };

/// The format's definition says what each sample is.
const LOSSY_WEBP: Bound = Bound { most: 1, mean: 0.01 };

impl Bound {
    /// That of a kind of file, as the reference names it.
    pub(super) fn of(kind: &str) -> Self {
        let mut words = kind.split(' ');
        match (words.next(), words.next_back()) {
            (Some("JPEG" | "MPO"), _) | (Some("TIFF"), Some("lossy")) => JPEG,
            (Some("WEBP"), Some("lossy")) => LOSSY_WEBP,
            _ => LOSSLESS,
        }
    }

    /// Whether a picture is within it.
    pub(super) fn holds(self, most: u8, mean: f64) -> bool {
        most <= self.most && mean <= self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_has_its_bound() {
        let check = |kind: &str, expected: Bound| assert_eq!(Bound::of(kind), expected, "{kind}");
        check("JPEG RGB 4:2:0", JPEG);
        check("JPEG L", JPEG);
        check("MPO RGB", JPEG);
        check("TIFF RGB lossy", JPEG);
        check("TIFF RGB", LOSSLESS);
        check("WEBP RGB lossy", LOSSY_WEBP);
        check("WEBP RGBA lossless", LOSSLESS);
        check("PNG I;16", LOSSLESS);
        assert!(LOSSLESS.holds(1, 0.0) && !LOSSLESS.holds(2, 0.0) && !LOSSLESS.holds(1, 0.02));
    }
}
