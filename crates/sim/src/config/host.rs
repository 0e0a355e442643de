//! The host side of a device: its command queues, and the notification of completions.

use serde::{Deserialize, Serialize};

use super::Profile;
use super::checks::InvalidKeys;
use crate::timeline::CompletionNotice;

/// The table `[host_queues]`: a separate queue for reads; waiting commands come from both queues in
/// turn.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct HostQueuesPart {
    /// Commands per turn of a queue.
    pub read_weight: u32,
    pub write_weight: u32,
}

/// The table `[interrupts]`: the host is notified of a completion after some time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct InterruptsPart {
    pub host_completion: CompletionNotice,
    /// Host latency after the interrupt, or polling period.
    pub host_completion_ns: u64,
    /// Number of completions per interrupt; an earlier one comes after the aggregation time.
    pub coalesced_completions: u32,
    pub coalescing_ns: u64,
}

impl Profile {
    /// Return the commands per turn of each queue: one for all, or one for reads and one for the
    /// rest.
    pub(crate) fn queue_weights(&self) -> Vec<u32> {
        self.host_queues.map_or(vec![1], |part| vec![part.read_weight, part.write_weight])
    }

    pub(super) fn find_invalid_host(&self, invalid: &mut InvalidKeys) {
        if let Some(HostQueuesPart { read_weight, .. }) = self.host_queues {
            let unlimited = self.timing.commands_at_once == 0;
            let allowed = "no [host_queues] with commands_at_once = 0: no command waits";
            invalid.reject_if(unlimited, "read_weight", &read_weight, allowed);
        }
        let Some(part) = self.interrupts else { return };
        let polls = part.host_completion == CompletionNotice::Polling;
        let ns = part.host_completion_ns;
        invalid.reject_if(
            polls && ns == 0,
            "host_completion_ns",
            &ns,
            "1 or more with \"polling\"",
        );
        let number = part.coalesced_completions;
        invalid.reject_if(
            polls && number > 1,
            "coalesced_completions",
            &number,
            "1 with \"polling\"",
        );
        let ns = part.coalescing_ns;
        let allowed = "0 with coalesced_completions = 1";
        invalid.reject_if(ns > 0 && number == 1, "coalescing_ns", &ns, allowed);
    }
}
