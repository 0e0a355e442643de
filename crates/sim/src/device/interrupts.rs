//! Notification of the host: by an interrupt, which may cover several completions, or
//! by polling.
//!
//! ```text
//! ended        a    b         c   d              e
//! threshold 3  └────┴─────────┴▶ interrupt       │
//! time         └ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ▶           └─────────────▶ interrupt: the time is over
//! polling      │····▲····│····▲····│····▲····│   each at the next poll
//! ```
//!
//! **Source**: NVM Express Base Specification 2.0, feature 08h (interrupt coalescing: aggregation threshold and
//! time); polled queues of the Linux driver (`nvme.poll_queues`).
//! **Faithful**: an interrupt comes when the threshold of pending completions is reached, or when
//! the first of them has waited for the aggregation time.
//! **Simplified**: one completion queue and one vector for all commands; polls come at fixed times.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};
use uflip_core::Mode;

use super::SimDevice;
use super::any::dispatch;
use super::backend::{Backend, Hardware};
use super::event::{DeviceEvent, IoIdx, PageIdx};
use crate::config::InterruptsPart;
use crate::flash::fast_path::AllFeatures;
use crate::timeline::breakdown::{Account as _, Cause};

/// Completions that the host has not been notified of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    #[serde(rename = "of")]
    part: InterruptsPart,
    waiting: Vec<(IoIdx, u64)>,
    /// Number of interrupts so far; identifies the timeout that is still valid.
    raised: u32,
}

impl Interrupts {
    pub(crate) fn new(part: InterruptsPart) -> Interrupts {
        Interrupts { part, waiting: Vec::new(), raised: 0 }
    }

    /// Drop the pending completions: power was lost.
    pub(crate) fn drop_pending(&mut self) {
        self.waiting.clear();
    }
}

impl SimDevice {
    /// End a host page at `end`. If it is the last of its I/O, the I/O waits until the host is
    /// notified.
    #[cold]
    pub(super) fn end_pending_notification(&mut self, index: PageIdx, end: u64) {
        if let Some((io, end)) = self.host.end_page_unnotified(index, end) {
            self.events.remind(end, DeviceEvent::CompletionPosted(io).into());
        }
    }

    /// Handle the completion of an I/O at `at`: its command slot is free, and its notification is
    /// pending.
    #[cold]
    pub(super) fn posted(&mut self, io: IoIdx, at: u64) {
        let interrupts = self.interrupts.as_mut().expect("interrupts are coalesced");
        interrupts.waiting.push((io, at));
        let (waiting, raised) = (interrupts.waiting.len(), interrupts.raised);
        if waiting >= interrupts.part.coalesced_completions as usize {
            self.notify_host(at);
        } else if waiting == 1 {
            let until = at + interrupts.part.coalescing_ns;
            self.events.remind(until, DeviceEvent::CoalescingTimeout(raised).into());
        }
        let (completed, _) = self.host.io(io);
        if self.interface.is_limited()
            && let Some(next) = self.interface.next()
        {
            let (io, extent) = self.host.io(next);
            self.begin::<AllFeatures>(next, &io, extent, at);
        }
        if completed.mode == Mode::Read {
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            dispatch!(backend, backend => backend.after_read(at, hardware));
        }
    }

    /// Handle an aggregation timeout if no interrupt came meanwhile: the oldest completion has
    /// waited long enough.
    #[cold]
    pub(super) fn coalesced(&mut self, raised: u32, at: u64) {
        if self.interrupts.as_ref().is_some_and(|interrupts| interrupts.raised == raised) {
            self.notify_host(at);
        }
    }

    /// Notify the host of all I/Os that have completed by `at`.
    fn notify_host(&mut self, at: u64) {
        let SimDevice { interrupts, host, events, .. } = self;
        let interrupts = interrupts.as_mut().expect("interrupts are coalesced");
        interrupts.raised = interrupts.raised.wrapping_add(1);
        let InterruptsPart { host_completion, host_completion_ns, .. } = interrupts.part;
        let notified_at = host_completion.noticed(at, host_completion_ns);
        for (io, posted) in interrupts.waiting.drain(..) {
            let last = host.notify(io, notified_at);
            events.accounts[last.0 as usize].add(Cause::Controller, notified_at - posted);
        }
    }
}
