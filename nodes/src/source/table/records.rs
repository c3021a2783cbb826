//! The rows of a text file, by line or by record.

use std::io::{BufRead, Read};
use std::sync::Arc;

use engine::data::{Reject, code};
use engine::node::SpecError;
use serde_json::{Map, Value};

use super::csv_records::{CsvError, CsvRecords};
use crate::source::references::without_secrets;
use crate::source::stream::Stream;

/// Of a message about a line so much is told.
const MAX_ERROR_CHARS: usize = 200;

/// How rows are written.
#[derive(Clone, Debug)]
pub(in crate::source) enum Format {
    /// A JSON object a line.
    Jsonl,
    /// Fields between delimiters; the names are in the first record unless they are given.
    Csv { delimiter: u8, names: Option<Vec<String>> },
}

/// What stands between fields, as people write it: a comma unless they do.
///
/// # Errors
/// Anything but one character of ASCII, quotes, and ends of lines.
pub(in crate::source) fn delimiter(written: Option<&str>) -> Result<u8, SpecError> {
    match written.map(str::as_bytes) {
        None => Ok(b','),
        Some(&[letter]) if !matches!(letter, b'"' | b'\n' | b'\r') => Ok(letter),
        Some(_) => {
            Err(SpecError::new("`delimiter` is one ASCII character, and no quote or line end").at(&["delimiter"]))
        }
    }
}

/// A row: the line that it begins in, and the texts of the columns that are wanted.
pub(super) struct Record {
    pub(super) line: u64,
    pub(super) cells: Result<Vec<String>, Reject>,
}

/// Gives rows.
pub(super) struct Records {
    uri: String,
    wanted: Arc<[Arc<str>]>,
    lines: Lines,
    is_ended: bool,
    /// What kept the file from being read to its end.
    broken: Option<Reject>,
}

enum Lines {
    Jsonl {
        stream: Stream,
        line: u64,
        max_bytes: u64,
    },
    /// With the number of fields, and where among them those are that are wanted.
    Csv {
        records: CsvRecords<Stream>,
        n_fields: usize,
        places: Vec<usize>,
    },
}

/// Whether a row is needed, or only passed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Cells,
    Count,
}

impl Format {
    /// The names of the columns: of a CSV file's first record, or of the first row in JSON.
    pub(super) fn names(&self, uri: &str, stream: Stream, max_bytes: u64) -> Result<Vec<String>, Reject> {
        match self {
            Format::Csv { names: Some(names), .. } => Ok(names.clone()),
            Format::Csv { delimiter, names: None } => header(&mut CsvRecords::new(stream, *delimiter, max_bytes), uri),
            Format::Jsonl => {
                let mut lines = Lines::Jsonl { stream, line: 0, max_bytes };
                let Some((_, object)) = lines.next_object(uri, Need::Cells)? else { return Ok(Vec::new()) };
                Ok(object?.keys().map(|name| without_secrets(name)).collect())
            }
        }
    }

    /// Begins to give rows with the columns `wanted`.
    pub(super) fn open(
        &self,
        uri: &str,
        stream: Stream,
        max_bytes: u64,
        wanted: &Arc<[Arc<str>]>,
    ) -> Result<Records, Reject> {
        let lines = match self {
            Format::Jsonl => Lines::Jsonl { stream, line: 0, max_bytes },
            Format::Csv { delimiter, names } => {
                let mut records = CsvRecords::new(stream, *delimiter, max_bytes);
                let names = match names {
                    Some(names) => names.clone(),
                    None => header(&mut records, uri)?,
                };
                let place = |wanted: &Arc<str>| {
                    names.iter().position(|name| **name == **wanted).ok_or_else(|| {
                        let names: Vec<_> = names.iter().take(50).map(|name| format!("`{name}`")).collect();
                        let message = format!("`{uri}` has no column `{wanted}`; it has {}", names.join(", "));
                        Reject::new(code::CORRUPT, message)
                    })
                };
                let places = wanted.iter().map(place).collect::<Result<_, _>>()?;
                Lines::Csv { records, n_fields: names.len(), places }
            }
        };
        Ok(Records { uri: uri.to_owned(), wanted: wanted.clone(), lines, is_ended: false, broken: None })
    }
}

fn header(records: &mut CsvRecords<Stream>, uri: &str) -> Result<Vec<String>, Reject> {
    let bad = |what: &str| Reject::new(code::CORRUPT, format!("`{uri}`: its first line is no header: {what}"));
    let record = records.next_record();
    let record = record.map_err(|error| records.reader().reject(&error))?;
    let Some(record) = record else {
        return Err(Reject::new(code::EMPTY, format!("`{uri}` is empty, not even a header is there")));
    };
    let mut names = Vec::new();
    for field in record.fields.map_err(|error| bad(&error.to_string()))? {
        // Some programs begin a file with a mark of its encoding.
        let field =
            if names.is_empty() { field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&field).to_vec() } else { field };
        let name = String::from_utf8(field).map_err(|_| bad("it is not UTF-8"))?;
        // Where there is no header this is a row, and may be a URL.
        names.push(without_secrets(&name));
    }
    Ok(names)
}

