//! The samples of a tar, one after the other.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use engine::data::{Reject, code};
use engine::node::{Entries, Entry, Stamp};

use super::header::Kind;
use super::key::{is_meta, shown, split};
use super::sample::{MAX_CARRIED_BYTES, Sample, Use};
use super::tar::{Member, Tar};
use super::wanted::Wanted;
use crate::source::picking::{Container, Picks};

/// The samples of a tar from one of them on.
pub(super) struct Samples {
    tar: Tar,
    uri: String,
    wanted: Arc<Wanted>,
    /// Samples before the first that is wanted: of these only headers are read.
    skip: u64,
    /// The number of the sample that is being gathered.
    number: u64,
    current: Option<Sample>,
    /// Rows that have not been given yet: two at most.
    ready: VecDeque<Entry>,
    is_ended: bool,
    /// The samples that are wanted, if not all.
    picks: Option<Arc<Picks>>,
    /// What kept the tar from being read to its end.
    broken: Option<Reject>,
}

impl Samples {
    pub(super) fn new(tar: Tar, uri: &str, wanted: Arc<Wanted>, skip: u32, picks: Option<Arc<Picks>>) -> Self {
        let (uri, skip, ready) = (uri.to_owned(), skip.into(), VecDeque::new());
        Samples { tar, uri, wanted, skip, number: 0, current: None, ready, is_ended: false, picks, broken: None }
    }

    /// Takes in a member.
    fn take(&mut self, member: &Member) -> Result<(), Reject> {
        let is_regular = matches!(member.kind, Kind::File | Kind::Sparse);
        let Some((key, extension)) = split(&member.name).filter(|_| is_regular && !is_meta(&member.name)) else {
            return Ok(());
        };
        let sample = match self.current.take() {
            Some(sample) if sample.key == key => sample,
            before => {
                self.give(before);
                Sample::new(key, &self.wanted)
            }
        };
        let sample = self.current.insert(sample);
        let uses = sample.member(extension, &self.wanted, &self.uri);
        if uses.is_empty() {
            return Ok(());
        }
        if let Some(reject) = refused(member, &uses, &self.wanted, &self.uri) {
            sample.is_bad(reject);
            return Ok(());
        }
        let is_picked = self.picks.as_ref().is_none_or(|picks| picks.has(&shown(&sample.key)));
        let body = if self.number < self.skip || !is_picked {
            self.tar.skip_body()?;
            Bytes::new()
        } else {
            self.tar.body()?.into()
        };
        sample.take(&uses, body);
        Ok(())
    }

    /// Makes a sample a row, if it is one that is wanted.
    fn give(&mut self, sample: Option<Sample>) {
        let Some(sample) = sample else { return };
        let (key, bytes) = (shown(&sample.key), sample.bytes());
        let uri = format!("{}#{key}", self.uri);
        let content = sample.finish(&self.wanted, &self.uri).map(|content| Box::new(content) as _);
        self.give_row(Entry { uri, id: Some(key), bytes, content });
    }

    fn give_row(&mut self, entry: Entry) {
        let is_picked = self.picks.as_ref().is_none_or(|picks| entry.id.as_deref().is_some_and(|key| picks.has(key)));
        if self.number >= self.skip && is_picked {
            self.ready.push_back(entry);
        }
        self.number += 1;
    }

    /// The tar cannot be read any further. What is there of a sample is a row if it is all that is wanted, and is lost
    /// otherwise; the last row says why.
    fn end_badly(&mut self, reject: Reject) {
        let (whole, lost) = match self.current.take() {
            Some(sample) if sample.has_all() => (Some(sample), None),
            sample => (None, sample),
        };
        self.give(whole);
        self.broken = Some(reject.clone());
        let id = lost.map(|lost| shown(&lost.key));
        let uri = id.as_ref().map_or_else(|| self.uri.clone(), |key| format!("{}#{key}", self.uri));
        self.give_row(Entry { uri, id, bytes: 0, content: Err(reject) });
    }
}

/// Why a member cannot be taken, where that can be seen without its body.
fn refused(member: &Member, uses: &[Use], wanted: &Wanted, tar: &str) -> Option<Reject> {
    let name = format!("`{tar}`: the member `{}`", shown(&member.name));
    if member.kind == Kind::Sparse {
        return Some(Reject::new(code::UNSUPPORTED, format!("{name} is stored as a sparse file")));
    }
    let too_large = |limit: &str, max_bytes: u64| {
        let message = format!("{name} has {} bytes, more than {limit} {max_bytes}", member.size);
        Some(Reject::new(code::TOO_LARGE, message))
    };
    if member.size > wanted.max_member_bytes {
        return too_large("`max_member_bytes`", wanted.max_member_bytes);
    }
    let is_carried = uses.iter().any(|wanted| matches!(wanted, Use::Carried(_)));
    if is_carried && member.size > MAX_CARRIED_BYTES {
        return too_large("the limit for what is carried,", MAX_CARRIED_BYTES);
    }
    None
}

impl Entries for Samples {
    fn next_entry(&mut self) -> Option<Entry> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(entry);
            }
            if self.is_ended {
                return None;
            }
            let taken = match self.tar.next_member() {
                Ok(Some(member)) => self.take(&member),
                Ok(None) => {
                    self.is_ended = true;
                    let last = self.current.take();
                    self.give(last);
                    self.tar.finish()
                }
                Err(reject) => Err(reject),
            };
            if let Err(reject) = taken {
                self.is_ended = true;
                self.end_badly(reject);
            }
        }
    }

    fn stamp(&self) -> Stamp {
        self.tar.stream().stamp()
    }
}

impl Container for Samples {
    fn broken(&self) -> Option<&Reject> {
        self.broken.as_ref()
    }
}
