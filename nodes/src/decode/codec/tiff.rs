//! TIFF: the first picture of the file, its strips or tiles one after the other.
//!
//! A strip or tile of JPEG is a JPEG file without tables, and goes through the decoder of those.

use super::super::error::DecodeError;
use super::super::ifd::Directory;
use super::super::orientation::Orientation;
use super::tiff_codec::Compression;
use super::tiff_layout::{Layout, Model, jpeg_tables, palette};
use super::tiff_samples::{Table, add_up, greys, to_rgb};
use super::{Buffers, Format, Raster, Reading, jpeg, sized};

pub(super) fn decode(bytes: &[u8], reading: Reading, buffers: &mut Buffers) -> Result<Raster, DecodeError> {
    let directory = Directory::first(bytes)
        .ok_or_else(|| DecodeError::truncated(Format::Tiff, "the directory of its tags is not there"))?;
    let layout = Layout::read(&directory, reading.limits)?;
    check_amount(&layout, bytes)?;
    let table = match layout.model {
        Model::Grey { is_inverted } => greys(layout.bits, is_inverted),
        _ => palette(&directory),
    };
    let picture = Picture { bytes, layout: &layout, table: &table, jpeg_tables: jpeg_tables(&directory), reading };
    picture.decode(buffers)?;
    let orientation = Orientation::from_directory(&directory);
    Ok(Raster::whole([layout.width, layout.height], Format::Tiff, orientation))
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
    jpeg_tables: &'a [u8],
    reading: Reading,
}

impl Picture<'_> {
    fn decode(&self, buffers: &mut Buffers) -> Result<(), DecodeError> {
        let layout = self.layout;
        let (width, height) = (layout.width as usize, layout.height as usize);
        if layout.compression == Compression::Jpeg {
            return self.decode_jpegs(buffers);
        }
        let row_bytes = layout.row_bytes();
        let raster = sized(&mut buffers.raster, width * height * 3);
        for n in 0..layout.chunks.across * layout.chunks.down {
            let [left, top, n_columns, n_rows] = self.place(n);
            let stored_rows = if layout.chunks.is_tiled { layout.chunks.size[1] as usize } else { n_rows };
            let plane_bytes = row_bytes * stored_rows;
            let samples = sized(&mut buffers.samples, (plane_bytes + row_bytes) * layout.planes());
            let (planes, interleaved) = samples.split_at_mut(plane_bytes * layout.planes());
            for (plane, rows) in planes.chunks_exact_mut(plane_bytes).enumerate() {
                self.unpack(plane * layout.chunks.across * layout.chunks.down + n, rows, &mut buffers.stream)?;
            }
            for y in 0..n_rows {
                let row = if layout.planes() > 1 {
                    interleave(
                        planes,
                        plane_bytes,
                        &(y * row_bytes..(y + 1) * row_bytes),
                        layout.bits / 8,
                        interleaved,
                    );
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

    /// Where strip or tile `n` lies in the picture: left, top, columns and rows.
    fn place(&self, n: usize) -> [usize; 4] {
        let chunks = &self.layout.chunks;
        let [chunk_width, chunk_height] = chunks.size.map(|side| side as usize);
        let (left, top) = (n % chunks.across * chunk_width, n / chunks.across * chunk_height);
        let n_columns = chunk_width.min(self.layout.width as usize - left);
        [left, top, n_columns, chunk_height.min(self.layout.height as usize - top)]
    }

    fn decode_jpegs(&self, buffers: &mut Buffers) -> Result<(), DecodeError> {
        let width = self.layout.width as usize;
        let raster = sized(&mut buffers.raster, width * self.layout.height as usize * 3);
        let mut inner = Buffers::default();
        for n in 0..self.layout.chunks.across * self.layout.chunks.down {
            let [left, top, n_columns, n_rows] = self.place(n);
            let file = self.jpeg_file(self.packed(n));
            let part = jpeg::decode(&file, self.reading.limits.into(), &Raster::all, &mut inner)?;
            if part.width != self.layout.chunks.size[0] || (part.height as usize) < n_rows {
                let size = format!("a strip or tile is {}×{}", part.width, part.height);
                return Err(DecodeError::corrupt(Format::Tiff, size));
            }
            let row_bytes = part.width as usize * 3;
            for (y, row) in inner.raster.chunks_exact(row_bytes).take(n_rows).enumerate() {
                let out = &mut raster[((top + y) * width + left) * 3..][..n_columns * 3];
                match self.layout.model {
                    Model::Grey { .. } => {
                        for (rgb, grey) in out.chunks_exact_mut(3).zip(row.chunks_exact(3)) {
                            rgb.copy_from_slice(&self.table[usize::from(grey[0])]);
                        }
                    }
                    _ => out.copy_from_slice(&row[..n_columns * 3]),
                }
            }
        }
        Ok(())
    }

    /// A strip or tile as a file of its own: with the tables that all of them share, and with the marker that says whether the
    /// colours are RGB, which here the tags of the TIFF say.
    fn jpeg_file(&self, strip: &[u8]) -> Vec<u8> {
        const START: &[u8] = b"\xff\xd8";
        const END: &[u8] = b"\xff\xd9";
        let transform = u8::from(self.layout.model == Model::Ycc);
        let mut file = START.to_vec();
        file.extend_from_slice(b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0");
        file.push(transform);
        let tables = self.jpeg_tables.strip_prefix(START).unwrap_or(&[]);
        file.extend_from_slice(tables.strip_suffix(END).unwrap_or(tables));
        file.extend_from_slice(strip.strip_prefix(START).unwrap_or(strip));
        file
    }

    /// One strip or tile of one plane.
    fn unpack(&self, n: usize, rows: &mut [u8], reversed: &mut Vec<u8>) -> Result<(), DecodeError> {
        let layout = self.layout;
        let mut packed = self.packed(n);
        if layout.is_reversed {
            let needed =
                if layout.compression == Compression::None { rows.len().min(packed.len()) } else { packed.len() };
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
