//! Regular files: options, checks, opening, creation, and growth to the requested size. The
//! [guard](crate::guard) decides whether one may be written.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, Io, Mode, Result, SECTOR_BYTES_MIN};

use crate::buffer::Data;
use crate::cached_stat::statx;
use crate::direct::{DirectDevice, insert_stamp, io_method};
use crate::guard::admit::{self, FileSystem, WriteRequest};
use crate::guard::machine::Machine;
use crate::guard::ownership::{self, OwnershipMark, SectorStamp};
use crate::guard::target::{Folder, TargetHandle, drop_cache, reopen};
use crate::guard::{Roots, lock};

/// The options for opening a file.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions<'a> {
    /// Whether it may be written.
    pub writable: bool,
    /// Accept I/O through the page cache if direct I/O is unwanted or unsupported.
    pub buffered: bool,
    /// The content of writes.
    pub data: Data,
    /// Create the file, or grow it, to this size; `None`: neither.
    pub size: Option<Bytes>,
    /// The `--destroy` text that the user typed for a file that uflip did not create.
    pub destroy: Option<&'a str>,
}

/// A file that passed the guard.
struct OpenedFile {
    file: File,
    system: FileSystem,
    mark: OwnershipMark,
    /// The stamp already found on it.
    stamp: Option<SectorStamp>,
    previous: PreviousState,
}

/// The previous state of the file.
enum PreviousState {
    /// A file of this length, created by uflip or released by the user.
    Existing { length: u64, ours: bool },
    /// No file: it was created in this folder.
    Created(Folder),
}

/// Open the file at `path`; with [`FileOptions::size`], create it if it is missing. It never
/// shrinks, and data beyond the given size stays. If it is shorter, the caller makes the writes of
/// the [`Growth`] before anything else and then calls [`DirectDevice::update_allocated_size`], or
/// rolls the growth back.
///
/// `stop` cancels the scan of a file that a killed uflip left behind.
///
/// # Errors
/// Not a regular file, a missing one without a size, a size that is not whole sectors, a read-only
/// file, no direct I/O; [`uflip_core::ErrorKind::Refused`] for a file that is in use, or holds
/// foreign data.
pub fn open_file(
    path: &str,
    options: FileOptions,
    stop: &dyn Fn() -> bool,
) -> Result<(DirectDevice, Option<Growth>)> {
    check_size(path, options.size)?;
    let machine = Machine::examine(&Roots::default());
    let opened = match find(path)? {
        Some(target) if options.writable => open_existing(&machine, path, options, &target, stop)?,
        Some(target) => {
            let opened = open_to_read(&machine, path, options, &target)?;
            lock::hold(&opened.file, false, &format!("file:{path}"))?;
            opened
        }
        None if options.writable && options.size.is_some() => create(&machine, path, options)?,
        None => {
            refuse_folder_below_dev(path)?;
            return Err(missing(path));
        }
    };
    prepare(path, options, opened)
}

/// Check whether the file at `path` may be written, without opening it for writing. A missing file
/// may be created.
///
/// # Errors
/// As [`open_file`].
pub fn check_file(path: &str, destroy: Option<&str>, stop: &dyn Fn() -> bool) -> Result<()> {
    let machine = Machine::examine(&Roots::default());
    let location = format!("file:{path}");
    let Some(target) = find(path)? else {
        refuse_folder_below_dev(path)?;
        let Ok(folder) = Folder::containing(Path::new(path)) else { return Ok(()) };
        return admit::admit_file_system(&machine, folder.descriptor(), &location).map(|_| ());
    };
    admit::admit_kind(&machine, &target, &location)?;
    refuse_read_only(path, &target)?;
    let reader = target.reader().map_err(|error| unreadable(path, &error))?;
    let request = write_request(&location, path, destroy);
    admit::admit_file(&machine, &reader, request, None, stop).map(|_| ())
}

fn write_request<'a>(
    location: &'a str,
    path: &'a str,
    destroy: Option<&'a str>,
) -> WriteRequest<'a> {
    WriteRequest {
        location,
        path,
        destroy,
        alternative: "name a file that does not exist yet, with --size",
    }
}

