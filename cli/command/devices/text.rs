//! The devices as people read them.

use engine::schedule::{Bytes, Gpu, Inventory};
use nodes::onnx::{Found, HELP, OnnxError};

use super::advice::{self, Advice};
use crate::progress::Terminal;
use crate::progress::human::count;
use crate::progress::line::{Line, Tone};
use crate::progress::table::{Column, row, row_width};

const INDENT: usize = 8;

pub(super) fn text(
    inventory: &Inventory,
    advice: &Advice,
    onnx: &Result<Found, OnnxError>,
    terminal: &Terminal,
) -> String {
    let mut lines = Vec::new();
    if inventory.gpus.is_empty() {
        let note = inventory.gpus_note.as_deref().unwrap_or("there is none");
        lines.push(named("gpu", Tone::Plain, note, terminal));
        lines.push(named("cpu", Tone::Plain, &cpu(inventory), terminal));
        lines.extend(onnx_lines(onnx, terminal));
        return painted(lines, terminal);
    }
    lines.extend(table(inventory, advice, terminal));
    lines.push(named("cpu", Tone::Plain, &cpu(inventory), terminal));
    lines.push(Line::default());
    if !inventory.gpus[0].driver.is_empty() {
        lines.push(named("driver", Tone::Plain, &inventory.gpus[0].driver, terminal));
    }
    match &inventory.cuda_worker {
        Ok(path) => lines.push(named("worker", Tone::Plain, &path.display().to_string(), terminal)),
        Err(missing) => {
            lines.push(named("worker", Tone::Alert, &missing.to_string(), terminal));
            lines.push(named("", Tone::Plain, &missing.help(), terminal));
        }
    }
    lines.extend(onnx_lines(onnx, terminal));
    if let Some(note) = &inventory.gpus_note {
        lines.push(named("note", Tone::Alert, note, terminal));
    }
    lines.push(named("total", Tone::Plain, &totals(inventory, advice), terminal));
    if let Some(command) = &advice.command {
        lines.push(named("run", Tone::Strong, command, terminal));
    }
    painted(lines, terminal)
}

/// Which ONNX Runtime there is, or how to get one.
fn onnx_lines(found: &Result<Found, OnnxError>, terminal: &Terminal) -> Vec<Line> {
    match found {
        Ok(found) => {
            let version = found.version().map(|version| format!("{version}, ")).unwrap_or_default();
            let text = format!("{version}{} ({})", found.path.display(), found.by);
            vec![named("onnx", Tone::Plain, &text, terminal)]
        }
        Err(error) => {
            let none = named("onnx", Tone::Plain, &error.to_string(), terminal);
            vec![none, named("", Tone::Plain, &format!("for `.onnx` models: {HELP}"), terminal)]
        }
    }
}

fn cpu(inventory: &Inventory) -> String {
    format!("{}, {} of memory", count(inventory.cores as u64, "core"), Bytes(inventory.memory))
}

fn totals(inventory: &Inventory, advice: &Advice) -> String {
    let all = count(inventory.gpus.len() as u64, "GPU");
    let memory = Bytes(advice::sum(inventory, |gpu| gpu.total));
    let available = Bytes(advice::sum(inventory, advice::available));
    let mut text = format!("{all}, {memory}, {available} available");
    if let (Some(n_workers), Some(model)) = (advice.n_workers(), advice.model_memory) {
        let workers = if n_workers == 0 { "no worker fits".to_owned() } else { count(n_workers, "worker") };
        text = format!("{text}; {workers} with models of {}", Bytes(model));
    }
    text
}

/// The GPUs, with their UUIDs in the table where the place is wide enough, else in lines of their own.
fn table(inventory: &Inventory, advice: &Advice, terminal: &Terminal) -> Vec<Line> {
    let narrow = columns(inventory, advice);
    let mut wide = columns(inventory, advice);
    let uuids = inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    wide.insert(2, Column { title: "uuid", cells: uuids, is_figure: false });
    let fits = terminal.width().is_none_or(|columns| row_width(&wide) <= columns);
    let columns = if fits { wide } else { narrow };
    let mut lines = vec![row(&columns, None, terminal)];
    for (at, gpu) in inventory.gpus.iter().enumerate() {
        lines.push(row(&columns, Some(at), terminal));
        if !fits {
            lines.push(below(&gpu.uuid, terminal));
        }
        if !gpu.users.is_empty() {
            let users: Vec<_> = gpu.users.iter().map(ToString::to_string).collect();
            lines.push(below(&users.join(", "), terminal));
        }
    }
    lines
}

