//! How the pixels of a TIFF file lie in it, by its tags.
//!
//! Read with Pillow's rules for tags that are missing or contradict each other, and with its list of what samples may mean.

use super::super::error::DecodeError;
use super::super::ifd::{ByteOrder, Directory};
use super::tiff_codec::Compression;
use super::{Format, Limits};

/// Everything about a picture but its bytes.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) model: Model,
    pub(super) numbers: Numbers,
    /// Of one sample: 1, 2, 4, 8, 12, 16 or 32.
    pub(super) bits: usize,
    /// Of one pixel; what is more in the file has no meaning and stands last.
    pub(super) samples: usize,
    pub(super) order: ByteOrder,
    /// The first pixel of a byte is in its low bits.
    pub(super) is_reversed: bool,
    pub(super) compression: Compression,
    /// Samples are stored as the difference to the pixel before.
    pub(super) is_differenced: bool,
    /// Each sample has a plane of its own.
    pub(super) is_planar: bool,
    pub(super) chunks: Chunks,
}

/// What the samples mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    Grey { is_inverted: bool },
    GreyAlpha,
    Rgb(Opacity),
    Palette { has_alpha: bool },
    Cmyk,
    Ycc,
}

/// Whether a pixel says how opaque it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opacity {
    None,
    Straight,
    /// Colours are multiplied with it already.
    Multiplied,
}

/// What kind of number a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Unsigned,
    Signed,
    Float,
}

/// The strips or tiles.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Columns and rows of each; strips are as wide as the picture.
    pub(super) size: [u32; 2],
    pub(super) is_tiled: bool,
    /// How many side by side.
    pub(super) across: usize,
    /// How many below each other.
    pub(super) down: usize,
    pub(super) offsets: Vec<usize>,
    /// Their lengths, where the file says so.
    pub(super) lengths: Vec<usize>,
}

mod tag {
    pub const WIDTH: u16 = 256;
    pub const HEIGHT: u16 = 257;
    pub const BITS: u16 = 258;
    pub const COMPRESSION: u16 = 259;
    pub const PHOTOMETRIC: u16 = 262;
    pub const FILL_ORDER: u16 = 266;
    pub const STRIP_OFFSETS: u16 = 273;
    pub const SAMPLES: u16 = 277;
    pub const ROWS_PER_STRIP: u16 = 278;
    pub const STRIP_LENGTHS: u16 = 279;
    pub const PLANAR: u16 = 284;
    pub const PREDICTOR: u16 = 317;
    pub const COLOUR_MAP: u16 = 320;
    pub const TILE_WIDTH: u16 = 322;
    pub const TILE_HEIGHT: u16 = 323;
    pub const TILE_OFFSETS: u16 = 324;
    pub const TILE_LENGTHS: u16 = 325;
    pub const EXTRA_SAMPLES: u16 = 338;
    pub const SAMPLE_FORMAT: u16 = 339;
    pub const JPEG_TABLES: u16 = 347;
}

/// More samples than any known meaning has.
const MAX_SAMPLES: u64 = 6;
/// More planes than that, of which the last may have no meaning.
const MAX_PLANES: u64 = 64;

fn corrupt(reason: impl Into<String>) -> DecodeError {
    DecodeError::corrupt(Format::Tiff, reason)
}

