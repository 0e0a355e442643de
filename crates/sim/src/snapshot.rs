//! Snapshots: the whole state of a simulated device in a self-describing file.
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
//! Every part of a device derives its serialized form, so that none can be forgotten; large arrays
//! are stored as raw bytes. The set of types has a number, [`SCHEMA`], and `tests/data/schema.txt`
//! lists them: every simulator with the same schema reads the file; another one reports the version
//! that wrote it. A restored device
//! continues exactly as the saved one would, if the code is the same; [`VERSION`] contains a
//! fingerprint of the code. Everything is checked before anything is built.
//!
//! Block devices and open-channel devices use the same format; the profile in the header identifies
//! the kind.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use twox_hash::XxHash3_64;
use uflip_core::{Bytes, Device, DeviceInfo, DeviceKind, Error, ErrorKind, Result};

use crate::collections::huge;
use crate::config::overrides::check_interface;

/// The schema: simulators with the same set of types can read each other's files. Increase it with
/// the first change of a type after a release; `tests/schema/mod.rs` finds these.
pub const SCHEMA: u32 = 1;
/// The version of the simulator: equal texts mean equal results, to the nanosecond.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("UFLIP_SIM_FINGERPRINT"));

const MAGIC: &[u8; 8] = b"uflipsim";
const FIXED_BYTES: u64 = 40;
/// Bytes written between two checks for cancellation.
const STOP_CHECK_BYTES: u64 = 4 << 20;
/// A state is about as large as the tables in memory, plus the work in progress.
const STATE_PER_MEMORY: u64 = 4;
const MIN_STATE_BYTES: u64 = 64 << 20;

/// The header of a snapshot file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Its [`SCHEMA`].
    pub schema: u32,
    /// The [`VERSION`] that wrote it.
    pub version: String,
    /// The name of the device.
    pub name: String,
    /// The profile, including overrides.
    pub profile: Value,
    /// The history before it was delivered.
    pub history: Value,
}

impl Header {
    fn describe(info: &DeviceInfo) -> Header {
        let detail = |key: &str| info.details.get(key).cloned().unwrap_or_default();
        Header {
            schema: SCHEMA,
            version: VERSION.into(),
            name: info.model.clone(),
            profile: detail("profile"),
            history: detail("history"),
        }
    }

    /// Return the interface of the device; block devices may omit it.
    pub(crate) fn interface(&self) -> &str {
        self.profile.get("interface").and_then(Value::as_str).unwrap_or("block")
    }
}

/// Return a placeholder description of a device of which only the state was read.
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

/// A device that can be saved to a file with its whole state, and restored.
pub trait Snapshot: Device + Serialize + DeserializeOwned {
    /// The type of its profile.
    type Profile: DeserializeOwned;
    /// The name of its interface in profiles.
    const INTERFACE: &str;

    /// Check `profile`.
    ///
    /// # Errors
    /// The first fault, reported at `location`.
    fn check(profile: &Self::Profile, location: &str) -> Result<()>;

    /// Return the memory of the device of `profile` [bytes].
    fn memory_bytes(profile: &Self::Profile) -> u64;

    /// Return the description of the device `name` of `profile`, without creating it.
    fn description(name: &str, profile: &Self::Profile) -> DeviceInfo;

    /// Return whether the shape of this device matches `profile`.
    fn matches_profile(&self, profile: &Self::Profile) -> bool;

    /// Set the description of a device of which only the state was read.
    #[must_use]
    fn with_description(self, info: DeviceInfo) -> Self;

    /// Write the device to the new file `path`: complete and synced, or not at all.
    ///
    /// # Errors
    /// The file exists or cannot be written (for example, the file system is full).
    fn save(&self, path: &Path) -> Result<()> {
        self.save_unless(path, &|| false)
    }

