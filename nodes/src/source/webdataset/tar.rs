//! The members of a tar, one after the other: GNU, PAX, ustar and older ones, as Python's `tarfile` reads them.
//!
//! Nothing is believed before it is there: a size takes no memory, headers are bounded, and a tar that ends early or
//! contradicts itself is an error that says after which member.

use std::io::{self, Read};

use engine::data::{Reject, code};

use super::header::{BLOCK, Header, Kind};
use super::key::shown;
use super::pax::Pax;
use crate::source::stream::Stream;

/// Memory for a body is taken at once up to this size, and beyond it as bytes come.
const TAKEN_AT_ONCE: u64 = 64 << 20;

/// A tar that is read from front to back.
pub(super) struct Tar {
    stream: Stream,
    /// How users see it.
    uri: String,
    max_header_bytes: u64,
    /// Bytes before the next header: of the body, and behind it up to the next full block.
    n_left: u64,
    n_padding: u64,
    globals: Pax,
    n_headers: u64,
    n_members: u64,
    last: Vec<u8>,
}

/// A member, before its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) size: u64,
    pub(super) kind: Kind,
}

impl Tar {
    pub(super) fn new(stream: Stream, uri: &str, max_header_bytes: u64) -> Self {
        Tar {
            stream,
            uri: uri.to_owned(),
            max_header_bytes,
            n_left: 0,
            n_padding: 0,
            globals: Pax::default(),
            n_headers: 0,
            n_members: 0,
            last: Vec::new(),
        }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The next member; `None` at the end. What is left of the one before is passed over.
    ///
    /// # Errors
    /// Why there is nothing that can be read from here on.
    pub(super) fn next_member(&mut self) -> Result<Option<Member>, Reject> {
        let mut long_name = None;
        let mut pax = self.globals.clone();
        loop {
            self.pass_over()?;
            let Some(header) = self.header()? else {
                let is_end = long_name.is_none() && pax == self.globals;
                return if is_end { Ok(None) } else { Err(self.truncated()) };
            };
            let size = header.size().ok_or_else(|| self.corrupt("a header's size is no number or a negative one"))?;
            let kind = header.kind();
            match kind {
                Kind::LongName => {
                    let name = self.extension(size)?;
                    long_name = Some(name.split(|&byte| byte == 0).next().unwrap_or_default().to_owned());
                    continue;
                }
                Kind::Pax | Kind::GlobalPax => {
                    let records = self.extension(size)?;
                    let into = if kind == Kind::Pax { &mut pax } else { &mut self.globals };
                    if into.read(&records).is_none() {
                        return Err(self.corrupt("a PAX header has records that are none"));
                    }
                    if kind == Kind::GlobalPax {
                        pax = self.globals.clone();
                    }
                    continue;
                }
                Kind::Sparse if header.is_extended() => while self.block()?.is_some_and(|block| block.goes_on()) {},
                _ => {}
            }
            let size = match kind {
                Kind::Bodiless => 0,
                _ => pax.size.unwrap_or(size),
            };
            let name = pax.path.or(long_name).unwrap_or_else(|| header.name());
            let kind = if pax.is_sparse && kind == Kind::File { Kind::Sparse } else { kind };
            self.expect(size)?;
            self.n_members += 1;
            self.last.clone_from(&name);
            return Ok(Some(Member { name, size, kind }));
        }
    }

    /// Looks at what follows behind the end: the checksum of what it is packed by.
    ///
    /// # Errors
    /// If that is wrong, so that some of what came out may be so too.
    pub(super) fn finish(&mut self) -> Result<(), Reject> {
        self.stream.finish().map_err(|error| self.failed(&error))
    }

    /// The body of the member that was read last.
    ///
    /// # Errors
    /// If the tar ends within it.
    pub(super) fn body(&mut self) -> Result<Vec<u8>, Reject> {
        let n_bytes = self.n_left;
        let mut body = Vec::with_capacity(n_bytes.min(TAKEN_AT_ONCE) as usize);
        let read = self.stream.by_ref().take(n_bytes).read_to_end(&mut body);
        read.map_err(|error| self.failed(&error))?;
        if (body.len() as u64) < n_bytes {
            return Err(self.ends_within_last());
        }
        self.n_left = 0;
        Ok(body)
    }

    /// Passes over the body of the member that was read last.
    ///
    /// # Errors
    /// If the tar ends within it.
    pub(super) fn skip_body(&mut self) -> Result<(), Reject> {
        let n_passed = self.stream.skip(self.n_left).map_err(|error| self.failed(&error))?;
        if n_passed < self.n_left {
            return Err(self.ends_within_last());
        }
        self.n_left = 0;
        Ok(())
    }

    /// Says that a body of `size` bytes follows.
    fn expect(&mut self, size: u64) -> Result<(), Reject> {
        let block = BLOCK as u64;
        self.n_left = size;
        self.n_padding = (block - size % block) % block;
        match size.checked_add(self.stream.position() + 2 * block) {
            Some(end) if end < i64::MAX as u64 => Ok(()),
            _ => Err(self.corrupt("a header's size is larger than any file")),
        }
    }

    fn pass_over(&mut self) -> Result<(), Reject> {
        let n_bytes = self.n_left + self.n_padding;
        if n_bytes == 0 {
            return Ok(());
        }
        let n_passed = self.stream.skip(n_bytes).map_err(|error| self.failed(&error))?;
        if n_passed < self.n_left {
            return Err(self.ends_within_last());
        }
        if n_passed < n_bytes {
            return Err(self.truncated());
        }
        (self.n_left, self.n_padding) = (0, 0);
        Ok(())
    }

    /// The body of a header that says more about another one.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Reject> {
        if size > self.max_header_bytes {
            let message = format!("`{}`: a header has {size} bytes, more than `max_header_bytes`", self.uri);
            return Err(Reject::new(code::TOO_LARGE, format!("{message} {}{}", self.max_header_bytes, self.after())));
        }
        self.expect(size)?;
        let body = self.body();
        body.map_err(|reject| if reject.code == code::TRUNCATED { self.truncated() } else { reject })
    }

