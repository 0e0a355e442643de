//! One I/O as a host sees it.

use crate::Bytes;

/// uFLIP's `Mode`: read or write; and trim, which is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The device hands data to the host.
    Read,
    /// The host hands data to the device.
    Write,
    /// The host does not need what is there any more (TRIM, deallocate, discard): no data moves.
    Trim,
}

impl Mode {
    /// Every mode, in the order of their numbers.
    pub const ALL: [Mode; 3] = [Mode::Read, Mode::Write, Mode::Trim];

    /// What an I/O does, in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["read", "write", "trim"][usize::from(self.number())]
    }

    /// What stands for it in a column: 0 read, 1 write, 2 trim.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The mode of that number.
    #[must_use]
    pub fn of(number: u64) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| u64::from(mode.number()) == number)
    }
}

/// One request to a block device: `size` bytes at `offset`, read, written or deallocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Io {
    /// Where the I/O begins, from the beginning of the device; a whole number of sectors.
    pub offset: Bytes,
    /// How long it is; a whole number of sectors, at least one.
    pub size: Bytes,
    /// Read, write or trim.
    pub mode: Mode,
    /// Of a write: the stream that the host says it belongs to, for a device that keeps several apart; 0
    /// where the host says nothing.
    pub stream: u8,
}
