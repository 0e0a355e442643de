//! Regular files: what is asked for, and what comes of it. Who may be written to is the
//! [guard](crate::guard)'s business.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use uflip_core::{Bytes, DeviceInfo, DeviceKind, Error, Result, SECTOR_BYTES_MIN};

use crate::block::tell_brand;
use crate::brand::Brand;
use crate::buffer::Data;
use crate::direct::DirectDevice;
use crate::growth::{Back, Growth};
use crate::guard::admit::Wanted;
use crate::guard::kind::FileSystem;
use crate::guard::machine::Machine;
use crate::guard::mark::{self, Kept};
use crate::guard::named::{Folder, Named, forget, reopen};
use crate::guard::{Roots, admit, lock};

/// How to open a file.
#[derive(Clone, Copy, Debug)]
pub struct FileOptions<'a> {
    /// Whether it may be written.
    pub writable: bool,
    /// Accept I/O through the page cache where direct I/O is not wanted or not there.
    pub buffered: bool,
    /// What is written.
    pub data: Data,
    /// Create the file, or let it grow, to this size; `None`: neither.
    pub size: Option<Bytes>,
    /// What the user typed to give up a file that uflip did not make.
    pub destroy: Option<&'a str>,
}

/// A file that the guard let through.
struct Opened {
    file: File,
    system: FileSystem,
    kept: Kept,
    /// The brand that was there already.
    found: Option<Brand>,
    before: Before,
}

/// What was there before.
enum Before {
    /// A file of this length, ours or given up by the user.
    Was { length: u64, ours: bool },
    /// Nothing: the file was made in this folder.
    Nothing(Folder),
}

/// Open the file at `path`; with [`FileOptions::size`] create it where there is none. It never
/// shrinks, and what it holds beyond the given size is left alone. Where it is shorter than that, the
/// caller makes the writes of the [`Growth`] before anything else, and then calls
/// [`DirectDevice::grown`]; or takes the file back.
///
/// `stop` says whether a file that uflip was killed over is looked through no further.
///
/// # Errors
/// Not a regular file, a missing one without a size, a size that is not whole sectors, a read-only
/// file, no direct I/O; [`uflip_core::ErrorKind::Refused`] for a file that is in use, or holds
/// something that is not ours.
pub fn open_file(
    path: &str,
    options: FileOptions,
    stop: &dyn Fn() -> bool,
) -> Result<(DirectDevice, Option<Growth>)> {
    check_size(path, options.size)?;
    let machine = Machine::look(&Roots::default());
    let opened = match find(path)? {
        Some(named) if options.writable => existing(&machine, path, options, &named, stop)?,
        Some(named) => read_only_file(&machine, path, options, &named)?,
        None if options.writable && options.size.is_some() => create(&machine, path, options)?,
        None => {
            refuse_folder_below_dev(path)?;
            return Err(missing(path));
        }
    };
    prepare(path, options, opened)
}

/// Whether the file at `path` may be written to, without opening it for writing; one that is not there
/// may be made.
///
/// # Errors
/// As [`open_file`].
pub fn check_file(path: &str, destroy: Option<&str>, stop: &dyn Fn() -> bool) -> Result<()> {
    let machine = Machine::look(&Roots::default());
    let Some(named) = find(path)? else {
        refuse_folder_below_dev(path)?;
        let Ok(folder) = Folder::of(Path::new(path)) else { return Ok(()) };
        let place = format!("file:{path}");
        return admit::admit_file_system(&machine, folder.held(), &place).map(|_| ());
    };
    admit::admit_kind(&machine, &named, &format!("file:{path}"))?;
    refuse_read_only(path, &named)?;
    let reader = named.reader().map_err(|error| unreadable(path, &error))?;
    let place = format!("file:{path}");
    admit::admit_file(&machine, &reader, wanted(&place, path, destroy), None, stop).map(|_| ())
}

