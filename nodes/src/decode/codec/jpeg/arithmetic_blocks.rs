//! Blocks of arithmetic-coded scans, sequential and progressive: annexes F and G of the standard.

use super::super::super::error::DecodeError;
use super::arithmetic::{Context, Decider};
use super::bits::Damage;
use super::frame::{Coding, MAX_COMPONENTS};
use super::idct::Block;
use super::scan::{BlockCoder, Scan};
use super::tables::{Conditioning, NATURAL_ORDER, Quant};
use super::{corrupt, truncated};

/// What a scan brings.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    DcFirst,
    DcRefine,
    AcFirst,
    AcRefine,
}

/// What is remembered of a component.
#[derive(Clone, Copy, Default)]
struct Component {
    dc: usize,
    ac: usize,
    previous: i32,
    /// What the last difference was: none, small or large, up or down.
    trend: usize,
}

/// Decodes blocks, or parts of them.
pub(super) struct Arithmetic<'a, 'q> {
    decider: Decider<'a>,
    part: Part,
    scan: Scan,
    conditioning: Conditioning,
    /// For whole blocks: what each component's coefficients are multiplied with.
    quants: &'q [Quant; MAX_COMPONENTS],
    components: [Component; MAX_COMPONENTS],
    dc: [[Context; 64]; 16],
    ac: [[Context; 256]; 16],
}

impl<'a, 'q> Arithmetic<'a, 'q> {
    pub(super) fn new(
        decider: Decider<'a>,
        coding: Coding,
        scan: &Scan,
        conditioning: Conditioning,
        quants: &'q [Quant; MAX_COMPONENTS],
    ) -> Self {
        let mut components = [Component::default(); MAX_COMPONENTS];
        for (component, slot) in components.iter_mut().zip(scan.components()) {
            // Numbers of tables have four bits.
            *component = Component { dc: slot.dc & 15, ac: slot.ac & 15, ..Component::default() };
        }
        let part = match (coding, scan.first, scan.high) {
            (Coding::Sequential, ..) => Part::Whole,
            (Coding::Progressive, 0, 0) => Part::DcFirst,
            (Coding::Progressive, 0, _) => Part::DcRefine,
            (Coding::Progressive, _, 0) => Part::AcFirst,
            (Coding::Progressive, ..) => Part::AcRefine,
        };
        let (dc, ac) = ([[Context::default(); 64]; 16], [[Context::default(); 256]; 16]);
        Self { decider, part, scan: *scan, conditioning, quants, components, dc, ac }
    }

    /// The first coefficient, from how it differs from that of the block before.
    fn first(&mut self, slot: usize) -> Result<i32, Damage> {
        let Component { dc, previous, trend, .. } = &mut self.components[slot];
        let (lower, upper) = self.conditioning.dc[*dc];
        let contexts = &mut self.dc[*dc];
        let decider = &mut self.decider;
        if !decider.decide(&mut contexts[*trend]) {
            *trend = 0;
            return Ok(*previous);
        }
        let is_negative = decider.decide(&mut contexts[*trend + 1]);
        let mut at = *trend + 2 + usize::from(is_negative);
        let mut bit = i32::from(decider.decide(&mut contexts[at]));
        if bit != 0 {
            at = 20;
            while decider.decide(&mut contexts[at]) {
                bit <<= 1;
                if bit == 0x8000 {
                    return Err(Damage::TooLarge);
                }
                at += 1;
            }
        }
        let direction = if is_negative { 4 } else { 0 };
        *trend = match bit {
            bit if bit < (1 << lower) >> 1 => 0,
            bit if bit > (1 << upper) >> 1 => 12 + direction,
            _ => 4 + direction,
        };
        let value = Self::magnitude(decider, bit, &mut contexts[at + 14]);
        *previous = previous.wrapping_add(if is_negative { -value } else { value });
        Ok(*previous)
    }

    /// The bits below the highest one, and one more.
    fn magnitude(decider: &mut Decider<'_>, highest: i32, context: &mut Context) -> i32 {
        let (mut value, mut bit) = (highest, highest >> 1);
        while bit != 0 {
            if decider.decide(context) {
                value |= bit;
            }
            bit >>= 1;
        }
        value + 1
    }