impl Layout {
    pub(super) fn read(directory: &Directory<'_>, limits: Limits) -> Result<Self, DecodeError> {
        let side = |tag, name| match directory.number(tag) {
            Some(side) => u32::try_from(side).map_err(|_| corrupt(format!("its {name} is {side}"))),
            None => Err(corrupt(format!("it does not say its {name}"))),
        };
        let (width, height) = (side(tag::WIDTH, "width")?, side(tag::HEIGHT, "height")?);
        limits.check(Format::Tiff, width, height)?;

        let compression = Compression::of(directory.number(tag::COMPRESSION).unwrap_or(1))?;
        let is_planar = directory.number(tag::PLANAR) == Some(2);
        let photometric = directory.number(tag::PHOTOMETRIC).unwrap_or(0);
        let is_reversed = match directory.number(tag::FILL_ORDER).unwrap_or(1) {
            1 => false,
            2 => true,
            other => return Err(corrupt(format!("its fill order is {other}"))),
        };
        let (samples, bits, extras) = samples(directory, is_planar)?;
        let n_planes = if is_planar { directory.number(tag::SAMPLES).unwrap_or(1).min(MAX_PLANES) as usize } else { 1 };
        let numbers = numbers(directory)?;
        let model = model(photometric, numbers, bits, samples, &extras)?;
        if (photometric, bits, directory.order()) == (0, 16, ByteOrder::Big) {
            // The other order is read, as in Pillow, without turning white into black: one wrong way is enough.
            return Err(unsupported("inverted grey of 16 bits"));
        }
        if let Model::Palette { .. } = model
            && directory.count(tag::COLOUR_MAP) < 3
        {
            return Err(corrupt("it has no palette"));
        }
        if is_planar && samples > 1 && bits % 8 != 0 {
            return Err(unsupported(format!("planes of {bits} bits")));
        }
        match (compression, model) {
            (Compression::Jpeg, Model::Grey { .. } | Model::Rgb(Opacity::None) | Model::Ycc)
                if bits == 8 && matches!(samples, 1 | 3) && (!is_planar || samples == 1) => {}
            (Compression::Jpeg, _) => return Err(unsupported(format!("{samples} samples of {bits} bits in JPEG"))),
            (_, Model::Ycc) => return Err(unsupported("YCbCr colours outside of JPEG")),
            _ => {}
        }
        let is_differenced = match directory.number(tag::PREDICTOR).unwrap_or(1) {
            _ if !compression.has_predictor() => false,
            1 => false,
            2 if matches!(bits, 8 | 16 | 32) => true,
            other => return Err(unsupported(format!("predictor {other} for {bits} bits"))),
        };
        let order = directory.order();
        let chunks = Chunks::read(directory, [width, height], n_planes, compression, limits)?;
        Ok(Self {
            width,
            height,
            model,
            numbers,
            bits,
            samples,
            order,
            is_reversed,
            compression,
            is_differenced,
            is_planar,
            chunks,
        })
    }

    /// Bytes of a row of one strip or tile, of one plane where there are several.
    pub(super) fn row_bytes(&self) -> usize {
        let samples = if self.is_planar { 1 } else { self.samples };
        (self.chunks.size[0] as usize * samples * self.bits).div_ceil(8)
    }

    /// The planes that are read.
    pub(super) fn planes(&self) -> usize {
        if self.is_planar { self.samples } else { 1 }
    }
}

/// The colours of a picture with a palette; black beyond the file's own.
pub(super) fn palette(directory: &Directory<'_>) -> [[u8; 3]; 256] {
    let n_entries = directory.count(tag::COLOUR_MAP) / 3;
    let mut palette = [[0; 3]; 256];
    for (n, value) in directory.numbers(tag::COLOUR_MAP).take(n_entries * 3).enumerate() {
        if let Some(entry) = palette.get_mut(n % n_entries) {
            entry[n / n_entries] = (value >> 8) as u8;
        }
    }
    palette
}

/// The tables that all strips or tiles of JPEG share.
pub(super) fn jpeg_tables<'a>(directory: &Directory<'a>) -> &'a [u8] {
    directory.bytes(tag::JPEG_TABLES).unwrap_or(&[])
}

