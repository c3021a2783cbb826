//! What was found, in figures.

use std::collections::BTreeMap;

use super::bound::Bound;
use super::reference::About;

/// Everything that is told.
pub(super) struct Report {
    /// The pipeline file.
    pub(super) file: String,
    /// What was compared with.
    pub(super) about: About,
    /// The nodes that decode.
    pub(super) nodes: Vec<Decoder>,
    /// The nodes that compute.
    pub(super) models: Vec<Model>,
}

/// What was found of one node that decodes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Its name.
    pub(super) name: String,
    /// What it makes of pictures, in words.
    pub(super) rules: String,
    /// Why it, or what comes from one of its sources, could not be compared.
    pub(super) left_out: Vec<String>,
    /// Files that were looked at.
    pub(super) n_files: usize,
    /// Figures by kind of file.
    pub(super) kinds: BTreeMap<String, Kind>,
    /// Files that nobody makes pixels of.
    pub(super) n_refused_by_both: usize,
    /// Files that one side makes pixels of.
    pub(super) refused_by_one: Vec<Refused>,
    /// Files that could not be read in the first place.
    pub(super) unread: Vec<Refused>,
}

/// Figures of the files of one kind.
#[derive(Debug)]
pub(super) struct Kind {
    /// How far they may be apart.
    pub(super) bound: Bound,
    /// How many were compared.
    pub(super) n_files: usize,
    /// How many of these have equal bytes.
    pub(super) n_equal: usize,
    /// The largest difference of a sample.
    pub(super) most: u8,
    /// The sum of all differences, and of how many samples.
    pub(super) sum: (u64, u64),
    /// Files beyond the bound, with what is wrong.
    pub(super) beyond: Vec<(String, String)>,
}

/// A file that one side refuses.
#[derive(Debug)]
pub(super) struct Refused {
    /// Which file.
    pub(super) uri: String,
    /// By whom.
    pub(super) by: Side,
    /// A word for the reason.
    pub(super) code: String,
    /// The reason.
    pub(super) why: String,
}

/// One of the two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// This program.
    Here,
    /// The other one.
    Pillow,
}

/// What was found of one node that computes.
#[derive(Debug)]
pub(super) struct Model {
    /// Its name.
    pub(super) name: String,
    /// What was found, or why nothing was compared.
    pub(super) found: Result<Logits, String>,
}

/// Logits against torchvision's, from equal pixels.
#[derive(Debug, Default)]
pub(super) struct Logits {
    /// How many rows were compared.
    pub(super) n_rows: usize,
    /// In how many the same class is first.
    pub(super) n_same_first: usize,
    /// The largest difference of two probabilities.
    pub(super) most: f64,
}

impl Logits {
    /// Probabilities that are further apart are not told by rounding.
    pub(super) const BOUND: f64 = 1e-3;

    /// Whether that is rounding.
    pub(super) fn is_fine(&self) -> bool {
        self.most <= Self::BOUND
    }
}

impl Kind {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Kind { bound: Bound::PILLOW, n_files: 0, n_equal: 0, most: 0, sum: (0, 0), beyond: Vec::new() }
    }

    /// Counts a file of which both made as many pixels.
    pub(super) fn add(&mut self, uri: &str, ours: &[u8], theirs: &[u8]) {
        let mut most = 0;
        let mut sum = 0;
        for (a, b) in ours.iter().zip(theirs) {
            let apart = a.abs_diff(*b);
            most = most.max(apart);
            sum += u64::from(apart);
        }
        let mean = sum as f64 / ours.len().max(1) as f64;
        self.n_files += 1;
        self.n_equal += usize::from(most == 0);
        self.most = self.most.max(most);
        self.sum = (self.sum.0 + sum, self.sum.1 + ours.len() as u64);
        if !self.bound.holds(most, mean) {
            self.beyond.push((uri.to_owned(), format!("off by up to {most}/255, {mean:.3} on average")));
        }
    }

    /// Counts a file of which both made pixels, of different sizes.
    pub(super) fn add_other_size(&mut self, uri: &str, ours: [usize; 2], theirs: [usize; 2]) {
        self.n_files += 1;
        let what = format!("{}×{} here, {}×{} in Pillow", ours[0], ours[1], theirs[0], theirs[1]);
        self.beyond.push((uri.to_owned(), what));
    }

    /// The mean difference over all files.
    pub(super) fn mean(&self) -> f64 {
        self.sum.0 as f64 / self.sum.1.max(1) as f64
    }
}

impl Refused {
    /// A format that one of the two does not know is a limit that it tells; everything else is a disagreement.
    pub(super) fn is_disagreement(&self) -> bool {
        self.code != "unsupported"
    }
}

impl Decoder {
    /// Files of which both made pixels.
    pub(super) fn n_compared(&self) -> usize {
        self.kinds.values().map(|kind| kind.n_files).sum()
    }

    /// Files beyond the bound, and those of which the two say different things.
    pub(super) fn n_wrong(&self) -> usize {
        let beyond: usize = self.kinds.values().map(|kind| kind.beyond.len()).sum();
        beyond + self.refused_by_one.iter().filter(|refused| refused.is_disagreement()).count()
    }
}

impl Report {
    /// Whether everything that was compared is as it should be.
    pub(super) fn is_fine(&self) -> bool {
        let models = self.models.iter().flat_map(|model| &model.found);
        self.nodes.iter().all(|node| node.n_wrong() == 0) && models.into_iter().all(Logits::is_fine)
    }

    /// Files of which both made pixels, over all nodes.
    pub(super) fn n_compared(&self) -> usize {
        self.nodes.iter().map(Decoder::n_compared).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_sums_up_what_its_files_are_apart() {
        let mut kind = Kind::new();
        kind.add("a", &[1, 2, 3], &[1, 2, 3]);
        kind.add("b", &[10, 20, 30, 40, 50, 60], &[10, 20, 30, 40, 50, 57]);
        assert_eq!((kind.n_files, kind.n_equal, kind.most), (2, 1, 3));
        assert_eq!(kind.mean(), 3.0 / 9.0);
        assert_eq!(kind.beyond, [("b".to_owned(), "off by up to 3/255, 0.500 on average".to_owned())]);
        kind.add_other_size("c", [1, 2], [2, 1]);
        assert_eq!(kind.beyond[1], ("c".to_owned(), "1×2 here, 2×1 in Pillow".to_owned()));
    }

    #[test]
    fn what_one_side_does_not_know_is_no_disagreement() {
        let mut node = Decoder::default();
        let refused = |code: &str| Refused { uri: "a".into(), by: Side::Here, code: code.into(), why: String::new() };
        node.refused_by_one = vec![refused("unsupported")];
        assert_eq!(node.n_wrong(), 0);
        node.refused_by_one.push(refused("truncated"));
        assert_eq!(node.n_wrong(), 1);
    }
}
