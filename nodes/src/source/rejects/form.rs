//! What a file that holds rows is.

use std::io::Read;

use engine::data::Reject;

use crate::source::stream::Stream;
use crate::store::{Location, Stores};

/// What a file that holds rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Tar,
    Parquet,
    Jsonl,
    Csv,
}

/// Bytes of the header of a tar.
const HEADER_BYTES: usize = 512;

impl Form {
    /// The form that files of this name have, if it tells one.
    pub(super) fn of_name(uri: &str) -> Option<Form> {
        let name = uri.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let name = [".gz", ".zst"].iter().find_map(|packing| name.strip_suffix(packing)).unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "tar" | "tgz" => Some(Form::Tar),
            "parquet" | "pq" => Some(Form::Parquet),
            "jsonl" | "ndjson" => Some(Form::Jsonl),
            "csv" | "tsv" => Some(Form::Csv),
            _ => None,
        }
    }

    /// The form that a file has by its first bytes.
    pub(super) fn of_content(stores: &Stores, location: Location) -> Result<Form, Reject> {
        let mut stream = Stream::open(stores, location)?;
        let mut start = Vec::with_capacity(HEADER_BYTES);
        let read = stream.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut start);
        read.map_err(|error| stream.reject(&error))?;
        Ok(Form::of_start(&start))
    }

    fn of_start(start: &[u8]) -> Form {
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        match text {
            _ if start.starts_with(b"PAR1") => Form::Parquet,
            _ if is_header(start) => Form::Tar,
            [b'{', ..] => Form::Jsonl,
            _ => Form::Csv,
        }
    }
}

/// Whether these are the first bytes of a tar: its header has the sum that it says.
fn is_header(start: &[u8]) -> bool {
    let Some(sum) = start.get(148..156).filter(|_| start.len() == HEADER_BYTES) else { return false };
    let text = std::str::from_utf8(sum).unwrap_or_default().trim_matches(['\0', ' ']);
    let n_sum: u32 = sum.iter().map(|&byte| u32::from(byte)).sum();
    let n_all: u32 = start.iter().map(|&byte| u32::from(byte)).sum();
    u32::from_str_radix(text, 8) == Ok(n_all - n_sum + 8 * u32::from(b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_forms() {
        for (name, expected) in [
            ("a/x.tar", Some(Form::Tar)),
            ("x.TGZ", Some(Form::Tar)),
            ("s3://b/x.tar.zst", Some(Form::Tar)),
            ("x.parquet", Some(Form::Parquet)),
            ("x.jsonl.gz", Some(Form::Jsonl)),
            ("x.tsv", Some(Form::Csv)),
            ("x.tar/photo", None),
            ("photo.jpg", None),
            ("photo.jpg.gz", None),
        ] {
            assert_eq!(Form::of_name(name), expected, "{name}");
        }
    }

    #[test]
    fn first_bytes_tell_forms() {
        let tar = crate::testing::tar_of([("a.jpg", &b"a"[..])]);
        assert_eq!(Form::of_start(&tar[..512]), Form::Tar);
        assert_eq!(Form::of_start(b"PAR1"), Form::Parquet);
        assert_eq!(Form::of_start(b"\xef\xbb\xbf \n{\"a\": 1}"), Form::Jsonl);
        assert_eq!(Form::of_start(b"a,b\n"), Form::Csv);
        assert_eq!(Form::of_start(&[0; 512]), Form::Csv);
    }
}
