//! Scans: what their headers say, and the walk through their blocks.
//!
//! Knows where each block stands and where restarts are due, and nothing of how a block is coded: that is a [`BlockCoder`]'s.

use super::super::super::error::DecodeError;
use super::bits::Damage;
use super::coefficients::Coefficients;
use super::corrupt;
use super::frame::{Frame, MAX_COMPONENTS};
use super::idct::Block;
use super::planes::Planes;

/// What a scan's header says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scan {
    components: [ScanComponent; MAX_COMPONENTS],
    n_components: usize,
    /// The first and the last coefficient, in the order of coding. For progressive pictures only, as the next two.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The bit of the coefficients that was coded before; 0: none.
    pub(super) high: u32,
    /// The bit that is coded now.
    pub(super) low: u32,
}

/// A component of a scan and its tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScanComponent {
    /// Which of the frame's.
    pub(super) index: usize,
    pub(super) dc: usize,
    pub(super) ac: usize,
}

impl Scan {
    /// Units of at most so many blocks are allowed.
    const MAX_BLOCKS: usize = 10;

    /// Reads the body of a scan's header.
    pub(super) fn read(body: &[u8], frame: &Frame) -> Result<Self, DecodeError> {
        let wrong = || corrupt("a scan header has the wrong length");
        let [n, rest @ ..] = body else {
            return Err(wrong());
        };
        let n_components = usize::from(*n);
        if !(1..=frame.components().len()).contains(&n_components) {
            return Err(corrupt(format!("a scan has {n} components")));
        }
        let (said, &[first, last, bits]) = rest.split_at_checked(n_components * 2).ok_or_else(wrong)? else {
            return Err(wrong());
        };
        let mut scan = Self {
            n_components,
            first: usize::from(first),
            last: usize::from(last),
            high: u32::from(bits >> 4),
            low: u32::from(bits & 15),
            ..Self::default()
        };
        let mut from = 0;
        for (slot, said) in scan.components.iter_mut().zip(said.chunks_exact(2)) {
            let found = frame.components()[from..].iter().position(|component| component.id == said[0]);
            let index = from + found.ok_or_else(|| corrupt(format!("a scan has no component {} to code", said[0])))?;
            *slot = ScanComponent { index, dc: usize::from(said[1] >> 4), ac: usize::from(said[1] & 15) };
            from = index + 1;
        }
        let blocks = |slot: &ScanComponent| frame.components()[slot.index].h * frame.components()[slot.index].v;
        if n_components > 1 && scan.components().iter().map(blocks).sum::<usize>() > Self::MAX_BLOCKS {
            return Err(corrupt(format!("a scan has units of more than {} blocks", Self::MAX_BLOCKS)));
        }
        Ok(scan)
    }

