//! Going on where an earlier run was stopped: what that means for each source and each sink.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::committer;
use super::ledger::{SourceEnd, end_of};
use super::progress::SourceNotes;
use crate::config::OnChange;
use crate::data::RowPos;
use crate::graph::Graph;
use crate::journal::{Journal, Listing, Relisting, SinkCut, Stamps};
use crate::node::{Fault, Reading, Role, Sealed, SourceStage, Stage, Stamp};

/// Names in a message at most.
const MAX_NAMES: usize = 3;
/// Items that are looked at together.
const LOOKED_AT_ONCE: usize = 4096;

/// Where a run begins.
pub(super) struct Origin {
    /// By source: the position of the first row to be done.
    pub(super) starts: Vec<RowPos>,
    /// By source: how many rows are before it.
    pub(super) rows: Vec<u64>,
    /// By source: what is noted of it.
    pub(super) notes: Vec<SourceNotes>,
    /// By sink, in their order.
    pub(super) sinks: Vec<SinkCut>,
    /// By sink: its parts that have their names.
    pub(super) closed: Vec<Vec<Sealed>>,
    /// Rows that were written and have to be done again.
    pub(super) redone: u64,
    /// What is to be told.
    pub(super) told: Vec<String>,
}

/// A source's items that are not what they were when they were read.
#[derive(Default)]
struct Changes {
    changed: Vec<(u64, String)>,
    gone: Vec<(u64, String)>,
}

impl Origin {
    /// Sets sources and sinks to where the journal says.
    ///
    /// # Errors
    /// If they cannot go on from there.
    pub(super) fn of(
        graph: &Graph,
        journal: Option<&mut Journal>,
        built: &mut [(usize, Stage)],
    ) -> Result<Origin, Fault> {
        let n_sources = graph.with_role(Role::Source).count();
        let mut origin = Origin {
            starts: (0..n_sources as u32).map(RowPos::start_of).collect(),
            rows: vec![0; n_sources],
            notes: (0..n_sources).map(|_| SourceNotes::default()).collect(),
            sinks: committer::starts_of(graph, None),
            closed: graph.sinks().map(|_| Vec::new()).collect(),
            redone: 0,
            told: Vec::new(),
        };
        let Some(journal) = journal else {
            origin.count_rows(graph, built);
            return Ok(origin);
        };
        let listings = listings(graph, journal, built)?;
        if journal.from().is_some() {
            origin.told = check_changes(graph, journal, &listings, built)?;
        }
        let cut = journal.from().cloned();
        if let Some(cut) = &cut {
            origin.starts = (0..).zip(&cut.sources).map(|(number, source)| source.position(number)).collect();
            origin.rows = cut.sources.iter().map(|source| source.done).collect();
            origin.sinks = committer::starts_of(graph, Some(cut));
            origin.closed = graph.sinks().map(|sink| journal.closed(&graph.nodes[sink].name)).collect();
        }
        for (node_idx, stage) in &mut *built {
            let node = &graph.nodes[*node_idx];
            match stage {
                Stage::Source(source) => {
                    let number = node.source.expect("a source has a number") as usize;
                    let start = origin.starts[number];
                    origin.notes[number] = notes(journal, number, start.index, &listings[number])?;
                    if let Some(cut) = &cut
                        && is_closed(graph, number as u32, cut)
                    {
                        let rows = origin.rows[number];
                        let end = SourceEnd { at: start, rows, is_complete: true, is_all: true };
                        origin.notes[number].end = Some(end);
                    }
                    set(source, start.index, &listings[number])?;
                }
                Stage::Sink(sink) if cut.is_some() => {
                    let number = graph.sinks().position(|sink| sink == *node_idx).expect("it is a sink");
                    let redone = sink.resume(&origin.sinks[number].pos).map_err(|fault| fault.in_node(&node.name))?;
                    origin.redone = origin.redone.max(redone);
                }
                _ => {}
            }
        }
        origin.count_rows(graph, built);
        Ok(origin)
    }

    /// Begins to count the rows of items that hold many: nothing else says how many there are before a position.
    fn count_rows(&mut self, graph: &Graph, built: &[(usize, Stage)]) {
        for (node_idx, stage) in built {
            if let (Stage::Source(source), Some(number)) = (stage, graph.nodes[*node_idx].source)
                && matches!(source.reading, Reading::Unpacked(_))
            {
                let (start, rows) = (self.starts[number as usize], self.rows[number as usize]);
                let before = BTreeMap::from([(start.index, rows - u64::from(start.sub))]);
                self.notes[number as usize].rows_before = Some(before);
            }
        }
    }

    /// Where each source begins, as the ledger sees it: one that is not listed again is past its end.
    pub(super) fn frontier(&self) -> Vec<RowPos> {
        let of = |(start, notes): (&RowPos, &SourceNotes)| {
            if notes.end.is_some() { end_of(start.source) } else { *start }
        };
        self.starts.iter().zip(&self.notes).map(of).collect()
    }
}

/// The records of what sources have listed, by source; none for those whose listing is always the same.
fn listings(
    graph: &Graph,
    journal: &Journal,
    built: &[(usize, Stage)],
) -> Result<Vec<Option<Arc<Mutex<Listing>>>>, Fault> {
    let mut listings: Vec<_> = graph.with_role(Role::Source).map(|_| None).collect();
    for (node_idx, stage) in built {
        if let (Stage::Source(source), Some(number)) = (stage, graph.nodes[*node_idx].source)
            && !source.list.is_fixed()
        {
            let listing = Listing::open(&journal.folder().listing(number as usize))?;
            listings[number as usize] = Some(Arc::new(Mutex::new(listing)));
        }
    }
    Ok(listings)
}