/// Samples of a pixel, bits of a sample, and what the samples beyond the colours are.
fn samples(directory: &Directory<'_>, is_planar: bool) -> Result<(usize, usize, Vec<u64>), DecodeError> {
    let mut extras: Vec<u64> = directory.numbers(tag::EXTRA_SAMPLES).take(16).collect();
    let mut bits: Vec<u64> = directory.numbers(tag::BITS).take(16).collect();
    if bits.is_empty() {
        bits.push(1);
    }
    let mut samples = directory.number(tag::SAMPLES).unwrap_or(1);
    // Planes without a meaning need not be read.
    if is_planar && !extras.is_empty() && extras.iter().all(|&extra| extra == 0) {
        bits.truncate(bits.len().saturating_sub(extras.len()));
        samples = samples.saturating_sub(extras.len() as u64);
        extras.clear();
    }
    if samples == 0 || samples > MAX_SAMPLES {
        return Err(corrupt(format!("it has {samples} samples a pixel")));
    }
    let samples = samples as usize;
    bits.truncate(samples);
    if bits.len() == 1 {
        bits.resize(samples, bits[0]);
    }
    match bits.first() {
        Some(&first) if bits.len() == samples && bits.iter().all(|&other| other == first) && first <= 64 => {
            Ok((samples, first as usize, extras))
        }
        _ => Err(corrupt(format!("it has {samples} samples a pixel of {bits:?} bits"))),
    }
}

fn numbers(directory: &Directory<'_>) -> Result<Numbers, DecodeError> {
    let mut formats = directory.numbers(tag::SAMPLE_FORMAT).take(16);
    let format = formats.next().unwrap_or(1);
    if formats.any(|other| other != format) {
        return Err(unsupported("samples of several kinds"));
    }
    match format {
        1 => Ok(Numbers::Unsigned),
        2 => Ok(Numbers::Signed),
        3 => Ok(Numbers::Float),
        other => Err(unsupported(format!("samples of kind {other}"))),
    }
}

/// What the samples mean, if that is known.
fn model(
    photometric: u64,
    numbers: Numbers,
    bits: usize,
    samples: usize,
    extras: &[u64],
) -> Result<Model, DecodeError> {
    const UNSPECIFIED: u64 = 0;
    const MULTIPLIED: u64 = 1;
    const STRAIGHT: u64 = 2;
    // As Corel Draw 10 has it.
    const COREL: u64 = 999;
    let colours = match photometric {
        0 | 1 | 3 => 1,
        2 | 6 | 8 => 3,
        5 => 4,
        _ => return Err(unsupported(format!("colours of kind {photometric}"))),
    };
    let name = match photometric {
        0 | 1 => "grey",
        2 => "RGB",
        3 => "palette",
        5 => "CMYK",
        6 => "YCbCr",
        _ => "CIELAB",
    };
    let refused = || unsupported(format!("{name} of {samples} samples of {bits} bits ({numbers:?}, extra {extras:?})"));
    if photometric == 8 {
        return Err(refused());
    }
    // What stands behind the first extra sample must have no meaning.
    let rest = extras.get(1..).unwrap_or(&[]);
    if rest.iter().any(|&extra| extra != UNSPECIFIED) {
        return Err(refused());
    }
    let extra = match (extras.first(), samples.checked_sub(colours)) {
        (Some(&extra), Some(more)) if more == extras.len() => Some(extra),
        (None, Some(0)) => None,
        // Four samples and not a word about the last.
        (None, Some(1)) if photometric == 2 => Some(STRAIGHT),
        _ => return Err(refused()),
    };
    let is_plain = numbers == Numbers::Unsigned;
    match (photometric, bits, extra) {
        (0 | 1, 1 | 2 | 4 | 8, None) if is_plain => Ok(Model::Grey { is_inverted: photometric == 0 }),
        (1, 8, None) if numbers == Numbers::Signed => Ok(Model::Grey { is_inverted: false }),
        // Pillow does not invert the long ones.
        (1, 12, None) | (0 | 1, 16, None) | (1, 32, None) if is_plain => Ok(Model::Grey { is_inverted: false }),
        (1, 16 | 32, None) if numbers == Numbers::Signed => Ok(Model::Grey { is_inverted: false }),
        (0 | 1, 32, None) if numbers == Numbers::Float => Ok(Model::Grey { is_inverted: false }),
        (1, 8, Some(UNSPECIFIED)) if is_plain => Ok(Model::Grey { is_inverted: false }),
        (1, 8, Some(STRAIGHT)) if is_plain => Ok(Model::GreyAlpha),
        (2, 8 | 16, None | Some(UNSPECIFIED)) if is_plain => Ok(Model::Rgb(Opacity::None)),
        (2, 8 | 16, Some(MULTIPLIED)) if is_plain => Ok(Model::Rgb(Opacity::Multiplied)),
        (2, 8 | 16, Some(STRAIGHT | COREL)) if is_plain => Ok(Model::Rgb(Opacity::Straight)),
        (3, 1 | 2 | 4 | 8, None) if is_plain => Ok(Model::Palette { has_alpha: false }),
        (3, 8, Some(UNSPECIFIED)) if is_plain => Ok(Model::Palette { has_alpha: false }),
        (3, 8, Some(STRAIGHT)) if is_plain => Ok(Model::Palette { has_alpha: true }),
        (5, 8 | 16, None) | (5, 8, Some(UNSPECIFIED)) if is_plain => Ok(Model::Cmyk),
        (6, 8, None) if is_plain => Ok(Model::Ycc),
        _ => Err(refused()),
    }
}

