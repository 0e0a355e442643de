//! Regular files: what is checked before one is opened, created or grown.

use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, ErrorKind, Result, SECTOR_BYTES_MIN};

use crate::buffer::Data;
use crate::direct::DirectDevice;
use crate::growth::Growth;

/// How to open a file.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions {
    /// Whether it may be written.
    pub writable: bool,
    /// Accept I/O through the page cache where direct I/O is not wanted or not there.
    pub buffered: bool,
    /// What is written.
    pub data: Data,
    /// Create the file, or let it grow, to this size; `None`: neither.
    pub size: Option<Bytes>,
}

/// tmpfs and ramfs take O_DIRECT since Linux 6.6 and serve it from memory all the same.
const MEMORY_FILE_SYSTEMS: [(i64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// Open the file at `path`; with [`FileOptions::size`] create it where there is none. It never
/// shrinks, and what it holds beyond the given size is left alone. Where it is shorter than that, the
/// caller makes the writes of the [`Growth`] before anything else, and then calls
/// [`DirectDevice::grown`]; or takes the file back.
///
/// # Errors
/// A path under /dev, a directory, a missing file without a size, a size that is not whole sectors,
/// a read-only file, no direct I/O.
pub fn open_file(path: &str, options: FileOptions) -> Result<(DirectDevice, Option<Growth>)> {
    let present = check_path(path)?;
    let sector = SECTOR_BYTES_MIN;
    if let Some(size) = options.size
        && (size.0 == 0 || !size.0.is_multiple_of(sector))
    {
        return Err(Error::usage("The size of the file is not a whole number of sectors")
            .at(format!("file:{path}"))
            .got(size.0.to_string())
            .allowed(format!("multiples of {sector} bytes, from {sector}"))
            .action("choose another --size"));
    }
    match (&present, options.size) {
        (None, None) => return Err(missing(path)),
        (None, Some(_)) if !options.writable => return Err(missing(path)),
        (Some(metadata), _) if options.writable && metadata.mode() & 0o222 == 0 => {
            return Err(read_only(path, "its mode has no write permission"));
        }
        _ => {}
    }
    let file = open(path, options, present.is_none())?;
    let opened = prepare(path, options, present.as_ref(), file);
    if opened.is_err() && present.is_none() {
        // What we made and could not finish is ours to take away again.
        let _ = std::fs::remove_file(path);
    }
    opened
}

/// What is known about the file at `path`, without opening it for writing: as [`open_file`] would
/// tell it, `buffered` or not.
///
/// # Errors
/// As [`open_file`], without those of writing.
pub fn inspect_file(path: &str, buffered: bool) -> Result<DeviceInfo> {
    let metadata = check_path(path)?.ok_or_else(|| missing(path))?;
    let options = FileOptions { writable: false, buffered, data: Data::Random, size: None };
    let file = open(path, options, false)?;
    check_direct_io(path, &file, buffered)?;
    describe(path, &file, Bytes(metadata.len()), options)
}

/// A regular file's metadata, `None` where nothing is there; an error for anything else.
fn check_path(path: &str) -> Result<Option<Metadata>> {
    let place = format!("file:{path}");
    if path.is_empty() {
        return Err(Error::usage("A file device needs a path")
            .got("'file:'")
            .allowed("file:PATH")
            .action("name a file, as in file:scratch.bin"));
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let real = real_path(&absolute);
    if real.starts_with("/dev") && !real.starts_with("/dev/shm") {
        return Err(Error::new(ErrorKind::Refused, "A path under /dev is never used as a file")
            .at(place)
            .got(real.display().to_string())
            .action("name a block device by its path alone, as in /dev/nvme0n1"));
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(metadata) => Err(Error::device("This is not a regular file")
            .at(place)
            .got(if metadata.is_dir() { "a directory" } else { "a special file" })
            .allowed("a regular file")
            .action("name a file, as in file:scratch.bin")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::os("The file cannot be looked at", place, &error)),
    }
}

/// `path` with its links resolved, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_path_buf(),
    }
}

fn open(path: &str, options: FileOptions, create: bool) -> Result<File> {
    let mut flags = libc::O_CLOEXEC | libc::O_NOCTTY;
    if !options.buffered {
        flags |= libc::O_DIRECT;
    }
    if options.writable {
        flags |= libc::O_DSYNC;
    }
    let opened = OpenOptions::new()
        .read(true)
        .write(options.writable)
        .create_new(create)
        .custom_flags(flags)
        .open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if !options.buffered => no_direct_io(path, "this file system"),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) if options.writable => {
            read_only(path, &error.to_string())
        }
        _ => Error::os("The file cannot be opened", format!("file:{path}"), &error)
            .action("check the path and its permissions"),
    })
}

