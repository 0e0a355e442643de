//! What clients wrote: a sparse file, without a name in memory or with one on disk.
//!
//! Both are one kind of thing to the kernel, so there is one way to read, write and punch holes. Data
//! is in the file before it is acknowledged: whatever becomes of this process, the kernel has it. What
//! is to survive a loss of power too is synced before a flush is answered (`sync.rs`).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, MemfdFlags, fallocate, flock, memfd_create};
use uflip_core::{Bytes, Error, ErrorKind, Result};

/// Where the data of an export is.
#[derive(Debug)]
pub struct Data {
    file: File,
    /// Whether it outlives this process.
    durable: bool,
}

/// What is written where no hole can be made [bytes].
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

impl Data {
    /// `size` bytes of zeroes, in memory as far as they are written.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn in_memory(size: Bytes) -> Result<Data> {
        let made = memfd_create("uflip-serve", MemfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let file = made.map(File::from).and_then(|file| file.set_len(size.0).map(|()| file));
        let file = file.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "The data cannot be kept in memory")
                .at("memfd_create")
                .got(error.to_string())
                .action("keep it in a file: --data FILE")
        })?;
        Ok(Data { file, durable: false })
    }

    /// The file `path`: made, if it is not there, with `size` bytes of zeroes; used as it is, if it is a
    /// file of that size. Nobody else serves it meanwhile.
    ///
    /// # Errors
    /// It cannot be made or written, is in use by another server, or is something else.
    pub fn in_file(path: &Path, size: Bytes, read_only: bool) -> Result<Data> {
        let place = || path.display().to_string();
        let instead = if read_only {
            "name a file that is there and may be read"
        } else {
            "name a file that may be written, or one that is not there yet"
        };
        let failed = |error: std::io::Error| {
            Error::os("The data file cannot be used", place(), &error).action(instead)
        };
        let mut options = OpenOptions::new();
        options.read(true).write(!read_only).mode(0o600);
        // A pipe would be waited for.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let mut made = false;
        let file = match options.open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !read_only => {
                made = true;
                options.create_new(true).open(path).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            Error::new(ErrorKind::Refused, "The data file is in use")
                .at(place())
                .got(error.to_string())
                .allowed("one server a file")
                .action("end the other server, or name another file")
        })?;
        if made {
            file.set_len(size.0).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() || found.len() != size.0 {
            let (none_yet, made_so) = if read_only {
                ("", "")
            } else {
                (", or none yet", "; it is made with the size of the device")
            };
            let what = if found.is_file() { "" } else { "no regular file, " };
            return Err(Error::new(ErrorKind::Refused, "The data file does not fit the device")
                .at(place())
                .got(format!("{what}{} bytes", found.len()))
                .allowed(format!("a regular file of {} bytes{none_yet}", size.0))
                .action(format!("name another file{made_so}")));
        }
        Ok(Data { file, durable: true })
    }

    /// Append `length` bytes from `offset` on to `out`.
    ///
    /// # Errors
    /// What the system says; `out` is then as it was.
    pub fn read(&self, out: &mut Vec<u8>, offset: u64, length: u32) -> std::io::Result<()> {
        let before = out.len();
        out.resize(before + length as usize, 0);
        let done = self.file.read_exact_at(&mut out[before..], offset);
        if done.is_err() {
            out.truncate(before);
        }
        done
    }

    /// Put `bytes` at `offset`.
    ///
    /// # Errors
    /// What the system says, a full disk above all.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Let a range read as zeroes, and give its room back unless `keep` says that it is to stay.
    ///
    /// # Errors
    /// As [`Data::write`].
    pub fn zero(&self, offset: u64, length: u64, keep: bool) -> std::io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let how = if keep { FallocateFlags::ZERO_RANGE } else { hole };
        match fallocate(&self.file, how | FallocateFlags::KEEP_SIZE, offset, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeroes(offset, length),
            other => other.map_err(std::io::Error::from),
        }
    }

    fn write_zeroes(&self, offset: u64, length: u64) -> std::io::Result<()> {
        let mut done = 0;
        while done < length {
            let now = (length - done).min(ZEROES.len() as u64);
            self.write(offset + done, &ZEROES[..now as usize])?;
            done += now;
        }
        Ok(())
    }

    /// The file once more, for the thread that syncs it; `None` where nothing outlives the process.
    ///
    /// # Errors
    /// The system gives no further handle.
    pub fn to_sync(&self) -> std::io::Result<Option<File>> {
        self.durable.then(|| self.file.try_clone()).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &Data, offset: u64, length: u32) -> Vec<u8> {
        let mut out = vec![7];
        data.read(&mut out, offset, length).unwrap();
        assert_eq!(out.remove(0), 7, "what was there stays");
        out
    }

    fn holds_what_is_written(data: &Data) {
        data.write(4096, &[1; 8192]).unwrap();
        data.zero(8192, 2048, false).unwrap();
        data.zero(4096, 512, true).unwrap();
        let expected = [vec![0; 512], vec![1; 3584], vec![0; 2048], vec![1; 2048]].concat();
        assert_eq!(read(data, 4096, 8192), expected);
        assert_eq!(read(data, 0, 4096), [0; 4096]);
        assert!(data.read(&mut Vec::new(), 1 << 20, 1).is_err(), "beyond the end");
    }

    #[test]
    fn memory_and_files_hold_what_is_written() {
        holds_what_is_written(&Data::in_memory(Bytes(1 << 20)).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        holds_what_is_written(&Data::in_file(&path, Bytes(1 << 20), false).unwrap());
        let again = Data::in_file(&path, Bytes(1 << 20), true).unwrap();
        assert_eq!(read(&again, 10240, 2048), [1; 2048], "and keep it");
    }

    #[test]
    fn a_file_that_does_not_fit_or_is_in_use_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, b"a thesis").unwrap();
        assert!(Data::in_file(&path, Bytes(1 << 20), false).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a thesis");
        assert!(Data::in_file(folder.path(), Bytes(1 << 20), true).is_err(), "a folder");
        let other = folder.path().join("other");
        let served = Data::in_file(&other, Bytes(4096), false).unwrap();
        let second = Data::in_file(&other, Bytes(4096), false).unwrap_err();
        assert!(second.to_string().contains("in use"), "{second}");
        drop(served);
        assert!(Data::in_file(&other, Bytes(4096), false).is_ok());
    }
}
