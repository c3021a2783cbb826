//! Runs that were killed in the middle of a file that holds many rows.

use std::fs;

use nodes::testing::{box_uris, parquet_of, rows_in_box, tar_of};
use rustix::process::Signal;

use crate::program::{Folder, wait_for};
use crate::scene::{RUN, committed, figure, nothing_unfinished, pipeline, rows_out, same};

const ROWS: u64 = 600;

/// Kills a run over files that `prepare` makes when some of its rows are committed, and goes on with it.
fn killed_in_the_middle(source: &str, prepare: impl Fn(&Folder)) {
    let delayed = |micros: u64| {
        let nodes = format!(
            "  rows: {{kind: {source}}}\n  slow: {{kind: transform.test_delay, with: {{micros: {micros}, seed: 1}}}}\n  \
             out: {{kind: sink.jsonl, with: {{path: out.jsonl}}}}\n"
        );
        let folder = pipeline(&nodes);
        prepare(&folder);
        folder
    };
    let expected = delayed(0);
    let done = expected.run(&RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(fs::read_to_string(expected.path("out.jsonl")).expect("rows").lines().count() as u64, ROWS);
    let folder = delayed(20_000);
    let run = folder.start(&RUN);
    // The first file has 400 rows.
    wait_for("rows to be committed", || (committed_or_none(&folder) >= 30).then_some(()));
    run.signal(Signal::KILL);
    run.killed();
    let at = committed(&folder);
    assert!((30..ROWS).contains(&at), "{at}");
    let done = folder.run(&RUN);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(figure(&folder, "resumed_at"), at);
    assert_eq!(rows_out(&folder, "rows"), ROWS - at, "only the rest is read");
    same(&expected, &folder, &["out.jsonl"]);
    nothing_unfinished(&folder);
}

/// The journal is there only when the run has begun.
fn committed_or_none(folder: &Folder) -> u64 {
    if folder.path(".flowgpu/p/journal").exists() { committed(folder) } else { 0 }
}

#[test]
fn a_run_goes_on_in_the_middle_of_a_tar() {
    killed_in_the_middle("source.webdataset, with: {path: \"s-{0..1}.tar\", carry: {label: cls}}", |folder| {
        for (shard, n_rows) in [400u32, 200].into_iter().enumerate() {
            let names: Vec<_> = (0..n_rows).map(|row| (format!("{row:04}.jpg"), format!("{row:04}.cls"))).collect();
            let bodies: Vec<_> = (0..n_rows).map(|row| (vec![shard as u8; 3000], row.to_string())).collect();
            let members = names.iter().zip(&bodies).flat_map(|((image, label), (pixels, number))| {
                [(image.as_str(), pixels.as_slice()), (label.as_str(), number.as_bytes())]
            });
            fs::write(folder.path(&format!("s-{shard}.tar")), tar_of(members)).expect("a file");
        }
    });
}

#[test]
fn a_run_goes_on_in_the_middle_of_a_row_group() {
    killed_in_the_middle("source.parquet, with: {path: x.parquet}", |folder| {
        let images: Vec<_> = (0..ROWS).map(|row| vec![row as u8; 3000]).collect();
        fs::write(folder.path("x.parquet"), parquet_of(&images, 400)).expect("a file");
    });
}

#[test]
fn a_run_goes_on_in_the_middle_of_a_table() {
    killed_in_the_middle("source.jsonl, with: {path: t.jsonl, types: {n: int}}", |folder| {
        let lines: Vec<_> = (0..ROWS).map(|row| format!("{{\"n\": {row}}}\n")).collect();
        folder.write("t.jsonl", &lines.concat());
    });
}

#[test]
fn a_run_goes_on_in_the_middle_of_the_rejects_of_a_tar() {
    killed_in_the_middle("source.rejects, with: {path: r.jsonl}", |folder| {
        let mut rejects = String::new();
        for (shard, n_samples) in [800u32, 400].into_iter().enumerate() {
            let names: Vec<_> = (0..n_samples).map(|row| format!("{row:04}.jpg")).collect();
            let pixels = vec![shard as u8; 3000];
            let members = names.iter().map(|name| (name.as_str(), pixels.as_slice()));
            fs::write(folder.path(&format!("s-{shard}.tar")), tar_of(members)).expect("a file");
            let every_second = (1..n_samples).step_by(2);
            rejects.extend(every_second.map(|row| {
                format!("{{\"id\": \"{row:04}\", \"uri\": \"s-{shard}.tar#{row:04}\", \"code\": \"io\"}}\n")
            }));
        }
        folder.write("r.jsonl", &rejects);
    });
}

/// Boxes of at most twenty rows, into lines at `path`.
fn boxes(options: &str, path: &str) -> Folder {
    pipeline(&format!(
        "  rows: {{kind: source.test_boxes, with: {{boxes: 12, most: 20{options}}}}}\n  \
         out: {{kind: sink.jsonl, with: {{path: {path}}}}}\n"
    ))
}

fn uris(lines: &str) -> Vec<String> {
    let uri =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["uri"].as_str().map(str::to_owned);
    lines.lines().map(|line| uri(line).expect("a uri")).collect()
}

#[test]
fn a_limit_may_lie_within_an_item_where_no_journal_is_kept() {
    let all = box_uris(12, 20);
    for limit in [1, 7, all.len() / 2, all.len() - 1, all.len(), all.len() + 1] {
        for options in ["", ", open: 3"] {
            let folder = boxes(options, "\"-\"");
            let done = folder.run(&["run", "p.yaml", "--limit", &limit.to_string()]);
            assert_eq!(done.code, 0, "{limit}: {done:?}");
            assert_eq!(uris(&done.stdout), all[..limit.min(all.len())]);
        }
    }
}

#[test]
fn a_larger_limit_goes_on_within_an_item() {
    let all = box_uris(12, 20);
    let folder = boxes("", "out.jsonl");
    for limit in [3, 4, 40, 1000] {
        let done = folder.run(&["run", "p.yaml", "--limit", &limit.to_string()]);
        assert_eq!(done.code, 0, "{limit}: {done:?}");
        let written = fs::read_to_string(folder.path("out.jsonl")).expect("rows");
        assert_eq!(uris(&written), all[..limit.min(all.len())]);
    }
}

#[test]
fn an_item_that_cannot_be_read_to_its_end_costs_its_own_rows() {
    let folder = boxes(", bad_every: 4, open: 2", "out.jsonl");
    assert_eq!(folder.run(&RUN).code, 3);
    // Of four boxes the second cannot be opened, and the third panics at its half.
    let rows = |number: u64| match number % 4 {
        1 => 0,
        2 => rows_in_box(number, 20) / 2,
        _ => rows_in_box(number, 20),
    };
    let good: Vec<_> =
        (0..12).flat_map(|number| (0..rows(number)).map(move |row| format!("box/{number}#{row}"))).collect();
    assert_eq!(uris(&fs::read_to_string(folder.path("out.jsonl")).expect("rows")), good);
    let rejects = fs::read_to_string(folder.path("p.rejects.jsonl")).expect("rejects");
    let bad: Vec<_> =
        (0..12).filter(|number| [1, 2].contains(&(number % 4))).map(|number| format!("box/{number}")).collect();
    assert_eq!(uris(&rejects), bad);
    assert_eq!(rejects.matches("\"panic\"").count(), 3, "{rejects}");
}
