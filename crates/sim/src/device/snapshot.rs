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
//! Schemas: 1, the first that has a number; 2, what FTLs that merge keep for a loss of power; 3, planes that work
//! together, and flash and timeline that open-channel devices share.
//! `tests/data/schema-N.txt` has the types of each.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twox_hash::XxHash3_64;
use uflip_core::{DeviceInfo, Error, ErrorKind, Result};

use crate::collections::huge;
use crate::config::Profile;
use crate::device::SimDevice;

/// Which simulators can read a file: those whose devices are made of the same types. To be raised with every
/// change of one that is part of a device, which `tests/schema.rs` finds.
pub const SCHEMA: u32 = 3;
/// Which simulator it is: two with the same text do the same, to the nanosecond.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("UFLIP_SIM_FINGERPRINT"));

const MAGIC: &[u8; 8] = b"uflipsim";
const FIXED_BYTES: u64 = 40;
/// After so many bytes somebody may have lost interest.
const ASKED_EVERY: u64 = 4 << 20;
/// A state takes about as much as the books in memory, and something for what is under way.
const STATE_PER_MEMORY: u64 = 4;
const STATE_LEAST_BYTES: u64 = 64 << 20;
/// A header is a page or two of text; a longer one is none.
const HEADER_BYTES_MAX: u64 = 1 << 20;

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

impl SimDevice {
    /// Write the device to the new file `path`: whole and synced, or not at all.
    ///
    /// # Errors
    /// The file exists, or cannot be written (a full file system above all).
    pub fn save(&self, path: &Path) -> Result<()> {
        self.save_unless(path, || false)
    }

    /// The same, as long as `is_stopped` says that it is still wanted.
    ///
    /// # Errors
    /// As [`SimDevice::save`]; [`ErrorKind::Interrupted`] where it was stopped, and nothing is left of it.
    pub fn save_unless(&self, path: &Path, is_stopped: impl Fn() -> bool) -> Result<()> {
        if path.exists() {
            return Err(exists(path));
        }
        let temporary = beside(path);
        let failed = |error: &std::io::Error| {
            Error::os("The snapshot cannot be written", path.display().to_string(), error)
                .action("check that the folder exists and its file system is not full")
        };
        let options = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = options.map_err(|error| failed(&error))?;
        let written = self.write_to(&file, &is_stopped).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| rename_new(&temporary, path));
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

    fn write_to(&self, file: &File, is_stopped: &dyn Fn() -> bool) -> std::io::Result<()> {
        let header = serde_json::to_vec(&self.header()).expect("plain data");
        let mut out = Summed::new(BufWriter::with_capacity(1 << 20, file), is_stopped);
        out.inner.write_all(&[0; FIXED_BYTES as usize])?;
        out.inner.write_all(&header)?;
        postcard::to_io(self, &mut out).map_err(std::io::Error::other)?;
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

    /// Read the device that [`SimDevice::save`] wrote to `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Results`]: missing, not a snapshot, of another version, truncated, damaged; or a
    /// device that does not fit into memory.
    pub fn restore(path: &Path) -> Result<SimDevice> {
        let mut file = Opened::new(path)?;
        let header = file.header()?;
        let profile = file.profile(header.profile)?;
        if file.state.bytes > STATE_PER_MEMORY * profile.memory_bytes() + STATE_LEAST_BYTES {
            return Err(file.damaged("a state that is larger than its device"));
        }
        let state = file.state()?;
        let device: SimDevice =
            postcard::from_bytes(&state).map_err(|error| file.damaged(&error.to_string()))?;
        if !device.is_of(&profile) {
            return Err(file.damaged("a state of another device than the one that is described"));
        }
        Ok(device.described(SimDevice::inspect(&header.name, &profile), header.history))
    }
}

/// What is known of the device in the file `path`; its state is not read. `details` say under
/// `snapshot` which state it is: two files with the same text there hold equal devices.
///
/// # Errors
/// As [`SimDevice::restore`].
pub fn inspect(path: &Path) -> Result<DeviceInfo> {
    let mut file = Opened::new(path)?;
    let header = file.header()?;
    let profile = file.profile(header.profile)?;
    let mut info = SimDevice::inspect(&header.name, &profile);
    info.details.insert("history".into(), header.history);
    info.details.insert("snapshot".into(), format!("{:016x}", file.state.hash).into());
    Ok(info)
}

/// A file that begins like a snapshot, all numbers of its beginning read.
struct Opened {
    path: PathBuf,
    file: File,
    header: Part,
    state: Part,
}

#[derive(Clone, Copy)]
struct Part {
    bytes: u64,
    hash: u64,
}

impl Opened {
    fn new(path: &Path) -> Result<Opened> {
        let unreadable = |error: &std::io::Error| {
            Error::new(ErrorKind::Results, "The snapshot cannot be read")
                .at(path.display().to_string())
                .got(error.to_string())
                .action("check its name; `uflip pattern DEVICE ... --save FILE` makes one")
        };
        // A pipe or a terminal would let everybody wait.
        let file = std::fs::metadata(path)
            .and_then(|found| if found.is_file() { Ok(()) } else { Err(not_regular()) })
            .and_then(|()| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path))
            .map_err(|error| unreadable(&error))?;
        let found = file.metadata().map_err(|error| unreadable(&error))?;
        if !found.is_file() {
            return Err(unreadable(&not_regular()));
        }
        let length = found.len();
        let none = Part { bytes: 0, hash: 0 };
        let mut opened = Opened { path: path.to_owned(), file, header: none, state: none };
        let mut fixed = [0; FIXED_BYTES as usize];
        let begun = opened.file.read_exact(&mut fixed);
        if begun.is_err() || &fixed[..8] != MAGIC {
            return Err(Error::new(ErrorKind::Results, "The file is not a snapshot of a device")
                .at(opened.place())
                .allowed("a file that `--save` or Device.save wrote")
                .action("check its name"));
        }
        let number = |at: usize| u64::from_le_bytes(fixed[at..at + 8].try_into().expect("8 bytes"));
        opened.header = Part { bytes: number(8), hash: number(16) };
        opened.state = Part { bytes: number(24), hash: number(32) };
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

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn damaged(&self, got: &str) -> Error {
        Error::new(ErrorKind::Results, "The snapshot is damaged")
            .at(self.place())
            .got(got)
            .action("make it again; nothing of it can be relied on")
    }

