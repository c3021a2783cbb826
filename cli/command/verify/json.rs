//! What was found, for programs.

use serde_json::{Value as Json, json};

use super::figures::{Decoder, Kind, Logits, Model, Refused, Report, Side};

pub(super) fn json(report: &Report) -> Json {
    json!({
        "fine": report.is_fine(),
        "python": report.about.python,
        "pillow": report.about.pillow,
        "nodes": report.nodes.iter().map(decoder).collect::<Vec<_>>(),
        "models": report.models.iter().map(model).collect::<Vec<_>>(),
    })
}

fn decoder(node: &Decoder) -> Json {
    let refused = |side| {
        let of_side = node.refused_by_one.iter().filter(move |refused| refused.by == side);
        of_side.map(refusal).collect::<Vec<_>>()
    };
    json!({
        "node": node.name,
        "rules": node.rules,
        "files": node.n_files,
        "compared": node.n_compared(),
        "wrong": node.n_wrong(),
        "kinds": node.kinds.iter().map(|(name, figures)| kind(name, figures)).collect::<Vec<_>>(),
        "rejected": {
            "both": node.n_refused_by_both,
            "here": refused(Side::Here),
            "pillow": refused(Side::Pillow),
            "unread": node.unread.iter().map(refusal).collect::<Vec<_>>(),
        },
        "not_compared": node.left_out,
    })
}

fn kind(name: &str, kind: &Kind) -> Json {
    let beyond = kind.beyond.iter().map(|(uri, what)| json!({"uri": uri, "what": what}));
    json!({
        "kind": name,
        "files": kind.n_files,
        "equal": kind.n_equal,
        "largest": kind.most,
        "mean": kind.mean(),
        "bound": kind.bound,
        "beyond": beyond.collect::<Vec<_>>(),
    })
}

fn refusal(refused: &Refused) -> Json {
    json!({"uri": refused.uri, "code": refused.code, "message": refused.why})
}

fn model(model: &Model) -> Json {
    match &model.found {
        Ok(found) => json!({
            "node": model.name,
            "rows": found.n_rows,
            "same_first": found.n_same_first,
            "largest": found.most,
            "bound": Logits::BOUND,
            "fine": found.is_fine(),
        }),
        Err(why) => json!({"node": model.name, "not_compared": why}),
    }
}