pub(super) fn unsupported(what: impl std::fmt::Display) -> DecodeError {
    DecodeError::unsupported(format!("TIFF with {what} is not decoded"))
}

impl Chunks {
    fn read(
        directory: &Directory<'_>,
        picture: [u32; 2],
        n_planes: usize,
        compression: Compression,
        limits: Limits,
    ) -> Result<Self, DecodeError> {
        let [width, height] = picture;
        let is_tiled = directory.count(tag::STRIP_OFFSETS) == 0;
        let (offsets, lengths, size) = if is_tiled {
            let side = |tag| directory.number(tag).and_then(|side| u32::try_from(side).ok()).unwrap_or(0);
            let size = [side(tag::TILE_WIDTH), side(tag::TILE_HEIGHT)];
            if directory.count(tag::TILE_OFFSETS) == 0 {
                return Err(corrupt("it does not say where its pixels are"));
            }
            limits.check(Format::Tiff, size[0], size[1])?;
            (tag::TILE_OFFSETS, tag::TILE_LENGTHS, size)
        } else {
            let rows = directory.number(tag::ROWS_PER_STRIP).unwrap_or(u64::from(height));
            if rows == 0 {
                return Err(corrupt("its strips have no rows"));
            }
            (tag::STRIP_OFFSETS, tag::STRIP_LENGTHS, [width, u32::try_from(rows).unwrap_or(height).min(height)])
        };
        let across = width.div_ceil(size[0]) as usize;
        let down = height.div_ceil(size[1]) as usize;
        let expected = (across * down).saturating_mul(n_planes);
        let found = directory.count(offsets);
        // Which plane the others belong to cannot be told.
        if found > expected && n_planes > 1 {
            return Err(corrupt(format!("it has {found} strips or tiles, and {expected} fill it")));
        }
        if found < expected {
            let what = format!("{found} of {expected} strips or tiles are there");
            return Err(DecodeError::truncated(Format::Tiff, what));
        }
        // Where one covers the picture and there are several, Pillow takes the last.
        let is_last = compression == Compression::None && expected == 1 && size == picture;
        let skipped = if is_last { found - 1 } else { 0 };
        let taken = |tag: u16| -> Vec<usize> {
            let numbers = directory.numbers(tag).skip(skipped).take(expected);
            numbers.map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect()
        };
        Ok(Self { size, is_tiled, across, down, offsets: taken(offsets), lengths: taken(lengths) })
    }
}