/// Return the properties of the file at `path`, as [`open_file`] would report them, without opening
/// it for writing.
///
/// # Errors
/// As [`open_file`], without those of writing.
pub fn inspect_file(path: &str, buffered: bool) -> Result<DeviceInfo> {
    let Some(target) = find(path)? else {
        refuse_folder_below_dev(path)?;
        return Err(missing(path));
    };
    let options =
        FileOptions { writable: false, buffered, data: Data::Random, size: None, destroy: None };
    let machine = Machine::examine(&Roots::default());
    let OpenedFile { file, system, .. } = open_to_read(&machine, path, options, &target)?;
    let size = target.metadata.len();
    let mut info = describe(path, &file, &system, Bytes(size), options)?;
    let stamp = target.reader().ok().and_then(|reader| find_stamp(&reader, size));
    insert_stamp(&mut info, stamp, None);
    Ok(info)
}

fn find(path: &str) -> Result<Option<TargetHandle>> {
    if path.is_empty() {
        return Err(Error::usage("A file device needs a path")
            .got("'file:'")
            .allowed("file:PATH")
            .action("name a file, as in file:scratch.bin"));
    }
    TargetHandle::find(Path::new(path)).map_err(|error| {
        Error::os("The file cannot be opened", format!("file:{path}"), &error)
            .action("check the path and its permissions")
    })
}

fn check_size(path: &str, size: Option<Bytes>) -> Result<()> {
    let sector = SECTOR_BYTES_MIN;
    match size {
        Some(size) if size.0 == 0 || !size.0.is_multiple_of(sector) => {
            Err(Error::usage("The size of the file is not a whole number of sectors")
                .at(format!("file:{path}"))
                .got(size.0.to_string())
                .allowed(format!("multiples of {sector} bytes, from {sector}"))
                .action("choose another --size"))
        }
        _ => Ok(()),
    }
}

/// Return the stamp of a file's data, found in the data or in its mark.
fn find_stamp(reader: &File, size: u64) -> Option<SectorStamp> {
    SectorStamp::find_on(reader, size).or_else(|| ownership::marked_stamp(reader))
}

/// Open an existing file for writing.
fn open_existing(
    machine: &Machine,
    path: &str,
    options: FileOptions,
    target: &TargetHandle,
    stop: &dyn Fn() -> bool,
) -> Result<OpenedFile> {
    let location = format!("file:{path}");
    let system = admit::admit_kind(machine, target, &location)?;
    refuse_read_only(path, target)?;
    let reader = target.reader().map_err(|error| unreadable(path, &error))?;
    let request = write_request(&location, path, options.destroy);
    let first = admit::admit_file(machine, &reader, request, None, stop)?;
    refuse_memory_file_system(path, &system, options)?;
    lock::refuse_held(&reader, &location)?;
    let file =
        target.open(true, flags(options)).map_err(|error| not_opened(path, options, &error))?;
    target.check_same(&file, &location)?;
    lock::hold(&file, true, &location)?;
    // A second check under the lock: another benchmark may have opened it meanwhile.
    let machine = Machine::examine(&machine.roots);
    let expected_version = first.stamp.map(|_| first.version);
    let own_stamp = admit::admit_file(&machine, &reader, request, expected_version, stop)?.stamp;
    let length = reader.metadata().map_or(0, |metadata| metadata.len());
    let stamp = own_stamp.or_else(|| SectorStamp::find_on(&reader, length));
    drop_cache(&reader);
    let mark = OwnershipMark::create(&file, stamp.unwrap_or_else(SectorStamp::generate));
    Ok(OpenedFile {
        file,
        system,
        mark,
        stamp,
        previous: PreviousState::Existing { length, ours: own_stamp.is_some() },
    })
}

