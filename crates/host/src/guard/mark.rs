//! The mark of a file that may be overwritten: an extended attribute that is bound to the file's
//! contents.
//!
//! It stores the file's identity (inode, generation, birth time), its length, its last
//! modification, and the [`SectorStamp`] of the data. A copy of the file, foreign content, a file
//! system made or mounted in it, or growth by another process voids it; the user must then confirm
//! again. uflip renews the mark after every run, and closes it when it closes the file. If another
//! process wrote meanwhile (the file changed while uflip was not writing, or a writer closed it),
//! the mark stays void from then on, whatever uflip writes later. The mark
//! records that the file is open: if uflip was killed, later changes may be its own, and the file is still expendable if
//! every sector is zero or carries the stamp.
//!
//! Format, after the version: `1 brand=… size=… modified=… inode=… born=… generation=… open=…`, times in
//! ns; `modified=-` once another process wrote to it while uflip had it open.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use crate::sector_stamp::SectorStamp;
use crate::target_status::OpenCounter;

const NAME: &CStr = c"user.uflip";
/// The version of both marks.
pub(super) const VERSION: &str = "1";
pub(super) const UNREADABLE: &str = "its mark cannot be read";
/// An unknown or void value.
const UNKNOWN: &str = "-";
/// The size of the buffer for a mark [bytes].
const MAX_MARK_BYTES: usize = 1024;
/// `_IOR('v', 1, long)`: the generation, which distinguishes two files that used one inode number.
const FS_IOC_GETVERSION: u32 = 0x8008_7601;
/// The kernel's clock for file times ticks every few milliseconds.
const TICK: Duration = Duration::from_millis(1);
const TICKS: u32 = 50;

/// The status of a file, according to its mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MarkStatus {
    /// It has no mark.
    Unmarked,
    /// It is ours, and holds what uflip left in it.
    Expendable(SectorStamp),
    /// It was ours; the reason why it no longer is.
    Void(String),
}

/// Size and modification time of a file: if unchanged, it need not be scanned again.
pub(crate) type FileVersion = (u64, i64, i64);