fn columns(inventory: &Inventory, advice: &Advice) -> Vec<Column> {
    let text = |title, cell: &dyn Fn(&Gpu) -> String| Column {
        title,
        cells: inventory.gpus.iter().map(cell).collect(),
        is_figure: false,
    };
    let figure = |title, cell: &dyn Fn(&Gpu) -> String| Column { is_figure: true, ..text(title, cell) };
    let mut columns = vec![
        text("device", &|gpu| format!("cuda:{}", gpu.index)),
        text("name", &|gpu| gpu.name.clone()),
        figure("total", &|gpu| Bytes(gpu.total).to_string()),
        figure("free", &|gpu| Bytes(gpu.free).to_string()),
        figure("available", &|gpu| Bytes(advice::available(gpu)).to_string()),
    ];
    if advice.model_memory.is_some() {
        let cells = advice.workers.iter().map(|workers| workers.unwrap_or(0).to_string()).collect();
        columns.push(Column { title: "workers", cells, is_figure: true });
    }
    columns
}

fn below(text: &str, terminal: &Terminal) -> Line {
    let mut line = Line::default();
    line.push_own(Tone::Plain, " ".repeat(INDENT));
    line.push(Tone::Faint, text, terminal.charset);
    line
}

fn named(name: &str, tone: Tone, text: &str, terminal: &Terminal) -> Line {
    let mut line = Line::default();
    line.push_padded(Tone::Strong, name, INDENT, terminal.charset);
    line.push(tone, text, terminal.charset);
    line
}

/// Lines are not cut: a path or a command is worth more whole than on one line.
fn painted(lines: Vec<Line>, terminal: &Terminal) -> String {
    lines.into_iter().map(|line| line.fitted(None, terminal.charset).painted(terminal.colour) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::super::advice::tests::machine;
    use super::*;
    use crate::progress::terminal::Size;
    use engine::graph::render::plain::width;

    const LIBRARY: &str = "/v/lib/libonnxruntime.so.1.32.0";

    fn onnx() -> Result<Found, OnnxError> {
        Ok(Found { path: LIBRARY.into(), by: nodes::onnx::FoundBy::Python })
    }

    fn shown(free: &[u64], model_gib: Option<u64>, width: Option<usize>) -> String {
        let machine = machine(free);
        let advice = Advice::of(&machine, model_gib.map(|gib| gib << 30));
        let size = width.map(|width| Size { width, height: 24 });
        text(&machine, &advice, &onnx(), &Terminal { size, ..Terminal::PIPE })
    }

    #[test]
    fn a_wide_place_gets_one_line_for_each_gpu() {
        let expected = "\
device  name        uuid                                       total    free  available  workers
cuda:0  NVIDIA A10  GPU-00000000-2222-3333-4444-555555555555  24 GiB  24 GiB   23.6 GiB        4
cuda:1  NVIDIA A10  GPU-11111111-2222-3333-4444-555555555555  24 GiB  10 GiB    9.6 GiB        1
        pid 4121 uses 14 GiB
cpu     16 cores, 64 GiB of memory

driver  580.159
worker  /opt/flowgpu/flowgpu-worker-cuda
onnx    1.32.0, /v/lib/libonnxruntime.so.1.32.0 (of the Python environment)
total   2 GPUs, 48 GiB, 33.1 GiB available; 5 workers with models of 5 GiB
run     flowgpu run PIPELINE.yaml --device cuda --workers-per-device 1
";
        assert_eq!(shown(&[24, 10], Some(5), None), expected);
        assert_eq!(shown(&[24, 10], Some(5), Some(97)), expected);
    }

    #[test]
    fn a_narrow_place_gets_uuids_in_lines_of_their_own() {
        let shown = shown(&[24, 10], Some(5), Some(80));
        assert!(shown.contains("\n        GPU-00000000-2222-3333-4444-555555555555\n"), "{shown}");
        assert!(shown.lines().all(|line| width(line) <= 80), "{shown}");
    }

    #[test]
    fn without_gpus_there_is_one_line_about_them_and_the_cpu_and_how_to_get_onnx_runtime() {
        let mut machine = machine(&[]);
        machine.gpus_note = Some("there is no NVIDIA driver".to_owned());
        let missing = Err(OnnxError::NoLibrary("it is nowhere".to_owned()));
        let shown = text(&machine, &Advice::of(&machine, None), &missing, &Terminal::PIPE);
        let expected = "\
gpu     there is no NVIDIA driver
cpu     16 cores, 64 GiB of memory
onnx    there is no ONNX Runtime: it is nowhere
        for `.onnx` models: `pip install onnxruntime`";
        assert!(shown.starts_with(expected), "{shown}");
    }
}