/// Open an existing file for reading.
fn open_to_read(
    machine: &Machine,
    path: &str,
    options: FileOptions,
    target: &TargetHandle,
) -> Result<OpenedFile> {
    let system = admit::admit_kind(machine, target, &format!("file:{path}"))?;
    refuse_memory_file_system(path, &system, options)?;
    let file =
        target.open(false, flags(options)).map_err(|error| not_opened(path, options, &error))?;
    let mark = OwnershipMark::for_reading(&file);
    Ok(OpenedFile {
        file,
        system,
        mark,
        stamp: None,
        previous: PreviousState::Existing { length: target.metadata.len(), ours: false },
    })
}

/// Create a new file.
fn create(machine: &Machine, path: &str, options: FileOptions) -> Result<OpenedFile> {
    let location = format!("file:{path}");
    let failed = |error: std::io::Error| {
        Error::os("The file cannot be created", &location, &error)
            .action("check the path and its permissions")
    };
    let folder = Folder::containing(Path::new(path)).map_err(failed)?;
    admit::refuse_below_dev(&folder.real_path(), &location)?;
    let system = admit::admit_file_system(machine, folder.descriptor(), &location)?;
    refuse_memory_file_system(path, &system, options)?;
    // First without direct I/O: a refused direct open would leave the file behind.
    let created = TargetHandle::create(&folder, 0o666).map_err(failed)?;
    let file = reopen(&created, true, flags(options));
    let file = file.map_err(|error| not_opened(path, options, &error));
    let file = file.inspect_err(|_| folder.remove(&created))?;
    lock::hold(&file, true, &location).inspect_err(|_| folder.remove(&file))?;
    let mark = OwnershipMark::create(&file, SectorStamp::generate());
    Ok(OpenedFile { file, system, mark, stamp: None, previous: PreviousState::Created(folder) })
}

fn flags(options: FileOptions) -> i32 {
    if options.buffered { 0 } else { libc::O_DIRECT }
}

fn not_opened(path: &str, options: FileOptions, error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EINVAL) if !options.buffered => no_direct_io(path, "this file system"),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) if options.writable => {
            read_only(path, &error.to_string())
        }
        _ => Error::os("The file cannot be opened", format!("file:{path}"), error)
            .action("check the path and its permissions"),
    }
}

/// Build the device, and the growth if the file is too short.
fn prepare(
    path: &str,
    options: FileOptions,
    opened: OpenedFile,
) -> Result<(DirectDevice, Option<Growth>)> {
    let OpenedFile { file, system, mark, stamp, previous } = opened;
    let length = if let PreviousState::Existing { length, .. } = previous { length } else { 0 };
    let size = options.size.map_or(length, |size| size.0);
    let info = describe_grown(path, options, &file, &system, (&mark, stamp), length, size);
    if info.is_err()
        && let PreviousState::Created(folder) = &previous
    {
        folder.remove(&file);
    }
    let info = info?;
    let (sector, capacity) = (info.sector_bytes.0, info.capacity_bytes.0);
    let mark = Arc::new(mark);
    let handle = file.try_clone();
    let handle = handle.map_err(|error| Error::os("The file cannot be held", &info.url, &error))?;
    let mut device = DirectDevice::new(info, file, options.data, Arc::clone(&mark));
    if length < capacity {
        let rollback = match previous {
            PreviousState::Created(folder) => Rollback::Remove { file: handle, folder },
            PreviousState::Existing { length, ours } => {
                Rollback::Truncate { file: handle, length, mark, was_ours: ours }
            }
        };
        return Ok((device, Some(Growth::new(length / sector * sector, capacity, rollback))));
    }
    device.update_allocated_size();
    Ok((device, None))
}

