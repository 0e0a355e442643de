//! The host's side of a device: from which of its queues the next command comes, and how it hears of ends.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::Misfits;
use crate::timeline::Completion;

/// The table `[host_queues]`: reads have a queue of their own, and commands that wait come from both in turn.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct HostQueuesPart {
    /// Commands that come from a queue in one turn.
    pub read_weight: u32,
    pub write_weight: u32,
}

/// The table `[interrupts]`: the host hears of an end some time after it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct InterruptsPart {
    pub host_completion: Completion,
    /// From the interrupt until the host has heard of it, or between two polls.
    pub host_completion_ns: u64,
    /// So many ends make an interrupt, or one that has waited so long.
    pub coalesced_completions: u32,
    pub coalescing_ns: u64,
}

impl Profile {
    /// How many commands come from each queue in a turn: one for all, or that of reads and that of the rest.
    pub(crate) fn queue_weights(&self) -> Vec<u32> {
        self.host_queues.map_or(vec![1], |part| vec![part.read_weight, part.write_weight])
    }

    pub(super) fn misfits_of_host(&self, found: &mut Misfits) {
        if let Some(HostQueuesPart { read_weight, .. }) = self.host_queues {
            let nobody = self.timing.commands_at_once == 0;
            let allowed = "no [host_queues] with commands_at_once = 0: no command waits";
            found.refuse(nobody, "read_weight", &read_weight, allowed);
        }
        let Some(part) = self.interrupts else { return };
        let polls = part.host_completion == Completion::Polling;
        let ns = part.host_completion_ns;
        found.refuse(polls && ns == 0, "host_completion_ns", &ns, "1 or more with \"polling\"");
        let number = part.coalesced_completions;
        found.refuse(polls && number > 1, "coalesced_completions", &number, "1 with \"polling\"");
        let ns = part.coalescing_ns;
        let allowed = "0 with coalesced_completions = 1";
        found.refuse(ns > 0 && number == 1, "coalescing_ns", &ns, allowed);
    }
}
