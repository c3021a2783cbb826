//! Which way up a picture is, by its metadata.

use std::ops::Range;

use super::ifd::Directory;
use super::resample::Span;

/// How the stored picture is turned to stand upright: the eight values of the EXIF tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Orientation {
    /// 1: as stored.
    #[default]
    Upright = 1,
    /// 2: left and right swapped.
    MirrorX = 2,
    /// 3: turned by 180°.
    Half = 3,
    /// 4: top and bottom swapped.
    MirrorY = 4,
    /// 5: rows become columns.
    Transpose = 5,
    /// 6: to be turned clockwise.
    Clockwise = 6,
    /// 7: rows become columns, from the other corner.
    Transverse = 7,
    /// 8: to be turned counter-clockwise.
    CounterClockwise = 8,
}

impl Orientation {
    /// Reads a block of EXIF, and where that says nothing, XMP. Broken metadata say nothing and harm nothing.
    pub(super) fn from_metadata(exif: Option<&[u8]>, xmp: Option<&[u8]>) -> Self {
        let value = exif.and_then(exif_tag).or_else(|| xmp.and_then(xmp_attribute));
        value.map_or(Self::Upright, Self::from_value)
    }

    /// Reads the directory of a TIFF file, which is one of EXIF's too.
    pub(super) fn from_directory(directory: &Directory<'_>) -> Self {
        const XMP: u16 = 700;
        let value = tag(directory).or_else(|| directory.bytes(XMP).and_then(xmp_attribute));
        value.map_or(Self::Upright, Self::from_value)
    }

    /// The value of the tag. Those that have no meaning are taken as upright.
    pub fn from_value(value: u32) -> Self {
        match value {
            2 => Self::MirrorX,
            3 => Self::Half,
            4 => Self::MirrorY,
            5 => Self::Transpose,
            6 => Self::Clockwise,
            7 => Self::Transverse,
            8 => Self::CounterClockwise,
            _ => Self::Upright,
        }
    }

    /// Columns and rows of the upright picture.
    pub fn size(self, width: u32, height: u32) -> (u32, u32) {
        if self.swaps_axes() { (height, width) } else { (width, height) }
    }

    fn swaps_axes(self) -> bool {
        self as u8 >= 5
    }

    /// Whether the stored picture's first columns, and its first rows, are the last ones of the upright picture's axis that
    /// they lie along.
    fn turns_round(self) -> [bool; 2] {
        match self {
            Self::Upright | Self::Transpose => [false, false],
            Self::MirrorX | Self::CounterClockwise => [true, false],
            Self::MirrorY | Self::Clockwise => [false, true],
            Self::Half | Self::Transverse => [true, true],
        }
    }

    /// Where in the upright picture that lies which begins at the left upper corner of the stored one and is as long as
    /// `covers` says, columns and rows: the first place and the length along each upright axis.
    pub(super) fn spans(self, size: [u32; 2], covers: [f64; 2]) -> [Span; 2] {
        let round = self.turns_round();
        let span = |axis: usize| Span {
            start: if round[axis] { f64::from(size[axis]) - covers[axis] } else { 0.0 },
            length: covers[axis],
        };
        if self.swaps_axes() { [span(1), span(0)] } else { [span(0), span(1)] }
    }

    /// Which columns and rows of the stored picture, of `size`, become these of the upright one.
    pub(super) fn stored(self, size: [u32; 2], upright: [Range<usize>; 2]) -> [Range<usize>; 2] {
        let round = self.turns_round();
        [0, 1].map(|axis| {
            let Range { start, end } = upright[if self.swaps_axes() { 1 - axis } else { axis }];
            let side = size[axis] as usize;
            if round[axis] { side - end..side - start } else { start..end }
        })
    }

    /// Writes `source`, RGB of `width`×`height`, upright into `target` of the same length.
    pub fn apply(self, source: &[u8], width: usize, height: usize, target: &mut [u8]) {
        self.apply_part(source, [width, height], [0..width, 0..height], target);
    }

