//! What a run says at its end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, process};

use engine::graph::Graph;
use engine::graph::render::plain::for_terminal;
use engine::node::{FaultKind, Role, is_url};
use engine::runtime::{NodeReport, Outcome, OutputReport, Report};

use super::{stalls, workers};
use crate::failure::fault_text;
use crate::pipeline::from_here;
use crate::progress::human::percent;
use crate::progress::{self, NodeLine, Output, RejectGroup, Summary, Terminal, Verdict, summary};

/// Shares of time below this are not worth a word.
const NOTEWORTHY: f64 = 0.05;

/// What the report does not know.
pub(super) struct Beside {
    /// Where the trace is.
    pub(super) trace: Option<PathBuf>,
    /// How many processes the kernel's memory killer has killed meanwhile.
    pub(super) n_kills: Option<u64>,
}

/// The summary, and after it what needs to be done next, if anything does. Quiet leaves out the summary of a run that
/// did what it should.
pub(super) fn text(report: &Report, beside: &Beside, graph: &Graph, quiet: bool, terminal: &Terminal) -> String {
    let mut text = String::new();
    let started = !report.nodes.is_empty();
    if started && !quiet {
        text.push_str(&summary::text(&summary(report, beside, graph), terminal));
    }
    if let Some(fault) = &report.fault {
        text.push_str(&fault_text(fault, terminal));
    }
    if report.outcome == Outcome::Interrupted || (report.outcome == Outcome::Failed && started) {
        text.push_str(&whereabouts(report, graph, terminal));
    }
    text
}

/// Where the unfinished outputs lie, and how to run again where that may help.
fn whereabouts(report: &Report, graph: &Graph, terminal: &Terminal) -> String {
    let lies: Vec<_> = report.outputs.iter().map(|output| format!("`{}`", here(&output.path, report, graph))).collect();
    let lies = match &lies[..] {
        [] => "no output was begun".to_owned(),
        [one] => format!("the unfinished output is {one}"),
        several => format!("the unfinished outputs are {}", several.join(", ")),
    };
    let again = match report.fault.as_ref().map(|fault| fault.kind) {
        None | Some(FaultKind::Transient) => format!("; to run again: {}", command_line(without_fresh(env::args_os()))),
        Some(FaultKind::Permanent | FaultKind::Bug | FaultKind::Closed) => String::new(),
    };
    let line = format!("{}: {lies}{again}", graph.name);
    format!("{}\n", for_terminal(&line, terminal.charset))
}

/// The arguments of a run that goes on: `--fresh` would give up what is done.
fn without_fresh<A: AsRef<OsStr>>(args: impl Iterator<Item = A>) -> impl Iterator<Item = A> {
    args.filter(|arg| arg.as_ref() != "--fresh")
}

