//! What a name leads to, followed once and held.
//!
//! A descriptor that was opened with `O_PATH` refers to a file without opening it: no device wakes up,
//! no FIFO waits. It is looked at, checked, and opened for I/O through itself (`/proc/self/fd`), so
//! that whoever changes the name meanwhile changes nothing here.

use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uflip_core::{Error, ErrorKind, Result};

/// Something that exists, held by a descriptor that cannot do I/O.
pub(crate) struct Named {
    held: File,
    pub(crate) metadata: Metadata,
}

impl Named {
    /// What `path` leads to; `None` where nothing is there.
    pub(crate) fn find(path: &Path) -> io::Result<Option<Named>> {
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        let held = match File::options().read(true).custom_flags(flags).open(path) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = held.metadata()?;
        Ok(Some(Named { held, metadata }))
    }

    /// A new regular file of a name in `folder`, with `mode`; an error where anything has that name.
    pub(crate) fn create(folder: &Folder, mode: libc::c_uint) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
        // SAFETY: an open descriptor and a text that ends in a zero.
        let made =
            unsafe { libc::openat(folder.held.as_raw_fd(), folder.name.as_ptr(), flags, mode) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else knows of it.
        Ok(unsafe { File::from_raw_fd(made) })
    }

    pub(crate) fn is_block(&self) -> bool {
        self.metadata.file_type().is_block_device()
    }

    /// The same file or device, opened for I/O.
    pub(crate) fn open(&self, writable: bool, flags: i32) -> io::Result<File> {
        reopen(&self.held, writable, flags)
    }

    /// A descriptor for looking, through the page cache, at what was found.
    pub(crate) fn reader(&self) -> io::Result<File> {
        reopen(&self.held, false, libc::O_NONBLOCK)
    }

    /// An error unless `file` is what was checked. It cannot be anything else; but nothing is written
    /// because something cannot be.
    pub(crate) fn check_same(&self, file: &File, place: &str) -> Result<()> {
        let number = |metadata: &Metadata| (metadata.dev(), metadata.ino(), metadata.rdev());
        match file.metadata() {
            Ok(metadata) if number(&metadata) == number(&self.metadata) => Ok(()),
            _ => Err(Error::new(ErrorKind::Refused, "The file changed between check and opening")
                .at(place)
                .action("leave the path alone while uflip opens it, and start again")),
        }
    }

    /// The path that the kernel knows it by.
    pub(crate) fn real_path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.held.as_raw_fd())).unwrap_or_default()
    }

    pub(crate) fn held(&self) -> &File {
        &self.held
    }
}

/// What `file` refers to, opened anew.
pub(crate) fn reopen(file: &File, writable: bool, flags: i32) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
    File::options().read(true).write(writable).custom_flags(flags).open(path)
}

/// Take what was read through `reader` out of the page cache: direct I/O would look there every time.
pub(crate) fn forget(reader: &File) {
    // SAFETY: an open descriptor; it is advice, and may be ignored.
    unsafe { libc::posix_fadvise(reader.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// A folder, held, and a name in it: where a new file is to be, and where it can be taken away from
/// again whatever happens to the path.
#[derive(Debug)]
pub(crate) struct Folder {
    held: File,
    name: CString,
}

impl Folder {
    /// The folder of `path` and the name in it.
    pub(crate) fn of(path: &Path) -> io::Result<Folder> {
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
        let name = path.file_name().ok_or_else(nameless)?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let held = File::options().read(true).custom_flags(flags).open(folder)?;
        Ok(Folder { held, name: CString::new(name.as_bytes())? })
    }

    pub(crate) fn held(&self) -> &File {
        &self.held
    }

    /// Make names that were given or taken away in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        reopen(&self.held, false, libc::O_DIRECTORY)?.sync_all()
    }

    /// The path that the kernel knows the folder by.
    pub(crate) fn real_path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.held.as_raw_fd())).unwrap_or_default()
    }

    /// Remove the name if, and only if, it still leads to `file`.
    ///
    /// Between looking and removing, somebody could put another file there. So the name is moved out
    /// of the way first, looked at once more, and moved back where it is not ours.
    pub(crate) fn remove(&self, file: &File) {
        let Ok(ours) = file.metadata() else { return };
        if !self.leads_to(&self.name, &ours) {
            return;
        }
        let aside = format!(".uflip-removed-{}-{}", std::process::id(), ours.ino());
        let Ok(aside) = CString::new(aside) else { return };
        let folder = self.held.as_raw_fd();
        if !rename(folder, &self.name, &aside) {
            // A file system that cannot rename in this way: the look must do.
            self.unlink(&self.name);
        } else if self.leads_to(&aside, &ours) {
            self.unlink(&aside);
        } else {
            rename(folder, &aside, &self.name);
        }
    }

    fn leads_to(&self, name: &CString, ours: &Metadata) -> bool {
        // SAFETY: stat is plain data, for which all zeros is a valid value.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor, a text that ends in a zero, and a valid place to write to.
        let told = unsafe {
            let flags = libc::AT_SYMLINK_NOFOLLOW;
            libc::fstatat(self.held.as_raw_fd(), name.as_ptr(), &raw mut stat, flags)
        };
        told == 0 && (stat.st_dev, stat.st_ino) == (ours.dev(), ours.ino())
    }

    fn unlink(&self, name: &CString) {
        // There is an error to be told already; a second one would hide it.
        // SAFETY: an open descriptor and a text that ends in a zero.
        unsafe { libc::unlinkat(self.held.as_raw_fd(), name.as_ptr(), 0) };
    }
}

/// Rename within a folder, never over anything.
fn rename(folder: i32, from: &CString, to: &CString) -> bool {
    // SAFETY: an open descriptor and texts that end in a zero.
    let status = unsafe {
        let flags = libc::RENAME_NOREPLACE;
        libc::renameat2(folder, from.as_ptr(), folder, to.as_ptr(), flags)
    };
    status == 0
}

/// Whether a path that the kernel gave is below /dev, where nothing is a file; shared memory is.
pub(crate) fn below_dev(real: &Path) -> bool {
    let first = real.components().nth(1).map(|part| part.as_os_str().to_owned());
    first.as_deref() == Some(OsStr::new("dev")) && !real.starts_with("/dev/shm")
}