/// Return the properties of a file that will have `size` bytes, of which `length` exist.
fn describe_grown(
    path: &str,
    options: FileOptions,
    file: &File,
    system: &FileSystem,
    (mark, stamp): (&OwnershipMark, Option<SectorStamp>),
    length: u64,
    size: u64,
) -> Result<DeviceInfo> {
    let mut info = describe(path, file, system, Bytes(size), options)?;
    let sector = info.sector_bytes.0;
    info.capacity_bytes = Bytes(size / sector * sector);
    if info.capacity_bytes.0 == 0 {
        return Err(Error::device("The file is shorter than one sector")
            .at(format!("file:{path}"))
            .got(format!("{size} bytes"))
            .allowed(format!("{sector} bytes or more"))
            .action("give --size to let it grow"));
    }
    if length < info.capacity_bytes.0 && !options.writable {
        return Err(read_only(path, "it is shorter than the requested size"));
    }
    insert_stamp(&mut info, stamp, options.writable.then_some((mark.stamp(), options.data)));
    Ok(info)
}

/// Refuse direct I/O on a file system that only pretends to support it.
fn refuse_memory_file_system(path: &str, system: &FileSystem, options: FileOptions) -> Result<()> {
    if system.in_memory() && !options.buffered {
        return Err(no_direct_io(path, &system.kind));
    }
    Ok(())
}

fn describe(
    path: &str,
    file: &File,
    system: &FileSystem,
    size: Bytes,
    options: FileOptions,
) -> Result<DeviceInfo> {
    let direct_sector = direct_io_alignment(file).unwrap_or(SECTOR_BYTES_MIN);
    let sector = if options.buffered { SECTOR_BYTES_MIN } else { direct_sector };
    let mut details = Map::new();
    if let Ok(metadata) = file.metadata() {
        details.insert("inode".into(), metadata.ino().into());
        details.insert("file_system_device".into(), metadata.dev().into());
    }
    details.insert("file_system".into(), Value::from(system.kind.as_str()));
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
        io: io_method(options.buffered),
        data: options.data.name(),
        details,
    })
}

/// Return the alignment of direct I/O on `file`, from the kernel (Linux 6.1 and later).
fn direct_io_alignment(file: &File) -> Option<u64> {
    let stat = statx(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN)?;
    let is_reported = stat.stx_mask & libc::STATX_DIOALIGN != 0;
    let alignment = u64::from(stat.stx_dio_offset_align);
    (is_reported && alignment > 0).then(|| alignment.max(SECTOR_BYTES_MIN))
}

/// Refuse a missing file below /dev because of its place, not because it is missing.
fn refuse_folder_below_dev(path: &str) -> Result<()> {
    match Folder::containing(Path::new(path)) {
        Ok(folder) => admit::refuse_below_dev(&folder.real_path(), &format!("file:{path}")),
        Err(_) => Ok(()),
    }
}

fn refuse_read_only(path: &str, target: &TargetHandle) -> Result<()> {
    if target.metadata.mode() & 0o222 == 0 {
        return Err(read_only(path, "its mode has no write permission"));
    }
    Ok(())
}

fn unreadable(path: &str, error: &std::io::Error) -> Error {
    Error::os("The file cannot be read", format!("file:{path}"), error)
        .action("check its permissions")
}

fn missing(path: &str) -> Error {
    Error::device("The file does not exist")
        .at(format!("file:{path}"))
        .action("give --size to create it, as in --size 1GiB")
}

fn read_only(path: &str, reason: &str) -> Error {
    Error::device("The file is read-only and the benchmark writes")
        .at(format!("file:{path}"))
        .got(reason)
        .action("choose a file that may be written, or change its permissions")
}

fn no_direct_io(path: &str, file_system: &str) -> Error {
    Error::device("Direct I/O (O_DIRECT) is not supported here")
        .at(format!("file:{path}"))
        .got(file_system.to_owned())
        .allowed("a file on a disk file system such as ext4 or xfs")
        .action("choose another file system, or accept I/O through the page cache with --buffered")
}

/// Large enough to be fast, small enough that Ctrl-C responds at once on any device.
const WRITE_BYTES: u64 = 1 << 20;

/// The growth of a file that [`crate::open_file`] created or found too short: `[from, to)` is
/// written once, sequentially. Reads of holes would never reach the device.
#[derive(Debug)]
pub struct Growth {
    from: u64,
    to: u64,
    rollback: Rollback,
}

