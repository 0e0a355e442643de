//! Zones of a device: what a host knows of each, and what it is told where a command does not suit one.
//!
//! **Source**: NVM Express Zoned Namespace Command Set Specification 1.1; `linux/blkzoned.h`, whose states
//! are those of it and of ZBC and ZAC.

use crate::{Bytes, Error, ErrorKind};

/// The state of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneState {
    /// It can be written anywhere: a zone of no sequence.
    Conventional,
    /// Nothing is written.
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// The host opened it.
    ExplicitlyOpen,
    /// Written in part, and not open.
    Closed,
    /// It can be read and nothing else.
    ReadOnly,
    /// Written up to its capacity, or finished.
    Full,
    /// It can neither be read nor written.
    Offline,
}

impl ZoneState {
    /// The state that `linux/blkzoned.h` gives that number.
    #[must_use]
    pub fn of_linux(number: u8) -> Option<ZoneState> {
        Some(match number {
            0x0 => ZoneState::Conventional,
            0x1 => ZoneState::Empty,
            0x2 => ZoneState::ImplicitlyOpen,
            0x3 => ZoneState::ExplicitlyOpen,
            0x4 => ZoneState::Closed,
            0xd => ZoneState::ReadOnly,
            0xe => ZoneState::Full,
            0xf => ZoneState::Offline,
            _ => return None,
        })
    }

    /// Its name in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ZoneState::Conventional => "conventional",
            ZoneState::Empty => "empty",
            ZoneState::ImplicitlyOpen => "implicitly open",
            ZoneState::ExplicitlyOpen => "explicitly open",
            ZoneState::Closed => "closed",
            ZoneState::ReadOnly => "read-only",
            ZoneState::Full => "full",
            ZoneState::Offline => "offline",
        }
    }

    /// Whether it is open, in either way.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    /// Whether it counts among the active ones: open or closed.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }
}

/// One zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Zone {
    /// Where it begins.
    pub start_bytes: Bytes,
    /// What it can hold; the rest of its addresses, up to the next zone, hold nothing.
    pub capacity_bytes: Bytes,
    /// Where it is written next: an address of the device. Of a full zone the end of its capacity.
    pub write_pointer_bytes: Bytes,
    /// In which state it is.
    pub state: ZoneState,
    /// How often it was reset; `None` where unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets: Option<u64>,
}

/// How many zones a device can have in use, and how far apart they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct ZoneLimits {
    /// From the beginning of one to that of the next [bytes].
    pub zone_bytes: u64,
    /// Open at a time; 0: as many as there are.
    pub max_open_zones: u32,
    /// Open or closed at a time; 0: as many as there are.
    pub max_active_zones: u32,
}

/// All zones of a device.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ZoneReport {
    /// What holds for all of them.
    #[serde(flatten)]
    pub limits: ZoneLimits,
    /// Each of them, in order.
    pub zones: Vec<Zone>,
}

/// What the standard answers to a command that does not suit its zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneStatus {
    /// It goes beyond the capacity of the zone.
    BoundaryError,
    /// The zone is full.
    Full,
    /// The zone can be read and nothing else.
    ReadOnly,
    /// The zone can neither be read nor written.
    Offline,
    /// The write does not begin at the write pointer.
    InvalidWrite,
    /// No more zones can be active.
    TooManyActive,
    /// No more zones can be open.
    TooManyOpen,
    /// No such change of state.
    InvalidTransition,
}

impl ZoneStatus {
    /// Its status code among those of commands (status code type 1).
    #[must_use]
    pub fn code(self) -> u8 {
        0xb8 + self as u8
    }

    /// What the standard calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "Zoned Boundary Error",
            "Zone Is Full",
            "Zone Is Read Only",
            "Zone Is Offline",
            "Zone Invalid Write",
            "Too Many Active Zones",
            "Too Many Open Zones",
            "Invalid Zone State Transition",
        ][self as usize]
    }

    /// The error of a `command` that got it.
    #[must_use]
    pub fn error(self, command: &str) -> Error {
        let action = match self {
            ZoneStatus::BoundaryError => "write no more than the zone has capacity for",
            ZoneStatus::Full => "reset the zone, or write to another one",
            ZoneStatus::ReadOnly | ZoneStatus::Offline => "use another zone",
            ZoneStatus::InvalidWrite => "write where the zone's write pointer is, or append",
            ZoneStatus::TooManyActive => "finish or reset a zone before another is written to",
            ZoneStatus::TooManyOpen => "close a zone before another is opened",
            ZoneStatus::InvalidTransition => "look at the state of the zone: `uflip zones DEVICE`",
        };
        let answer = format!("{} ({:#04x})", self.name(), self.code());
        Error::new(ErrorKind::Device, format!("The zone does not take this {command}"))
            .got(answer)
            .action(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // NVMe ZNS 1.1, figure 15; the kernel's include/linux/nvme.h has the same with type 1.
        let codes = [
            (ZoneStatus::BoundaryError, 0xb8),
            (ZoneStatus::Full, 0xb9),
            (ZoneStatus::ReadOnly, 0xba),
            (ZoneStatus::Offline, 0xbb),
            (ZoneStatus::InvalidWrite, 0xbc),
            (ZoneStatus::TooManyActive, 0xbd),
            (ZoneStatus::TooManyOpen, 0xbe),
            (ZoneStatus::InvalidTransition, 0xbf),
        ];
        for (status, code) in codes {
            assert_eq!(status.code(), code, "{}", status.name());
        }
    }
}
