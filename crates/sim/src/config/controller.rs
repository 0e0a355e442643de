//! The controller's processor, buses and memory beyond what every profile has, and the rings of its firmware.

use serde::{Deserialize, Serialize};

use super::checks::Misfits;
use super::{Profile, TimingPart};
use crate::timeline::{Completion, Rings};

/// The keys of `[timing]` that a profile may leave out where nothing is pipelined.
pub(super) const PIPELINED: &[&str] = &[
    "command_read_latency_ns",
    "command_write_latency_ns",
    "relocate_latency_ns",
    "bus_read_setup_ns",
    "bus_write_setup_ns",
    "memory_bytes_per_s",
];

/// The keys of `[gc]` that say how much is done at once.
pub(super) const AT_ONCE: &[&str] =
    &["relocate_exactly", "collections_per_channel", "relocations_at_once"];

/// All keys of `[rings]`.
pub(super) const RINGS: &[&str] = &["tx_entries", "rx_entries", "completion", "completion_ns"];

/// The table `[rings]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct RingsPart {
    /// Requests for a die that are not begun.
    pub tx_entries: u32,
    /// Requests for a die that are begun and not noticed to be over.
    pub rx_entries: u32,
    pub completion: Completion,
    /// From the end of a request to the interrupt, or between two polls.
    pub completion_ns: u64,
}

impl TimingPart {
    /// Whether no command is taken in before a write that came before it: reads take their turn at the processor,
    /// and nothing makes up for that.
    pub(super) fn writes_in_order(&self) -> bool {
        self.command_read_ns > 0 && self.command_write_latency_ns <= self.command_read_latency_ns
    }

    /// What a page can wait beyond its transfers and its cells [ns].
    pub(super) fn controller_ns(&self) -> u128 {
        let keys = [
            self.command_read_latency_ns.max(self.command_write_latency_ns),
            self.relocate_latency_ns,
            self.bus_read_setup_ns,
            self.bus_write_setup_ns,
        ];
        keys.into_iter().map(|ns| u128::from(ns.unwrap_or(0))).sum()
    }
}

impl Profile {
    pub(super) fn rings(&self) -> Option<Rings> {
        self.rings.map(|part| Rings {
            tx_entries: part.tx_entries,
            rx_entries: part.rx_entries,
            completion: part.completion,
            completion_ns: part.completion_ns,
        })
    }

    pub(super) fn misfits_of_controller(&self, found: &mut Misfits) {
        let timing = &self.timing;
        let no_bus = "no such key where buses = 0";
        for (key, value) in [
            ("bus_read_setup_ns", timing.bus_read_setup_ns),
            ("bus_write_setup_ns", timing.bus_write_setup_ns),
            ("memory_bytes_per_s", timing.memory_bytes_per_s),
        ] {
            found.refuse(value.is_some() && timing.buses == 0, key, &value.unwrap_or(0), no_bus);
        }
        found.refuse(timing.memory_bytes_per_s == Some(0), "memory_bytes_per_s", &0, "1 or more");
        if let Some(part) = self.rings {
            found.refuse(part.tx_entries == 0, "tx_entries", &0, "1 or more");
            found.refuse(part.rx_entries == 0, "rx_entries", &0, "1 or more");
            let never = part.completion == Completion::Polling && part.completion_ns == 0;
            found.refuse(never, "completion_ns", &0, "1 or more with completion = \"polling\"");
        }
        if let Some(gc) = &self.gc {
            found.refuse(
                gc.collections_per_channel == Some(0),
                "collections_per_channel",
                &0,
                "1 or more",
            );
            let pages = gc.relocations_at_once.unwrap_or(1);
            let allowed = "1 or more; 1 with mapping units smaller than a flash page, whose neighbours are \
                           read together";
            let wrong = pages == 0 || pages > 1 && self.units() > 1;
            found.refuse(wrong, "relocations_at_once", &pages, allowed);
        }
    }
}
