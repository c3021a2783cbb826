//! How runs stand, for programs.

use serde_json::{Map, Value as Json, json};

use super::standing::Standing;

pub(super) fn json(standings: &[Standing]) -> Json {
    json!({"runs": standings.iter().map(of).collect::<Vec<_>>()})
}

fn of(standing: &Standing) -> Json {
    let process = standing.process.as_ref();
    let outputs = standing
        .outputs
        .iter()
        .map(|output| json!({"node": output.node, "path": output.path, "rows": output.rows, "bytes": output.bytes}));
    let mut shown = json!({
        "name": standing.name,
        "state": standing.state.word(),
        "folder": standing.folder.display().to_string(),
        "pid": process.and_then(|process| process.pid),
        "host": process.and_then(|process| process.host.clone()),
        "since": process.and_then(|process| process.since),
        "sessions": standing.n_sessions,
        "rows": standing.rows,
        "total": standing.total,
        "resumed_at": standing.resumed,
        "rows_per_second": standing.pace,
        "eta_seconds": standing.left.map(|left| left.as_secs_f64()),
        "committed_at": standing.committed,
        "ended_at": standing.ended,
        "message": standing.message,
        "exit_code": standing.code,
        "limited": standing.limited,
        "torn_bytes": standing.n_torn,
        "rejects": {
            "total": standing.rejects.total,
            "by_code": standing.rejects.by_code,
            "path": standing.rejects.path,
        },
        "outputs": outputs.collect::<Vec<_>>(),
    });
    if let Some(shard) = standing.shard {
        shown["shard"] = json!(shard.index);
    }
    if let Some(shards) = &standing.shards {
        let states: Map<String, Json> =
            shards.states.iter().map(|(state, n)| (state.word().to_owned(), json!(n))).collect();
        let runs: Vec<_> = shards.runs.iter().map(of).collect();
        shown["shards"] = json!({"of": shards.of, "states": states, "runs": runs});
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::shards::tests::shards;
    use super::super::standing::tests::{done, failed, held, running, standing};
    use super::*;

    #[test]
    fn a_run_has_all_that_the_help_names() {
        let shown = json(&[standing(&running(), held(4121))]);
        let run = &shown["runs"][0];
        let mut names: Vec<_> = run.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names.iter().for_each(|name| assert!(super::super::AFTER_HELP.contains(&format!("\"{name}\"")), "{name}"));
        assert_eq!((&run["state"], &run["pid"], &run["rows"]), (&json!("running"), &json!(4121), &json!(415_600)));
        assert_eq!((&run["since"], &run["eta_seconds"]), (&json!("2026-12-01T03:00:50.000Z"), &json!(1461.0)));
        assert_eq!((&run["exit_code"], &run["shards"]), (&Json::Null, &Json::Null));
        assert_eq!(run["outputs"], json!([{"node": "out", "path": null, "rows": 415_185, "bytes": 41_518_500}]));
        let finished = json(&[standing(&done(), None)]);
        assert_eq!(finished["runs"][0]["rejects"]["path"], "out/classify.rejects.jsonl");
    }

    #[test]
    fn shards_are_runs_below_their_run() {
        let whole = shards(3, &[(0, standing(&done(), None)), (2, standing(&failed(), None))]);
        let shown = &json(&[whole])["runs"][0]["shards"];
        assert_eq!(shown["states"], json!({"never_started": 1, "failed": 1, "done": 1}));
        assert_eq!((&shown["of"], &shown["runs"][1]["shard"]), (&json!(3), &json!(2)));
    }
}
