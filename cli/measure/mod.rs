//! How fast a pipeline is: its input repeated, its outputs thrown away, its parts by themselves.
//!
//! Nodes are replaced between the graph and the plan, so that what runs is what `flowgpu run` runs. Sources start over at
//! their end, sinks only count, and a measurement ends by stopping the run, so that nothing is written and nothing is given
//! a name. Starting up is in no rate: see [`clock`].

mod clock;
mod driver;
mod interrupt;
mod memory;
mod parts;
mod portion;
mod sample;
mod sink;
mod source;
mod stub;
mod turns;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::config::Journaling;
use engine::data::Batch;
use engine::graph::{Graph, RowOrigin};
use engine::node::{Registry, Role, Stage};
use engine::runtime::RunStats;
use engine::schedule::Inventory;

use self::clock::Clock;
use self::driver::{Next, drive};
pub(crate) use self::interrupt::end_on_signals;
use self::parts::Parts;
use self::sample::Sampled;
use self::sink::Counting;
use self::stub::Stub;
use crate::failure::Failure;

/// How long a run may go without a row if there are rejects, in lengths of a measurement.
const PATIENCE_LENGTHS: u32 = 3;
/// The least of that.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much longer it may where nothing was rejected: it may be loading a model.
const LOADING: u32 = 10;

/// Measures pipelines.
pub(crate) struct Meter<'a> {
    /// The kinds that stand-ins borrow their names from.
    pub(crate) registry: &'a Registry,
    /// The machine.
    pub(crate) inventory: &'a Inventory,
    /// How long each measurement is.
    pub(crate) length: Duration,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Rows a second.
    pub(crate) rows: f64,
    /// Rows that were rejected meanwhile, those of each repetition counted.
    pub(crate) rejected: u64,
}

/// A part of a pipeline that was measured, or why it was not.
pub(crate) type Measured = Result<Rate, String>;

/// A pipeline's input, of which a sample has come as far as the first batch.
pub(crate) struct Input {
    parts: Parts,
    sampled: Sampled,
}

impl Input {
    /// Whether there is a batch, and with that a part before it.
    pub(crate) fn has_batches(&self) -> bool {
        !self.parts.border.is_empty()
    }
}

impl Meter<'_> {
    /// Looks whether the input gives rows, and keeps some as they are before the first batch.
    ///
    /// # Errors
    /// If it is empty, or all of it is rejected.
    pub(crate) fn input(&self, graph: &Graph) -> Result<Input, Failure> {
        let parts = Parts::of(graph);
        let sampled = sample::take(self, graph, &parts)?;
        Ok(Input { parts, sampled })
    }

    /// What comes before the first batch: all of it, where there is no batch.
    pub(crate) fn decode(&self, graph: &Graph, input: &Input) -> Result<Rate, Failure> {
        self.rate(input.parts.front(graph, self.registry))
    }

    /// What comes from the first batch on, fed from memory.
    pub(crate) fn infer(&self, graph: &Graph, input: &Input) -> Result<Measured, Failure> {
        if graph.with_role(Role::Infer).next().is_none() {
            return Ok(Err("the pipeline has no `infer` node".to_owned()));
        }
        match input.parts.back(graph, self.registry, &input.sampled) {
            Ok(graph) => self.rate(graph).map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The rate of a whole graph.
    pub(crate) fn rate(&self, mut graph: Graph) -> Result<Rate, Failure> {
        let clock = Arc::new(Clock::new(self.length, self.patience(), graph.nodes.len()));
        repeat(&mut graph, &clock);
        let counts: Vec<_> = counted(&graph).map(|sink| (sink, graph.sources_of(sink))).collect();
        let (stats, _) = drive(graph, self.inventory, |stats, elapsed| {
            let Some(first) = clock.first() else { return self.wait(stats, elapsed) };
            clock.expect(rows_read(stats));
            if clock.is_over() {
                return Ok(Next::Stop);
            }
            // The measurement begins after the warm-up, which takes no longer than itself.
            if first.elapsed() > self.length * 2 + self.patience() {
                let message = "no more than one batch came in the time that was measured";
                return Err(Failure::fault(format!("{message}: measure longer with `--seconds`")));
            }
            Ok(Next::GoOn)
        })?;
        match clock.rate(&counts) {
            Some(rows) => Ok(Rate { rows, rejected: n_rejected(&stats) }),
            None => Err(Failure::fault("the run ended before anything could be measured")),
        }
    }

    /// No row has come yet.
    fn wait(&self, stats: &RunStats, elapsed: Duration) -> Result<Next, Failure> {
        let n_rejected = n_rejected(stats);
        let patience = if n_rejected > 0 { self.patience() } else { self.patience() * LOADING };
        if elapsed < patience {
            return Ok(Next::GoOn);
        }
        let seconds = patience.as_secs();
        Err(Failure::fault(format!("no row came through within {seconds} s, and {n_rejected} were rejected")))
    }

    fn patience(&self) -> Duration {
        (self.length * PATIENCE_LENGTHS).max(PATIENCE)
    }
}

/// Rows that have left the node that is furthest.
fn rows_read(stats: &RunStats) -> u64 {
    stats.nodes.iter().map(|node| node.rows_out.load(Ordering::Relaxed)).max().unwrap_or(0)
}

fn n_rejected(stats: &RunStats) -> u64 {
    stats.nodes.iter().map(|node| node.rejects.load(Ordering::Relaxed)).sum()
}

/// The sinks that rows come to, and not only rejects.
fn counted(graph: &Graph) -> impl Iterator<Item = usize> + '_ {
    let has_rows =
        |sink: &usize| graph.nodes[*sink].origins.keys().any(|origin| matches!(origin, RowOrigin::Source(_)));
    graph.sinks().filter(has_rows)
}

/// Has a graph leave no trace, wherever its outputs, rejects and state would be.
fn leave_no_trace(graph: &mut Graph) {
    graph.run.journal = Some(Journaling::Off);
    graph.run.rejects = Some("/dev/null".to_owned());
    graph.run.state = Some("/dev/null/flowgpu".to_owned());
    graph.run.max_rejects = None;
}

/// Puts sources that start over and sinks that count in the place of a graph's own.
fn repeat(graph: &mut Graph, clock: &Arc<Clock>) {
    leave_no_trace(graph);
    let limit = graph.run.limit.take();
    let turns = turns::of(graph);
    let counted: Vec<_> = counted(graph).collect();
    for (node_idx, node) in graph.nodes.iter_mut().enumerate() {
        let (clock, inner) = (clock.clone(), node.node.clone());
        match (node.kind.role(), node.source) {
            (Role::Source, Some(number)) => {
                let turn = turns[number as usize];
                node.node = Stub::node(move |cx| {
                    Ok(match inner.build(cx)? {
                        Stage::Source(stage) => {
                            Stage::Source(source::repeating(stage, limit, turn, &clock, &cx.cancel))
                        }
                        other => other,
                    })
                });
            }
            (Role::Sink, _) => {
                let is_counted = counted.contains(&node_idx);
                let count = Arc::new(move |batch: &Batch| {
                    if is_counted {
                        clock.count(node_idx, batch.n_rows());
                    }
                });
                node.node = Stub::node(move |_| Ok(Stage::Sink(Box::new(Counting(count.clone())))));
            }
            _ => {}
        }
    }
}
