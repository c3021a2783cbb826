//! The records of a CSV file: fields between commas, in double quotes where they hold one, a quote doubled in them.

use std::io::{self, BufRead};

/// Takes records from a reader.
pub(super) struct CsvRecords<R> {
    reader: R,
    delimiter: u8,
    max_bytes: u64,
    /// The line that is read next, from 1.
    line: u64,
}

/// A record, and the line that it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRecord {
    pub(super) line: u64,
    pub(super) fields: Result<Vec<Vec<u8>>, CsvError>,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CsvError {
    #[error("a quote is opened and never closed")]
    Unclosed,
    #[error("it has more than `max_line_bytes` bytes")]
    TooLarge,
}

/// Where in a field the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote, which ends the field or is the first of two.
    Quote,
}

impl<R: BufRead> CsvRecords<R> {
    pub(super) fn new(reader: R, delimiter: u8, max_bytes: u64) -> Self {
        CsvRecords { reader, delimiter, max_bytes, line: 1 }
    }

    pub(super) fn reader(&self) -> &R {
        &self.reader
    }

    /// The line that is read next.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next record that is not a blank line.
    ///
    /// # Errors
    /// The reader's.
    pub(super) fn next_record(&mut self) -> io::Result<Option<CsvRecord>> {
        loop {
            let line = self.line;
            let Some(fields) = self.read_record()? else { return Ok(None) };
            match fields {
                Ok(fields) if fields.len() == 1 && fields[0].is_empty() => {}
                fields => return Ok(Some(CsvRecord { line, fields })),
            }
        }
    }

    fn read_record(&mut self) -> io::Result<Option<Result<Vec<Vec<u8>>, CsvError>>> {
        let (mut fields, mut field, mut at) = (Vec::new(), Vec::new(), At::Start);
        let (mut n_bytes, mut is_too_large) = (0u64, false);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if n_bytes == 0 {
                    return Ok(None);
                }
                if is_too_large {
                    return Ok(Some(Err(CsvError::TooLarge)));
                }
                fields.push(field);
                return Ok(Some(if at == At::Quoted { Err(CsvError::Unclosed) } else { Ok(fields) }));
            }
            let mut n_used = 0;
            let mut is_end = false;
            for &byte in buffer {
                n_used += 1;
                if byte == b'\n' {
                    self.line += 1;
                }
                if n_bytes + n_used > self.max_bytes {
                    // Passed over to the end of the line, wherever quotes may be.
                    is_too_large = true;
                }
                if is_too_large {
                    (fields, field) = (Vec::new(), Vec::new());
                    if byte == b'\n' {
                        is_end = true;
                        break;
                    }
                    continue;
                }
                match (at, byte) {
                    (At::Start, b'"') => at = At::Quoted,
                    (At::Quoted, b'"') => at = At::Quote,
                    (At::Quote, b'"') => {
                        field.push(b'"');
                        at = At::Quoted;
                    }
                    (At::Quoted, _) => field.push(byte),
                    (_, b'\n') => {
                        is_end = true;
                        break;
                    }
                    (_, byte) if byte == self.delimiter => {
                        fields.push(std::mem::take(&mut field));
                        at = At::Start;
                    }
                    (_, byte) => {
                        field.push(byte);
                        at = At::Plain;
                    }
                }
            }
            self.reader.consume(n_used as usize);
            n_bytes += n_used;
            if !is_end {
                continue;
            }
            if is_too_large {
                return Ok(Some(Err(CsvError::TooLarge)));
            }
            if field.last() == Some(&b'\r') {
                field.pop();
            }
            fields.push(field);
            return Ok(Some(Ok(fields)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn records(text: &str, max_bytes: u64) -> Vec<(u64, Result<Vec<String>, CsvError>)> {
        // A buffer of three bytes, so that everything happens at its border too.
        let mut records = CsvRecords::new(BufReader::with_capacity(3, text.as_bytes()), b',', max_bytes);
        let record = || records.next_record().unwrap();
        let text = |field: Vec<u8>| String::from_utf8(field).unwrap();
        std::iter::from_fn(record)
            .map(|record| (record.line, record.fields.map(|fields| fields.into_iter().map(text).collect())))
            .collect()
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let text = "a,b\r\n\n\"x,\"\"y\"\"\n2\",\r\n,\"\"\nlast,\"q\"";
        let expected = [(1, vec!["a", "b"]), (3, vec!["x,\"y\"\n2", ""]), (5, vec!["", ""]), (6, vec!["last", "q"])];
        let expected = expected.map(|(line, fields)| (line, Ok(fields.into_iter().map(str::to_owned).collect())));
        assert_eq!(records(text, 1000), expected);
    }

    #[test]
    fn what_is_no_record_costs_that_record() {
        assert_eq!(records("a,\"b\nc", 1000), [(1, Err(CsvError::Unclosed))]);
        let long = format!("a\n{}\nb\n", "x".repeat(100));
        let read = records(&long, 10);
        assert_eq!(read[0], (1, Ok(vec!["a".to_owned()])));
        assert_eq!(read[1], (2, Err(CsvError::TooLarge)));
        assert_eq!(read[2], (3, Ok(vec!["b".to_owned()])));
    }
}
