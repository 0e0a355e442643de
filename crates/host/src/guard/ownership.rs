//! Whether a file holds only data that uflip wrote: the marks of files, and the stamp of sectors.
//!
//! A mark is an extended attribute that is bound to the contents of its file. That of a file that may be
//! overwritten stores the file's identity (inode, generation, birth time), its length, its last
//! modification, and the [`SectorStamp`] of the data. A copy of the file, foreign content, a file system
//! made or mounted in it, or growth by another process voids it; the user must then confirm again.
//! uflip renews the mark after every run, and closes it when it closes the file. If another process
//! wrote meanwhile (the file changed while uflip was not writing, or a writer closed it), the mark stays
//! void from then on, whatever uflip writes later. The mark records that the file is open: if uflip was
//! killed, later changes may be its own, and the file is still expendable if every sector is zero or
//! carries the stamp.
//!
//! The mark of a data file of a served device has no stamp, because clients wrote the data. A copy of
//! the file, or one modified after the server closed it, does not match. A killed server leaves the mark
//! of an open file, whose last writes are newer than the mark. Such a file is never expendable: a
//! benchmark (`file:PATH`) that would overwrite it is refused.
//!
//! A sector of random data begins with eight bytes: the stamp, XORed with a digest of the random
//! bytes behind it. The sector stays incompressible, no two sectors begin alike, and decoding
//! yields the same number for all of them. A sector with a single changed byte no longer decodes to
//! the stamp. Stamps answer two questions: does a file left behind by a killed process contain only
//! our data, and is the medium behind a name the one that a benchmark began on. A number counts as a
//! stamp only if its upper 16 bits follow from the others, and if sectors of different content agree on
//! it. Foreign data pass by chance once in 2⁸⁰.
//!
//! Format of the first mark, after the version: `1 brand=… size=… modified=… inode=… born=…
//! generation=… open=…`, times in ns; `modified=-` once another process wrote to it while uflip had
//! it open.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uflip_core::{SECTOR_BYTES_MIN, random};

use crate::watch::OpenCounter;