    /// The next coefficient at or behind `n`, up to `end`. `None`: no more.
    fn next(&mut self, slot: usize, mut n: usize, end: usize) -> Result<Option<(usize, i32)>, Damage> {
        let table = self.components[slot].ac;
        let contexts = &mut self.ac[table];
        let decider = &mut self.decider;
        if decider.decide(&mut contexts[3 * (n - 1)]) {
            return Ok(None);
        }
        while !decider.decide(&mut contexts[3 * (n - 1) + 1]) {
            n += 1;
            if n > end {
                return Err(Damage::BeyondBlock);
            }
        }
        let is_negative = decider.decide(&mut Context::FIXED.clone());
        let mut at = 3 * (n - 1) + 2;
        let mut bit = i32::from(decider.decide(&mut contexts[at]));
        if bit != 0 && decider.decide(&mut contexts[at]) {
            bit <<= 1;
            at = if n <= usize::from(self.conditioning.ac[table]) { 189 } else { 217 };
            while decider.decide(&mut contexts[at]) {
                bit <<= 1;
                if bit == 0x8000 {
                    return Err(Damage::TooLarge);
                }
                at += 1;
            }
        }
        let value = Self::magnitude(decider, bit, &mut contexts[at + 14]);
        Ok(Some((n, if is_negative { -value } else { value })))
    }

    fn whole(&mut self, slot: usize, block: &mut Block) -> Result<usize, Damage> {
        let quant = &self.quants[slot];
        block[0] = (self.first(slot)? as i16).wrapping_mul(quant[0]);
        let (mut n, mut last) = (1, 0);
        while n < 64 {
            let Some((found, value)) = self.next(slot, n, 63)? else {
                break;
            };
            let place = usize::from(NATURAL_ORDER[found]);
            block[place] = (value as i16).wrapping_mul(quant[place]);
            last = found;
            n = found + 1;
        }
        Ok(last)
    }

    fn ac_first(&mut self, block: &mut Block) -> Result<(), Damage> {
        let mut n = self.scan.first;
        while n <= self.scan.last {
            let Some((found, value)) = self.next(0, n, self.scan.last)? else {
                break;
            };
            block[usize::from(NATURAL_ORDER[found])] = (value << self.scan.low) as i16;
            n = found + 1;
        }
        Ok(())
    }

    fn ac_refine(&mut self, block: &mut Block) -> Result<(), Damage> {
        let step = 1_i16 << self.scan.low;
        let contexts = &mut self.ac[self.components[0].ac];
        let decider = &mut self.decider;
        let known_end = (1..=self.scan.last).rev().find(|&n| block[usize::from(NATURAL_ORDER[n])] != 0).unwrap_or(0);
        let mut n = self.scan.first;
        while n <= self.scan.last {
            if n > known_end && decider.decide(&mut contexts[3 * (n - 1)]) {
                break;
            }
            loop {
                let coefficient = &mut block[usize::from(NATURAL_ORDER[n])];
                if *coefficient != 0 {
                    if decider.decide(&mut contexts[3 * (n - 1) + 2]) {
                        *coefficient = coefficient.wrapping_add(if *coefficient < 0 { -step } else { step });
                    }
                    break;
                }
                if decider.decide(&mut contexts[3 * (n - 1) + 1]) {
                    *coefficient = if decider.decide(&mut Context::FIXED.clone()) { -step } else { step };
                    break;
                }
                n += 1;
                if n > self.scan.last {
                    return Err(Damage::BeyondBlock);
                }
            }
            n += 1;
        }
        Ok(())
    }
}

impl BlockCoder for Arithmetic<'_, '_> {
    fn block(&mut self, slot: usize, block: &mut Block) -> Result<usize, Damage> {
        match self.part {
            Part::Whole => return self.whole(slot, block),
            Part::DcFirst => block[0] = (self.first(slot)? << self.scan.low) as i16,
            Part::DcRefine => {
                if self.decider.decide(&mut Context::FIXED.clone()) {
                    block[0] |= 1 << self.scan.low;
                }
            }
            Part::AcFirst => self.ac_first(block)?,
            Part::AcRefine => self.ac_refine(block)?,
        }
        Ok(self.scan.last)
    }

    fn restart(&mut self, n: u8) -> Result<(), DecodeError> {
        for component in &mut self.components {
            (component.previous, component.trend) = (0, 0);
        }
        self.dc = [[Context::default(); 64]; 16];
        self.ac = [[Context::default(); 256]; 16];
        self.decider.restart(n)
    }

    fn check(&self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn refusal(&self, damage: Damage) -> DecodeError {
        if self.decider.is_exhausted() { truncated("a scan ends early") } else { corrupt(damage.to_string()) }
    }

    fn place(&self) -> usize {
        self.decider.place()
    }
}
