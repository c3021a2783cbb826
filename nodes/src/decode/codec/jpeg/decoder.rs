//! The way through a file's scans.

use super::super::super::error::DecodeError;
use super::arithmetic::Decider;
use super::arithmetic_blocks::Arithmetic;
use super::bits::BitReader;
use super::coefficients::Coefficients;
use super::frame::{Coding, Frame, MAX_COMPONENTS};
use super::huffman::{Codes, Huffman};
use super::planes::Planes;
use super::progressive::{Part, Progressive};
use super::scan::{BlockCoder, Scan};
use super::segments::{Segments, marker};
use super::sequential::{Coded, Sequential};
use super::tables::{Quant, Tables};
use super::{corrupt, truncated};

/// Codes that are ready, by class and number of their table. They outlive a picture: most pictures have the same.
#[derive(Debug, Default)]
pub(super) struct ReadyCodes {
    dc: [Option<Box<Huffman>>; 4],
    ac: [Option<Box<Huffman>>; 4],
}

impl ReadyCodes {
    /// Readies the tables of each component: those for first coefficients, those for others, or both.
    fn ready(&mut self, scan: &Scan, tables: &Tables, dc: Wanted, ac: Wanted) -> Result<(), DecodeError> {
        for slot in scan.components() {
            if dc == Wanted::Yes {
                let table = ready(&mut self.dc, &tables.dc, slot.dc)?;
                if !table.is_of_differences() {
                    return Err(corrupt("a Huffman table of differences has other symbols"));
                }
            }
            if ac == Wanted::Yes {
                ready(&mut self.ac, &tables.ac, slot.ac)?;
            }
        }
        Ok(())
    }

    fn dc(&self, index: usize) -> &Huffman {
        self.dc[index].as_ref().expect("made ready")
    }

    fn ac(&self, index: usize) -> &Huffman {
        self.ac[index].as_ref().expect("made ready")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

fn ready<'r>(
    slots: &'r mut [Option<Box<Huffman>>; 4],
    codes: &[Option<Codes>; 4],
    index: usize,
) -> Result<&'r Huffman, DecodeError> {
    let codes = codes.get(index).and_then(Option::as_ref);
    Huffman::ready(&mut slots[index & 3], codes.ok_or_else(|| corrupt(format!("Huffman table {index} is missing")))?)
}

/// Steps for coefficients that are multiplied later.
const UNITY: [Quant; MAX_COMPONENTS] = [[1; 64]; MAX_COMPONENTS];

/// A file, at the header of a scan.
pub(super) struct Decoder<'a, 'w> {
    pub(super) segments: Segments<'a>,
    pub(super) tables: Tables,
    pub(super) frame: &'w Frame,
    pub(super) codes: &'w mut ReadyCodes,
}

impl Decoder<'_, '_> {
    /// Scans go through so many times the picture's blocks in all, or are refused: a small file of scans that bring nothing must
    /// not take minutes. Real ones go through them about six times.
    const MAX_PASSES: usize = 100;

    /// Decodes the scan that has all of the picture.
    pub(super) fn run_at_once(
        mut self,
        scan: &Scan,
        mut planes: Planes<'_>,
        raster: &mut [u8],
    ) -> Result<(), DecodeError> {
        let frame = self.frame;
        let mut quants = [[0; 64]; MAX_COMPONENTS];
        for (component, quant) in frame.components().iter().zip(&mut quants) {
            *quant = *self.tables.quant(component.quant)?;
        }
        let interval = self.tables.restart_interval;
        self.segments.at = if frame.arithmetic {
            let mut coder = self.arithmetic(scan, &quants);
            scan.stream(frame, interval, &mut coder, &mut planes, raster)?;
            coder.place()
        } else {
            let mut coder = self.sequential(scan, &quants)?;
            scan.stream(frame, interval, &mut coder, &mut planes, raster)?;
            coder.place()
        };
        self.segments.expect_end()
    }

