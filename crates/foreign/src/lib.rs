//! Traces of other tools: parsing, and adaptation to a device.
//!
//! ```text
//! bytes ─ [`Format`] ─▶ Recorded (any offsets, any times) ─ [`fit()`] ─▶ IoList (of one device)
//! ```
//!
//! Foreign files may contain anything. They are read line by line, with limits on the length of a
//! line and the number of I/Os; every problem is an error that names the line. Nothing is guessed:
//! a malformed I/O is an error, and operations that are skipped on purpose (a flush, a command) are
//! counted by name.

#![forbid(unsafe_code)]

mod blkparse;
mod fio;
mod fio_log;
mod fit;
mod lines;
mod msr;
mod recorded;

pub use fio_log::FioLog;
pub use fit::{Fit, Fitted, fit};
pub use recorded::{RecordedIo, RecordedTrace};

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result};

use crate::lines::{LineError, LineReader};

/// A supported format: its name, a test of its first line, and its parser.
struct TraceFormat {
    name: &'static str,
    matches: fn(&str) -> bool,
    read: fn(&mut LineReader<'_>) -> std::result::Result<RecordedTrace, LineError>,
}

/// All formats; the first whose test succeeds is used.
const FORMATS: &[TraceFormat] = &[
    TraceFormat { name: "fio", matches: fio::matches, read: fio::read },
    TraceFormat { name: "blkparse", matches: blkparse::matches, read: blkparse::read },
    TraceFormat { name: "msr", matches: msr::matches, read: msr::read },
];

/// Return the names of all formats.
#[must_use]
pub fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Read the trace in `path`, in the named format or in the detected one.
///
/// # Errors
/// An unknown name; a file that cannot be read, has an unknown format, no I/O, or an invalid line.
pub fn read(path: &Path, format: Option<&str>) -> Result<RecordedTrace> {
    read_from(&mut open(path)?, &path.display().to_string(), format)
}

/// Read a response time log of fio.
///
/// # Errors
/// A file that cannot be read, has no I/O, or an invalid line.
pub fn read_fio_log(path: &Path) -> Result<FioLog> {
    read_fio_log_from(&mut open(path)?, &path.display().to_string())
}

/// Read a response time log of fio from `input`; errors name `location`.
///
/// # Errors
/// As [`read_fio_log`].
pub fn read_fio_log_from(input: &mut dyn BufRead, location: &str) -> Result<FioLog> {
    fio_log::read(&mut LineReader::new(input)).map_err(|error| format_error(location, error))
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let location = path.display().to_string();
    let failed = |error: &std::io::Error| {
        Error::new(ErrorKind::Results, "The trace cannot be read")
            .at(&location)
            .got(error.to_string())
            .action("check the path and its permissions")
    };
    // Opening a pipe without a writer must not block.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| failed(&error))?;
    let is_file = file.metadata().map_err(|error| failed(&error))?.is_file();
    if !is_file {
        return Err(Error::usage("A trace is a regular file")
            .at(&location)
            .action("write it to a file first"));
    }
    Ok(BufReader::new(file))
}

fn format_error(location: &str, LineError { line, got, allowed }: LineError) -> Error {
    let location = if line == 0 { location.to_owned() } else { format!("{location}:{line}") };
    Error::new(ErrorKind::Results, "The trace cannot be read")
        .at(location)
        .got(got)
        .allowed(allowed)
        .action("see `uflip replay --help` and `uflip import --help` for what is read")
}

/// Read a trace from `input`; errors name `location`.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    input: &mut dyn BufRead,
    location: &str,
    format: Option<&str>,
) -> Result<RecordedTrace> {
    let mut lines = LineReader::new(input);
    let line_error = |line_error| format_error(location, line_error);
    let first = lines.first().map_err(line_error)?.to_owned();
    let format_reader = match format {
        Some(name) => FORMATS
            .iter()
            .find(|format_reader| format_reader.name == name)
            .ok_or_else(|| Error::unknown("format of a trace", name, &formats()).at("--format"))?,
        None => FORMATS.iter().find(|format_reader| (format_reader.matches)(&first)).ok_or_else(
            || {
                let got = if first.is_empty() { "nothing".to_owned() } else { first.clone() };
                line_error(LineError { line: 1, got, allowed: first_lines().to_owned() })
            },
        )?,
    };
    let mut recorded = (format_reader.read)(&mut lines).map_err(line_error)?;
    if recorded.ios.is_empty() {
        let got = format!("no read, write or trim in {} lines", lines.number());
        return Err(line_error(LineError { line: 0, got, allowed: "at least one I/O".to_owned() }));
    }
    recorded.format = format_reader.name;
    recorded.put_in_order();
    Ok(recorded)
}

fn first_lines() -> &'static str {
    "'fio version 2 iolog' or 3; blkparse's lines ('8,0 3 1 0.000000000 697 Q W 223490 + 8 [cp]'); \
     seven fields of MSR Cambridge ('128166372003061629,usr,0,Read,7014609920,24576,41286')"
}