impl Records {
    pub(super) fn stream(&self) -> &Stream {
        match &self.lines {
            Lines::Jsonl { stream, .. } => stream,
            Lines::Csv { records, .. } => records.reader(),
        }
    }

    /// What kept the file from being read to its end.
    pub(super) fn broken(&self) -> Option<&Reject> {
        self.broken.as_ref()
    }

    /// The next row.
    pub(super) fn next_record(&mut self, need: Need) -> Option<Record> {
        if self.is_ended {
            return None;
        }
        let (uri, wanted) = (&self.uri, &self.wanted);
        let read = match &mut self.lines {
            Lines::Jsonl { .. } => self.lines.next_object(uri, need).map(|row| {
                row.map(|(line, object)| Record { line, cells: object.map(|mut object| cells(&mut object, wanted)) })
            }),
            Lines::Csv { records, n_fields, places } => next_csv(records, *n_fields, places, uri, need),
        };
        match read {
            Ok(Some(record)) => Some(record),
            Ok(None) => {
                self.is_ended = true;
                None
            }
            Err(reject) => {
                self.is_ended = true;
                let line = match &self.lines {
                    Lines::Jsonl { line, .. } => line + 1,
                    Lines::Csv { records, .. } => records.line(),
                };
                let reject = Reject::new(reject.code, format!("{}, at line {line}", reject.message));
                self.broken = Some(reject.clone());
                Some(Record { line, cells: Err(reject) })
            }
        }
    }
}

/// An object, or why there is none, with its line.
type Numbered = (u64, Result<Map<String, Value>, Reject>);

impl Lines {
    /// The next line that is not blank, and the object that it is.
    fn next_object(&mut self, uri: &str, need: Need) -> Result<Option<Numbered>, Reject> {
        let Lines::Jsonl { stream, line: number, max_bytes } = self else { return Ok(None) };
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = stream.by_ref().take(max_bytes.saturating_add(1)).read_until(b'\n', &mut line);
            if read.map_err(|error| stream.reject(&error))? == 0 {
                return Ok(None);
            }
            *number += 1;
            let is_whole = line.ends_with(b"\n");
            let bad = |code: &'static str, what: &str| Reject::new(code, format!("`{uri}`, line {number}: {what}"));
            if !is_whole && line.len() as u64 > *max_bytes {
                let passed = pass_line(stream);
                passed.map_err(|error| stream.reject(&error))?;
                let reject = bad(code::TOO_LARGE, &format!("it has more than `max_line_bytes` {max_bytes} bytes"));
                return Ok(Some((*number, Err(reject))));
            }
            let text = if *number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line) } else { &line };
            let text = text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if need == Need::Count {
                return Ok(Some((*number, Ok(Map::new()))));
            }
            let object = serde_json::from_slice(text).map_err(|error| bad(code::CORRUPT, &json_error(&error)));
            return Ok(Some((*number, object)));
        }
    }
}

/// What is wrong, without the line, which is always the first. A text that stands where an object should is a part of it, of
/// any length, and perhaps a URL.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    let what: String = crate::store::redacted(what).chars().take(MAX_ERROR_CHARS).collect();
    format!("{what} at column {}; a JSON object is needed", error.column())
}

fn pass_line(stream: &mut Stream) -> std::io::Result<()> {
    loop {
        let buffer = stream.fill_buf()?;
        let (n_bytes, is_end) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        stream.consume(n_bytes);
        if is_end {
            return Ok(());
        }
    }
}

fn cells(object: &mut Map<String, Value>, wanted: &[Arc<str>]) -> Vec<String> {
    let cell = |name: &Arc<str>| match object.get_mut(&**name).map(Value::take) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    wanted.iter().map(cell).collect()
}

fn next_csv(
    records: &mut CsvRecords<Stream>,
    n_fields: usize,
    places: &[usize],
    uri: &str,
    need: Need,
) -> Result<Option<Record>, Reject> {
    let record = records.next_record();
    let Some(record) = record.map_err(|error| records.reader().reject(&error))? else { return Ok(None) };
    let line = record.line;
    let bad = |code: &'static str, what: &str| Reject::new(code, format!("`{uri}`, line {line}: {what}"));
    let cells = match record.fields {
        Err(error @ CsvError::TooLarge) => Err(bad(code::TOO_LARGE, &error.to_string())),
        Err(error @ CsvError::Unclosed) => Err(bad(code::CORRUPT, &error.to_string())),
        Ok(_) if need == Need::Count => Ok(Vec::new()),
        Ok(fields) if fields.len() != n_fields => {
            Err(bad(code::CORRUPT, &format!("it has {} fields, and there are {n_fields} columns", fields.len())))
        }
        Ok(fields) => {
            let cell = |&place: &usize| String::from_utf8(fields[place].clone());
            let cells = places.iter().map(cell).collect::<Result<_, _>>();
            cells.map_err(|_| bad(code::CORRUPT, "it is not UTF-8"))
        }
    };
    Ok(Some(Record { line, cells }))
}
