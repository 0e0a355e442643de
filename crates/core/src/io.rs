//! One I/O as the host sees it.

use std::fmt;

use crate::Bytes;

/// The mode of an I/O: uFLIP's read and write, and in addition trim and the commands of zoned
/// devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The device transfers data to the host.
    Read,
    /// The host transfers data to the device.
    Write,
    /// The host no longer needs the data (TRIM, deallocate, discard): no data moves.
    Trim,
    /// The host transfers data to a zone, which stores it at its write pointer.
    Append,
    /// The zone becomes empty.
    Reset,
    /// The zone becomes full.
    Finish,
    /// The zone stays open until it is closed or full.
    Open,
    /// The zone is closed: no writes for a while.
    Close,
}

impl Mode {
    /// Every mode, in the order of its number.
    pub const ALL: [Mode; 8] = [
        Mode::Read,
        Mode::Write,
        Mode::Trim,
        Mode::Append,
        Mode::Reset,
        Mode::Finish,
        Mode::Open,
        Mode::Close,
    ];

    /// The names, one word each, in the order of the numbers.
    pub const NAMES: [&'static str; 8] =
        ["read", "write", "trim", "append", "reset", "finish", "open", "close"];

    /// Return the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Mode::NAMES[usize::from(self.number())]
    }

    /// Return whether the host transfers data to the device.
    #[must_use]
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Mode::Write | Mode::Append)
    }

    /// Return whether data moves.
    #[must_use]
    #[inline]
    pub fn moves_data(self) -> bool {
        matches!(self, Mode::Read | Mode::Write | Mode::Append)
    }

    /// Return whether only a zoned device supports it.
    #[must_use]
    #[inline]
    pub fn requires_zones(self) -> bool {
        self as u8 >= Mode::Append as u8
    }

    /// Return whether it changes the state of a zone and moves no data.
    #[must_use]
    #[inline]
    pub fn manages_zones(self) -> bool {
        self as u8 >= Mode::Reset as u8
    }

    /// Return its number in a column: 0 read, 1 write, 2 trim, 3 append, 4 reset, 5 finish, 6 open,
    /// 7 close.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Return the mode with that number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| u64::from(mode.number()) == number)
    }
}

/// One request to a block device: `size` bytes at `offset` to read, write or deallocate; or a
/// command to the zone that contains `offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Io {
    /// The first byte, counted from the beginning of the device; a whole number of sectors.
    pub offset: Bytes,
    /// The length; a whole number of sectors, at least one.
    pub size: Bytes,
    /// The operation.
    pub mode: Mode,
    /// The write stream that the host names, for a device with several; 0 if it names no stream.
    pub stream: u8,
}

/// The subject of an error message: "A read of 4 KiB at byte 0".
impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.mode.name();
        let article = if name.starts_with(['a', 'o']) { "An" } else { "A" };
        write!(f, "{article} {name} of {} at byte {}", self.size, self.offset.0)
    }
}
