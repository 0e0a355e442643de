//! Bytes of a foreign file: opened safely, decompressed, and their beginning as lines.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use uflip_core::{Error, ErrorKind, Result};

use crate::lines::{CUT_FILE, is_preamble};

/// The part of a file by which its format is recognised.
const SAMPLE_BYTES: u64 = 1 << 17;
/// A file with a NUL in its first bytes is binary; further on it is an odd line.
const BINARY_BYTES: usize = 512;
const BUFFER_BYTES: usize = 1 << 16;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The byte order marks of UTF-16.
const UTF16_LITTLE: &[u8] = &[0xff, 0xfe];
const UTF16_BIG: &[u8] = &[0xfe, 0xff];

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
    decompressed(BufReader::with_capacity(BUFFER_BYTES, file))
        .map_err(|error| failed(&error).action(CUT_FILE))
}

/// Return the content of a file, decompressed if it is one of gzip or zstd, and in UTF-8 if it is
/// one of UTF-16.
pub(crate) fn decompressed(
    mut input: impl BufRead + Send + 'static,
) -> std::io::Result<Box<dyn BufRead + Send>> {
    let begin = input.fill_buf()?;
    let mut unpacked: Box<dyn BufRead + Send> = if begin.starts_with(GZIP) {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(input)))
    } else if begin.starts_with(ZSTD) {
        let reader = zstd::stream::read::Decoder::with_buffer(input)?;
        Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
    } else {
        Box::new(input)
    };
    let begin = unpacked.fill_buf()?;
    let is_big = begin.starts_with(UTF16_BIG);
    if !is_big && !begin.starts_with(UTF16_LITTLE) {
        return Ok(unpacked);
    }
    let reader = Utf16Reader { input: unpacked, is_big, text: Cursor::default() };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, reader)))
}

/// Reads UTF-16, as PowerShell writes it, as UTF-8.
struct Utf16Reader {
    input: Box<dyn BufRead + Send>,
    is_big: bool,
    /// Converted text that was not read yet.
    text: Cursor<Vec<u8>>,
}

impl Read for Utf16Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.text.fill_buf()?.is_empty() {
            let mut units = Vec::new();
            // A surrogate is followed by its second half.
            while units.len() < BUFFER_BYTES || (0xd800..0xdc00).contains(&units[units.len() - 1]) {
                if self.input.fill_buf()?.is_empty() {
                    break;
                }
                let mut unit = [0; 2];
                self.input.read_exact(&mut unit)?;
                units.push(if self.is_big { u16::from_be_bytes } else { u16::from_le_bytes }(unit));
            }
            self.text = Cursor::new(String::from_utf16_lossy(&units).into_bytes());
        }
        self.text.read(buffer)
    }
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
    let lines = whole.lines().map(str::trim).filter(is_text).skip_while(|line| is_preamble(line));
    lines.map(str::to_owned).collect()
}
