//! A simulated device on disk: its whole state, in a file that says what it is.
//!
//! ```text
//!  0   "uflipsim"                 8 bytes
//!  8   length of the header       u64, little-endian like all that follow
//! 16   XXH3 of the header         u64
//! 24   length of the state        u64
//! 32   XXH3 of the state          u64
//! 40   header: JSON               schema, version, name, profile, history
//!      state: postcard            map, blocks, NAND, policies, cache, clocks, generators, counters
//! ```
//!
//! Every part of a device derives its form on disk, so that none can be forgotten; large arrays are
//! bytes as they lie in memory. What the state is made of has a number, [`SCHEMA`]: a file is read by every
//! simulator with the same one, and says to another which version wrote it. Whoever continues a restored
//! device gets what the saved one would have given where the code is the same; [`VERSION`] has a fingerprint
//! of that. Everything is checked before anything is built.
//!
//! Block devices and open-channel devices are kept alike; the profile in the header says which of them it is.
//!
//! Schemas: 1, the first that has a number; 2, what FTLs that merge keep for a loss of power; 3, planes that work
//! together, and flash and timeline that open-channel devices share; 4, lists of defects that are found again after a
//! loss of power, and open-channel devices; 5, wear levelling beneath FTLs that merge; 6, rows of pages in plans;
//! 8, parts of units that wait for each other, and counters that outlive a loss of power; 10, what dies did lately,
//! which explains waits for the write cache; 11, open blocks for the relocated pages of each stream.
//! `tests/data/schema-N.txt` has the types of each.

mod opened;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use twox_hash::XxHash3_64;
use uflip_core::{Bytes, Device, DeviceInfo, DeviceKind, Error, ErrorKind, Result};

pub(crate) use opened::Opened;

/// Which simulators can read a file: those whose devices are made of the same types. To be raised with every
/// change of one that is part of a device, which `tests/schema.rs` finds.
pub const SCHEMA: u32 = 11;
/// Which simulator it is: two with the same text do the same, to the nanosecond.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("UFLIP_SIM_FINGERPRINT"));

const MAGIC: &[u8; 8] = b"uflipsim";
const FIXED_BYTES: u64 = 40;
/// After so many bytes somebody may have lost interest.
const ASKED_EVERY: u64 = 4 << 20;
/// A state takes about as much as the books in memory, and something for what is under way.
const STATE_PER_MEMORY: u64 = 4;
const STATE_LEAST_BYTES: u64 = 64 << 20;

/// What a file says about the device in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Its [`SCHEMA`]; files that have none are older than the first.
    #[serde(default)]
    pub schema: u32,
    /// The [`VERSION`] that wrote it.
    pub version: String,
    /// What the device is called.
    pub name: String,
    /// What it is made of, overrides included.
    pub profile: Value,
    /// What it went through before it was handed over.
    pub history: Value,
}

impl Header {
    fn of(info: &DeviceInfo) -> Header {
        let detail = |key: &str| info.details.get(key).cloned().unwrap_or_default();
        Header {
            schema: SCHEMA,
            version: VERSION.into(),
            name: info.model.clone(),
            profile: detail("profile"),
            history: detail("history"),
        }
    }

    /// What the device is to its host; a block device need not say so.
    pub(crate) fn interface(&self) -> &str {
        self.profile.get("interface").and_then(Value::as_str).unwrap_or("block")
    }
}

/// The description of a device whose state was read and nothing else.
pub(crate) fn not_described() -> DeviceInfo {
    DeviceInfo {
        url: String::new(),
        kind: DeviceKind::Sim,
        simulated: true,
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: Bytes(0),
        sector_bytes: Bytes(0),
        clock: "virtual",
        io: "virtual".into(),
        data: "none",
        details: Map::new(),
    }
}

/// A device that can be written to a file with its whole state, and read again.
pub trait Snapshot: Device + Serialize + DeserializeOwned {
    /// What it is made of.
    type Profile: DeserializeOwned;
    /// How its profile names what it is to a host.
    const INTERFACE: &str;

    /// Whether `profile` makes a device.
    ///
    /// # Errors
    /// What is wrong with it, at `place`.
    fn check(profile: &Self::Profile, place: &str) -> Result<()>;

    /// What the device of `profile` takes in memory [bytes].
    fn memory_bytes(profile: &Self::Profile) -> u64;

    /// What is known of the device `name` of `profile`, without making it.
    fn description(name: &str, profile: &Self::Profile) -> DeviceInfo;

    /// Whether this is a device of `profile`, as far as its shape says.
    fn is_of(&self, profile: &Self::Profile) -> bool;

    /// The same device, of which only the state was read, with what is known of it.
    #[must_use]
    fn described(self, info: DeviceInfo) -> Self;

    /// Write the device to the new file `path`: whole and synced, or not at all.
    ///
    /// # Errors
    /// The file exists, or cannot be written (a full file system above all).
    fn save(&self, path: &Path) -> Result<()> {
        self.save_unless(path, &|| false)
    }

