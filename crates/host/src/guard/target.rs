//! The file or device behind a name, resolved once and held.
//!
//! A descriptor opened with `O_PATH` refers to a file without opening it: no device wakes up, no
//! FIFO blocks. The target is checked, and then opened for I/O through the descriptor
//! (`/proc/self/fd`), so that a later change of the name has no effect.

use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uflip_core::{Error, ErrorKind, Result};

/// An existing file or device, held by a descriptor without I/O.
pub(crate) struct TargetHandle {
    descriptor: File,
    pub(crate) metadata: Metadata,
}

impl TargetHandle {
    /// Resolve `path`; `None` if nothing is there.
    pub(crate) fn find(path: &Path) -> io::Result<Option<TargetHandle>> {
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        let descriptor = match File::options().read(true).custom_flags(flags).open(path) {
            Ok(descriptor) => descriptor,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = descriptor.metadata()?;
        Ok(Some(TargetHandle { descriptor, metadata }))
    }

    /// Create a new regular file in `folder` with `mode`; an error if the name exists.
    pub(crate) fn create(folder: &Folder, mode: libc::c_uint) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
        // SAFETY: an open descriptor and a NUL-terminated string.
        let descriptor = unsafe {
            libc::openat(folder.descriptor.as_raw_fd(), folder.name.as_ptr(), flags, mode)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and not shared.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    pub(crate) fn is_block(&self) -> bool {
        self.metadata.file_type().is_block_device()
    }

    /// Open the target for I/O.
    pub(crate) fn open(&self, writable: bool, flags: i32) -> io::Result<File> {
        reopen(&self.descriptor, writable, flags)
    }

    /// Open the target for reading through the page cache.
    pub(crate) fn reader(&self) -> io::Result<File> {
        reopen(&self.descriptor, false, libc::O_NONBLOCK)
    }

    /// Return an error unless `file` is the checked target. By construction it is; this is a second
    /// safeguard.
    pub(crate) fn check_same(&self, file: &File, location: &str) -> Result<()> {
        let number = |metadata: &Metadata| (metadata.dev(), metadata.ino(), metadata.rdev());
        match file.metadata() {
            Ok(metadata) if number(&metadata) == number(&self.metadata) => Ok(()),
            _ => Err(Error::new(ErrorKind::Refused, "The file changed between check and opening")
                .at(location)
                .action("repeat the command; the path must not change meanwhile")),
        }
    }

    /// Return the kernel's path of the target.
    pub(crate) fn real_path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
            .unwrap_or_default()
    }

    pub(crate) fn descriptor(&self) -> &File {
        &self.descriptor
    }
}

/// Open the file behind a descriptor again.
pub(crate) fn reopen(file: &File, writable: bool, flags: i32) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    File::options().read(true).write(writable).custom_flags(flags).open(path)
}

/// Drop the pages read through `reader` from the page cache: direct I/O would check them every
/// time.
pub(crate) fn drop_cache(reader: &File) {
    // SAFETY: an open descriptor; the call is only advice.
    unsafe { libc::posix_fadvise(reader.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// A held folder and a name in it, for a new file, which can be removed again whatever
/// happens to the path.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: File,
    name: CString,
}

impl Folder {
    /// Split `path` into its folder and its name.
    pub(crate) fn containing(path: &Path) -> io::Result<Folder> {
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let name = path.file_name().ok_or_else(nameless)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let descriptor = File::options().read(true).custom_flags(flags).open(folder)?;
        Ok(Folder { descriptor, name: CString::new(name.as_bytes())? })
    }

    pub(crate) fn descriptor(&self) -> &File {
        &self.descriptor
    }

    /// Make creations and removals in the folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        reopen(&self.descriptor, false, libc::O_DIRECTORY)?.sync_all()
    }

    /// Return the kernel's path of the folder.
    pub(crate) fn real_path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()))
            .unwrap_or_default()
    }

    /// Remove the name if, and only if, it still leads to `file`.
    ///
    /// Another process could replace the file between check and removal. The name is therefore
    /// renamed first, checked again, and renamed back if it is not ours.
    pub(crate) fn remove(&self, file: &File) {
        let Ok(own_metadata) = file.metadata() else { return };
        if !self.leads_to(&self.name, &own_metadata) {
            return;
        }
        let parked = format!(".uflip-removed-{}-{}", std::process::id(), own_metadata.ino());
        let Ok(parked) = CString::new(parked) else { return };
        let folder = self.descriptor.as_raw_fd();
        if !rename(folder, &self.name, &parked) {
            // The file system does not support this rename: the first check must do.
            self.unlink(&self.name);
        } else if self.leads_to(&parked, &own_metadata) {
            self.unlink(&parked);
        } else {
            rename(folder, &parked, &self.name);
        }
    }

    fn leads_to(&self, name: &CString, own_metadata: &Metadata) -> bool {
        // SAFETY: stat is plain data, for which all zeros is a valid value.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor, a NUL-terminated string, and a valid buffer to write to.
        let status = unsafe {
            let flags = libc::AT_SYMLINK_NOFOLLOW;
            libc::fstatat(self.descriptor.as_raw_fd(), name.as_ptr(), &raw mut stat, flags)
        };
        status == 0 && (stat.st_dev, stat.st_ino) == (own_metadata.dev(), own_metadata.ino())
    }

    fn unlink(&self, name: &CString) {
        // An error is already being reported; a second one would hide it.
        // SAFETY: an open descriptor and a NUL-terminated string.
        unsafe { libc::unlinkat(self.descriptor.as_raw_fd(), name.as_ptr(), 0) };
    }
}

/// Rename within a folder without replacing.
fn rename(folder: i32, from: &CString, to: &CString) -> bool {
    // SAFETY: an open descriptor and NUL-terminated strings.
    let status = unsafe {
        let flags = libc::RENAME_NOREPLACE;
        libc::renameat2(folder, from.as_ptr(), folder, to.as_ptr(), flags)
    };
    status == 0
}

/// Return whether a kernel path is below /dev, where nothing is used as a file, except in shared
/// memory.
pub(crate) fn is_below_dev(real: &Path) -> bool {
    let first = real.components().nth(1).map(|part| part.as_os_str().to_owned());
    first.as_deref() == Some(OsStr::new("dev")) && !real.starts_with("/dev/shm")
}
