//! What was found, for programs.

use serde_json::{Map, Value as Json, json};

use super::knobs::{Knobs, Point};
use super::search::Found;

pub(super) fn json(knobs: &Knobs, found: &Found, yaml: &str) -> Json {
    let tried = found.trials.iter().map(|trial| {
        json!({
            "setting": knobs.0[trial.knob].name,
            "value": trial.setting,
            "rows_per_second": trial.rows,
            "gain": trial.gain,
            "kept": trial.is_kept,
        })
    });
    json!({
        "default": found.default_rows,
        "best": found.best_rows,
        "gain": found.gain(),
        "settings": settings(knobs, &found.best),
        "yaml": yaml,
        "tried": tried.collect::<Vec<_>>(),
    })
}

fn settings(knobs: &Knobs, point: &Point) -> Map<String, Json> {
    let set = knobs.0.iter().zip(point).filter_map(|(knob, setting)| Some((knob.name.clone(), json!((*setting)?))));
    set.collect()
}