    /// As [`Self::apply`], of these columns and rows of the stored picture alone.
    pub(super) fn apply_part(self, source: &[u8], size: [usize; 2], part: [Range<usize>; 2], target: &mut [u8]) {
        let ([width, height], [columns, rows]) = (size, part);
        if !self.swaps_axes() {
            let [flip_x, flip_y] = self.turns_round();
            for y in rows {
                let row = &source[(y * width + columns.start) * 3..][..columns.len() * 3];
                let to = if flip_y { height - 1 - y } else { y };
                let left = if flip_x { width - columns.end } else { columns.start };
                let out = &mut target[(to * width + left) * 3..][..row.len()];
                if flip_x {
                    for (pixel, out) in row.chunks_exact(3).rev().zip(out.chunks_exact_mut(3)) {
                        out.copy_from_slice(pixel);
                    }
                } else {
                    out.copy_from_slice(row);
                }
            }
            return;
        }
        // Walked in tiles: a column of a large picture would touch a new cache line and page for every pixel.
        const TILE: usize = 32;
        let [flip_x, flip_y] = self.turns_round();
        for top in rows.clone().step_by(TILE) {
            for left in columns.clone().step_by(TILE) {
                for x in left..(left + TILE).min(columns.end) {
                    let to_row = if flip_x { width - 1 - x } else { x };
                    for y in top..(top + TILE).min(rows.end) {
                        let to_column = if flip_y { height - 1 - y } else { y };
                        let from = (y * width + x) * 3;
                        let to = (to_row * height + to_column) * 3;
                        target[to..to + 3].copy_from_slice(&source[from..from + 3]);
                    }
                }
            }
        }
    }
}

/// The tag of the main picture. `block` may still carry the `Exif\0\0` of a JPEG segment, once or, as some write it, twice.
fn exif_tag(block: &[u8]) -> Option<u32> {
    const PREFIX: &[u8] = b"Exif\0\0";
    let block = block.strip_prefix(PREFIX).unwrap_or(block);
    tag(&Directory::first(block.strip_prefix(PREFIX).unwrap_or(block))?)
}

fn tag(directory: &Directory<'_>) -> Option<u32> {
    const ORIENTATION: u16 = 0x112;
    directory.number(ORIENTATION).map(|value| u32::try_from(value).unwrap_or(0))
}

