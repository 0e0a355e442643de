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

pub use fio_log::Logged;
pub use fit::{Fit, Fitted, fit};
pub use recorded::{Recorded, RecordedIo};

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use uflip_core::{Error, ErrorKind, Result};

use crate::lines::{Lines, Wrong};

/// A supported format: its name, a test of its first line, and its parser.
struct Reader {
    name: &'static str,
    is_it: fn(&str) -> bool,
    read: fn(&mut Lines<'_>) -> std::result::Result<Recorded, Wrong>,
}

/// All formats; the first whose test succeeds is used.
const READERS: &[Reader] = &[
    Reader { name: "fio", is_it: fio::is_it, read: fio::read },
    Reader { name: "blkparse", is_it: blkparse::is_it, read: blkparse::read },
    Reader { name: "msr", is_it: msr::is_it, read: msr::read },
];

/// Return the names of all formats.
#[must_use]
pub fn formats() -> Vec<&'static str> {
    READERS.iter().map(|reader| reader.name).collect()
}

/// Read the trace in `path`, in the named format or in the detected one.
///
/// # Errors
/// An unknown name; a file that cannot be read, has an unknown format, no I/O, or an invalid line.
pub fn read(path: &Path, format: Option<&str>) -> Result<Recorded> {
    read_from(&mut open(path)?, &path.display().to_string(), format)
}

/// Read a response time log of fio.
///
/// # Errors
/// A file that cannot be read, has no I/O, or an invalid line.
pub fn read_fio_log(path: &Path) -> Result<Logged> {
    read_fio_log_from(&mut open(path)?, &path.display().to_string())
}

/// Read a response time log of fio from `input`; errors name `place`.
///
/// # Errors
/// As [`read_fio_log`].
pub fn read_fio_log_from(input: &mut dyn BufRead, place: &str) -> Result<Logged> {
    fio_log::read(&mut Lines::new(input)).map_err(|wrong| explained(place, wrong))
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let place = path.display().to_string();
    let failed = |error: &std::io::Error| {
        Error::new(ErrorKind::Results, "The trace cannot be read")
            .at(&place)
            .got(error.to_string())
            .action("check the path and its permissions")
    };
    // Opening a pipe without a writer must not block.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| failed(&error))?;
    let is_file = file.metadata().map_err(|error| failed(&error))?.is_file();
    if !is_file {
        return Err(Error::usage("A trace is a regular file")
            .at(&place)
            .action("write it to a file first"));
    }
    Ok(BufReader::new(file))
}

fn explained(place: &str, Wrong { line, got, allowed }: Wrong) -> Error {
    let place = if line == 0 { place.to_owned() } else { format!("{place}:{line}") };
    Error::new(ErrorKind::Results, "The trace cannot be read")
        .at(place)
        .got(got)
        .allowed(allowed)
        .action("see `uflip replay --help` and `uflip import --help` for what is read")
}

/// Read a trace from `input`; errors name `place`.
///
/// # Errors
/// As [`read`].
pub fn read_from(input: &mut dyn BufRead, place: &str, format: Option<&str>) -> Result<Recorded> {
    let mut lines = Lines::new(input);
    let wrong = |wrong| explained(place, wrong);
    let first = lines.first().map_err(wrong)?.to_owned();
    let reader = match format {
        Some(name) => READERS
            .iter()
            .find(|reader| reader.name == name)
            .ok_or_else(|| Error::unknown("format of a trace", name, &formats()).at("--format"))?,
        None => READERS.iter().find(|reader| (reader.is_it)(&first)).ok_or_else(|| {
            let got = if first.is_empty() { "nothing".to_owned() } else { first.clone() };
            wrong(Wrong { line: 1, got, allowed: beginnings().to_owned() })
        })?,
    };
    let mut recorded = (reader.read)(&mut lines).map_err(wrong)?;
    if recorded.ios.is_empty() {
        let got = format!("no read, write or trim in {} lines", lines.number());
        return Err(wrong(Wrong { line: 0, got, allowed: "at least one I/O".to_owned() }));
    }
    recorded.format = reader.name;
    recorded.put_in_order();
    Ok(recorded)
}

fn beginnings() -> &'static str {
    "'fio version 2 iolog' or 3; blkparse's lines ('8,0 3 1 0.000000000 697 Q W 223490 + 8 [cp]'); \
     seven fields of MSR Cambridge ('128166372003061629,usr,0,Read,7014609920,24576,41286')"
}