fn notes(
    journal: &Journal,
    number: usize,
    start: u64,
    listing: &Option<Arc<Mutex<Listing>>>,
) -> Result<SourceNotes, Fault> {
    let stamps = listing.as_ref().map(|_| Stamps::open(&journal.folder().stamps(number), start)).transpose()?;
    Ok(SourceNotes { listing: listing.clone(), stamps, ..SourceNotes::default() })
}

/// Sets a source to the item at which it begins.
fn set(source: &mut SourceStage, start: u64, listing: &Option<Arc<Mutex<Listing>>>) -> Result<(), Fault> {
    match listing {
        Some(listing) => {
            let list = std::mem::replace(&mut source.list, Box::new(Nothing));
            source.list = Box::new(Relisting::new(list, listing.clone(), start)?);
            Ok(())
        }
        None if start > 0 => source.list.seek(start),
        None => Ok(()),
    }
}

/// Stands for a list while it is wrapped.
pub(super) struct Nothing;

impl crate::node::List for Nothing {
    fn next_items(&mut self, _max: usize, _items: &mut Vec<crate::node::Item>) -> Result<(), Fault> {
        Ok(())
    }

    fn seek(&mut self, _index: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// Whether rows of a later source are behind those of this one in some output: then it has none to come.
fn is_closed(graph: &Graph, source: u32, cut: &crate::journal::Cut) -> bool {
    graph
        .read_by_sinks()
        .iter()
        .filter(|reads| reads.contains(&source))
        .any(|reads| reads.iter().any(|&later| later > source && cut.sources[later as usize].done > 0))
}

/// Compares the items that are done with what they are now, and does what the pipeline says about those that differ.
fn check_changes(
    graph: &Graph,
    journal: &mut Journal,
    listings: &[Option<Arc<Mutex<Listing>>>],
    built: &[(usize, Stage)],
) -> Result<Vec<String>, Fault> {
    let cut = journal.from().cloned().unwrap_or_default();
    let (mut first, mut told) = (vec![None; listings.len()], Vec::new());
    for (node_idx, stage) in built {
        let node = &graph.nodes[*node_idx];
        let (Stage::Source(source), Some(number)) = (stage, node.source.map(|number| number as usize)) else {
            continue;
        };
        let Some(listing) = &listings[number] else { continue };
        let stamps = Stamps::read(&journal.folder().stamps(number))?;
        let recorded = listing.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).items()?;
        let done = (cut.sources[number].n_items() as usize).min(stamps.len());
        let changes = compare(&source.reading, recorded.take(done), &stamps)?;
        match graph.run.on_change.unwrap_or_default() {
            OnChange::Keep => {
                let what = "their rows stay as they are (`on_change: reprocess` does them again)";
                told.extend(changes.text(what));
            }
            OnChange::Reprocess => {
                first[number] = changes.changed.first().map(|(index, _)| *index);
                told.extend(changes.text("the run goes back to the first that has changed"));
            }
            OnChange::Fail => {
                if let Some(text) = changes.text("`on_change: fail` keeps the run from going on") {
                    let help = "begin anew with `--fresh`, or go on with `on_change: keep` or `on_change: reprocess`";
                    return Err(Fault::permanent(text).in_node(&node.name).help(help));
                }
            }
        }
    }
    if first.iter().any(Option::is_some) {
        journal.go_back(graph, &first)?;
    }
    Ok(told)
}

fn compare(
    reading: &Reading,
    mut recorded: impl Iterator<Item = Result<crate::node::Item, Fault>>,
    stamps: &[Stamp],
) -> Result<Changes, Fault> {
    let mut changes = Changes::default();
    let mut stamps = (0..).zip(stamps);
    loop {
        // Many at once: what they are now may have to be asked for.
        let items = recorded.by_ref().take(LOOKED_AT_ONCE).collect::<Result<Vec<_>, _>>()?;
        if items.is_empty() {
            return Ok(changes);
        }
        let now = reading.stamps(&items);
        for ((item, now), (index, &before)) in items.into_iter().zip(now).zip(&mut stamps) {
            let Some(now) = now.filter(|now| *now != before) else { continue };
            let list = if now == Stamp::NONE { &mut changes.gone } else { &mut changes.changed };
            list.push((index, item.uri));
        }
    }
}

impl Changes {
    /// What there is, if there is something, and what comes of it.
    fn text(&self, then: &str) -> Option<String> {
        let names = |list: &[(u64, String)]| {
            let mut names: Vec<_> = list.iter().take(MAX_NAMES).map(|(_, uri)| format!("`{uri}`")).collect();
            if list.len() > MAX_NAMES {
                names.push("…".to_owned());
            }
            names.join(", ")
        };
        let part = |list: &[(u64, String)], verb: &str| {
            let files = if list.len() == 1 {
                "1 file that is done".to_owned()
            } else {
                format!("{} files that are done", list.len())
            };
            (!list.is_empty()).then(|| format!("{files} {verb} since ({})", names(list)))
        };
        let has = |list: &[(u64, String)]| if list.len() == 1 { "has" } else { "have" };
        let changed = part(&self.changed, &format!("{} changed", has(&self.changed)));
        let gone = part(&self.gone, &format!("{} gone", has(&self.gone)));
        let parts: Vec<_> = changed.into_iter().chain(gone).collect();
        (!parts.is_empty()).then(|| format!("{}: {then}", parts.join(", ")))
    }
}
