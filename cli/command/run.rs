//! `flowgpu run`: compiles, plans, runs, and says what came of it.

mod committed;
mod drain_file;
mod ending;
mod gauges;
mod interrupt;
mod lasting_args;
mod memory_killer;
mod meter;
mod metrics;
mod output_file;
mod resuming;
mod series;
mod stalls;
mod stopping;
mod stopping_words;
mod trace_file;
mod trial;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::config::{Document, Duration, Limit, RunOptions};
use engine::graph::Graph;
use engine::journal::{Journal, Opened, Start, can_resume};
use engine::node::{Cancel, Fault, FaultKind, Shard};
use engine::runtime::{Report, Running, Setup};
use engine::schedule::{Inventory, Plan};

use self::committed::Committed;
use self::ending::Beside;
use self::interrupt::{Interrupts, Terms};
use self::lasting_args::LastingArgs;
use self::memory_killer::MemoryKiller;
use self::meter::Meter;
use self::metrics::Metrics;
use self::output_file::OutputFile;
use self::series::Series;
use self::trace_file::TraceFile;
use crate::args::{PipelineArgs, PlacementArgs};
use crate::failure::{Failure, exit};
use crate::pipeline::Pipeline;
use crate::progress::{Cursor, Progress, Terminal, for_stderr};
use crate::shards::ShardArgs;
use crate::{Context, output, shards};

const AFTER_HELP: &str = "\
Examples:
  flowgpu run classify.yaml
  flowgpu run classify.yaml --set photos=/data/photos --limit 100
  flowgpu run classify.yaml --report run.json --metrics-addr 127.0.0.1:9184
  flowgpu run classify.yaml --isolation process --trace trace.json
  flowgpu run classify.yaml --shards 16 --shard 3     one of 16 shards, which `flowgpu merge` puts together

Each option but --set and --fresh has its place under `run:` in the pipeline file; the command line wins. Paths given here \
start from the current folder, those in the file from the file's.

Ctrl-C, SIGTERM, SIGHUP and the drain file stop the sources; what is in flight is finished and kept, as far as the \
grace allows. A second signal aborts. `FLOWGPU_LOG=debug` shows what goes on inside.

Exit codes: 0 done, 1 fault (worth another try), 2 mistake in the command line or the pipeline, 3 done with \
rejects, 130 interrupted.";

/// Runs.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    #[command(flatten)]
    pipeline: PipelineArgs,

    /// Stop after so many rows of each source
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "What is run")]
    limit: Option<u64>,

    /// Start from the beginning, whatever an earlier run has done
    #[arg(long, help_heading = "What is run")]
    fresh: bool,

    #[command(flatten)]
    shard: ShardArgs,

    /// How many rejected rows are too many: a count, or a part such as 5%
    #[arg(long, value_name = "LIMIT", help_heading = "What is run")]
    max_rejects: Option<Limit>,

    #[command(flatten)]
    placement: PlacementArgs,

    /// How long a batch may take before its worker counts as hung, such as 30s; slow batches get longer
    #[arg(long, value_name = "TIME", help_heading = PlacementArgs::HEADING)]
    job_timeout: Option<Duration>,

    #[command(flatten)]
    lasting: LastingArgs,

    /// Show no progress and no summary
    #[arg(short, long, help_heading = "What is told")]
    quiet: bool,

    /// Write the run's figures to this file, as JSON
    #[arg(long, value_name = "FILE.json", help_heading = "What is told")]
    report: Option<PathBuf>,

    /// Write what worked when to this file, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE.json", help_heading = "What is told")]
    trace: Option<PathBuf>,

    /// Serve the run's figures to Prometheus; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", help_heading = "What is told")]
    metrics_addr: Option<String>,
}

impl Run {
    pub(super) fn run(&self, cx: &Context<'_>) -> Result<u8, Failure> {
        let Pipeline { document, graph } =
            Pipeline::load(&self.pipeline.file, &self.pipeline.vars, self.options(), cx.registry)?;
        let graph = Arc::new(graph);
        let shards = shards::chosen(&document.run)?;
        let committed = Committed::default();
        // Once for all shards: a wish to stop may come between two of them.
        let interrupts = Interrupts::watch(Terms::of(&document), &cx.above, &committed)?;
        let part = |shard| self.part(cx, &document, &graph, shard, &interrupts, &committed);
        match shards {
            None => part(None),
            Some(shards) => Series::new(&shards)?.run(|shard| part(Some(shard))),
        }
    }

