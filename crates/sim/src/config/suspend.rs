//! Suspension options: programs and erases that stop for a host read.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;
use crate::timeline::{DieQueue, Suspend};

/// The table `[suspend]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct SuspendPart {
    /// Time from the request until a program has stopped and a read begins; default: programs are
    /// not suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_suspend_ns: Option<u64>,
    /// The same for an erase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_suspend_ns: Option<u64>,
    /// Maximum number of suspensions of one program or erase.
    pub suspensions_max: u32,
}

impl Profile {
    pub(super) fn suspend(&self) -> Option<Suspend> {
        self.suspend.map(|part| Suspend {
            program_ns: part.program_suspend_ns,
            erase_ns: part.erase_suspend_ns,
            max_suspensions: part.suspensions_max,
        })
    }

    /// Return the additional time of a program and of an erase due to suspensions [ns].
    pub(super) fn stopping_ns(&self) -> (u128, u128) {
        let Some(part) = self.suspend else { return (0, 0) };
        let all = |ns: Option<u64>| u128::from(ns.unwrap_or(0)) * u128::from(part.suspensions_max);
        (all(part.program_suspend_ns), all(part.erase_suspend_ns))
    }

    pub(super) fn find_invalid_suspend(&self, invalid: &mut InvalidKeys) {
        let Some(part) = self.suspend else { return };
        let nothing = part.program_suspend_ns.is_none() && part.erase_suspend_ns.is_none();
        let allowed = "program_suspend_ns, erase_suspend_ns or both beside it";
        invalid.reject_if(nothing, "suspensions_max", &part.suspensions_max, allowed);
        let queue = self.timing.die_queue;
        let allowed = "\"reads_first\" with [suspend]: in other queues a read never goes first";
        invalid.reject_if(queue != DieQueue::ReadsFirst, "die_queue", &queue.name(), allowed);
        let cached = self.timing.cache_program;
        let allowed = "false with [suspend]: a suspended program occupies the register";
        invalid.reject_if(cached, "cache_program", &cached, allowed);
    }
}
