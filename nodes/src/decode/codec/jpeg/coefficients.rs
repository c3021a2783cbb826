//! The coefficients of a whole picture, for files that bring them in several scans.

use super::super::super::error::DecodeError;
use super::corrupt;
use super::decoder::incomplete;
use super::frame::{Coding, Frame, MAX_COMPONENTS};
use super::idct::Block;
use super::planes::Planes;
use super::scan::Scan;
use super::tables::{Quant, Tables};

/// Coefficients as they are coded, not yet multiplied, and how much of them is known.
pub(super) struct Coefficients<'b> {
    samples: &'b mut [Vec<i16>; MAX_COMPONENTS],
    frame: &'b Frame,
    components: [Known; MAX_COMPONENTS],
}

#[derive(Clone, Copy)]
struct Known {
    /// The table that was in force when the component's first scan began.
    quant: Option<Quant>,
    /// For each coefficient, in the order of coding, the lowest bit that has come.
    lowest: [Option<u8>; 64],
}

impl<'b> Coefficients<'b> {
    /// All zero, in memory that was used before.
    pub(super) fn new(samples: &'b mut [Vec<i16>; MAX_COMPONENTS], frame: &'b Frame) -> Self {
        for (samples, component) in samples.iter_mut().zip(frame.components()) {
            let n = component.padded_wide * component.padded_high * 64;
            match samples.get_mut(..n) {
                Some(samples) => samples.fill(0),
                None => *samples = vec![0; n],
            }
        }
        Self { samples, frame, components: [Known { quant: None, lowest: [None; 64] }; MAX_COMPONENTS] }
    }

    #[inline(always)]
    pub(super) fn block(&mut self, index: usize, x: usize, y: usize) -> &mut Block {
        let at = (y * self.frame.components()[index].padded_wide + x) * 64;
        self.samples[index][at..].first_chunk_mut().expect("a block within its component")
    }

    /// Notes what a scan is about to bring.
    pub(super) fn begin(&mut self, scan: &Scan, tables: &Tables) -> Result<(), DecodeError> {
        for slot in scan.components() {
            let known = &mut self.components[slot.index];
            if known.quant.is_none() {
                known.quant = Some(*tables.quant(self.frame.components()[slot.index].quant)?);
            } else if self.frame.coding == Coding::Sequential {
                return Err(corrupt("a component has two scans"));
            }
            match self.frame.coding {
                Coding::Sequential => known.lowest = [Some(0); 64],
                Coding::Progressive => known.lowest[scan.first..=scan.last].fill(Some(scan.low as u8)),
            }
        }
        Ok(())
    }

    /// Makes the picture of them.
    pub(super) fn render(&self, planes: &mut Planes<'_>, raster: &mut [u8]) -> Result<(), DecodeError> {
        let components = self.frame.components();
        for known in &self.components[..components.len()] {
            // libjpeg guesses where one of these is missing.
            if known.lowest[..10].iter().any(|lowest| *lowest != Some(0)) {
                return Err(incomplete());
            }
        }
        let [seen_x, seen_y] = planes.units();
        for unit_y in seen_y {
            for (index, (component, known)) in components.iter().zip(&self.components).enumerate() {
                let columns = seen_x.start * component.h..(seen_x.end * component.h).min(component.blocks_wide);
                let quant = known.quant.as_ref().expect("a table for each component that has a scan");
                for y in 0..component.v {
                    let row = (unit_y * component.v + y) * component.padded_wide * 64;
                    let (blocks, _) = self.samples[index][row..].as_chunks::<64>();
                    for (x, coded) in columns.clone().zip(&blocks[columns.clone()]) {
                        let mut block: Block = [0; 64];
                        for ((out, coded), step) in block.iter_mut().zip(coded).zip(quant) {
                            *out = coded.wrapping_mul(*step);
                        }
                        let any = block[1..].iter().fold(0, |any, coefficient| any | coefficient);
                        planes.put(index, x, y, &block, if any == 0 { 0 } else { 63 });
                    }
                }
            }
            planes.finish_row(unit_y, raster);
        }
        Ok(())
    }
}
