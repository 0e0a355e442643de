//! A snapshot file that is being read.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use twox_hash::XxHash3_64;
use uflip_core::{DeviceInfo, Error, ErrorKind, Result};

use super::{FIXED_BYTES, Header, MAGIC, SCHEMA, Snapshot, VERSION};
use crate::collections::huge;
use crate::config::overrides::check_interface;

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

    pub(super) fn damaged(&self, got: &str) -> Error {
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

    pub(super) fn state_bytes(&self) -> u64 {
        self.state.bytes
    }

    pub(super) fn state(&mut self) -> Result<Vec<u8>> {
        self.read(FIXED_BYTES + self.header.bytes, self.state)
    }
}

fn not_regular() -> std::io::Error {
    std::io::Error::other("not a regular file")
}