    /// Decodes one scan after the other, and then makes the picture.
    pub(super) fn run_scans(
        mut self,
        mut scan: Scan,
        mut coefficients: Coefficients<'_>,
        mut planes: Planes<'_>,
        raster: &mut [u8],
    ) -> Result<(), DecodeError> {
        let frame = self.frame;
        let mut blocks_left = Self::MAX_PASSES.saturating_mul(frame.n_blocks());
        loop {
            blocks_left = blocks_left
                .checked_sub(scan.n_blocks(frame))
                .ok_or_else(|| corrupt(format!("its scans go through it more than {} times", Self::MAX_PASSES)))?;
            if frame.coding == Coding::Progressive {
                scan.check_progression()?;
            }
            coefficients.begin(&scan, &self.tables)?;
            let interval = self.tables.restart_interval;
            self.segments.at = match frame.coding {
                _ if frame.arithmetic => {
                    let mut coder = self.arithmetic(&scan, &UNITY);
                    scan.collect(frame, interval, &mut coder, &mut coefficients)?;
                    coder.place()
                }
                Coding::Sequential => {
                    let mut coder = self.sequential(&scan, &UNITY)?;
                    scan.collect(frame, interval, &mut coder, &mut coefficients)?;
                    coder.place()
                }
                Coding::Progressive => {
                    let mut coder = self.progressive(&scan)?;
                    scan.collect(frame, interval, &mut coder, &mut coefficients)?;
                    coder.place()
                }
            };
            match self.next_scan()? {
                Some(next) => scan = next,
                None => return coefficients.render(&mut planes, raster),
            }
        }
    }

    /// Takes in the tables before the next scan. `None`: there is none.
    fn next_scan(&mut self) -> Result<Option<Scan>, DecodeError> {
        loop {
            let segment = self.segments.next()?;
            let body = self.segments.body(&segment);
            match segment.marker {
                marker::EOI => return Ok(None),
                marker::SOS => return Scan::read(body, self.frame).map(Some),
                marker if marker::is_frame(marker) => return Err(corrupt("it has two frame headers")),
                marker => self.tables.read(marker, body)?,
            }
        }
    }

    fn sequential(&mut self, scan: &Scan, quants: &[Quant; MAX_COMPONENTS]) -> Result<Sequential<'_, '_>, DecodeError> {
        self.tables.assume_standard_codes();
        self.codes.ready(scan, &self.tables, Wanted::Yes, Wanted::Yes)?;
        let mut components = [None; MAX_COMPONENTS];
        for ((coded, slot), quant) in components.iter_mut().zip(scan.components()).zip(quants) {
            *coded = Some(Coded { dc: self.codes.dc(slot.dc), ac: self.codes.ac(slot.ac), quant: *quant });
        }
        let reader = BitReader::new(self.segments.bytes, self.segments.at);
        Ok(Sequential::new(reader, components))
    }

    fn arithmetic<'q>(&self, scan: &Scan, quants: &'q [Quant; MAX_COMPONENTS]) -> Arithmetic<'_, 'q> {
        let decider = Decider::new(self.segments.bytes, self.segments.at);
        Arithmetic::new(decider, self.frame.coding, scan, self.tables.conditioning, quants)
    }

    fn progressive(&mut self, scan: &Scan) -> Result<Progressive<'_, '_>, DecodeError> {
        let part = match (scan.first, scan.high) {
            (0, 0) => {
                self.codes.ready(scan, &self.tables, Wanted::Yes, Wanted::No)?;
                let mut tables = [None; MAX_COMPONENTS];
                for (table, slot) in tables.iter_mut().zip(scan.components()) {
                    *table = Some(self.codes.dc(slot.dc));
                }
                Part::DcFirst(tables)
            }
            (0, _) => Part::DcRefine,
            (_, high) => {
                self.codes.ready(scan, &self.tables, Wanted::No, Wanted::Yes)?;
                let table = self.codes.ac(scan.components()[0].ac);
                if high == 0 { Part::AcFirst(table) } else { Part::AcRefine(table) }
            }
        };
        let reader = BitReader::new(self.segments.bytes, self.segments.at);
        Ok(Progressive::new(reader, part, *scan))
    }
}

/// What is said of a file without a scan that it needs.
pub(super) fn incomplete() -> DecodeError {
    truncated("its scans do not bring all of it")
}