/// Return the size and modification time.
pub(crate) fn file_version(metadata: &Metadata) -> FileVersion {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Return the status of `file`. `stop` cancels a scan of its data. A file that is unchanged
/// since its `earlier` version, which was ours, is not scanned again.
pub(crate) fn status(
    file: &File,
    earlier: Option<FileVersion>,
    stop: &dyn Fn() -> bool,
) -> MarkStatus {
    let Some(text) = read(file) else { return MarkStatus::Unmarked };
    let void = |reason: &str| MarkStatus::Void(reason.to_owned());
    let stored = match parse(&text) {
        Ok(stored) => stored,
        Err(reason) => return MarkStatus::Void(reason),
    };
    let stamp = stored.get("brand").and_then(|text| SectorStamp::parse(text));
    let (Some(stamp), Ok(metadata)) = (stamp, file.metadata()) else {
        return void(UNREADABLE);
    };
    if stored.get("modified") == Some(&UNKNOWN) {
        return void("another process wrote to it while uflip had it open");
    }
    let present = attributes(file, &metadata, stamp, Some(file_version(&metadata)));
    let differs = |key: &str| stored.get(key).copied() != present.get(key).map(String::as_str);
    if ["inode", "born", "generation"].into_iter().any(differs) {
        return void("it is a copy of a file that uflip made");
    }
    if (!differs("size") && !differs("modified")) || earlier == Some(file_version(&metadata)) {
        return MarkStatus::Expendable(stamp);
    }
    if stored.get("open") != Some(&"1") {
        return void("it was changed since uflip closed it");
    }
    match stamp.covers(file, stop) {
        Some(true) => MarkStatus::Expendable(stamp),
        Some(false) => void("it holds data that uflip did not write"),
        None => void("its scan was cancelled"),
    }
}

/// Return the stamp in the mark of `file`, whatever else has changed.
pub(crate) fn stamp(file: &File) -> Option<SectorStamp> {
    let text = read(file)?;
    let stored = parse(&text).ok()?;
    SectorStamp::parse(stored.get("brand")?)
}

/// The mark of an open target, kept up to date until the target is closed. Targets other than our
/// files have no mark.
#[derive(Debug)]
pub(crate) struct OwnershipMark {
    stamp: SectorStamp,
    /// `None` for a device.
    file: Option<File>,
    foreign: Mutex<ForeignWrites>,
}

/// The writes of others to the file.
#[derive(Debug, Default)]
struct ForeignWrites {
    /// The file as uflip left it; `None` while uflip writes.
    last_version: Option<FileVersion>,
    /// The opens by others, if inotify is available.
    opens: Option<OpenCounter>,
    /// The number of unexpected changes found.
    changed: u64,
    /// The number of writers that had closed the file at the last check.
    writers: u64,
    /// Whether the mark is no longer renewed: the file never was ours, or no longer is.
    is_void: bool,
}

impl OwnershipMark {
    /// Create the state of a device, which has no mark.
    pub(crate) fn device(stamp: SectorStamp) -> OwnershipMark {
        OwnershipMark { stamp, file: None, foreign: Mutex::default() }
    }

    /// Create the state of a read-only file, which gets no mark.
    pub(crate) fn for_reading(file: &File) -> OwnershipMark {
        let foreign = ForeignWrites { is_void: true, ..ForeignWrites::default() };
        let foreign = Mutex::new(foreign);
        let mark =
            OwnershipMark { stamp: SectorStamp::generate(), file: file.try_clone().ok(), foreign };
        mark.renew();
        mark
    }

    /// Mark `file` as ours and open.
    pub(crate) fn create(file: &File, stamp: SectorStamp) -> OwnershipMark {
        let mark = OwnershipMark { stamp, file: file.try_clone().ok(), foreign: Mutex::default() };
        mark.renew();
        mark
    }

    pub(crate) fn stamp(&self) -> SectorStamp {
        self.stamp
    }

    /// Count further opens of `file` by others from now on.
    pub(crate) fn count_opens(&self, file: &File) {
        self.foreign().opens = OpenCounter::start(file);
    }

    /// Add the actions of others to the status of the target.
    pub(crate) fn add_to(&self, status: &mut crate::target_status::TargetStatus) {
        let mut foreign = self.foreign();
        self.detect_foreign_writes(&mut foreign);
        status.changed_by_others = self.file.is_some().then_some(foreign.changed);
        if let Some(opens) = &foreign.opens {
            opens.add_to(status);
        }
    }

    /// Note that uflip begins to write.
    pub(crate) fn begin(&self) {
        let mut foreign = self.foreign();
        self.detect_foreign_writes(&mut foreign);
        foreign.last_version = None;
    }

    /// Renew the mark after a run. Later writes by others have a later time.
    pub(crate) fn renew(&self) {
        if let Some(file) = &self.file {
            wait_for_next_tick(file);
        }
        let mut foreign = self.foreign();
        self.detect_foreign_writes(&mut foreign);
        foreign.last_version = self.present_version();
        if !foreign.is_void {
            self.write(foreign.last_version, true);
        }
    }

    /// Remove the mark: the file is as it was before, and was not ours.
    pub(crate) fn remove_mark(&self) {
        self.foreign().is_void = true;
        if let Some(file) = &self.file {
            remove(file);
        }
    }

    fn foreign(&self) -> MutexGuard<'_, ForeignWrites> {
        self.foreign.lock().expect("the lock is not poisoned")
    }

    fn present_version(&self) -> Option<FileVersion> {
        Some(file_version(&self.file.as_ref()?.metadata().ok()?))
    }

    /// Void the mark if others wrote since the last check: the file changed while uflip was not
    /// writing, or a writer closed it while uflip was writing.
    fn detect_foreign_writes(&self, foreign: &mut ForeignWrites) {
        let writers = foreign.opens.as_mut().map_or(0, OpenCounter::writers);
        let overlapped = foreign.last_version.is_none() && writers > foreign.writers;
        let is_changed =
            foreign.last_version.is_some() && foreign.last_version != self.present_version();
        if is_changed {
            foreign.changed += 1;
            foreign.last_version = self.present_version();
        }
        if (is_changed || overlapped) && !foreign.is_void {
            foreign.is_void = true;
            self.write(None, false);
        }
        foreign.writers = writers;
    }

    /// Write the mark. Without extended attributes the user must confirm again next time.
    fn write(&self, last_version: Option<FileVersion>, open: bool) {
        let Some(file) = &self.file else { return };
        let Ok(metadata) = file.metadata() else { return };
        let mut text = VERSION.to_owned();
        for (key, value) in attributes(file, &metadata, self.stamp, last_version) {
            text += &format!(" {key}={value}");
        }
        text += if open { " open=1" } else { " open=0" };
        write_text(file, NAME, &text);
    }
}

