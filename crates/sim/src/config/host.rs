//! The host's side of a device: from which of its queues the next command comes, and how it hears of ends.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::Misfits;
use crate::timeline::Completion;

/// All keys of `[host_queues]`.
pub(super) const HOST_QUEUES: &[&str] = &["read_weight", "write_weight"];

/// All keys of `[interrupts]`.
pub(super) const INTERRUPTS: &[&str] =
    &["host_completion", "host_completion_ns", "coalesced_completions", "coalescing_ns"];

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

/// As many as the aggregation threshold of NVMe can say.
const COALESCED_MAX: u32 = 256;
/// As long as its aggregation time can say: 255 steps of 100 µs [ns].
const COALESCING_MAX_NS: u64 = 25_500_000;
/// Whoever hears of an end later than that does not wait for it [ns].
const COMPLETION_MAX_NS: u64 = 1_000_000_000;

impl Profile {
    /// How many commands come from each queue in a turn: one for all, or that of reads and that of the rest.
    pub(crate) fn queue_weights(&self) -> Vec<u32> {
        self.host_queues.map_or(vec![1], |part| vec![part.read_weight, part.write_weight])
    }

    pub(super) fn misfits_of_host(&self, found: &mut Misfits) {
        if let Some(HostQueuesPart { read_weight, write_weight }) = self.host_queues {
            let nobody = self.timing.commands_at_once == 0;
            let allowed = "no [host_queues] with commands_at_once = 0: no command waits";
            found.refuse(nobody, "read_weight", &read_weight, allowed);
            found.refuse(read_weight == 0, "read_weight", &0, "1 or more");
            found.refuse(write_weight == 0, "write_weight", &0, "1 or more");
        }
        let Some(part) = self.interrupts else { return };
        let polls = part.host_completion == Completion::Polling;
        let ns = part.host_completion_ns;
        let allowed = format!("0 to {COMPLETION_MAX_NS}, and 1 or more with \"polling\"");
        found.refuse(
            polls && ns == 0 || ns > COMPLETION_MAX_NS,
            "host_completion_ns",
            &ns,
            allowed,
        );
        let number = part.coalesced_completions;
        let allowed = format!("1 to {COALESCED_MAX}, and 1 with \"polling\"");
        let wrong = !(1..=COALESCED_MAX).contains(&number) || polls && number > 1;
        found.refuse(wrong, "coalesced_completions", &number, allowed);
        let ns = part.coalescing_ns;
        let allowed = format!("0 to {COALESCING_MAX_NS}, and 0 with coalesced_completions = 1");
        let wrong = ns > COALESCING_MAX_NS || ns > 0 && number == 1;
        found.refuse(wrong, "coalescing_ns", &ns, allowed);
        let allowed = "no [interrupts] with [power_loss]: what the host has heard of is not kept";
        let kept = self.power_loss.is_some();
        found.refuse(kept, "host_completion_ns", &part.host_completion_ns, allowed);
    }
}
