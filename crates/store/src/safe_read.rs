//! Safe reading of untrusted files: regular files only, opened without blocking, and a panic in a
//! parser becomes an error.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

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

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Run `work`; return its result, or the message of its panic, which is not printed.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static INSTALL_HOOK: Once = Once::new();
    INSTALL_HOOK.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                default_hook(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    // Values borrowed by `work` are dropped with it or only read, so no partial change is visible.
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        format!("unreadable content ({text})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error() {
        assert_eq!(contained(|| 5), Ok(5));
        let numbers: Vec<u8> = Vec::new();
        let index = numbers.len() + 3;
        let error = contained(|| numbers[index]).unwrap_err();
        assert!(error.contains("out of bounds"), "{error}");
        let nested = contained(|| contained(|| panic!("inside")).map(|()| 1));
        assert_eq!(nested, Ok(Err("unreadable content (inside)".to_owned())));
    }
}