/// The rollback of a growth. It acts on the opened descriptor, whatever has happened to the path.
#[derive(Debug)]
pub(crate) enum Rollback {
    /// The file is new: remove its name, if the name still leads to it.
    Remove { file: File, folder: Folder },
    /// The file existed: restore its length, and unless it was `was_ours`, remove the mark.
    Truncate { file: File, length: u64, mark: Arc<OwnershipMark>, was_ours: bool },
}

impl Growth {
    pub(crate) fn new(from: u64, to: u64, rollback: Rollback) -> Growth {
        Growth { from, to, rollback }
    }

    /// Return the number of writes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.to.saturating_sub(self.from).div_ceil(WRITE_BYTES)
    }

    /// Return the writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = Io> + use<> {
        let (from, to) = (self.from, self.to);
        (0..self.ios()).map(move |number| {
            let offset = from + number * WRITE_BYTES;
            let size = Bytes((to - offset).min(WRITE_BYTES));
            Io { offset: Bytes(offset), size, mode: Mode::Write, stream: 0 }
        })
    }

    /// Restore the original file: its length, or its absence.
    pub fn roll_back(&self) {
        match &self.rollback {
            Rollback::Remove { file, folder } => folder.remove(file),
            Rollback::Truncate { file, length, mark, was_ours } => {
                // An error is already being reported; a second one would hide it.
                let _ = file.set_len(*length);
                if !was_ours {
                    mark.remove_mark();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_file(path: &std::path::Path) -> File {
        File::options().read(true).write(true).open(path).expect("open the file")
    }

    fn truncating_growth(file: File, length: u64, from: u64, to: u64) -> Growth {
        let mark = Arc::new(OwnershipMark::for_reading(&file));
        Growth::new(from, to, Rollback::Truncate { file, length, mark, was_ours: true })
    }

    #[test]
    fn growth_writes_cover_exactly_the_new_part() {
        for (from, to) in [(0, 0), (0, 512), (512, 3 << 20), (1 << 20, (5 << 20) + 1024)] {
            let growth = truncating_growth(
                tempfile::tempfile().expect("create a temporary file"),
                0,
                from,
                to,
            );
            let writes: Vec<Io> = growth.writes().collect();
            assert_eq!(writes.len() as u64, growth.ios());
            let mut expected = from;
            for io in writes {
                assert_eq!((io.offset.0, io.mode), (expected, Mode::Write));
                expected += io.size.0;
            }
            assert_eq!(expected, to);
        }
    }

    #[test]
    fn rollback_restores_the_file() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        std::fs::write(&path, [7; 2000]).expect("write the file");
        let removal = |path| Rollback::Remove {
            file: open_file(path),
            folder: Folder::containing(path).expect("open the folder"),
        };
        let growth = truncating_growth(open_file(&path), 1000, 512, 4096);
        let renamed = folder.path().join("g");
        std::fs::rename(&path, &renamed).expect("rename the file");
        std::fs::write(&path, b"another file").expect("write the file");
        growth.roll_back();
        assert_eq!(
            std::fs::read(&renamed).expect("read the file"),
            [7; 1000],
            "the renamed file is truncated"
        );
        assert_eq!(std::fs::read(&path).expect("read the file"), b"another file");
        Growth::new(0, 4096, removal(&path)).roll_back();
        assert!(!path.exists());
    }

    #[test]
    fn rollback_keeps_a_replacement_file() {
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        std::fs::write(&path, b"ours").expect("write the file");
        let rollback = Rollback::Remove {
            file: open_file(&path),
            folder: Folder::containing(&path).expect("open the folder"),
        };
        let precious = folder.path().join("precious");
        std::fs::write(&precious, b"precious").expect("write the file");
        std::fs::rename(&precious, &path).expect("replace the file");
        Growth::new(0, 4096, rollback).roll_back();
        assert_eq!(std::fs::read(&path).expect("read the file"), b"precious");
        let names = std::fs::read_dir(folder.path()).expect("list the folder").count();
        assert_eq!(names, 1, "no other file remains");
    }
}
