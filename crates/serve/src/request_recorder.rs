//! The recording of client requests: a line for each read and write, written by a separate thread.
//! Write-zeroes requests count as writes.
//!
//! The format is that of the MSR Cambridge block traces, which `uflip replay` and other tools read:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in ticks of 100 ns. The
//! host is the name of the export, the disk number its index. Lines are in the order of completion.
//! After a write error the file keeps its complete lines.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use uflip_core::{Error, ErrorKind, Mode, Result};

/// The header line.
const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
/// The unit of times [ns].
const TICK_NS: u64 = 100;
/// Column and line separators, which are replaced in names.
const SEPARATORS: [char; 3] = [',', '\n', '\r'];

/// A completed read or write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedRequest {
    /// The index of its export.
    pub export: usize,
    /// Its arrival [ns].
    pub arrived: u64,
    /// Read or write.
    pub mode: Mode,
    /// The offset [bytes].
    pub offset: u64,
    /// The size [bytes].
    pub size: u32,
    /// The response time [ns].
    pub response: u64,
}

/// The error that stopped the recording, and the number of recorded requests.
#[derive(Debug)]
struct WriteFailure {
    error: std::io::Error,
    recorded: u64,
}

/// The recording and its writer thread.
#[derive(Debug)]
pub struct RequestRecorder {
    sender: Sender<RecordedRequest>,
    thread: JoinHandle<std::result::Result<(), WriteFailure>>,
    location: String,
}

impl RequestRecorder {
    /// Record the requests to exports of these names in the new file `path`.
    ///
    /// # Errors
    /// If the file exists, or cannot be created.
    pub fn start(path: &Path, names: Vec<String>) -> Result<RequestRecorder> {
        let location = path.display().to_string();
        let failed = |error: &std::io::Error| Error::os("The recording fails", &location, error);
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|error| failed(&error))?;
        let names = names.iter().map(|name| name.replace(SEPARATORS, "_"));
        let names: Vec<String> = names.collect();
        let (sender, requests) = channel();
        let thread = std::thread::Builder::new()
            .name("uflip-record".into())
            .spawn(move || write_thread(&file, &names, &requests))
            .map_err(|error| failed(&error))?;
        Ok(RequestRecorder { sender, thread, location })
    }

    /// Queue a request.
    pub fn add(&self, request: RecordedRequest) {
        // `finish` reports errors of the thread.
        let _ = self.sender.send(request);
    }

    /// Write all queued lines, and sync the file.
    ///
    /// # Errors
    /// If a write failed; the file has all earlier lines.
    pub fn finish(self) -> Result<()> {
        let RequestRecorder { sender, thread, location } = self;
        drop(sender);
        let panicked = || WriteFailure { error: std::io::Error::other("it panicked"), recorded: 0 };
        let written = thread.join().unwrap_or_else(|_| Err(panicked()));
        written.map_err(|WriteFailure { error, recorded }| {
            Error::new(ErrorKind::Results, "The recording is incomplete")
                .at(location)
                .got(format!("{error}; the file has the first {recorded} reads and writes"))
                .action("free some disk space: a request takes about 60 bytes")
        })
    }
}

fn write_thread(
    file: &File,
    names: &[String],
    requests: &Receiver<RecordedRequest>,
) -> std::result::Result<(), WriteFailure> {
    write_all(file, names, requests).map_err(|error| {
        // The first line is the header.
        let recorded = whole_lines(file).unwrap_or(0).saturating_sub(1);
        WriteFailure { error, recorded }
    })
}

fn write_all(
    file: &File,
    names: &[String],
    requests: &Receiver<RecordedRequest>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    writeln!(out, "{HEADER}")?;
    while let Ok(RecordedRequest { export, arrived, mode, offset, size, response }) =
        requests.recv()
    {
        let name = names.get(export).map_or("", String::as_str);
        let mode = if mode == Mode::Read { "Read" } else { "Write" };
        let (arrival_ticks, response_ticks) = (arrived / TICK_NS, response / TICK_NS);
        writeln!(out, "{arrival_ticks},{name},{export},{mode},{offset},{size},{response_ticks}")?;
    }
    out.into_inner()?.sync_all()
}

/// Truncate the file to complete lines; return their number.
fn whole_lines(mut file: &File) -> std::io::Result<u64> {
    file.rewind()?;
    let mut input = BufReader::new(file);
    let (mut count, mut length, mut line) = (0, 0, Vec::new());
    while input.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        (count, length) = (count + 1, length + line.len() as u64);
        line.clear();
    }
    file.set_len(length)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_recorded_and_names_are_sanitised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        let recorder = RequestRecorder::start(&path, vec!["a,b\n".into()]).unwrap();
        let (arrived, offset, size, response) = (1234, 512, 4096, 99_999);
        for mode in [Mode::Read, Mode::Write] {
            recorder.add(RecordedRequest { export: 0, arrived, mode, offset, size, response });
        }
        recorder.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = "12,a_b_,0,Read,512,4096,999\n12,a_b_,0,Write,512,4096,999\n";
        assert_eq!(text, format!("{HEADER}\n{lines}"));
        assert!(
            RequestRecorder::start(&path, Vec::new()).is_err(),
            "an existing file is not overwritten"
        );
    }

    #[test]
    fn truncated_recording_keeps_only_whole_lines() {
        for (text, expected, count) in
            [("", "", 0), ("a", "", 0), ("a\n", "a\n", 1), ("a\nbc\nd", "a\nbc\n", 2)]
        {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(whole_lines(&file).unwrap(), count);
            file.rewind().unwrap();
            assert_eq!(std::io::read_to_string(file).unwrap(), expected);
        }
    }
}
