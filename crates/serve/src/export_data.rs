//! The data of an export: a sparse file, in memory or on disk.
//!
//! The kernel treats both alike, so there is one way to read, write and punch holes. Data is in the
//! file before it is acknowledged: if the process ends, the kernel still has it. A flush is
//! answered after a sync, so that data also survives a power loss.
//!
//! A separate thread syncs, because a disk takes milliseconds and other clients must not wait for it.
//! After a failed sync the file counts as lost: the kernel may have dropped the data that it could not
//! write, so that a later sync would succeed without effect.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use uflip_core::{Bytes, Error, ErrorKind, Result};
use uflip_host::{DataFile, DataOptions};

/// The storage of an export's data.
#[derive(Debug)]
pub struct ExportData(Storage);

#[derive(Debug)]
enum Storage {
    /// An anonymous file, which ends with this process.
    InMemory(File),
    /// A named file, which outlives this process.
    InFile(DataFile),
}

/// Longer reads reserve exactly their size [bytes].
const EXACT_RESERVE_BYTES: u32 = 1 << 20;
/// The source of zeros if no hole can be punched [bytes].
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

impl ExportData {
    /// Create `size` bytes of zeros in memory; only written parts take memory.
    ///
    /// # Errors
    /// If the system does not provide the memory file.
    pub fn in_memory(size: Bytes) -> Result<ExportData> {
        let memory = memfd_create("uflip-serve", MemfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let file = memory.map(File::from).and_then(|file| file.set_len(size.0).map(|()| file));
        let file = file.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "The data cannot be stored in memory")
                .at("memfd_create")
                .got(error.to_string())
                .action("store it in a file: --data FILE")
        })?;
        Ok(ExportData(Storage::InMemory(file)))
    }

    /// Open the file `path` exclusively. A missing file is created with zeros; an existing one must
    /// have the size of the device and pass the guard.
    ///
    /// # Errors
    /// As [`DataFile::open`].
    pub fn in_file(path: &Path, options: DataOptions) -> Result<ExportData> {
        DataFile::open(path, options).map(|file| ExportData(Storage::InFile(file)))
    }

    fn file(&self) -> &File {
        match &self.0 {
            Storage::InMemory(file) => file,
            Storage::InFile(file) => file.file(),
        }
    }

    /// Append `length` bytes from `offset` to `out`.
    ///
    /// # Errors
    /// Any error of the system; `out` is then unchanged.
    pub fn read(&self, out: &mut Vec<u8>, offset: u64, length: u32) -> std::io::Result<()> {
        let before = out.len();
        // Without this, the vector may reserve twice its size.
        if length > EXACT_RESERVE_BYTES {
            out.reserve_exact(length as usize);
        }
        out.resize(before + length as usize, 0);
        let result = self.file().read_exact_at(&mut out[before..], offset);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// Write `bytes` at `offset`.
    ///
    /// # Errors
    /// Any error of the system, such as a full disk.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file().write_all_at(bytes, offset)
    }

    /// Set a range to zeros; deallocate it unless `keep` is set.
    ///
    /// # Errors
    /// As [`ExportData::write`].
    pub fn zero(&self, offset: u64, length: u64, keep: bool) -> std::io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let mode = if keep { FallocateFlags::ZERO_RANGE } else { hole };
        match fallocate(self.file(), mode | FallocateFlags::KEEP_SIZE, offset, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeroes(offset, length),
            other => other.map_err(std::io::Error::from),
        }
    }

    fn write_zeroes(&self, offset: u64, length: u64) -> std::io::Result<()> {
        let mut done = 0;
        while done < length {
            let chunk = (length - done).min(ZEROES.len() as u64);
            self.write(offset + done, &ZEROES[..chunk as usize])?;
            done += chunk;
        }
        Ok(())
    }

    /// Return a handle of the file for the sync thread; `None` if the data is in memory.
    ///
    /// # Errors
    /// If the descriptor cannot be duplicated.
    pub fn to_sync(&self) -> std::io::Result<Option<File>> {
        match &self.0 {
            Storage::InMemory(_) => Ok(None),
            Storage::InFile(file) => file.file().try_clone().map(Some),
        }
    }
}

/// A sync request: the index of the file, and the waiting request.
type SyncRequest = (usize, usize);

/// The waiting request, and whether the file is durable now.
pub type SyncResult = (usize, bool);

/// The sync thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Syncer {
    requests: Sender<SyncRequest>,
    answers: Receiver<SyncResult>,
    /// An event descriptor that is readable when there are answers.
    event: Arc<OwnedFd>,
}