    /// The same, unless `is_stopped` says that it is not wanted any more.
    ///
    /// # Errors
    /// As [`Snapshot::save`]; [`ErrorKind::Interrupted`] where it was stopped, and nothing is left of it.
    fn save_unless(&self, path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<()>;

    /// Read the device that [`Snapshot::save`] wrote to `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Results`]: missing, not a snapshot, of another version, truncated, damaged; or a
    /// device that does not fit into memory. [`ErrorKind::Usage`]: a device with another interface.
    fn restore(path: &Path) -> Result<Self>;
}

// What follows is of every kind of device; each calls it once, in this crate: what reads and writes every type of
// a device is not compiled again by whoever saves one.

/// [`Snapshot::save_unless`].
pub(crate) fn save_unless<D: Snapshot>(
    device: &D,
    path: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<()> {
    if path.exists() {
        return Err(exists(path));
    }
    let temporary = beside(path);
    let failed = |error: &std::io::Error| {
        Error::write_failed("The snapshot cannot be written", path.display().to_string(), error)
    };
    let options = OpenOptions::new().write(true).create_new(true).open(&temporary);
    let file = options.map_err(|error| failed(&error))?;
    let written = write_to(&file, device, is_stopped).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| rename_new(&temporary, path)).and_then(|()| sync_name(path));
    placed.map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            exists(path)
        } else if is_stopped() {
            Error::new(ErrorKind::Interrupted, "Saving the device was interrupted")
                .at(path.display().to_string())
        } else {
            failed(&error)
        }
    })
}

/// [`Snapshot::restore`].
pub(crate) fn restore<D: Snapshot>(path: &Path) -> Result<D> {
    let mut file = Opened::new(path)?;
    let header = file.header()?;
    let (info, profile) = file.description::<D>(&header)?;
    if file.state_bytes() > STATE_PER_MEMORY * D::memory_bytes(&profile) + STATE_LEAST_BYTES {
        return Err(file.damaged("a state that is larger than its device"));
    }
    let state = file.state()?;
    let device: D =
        postcard::from_bytes(&state).map_err(|error| file.damaged(&error.to_string()))?;
    if !device.is_of(&profile) {
        return Err(file.damaged("a state of another device than the one that is described"));
    }
    Ok(device.described(info))
}

fn write_to<D: Snapshot>(
    file: &File,
    device: &D,
    is_stopped: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let header = serde_json::to_vec(&Header::of(device.info())).expect("plain data");
    let mut out = Summed::new(BufWriter::with_capacity(1 << 20, file), is_stopped);
    out.inner.write_all(&[0; FIXED_BYTES as usize])?;
    out.inner.write_all(&header)?;
    let serialized = postcard::to_io(device, &mut out).map(|_| ());
    serialized
        .map_err(|error| out.failed.take().unwrap_or_else(|| std::io::Error::other(error)))?;
    let fixed = [
        header.len() as u64,
        XxHash3_64::oneshot(&header),
        out.bytes,
        std::hash::Hasher::finish(&out.hash),
    ];
    let mut file = out.inner.into_inner()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(MAGIC)?;
    fixed.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))
}

fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Results, "The file exists already; nothing is ever overwritten")
        .at(path.display().to_string())
        .action("choose another name, or move the file away")
}

/// A name of our own beside `path`: what is half written never bears the name itself.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

/// Give a file the name `to`, which must be free.
fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    // A second name is only ever given where there is none yet; a rename would replace. Where a
    // file system knows no second names, a look beforehand must do.
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists || to.exists() => {
            Err(std::io::ErrorKind::AlreadyExists.into())
        }
        Err(_) => std::fs::rename(from, to),
    }
}

/// Make the name of a file durable: it is lost with the power otherwise, whatever of the file is on disk.
fn sync_name(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Counts and sums what is written through it.
struct Summed<'a, W> {
    inner: W,
    is_stopped: &'a dyn Fn() -> bool,
    /// Bytes from which on that is asked again.
    asked_at: u64,
    bytes: u64,
    hash: XxHash3_64,
    /// Why the last piece could not be written, which a serializer does not tell.
    failed: Option<std::io::Error>,
}

impl<'a, W> Summed<'a, W> {
    fn new(inner: W, is_stopped: &'a dyn Fn() -> bool) -> Summed<'a, W> {
        Summed { inner, is_stopped, asked_at: 0, bytes: 0, hash: XxHash3_64::new(), failed: None }
    }

    /// Keep why something failed, and say its kind.
    fn noted<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes >= self.asked_at {
            self.asked_at = self.bytes + ASKED_EVERY;
            if (self.is_stopped)() {
                return Err(std::io::Error::other("nobody wants it any more"));
            }
        }
        // An array may be as large as the device: a piece of it at a time.
        let bytes = &bytes[..bytes.len().min(ASKED_EVERY as usize)];
        let written = self.inner.write(bytes);
        let written = self.noted(written)?;
        std::hash::Hasher::write(&mut self.hash, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.inner.flush();
        self.noted(flushed)
    }
}
