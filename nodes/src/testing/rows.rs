//! Choosing rows by chance, the same ones each time.

use engine::data::RowRef;
use schemars::JsonSchema;
use serde::Deserialize;

/// A number that depends on `seed` and `index` and on nothing else, evenly spread.
pub fn hash(seed: u64, index: u64) -> u64 {
    let mut mixed = index.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether row `index` belongs to the `share` (0 to 1) that `seed` chooses.
pub fn chosen(share: f64, seed: u64, index: u64) -> bool {
    // The upper 53 bits are the numbers that a double holds exactly.
    ((hash(seed, index) >> 11) as f64) < share * (1u64 << 53) as f64
}

/// Which rows a kind acts on.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Which {
    /// The share of rows, by chance, from 0 to 1.
    pub(super) share: f64,
    /// Another seed chooses others.
    pub(super) seed: u64,
    /// These rows, by their index in the source.
    pub(super) rows: Vec<u64>,
}

impl Which {
    pub(super) fn includes(&self, row: RowRef<'_>) -> bool {
        let index = row.pos().index;
        chosen(self.share, self.seed, index) || self.rows.contains(&index)
    }
}