    /// Like [`Snapshot::save`], but stop as soon as `is_stopped` returns true.
    ///
    /// # Errors
    /// As [`Snapshot::save`]; [`ErrorKind::Interrupted`] if it was stopped, which leaves no file.
    fn save_unless(&self, path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<()>;

    /// Read the device that [`Snapshot::save`] wrote to `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Results`]: missing, not a snapshot, of another version, truncated, damaged; or
    /// a device that does not fit into memory. [`ErrorKind::Usage`]: a device with another
    /// interface.
    fn restore(path: &Path) -> Result<Self>;
}

// Generic over devices, but instantiated in this crate only: the serialization code is not compiled
// again in crates that save a device.

/// [`Snapshot::save_unless`].
pub(crate) fn save_unless<D: Snapshot>(
    device: &D,
    path: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<()> {
    if path.exists() {
        return Err(exists(path));
    }
    let temporary = temporary_path(path);
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
    let mut file = SnapshotFile::new(path)?;
    let header = file.header()?;
    let (info, profile) = file.description::<D>(&header)?;
    if file.state_bytes() > STATE_PER_MEMORY * D::memory_bytes(&profile) + MIN_STATE_BYTES {
        return Err(file.damaged("a state that is larger than its device"));
    }
    let state = file.state()?;
    let device: D =
        postcard::from_bytes(&state).map_err(|error| file.damaged(&error.to_string()))?;
    if !device.matches_profile(&profile) {
        return Err(file.damaged("a state that does not match the described device"));
    }
    Ok(device.with_description(info))
}

fn write_to<D: Snapshot>(
    file: &File,
    device: &D,
    is_stopped: &dyn Fn() -> bool,
) -> std::io::Result<()> {
    let header = serde_json::to_vec(&Header::describe(device.info())).expect("serializable");
    let mut out = HashingWriter::new(BufWriter::with_capacity(1 << 20, file), is_stopped);
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
    Error::new(ErrorKind::Results, "The file exists; uflip never overwrites files")
        .at(path.display().to_string())
        .action("choose another name, or move the file away")
}

/// Return a temporary name beside `path`: an incomplete file never has the final name.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

/// Rename a file to `to`, which must not exist.
fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    // A hard link fails if the name exists; a rename would replace it. File systems without hard
    // links need a check beforehand.
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists || to.exists() => {
            Err(std::io::ErrorKind::AlreadyExists.into())
        }
        Err(_) => std::fs::rename(from, to),
    }
}

/// Sync the directory entry of a file: otherwise a power loss may lose the name.
fn sync_name(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A writer that counts and hashes its data.
struct HashingWriter<'a, W> {
    inner: W,
    is_stopped: &'a dyn Fn() -> bool,
    /// Number of bytes at which to check for cancellation next.
    asked_at: u64,
    bytes: u64,
    hash: XxHash3_64,
    /// The error of the last write, which a serializer does not pass on.
    failed: Option<std::io::Error>,
}

impl<'a, W> HashingWriter<'a, W> {
    fn new(inner: W, is_stopped: &'a dyn Fn() -> bool) -> HashingWriter<'a, W> {
        HashingWriter {
            inner,
            is_stopped,
            asked_at: 0,
            bytes: 0,
            hash: XxHash3_64::new(),
            failed: None,
        }
    }

    /// Store an error, and return its kind.
    fn store_error<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for HashingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes >= self.asked_at {
            self.asked_at = self.bytes + STOP_CHECK_BYTES;
            if (self.is_stopped)() {
                return Err(std::io::Error::other("saving was cancelled"));
            }
        }
        // An array may be as large as the device: write it in pieces.
        let bytes = &bytes[..bytes.len().min(STOP_CHECK_BYTES as usize)];
        let written = self.inner.write(bytes);
        let written = self.store_error(written)?;
        std::hash::Hasher::write(&mut self.hash, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.inner.flush();
        self.store_error(flushed)
    }
}

// A snapshot file that is being read.

/// A valid header is a page or two of text.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// A file that begins like a snapshot; the fixed part has been read.
pub(crate) struct SnapshotFile {
    path: PathBuf,
    file: File,
    header: SnapshotSection,
    state: SnapshotSection,
}

#[derive(Clone, Copy)]
struct SnapshotSection {
    bytes: u64,
    hash: u64,
}

impl SnapshotFile {
    pub(crate) fn new(path: &Path) -> Result<SnapshotFile> {
        let unreadable = |error: &std::io::Error| {
            Error::new(ErrorKind::Results, "The snapshot cannot be read")
                .at(path.display().to_string())
                .got(error.to_string())
                .action("check its name; `uflip pattern DEVICE ... --save FILE` makes one")
        };
        // A pipe or a terminal would block.
        let file = std::fs::metadata(path)
            .and_then(|metadata| if metadata.is_file() { Ok(()) } else { Err(not_regular()) })
            .and_then(|()| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path))
            .map_err(|error| unreadable(&error))?;
        let metadata = file.metadata().map_err(|error| unreadable(&error))?;
        if !metadata.is_file() {
            return Err(unreadable(&not_regular()));
        }
        let length = metadata.len();
        let none = SnapshotSection { bytes: 0, hash: 0 };
        let mut opened = SnapshotFile { path: path.to_owned(), file, header: none, state: none };
        let mut fixed = [0; FIXED_BYTES as usize];
        let read = opened.file.read_exact(&mut fixed);
        if read.is_err() || &fixed[..8] != MAGIC {
            return Err(Error::new(ErrorKind::Results, "The file is not a snapshot of a device")
                .at(opened.location())
                .allowed("a file that `--save` or Device.save wrote")
                .action("check its name"));
        }
        let number = |at: usize| u64::from_le_bytes(fixed[at..at + 8].try_into().expect("8 bytes"));
        opened.header = SnapshotSection { bytes: number(8), hash: number(16) };
        opened.state = SnapshotSection { bytes: number(24), hash: number(32) };
        if opened.header.bytes > HEADER_BYTES_MAX {
            return Err(opened.damaged("a header without an end"));
        }
        let whole = FIXED_BYTES.saturating_add(opened.header.bytes);
        let whole = whole.saturating_add(opened.state.bytes);
        if length != whole {
            return Err(opened.damaged(&format!("{length} bytes instead of {whole}")));
        }
        Ok(opened)
    }

    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn damaged(&self, got: &str) -> Error {
        Error::new(ErrorKind::Results, "The snapshot is damaged")
            .at(self.location())
            .got(got)
            .action("make it again; a damaged snapshot cannot be used")
    }

