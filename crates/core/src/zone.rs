//! Zones of a device: states, limits, reports, and the errors of zone commands.
//!
//! **Source**: NVM Express Zoned Namespace Command Set Specification 1.1; `linux/blkzoned.h`, whose
//! states cover NVMe ZNS, ZBC and ZAC.

use crate::{Bytes, Error, ErrorKind};

/// The state of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneState {
    /// Can be written anywhere: not a sequential zone.
    Conventional,
    /// Nothing is written.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by an open command.
    ExplicitlyOpen,
    /// Partly written, and not open.
    Closed,
    /// Can be read but not written.
    ReadOnly,
    /// Written up to its capacity, or finished.
    Full,
    /// Can be neither read nor written.
    Offline,
}

impl ZoneState {
    /// Return the state for a number of `linux/blkzoned.h`.
    #[must_use]
    pub fn from_linux(number: u8) -> Option<ZoneState> {
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

    /// Return the name in words.
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

    /// Return whether it is implicitly or explicitly open.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
    }

    /// Return whether it counts as active: open or closed.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.is_open() || self == ZoneState::Closed
    }
}

/// One zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Zone {
    /// The first byte.
    pub start_bytes: Bytes,
    /// The writable size; the remaining addresses up to the next zone are not usable.
    pub capacity_bytes: Bytes,
    /// The address of the next write. For a full zone, the end of its capacity.
    pub write_pointer_bytes: Bytes,
    /// The state.
    pub state: ZoneState,
    /// The number of resets; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets: Option<u64>,
}

/// The zone size of a device, and its limits of open and active zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct ZoneLimits {
    /// The distance between the beginnings of two zones [bytes].
    pub zone_bytes: u64,
    /// The limit of open zones; 0: no limit.
    pub max_open_zones: u32,
    /// The limit of active (open or closed) zones; 0: no limit.
    pub max_active_zones: u32,
}

/// All zones of a device.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ZoneReport {
    /// The common limits.
    #[serde(flatten)]
    pub limits: ZoneLimits,
    /// All zones, in order.
    pub zones: Vec<Zone>,
}

/// The status of a zone command that fails, as the standard defines it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneStatus {
    /// Exceeds the capacity of the zone.
    BoundaryError,
    /// The zone is full.
    Full,
    /// The zone can be read but not written.
    ReadOnly,
    /// The zone can be neither read nor written.
    Offline,
    /// The write does not begin at the write pointer.
    InvalidWrite,
    /// The limit of active zones is reached.
    TooManyActive,
    /// The limit of open zones is reached.
    TooManyOpen,
    /// The state change is not allowed.
    InvalidTransition,
}

impl ZoneStatus {
    /// Return the status code (status code type 1, command specific).
    #[must_use]
    pub fn code(self) -> u8 {
        0xb8 + self as u8
    }

    /// Return the name from the standard.
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

    /// Create the error for `command`.
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
        Error::new(ErrorKind::Device, format!("The zone does not accept this {command}"))
            .got(answer)
            .action(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_codes_match_the_standard() {
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