    /// Runs all of it, or one shard.
    fn part(
        &self,
        cx: &Context<'_>,
        document: &Document,
        graph: &Arc<Graph>,
        shard: Option<Shard>,
        interrupts: &Interrupts,
        committed: &Committed,
    ) -> Result<u8, Failure> {
        let telling = Telling::of(document, self, shard);
        let inventory = Inventory::read_for(graph);
        let plan = Plan::make(graph.clone(), &inventory)?;
        if let (Some(shard), false) = (shard, telling.quiet) {
            output::tell(&format!("{}: shard {} of {}\n", graph.name, shard.index, shard.of));
        }
        if !telling.quiet {
            // Where models run is never a surprise: above all not that they run on the CPU.
            plan.notes.iter().for_each(|note| output::tell(&format!("{}: {note}\n", plan.graph.name)));
        }
        let journal = match self.take_up(graph, shard)? {
            Some(Opened::Finished(finished)) => {
                if !telling.quiet {
                    output::tell(&resuming::finished(&finished, graph));
                }
                return Ok(finished.sealed.code);
            }
            Some(Opened::Ready(journal)) => Some(*journal),
            None => None,
        };
        let begins = journal.as_ref().and_then(|journal| resuming::begins(journal, graph));
        if let Some(text) = begins.filter(|_| !telling.quiet) {
            output::tell(&text);
        }
        let files = Files::create(&telling)?;
        let metrics = telling.metrics_addr.as_deref().map(Metrics::bind).transpose()?;
        if let Some(metrics) = &metrics {
            output::tell(&format!("{}: figures for Prometheus at http://{}/metrics\n", graph.name, metrics.address()));
        }
        let cancel = Cancel::new();
        interrupts.run_begins(&cancel);
        let memory_killer = MemoryKiller::watch();
        let setup = Setup {
            build: crate::BUILD.to_owned(),
            program: None,
            trace: files.trace.as_ref().map(TraceFile::trace),
            shard,
            try_row: Some(trial::of(&self.pipeline)),
            on_stall: Some(stalls::tell(&graph.name, &cx.above)),
        };
        let mut report = self.execute(cx, plan, cancel, &setup, journal, committed, &telling, metrics);
        interrupts.run_has_ended();
        let n_kills = memory_killer.n_kills();
        if let Some(fault) = &mut report.fault {
            memory_killer::explain(fault, n_kills);
        }
        let Saved { trace, faults } = files.finish(&report);
        let code = conclude(&report, graph, &telling, Beside { trace, n_kills });
        for fault in faults {
            let failure = Failure::from(fault);
            // The run's own end says more than a file about it that could not be written.
            if code == exit::DONE || code == exit::REJECTS {
                return Err(failure);
            }
            failure.tell();
        }
        Ok(code)
    }

    /// What the command line puts over `run:` in the file.
    fn options(&self) -> RunOptions {
        let options = self.shard.over(RunOptions {
            max_rejects: self.max_rejects,
            limit: self.limit,
            job_timeout: self.job_timeout,
            metrics_addr: self.metrics_addr.clone(),
            quiet: self.quiet.then_some(true),
            ..RunOptions::default()
        });
        self.lasting.over(self.placement.over(options))
    }

    /// What an earlier run of this pipeline has done; `None` where no journal is kept.
    fn take_up(&self, graph: &Graph, shard: Option<Shard>) -> Result<Option<Opened>, Failure> {
        if !can_resume(graph) {
            return Ok(None);
        }
        let start = if self.fresh { Start::Fresh } else { Start::Resume };
        Ok(Some(Journal::open(graph, shard, start, crate::BUILD)?))
    }

    /// From the first thread to the last.
    #[expect(clippy::too_many_arguments, reason = "the parts of one run")]
    fn execute(
        &self,
        cx: &Context<'_>,
        plan: Plan,
        cancel: Cancel,
        setup: &Setup,
        journal: Option<Journal>,
        committed: &Committed,
        telling: &Telling,
        metrics: Option<Metrics>,
    ) -> Report {
        let graph = plan.graph.clone();
        let is_kept = journal.is_some();
        let running = match Running::start(plan, cancel, setup, journal) {
            Ok(running) => running,
            Err(fault) => return never_started(&graph, fault),
        };
        if is_kept {
            let stats = running.stats();
            committed.is_told_by(move || stats.committed.load(Ordering::Relaxed));
        }
        for told in running.told() {
            output::tell(&format!("{}: {told}\n", graph.name));
        }
        let meter = Meter::of(&running);
        // Dropped, and with that closed, when the run has ended.
        let _serving = metrics.map(|metrics| metrics.serve(&running));
        let progress = if telling.shows_progress(&graph) {
            // A run is worth more than its display: without a thread for that it goes on unseen.
            Progress::start(for_stderr(&cx.above), meter.snapshots()).ok()
        } else {
            None
        };
        let report = running.join();
        if let Some(progress) = progress {
            progress.finish();
        }
        report
    }
}