fn wanted<'a>(place: &'a str, path: &'a str, destroy: Option<&'a str>) -> Wanted<'a> {
    Wanted { place, path, destroy, instead: "name a file that does not exist yet, with --size" }
}

/// What is known about the file at `path`, without opening it for writing: as [`open_file`] would
/// tell it, `buffered` or not.
///
/// # Errors
/// As [`open_file`], without those of writing.
pub fn inspect_file(path: &str, buffered: bool) -> Result<DeviceInfo> {
    let Some(named) = find(path)? else {
        refuse_folder_below_dev(path)?;
        return Err(missing(path));
    };
    let options =
        FileOptions { writable: false, buffered, data: Data::Random, size: None, destroy: None };
    let machine = Machine::look(&Roots::default());
    let Opened { file, system, .. } = open_to_read(&machine, path, options, &named)?;
    let size = named.metadata.len();
    let mut info = describe(path, &file, &system, Bytes(size), options)?;
    let brand = named.reader().ok().and_then(|reader| brand_of(&reader, size));
    tell_brand(&mut info, brand, None);
    Ok(info)
}

fn find(path: &str) -> Result<Option<Named>> {
    if path.is_empty() {
        return Err(Error::usage("A file device needs a path")
            .got("'file:'")
            .allowed("file:PATH")
            .action("name a file, as in file:scratch.bin"));
    }
    Named::find(Path::new(path)).map_err(|error| {
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

/// The data that a file holds: those of its mark, or those that are found in it.
fn brand_of(reader: &File, size: u64) -> Option<Brand> {
    Brand::found_on(reader, size).or_else(|| mark::brand(reader))
}

/// A file that is there, to be written to.
fn existing(
    machine: &Machine,
    path: &str,
    options: FileOptions,
    named: &Named,
    stop: &dyn Fn() -> bool,
) -> Result<Opened> {
    let place = format!("file:{path}");
    let system = admit::admit_kind(machine, named, &place)?;
    refuse_read_only(path, named)?;
    let reader = named.reader().map_err(|error| unreadable(path, &error))?;
    let wanted = wanted(&place, path, options.destroy);
    let first = admit::admit_file(machine, &reader, wanted, None, stop)?;
    refuse_memory(path, &system, options)?;
    lock::refuse_held(&reader, &place)?;
    let file =
        named.open(true, flags(options)).map_err(|error| not_opened(path, options, &error))?;
    named.check_same(&file, &place)?;
    lock::hold(&file, true, &place)?;
    // Once more, now that no other benchmark can come in between.
    let machine = Machine::look(&machine.roots);
    let known = first.brand.map(|_| first.seen);
    let ours = admit::admit_file(&machine, &reader, wanted, known, stop)?.brand;
    let length = reader.metadata().map_or(0, |metadata| metadata.len());
    let found = ours.or_else(|| Brand::found_on(&reader, length));
    forget(&reader);
    let kept = Kept::mark(&file, found.unwrap_or_else(Brand::fresh));
    Ok(Opened { file, system, kept, found, before: Before::Was { length, ours: ours.is_some() } })
}

/// A file that is there, to be read only.
fn read_only_file(
    machine: &Machine,
    path: &str,
    options: FileOptions,
    named: &Named,
) -> Result<Opened> {
    let opened = open_to_read(machine, path, options, named)?;
    lock::hold(&opened.file, false, &format!("file:{path}"))?;
    Ok(opened)
}

fn open_to_read(
    machine: &Machine,
    path: &str,
    options: FileOptions,
    named: &Named,
) -> Result<Opened> {
    let system = admit::admit_kind(machine, named, &format!("file:{path}"))?;
    refuse_memory(path, &system, options)?;
    let file =
        named.open(false, flags(options)).map_err(|error| not_opened(path, options, &error))?;
    let kept = Kept::read(&file);
    Ok(Opened {
        file,
        system,
        kept,
        found: None,
        before: Before::Was { length: named.metadata.len(), ours: false },
    })
}

/// A file that is not there yet.
fn create(machine: &Machine, path: &str, options: FileOptions) -> Result<Opened> {
    let place = format!("file:{path}");
    let not_made = |error: std::io::Error| {
        Error::os("The file cannot be made", &place, &error)
            .action("check the path and its permissions")
    };
    let folder = Folder::of(Path::new(path)).map_err(not_made)?;
    admit::refuse_below_dev(&folder.real_path(), &place)?;
    let system = admit::admit_file_system(machine, folder.held(), &place)?;
    refuse_memory(path, &system, options)?;
    // Without direct I/O first: where that is refused, the file would have been made all the same.
    let made = Named::create(&folder, 0o666).map_err(not_made)?;
    let file = reopen(&made, true, flags(options));
    let file = file.map_err(|error| not_opened(path, options, &error));
    let file = file.inspect_err(|_| folder.remove(&made))?;
    lock::hold(&file, true, &place).inspect_err(|_| folder.remove(&file))?;
    let kept = Kept::mark(&file, Brand::fresh());
    Ok(Opened { file, system, kept, found: None, before: Before::Nothing(folder) })
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

/// Everything that follows from how long the file is and how long it shall be.
fn prepare(
    path: &str,
    options: FileOptions,
    opened: Opened,
) -> Result<(DirectDevice, Option<Growth>)> {
    let Opened { file, system, kept, found, before } = opened;
    let have = if let Before::Was { length, .. } = before { length } else { 0 };
    let size = options.size.map_or(have, |size| size.0);
    let described = described(path, options, &file, &system, (&kept, found), have, size);
    if described.is_err()
        && let Before::Nothing(folder) = &before
    {
        folder.remove(&file);
    }
    let info = described?;
    let (sector, capacity) = (info.sector_bytes.0, info.capacity_bytes.0);
    let kept = Arc::new(kept);
    let same = file.try_clone();
    let same = same.map_err(|error| Error::os("The file cannot be held", &info.url, &error))?;
    let mut device = DirectDevice::new(info, file, options.data, Arc::clone(&kept));
    if have < capacity {
        let back = match before {
            Before::Nothing(folder) => Back::Removed { file: same, folder },
            Before::Was { length, ours } => Back::Shortened { file: same, length, kept, ours },
        };
        return Ok((device, Some(Growth::new(have / sector * sector, capacity, back))));
    }
    device.grown();
    Ok((device, None))
}

/// What is known of a file that shall have `size`, of which it has `have`.
fn described(
    path: &str,
    options: FileOptions,
    file: &File,
    system: &FileSystem,
    (kept, found): (&Kept, Option<Brand>),
    have: u64,
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
    if have < info.capacity_bytes.0 && !options.writable {
        return Err(read_only(path, "it is shorter than the size asked for"));
    }
    tell_brand(&mut info, found, options.writable.then_some((kept.brand(), options.data)));
    Ok(info)
}

/// An error where direct I/O is wanted and the file system would only pretend to do it.
fn refuse_memory(path: &str, system: &FileSystem, options: FileOptions) -> Result<()> {
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
        io: how(options.buffered),
        data: options.data.name(),
        details,
    })
}

/// How I/Os are made, as it is stored with a result.
pub(crate) fn how(buffered: bool) -> String {
    if buffered { "pread/pwrite, buffered" } else { "pread/pwrite O_DIRECT" }.into()
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

/// A missing file below /dev is refused for where it would be, not for being missing.
fn refuse_folder_below_dev(path: &str) -> Result<()> {
    match Folder::of(Path::new(path)) {
        Ok(folder) => admit::refuse_below_dev(&folder.real_path(), &format!("file:{path}")),
        Err(_) => Ok(()),
    }
}

fn refuse_read_only(path: &str, named: &Named) -> Result<()> {
    if named.metadata.mode() & 0o222 == 0 {
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