const MARK: &CStr = c"user.uflip";
/// The version of both marks.
const VERSION: &str = "1";
const UNREADABLE: &str = "its mark cannot be read";
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
pub(crate) fn mark_status(
    file: &File,
    earlier: Option<FileVersion>,
    stop: &dyn Fn() -> bool,
) -> MarkStatus {
    let Some(text) = read_text(file, MARK) else { return MarkStatus::Unmarked };
    let void = |reason: &str| MarkStatus::Void(reason.to_owned());
    let stored = match parse_mark(&text) {
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
pub(crate) fn marked_stamp(file: &File) -> Option<SectorStamp> {
    let text = read_text(file, MARK)?;
    let stored = parse_mark(&text).ok()?;
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
    pub(crate) fn add_to(&self, status: &mut crate::watch::TargetStatus) {
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
        write_text(file, MARK, &text);
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
fn wait_for_next_tick(file: &File) {
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
fn modified_text((_, s, ns): FileVersion) -> String {
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

/// Remove the mark of `file`: it is no longer expendable.
pub(crate) fn remove(file: &File) {
    // SAFETY: an open descriptor and a text that ends in a zero.
    unsafe { libc::fremovexattr(file.as_raw_fd(), MARK.as_ptr()) };
}

/// Return the extended attribute `name` of `file`.
fn read_text(file: &File, name: &CStr) -> Option<String> {
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
fn write_text(file: &File, name: &CStr, text: &str) {
    // SAFETY: an open descriptor, a text that ends in a zero, and the stated number of bytes.
    unsafe {
        let (value, size) = (text.as_ptr().cast(), text.len());
        libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value, size, 0);
    }
}

/// Return the values of a mark.
fn parse_mark(text: &str) -> Result<BTreeMap<&str, &str>, String> {
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

const DATA_MARK: &CStr = c"user.uflip.served";

/// The status of a data file, according to its mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DataMarkStatus {
    /// It has no mark.
    Unmarked,
    /// It holds only what clients wrote.
    Ours,
    /// It was a data file; the reason why it no longer counts as one.
    Void(String),
}

/// Return the status of `file` for a server.
pub(crate) fn data_status(file: &File) -> DataMarkStatus {
    let Some(text) = read_text(file, DATA_MARK) else { return DataMarkStatus::Unmarked };
    let void = |reason: &str| DataMarkStatus::Void(reason.to_owned());
    let stored = match parse_mark(&text) {
        Ok(stored) => stored,
        Err(reason) => return DataMarkStatus::Void(reason),
    };
    let Ok(metadata) = file.metadata() else { return void(UNREADABLE) };
    let differs = |key: &str, present: &str| stored.get(key) != Some(&present);
    if identity(file, &metadata).iter().any(|(key, present)| differs(key, present)) {
        return void("it is a copy of a file that uflip served");
    }
    let was_closed = stored.get("open") != Some(&"1");
    let is_changed = differs("modified", &modified_text(file_version(&metadata)));
    if differs("size", &metadata.len().to_string()) || (was_closed && is_changed) {
        return void("it was changed since uflip served it");
    }
    DataMarkStatus::Ours
}

/// The mark of a file while it is served; closed on drop.
#[derive(Debug)]
pub(crate) struct DataMark {
    file: File,
}

impl DataMark {
    /// Mark `file` as served, durably, so that it is recognised after a power loss. It is no longer
    /// expendable.
    pub(crate) fn open(file: &File) -> std::io::Result<DataMark> {
        let mark = DataMark { file: file.try_clone()? };
        remove(file);
        mark.write(true);
        file.sync_all()?;
        Ok(mark)
    }

    fn write(&self, open: bool) {
        let Ok(metadata) = self.file.metadata() else { return };
        let mut text = VERSION.to_owned();
        for (key, value) in identity(&self.file, &metadata) {
            text += &format!(" {key}={value}");
        }
        let modified = modified_text(file_version(&metadata));
        let (size, open) = (metadata.len(), u8::from(open));
        text += &format!(" size={size} modified={modified} open={open}");
        write_text(&self.file, DATA_MARK, &text);
    }
}

impl Drop for DataMark {
    fn drop(&mut self) {
        // A later write by another process then has a later time.
        wait_for_next_tick(&self.file);
        self.write(false);
    }
}

const SECTOR: usize = SECTOR_BYTES_MIN as usize;
/// The size of one sample.
const SAMPLE_BYTES: usize = 4096;
/// Samples at equal distances, besides those at 0 and the powers of two, so that an incomplete
/// device state is detected as well as a complete one.
const EVEN_SAMPLES: u64 = 32;
/// The random part of a stamp; the rest follows from it.
const LOW_BITS: u64 = (1 << 48) - 1;

/// A number that identifies the data of one medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SectorStamp(u64);

impl SectorStamp {
    /// Generate a new, unique stamp.
    #[must_use]
    pub fn generate() -> SectorStamp {
        SectorStamp::from_low_bits(unique_number())
    }

    /// Return the stamp with the lower 48 bits `low`.
    fn from_low_bits(low: u64) -> SectorStamp {
        let low = (low & LOW_BITS).max(1);
        SectorStamp(low | random::mix(low) << 48)
    }

    /// Return `word` as a stamp, if it is a valid one.
    fn from_word(word: u64) -> Option<SectorStamp> {
        (word & LOW_BITS != 0 && SectorStamp::from_low_bits(word) == SectorStamp(word))
            .then_some(SectorStamp(word))
    }

    /// Return the text form: 16 hexadecimal digits.
    #[must_use]
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Parse the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<SectorStamp> {
        (text.len() == 16)
            .then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .and_then(SectorStamp::from_word)
    }

    /// Stamp every sector of `bytes`, which are random.
    pub(crate) fn apply(self, bytes: &mut [u8]) {
        for sector in bytes.chunks_exact_mut(SECTOR) {
            let word = self.0 ^ digest(sector);
            sector[..8].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Return whether the medium holds only zeros and data with this stamp. `None` if `stop`
    /// returned true before the end.
    fn covers(self, medium: &File, stop: &dyn Fn() -> bool) -> Option<bool> {
        let mut block = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            if stop() {
                return None;
            }
            let length = match medium.read_at(&mut block, offset) {
                Ok(0) => return Some(true),
                Ok(length) => length,
                Err(_) => return Some(false),
            };
            // A last piece shorter than a sector can only be zeros.
            let is_ours = |sector: &[u8]| {
                sector.iter().all(|byte| *byte == 0)
                    || (sector.len() == SECTOR && decode(sector) == Some(self))
            };
            let whole = if length > SECTOR { length / SECTOR * SECTOR } else { length };
            if !block[..whole].chunks(SECTOR).all(is_ours) {
                return Some(false);
            }
            offset += whole as u64;
        }
    }

    /// Return the stamp of the data on `medium`, of `size` bytes, from about 70 samples.
    #[must_use]
    pub fn find_on(medium: &File, size: u64) -> Option<SectorStamp> {
        let size = size / SAMPLE_BYTES as u64;
        let even =
            (1..=EVEN_SAMPLES).map(|sample| (size / (EVEN_SAMPLES + 1)).saturating_mul(sample));
        let doubling = (0..u64::BITS).map(|bit| 1 << bit);
        let mut samples: Vec<u64> = std::iter::once(0)
            .chain(doubling)
            .chain(even)
            .filter(|sample| *sample < size)
            .collect();
        samples.sort_unstable();
        samples.dedup();
        let mut stamps: BTreeMap<SectorStamp, Vec<u64>> = BTreeMap::new();
        let mut block = [0; SAMPLE_BYTES];
        for sample in samples {
            if medium.read_exact_at(&mut block, sample * SAMPLE_BYTES as u64).is_err() {
                continue;
            }
            for sector in block.chunks_exact(SECTOR) {
                if let Some(stamp) = decode(sector) {
                    let contents = stamps.entry(stamp).or_default();
                    if !contents.contains(&word_at(sector, 8)) {
                        contents.push(word_at(sector, 8));
                    }
                }
            }
        }
        let common = stamps.into_iter().max_by_key(|(_, contents)| contents.len());
        common.filter(|(_, contents)| contents.len() >= 2).map(|(stamp, _)| stamp)
    }
}

/// Return a random number. It is not a secret: it only has to be unique.
#[must_use]
pub fn unique_number() -> u64 {
    let mut bytes = [0u8; 8];
    // A system call that needs no descriptor: the process may have reached its limit.
    // SAFETY: the buffer has the stated size.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled == bytes.len() as isize {
        return u64::from_le_bytes(bytes);
    }
    // Linux before 3.17 does not have the call.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    random::mix(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40)
}

fn word_at(sector: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(sector[at..at + 8].try_into().expect("8 bytes"))
}

/// Return a digest of everything after the first eight bytes of a sector.
fn digest(sector: &[u8]) -> u64 {
    random::hash_words(0, &sector[8..])
}

fn decode(sector: &[u8]) -> Option<SectorStamp> {
    SectorStamp::from_word(word_at(sector, 0) ^ digest(sector))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, fill};

    use super::*;

    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        fill(&mut Xoshiro256PlusPlus::seed_from_u64(seed), &mut noise);
        noise
    }

    fn medium(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("create a temporary file");
        file.write_all(content).expect("write the file");
        file
    }

    fn covers_all(stamp: SectorStamp, content: &[u8]) -> bool {
        stamp.covers(&medium(content), &|| false).expect("not cancelled")
    }

    #[test]
    fn stamp_is_found_only_at_its_sector() {
        let stamp = SectorStamp::generate();
        assert_eq!(SectorStamp::parse(&stamp.text()), Some(stamp));
        let mut content = noise(1 << 20, 1);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), None);
        stamp.apply(&mut content);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), Some(stamp));
        // An incomplete state: the first 16 KiB of a medium of zeros.
        content[16 << 10..].fill(0);
        assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 20), Some(stamp));
    }

    #[test]
    fn repetitive_content_has_no_stamp() {
        let sector = noise(SECTOR, 2);
        for content in [vec![0; 1 << 16], vec![0xff; 1 << 16], sector.repeat(128)] {
            assert_eq!(SectorStamp::find_on(&medium(&content), 1 << 16), None);
        }
        // Even if the repeated sector has a valid stamp: one sector is not enough.
        let mut one = noise(SECTOR, 3);
        SectorStamp::generate().apply(&mut one);
        assert_eq!(SectorStamp::find_on(&medium(&one.repeat(128)), 1 << 16), None);
    }

    #[test]
    fn single_foreign_byte_is_detected() {
        let stamp = SectorStamp::generate();
        let mut content = noise(3 << 20, 4);
        stamp.apply(&mut content);
        assert!(covers_all(stamp, &content));
        content[1 << 20..2 << 20].fill(0);
        assert!(covers_all(stamp, &content));
        assert!(!covers_all(SectorStamp::generate(), &content));
        for at in [0, 9, 100, 511, (1 << 20) + 700, (2 << 20) + 300, (3 << 20) - 1] {
            let mut foreign = content.clone();
            foreign[at] ^= 1;
            assert!(!covers_all(stamp, &foreign), "byte {at}");
        }
        content.extend_from_slice(&[0; 100]);
        assert!(covers_all(stamp, &content), "a tail of zeros");
        content.push(1);
        assert!(!covers_all(stamp, &content), "a tail of other data");
    }

    #[test]
    fn stamped_data_stay_incompressible() {
        let mut content = noise(1 << 20, 5);
        SectorStamp::generate().apply(&mut content);
        // The first eight bytes of all sectors differ, and bytes are as frequent as in noise.
        let mut beginnings: Vec<u64> = content.chunks(SECTOR).map(|s| word_at(s, 0)).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        assert_eq!(beginnings.len(), content.len() / SECTOR);
        let mut counts = [0f64; 256];
        content.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
        let expected = content.len() as f64 / 256.0;
        let chi: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // Chi-square with 255 degrees of freedom: 330.5 is exceeded once in a thousand.
        assert!(chi < 330.5, "chi-square {chi}");
    }
}
