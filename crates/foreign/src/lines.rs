//! A line reader for untrusted text: limited length, UTF-8, limited number.

use std::io::{BufRead, Read};

/// The longest line of any format [bytes].
const LONGEST: u64 = 4096;

/// A problem in a line, counted from 1; 0 if it does not belong to a line.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) line: u64,
    pub(crate) got: String,
    pub(crate) allowed: String,
}

/// Iterates over the lines of a text.
pub(crate) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    bytes: Vec<u8>,
    /// Whether the last line is returned once more.
    again: bool,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { input, number: 0, bytes: Vec::new(), again: false }
    }

    /// Return the first line without consuming it; empty for an empty text.
    pub(crate) fn first(&mut self) -> Result<&str, Wrong> {
        let there = self.next()?.is_some();
        self.again = there;
        Ok(if there { text(&self.bytes) } else { "" })
    }

    /// Return the next line that is not empty, trimmed.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Wrong> {
        if std::mem::take(&mut self.again) {
            return Ok(Some(text(&self.bytes)));
        }
        loop {
            self.bytes.clear();
            self.number += 1;
            let mut limited = self.input.take(LONGEST + 1);
            let read = limited.read_until(b'\n', &mut self.bytes);
            match read {
                Err(error) => return Err(self.wrong(&error.to_string(), "a file that can be read")),
                Ok(0) => {
                    self.number -= 1;
                    return Ok(None);
                }
                Ok(_) => {}
            }
            if self.bytes.len() as u64 > LONGEST {
                return Err(self.wrong("a longer line", &format!("lines of up to {LONGEST} bytes")));
            }
            if std::str::from_utf8(&self.bytes).is_err() {
                return Err(self.wrong("bytes that are no text", "text in UTF-8"));
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
    pub(crate) fn wrong(&self, got: &str, allowed: &str) -> Wrong {
        Wrong { line: self.number, got: got.to_owned(), allowed: allowed.to_owned() }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default().trim()
}
