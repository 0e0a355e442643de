//! A line reader for untrusted text: limited length, UTF-8, limited number.

use std::io::{BufRead, Read};

/// The longest line of any format [bytes].
const MAX_LINE_BYTES: u64 = 4096;

/// A problem in a line, counted from 1; 0 if it does not belong to a line.
#[derive(Debug)]
pub(crate) struct LineError {
    pub(crate) line: u64,
    pub(crate) got: String,
    pub(crate) allowed: String,
}

/// Iterates over the lines of a text.
pub(crate) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    bytes: Vec<u8>,
    /// Whether the last line is returned again.
    again: bool,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> LineReader<'a> {
        LineReader { input, number: 0, bytes: Vec::new(), again: false }
    }

    /// Return the first line without consuming it; empty for an empty text.
    pub(crate) fn first(&mut self) -> Result<&str, LineError> {
        let has_line = self.next()?.is_some();
        self.again = has_line;
        Ok(if has_line { text(&self.bytes) } else { "" })
    }

    /// Return the next line that is not empty, trimmed.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, LineError> {
        if std::mem::take(&mut self.again) {
            return Ok(Some(text(&self.bytes)));
        }
        loop {
            self.bytes.clear();
            self.number += 1;
            let mut limited = self.input.take(MAX_LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut self.bytes);
            match read {
                Err(error) => return Err(self.error(&error.to_string(), "a file that can be read")),
                Ok(0) => {
                    self.number -= 1;
                    return Ok(None);
                }
                Ok(_) => {}
            }
            if self.bytes.len() as u64 > MAX_LINE_BYTES {
                return Err(
                    self.error("a longer line", &format!("lines of up to {MAX_LINE_BYTES} bytes"))
                );
            }
            if std::str::from_utf8(&self.bytes).is_err() {
                return Err(self.error("bytes that are not text", "text in UTF-8"));
            }
            if !text(&self.bytes).is_empty() {
                // Computed again, because a line returned in a loop is borrowed for all of it.
                return Ok(Some(text(&self.bytes)));
            }
        }
    }

    /// Return the number of lines read.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Create the error of the present line.
    pub(crate) fn error(&self, got: &str, allowed: &str) -> LineError {
        LineError { line: self.number, got: got.to_owned(), allowed: allowed.to_owned() }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default().trim()
}