    fn read(&mut self, at: u64, part: Part) -> Result<Vec<u8>> {
        // A file with holes may claim any size.
        let room = uflip_core::available_bytes();
        if part.bytes > room {
            let got = format!("{} bytes to be read, {room} bytes of memory", part.bytes);
            return Err(self.damaged(&got));
        }
        let mut bytes = huge::reserved(part.bytes as usize);
        let sought = self.file.seek(SeekFrom::Start(at));
        let mut file = (&self.file).take(part.bytes);
        let read = sought.and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(|error| self.damaged(&error.to_string()))?;
        if XxHash3_64::oneshot(&bytes) != part.hash {
            return Err(self.damaged("bytes that are not those that were written"));
        }
        Ok(bytes)
    }

    fn header(&mut self) -> Result<Header> {
        let bytes = self.read(FIXED_BYTES, self.header)?;
        let header: Header =
            serde_json::from_slice(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
        if header.schema != SCHEMA {
            return Err(Error::new(ErrorKind::Results, "The snapshot is of another version")
                .at(self.place())
                .got(format!("schema {}, written by uflip {}", header.schema, header.version))
                .allowed(format!("schema {SCHEMA}, as uflip {VERSION} writes it"))
                .action("make it again with this version, or use the one that made it"));
        }
        Ok(header)
    }

    /// The profile of a header. It has the right sum, but anybody can make one: it is checked like any.
    fn profile(&self, profile: Value) -> Result<Profile> {
        let profile: Profile =
            serde_json::from_value(profile).map_err(|error| self.damaged(&error.to_string()))?;
        profile.check(&self.place()).map_err(|error| self.damaged(&error.to_string()))?;
        Ok(profile)
    }

    fn state(&mut self) -> Result<Vec<u8>> {
        self.read(FIXED_BYTES + self.header.bytes, self.state)
    }
}

fn not_regular() -> std::io::Error {
    std::io::Error::other("not a regular file")
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

/// Counts and sums what is written through it.
struct Summed<'a, W> {
    inner: W,
    is_stopped: &'a dyn Fn() -> bool,
    /// Bytes from which on that is asked again.
    asked_at: u64,
    bytes: u64,
    hash: XxHash3_64,
}

impl<'a, W> Summed<'a, W> {
    fn new(inner: W, is_stopped: &'a dyn Fn() -> bool) -> Summed<'a, W> {
        Summed { inner, is_stopped, asked_at: 0, bytes: 0, hash: XxHash3_64::new() }
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
        let written = self.inner.write(bytes)?;
        std::hash::Hasher::write(&mut self.hash, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
