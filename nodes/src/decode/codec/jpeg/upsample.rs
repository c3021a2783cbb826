//! Stretching lines of samples to the width and height of the picture, in libjpeg's way.
//!
//! Between two samples lie two pixels, at a quarter and three quarters of the way: each is three parts of the nearer sample and
//! one of the farther, along and down alike. Halves are rounded up and down in turn, so that there is no drift. Other factors
//! repeat samples, and so do lines of one or two.

use super::frame::{Component, Frame};
use super::kernel;

/// How a component's lines become as long, and as many, as the picture's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stretch {
    /// They are.
    #[default]
    None,
    /// Twice as long, weighed.
    Along,
    /// Twice as many, weighed.
    Down,
    /// Both.
    Both,
    /// Samples are repeated so many times along; lines are repeated by whoever asks for them.
    Repeat(usize),
}

impl Stretch {
    pub(super) fn of(component: &Component, frame: &Frame) -> Self {
        let along = frame.max_h * frame.size / (component.h * component.size);
        let down = frame.max_v * frame.size / (component.v * component.size);
        match (along, down) {
            (1, 1) => Self::None,
            // Blocks of one sample have no lines between which to weigh.
            (along, _) if frame.size == 1 => Self::Repeat(along),
            (2, 1) if component.width > 2 => Self::Along,
            (1, 2) => Self::Down,
            (2, 2) if component.width > 2 => Self::Both,
            (along, _) => Self::Repeat(along),
        }
    }

    /// Whether a line of pixels needs two lines of samples.
    pub(super) fn weighs_lines(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }

    /// Stretches a line of `width` samples; `far` is the neighbour of `near` on the side of the pixels' line, whose number is even
    /// or odd by `parity`. The result may be longer than what was asked for.
    pub(super) fn line(self, near: &[u8], far: &[u8], parity: usize, width: usize, out: &mut [u8]) {
        match self {
            Self::None => out[..width].copy_from_slice(&near[..width]),
            Self::Along => kernel::stretch_along(&near[..width], out),
            Self::Down => {
                let bias = parity as u16 + 1;
                for ((out, &near), &far) in out.iter_mut().zip(&near[..width]).zip(&far[..width]) {
                    *out = ((u16::from(near) * 3 + u16::from(far) + bias) >> 2) as u8;
                }
            }
            Self::Both => kernel::stretch_both(&near[..width], &far[..width], out),
            Self::Repeat(1) => out[..width].copy_from_slice(&near[..width]),
            Self::Repeat(n) => {
                for (out, &sample) in out.chunks_exact_mut(n).zip(&near[..width]) {
                    out.fill(sample);
                }
            }
        }
    }
}
