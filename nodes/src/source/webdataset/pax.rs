//! Records that say more about a member than its header has room for: `27 path=a/long/name.jpg`.

/// What matters of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) is_sparse: bool,
}

impl Pax {
    /// Takes in the records of one header; the later ones of a name count. `None` if they are none.
    pub(super) fn read(&mut self, mut records: &[u8]) -> Option<()> {
        // Some programs fill up with zeros.
        while let Some((first, _)) = records.split_first()
            && *first != 0
        {
            let space = records.iter().position(|&byte| byte == b' ')?;
            let n_bytes: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
            let record = records.get(space + 1..n_bytes)?.strip_suffix(b"\n")?;
            records = &records[n_bytes..];
            let equals = record.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (&record[..equals], &record[equals + 1..]);
            match name {
                b"path" => self.path = Some(value.to_owned()),
                b"size" => self.size = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
                b"GNU.sparse.name" => self.path = Some(value.to_owned()),
                _ => {}
            }
            self.is_sparse |= name.starts_with(b"GNU.sparse.");
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(records: &[u8]) -> Option<Pax> {
        let mut pax = Pax::default();
        pax.read(records).map(|()| pax)
    }

    #[test]
    fn the_later_record_of_a_name_counts_and_values_may_hold_anything() {
        let pax = read(b"12 path=a=b\n16 path=c\nd = e\n16 size=1234567\n\0\0").unwrap();
        assert_eq!(pax, Pax { path: Some(b"c\nd = e".to_vec()), size: Some(1_234_567), is_sparse: false });
    }

    #[test]
    fn what_are_no_records_are_refused() {
        for records in [
            &b"path=a\n"[..],
            b"99 path=a\n",
            b"10 path=a",
            b"9 path\n",
            b"0 path=a\n",
            b"4 \n",
            b"18446744073709551616 a=b\n",
            b"12 size=-12\n",
            b"31 size=99999999999999999999999\n",
        ] {
            assert_eq!(read(records), None, "{}", String::from_utf8_lossy(records));
        }
    }
}
