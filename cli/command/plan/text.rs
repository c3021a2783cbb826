//! The plan as people read it.

use std::fmt::Write;

use engine::config::Isolation;
use engine::graph::render::plain::{for_terminal, width};
use engine::schedule::{Bytes, DevicePlace, Gpu, HostMemory, Plan, SLOTS_PER_MODEL, STREAMS_PER_MODEL, WorkerPlace};

use super::{bar, models, outputs};
use crate::progress::human::count;
use crate::progress::{Charset, Terminal};

/// Columns before the texts.
const INDENT: usize = 11;

pub(super) fn text(plan: &Plan, terminal: &Terminal) -> String {
    let mut page = Page { text: String::new(), terminal: *terminal };
    page.line(
        "host",
        format!("{}, {} of memory", count(plan.inventory.cores as u64, "core"), Bytes(plan.inventory.memory)),
    );
    page.line("threads", threads(plan));
    page.line("queues", queues(plan));
    page.lines("devices", &drawn(gpus(plan), terminal.charset));
    page.lines("memory", &drawn(memory(plan), terminal.charset));
    page.lines("placement", &drawn(placement(plan, terminal.charset), terminal.charset));
    if plan.placement.workers.iter().any(|worker| worker.device != DevicePlace::Cpu) {
        page.line(
            "streams",
            format!("{STREAMS_PER_MODEL} for each model: upload, compute, download; {SLOTS_PER_MODEL} slots"),
        );
    }
    page.lines("note", &plan.notes);
    page.lines("nodes", &nodes(plan));
    page.lines("writes", &outputs(plan));
    page.text
}

/// Lines with a word before the first of each group.
struct Page {
    text: String,
    terminal: Terminal,
}

impl Page {
    fn line(&mut self, word: &str, line: String) {
        self.lines(word, &[line]);
    }

    fn lines(&mut self, word: &str, lines: &[String]) {
        let charset = self.terminal.charset;
        let room = self.terminal.width().map(|columns| columns.saturating_sub(INDENT));
        for (at, line) in lines.iter().flat_map(|line| broken(line, room)).enumerate() {
            let word = if at == 0 { word } else { "" };
            // Writing into a String does not fail.
            let _ = writeln!(self.text, "{word:<10} {}", for_terminal(&line, charset).trim_end());
        }
    }
}

/// Lines with signs for the words that stand for them, where there are such signs.
fn drawn(lines: Vec<String>, charset: Charset) -> Vec<String> {
    if charset == Charset::Ascii {
        return lines;
    }
    let draw = |line: String| line.replace(" -> ", " → ").replace(" x ", " × ").replace(" + ", " · ");
    lines.into_iter().map(draw).collect()
}

/// Breaks a line that is too long before the signs of a sum and behind commas; a piece that is still too long stays whole.
fn broken(text: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room.filter(|&room| width(text) > room) else { return vec![text.to_owned()] };
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(next_break(rest).unwrap_or(rest.len()));
        rest = behind;
        match lines.last_mut() {
            Some(last) if width(last) + width(piece) <= room => last.push_str(piece),
            Some(_) => lines.push(format!("  {}", piece.trim_start())),
            None => lines.push(piece.to_owned()),
        }
    }
    lines
}

/// Where the next piece starts, behind the first letter.
fn next_break(text: &str) -> Option<usize> {
    let start = text.char_indices().nth(1)?.0;
    let place = |sign: &str| Some(start + text[start..].find(sign)? + usize::from(sign.starts_with(',')));
    [" · ", " + ", " = ", ", "].into_iter().filter_map(place).min()
}

fn threads(plan: &Plan) -> String {
    let pools = plan.pools;
    let mut threads = vec![format!("reading {}", pools.io), format!("rows {}", pools.rows)];
    if pools.model > 0 {
        threads.push(format!("models {}", pools.model));
    }
    let in_workers: usize = plan
        .placement
        .workers
        .iter()
        .filter(|worker| worker.device == DevicePlace::Cpu && plan.placement.isolation == Isolation::Process)
        .map(|worker| worker.threads)
        .sum();
    if in_workers > 0 {
        threads.push(format!("models in workers {in_workers}"));
    }
    threads.join(", ")
}

fn queues(plan: &Plan) -> String {
    let waits: Vec<_> = plan.graph.nodes.iter().zip(&plan.rooms).filter(|(node, _)| !node.inputs.is_empty()).collect();
    let common = waits.iter().map(|(_, room)| room.queue_batches).min().unwrap_or(0);
    let others = waits.iter().filter(|(_, room)| room.queue_batches != common);
    let others: Vec<_> = others.map(|(node, room)| format!("{} before `{}`", room.queue_batches, node.name)).collect();
    let mut text = format!("{} before each node", count(common as u64, "batch").replace("batchs", "batches"));
    if !others.is_empty() {
        text = format!("{text} ({})", others.join(", "));
    }
    format!("{text}, at most {} in all", Bytes(plan.queue_memory))
}

