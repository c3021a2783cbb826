//! TIFF: the first picture of the file, its strips or tiles one after the other.

use super::super::error::DecodeError;
use super::super::ifd::Directory;
use super::super::orientation::Orientation;
use super::tiff_codec::Compression;
use super::tiff_layout::{Layout, Model, palette};
use super::tiff_samples::{Table, add_up, greys, to_rgb};
use super::{Buffers, Format, Raster, Reading, sized};

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let directory = Directory::first(bytes)
        .ok_or_else(|| DecodeError::truncated(Format::Tiff, "the directory of its tags is not there"))?;
    let layout = Layout::read(&directory, reading.limits)?;
    check_amount(&layout, bytes)?;
    let table = match layout.model {
        Model::Grey { is_inverted } => greys(layout.bits, is_inverted),
        _ => palette(&directory),
    };
    let picture = Picture { bytes, layout: &layout, table: &table, reading };
    picture.decode(buffers)?;
    let orientation = Orientation::from_directory(&directory);
    Ok(Raster { width: layout.width, height: layout.height, format: Format::Tiff, orientation })
}

/// Refuses a file that cannot hold the picture that its tags promise, however well it is packed.
fn check_amount(layout: &Layout, bytes: &[u8]) -> Result<(), DecodeError> {
    let chunks = &layout.chunks;
    let rows = if chunks.is_tiled { chunks.down as u64 * u64::from(chunks.size[1]) } else { u64::from(layout.height) };
    let raw = (layout.row_bytes() * chunks.across * layout.planes()) as u64;
    let promised = raw.saturating_mul(rows);
    if (bytes.len() as u64).saturating_mul(layout.compression.max_ratio()) < promised {
        let what = format!("{} bytes cannot hold {promised} bytes of samples", bytes.len());
        return Err(DecodeError::truncated(Format::Tiff, what));
    }
    Ok(())
}

struct Picture<'a> {
    bytes: &'a [u8],
    layout: &'a Layout,
    table: &'a Table,
    reading: Reading,
}

impl Picture<'_> {
    fn decode(&self, buffers: &mut Buffers) -> Result<(), DecodeError> {
        let layout = self.layout;
        let (width, height) = (layout.width as usize, layout.height as usize);
        let [chunk_width, chunk_height] = layout.chunks.size.map(|side| side as usize);
        if layout.compression == Compression::Jpeg || layout.model == Model::Ycc {
            // Samples of JPEG are not those of its model, and those of YCbCr may be fewer for the colours.
            return Err(super::tiff_layout::unsupported("JPEG compression or YCbCr colours"));
        }
        let row_bytes = layout.row_bytes();
        let raster = sized(&mut buffers.raster, width * height * 3);
        for n in 0..layout.chunks.across * layout.chunks.down {
            let (left, top) = (n % layout.chunks.across * chunk_width, n / layout.chunks.across * chunk_height);
            let (n_columns, n_rows) = (chunk_width.min(width - left), chunk_height.min(height - top));
            let stored_rows = if layout.chunks.is_tiled { chunk_height } else { n_rows };
            let plane_bytes = row_bytes * stored_rows;
            let samples = sized(&mut buffers.samples, (plane_bytes + row_bytes) * layout.planes());
            let (planes, interleaved) = samples.split_at_mut(plane_bytes * layout.planes());
            for (plane, rows) in planes.chunks_exact_mut(plane_bytes).enumerate() {
                self.unpack(plane * layout.chunks.across * layout.chunks.down + n, rows, &mut buffers.stream)?;
            }
            for y in 0..n_rows {
                let row = if layout.planes() > 1 {
                    interleave(planes, plane_bytes, &(y * row_bytes..(y + 1) * row_bytes), layout.bits / 8, interleaved);
                    &*interleaved
                } else {
                    &planes[y * row_bytes..(y + 1) * row_bytes]
                };
                let out = &mut raster[((top + y) * width + left) * 3..][..n_columns * 3];
                to_rgb(row, layout, self.table, self.reading.colours, out);
            }
        }
        Ok(())
    }

    /// One strip or tile of one plane.
    fn unpack(&self, n: usize, rows: &mut [u8], reversed: &mut Vec<u8>) -> Result<(), DecodeError> {
        let layout = self.layout;
        let mut packed = self.packed(n);
        if layout.is_reversed {
            let needed = if layout.compression == Compression::None { rows.len().min(packed.len()) } else { packed.len() };
            reversed.clear();
            reversed.extend(packed[..needed].iter().map(|byte| byte.reverse_bits()));
            packed = reversed;
        }
        let row_bytes = layout.row_bytes();
        layout.compression.unpack(packed, layout.chunks.size[0], row_bytes, rows)?;
        if layout.is_differenced {
            rows.chunks_exact_mut(row_bytes).for_each(|row| add_up(row, layout));
        }
        Ok(())
    }

    /// The bytes of a strip or tile; unpacked ones may be longer than they say.
    fn packed(&self, n: usize) -> &[u8] {
        let chunks = &self.layout.chunks;
        let rest = chunks.offsets.get(n).and_then(|&at| self.bytes.get(at..)).unwrap_or(&[]);
        match chunks.lengths.get(n) {
            Some(&length) if self.layout.compression != Compression::None => &rest[..length.min(rest.len())],
            _ => rest,
        }
    }
}

/// Puts the samples of a row, which lie `plane_bytes` apart, beside each other.
fn interleave(planes: &[u8], plane_bytes: usize, row: &std::ops::Range<usize>, sample_bytes: usize, out: &mut [u8]) {
    let n_planes = planes.len() / plane_bytes;
    for (n, plane) in planes.chunks_exact(plane_bytes).enumerate() {
        for (x, sample) in plane[row.clone()].chunks_exact(sample_bytes).enumerate() {
            out[(x * n_planes + n) * sample_bytes..][..sample_bytes].copy_from_slice(sample);
        }
    }
}
