//! Bytes of a foreign file: opened safely, decompressed, and their beginning as lines.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use uflip_core::{Error, ErrorKind, Result};

/// The part of a file by which its format is recognised.
const SAMPLE_BYTES: u64 = 1 << 17;
/// A file with a NUL in its first bytes is binary; further on it is an odd line.
const BINARY_BYTES: usize = 512;
const BUFFER_BYTES: usize = 1 << 16;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The beginning of a file.
pub(crate) struct Sample {
    /// The name of the file, without a folder and without .gz or .zst.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The whole lines in it that are not empty, trimmed; none of a binary file.
    pub(crate) lines: Vec<String>,
}

/// Open a file for reading, decompressed if it is one of gzip or zstd.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let location = path.display().to_string();
    let failed = |error: &std::io::Error| {
        Error::new(ErrorKind::Results, "The file cannot be read")
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
    decompressed(BufReader::with_capacity(BUFFER_BYTES, file)).map_err(|error| failed(&error))
}

/// Return the content of a file, decompressed if it is one of gzip or zstd.
pub(crate) fn decompressed(
    mut input: impl BufRead + Send + 'static,
) -> std::io::Result<Box<dyn BufRead + Send>> {
    let begin = input.fill_buf()?;
    if begin.starts_with(GZIP) {
        let reader = MultiGzDecoder::new(input);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, reader)));
    }
    if begin.starts_with(ZSTD) {
        let reader = zstd::stream::read::Decoder::with_buffer(input)?;
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, reader)));
    }
    Ok(Box::new(input))
}

impl Sample {
    /// Read the beginning of `input`; the returned reader has all of it again.
    pub(crate) fn read<'a>(
        input: &'a mut dyn BufRead,
        location: &str,
    ) -> std::io::Result<(Sample, impl BufRead + 'a)> {
        let mut bytes = Vec::new();
        let mut limited = input.take(SAMPLE_BYTES);
        limited.read_to_end(&mut bytes)?;
        let is_cut = bytes.len() as u64 == SAMPLE_BYTES;
        let sample = Sample { name: file_name(location), lines: lines(&bytes, is_cut), bytes };
        let again = Cursor::new(sample.bytes.clone()).chain(limited.into_inner());
        Ok((sample, again))
    }
}

fn file_name(location: &str) -> String {
    let name = Path::new(location).file_name().and_then(OsStr::to_str).unwrap_or("");
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    name.to_owned()
}

fn lines(bytes: &[u8], is_cut: bool) -> Vec<String> {
    if bytes[..bytes.len().min(BINARY_BYTES)].contains(&0) {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let whole = if is_cut { text.rsplit_once('\n').map_or("", |(whole, _)| whole) } else { text };
    let is_text = |line: &&str| !line.is_empty() && !line.contains('\0');
    let lines = whole.lines().map(str::trim).filter(is_text);
    lines.map(str::to_owned).collect()
}
