//! What can be set without changing results.

use std::fmt;
use std::num::NonZeroUsize;

use engine::config::{Document, Edit, Isolation, WorkersPerDevice};
use engine::graph::Written;
use engine::node::Role;
use engine::schedule::{DevicePlace, Plan};

/// The largest batch that is tried.
const LARGEST_BATCH: usize = 1024;
/// The most workers of a device that are tried.
const MOST_WORKERS: usize = 16;

/// The settings of a pipeline.
pub(super) struct Knobs(pub(super) Vec<Knob>);

/// What each knob is set to; `None` where it is as in the file.
pub(super) type Point = Vec<Option<Setting>>;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(untagged)]
pub(super) enum Setting {
    Number(usize),
    Word(&'static str),
}

/// One setting.
pub(super) struct Knob {
    /// As it is called in tables.
    pub(super) name: String,
    what: What,
    /// What it is without a word in the file.
    pub(super) default: Setting,
    most: usize,
}

enum What {
    /// An option of a node: its name and the option's.
    Batch(String, &'static str),
    Rows,
    Model,
    Workers,
    Isolation,
}

impl Knobs {
    /// The knobs of a pipeline as it was planned.
    pub(super) fn of(plan: &Plan) -> Self {
        let cores = plan.inventory.cores;
        let mut knobs = batches(plan);
        let number = |name: &str, what, default: usize, most: usize| Knob {
            name: name.to_owned(),
            what,
            default: Setting::Number(default),
            most: most.max(default),
        };
        knobs.push(number("run.threads.rows", What::Rows, plan.pools.rows, cores * 2));
        let workers = &plan.placement.workers;
        let of_cpu = || workers.iter().filter(|worker| worker.device == DevicePlace::Cpu);
        let threads: usize = of_cpu().map(|worker| worker.threads).sum();
        if threads > 0 {
            knobs.push(number("run.threads.model", What::Model, threads, cores));
        }
        if let Some(first) = workers.first() {
            let n_workers = workers.iter().filter(|worker| worker.device == first.device).count();
            let most = if first.device == DevicePlace::Cpu { threads } else { MOST_WORKERS };
            knobs.push(number("run.workers_per_device", What::Workers, n_workers, most));
        }
        if of_cpu().next().is_some() && plan.placement.isolation == Isolation::Process {
            let default = Setting::Word("process");
            knobs.push(Knob { name: "run.isolation".to_owned(), what: What::Isolation, default, most: 0 });
        }
        Knobs(knobs)
    }

    /// Sets them in a document.
    pub(super) fn apply(&self, point: &Point, document: &mut Document) {
        for (knob, setting) in self.0.iter().zip(point) {
            match (&knob.what, *setting) {
                (_, None) => {}
                (What::Isolation, Some(_)) => document.run.isolation = Some(Isolation::Thread),
                (_, Some(Setting::Word(_))) => {}
                (What::Batch(node, option), Some(Setting::Number(n))) => {
                    let decl = document.nodes.iter_mut().find(|decl| decl.name.value == *node);
                    if let Some(with) = decl.and_then(|decl| decl.with.as_mapping_mut()) {
                        with.insert((*option).into(), (n as u64).into());
                    }
                }
                (What::Rows, Some(Setting::Number(n))) => {
                    document.run.threads.get_or_insert_default().rows = NonZeroUsize::new(n);
                }
                (What::Model, Some(Setting::Number(n))) => {
                    document.run.threads.get_or_insert_default().model = NonZeroUsize::new(n);
                }
                (What::Workers, Some(Setting::Number(n))) => {
                    document.run.workers_per_device = NonZeroUsize::new(n).map(WorkersPerDevice::Count);
                }
            }
        }
    }

    /// The same as edits of the file.
    pub(super) fn edits(&self, point: &Point) -> Vec<Edit> {
        let set = self.0.iter().zip(point).filter_map(|(knob, setting)| Some((knob, (*setting)?)));
        let edit = |(knob, setting): (&Knob, Setting)| {
            let path = match &knob.what {
                What::Batch(node, option) => vec!["nodes", node, "with", option],
                What::Rows | What::Model | What::Workers | What::Isolation => knob.name.split('.').collect(),
            };
            Edit { path: path.into_iter().map(str::to_owned).collect(), value: setting.to_string() }
        };
        set.map(edit).collect()
    }

    /// What is not as in the file: `scores.batch 16`.
    pub(super) fn words(&self, point: &Point) -> Vec<String> {
        let set = self.0.iter().zip(point).filter_map(|(knob, setting)| Some((knob, (*setting)?)));
        set.map(|(knob, setting)| format!("{} {setting}", knob.name)).collect()
    }
}

impl Knob {
    /// The settings beside one: the way up first.
    pub(super) fn beside(&self, setting: Setting) -> Vec<Setting> {
        let Setting::Number(n) = setting else { return vec![Setting::Word("thread")] };
        let (more, less) = match self.what {
            What::Batch(..) | What::Workers => (n * 2, n / 2),
            // Threads by halves: what lies between matters where there are few.
            _ => (n + n.div_ceil(2), n - n.div_ceil(3)),
        };
        let fits = |other: &usize| (1..=self.most).contains(other) && *other != n;
        [more.min(self.most), less].into_iter().filter(fits).map(Setting::Number).collect()
    }
}

/// The sizes of batches, by the nodes that say them.
fn batches(plan: &Plan) -> Vec<Knob> {
    let graph = &plan.graph;
    let knob = |node_idx: usize| {
        let node = &graph.nodes[node_idx];
        let size = node.output.batch?;
        let (name, option) = match node.written {
            Written::Explicit => (&node.name, "size"),
            Written::Implicit => {
                let reader =
                    graph.nodes.iter().find(|reader| reader.inputs.iter().any(|edge| edge.from == node_idx))?;
                (&reader.name, "batch")
            }
        };
        let decl = graph.nodes.iter().find(|node| node.name == *name)?;
        decl.kind.schema()["properties"].get(option)?;
        Some(Knob {
            name: format!("{name}.{option}"),
            what: What::Batch(name.clone(), option),
            default: Setting::Number(size),
            most: LARGEST_BATCH.max(size),
        })
    };
    graph.with_role(Role::Batch).filter_map(knob).collect()
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(n) => write!(f, "{n}"),
            Setting::Word(word) => f.write_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_double_and_threads_go_by_halves() {
        let knob = |what, most| Knob { name: String::new(), what, default: Setting::Number(1), most };
        let beside = |knob: &Knob, n: usize| -> Vec<String> {
            knob.beside(Setting::Number(n)).iter().map(ToString::to_string).collect()
        };
        let batch = knob(What::Batch(String::new(), "batch"), 64);
        assert_eq!(
            [beside(&batch, 8), beside(&batch, 1), beside(&batch, 64)],
            [vec!["16", "4"], vec!["2"], vec!["32"]]
        );
        let rows = knob(What::Rows, 4);
        assert_eq!([beside(&rows, 2), beside(&rows, 1), beside(&rows, 4)], [vec!["3", "1"], vec!["2"], vec!["2"]]);
    }
}
