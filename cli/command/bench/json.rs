//! The figures for programs.

use serde_json::{Value as Json, json};

use super::Figures;

pub(super) fn json(figures: &Figures) -> Json {
    json!({
        "decode": figures.decode.rows,
        "infer": figures.infer.as_ref().ok().map(|infer| infer.rows),
        "end_to_end": figures.end_to_end.rows,
        "limit": figures.limit(),
        "ratio": figures.ratio(),
        "rejected": figures.end_to_end.rejected,
    })
}
