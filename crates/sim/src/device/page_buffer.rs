//! Page buffers: mapping units are gathered into flash pages, and writes wait for the page program.
//!
//! ```text
//! unit  a ──▶ ends │ b ──▶ ends │ c ──▶ ends │ d ─────────────────────▶ ends
//!                                            └─ page [a b c d] ─▶ plane ─┘
//! ```
//!
//! A host write completes when its unit is in the page buffer; the write that fills the page waits
//! for the program. Data from the write cache keeps its cache slot until it is on flash. A flush
//! pads the rest of the page.
//!
//! **Source**: as `ftl/page_map/write.rs`.
//! **Faithful**: a page is programmed once, whatever the owners of its units; a read of a buffered
//! unit needs no flash.
//! **Simplified**: there is always a buffer for the page that a plane gathers. A unit that is
//! written again while buffered takes another slot.
//! **Ambiguous**: when a page that is not full is programmed. Here for a flush only, and never
//! because of time.

use std::hint::cold_path;
use std::ops::Range;

use crate::device::backend::Write;
use crate::device::event::CompletionTarget;
use crate::flash::geometry::{Lpn, PageAddress, PlaneIdx};

/// The flash pages that are being gathered, and those being programmed.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Gather")]
pub(crate) struct PageBuffer {
    /// Number of page buffers per plane; those of the host's streams come first.
    kinds: usize,
    /// Buffer indices for host units and for relocated units.
    host: usize,
    #[serde(rename = "moved")]
    relocated: usize,
    open: Vec<GatheredPage>,
    #[serde(rename = "under_way")]
    inflight: Vec<GatheredPage>,
    unused: Vec<u32>,
    /// Number of pages sent to flash so far.
    sent: u64,
    drains: Vec<PendingDrain>,
    /// Partial writes whose unit is being read first (read-modify-write).
    modifying: Vec<Option<Write>>,
    /// Indices of those that were cancelled.
    #[serde(rename = "forgotten")]
    cancelled: Vec<u32>,
    /// Writes to units that are being read for an earlier write, in FIFO order, and since when they
    /// wait.
    #[serde(rename = "behind")]
    waiting_writes: Vec<(Write, u64)>,
    /// Flush as soon as possible: these writes and the backlog.
    #[serde(rename = "hurry")]
    pub(crate) urgent: bool,
}

/// A flash page.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Page")]
struct GatheredPage {
    /// Targets that wait for its program, and since when.
    waits: Vec<(CompletionTarget, u64)>,
    /// It holds acknowledged data that is in memory only.
    volatile: bool,
    /// Its number among the pages sent to flash.
    number: u64,
}

/// A flush that waits for pages to reach flash.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Drain")]
struct PendingDrain {
    target: CompletionTarget,
    /// Number of pages sent before `until` that are not on flash yet.
    #[serde(rename = "left")]
    pages_left: usize,
    until: u64,
}

/// The consequences of a completed page program.
pub(crate) struct Programmed {
    /// Targets that waited, and since when. The last one's time is charged as it passes.
    pub(crate) waits: Vec<(CompletionTarget, u64)>,
    /// Targets of the flushes that are complete.
    pub(crate) drained: Vec<CompletionTarget>,
}

impl PageBuffer {
    /// Create buffers for `planes` planes, `hosts` host streams, and `frontiers` open blocks per
    /// plane that take relocated pages only.
    pub(crate) fn new(planes: u32, hosts: u8, frontiers: u8) -> PageBuffer {
        let kinds = usize::from(hosts + frontiers.max(1));
        PageBuffer {
            kinds,
            host: 0,
            relocated: if frontiers > 0 { usize::from(hosts) } else { 0 },
            open: vec![GatheredPage::default(); kinds * planes as usize],
            inflight: Vec::new(),
            unused: Vec::new(),
            sent: 0,
            drains: Vec::new(),
            modifying: Vec::new(),
            cancelled: Vec::new(),
            waiting_writes: Vec::new(),
            urgent: false,
        }
    }

    fn index(&self, plane: PlaneIdx, relocated: bool) -> usize {
        plane.0 as usize * self.kinds + if relocated { self.relocated } else { self.host }
    }

    /// Assign the host units that follow to `stream`.
    pub(crate) fn select_stream(&mut self, stream: u8) {
        self.host = usize::from(stream);
    }

    /// Assign the relocated units that follow to the buffer of `kind`.
    pub(crate) fn set_moved_kind(&mut self, kind: u8) {
        self.relocated = usize::from(kind);
    }

    /// Add a host unit to the buffer of its page, which may have to wait for the program. Return
    /// whether its write completes now.
    pub(crate) fn add(
        &mut self,
        to: PageAddress,
        target: CompletionTarget,
        at: u64,
        waits: bool,
    ) -> bool {
        let index = self.index(to.plane, false);
        let ends = target.account.is_some() && !waits;
        let page = &mut self.open[index];
        page.volatile |= ends;
        if !ends {
            page.waits.push((target, at));
        }
        ends
    }

