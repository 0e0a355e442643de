//! Optional parts of the controller: buses, memory, latencies, descriptor rings, command queues,
//! interrupts, and suspension.

use super::checks::InvalidKeys;
use super::{Profile, TimingPart};
use crate::keys::parameters;
use crate::timeline::{CompletionNotice, DieQueue, MultiPlane, Rings, Suspend};

parameters! {
    /// The table `[rings]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct RingsPart {
        tx_entries: u32 = "1 or more",
            "requests for a die that the firmware has issued and the die has not begun; while \
             the ring of the next request is full, the firmware issues no later request either";
        rx_entries: u32 = "1 or more",
            "requests for a die that have begun and whose completion the firmware has not \
             noticed yet; 1: one after the other";
        completion: CompletionNotice = "`interrupt`, `polling`",
            "how the firmware notices the completion of a request";
        completion_ns: u64 = "0 or more; 1 or more with `polling`" in "ns",
            "from the completion of a request to its interrupt, or from one poll to the next (at \
             multiples of it)";
    }
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

// The host side of a device: its command queues, and the notification of completions.

parameters! {
    /// The table `[host_queues]`: a separate queue for reads; waiting commands come from both queues in
    /// turn.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct HostQueuesPart {
        read_weight: u32 = "1 or more" in "commands",
            "number of reads in one turn; with both weights 1 this is NVMe's round robin";
        write_weight: u32 = "1 or more" in "commands",
            "number of all other commands in one turn";
    }
}

parameters! {
    /// The table `[interrupts]`: the host is notified of a completion after some time.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct InterruptsPart {
        host_completion: CompletionNotice = "`interrupt`, `polling`",
            "how the host notices the completion of a command";
        // One second: more than any host takes.
        host_completion_ns: u64 = "0 to 1000000000; 1 or more with `polling`" in "ns",
            "from the interrupt until the host has handled it, or from one poll to the next (at \
             multiples of it)";
        // The range of the aggregation threshold of NVMe.
        coalesced_completions: u32 = "1 to 256; 1 with `polling`" in "commands",
            "number of completions for an interrupt (NVMe's aggregation threshold)";
        // The range of the aggregation time of NVMe: 255 steps of 100 µs.
        coalescing_ns: u64 = "0 to 25500000; 0 where `coalesced_completions` is 1" in "ns",
            "longest wait of a completion for further ones before the interrupt (NVMe's \
             aggregation time)";
    }
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

// Suspension options: programs and erases that stop for a host read.

parameters! {
    /// The table `[suspend]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct SuspendPart {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program_suspend_ns: Option<u64> =
            "0 or more; without the key programs are not suspended" in "ns",
            "from the arrival of a read at its die until the die has suspended its program and \
             begins the read";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        erase_suspend_ns: Option<u64> =
            "0 or more; without the key erases are not suspended" in "ns",
            "the same for an erase";
        suspensions_max: u32 = "1 or more",
            "largest number of suspensions of one program or erase; after that reads wait until \
             it is over";
    }
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

    pub(super) fn find_invalid_cache_read(&self, invalid: &mut InvalidKeys) {
        let cached = self.timing.cache_read;
        let queue = self.timing.die_queue;
        let allowed =
            "\"fifo\" with cache_read: the next page is read before its turn in other queues";
        let overtakes = cached && queue != DieQueue::Fifo;
        invalid.reject_if(overtakes, "die_queue", &queue.name(), allowed);
        let together = cached && self.geometry.multi_plane != MultiPlane::None;
        let allowed = "false with multi_plane: a command reads a page of each plane";
        invalid.reject_if(together, "cache_read", &cached, allowed);
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