    pub(super) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.n_components]
    }

    /// Refuses what no scan of a progressive picture can be.
    pub(super) fn check_progression(&self) -> Result<(), DecodeError> {
        let spectrum = match self.first {
            0 => self.last == 0,
            first => first <= self.last && self.last < 64 && self.n_components == 1,
        };
        let bits = self.low <= 13 && (self.high == 0 || self.high == self.low + 1);
        if spectrum && bits { Ok(()) } else { Err(corrupt("a scan of a progressive picture is none")) }
    }

    /// How many blocks the scan goes through.
    pub(super) fn n_blocks(&self, frame: &Frame) -> usize {
        match self.components() {
            [alone] => frame.components()[alone.index].blocks_wide * frame.components()[alone.index].blocks_high,
            slots => {
                let all = slots.iter().map(|slot| &frame.components()[slot.index]);
                all.map(|component| component.padded_wide * component.padded_high).sum()
            }
        }
    }

    /// Decodes the scan that has all of the picture, and hands each row of units on to become pixels.
    pub(super) fn stream(
        &self,
        frame: &Frame,
        restart_interval: usize,
        coder: &mut impl BlockCoder,
        planes: &mut Planes<'_>,
        raster: &mut [u8],
    ) -> Result<(), DecodeError> {
        let mut restarts = Restarts::new(restart_interval);
        let mut block = [0; 64];
        let [seen_x, seen_y] = planes.units();
        for unit_y in 0..frame.units_high {
            let row_is_seen = seen_y.contains(&unit_y);
            for unit_x in 0..frame.units_wide {
                let is_seen = row_is_seen && seen_x.contains(&unit_x);
                restarts.before_unit(coder)?;
                for (slot, component) in frame.components().iter().enumerate() {
                    for y in 0..component.v {
                        for x in unit_x * component.h..(unit_x + 1) * component.h {
                            block.fill(0);
                            let last = coder.block(slot, &mut block).map_err(|damage| coder.refusal(damage))?;
                            // What pads the last units of a row is not seen; below, rows are left out when lines are made.
                            if is_seen && x < component.blocks_wide {
                                planes.put(slot, x, y, &block, last);
                            }
                        }
                    }
                }
                coder.check()?;
            }
            if row_is_seen {
                planes.finish_row(unit_y, raster);
            }
        }
        Ok(())
    }

    /// Decodes a scan that brings a part of the coefficients.
    pub(super) fn collect(
        &self,
        frame: &Frame,
        restart_interval: usize,
        coder: &mut impl BlockCoder,
        coefficients: &mut Coefficients<'_>,
    ) -> Result<(), DecodeError> {
        let mut restarts = Restarts::new(restart_interval);
        if let [alone] = self.components() {
            let component = &frame.components()[alone.index];
            for y in 0..component.blocks_high {
                for x in 0..component.blocks_wide {
                    restarts.before_unit(coder)?;
                    let block = coefficients.block(alone.index, x, y);
                    coder.block(0, block).map_err(|damage| coder.refusal(damage))?;
                    coder.check()?;
                }
            }
            return Ok(());
        }
        for unit_y in 0..frame.units_high {
            for unit_x in 0..frame.units_wide {
                restarts.before_unit(coder)?;
                for (slot, scanned) in self.components().iter().enumerate() {
                    let component = &frame.components()[scanned.index];
                    for y in unit_y * component.v..(unit_y + 1) * component.v {
                        for x in unit_x * component.h..(unit_x + 1) * component.h {
                            let block = coefficients.block(scanned.index, x, y);
                            coder.block(slot, block).map_err(|damage| coder.refusal(damage))?;
                        }
                    }
                }
                coder.check()?;
            }
        }
        Ok(())
    }
}

/// Decodes block after block of a scan.
pub(super) trait BlockCoder {
    /// Decodes the next block of the scan's component number `slot`. Gives an index, in the order of coding, behind which this
    /// scan left no coefficient.
    fn block(&mut self, slot: usize, block: &mut Block) -> Result<usize, Damage>;

    /// Passes the restart marker number `n`, and forgets what was before.
    fn restart(&mut self, n: u8) -> Result<(), DecodeError>;

    /// Whether all that was decoded so far was there. Asked after each unit.
    fn check(&self) -> Result<(), DecodeError>;

    /// The reason for which decoding ends.
    fn refusal(&self, damage: Damage) -> DecodeError;

    /// From where on the end of the scan is to be looked for.
    fn place(&self) -> usize;
}

struct Restarts {
    interval: usize,
    left: usize,
    number: u8,
}

impl Restarts {
    fn new(interval: usize) -> Self {
        Self { interval, left: interval, number: 0 }
    }

    #[inline(always)]
    fn before_unit(&mut self, coder: &mut impl BlockCoder) -> Result<(), DecodeError> {
        if self.interval == 0 {
            return Ok(());
        }
        if self.left == 0 {
            coder.restart(self.number)?;
            self.number = (self.number + 1) % 8;
            self.left = self.interval;
        }
        self.left -= 1;
        Ok(())
    }
}
