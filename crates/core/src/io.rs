//! One I/O as a host sees it.

use crate::Bytes;

/// uFLIP's `Mode`: read or write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The device hands data to the host.
    Read,
    /// The host hands data to the device.
    Write,
}

/// One request to a block device: `size` bytes at `offset`, read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Io {
    /// Where the I/O begins, from the beginning of the device; a whole number of sectors.
    pub offset: Bytes,
    /// How long it is; a whole number of sectors, at least one.
    pub size: Bytes,
    /// Read or write.
    pub mode: Mode,
    /// Of a write: the stream that the host says it belongs to, for a device that keeps several apart; 0
    /// where the host says nothing.
    pub stream: u8,
}