/// Everything that needs the open file: its kind of file system, its size, its content.
fn prepare(
    path: &str,
    options: FileOptions,
    present: Option<&Metadata>,
    file: File,
) -> Result<(DirectDevice, Option<Growth>)> {
    check_direct_io(path, &file, options.buffered)?;
    let have = present.map_or(0, Metadata::len);
    let size = options.size.map_or(have, |size| size.0);
    let info = describe(path, &file, Bytes(size), options)?;
    let sector = info.sector_bytes.0;
    let mut info = info;
    info.capacity_bytes = Bytes(size / sector * sector);
    if info.capacity_bytes.0 == 0 {
        return Err(Error::device("The file is shorter than one sector")
            .at(format!("file:{path}"))
            .got(format!("{size} bytes"))
            .allowed(format!("{sector} bytes or more"))
            .action("give --size to let it grow"));
    }
    let capacity = info.capacity_bytes.0;
    if have < capacity && !options.writable {
        return Err(read_only(path, "it is shorter than the size asked for"));
    }
    let mut device = DirectDevice::new(info, file, options.data);
    if have < capacity {
        let from = have / sector * sector;
        let growth = Growth::new(path, present.map(Metadata::len), from, capacity);
        return Ok((device, Some(growth)));
    }
    device.grown();
    Ok((device, None))
}

/// An error where direct I/O is wanted and the file system would only pretend to do it.
fn check_direct_io(path: &str, file: &File, buffered: bool) -> Result<()> {
    match memory_file_system(file) {
        Some(name) if !buffered => Err(no_direct_io(path, name)),
        _ => Ok(()),
    }
}

fn describe(path: &str, file: &File, size: Bytes, options: FileOptions) -> Result<DeviceInfo> {
    let direct_sector = direct_io_alignment(file).unwrap_or(SECTOR_BYTES_MIN);
    let sector = if options.buffered { SECTOR_BYTES_MIN } else { direct_sector };
    let mut details = Map::new();
    if let Ok(metadata) = file.metadata() {
        details.insert("inode".into(), metadata.ino().into());
        details.insert("file_system_device".into(), metadata.dev().into());
    }
    if let Some(kind) = memory_file_system(file) {
        details.insert("file_system".into(), Value::from(kind));
    }
    details.insert("direct_io_alignment_bytes".into(), direct_sector.into());
    Ok(DeviceInfo {
        url: format!("file:{path}"),
        kind: DeviceKind::File,
        simulated: false,
        model: "file".into(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: size,
        sector_bytes: Bytes(sector),
        clock: "monotonic",
        io: how(options.buffered),
        data: options.data.name(),
        details,
    })
}

/// How I/Os are made, as it is stored with a result.
pub(crate) fn how(buffered: bool) -> String {
    if buffered { "pread/pwrite O_DSYNC, buffered" } else { "pread/pwrite O_DIRECT|O_DSYNC" }.into()
}

/// The alignment that direct I/O on `file` needs, as the kernel tells it (Linux 6.1 and later).
fn direct_io_alignment(file: &File) -> Option<u64> {
    // SAFETY: statx is plain data, for which all zeros is a valid value.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty path with AT_EMPTY_PATH, and a valid place to write to.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut stat,
        )
    };
    let told = result == 0 && stat.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = u64::from(stat.stx_dio_offset_align);
    (told && alignment > 0).then(|| alignment.max(SECTOR_BYTES_MIN))
}

fn memory_file_system(file: &File) -> Option<&'static str> {
    // SAFETY: statfs is plain data, for which all zeros is a valid value.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a valid place to write to.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut stat) } != 0 {
        return None;
    }
    let known = MEMORY_FILE_SYSTEMS.iter().find(|(magic, _)| *magic == stat.f_type as i64);
    known.map(|(_, name)| *name)
}

fn missing(path: &str) -> Error {
    Error::device("The file does not exist")
        .at(format!("file:{path}"))
        .action("give --size to create it, as in --size 1GiB")
}

fn read_only(path: &str, why: &str) -> Error {
    Error::device("The file is read-only and the benchmark writes")
        .at(format!("file:{path}"))
        .got(why)
        .action("choose a file that may be written, or change its permissions")
}

fn no_direct_io(path: &str, file_system: &str) -> Error {
    Error::device("Direct I/O (O_DIRECT) is not supported here")
        .at(format!("file:{path}"))
        .got(file_system.to_owned())
        .allowed("a file on a disk file system such as ext4 or xfs")
        .action("choose another place, or accept I/O through the page cache with --buffered")
}
