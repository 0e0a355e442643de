//! When the host hears that a command has ended: at an interrupt, of which one may speak for several, or when it
//! looks.
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
//! **Faithful**: an interrupt comes when so many completions wait, or the first of them has waited so long.
//! **Simplified**: one completion queue and one vector for all commands; whoever polls does so at fixed times.
//! **Ambiguous**: nothing.

use serde::{Deserialize, Serialize};
use uflip_core::Mode;

use super::SimDevice;
use super::any::dispatch;
use super::backend::{Backend, Hardware};
use super::event::{DeviceEvent, IoIdx, PageIdx};
use crate::config::InterruptsPart;
use crate::flash::fast_path::Full;
use crate::timeline::breakdown::{Account as _, Cause};

/// Completions that the host has not heard of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Interrupts {
    of: InterruptsPart,
    waiting: Vec<(IoIdx, u64)>,
    /// How often the host was told, by which the end of a time is known for its own.
    raised: u32,
}

impl Interrupts {
    pub(crate) fn new(of: InterruptsPart) -> Interrupts {
        Interrupts { of, waiting: Vec::new(), raised: 0 }
    }

    /// Power was lost: nobody will hear of what waits.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
    }
}

impl SimDevice {
    /// A page of the host ends at `end`; where it is the last of its I/O, that waits until the host hears of it.
    #[cold]
    pub(super) fn end_unheard(&mut self, index: PageIdx, end: u64) {
        if let Some((io, end)) = self.host.ended_unheard(index, end) {
            self.events.remind(end, DeviceEvent::CompletionPosted(io).into());
        }
    }

    /// An I/O has ended at `at`: there is room for the next, and the host will hear of it.
    #[cold]
    pub(super) fn posted(&mut self, io: IoIdx, at: u64) {
        let interrupts = self.interrupts.as_mut().expect("it waits for one");
        interrupts.waiting.push((io, at));
        let (waiting, raised) = (interrupts.waiting.len(), interrupts.raised);
        if waiting >= interrupts.of.coalesced_completions as usize {
            self.tell_host(at);
        } else if waiting == 1 {
            let until = at + interrupts.of.coalescing_ns;
            self.events.remind(until, DeviceEvent::CoalescingTimeout(raised).into());
        }
        let (ended, _) = self.host.io(io);
        if self.interface.is_limited()
            && let Some(next) = self.interface.next()
        {
            let (io, extent) = self.host.io(next);
            self.begin::<Full>(next, &io, extent, at);
        }
        if ended.mode == Mode::Read {
            let SimDevice { backend, flash, events, .. } = self;
            let hardware = &mut Hardware { flash, events };
            dispatch!(backend, backend => backend.after_read(at, hardware));
        }
    }

    /// The first of those that wait has waited as long as it may, if they are those of that time.
    #[cold]
    pub(super) fn coalesced(&mut self, raised: u32, at: u64) {
        if self.interrupts.as_ref().is_some_and(|interrupts| interrupts.raised == raised) {
            self.tell_host(at);
        }
    }

    /// The host will hear of all that have ended by `at`.
    fn tell_host(&mut self, at: u64) {
        let SimDevice { interrupts, host, events, .. } = self;
        let interrupts = interrupts.as_mut().expect("somebody waits for one");
        interrupts.raised = interrupts.raised.wrapping_add(1);
        let InterruptsPart { host_completion, host_completion_ns, .. } = interrupts.of;
        let heard = host_completion.noticed(at, host_completion_ns);
        for (io, posted) in interrupts.waiting.drain(..) {
            let last = host.heard(io, heard);
            events.accounts[last.0 as usize].add(Cause::Controller, heard - posted);
        }
    }
}
