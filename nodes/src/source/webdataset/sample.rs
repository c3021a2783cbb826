//! Members that belong together: all that follow one another under one key.

use bytes::Bytes;
use engine::data::{Reject, code};

use super::key::shown;
use super::wanted::Wanted;

/// A sample with more members is none.
const MAX_MEMBERS: usize = 10_000;
/// A carried member is text that goes through to a sink: no book.
pub(super) const MAX_CARRIED_BYTES: u64 = 16 << 20;

/// A sample in the making.
pub(super) struct Sample {
    pub(super) key: Vec<u8>,
    /// In lower case.
    extensions: Vec<Vec<u8>>,
    /// The image, and where its extension stands among those that are wanted.
    image: Option<(usize, Bytes)>,
    carried: Vec<Option<Bytes>>,
    /// What is wrong with it, the first thing.
    wrong: Option<Reject>,
}

/// What came of a sample.
pub(super) struct Content {
    pub(super) image: Bytes,
    pub(super) carried: Vec<Option<Bytes>>,
}

/// What a member is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Image(usize),
    Carried(usize),
}

impl Sample {
    pub(super) fn new(key: &[u8], wanted: &Wanted) -> Self {
        let carried = vec![None; wanted.carried.len()];
        Sample { key: key.to_owned(), extensions: Vec::new(), image: None, carried, wrong: None }
    }

    /// Notes that there is a member with this extension, and says what it is wanted for.
    pub(super) fn member(&mut self, extension: &[u8], wanted: &Wanted, tar: &str) -> Vec<Use> {
        let extension = lower(extension);
        let name = || format!("`{tar}#{}`", shown(&self.key));
        if self.wrong.is_some() {
            return Vec::new();
        }
        if self.extensions.contains(&extension) {
            let message = format!("{} has two members `.{}`", name(), shown(&extension));
            self.wrong = Some(Reject::new(code::CORRUPT, message));
            return Vec::new();
        }
        if self.extensions.len() == MAX_MEMBERS {
            let message = format!("{} has more than {MAX_MEMBERS} members", name());
            self.wrong = Some(Reject::new(code::TOO_LARGE, message));
            return Vec::new();
        }
        let is_it = |wanted: &str| wanted.as_bytes() == extension;
        let mut uses = Vec::new();
        if let Some(rank) = wanted.image.iter().position(|image| is_it(image))
            && self.image.as_ref().is_none_or(|&(before, _)| rank < before)
        {
            uses.push(Use::Image(rank));
        }
        let carried = wanted.carried.iter().enumerate().filter(|(_, carried)| is_it(&carried.extension));
        uses.extend(carried.map(|(number, _)| Use::Carried(number)));
        self.extensions.push(extension);
        uses
    }

    /// Takes in the body of a member.
    pub(super) fn take(&mut self, uses: &[Use], body: Bytes) {
        for wanted in uses {
            match *wanted {
                Use::Image(rank) => self.image = Some((rank, body.clone())),
                Use::Carried(number) => self.carried[number] = Some(body.clone()),
            }
        }
    }

    /// Something is wrong with it.
    pub(super) fn is_bad(&mut self, reject: Reject) {
        self.wrong.get_or_insert(reject);
        self.image = None;
        self.carried.iter_mut().for_each(|carried| *carried = None);
    }

    /// Whether all is there that is wanted.
    pub(super) fn has_all(&self) -> bool {
        self.wrong.is_none() && self.image.is_some() && self.carried.iter().all(Option::is_some)
    }

    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> u64 {
        let image = self.image.as_ref().map_or(0, |(_, bytes)| bytes.len());
        let carried: usize = self.carried.iter().flatten().map(Bytes::len).sum();
        (image + carried) as u64
    }

    /// What came of it, for a tar of that name.
    pub(super) fn finish(self, wanted: &Wanted, tar: &str) -> Result<Content, Reject> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let Some((_, image)) = self.image else {
            let list = |extensions: &mut dyn Iterator<Item = String>| extensions.collect::<Vec<_>>().join(", ");
            let there = list(&mut self.extensions.iter().take(20).map(|extension| format!("`{}`", shown(extension))));
            let wanted = list(&mut wanted.image.iter().map(|extension| format!("`{extension}`")));
            let message =
                format!("`{tar}#{}` has no image: it has {there}, and one of {wanted} is wanted", shown(&self.key));
            return Err(Reject::new(code::NOT_FOUND, message));
        };
        Ok(Content { image, carried: self.carried })
    }
}

/// As `str::to_lowercase` where it is text.
fn lower(extension: &[u8]) -> Vec<u8> {
    std::str::from_utf8(extension)
        .map_or_else(|_| extension.to_ascii_lowercase(), |text| text.to_lowercase().into_bytes())
}
