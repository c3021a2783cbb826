//! The frame header: size, coding, and the grid of blocks of each component.

use super::super::super::error::DecodeError;
use super::corrupt;
use super::scale::Scale;

/// Samples along the side of a block.
pub(super) const BLOCK: usize = 8;

/// The most components that are decoded: printing inks.
pub(super) const MAX_COMPONENTS: usize = 4;

/// How coefficients are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Coding {
    #[default]
    Sequential,
    Progressive,
}

/// One colour: its sampling and the grid of its blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks in each unit of an interleaved scan, along and down.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Which quantisation table.
    pub(super) quant: usize,
    /// Samples along the side of a block, once it is transformed.
    pub(super) size: usize,
    /// Samples that stand in the picture.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Blocks that have at least one sample in the picture: what a scan of this component alone codes.
    pub(super) blocks_wide: usize,
    pub(super) blocks_high: usize,
    /// Blocks of whole units: what an interleaved scan codes.
    pub(super) padded_wide: usize,
    pub(super) padded_high: usize,
}

/// What the frame header says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frame {
    pub(super) coding: Coding,
    pub(super) arithmetic: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    components: [Component; MAX_COMPONENTS],
    n_components: usize,
    /// Samples along the side of a block of the component that has most: how large the picture is decoded.
    pub(super) size: usize,
    /// The size of the picture as it is decoded.
    pub(super) scaled_width: usize,
    pub(super) scaled_height: usize,
    /// The largest sampling factors.
    pub(super) max_h: usize,
    pub(super) max_v: usize,
    /// Units of an interleaved scan.
    pub(super) units_wide: usize,
    pub(super) units_high: usize,
}

impl Frame {
    /// Reads the body of a frame's segment.
    pub(super) fn read(marker: u8, body: &[u8]) -> Result<Self, DecodeError> {
        let short = || corrupt("its frame header has the wrong length");
        let &[precision, y1, y0, x1, x0, n, ref components @ ..] = body else {
            return Err(short());
        };
        let n_components = usize::from(n);
        if components.len() != n_components * 3 {
            return Err(short());
        }
        if n_components == 0 {
            return Err(corrupt("it has no components"));
        }
        let kind = match marker & 0x0f {
            3 | 7 | 11 | 15 => Some("lossless"),
            5 | 6 | 13 | 14 => Some("hierarchical"),
            _ => None,
        };
        if let Some(kind) = kind {
            return Err(DecodeError::unsupported(format!(
                "{kind} JPEG is not decoded: save it as baseline or progressive"
            )));
        }
        if precision != 8 {
            return Err(DecodeError::unsupported(format!("JPEG with {precision} bits a sample is not decoded")));
        }
        if !matches!(n_components, 1 | 3 | 4) {
            return Err(DecodeError::unsupported(format!("JPEG with {n_components} components is not decoded")));
        }
        let mut frame = Self {
            coding: if matches!(marker & 0x0f, 2 | 10) { Coding::Progressive } else { Coding::Sequential },
            arithmetic: marker & 0x0f >= 8,
            height: usize::from(y1) << 8 | usize::from(y0),
            width: usize::from(x1) << 8 | usize::from(x0),
            n_components,
            size: BLOCK,
            ..Self::default()
        };
        for (component, said) in frame.components.iter_mut().zip(components.chunks_exact(3)) {
            *component = Component {
                id: said[0],
                h: usize::from(said[1] >> 4),
                v: usize::from(said[1] & 15),
                quant: usize::from(said[2]),
                ..Component::default()
            };
        }
        frame.check_factors()?;
        frame.lay_out();
        Ok(frame)
    }

    /// Decodes the picture at another scale.
    pub(super) fn scale_to(&mut self, scale: Scale) {
        self.size = scale.block();
        self.lay_out();
    }

    pub(super) fn components(&self) -> &[Component] {
        &self.components[..self.n_components]
    }

    /// The fewest bits that a scan of all components can have, with Huffman codes: one for each block.
    pub(super) fn least_bits(&self) -> usize {
        self.components().iter().map(|component| component.blocks_wide * component.blocks_high).sum()
    }

    /// Blocks of all components, padding included.
    pub(super) fn n_blocks(&self) -> usize {
        self.components().iter().map(|component| component.padded_wide * component.padded_high).sum()
    }

    fn check_factors(&mut self) -> Result<(), DecodeError> {
        if self.n_components == 1 {
            // There is nothing that its factors could relate to.
            (self.components[0].h, self.components[0].v) = match (self.components[0].h, self.components[0].v) {
                (1..=4, 1..=4) => (1, 1),
                wrong => wrong,
            };
        }
        if self.components().iter().any(|component| !(1..=4).contains(&component.h) || !(1..=4).contains(&component.v))
        {
            return Err(corrupt("a sampling factor is not 1 to 4"));
        }
        self.max_h = self.components().iter().map(|component| component.h).max().unwrap_or(1);
        self.max_v = self.components().iter().map(|component| component.v).max().unwrap_or(1);
        let (max_h, max_v) = (self.max_h, self.max_v);
        if self.components().iter().any(|component| max_h % component.h != 0 || max_v % component.v != 0) {
            return Err(DecodeError::unsupported(
                "JPEG with components that are stretched by a fraction is not decoded: save it anew",
            ));
        }
        Ok(())
    }

    fn lay_out(&mut self) {
        let (max_h, max_v) = (self.max_h, self.max_v);
        self.units_wide = self.width.div_ceil(max_h * BLOCK);
        self.units_high = self.height.div_ceil(max_v * BLOCK);
        self.scaled_width = (self.width * self.size).div_ceil(BLOCK);
        self.scaled_height = (self.height * self.size).div_ceil(BLOCK);
        let Self { width, height, size, units_wide, units_high, .. } = *self;
        for component in &mut self.components[..self.n_components] {
            // A component that is coded smaller is transformed larger, where that spares stretching it.
            component.size = size;
            while component.size < BLOCK
                && (max_h * size).is_multiple_of(component.h * component.size * 2)
                && (max_v * size).is_multiple_of(component.v * component.size * 2)
            {
                component.size *= 2;
            }
            component.width = (width * component.h * component.size).div_ceil(max_h * BLOCK);
            component.height = (height * component.v * component.size).div_ceil(max_v * BLOCK);
            component.blocks_wide = (width * component.h).div_ceil(max_h * BLOCK);
            component.blocks_high = (height * component.v).div_ceil(max_v * BLOCK);
            component.padded_wide = units_wide * component.h;
            component.padded_high = units_high * component.v;
        }
    }
}
