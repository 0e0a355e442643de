//! A line reader for untrusted text: limited length, UTF-8, odd lines counted.

use std::io::{BufRead, Read};

/// The longest line of any format [bytes]: a log of histograms has 1,859 numbers in a line.
const MAX_LINE_BYTES: u64 = 1 << 16;
/// The longest part of a line that an error shows [bytes].
const MAX_SHOWN_BYTES: usize = 160;

/// A problem in a line, counted from 1; 0 if it does not belong to a line.
#[derive(Debug)]
pub(crate) struct LineError {
    pub(crate) line: u64,
    pub(crate) got: String,
    pub(crate) allowed: String,
    /// The advice; empty for the usual one.
    pub(crate) action: String,
}

impl LineError {
    pub(crate) fn of_file(got: impl Into<String>, allowed: &str) -> LineError {
        LineError { line: 0, got: got.into(), allowed: allowed.to_owned(), action: String::new() }
    }

    pub(crate) fn action(mut self, action: &str) -> LineError {
        self.action = action.to_owned();
        self
    }
}

/// The lines that do not belong to the format: their number, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OddLines {
    /// The number.
    pub count: u64,
    /// The number of the first, counted from 1, and its text.
    pub first: Option<(u64, String)>,
}

/// Iterates over the lines of a text.
pub(crate) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    bytes: Vec<u8>,
    odd: OddLines,
    /// The number of I/Os after which the text ends.
    limit: usize,
    is_over: bool,
    /// Whether a line other than a preamble was read.
    has_begun: bool,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(input: &'a mut dyn BufRead) -> LineReader<'a> {
        let (odd, limit) = (OddLines::default(), usize::MAX);
        let (is_over, has_begun) = (false, false);
        LineReader { input, number: 0, bytes: Vec::new(), odd, limit, is_over, has_begun }
    }

    /// Read no line after this number of I/Os.
    pub(crate) fn with_limit(mut self, limit: Option<usize>) -> LineReader<'a> {
        self.limit = limit.unwrap_or(usize::MAX);
        self
    }

    /// Return whether an I/O is the last of the limit; no line follows.
    pub(crate) fn ends_after(&mut self, ios: usize) -> bool {
        self.is_over |= ios >= self.limit;
        self.is_over
    }

    /// Return the next line that is not empty, trimmed.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, LineError> {
        while !self.is_over {
            self.bytes.clear();
            self.number += 1;
            let mut limited = self.input.take(MAX_LINE_BYTES + 1);
            match limited.read_until(b'\n', &mut self.bytes) {
                Err(error) => {
                    return Err(LineError { line: self.number, ..unreadable(&error) });
                }
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
            if self.bytes.contains(&0) {
                // Such as a block that was not written before a power cut.
                self.skip_odd_line();
                continue;
            }
            if self.number == 1 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                self.bytes.drain(..3);
            }
            if std::str::from_utf8(&self.bytes).is_err() {
                // Such as the name of a process.
                self.bytes = String::from_utf8_lossy(&self.bytes).into_owned().into_bytes();
            }
            self.has_begun |= !text(&self.bytes).is_empty() && !is_preamble(text(&self.bytes));
            if self.has_begun && !text(&self.bytes).is_empty() {
                // Computed again, because a line returned in a loop is borrowed for all of it.
                return Ok(Some(text(&self.bytes)));
            }
        }
        Ok(None)
    }

    /// Count the present line as one that does not belong to the format.
    pub(crate) fn skip_odd_line(&mut self) {
        self.odd.count += 1;
        if self.odd.first.is_none() {
            self.odd.first = Some((self.number, shortened(text(&self.bytes))));
        }
    }

    /// Return the odd lines, or an error if they are more than the `read` ones.
    pub(crate) fn odd_lines(&self, read: usize, allowed: &str) -> Result<OddLines, LineError> {
        match &self.odd.first {
            Some((line, got)) if self.odd.count > read as u64 => Err(LineError {
                line: *line,
                got: got.clone(),
                allowed: allowed.to_owned(),
                action: String::new(),
            }),
            _ => Ok(self.odd.clone()),
        }
    }

    /// Create the error of the present line.
    pub(crate) fn error(&self, got: &str, allowed: &str) -> LineError {
        LineError { line: self.number, ..LineError::of_file(shortened(got), allowed) }
    }
}

/// The advice for a file that ends early.
pub(crate) const CUT_FILE: &str =
    "copy the file again; or unpack its readable part (gzip -dc, zstd -dc) and name that";

/// Create the error of a file that cannot be read to its end, such as a cut .gz.
pub(crate) fn unreadable(error: &std::io::Error) -> LineError {
    LineError::of_file(error.to_string(), "a file that can be read to its end").action(CUT_FILE)
}

/// Return whether a line before the first of a table is a comment, the separator for Excel, or a
/// message of bcc or bpftrace.
pub(crate) fn is_preamble(line: &str) -> bool {
    line.starts_with('#')
        || line.starts_with("sep=")
        || (line.starts_with("Attaching ") && line.ends_with("..."))
        || (line.starts_with("Attached ") && line.ends_with(" probes"))
        || (line.starts_with("Tracing ") && line.contains("Ctrl-C"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default().trim()
}

pub(crate) fn shortened(text: &str) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    let end = (0..=MAX_SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{} …", &text[..end])
}
