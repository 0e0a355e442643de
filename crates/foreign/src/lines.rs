//! Lines of a text that anybody may have written: short, in UTF-8, and not too many.

use std::io::{BufRead, Read};

/// No line of any format is longer [bytes].
const LONGEST: u64 = 4096;

/// What is wrong with a line, counted from 1; 0 where it is no line.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) line: u64,
    pub(crate) got: String,
    pub(crate) allowed: String,
}

/// Goes over the lines of a text.
pub(crate) struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    bytes: Vec<u8>,
    /// The line was looked at, and comes once more.
    again: bool,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { input, number: 0, bytes: Vec::new(), again: false }
    }

    /// The first line, which comes again; empty where there is none.
    pub(crate) fn first(&mut self) -> Result<&str, Wrong> {
        let there = self.next()?.is_some();
        self.again = there;
        Ok(if there { text(&self.bytes) } else { "" })
    }

    /// The next line that is not empty, without what surrounds it.
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
                // Said again, because a line that is returned in a loop is borrowed for all of it.
                return Ok(Some(text(&self.bytes)));
            }
        }
    }

    /// How many lines were read.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The error of the line at hand.
    pub(crate) fn wrong(&self, got: &str, allowed: &str) -> Wrong {
        Wrong { line: self.number, got: got.to_owned(), allowed: allowed.to_owned() }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default().trim()
}
