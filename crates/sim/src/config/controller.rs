//! Optional parts of the controller: buses, memory, latencies, and descriptor rings.

use serde::{Deserialize, Serialize};

use super::checks::InvalidKeys;
use super::{Profile, TimingPart};
use crate::timeline::{CompletionNotice, Rings};

/// The table `[rings]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct RingsPart {
    /// TX entries per die: requests that have not started.
    pub tx_entries: u32,
    /// RX entries per die: requests that have started and whose completion was not noticed.
    pub rx_entries: u32,
    pub completion: CompletionNotice,
    /// Interrupt latency after a completion, or polling period.
    pub completion_ns: u64,
}

impl TimingPart {
    /// Return whether every command waits for earlier writes: reads take their turn at the
    /// processor, and no latency lets them overtake.
    pub(super) fn writes_in_order(&self) -> bool {
        self.command_read_ns > 0 && self.command_write_latency_ns <= self.command_read_latency_ns
    }

    /// Return the maximum wait of a page beyond its transfers and cell times [ns].
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

    pub(super) fn find_invalid_controller(&self, invalid: &mut InvalidKeys) {
        let timing = &self.timing;
        let no_bus = "no such key with buses = 0";
        for (key, value) in [
            ("bus_read_setup_ns", timing.bus_read_setup_ns),
            ("bus_write_setup_ns", timing.bus_write_setup_ns),
            ("memory_bytes_per_s", timing.memory_bytes_per_s),
        ] {
            invalid.reject_if(
                value.is_some() && timing.buses == 0,
                key,
                &value.unwrap_or(0),
                no_bus,
            );
        }
        if let Some(part) = self.rings {
            let never = part.completion == CompletionNotice::Polling && part.completion_ns == 0;
            invalid.reject_if(
                never,
                "completion_ns",
                &0,
                "1 or more with completion = \"polling\"",
            );
        }
        if let Some(gc) = &self.gc {
            let pages = gc.relocations_at_once.unwrap_or(1);
            let allowed = "1 with mapping units smaller than a flash page, whose neighbours are read together";
            let wrong = pages > 1 && self.units() > 1;
            invalid.reject_if(wrong, "relocations_at_once", &pages, allowed);
        }
    }
}