/// The files about the run that were asked for.
struct Files {
    report: Option<OutputFile>,
    trace: Option<TraceFile>,
}

/// What became of them.
struct Saved {
    /// Where the trace is.
    trace: Option<PathBuf>,
    /// Why one could not be written.
    faults: Vec<Fault>,
}

impl Files {
    fn create(telling: &Telling) -> Result<Self, Failure> {
        let report = telling.report.as_deref().map(|path| OutputFile::create("report", path)).transpose()?;
        let trace = telling.trace.as_deref().map(TraceFile::create).transpose()?;
        if let (Some(report), Some(trace)) = (&report, &trace)
            && report.is_also(trace.file())
        {
            return Err(Failure::usage("the report and the trace are to be one file: give one of them another name"));
        }
        Ok(Files { report, trace })
    }

    fn finish(self, report: &Report) -> Saved {
        let mut faults = Vec::new();
        let trace = self.trace.and_then(|file| {
            file.finish(report).unwrap_or_else(|fault| {
                faults.push(fault);
                None
            })
        });
        faults.extend(self.report.and_then(|file| save(file, report).err()));
        Saved { trace, faults }
    }
}

fn save(file: OutputFile, report: &Report) -> Result<(), Fault> {
    let mut text = serde_json::to_vec_pretty(report).map_err(|error| file.fault(&error.into()))?;
    text.push(b'\n');
    file.save(&text)
}

/// What is told of the run, and where.
struct Telling {
    quiet: bool,
    report: Option<PathBuf>,
    trace: Option<PathBuf>,
    metrics_addr: Option<String>,
}

impl Telling {
    /// What the document says after the command line was put over it. The command line's paths are taken from there,
    /// since they start from another folder.
    fn of(document: &Document, run: &Run, shard: Option<Shard>) -> Self {
        let path = |given: &Option<PathBuf>, in_file: &Option<String>| {
            let path = given.clone().or_else(|| in_file.as_deref().map(|path| document.resolve(path)))?;
            // Each shard has a file of its own.
            Some(match (shard, path.to_str()) {
                (Some(shard), Some(path)) => PathBuf::from(shard.name(path)),
                _ => path,
            })
        };
        Telling {
            quiet: document.run.quiet.unwrap_or(false),
            report: path(&run.report, &document.run.report),
            trace: path(&run.trace, &document.run.trace),
            metrics_addr: document.run.metrics_addr.clone(),
        }
    }

    /// Bars and rows on one terminal would spoil each other.
    fn shows_progress(&self, graph: &Graph) -> bool {
        let rows_to_stdout = graph.sinks().any(|sink| graph.nodes[sink].node.writes(&graph.base).is_empty());
        let both_on_screen =
            rows_to_stdout && Terminal::stdout().cursor == Cursor::Moves && Terminal::stderr().cursor == Cursor::Moves;
        !self.quiet && !both_on_screen
    }
}

/// Says how the run ended.
fn conclude(report: &Report, graph: &Graph, telling: &Telling, beside: Beside) -> u8 {
    let terminal = Terminal::stderr();
    if report.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Closed) {
        return exit::DONE;
    }
    output::tell(&ending::text(report, &beside, graph, telling.quiet, &terminal));
    report.exit_code
}

/// The report of a run whose nodes could not be built.
fn never_started(graph: &Graph, fault: Fault) -> Report {
    Report {
        name: graph.name.clone(),
        outcome: engine::runtime::Outcome::Failed,
        exit_code: crate::failure::fault_code(&fault),
        resumed_at: 0,
        committed: 0,
        redone: 0,
        seconds: 0.0,
        rows_in: 0,
        fault: Some(fault),
        nodes: Vec::new(),
        workers: Vec::new(),
        outputs: Vec::new(),
        rejects: engine::runtime::RejectReport::default(),
        accounts: Vec::new(),
        bottleneck: None,
        stalls: Vec::new(),
    }
}