    fn read(&mut self, at: u64, part: SnapshotSection) -> Result<Vec<u8>> {
        // A sparse file may claim any size.
        let available = uflip_core::available_bytes();
        if part.bytes > available {
            let got = format!("{} bytes to be read, {available} bytes of memory", part.bytes);
            return Err(self.damaged(&got));
        }
        let mut bytes = huge::reserved(part.bytes as usize);
        let seek = self.file.seek(SeekFrom::Start(at));
        let mut file = (&self.file).take(part.bytes);
        let read = seek.and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(|error| self.damaged(&error.to_string()))?;
        if XxHash3_64::oneshot(&bytes) != part.hash {
            return Err(self.damaged("bytes that do not match their checksum"));
        }
        Ok(bytes)
    }

    pub(crate) fn header(&mut self) -> Result<Header> {
        let bytes = self.read(FIXED_BYTES, self.header)?;
        let header: Header =
            serde_json::from_slice(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
        if !matches!(header.history, Value::Null | Value::Object(_)) {
            return Err(self.damaged("a history that is not a table"));
        }
        if header.schema != SCHEMA {
            return Err(Error::new(ErrorKind::Results, "The snapshot is of another version")
                .at(self.location())
                .got(format!("schema {}, written by uflip {}", header.schema, header.version))
                .allowed(format!("schema {SCHEMA}, as uflip {VERSION} writes it"))
                .action("make it again with this version, or use the one that made it"));
        }
        Ok(header)
    }

    /// Return the description of a `D` from the header, and its profile. The checksum is correct,
    /// but anybody can compute one: the profile is checked like any other.
    pub(crate) fn description<D: Snapshot>(
        &self,
        header: &Header,
    ) -> Result<(DeviceInfo, D::Profile)> {
        check_interface(header.interface(), D::INTERFACE, &self.location())?;
        let profile: D::Profile = serde_json::from_value(header.profile.clone())
            .map_err(|error| self.damaged(&error.to_string()))?;
        D::check(&profile, &self.location()).map_err(|error| self.damaged(&error.to_string()))?;
        let mut info = D::description(&header.name, &profile);
        info.details.insert("history".into(), header.history.clone());
        Ok((info, profile))
    }

    /// Like `description`, with a hash of the state: equal hashes mean equal devices.
    pub(crate) fn named<D: Snapshot>(&self, header: &Header) -> Result<DeviceInfo> {
        let (mut info, _) = self.description::<D>(header)?;
        info.details.insert("snapshot".into(), format!("{:016x}", self.state.hash).into());
        Ok(info)
    }

    fn state_bytes(&self) -> u64 {
        self.state.bytes
    }

    fn state(&mut self) -> Result<Vec<u8>> {
        self.read(FIXED_BYTES + self.header.bytes, self.state)
    }
}

fn not_regular() -> std::io::Error {
    std::io::Error::other("not a regular file")
}