impl Syncer {
    /// Start the thread for `files`; `None` needs no sync.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(files: Vec<Option<File>>) -> Result<Syncer> {
        let failed =
            |error: std::io::Error| Error::os("The sync thread cannot start", "serve", &error);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = Arc::new(event.map_err(|error| failed(error.into()))?);
        let (requests, receiver) = channel();
        let (answer, answers) = channel();
        let thread_event = Arc::clone(&event);
        std::thread::Builder::new()
            .name("uflip-sync".into())
            .spawn(move || sync_thread(&files, &receiver, &answer, &thread_event))
            .map_err(failed)?;
        Ok(Syncer { requests, answers, event })
    }

    /// Request a sync of file `index` for `request`.
    pub fn request(&self, index: usize, request: usize) {
        // The thread lives as long as `self`.
        let _ = self.requests.send((index, request));
    }

    /// Return the next answer.
    pub fn answer(&self) -> Option<SyncResult> {
        self.answers.try_recv().ok()
    }

    /// Return the event descriptor.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Clear the event descriptor.
    pub fn clear_event(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }
}

fn sync_thread(
    files: &[Option<File>],
    receiver: &Receiver<SyncRequest>,
    answer: &Sender<SyncResult>,
    event: &OwnedFd,
) {
    let mut poisoned = vec![false; files.len()];
    while let Ok(first) = receiver.recv() {
        // One sync serves all requests made before it begins.
        let requests: Vec<SyncRequest> =
            std::iter::once(first).chain(receiver.try_iter()).collect();
        for (index, file) in files.iter().enumerate() {
            let mut waiting = requests.iter().filter(|(file, _)| *file == index).peekable();
            if waiting.peek().is_none() {
                continue;
            }
            let synced = file.as_ref().is_none_or(|file| file.sync_data().is_ok());
            poisoned[index] |= !synced;
            for (_, request) in waiting {
                let _ = answer.send((*request, !poisoned[index]));
            }
        }
        let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &ExportData, offset: u64, length: u32) -> Vec<u8> {
        let mut out = vec![7];
        data.read(&mut out, offset, length).unwrap();
        assert_eq!(out.remove(0), 7, "the existing file is unchanged");
        out
    }

    fn check_written_data_is_read_back(data: &ExportData) {
        data.write(4096, &[1; 8192]).unwrap();
        data.zero(8192, 2048, false).unwrap();
        data.zero(4096, 512, true).unwrap();
        let expected = [vec![0; 512], vec![1; 3584], vec![0; 2048], vec![1; 2048]].concat();
        assert_eq!(read(data, 4096, 8192), expected);
        assert_eq!(read(data, 0, 4096), [0; 4096]);
        assert!(data.read(&mut Vec::new(), 1 << 20, 1).is_err(), "beyond the end");
    }

    fn options(size: u64) -> DataOptions<'static> {
        DataOptions { size: Bytes(size), read_only: false, destroy: None }
    }

    #[test]
    fn memory_and_files_store_written_data() {
        check_written_data_is_read_back(&ExportData::in_memory(Bytes(1 << 20)).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        check_written_data_is_read_back(&ExportData::in_file(&path, options(1 << 20)).unwrap());
        let reading = DataOptions { read_only: true, ..options(1 << 20) };
        let reopened = ExportData::in_file(&path, reading).unwrap();
        assert_eq!(read(&reopened, 10240, 2048), [1; 2048], "a zeroed range may stay allocated");
    }

    #[test]
    fn unsuitable_or_used_file_is_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, b"a thesis").unwrap();
        assert!(ExportData::in_file(&path, options(1 << 20)).is_err());
        let refused = ExportData::in_file(&path, options(8)).unwrap_err();
        assert_eq!(
            refused.kind(),
            ErrorKind::Refused,
            "a foreign file of the right size: {refused}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"a thesis");
        let reading = DataOptions { read_only: true, ..options(1 << 20) };
        assert!(ExportData::in_file(folder.path(), reading).is_err(), "a folder");
        let other = folder.path().join("other");
        let served = ExportData::in_file(&other, options(4096)).unwrap();
        let second = ExportData::in_file(&other, options(4096)).unwrap_err();
        assert!(second.to_string().contains("in use"), "{second}");
        drop(served);
        assert!(ExportData::in_file(&other, options(4096)).is_ok());
    }

    #[test]
    fn served_file_is_disowned_after_foreign_writes_or_copies() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("data"), folder.path().join("copy"));
        let data = ExportData::in_file(&path, options(4096)).unwrap();
        data.write(0, &[7; 512]).unwrap();
        drop(data);
        drop(ExportData::in_file(&path, options(4096)).expect("open our own data file"));
        std::fs::copy(&path, &copy).unwrap();
        let refused = ExportData::in_file(&copy, options(4096)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
        std::fs::write(&path, [8; 4096]).unwrap();
        let refused = ExportData::in_file(&path, options(4096)).unwrap_err();
        assert!(refused.to_string().contains("changed since"), "{refused}");
        let typed = path.display().to_string();
        let destroying = DataOptions { destroy: Some(&typed), ..options(4096) };
        assert_eq!(read(&ExportData::in_file(&path, destroying).unwrap(), 0, 4096), [8; 4096]);
        assert!(ExportData::in_file(&path, options(4096)).is_ok(), "uflip owns the file now");
    }
}
