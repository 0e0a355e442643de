//! One I/O as a host sees it.

use std::fmt;

use crate::Bytes;

/// uFLIP's `Mode`: read or write; and ours: trim, and the commands of zoned devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The device hands data to the host.
    Read,
    /// The host hands data to the device.
    Write,
    /// The host does not need what is there any more (TRIM, deallocate, discard): no data moves.
    Trim,
    /// The host hands data to a zone, which puts it where it has been written up to.
    Append,
    /// The zone is emptied.
    Reset,
    /// The zone counts as full.
    Finish,
    /// The zone is kept open until it is closed, or full.
    Open,
    /// The zone is not written to for a while.
    Close,
}

impl Mode {
    /// Every mode, in the order of their numbers.
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

    /// What an I/O does, in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 8] =
            ["read", "write", "trim", "append", "reset", "finish", "open", "close"];
        NAMES[usize::from(self.number())]
    }

    /// Whether the host hands data over.
    #[must_use]
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Mode::Write | Mode::Append)
    }

    /// Whether data moves.
    #[must_use]
    #[inline]
    pub fn moves_data(self) -> bool {
        matches!(self, Mode::Read | Mode::Write | Mode::Append)
    }

    /// Whether only a device with zones can do it.
    #[must_use]
    #[inline]
    pub fn is_of_zones(self) -> bool {
        self as u8 >= Mode::Append as u8
    }

    /// Whether it changes the state of a zone and moves no data.
    #[must_use]
    #[inline]
    pub fn manages_zones(self) -> bool {
        self as u8 >= Mode::Reset as u8
    }

    /// What stands for it in a column: 0 read, 1 write, 2 trim, 3 append, 4 reset, 5 finish, 6 open, 7 close.
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

/// One request to a block device: `size` bytes at `offset`, read, written or deallocated; or a command to
/// the zone in which `offset` lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Io {
    /// Where the I/O begins, from the beginning of the device; a whole number of sectors.
    pub offset: Bytes,
    /// How long it is; a whole number of sectors, at least one.
    pub size: Bytes,
    /// What is done.
    pub mode: Mode,
    /// Of a write: the stream that the host says it belongs to, for a device that keeps several apart; 0
    /// where the host says nothing.
    pub stream: u8,
}

/// As an error begins: "A read of 4 KiB at byte 0".
impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.mode.name();
        let article = if name.starts_with(['a', 'o']) { "An" } else { "A" };
        write!(f, "{article} {name} of {} at byte {}", self.size, self.offset.0)
    }
}