impl Drop for OwnershipMark {
    fn drop(&mut self) {
        let mut foreign = self.foreign();
        self.detect_foreign_writes(&mut foreign);
        // If uflip's writes did not complete, the mark stays that of an open file.
        if foreign.last_version.is_some() && !foreign.is_void {
            self.write(foreign.last_version, false);
        }
    }
}

/// Wait until a further write would have a later time than our last one.
pub(crate) fn wait_for_next_tick(file: &File) {
    for _ in 0..TICKS {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a valid timespec to write to; the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
        let now = (time.tv_sec, time.tv_nsec);
        match file.metadata() {
            Ok(metadata) if (metadata.mtime(), metadata.mtime_nsec()) >= now => {
                std::thread::sleep(TICK);
            }
            _ => return,
        }
    }
}

/// Return the values that a mark is bound to; `last_version` is the file as uflip left it, `None` if it is
/// no longer ours.
fn attributes(
    file: &File,
    metadata: &Metadata,
    stamp: SectorStamp,
    last_version: Option<FileVersion>,
) -> BTreeMap<&'static str, String> {
    let size = last_version.map_or(metadata.len(), |(size, ..)| size);
    let mut attributes = BTreeMap::from(identity(file, metadata));
    attributes.insert("brand", stamp.text());
    attributes.insert("size", size.to_string());
    attributes.insert("modified", last_version.map_or_else(|| UNKNOWN.to_owned(), modified_text));
    attributes
}

/// Return the modification time as the mark stores it [ns].
pub(crate) fn modified_text((_, s, ns): FileVersion) -> String {
    (i128::from(s) * 1_000_000_000 + i128::from(ns)).to_string()
}

/// Return what distinguishes a file from its copies and from later files with the same inode
/// number.
pub(crate) fn identity(file: &File, metadata: &Metadata) -> [(&'static str, String); 3] {
    let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let mut generation: libc::c_long = 0;
    // SAFETY: an open descriptor and a place for the number.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION as _, &raw mut generation) };
    let unknown = || UNKNOWN.to_owned();
    [
        ("inode", metadata.ino().to_string()),
        ("born", born.map_or_else(unknown, |born| born.as_nanos().to_string())),
        ("generation", if status == 0 { (generation as u32).to_string() } else { unknown() }),
    ]
}

fn read(file: &File) -> Option<String> {
    read_text(file, NAME)
}

/// Remove the mark of `file`: it is no longer expendable.
pub(crate) fn remove(file: &File) {
    // SAFETY: an open descriptor and a text that ends in a zero.
    unsafe { libc::fremovexattr(file.as_raw_fd(), NAME.as_ptr()) };
}

/// Return the extended attribute `name` of `file`.
pub(crate) fn read_text(file: &File, name: &CStr) -> Option<String> {
    let mut text = vec![0u8; MAX_MARK_BYTES];
    // SAFETY: an open descriptor, a text that ends in a zero, and a buffer of the stated size.
    let length = unsafe {
        libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), text.as_mut_ptr().cast(), text.len())
    };
    text.truncate(usize::try_from(length).ok()?);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Set the extended attribute `name` of `file`. Without support in the file system the user must
/// confirm again.
pub(crate) fn write_text(file: &File, name: &CStr, text: &str) {
    // SAFETY: an open descriptor, a text that ends in a zero, and the stated number of bytes.
    unsafe {
        let (value, size) = (text.as_ptr().cast(), text.len());
        libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value, size, 0);
    }
}

/// Return the values of a mark.
///
/// # Errors
/// The reason why they cannot be used.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<&str, &str>, String> {
    let (version, values) = text.split_once(' ').unwrap_or((text, ""));
    if version == VERSION {
        return Ok(values.split(' ').filter_map(|word| word.split_once('=')).collect());
    }
    Err(if version.parse::<u32>().is_ok() {
        format!("its mark has version {version}, and this uflip reads version {VERSION}")
    } else {
        UNREADABLE.to_owned()
    })
}
