//! The bytes of a file that anybody may have made: regular files only, opened without waiting.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Open a regular file, and say how long it is [bytes].
///
/// A pipe would be waited for, and opening some devices does something: so the kind is looked at before
/// the file is opened, and again after.
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
        None => Err("something that is no file".to_owned()),
    }
}

/// `length` bytes from `start` on; memory is asked for politely, so that too much is an error.
pub(crate) fn bytes(file: &mut File, start: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let wanted = usize::try_from(length).map_err(|error| error.to_string())?;
    content.try_reserve_exact(wanted).map_err(|_| format!("{length} bytes: not enough memory"))?;
    file.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
    file.take(length).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() == wanted {
        return Ok(content);
    }
    Err(format!("{} of {length} bytes", content.len()))
}
