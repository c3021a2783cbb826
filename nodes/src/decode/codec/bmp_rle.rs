//! The run-length codings of BMP.

/// Unpacks runs of 8-bit or 4-bit indices into `indices`, in the file's row order. `None` if they end before the picture does.
pub(super) fn unpack(data: &[u8], four_bits: bool, width: usize, indices: &mut [u8]) -> Option<()> {
    indices.fill(0);
    let mut data = data.iter().copied();
    let mut at = 0;
    let mut x = 0;
    let mut used = 0usize;
    while at < indices.len() {
        let (count, value) = (data.next()?, data.next()?);
        used += 2;
        match (count, value) {
            (0, 0) => {
                at = at.next_multiple_of(width);
                x = 0;
            }
            // The end of the picture, here or nowhere.
            (0, 1) => return None,
            (0, 2) => {
                let (right, up) = (data.next()?, data.next()?);
                used += 2;
                at += usize::from(right) + usize::from(up) * width;
                x = at % width;
            }
            (0, count) => {
                let count = usize::from(count);
                let n_bytes = if four_bits { count.div_ceil(2) } else { count };
                for place in 0..n_bytes {
                    let byte = data.next()?;
                    let pair = if four_bits { [byte >> 4, byte & 15] } else { [byte, 0] };
                    let per_byte = if four_bits { (count - place * 2).min(2) } else { 1 };
                    for &index in &pair[..per_byte] {
                        if let Some(out) = indices.get_mut(at) {
                            *out = index;
                        }
                        at += 1;
                    }
                }
                x += count;
                used += n_bytes;
                if used % 2 == 1 {
                    data.next();
                    used += 1;
                }
            }
            (count, value) => {
                // A run that is too long for its row ends with the row.
                let count = usize::from(count).min(width.saturating_sub(x));
                let pair = if four_bits { [value >> 4, value & 15] } else { [value, value] };
                for place in 0..count {
                    if let Some(out) = indices.get_mut(at + place) {
                        *out = pair[place % 2];
                    }
                }
                at += count;
                x += count;
            }
        }
    }
    Some(())
}