/// Equal GPUs in one line: `2 x NVIDIA A10 (24 GiB): cuda:0 21.8 GiB free, cuda:1 9.1 GiB free (pid 4121 uses 14 GiB)`.
fn gpus(plan: &Plan) -> Vec<String> {
    let mut groups: Vec<Vec<&Gpu>> = Vec::new();
    for gpu in &plan.inventory.gpus {
        match groups.iter_mut().find(|group| (&group[0].name, group[0].total) == (&gpu.name, gpu.total)) {
            Some(group) => group.push(gpu),
            None => groups.push(vec![gpu]),
        }
    }
    let mut lines: Vec<_> = groups
        .iter()
        .map(|group| {
            let free: Vec<_> = group
                .iter()
                .map(|gpu| {
                    let users: Vec<_> = gpu.users.iter().map(ToString::to_string).collect();
                    let users = if users.is_empty() { String::new() } else { format!(" ({})", users.join(", ")) };
                    format!("cuda:{} {} free{users}", gpu.index, Bytes(gpu.free))
                })
                .collect();
            let number = if group.len() == 1 { String::new() } else { format!("{} x ", group.len()) };
            format!("{number}{} ({}): {}", group[0].name, Bytes(group[0].total), free.join(", "))
        })
        .collect();
    if !lines.is_empty() {
        lines.extend(plan.inventory.gpus_note.clone());
    }
    lines
}

/// The sum of each kind of worker on GPUs, or that of this machine's own memory.
fn memory(plan: &Plan) -> Vec<String> {
    let mut told: Vec<&[usize]> = Vec::new();
    let mut lines: Vec<_> = HostMemory::of(plan).iter().map(ToString::to_string).collect();
    for worker in plan.placement.workers.iter().filter(|worker| worker.device != DevicePlace::Cpu) {
        if !told.contains(&&worker.models[..]) {
            told.push(&worker.models);
            lines.extend(plan.memory_of(worker).lines());
        }
    }
    lines
}

/// A line for each device that has workers, all of which have the same models.
fn placement(plan: &Plan, charset: Charset) -> Vec<String> {
    let workers = &plan.placement.workers;
    let groups: Vec<&[WorkerPlace]> = workers.chunk_by(|a, b| a.device == b.device).collect();
    let names: Vec<String> = groups.iter().map(|group| models(plan, &group[0]).join(", ")).collect();
    let columns = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let mut lines: Vec<_> = groups
        .iter()
        .zip(&names)
        .map(|(group, name)| format!("{name:<columns$} -> {}", workers_on(plan, group, charset)))
        .collect();
    if workers.iter().any(|worker| worker.device != DevicePlace::Cpu) {
        let arrow = width(&drawn(vec![" -> ".to_owned()], charset)[0]);
        lines.push(" ".repeat(columns + arrow) + &bar::legend(charset));
    }
    lines
}

fn workers_on(plan: &Plan, group: &[WorkerPlace], charset: Charset) -> String {
    let device = plan.inventory.device_name(group[0].device);
    let n_workers = group.len() as u64;
    match group[0].device {
        DevicePlace::Gpu(at) => {
            let gpu = &plan.inventory.gpus[at];
            let planned = group[0].memory.saturating_mul(n_workers);
            let bar = bar::bar(planned, gpu.total - gpu.free, gpu.total, charset);
            format!("{device} {bar} {}, {} of {}", count(n_workers, "worker"), Bytes(planned), Bytes(gpu.total))
        }
        DevicePlace::Cpu => {
            let threads: usize = group.iter().map(|worker| worker.threads).sum();
            let threads = count(threads as u64, "thread");
            match plan.placement.isolation {
                Isolation::Thread => format!("{device}, {}, {threads}", count(n_workers, "instance")),
                Isolation::Process => {
                    let processes = count(n_workers, "worker process").replace("processs", "processes");
                    format!("{device}, {processes}, {threads}")
                }
            }
        }
    }
}

fn nodes(plan: &Plan) -> Vec<String> {
    let graph = &plan.graph;
    let name_columns = graph.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    let kind_columns = graph.nodes.iter().map(|node| node.kind.name().len()).max().unwrap_or(0);
    let line = |node: &engine::graph::GraphNode| {
        let detail = graph.redact(&node.spec.detail);
        format!("{:<name_columns$}  {:<kind_columns$}  {detail}", node.name, node.kind.name())
    };
    graph.nodes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_where_a_piece_ends() {
        let check = |room: usize, expected: &[&str]| assert_eq!(broken("a 1 · b 22 = 23, c", Some(room)), expected);
        check(18, &["a 1 · b 22 = 23, c"]);
        check(17, &["a 1 · b 22 = 23,", "  c"]);
        check(12, &["a 1 · b 22", "  = 23, c"]);
        check(5, &["a 1", "  · b 22", "  = 23,", "  c"]);
        assert_eq!(broken("", Some(0)), [""]);
    }

    #[test]
    fn signs_are_drawn_where_they_can_be() {
        let sum = vec!["a -> 2 x 3 + 4".to_owned()];
        assert_eq!(drawn(sum.clone(), Charset::Ascii), sum);
        assert_eq!(drawn(sum, Charset::Unicode), ["a → 2 × 3 · 4"]);
    }
}