    /// The next header; `None` at the end.
    fn header(&mut self) -> Result<Option<Header>, Reject> {
        let is_first = self.n_headers == 0;
        let Some(header) = self.block()? else {
            if is_first {
                return Err(Reject::new(code::EMPTY, format!("`{}` has no bytes", self.uri)));
            }
            return Ok(None);
        };
        self.n_headers += 1;
        if header.is_end() {
            return Ok(None);
        }
        if !header.has_right_sum() {
            if is_first {
                return Err(self.no_tar());
            }
            return Err(self.corrupt("a header's checksum is wrong"));
        }
        Ok(Some(header))
    }

    fn block(&mut self) -> Result<Option<Header>, Reject> {
        let mut block = [0; BLOCK];
        let n_read = self.stream.read_up_to(&mut block).map_err(|error| self.failed(&error))?;
        match n_read {
            0 => Ok(None),
            BLOCK => Ok(Some(Header::new(block))),
            _ if self.n_headers == 0 => Err(self.no_tar()),
            _ => Err(self.truncated()),
        }
    }

    fn no_tar(&self) -> Reject {
        Reject::new(code::UNSUPPORTED, format!("`{}` is no tar", self.uri))
    }

    fn truncated(&self) -> Reject {
        Reject::new(code::TRUNCATED, format!("`{}` ends early{}", self.uri, self.after()))
    }

    fn ends_within_last(&self) -> Reject {
        let message =
            format!("`{}` ends early, within `{}`, its member number {}", self.uri, shown(&self.last), self.n_members);
        Reject::new(code::TRUNCATED, message)
    }

    fn corrupt(&self, what: &str) -> Reject {
        Reject::new(code::CORRUPT, format!("`{}` cannot be read any further: {what}{}", self.uri, self.after()))
    }

    fn failed(&self, error: &io::Error) -> Reject {
        let reject = self.stream.reject(error);
        Reject::new(reject.code, format!("{}{}", reject.message, self.after()))
    }

    fn after(&self) -> String {
        match self.n_members {
            0 => ", before its first member".to_owned(),
            number => format!(", after `{}`, its member number {number}", shown(&self.last)),
        }
    }
}
