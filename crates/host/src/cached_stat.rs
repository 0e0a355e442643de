//! File attributes from the kernel's cache. A file server (NFS, FUSE) is not contacted, so that a
//! hung server does not block the caller: `AT_STATX_DONT_SYNC` of statx(2). Attributes of local
//! files are always current.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use uflip_core::SECTOR_BYTES_MIN;

/// The attributes of a file or device node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedStat {
    /// The device number of its file system, and its inode there.
    pub(crate) device: libc::dev_t,
    pub(crate) inode: u64,
    /// The device number of a device node.
    pub(crate) node: libc::dev_t,
    mode: u32,
    /// Length and allocated size [bytes].
    pub(crate) length: u64,
    pub(crate) allocated: u64,
}

impl CachedStat {
    /// Return the attributes of an open file.
    pub(crate) fn of_file(file: &File) -> Option<CachedStat> {
        cached(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
    }

    /// Return the attributes of the file at a path, symbolic links followed.
    pub(crate) fn at(path: &Path) -> Option<CachedStat> {
        cached(libc::AT_FDCWD, &CString::new(path.as_os_str().as_bytes()).ok()?, 0)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    pub(crate) fn is_block_device(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFBLK
    }
}

fn cached(folder: libc::c_int, path: &CStr, flags: libc::c_int) -> Option<CachedStat> {
    let flags = flags | libc::AT_STATX_DONT_SYNC;
    let stat = statx(folder, path, flags, libc::STATX_BASIC_STATS)?;
    Some(CachedStat {
        device: libc::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        node: libc::makedev(stat.stx_rdev_major, stat.stx_rdev_minor),
        mode: u32::from(stat.stx_mode),
        length: stat.stx_size,
        allocated: stat.stx_blocks * SECTOR_BYTES_MIN,
    })
}

/// Call statx(2); `None` if it fails.
pub(crate) fn statx(
    folder: libc::c_int,
    path: &CStr,
    flags: libc::c_int,
    mask: libc::c_uint,
) -> Option<libc::statx> {
    // SAFETY: statx is plain data, for which all zeros is a valid value.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor or AT_FDCWD, a string that ends in NUL, and a valid place to write to.
    let result = unsafe { libc::statx(folder, path.as_ptr(), flags, mask, &raw mut stat) };
    (result == 0).then_some(stat)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    use super::*;

    #[test]
    fn cached_attributes_match_stat() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        std::fs::write(&path, [1; 5000]).expect("write the file");
        let file = File::open(&path).expect("open the file");
        file.sync_all().expect("sync the file");
        for path in [path.as_path(), Path::new("/dev/null"), Path::new("/dev/loop0"), folder.path()]
        {
            let Ok(expected) = std::fs::metadata(path) else { continue };
            let stat = CachedStat::at(path).expect("the file exists");
            assert_eq!((stat.device, stat.inode), (expected.dev(), expected.ino()));
            assert_eq!((stat.node, stat.length), (expected.rdev(), expected.len()));
            assert_eq!(stat.allocated, expected.blocks() * 512);
            assert_eq!(stat.is_file(), expected.is_file());
            assert_eq!(stat.is_block_device(), expected.file_type().is_block_device());
        }
        let stat = CachedStat::of_file(&file).expect("the file is open");
        assert_eq!((stat.length, stat.is_file()), (5000, true));
        assert!(CachedStat::at(&folder.path().join("g")).is_none());
    }
}
