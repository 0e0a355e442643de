//! Safe reading of untrusted files: regular files only, opened without blocking.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Open a regular file; return it with its length [bytes].
///
/// Opening a pipe blocks, and opening some devices has side effects, so the kind is checked before
/// and after opening.
pub(crate) fn regular(path: &Path) -> Result<(File, u64), String> {
    let text = |error: std::io::Error| error.to_string();
    check(std::fs::metadata(path).map_err(text)?.file_type())?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(text)?;
    let metadata = file.metadata().map_err(text)?;
    check(metadata.file_type())?;
    Ok((file, metadata.len()))
}

fn check(kind: std::fs::FileType) -> Result<(), String> {
    let other = [
        (kind.is_dir(), "a folder"),
        (kind.is_fifo(), "a pipe"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device(), "a character device"),
        (kind.is_block_device(), "a block device"),
    ];
    match other.iter().find(|(is, _)| *is) {
        Some((_, name)) => Err(format!("{name} instead of a file")),
        None if kind.is_file() => Ok(()),
        None => Err("an unknown kind of file".to_owned()),
    }
}

/// Read `length` bytes from `start`; insufficient memory is an error.
pub(crate) fn bytes(file: &mut File, start: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let size = usize::try_from(length).map_err(|error| error.to_string())?;
    content.try_reserve_exact(size).map_err(|_| format!("{length} bytes: not enough memory"))?;
    file.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
    file.take(length).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() == size {
        return Ok(content);
    }
    Err(format!("{} of {length} bytes", content.len()))
}