    /// Send the page that `to` fills to flash. Return its number, and the target whose time is
    /// charged as it passes; `None` if nothing waits for its program.
    pub(crate) fn send_to_flash(
        &mut self,
        to: PageAddress,
        relocated: bool,
    ) -> Option<(u32, Option<(CompletionTarget, u64)>)> {
        let index = self.index(to.plane, relocated);
        let page = &mut self.open[index];
        if page.waits.is_empty() && !page.volatile {
            return None;
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            cold_path();
            self.inflight.push(GatheredPage::default());
            self.inflight.len() as u32 - 1
        });
        std::mem::swap(page, &mut self.inflight[number as usize]);
        let sent = &mut self.inflight[number as usize];
        sent.number = self.sent;
        self.sent += 1;
        Some((number, sent.waits.last().copied()))
    }

    /// Handle the completion of a page program. Return its vector with [`PageBuffer::recycle`].
    pub(crate) fn programmed(&mut self, number: u32) -> Programmed {
        let page = &mut self.inflight[number as usize];
        let waits = std::mem::take(&mut page.waits);
        let mut drained = Vec::new();
        if std::mem::take(&mut page.volatile) {
            let number = page.number;
            for drain in self.drains.iter_mut().filter(|drain| number < drain.until) {
                drain.pages_left -= 1;
            }
            self.drains.retain(|drain| {
                let over = drain.pages_left == 0;
                drained.extend(over.then_some(drain.target));
                !over
            });
        }
        self.unused.push(number);
        Programmed { waits, drained }
    }

    /// Recycle a vector, so that the next page allocates nothing.
    pub(crate) fn recycle(&mut self, mut waits: Vec<(CompletionTarget, u64)>) {
        waits.clear();
        if let Some(number) = self.unused.last() {
            self.inflight[*number as usize].waits = waits;
        }
    }

    /// Return whether a target waits for a page that is being gathered.
    pub(crate) fn has_waiters(&self) -> bool {
        self.open.iter().any(|page| !page.waits.is_empty())
    }

    /// Return whether `plane` gathers a page with acknowledged data, or (unless `volatile`) with
    /// any host data.
    pub(crate) fn has_data(&self, plane: PlaneIdx, volatile: bool) -> bool {
        let page = &self.open[self.index(plane, false)];
        page.volatile || !volatile && !page.waits.is_empty()
    }

    /// Let `target` wait until all acknowledged data that was sent is on flash. Return false
    /// without such data.
    pub(crate) fn drain(&mut self, target: CompletionTarget) -> bool {
        let pages_left = self.inflight.iter().filter(|page| page.volatile).count();
        if pages_left > 0 {
            self.drains.push(PendingDrain { target, pages_left, until: self.sent });
        }
        pages_left > 0
    }

    /// Register a partial write whose unit is read first; return its index for the event.
    pub(crate) fn modify(&mut self, write: Write) -> u32 {
        let free = self.modifying.iter().position(Option::is_none);
        let index = free.unwrap_or(self.modifying.len());
        self.modifying.resize(self.modifying.len().max(index + 1), None);
        self.modifying[index] = Some(write);
        index as u32
    }

    /// Return the unit that was read, and its write; `None` for a cancelled write.
    pub(crate) fn modified(&mut self, index: u32) -> (Lpn, Option<Write>) {
        let write = self.modifying[index as usize].take().expect("the slot has a pending write");
        let cancelled = self.cancelled.iter().position(|forgotten| *forgotten == index);
        if let Some(position) = cancelled {
            self.cancelled.swap_remove(position);
        }
        (write.page, Some(write).filter(|_| cancelled.is_none()))
    }

    /// Let `write` wait until its unit has been read for an earlier write.
    pub(crate) fn queue_after_read(&mut self, write: Write, at: u64) {
        self.waiting_writes.push((write, at));
    }

    /// Remove the first write that waits for `unit`; return it and since when it waits. `None`
    /// while the unit is read again.
    pub(crate) fn next_behind(&mut self, unit: Lpn) -> Option<(Write, u64)> {
        let index = self.waiting_writes.iter().position(|(write, _)| write.page == unit)?;
        (!self.modifies_unit(unit)).then(|| self.waiting_writes.remove(index))
    }

    /// Cancel writes to `pages` that have left the write cache and whose unit is being read; return
    /// them.
    pub(crate) fn cancel_trimmed(&mut self, pages: &Range<u32>) -> Vec<Write> {
        let mut cancelled = Vec::new();
        for (index, slot) in (0..).zip(&self.modifying) {
            let write = slot.filter(|write| write.has_left_cache(pages));
            if let Some(write) = write.filter(|_| !self.cancelled.contains(&index)) {
                cancelled.push(write);
                self.cancelled.push(index);
            }
        }
        self.waiting_writes.retain(|(write, _)| {
            let remains = !write.has_left_cache(pages);
            cancelled.extend((!remains).then_some(*write));
            remains
        });
        cancelled
    }

    /// Return whether any read-modify-write is in progress.
    pub(crate) fn modifies(&self) -> bool {
        self.modifying.iter().any(Option::is_some) || !self.waiting_writes.is_empty()
    }

    /// Return whether a read-modify-write of `unit` is in progress.
    pub(crate) fn modifies_unit(&self, unit: Lpn) -> bool {
        self.modifying.iter().flatten().any(|write| write.page == unit)
    }

    /// Prepare untimed mode: drop all waits. Return the writes whose units were being read, and
    /// those behind them.
    pub(crate) fn end(&mut self) -> Vec<Write> {
        let pages = self.open.iter_mut().chain(&mut self.inflight);
        pages.for_each(|page| *page = GatheredPage::default());
        self.unused = (0..self.inflight.len() as u32).collect();
        self.drains.clear();
        self.urgent = false;
        let forgotten = std::mem::take(&mut self.cancelled);
        let writes = (0..).zip(self.modifying.drain(..));
        let waiting_writes = self.waiting_writes.drain(..).map(|(write, _)| write);
        writes
            .filter(|(index, _)| !forgotten.contains(index))
            .filter_map(|(_, write)| write)
            .chain(waiting_writes)
            .collect()
    }
}