/// The arguments as one would type them.
fn command_line(args: impl Iterator<Item = impl AsRef<OsStr>>) -> String {
    let quoted = |arg: &OsStr| {
        let text = arg.to_string_lossy();
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,%@+".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    args.map(|arg| quoted(arg.as_ref())).collect::<Vec<_>>().join(" ")
}

/// An output's path as one can open it from here. Finished ones are called as the pipeline file calls them, unfinished
/// ones by where they are.
fn here(path: &str, report: &Report, graph: &Graph) -> String {
    match report.outcome {
        _ if path == "-" => "standard output".to_owned(),
        _ if is_url(Path::new(path)) => path.to_owned(),
        Outcome::Done => from_here(&graph.base.join(path)).display().to_string(),
        Outcome::Interrupted | Outcome::Failed => from_here(Path::new(path)).display().to_string(),
    }
}

fn summary(report: &Report, beside: &Beside, graph: &Graph) -> Summary {
    let rejects = report.rejects.by_code.iter().map(|(code, &rows)| RejectGroup { code: code.clone(), rows });
    let beginning = Summary {
        name: report.name.clone(),
        outcome: match report.outcome {
            Outcome::Done => progress::Outcome::Done,
            Outcome::Interrupted => progress::Outcome::Interrupted,
            Outcome::Failed => progress::Outcome::Faulted,
        },
        elapsed: Duration::try_from_secs_f64(report.seconds).unwrap_or_default(),
        rows: report.rows_in.saturating_sub(report.rejects.total),
        rejects: rejects.collect(),
        rejects_path: report.rejects.path.as_ref().map(|path| from_here(path).display().to_string()),
        outputs: Vec::new(),
        nodes: Vec::new(),
        workers: Vec::new(),
        warnings: Vec::new(),
        trace: beside.trace.as_ref().map(|path| path.display().to_string()),
        verdict: None,
    };
    if report.outcome == Outcome::Failed {
        // Who has a fault to deal with does not ask for speed, and rows were lost on their way: there is no balance.
        let written = report.accounts.iter().map(|account| account.written).min();
        return Summary { rows: written.unwrap_or(0), ..beginning };
    }
    Summary {
        outputs: outputs(report, graph),
        nodes: report.nodes.iter().map(|node| line(node, report)).collect(),
        workers: workers::lines(report, process::id()),
        warnings: [workers::warnings(report, beside.n_kills), stalls::warnings(report)].concat(),
        verdict: verdict(report, graph),
        ..beginning
    }
}

/// Each output with the balance of its rows; one that is in parts is one line.
fn outputs(report: &Report, graph: &Graph) -> Vec<Output> {
    let mut lines = Vec::new();
    let mut left = &report.outputs[..];
    while let [first, ..] = left {
        let n_files = left.iter().take_while(|output| output.node == first.node).count();
        let (files, others) = left.split_at(n_files);
        left = others;
        let written = report.accounts.iter().find(|account| account.node == first.node).map(|account| account.written);
        let [first, .., last] = files else {
            lines.extend(files.iter().map(|output| balanced(output, report, graph)));
            continue;
        };
        // Files that belong together have all rows each, parts do not.
        let Some(rows) = written.filter(|written| files.iter().any(|output| output.rows != *written)) else {
            lines.extend(files.iter().map(|output| balanced(output, report, graph)));
            continue;
        };
        let ends = [first, last].map(|output| here(&output.path, report, graph));
        lines.push(Output {
            path: ends.join(" … "),
            files: Some(n_files),
            rows,
            bytes: Some(files.iter().map(|output| output.bytes).sum()),
            ..balanced(first, report, graph)
        });
    }
    lines
}

fn balanced(output: &OutputReport, report: &Report, graph: &Graph) -> Output {
    let account = report.accounts.iter().find(|account| account.node == output.node);
    Output {
        path: here(&output.path, report, graph),
        files: None,
        rows: output.rows,
        bytes: Some(output.bytes),
        entered: account.map_or(output.rows, |account| account.entered),
        rejected: account.map_or(0, |account| account.rejected),
    }
}

fn line(node: &NodeReport, report: &Report) -> NodeLine {
    NodeLine {
        name: node.name.clone(),
        kind: node.kind.clone(),
        rows: node.rows_out,
        rate: node.rows_per_second,
        busy: node.shares.busy,
        starved: node.shares.starved,
        blocked: node.shares.blocked,
        limits: report.bottleneck.as_ref().is_some_and(|bottleneck| bottleneck.node == node.name),
        ..NodeLine::default()
    }
}

fn verdict(report: &Report, graph: &Graph) -> Option<Verdict> {
    let bottleneck = report.bottleneck.as_ref().filter(|_| report.rows_in > 0)?;
    let node = report.nodes.iter().find(|node| node.name == bottleneck.node)?;
    let busy = percent(bottleneck.shares.busy);
    let mut why = format!("busy {busy} of the time");
    // The work of the others is not all done on those threads: models compute with their own, sources list on one.
    if node.threads > 1 && matches!(Role::of(&node.kind), Some(Role::Decode | Role::Transform)) {
        let used = (node.work_seconds / report.seconds.max(1e-9)).min(node.threads as f64);
        why.push_str(&format!(", {used:.1} of {} threads on average", node.threads));
    }
    let models = graph.with_role(Role::Infer).map(|node_idx| graph.nodes[node_idx].name.as_str());
    let waited = models
        .filter(|name| *name != bottleneck.node)
        .filter_map(|name| report.nodes.iter().find(|node| node.name == name));
    for model in waited.filter(|model| model.shares.starved >= NOTEWORTHY) {
        why.push_str(&format!("; `{}` waited {} of the time", model.name, percent(model.shares.starved)));
    }
    Some(Verdict {
        node: bottleneck.node.clone(),
        kind: bottleneck.kind.clone(),
        why,
        hints: vec![bottleneck.hint.clone()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        let args = ["flowgpu", "run", "a b.yaml", "--set", "path=it's*.jpg", ""];
        assert_eq!(command_line(args.iter()), r"flowgpu run 'a b.yaml' --set 'path=it'\''s*.jpg' ''");
    }

    #[test]
    fn to_run_again_is_not_to_begin_anew() {
        let args = ["flowgpu", "run", "p.yaml", "--fresh", "-q"];
        assert_eq!(command_line(without_fresh(args.iter())), "flowgpu run p.yaml -q");
    }
}