/// `tiff:Orientation="6"` or `<tiff:Orientation>6`.
fn xmp_attribute(packet: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"tiff:Orientation";
    let places = packet.windows(NAME.len()).enumerate().filter(|(_, part)| *part == NAME);
    let mut values = places.filter_map(|(at, _)| {
        let rest = &packet[at + NAME.len()..];
        let value = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?;
        value.first().filter(|digit| digit.is_ascii_digit()).map(|digit| u32::from(digit - b'0'))
    });
    values.next()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{Orientation, Span};

    /// A 2×3 picture whose pixels are numbered 1 to 6 in reading order.
    fn check(value: u32, expected: &[&[u8]]) {
        let source: Vec<u8> = (1..=6).flat_map(|n| [n, n, n]).collect();
        let mut target = vec![0; source.len()];
        let orientation = Orientation::from_value(value);
        orientation.apply(&source, 2, 3, &mut target);
        let (width, height) = orientation.size(2, 3);
        assert_eq!((width as usize, height as usize), (expected[0].len(), expected.len()));
        let grey: Vec<u8> = target.chunks_exact(3).map(|pixel| pixel[0]).collect();
        assert_eq!(grey, expected.concat(), "orientation {value}");
    }

    #[test]
    fn each_value_turns_the_picture_its_way() {
        check(1, &[&[1, 2], &[3, 4], &[5, 6]]);
        check(2, &[&[2, 1], &[4, 3], &[6, 5]]);
        check(3, &[&[6, 5], &[4, 3], &[2, 1]]);
        check(4, &[&[5, 6], &[3, 4], &[1, 2]]);
        check(5, &[&[1, 3, 5], &[2, 4, 6]]);
        check(6, &[&[5, 3, 1], &[6, 4, 2]]);
        check(7, &[&[6, 4, 2], &[5, 3, 1]]);
        check(8, &[&[2, 4, 6], &[1, 3, 5]]);
        check(9, &[&[1, 2], &[3, 4], &[5, 6]]);
    }

    /// The place of a mark in the right lower corner tells what was turned.
    #[test]
    fn spans_lie_where_the_pixels_go() {
        // Of three columns the last is not covered, of four rows the last two; covered pixels are 1, others 0.
        let source: Vec<u8> = (0..12).flat_map(|at| [u8::from(at % 3 < 2 && at / 3 < 2); 3]).collect();
        for value in 1..=8 {
            let orientation = Orientation::from_value(value);
            let mut upright = vec![0; source.len()];
            orientation.apply(&source, 3, 4, &mut upright);
            let (width, height) = orientation.size(3, 4);
            let [columns, rows] = orientation.spans([3, 4], [2.0, 2.0]);
            let covered = |span: Span, at: u32| (span.start..span.start + span.length).contains(&f64::from(at));
            let expected: Vec<u8> = (0..height)
                .flat_map(|y| (0..width).map(move |x| (x, y)))
                .map(|(x, y)| u8::from(covered(columns, x) && covered(rows, y)))
                .collect();
            let got: Vec<u8> = upright.chunks_exact(3).map(|pixel| pixel[0]).collect();
            assert_eq!(got, expected, "orientation {value}");
        }
    }

    #[test]
    fn a_part_lies_where_it_lies_in_the_whole() {
        let source: Vec<u8> = (1..=12).flat_map(|n| [n, n, n]).collect();
        for orientation in (1..=8).map(Orientation::from_value) {
            let mut whole = vec![0; source.len()];
            orientation.apply(&source, 3, 4, &mut whole);
            let [width, height] = <[u32; 2]>::from(orientation.size(3, 4)).map(|side| side as usize);
            for columns in ranges(width) {
                for rows in ranges(height) {
                    let stored = orientation.stored([3, 4], [columns.clone(), rows.clone()]);
                    let mut part = vec![0; source.len()];
                    orientation.apply_part(&source, [3, 4], stored, &mut part);
                    for (at, (pixel, of_whole)) in part.chunks_exact(3).zip(whole.chunks_exact(3)).enumerate() {
                        let is_in = columns.contains(&(at % width)) && rows.contains(&(at / width));
                        let expected = if is_in { of_whole } else { &[0; 3] };
                        assert_eq!(pixel, expected, "{orientation:?}, {columns:?} of {rows:?}");
                    }
                }
            }
        }
    }

    /// All that lie within `0..end` and are not empty.
    fn ranges(end: usize) -> impl Iterator<Item = Range<usize>> {
        (0..end).flat_map(move |first| (first + 1..=end).map(move |end| first..end))
    }

    #[test]
    fn broken_metadata_mean_upright() {
        for block in [&b""[..], b"Exif\0\0", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\x05\x01\x12", &[0xff; 64]] {
            assert_eq!(Orientation::from_metadata(Some(block), Some(block)), Orientation::Upright);
        }
    }

    #[test]
    fn the_tag_is_found_beside_entries_that_are_broken() {
        // A rational whose denominator is zero, a text behind the end of the block; the tag stands before the latter.
        let mut block = b"Exif\0\0Exif\0\0MM\0*\0\0\0\x08\0\x03".to_vec();
        block.extend(b"\x01\x0e\0\x05\0\0\0\x01\0\0\0\x08\x01\x12\0\x03\0\0\0\x01\0\x06\0\0");
        block.extend(b"\x01\x31\0\x02\0\0\0\x09\0\xff\xff\xff");
        assert_eq!(Orientation::from_metadata(Some(&block), None), Orientation::Clockwise);
    }

    #[test]
    fn xmp_is_asked_where_exif_says_nothing() {
        let packet = b"\xff<rdf tiff:Orientation=\"6\"/>";
        assert_eq!(Orientation::from_metadata(None, Some(packet)), Orientation::Clockwise);
        let packet = b"<!-- tiff:Orientation --><tiff:Orientation>8</tiff:Orientation>";
        assert_eq!(Orientation::from_metadata(Some(b"noise"), Some(packet)), Orientation::CounterClockwise);
    }
}
