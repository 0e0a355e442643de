//! Units that are gathered into flash pages, and who waits until these are programmed.
//!
//! ```text
//! unit  a ──▶ ends │ b ──▶ ends │ c ──▶ ends │ d ─────────────────────▶ ends
//!                                            └─ page [a b c d] ─▶ plane ─┘
//! ```
//!
//! A host write has ended when its unit is in the buffer of its flash page; the one that fills the page up
//! carries it to the flash. What comes from the write cache keeps its place there until it is on flash. A
//! host that wants its data durable has what is missing of the page filled up with nothing.
//!
//! **Source**: as `ftl/page_map/gathering.rs`.
//! **Faithful**: a page is programmed once, whoever its units belong to; a read of a unit that is still in
//! the buffer needs no flash.
//! **Simplified**: there is always a buffer for the page that a plane gathers; a unit that is written again
//! while it is in the buffer takes another place.
//! **Ambiguous**: when a page that is not full is programmed. Here when somebody wants its data durable,
//! and never because of time.

use std::hint::cold_path;
use std::ops::Range;

use crate::device::backend::Write;
use crate::device::event::Target;
use crate::flash::geometry::{Lpn, Place, PlaneIdx};

/// The flash pages that are gathered, and those under way.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Gather")]
pub(crate) struct PageBuffer {
    /// Per plane: flash pages that are gathered side by side, those of the host's streams first.
    kinds: usize,
    /// Which of them units of the host go to, and which relocated ones.
    host: usize,
    moved: usize,
    open: Vec<Page>,
    under_way: Vec<Page>,
    unused: Vec<u32>,
    /// So many were sent off.
    sent: u64,
    drains: Vec<Drain>,
    /// Writes whose unit is read first, of which the host brings only a part.
    modifying: Vec<Option<Write>>,
    /// Which of them are not to be made any more.
    forgotten: Vec<u32>,
    /// Writes to units that are being read for others, in the order in which they came, and since when they wait.
    behind: Vec<(Write, u64)>,
    /// All of these, and what waits for room, is to be on flash as soon as it can.
    pub(crate) hurry: bool,
}

/// A flash page.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
struct Page {
    /// Who waits until it is programmed, and since when.
    waits: Vec<(Target, u64)>,
    /// Writes have ended that are in memory alone.
    volatile: bool,
    /// Which of those that were sent off it is.
    number: u64,
}

/// Somebody waits until pages are on flash.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Drain {
    target: Target,
    /// So many of those sent off by then.
    left: usize,
    until: u64,
}

/// What follows from a flash page that is on flash.
pub(crate) struct Programmed {
    /// Who waited, and since when; the last has its time written down as it passes.
    pub(crate) waits: Vec<(Target, u64)>,
    /// Who waited for everything.
    pub(crate) drained: Vec<Target>,
}

impl PageBuffer {
    /// For so many planes, so many streams of the host, and so many open blocks of a plane that take relocated pages only.
    pub(crate) fn new(planes: u32, hosts: u8, frontiers: u8) -> PageBuffer {
        let kinds = usize::from(hosts + frontiers.max(1));
        PageBuffer {
            kinds,
            host: 0,
            moved: if frontiers > 0 { usize::from(hosts) } else { 0 },
            open: vec![Page::default(); kinds * planes as usize],
            under_way: Vec::new(),
            unused: Vec::new(),
            sent: 0,
            drains: Vec::new(),
            modifying: Vec::new(),
            forgotten: Vec::new(),
            behind: Vec::new(),
            hurry: false,
        }
    }

    fn index(&self, plane: PlaneIdx, relocated: bool) -> usize {
        plane.0 as usize * self.kinds + if relocated { self.moved } else { self.host }
    }

    /// Units of the host that follow are of `stream`.
    pub(crate) fn serve(&mut self, stream: u8) {
        self.host = usize::from(stream);
    }

    /// Relocated units that follow go with those of this one.
    pub(crate) fn serve_moved(&mut self, kind: u8) {
        self.moved = usize::from(kind);
    }

    /// A unit of the host is in the buffer of its page, and waits until that is on flash or not. Whether
    /// its write ends.
    pub(crate) fn add(&mut self, to: Place, target: Target, at: u64, waits: bool) -> bool {
        let index = self.index(to.plane, false);
        let ends = target.account.is_some() && !waits;
        let page = &mut self.open[index];
        page.volatile |= ends;
        if !ends {
            page.waits.push((target, at));
        }
        ends
    }

    /// The page that `to` fills up goes to the flash: its number, and who has its time written down;
    /// `None` where nobody wants to know its end.
    pub(crate) fn send_off(
        &mut self,
        to: Place,
        relocated: bool,
    ) -> Option<(u32, Option<(Target, u64)>)> {
        let index = self.index(to.plane, relocated);
        let page = &mut self.open[index];
        if page.waits.is_empty() && !page.volatile {
            return None;
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            cold_path();
            self.under_way.push(Page::default());
            self.under_way.len() as u32 - 1
        });
        std::mem::swap(page, &mut self.under_way[number as usize]);
        let sent = &mut self.under_way[number as usize];
        sent.number = self.sent;
        self.sent += 1;
        Some((number, sent.waits.last().copied()))
    }

    /// A page that was sent off is on flash. Give what it says back with [`PageBuffer::put_back`].
    pub(crate) fn programmed(&mut self, number: u32) -> Programmed {
        let page = &mut self.under_way[number as usize];
        let waits = std::mem::take(&mut page.waits);
        let mut drained = Vec::new();
        if std::mem::take(&mut page.volatile) {
            let number = page.number;
            for drain in self.drains.iter_mut().filter(|drain| number < drain.until) {
                drain.left -= 1;
            }
            self.drains.retain(|drain| {
                let over = drain.left == 0;
                drained.extend(over.then_some(drain.target));
                !over
            });
        }
        self.unused.push(number);
        Programmed { waits, drained }
    }

    /// Nothing is allocated for the next page.
    pub(crate) fn put_back(&mut self, mut waits: Vec<(Target, u64)>) {
        waits.clear();
        if let Some(number) = self.unused.last() {
            self.under_way[*number as usize].waits = waits;
        }
    }

    /// Whether somebody waits for a page that is gathered.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.open.iter().any(|page| !page.waits.is_empty())
    }

    /// Whether `plane` gathers a page with data of the host, or with such whose write has ended.
    pub(crate) fn has_data(&self, plane: PlaneIdx, volatile: bool) -> bool {
        let page = &self.open[self.index(plane, false)];
        page.volatile || !volatile && !page.waits.is_empty()
    }

    /// `target` waits until all is on flash whose writes have ended, and which was sent off. False where
    /// that is nothing.
    pub(crate) fn drain(&mut self, target: Target) -> bool {
        let left = self.under_way.iter().filter(|page| page.volatile).count();
        if left > 0 {
            self.drains.push(Drain { target, left, until: self.sent });
        }
        left > 0
    }

    /// The unit of `write` is read first; returns what is told when it was.
    pub(crate) fn modify(&mut self, write: Write) -> u32 {
        let free = self.modifying.iter().position(Option::is_none);
        let index = free.unwrap_or(self.modifying.len());
        self.modifying.resize(self.modifying.len().max(index + 1), None);
        self.modifying[index] = Some(write);
        index as u32
    }

    /// The unit of a write was read: which, and the write; `None` where that is not to be made any more.
    pub(crate) fn modified(&mut self, index: u32) -> (Lpn, Option<Write>) {
        let write = self.modifying[index as usize].take().expect("it was read for a write");
        let gone = self.forgotten.iter().position(|forgotten| *forgotten == index);
        if let Some(place) = gone {
            self.forgotten.swap_remove(place);
        }
        (write.page, Some(write).filter(|_| gone.is_none()))
    }

    /// Let `write` wait until its unit was read for another one, which came before it.
    pub(crate) fn wait_behind(&mut self, write: Write, at: u64) {
        self.behind.push((write, at));
    }

    /// The first write that has waited for `unit`, and since when; `None` while that is read again.
    pub(crate) fn next_behind(&mut self, unit: Lpn) -> Option<(Write, u64)> {
        let place = self.behind.iter().position(|(write, _)| write.page == unit)?;
        (!self.modifies_unit(unit)).then(|| self.behind.remove(place))
    }

    /// Writes that have left the write cache for one of `pages`, and whose unit is being read, are not to be
    /// made: those.
    pub(crate) fn forget(&mut self, pages: &Range<u32>) -> Vec<Write> {
        let mut gone = Vec::new();
        for (index, slot) in (0..).zip(&self.modifying) {
            let write = slot.filter(|write| write.has_left_cache(pages));
            if let Some(write) = write.filter(|_| !self.forgotten.contains(&index)) {
                gone.push(write);
                self.forgotten.push(index);
            }
        }
        self.behind.retain(|(write, _)| {
            let stays = !write.has_left_cache(pages);
            gone.extend((!stays).then_some(*write));
            stays
        });
        gone
    }

    /// Whether writes wait for units that are read to be modified.
    pub(crate) fn modifies(&self) -> bool {
        self.modifying.iter().any(Option::is_some) || !self.behind.is_empty()
    }

    /// Whether `unit` is.
    pub(crate) fn modifies_unit(&self, unit: Lpn) -> bool {
        self.modifying.iter().flatten().any(|write| write.page == unit)
    }

    /// The untimed gear follows: nobody waits any more. The writes whose units were being read, and those behind them.
    pub(crate) fn end(&mut self) -> Vec<Write> {
        let pages = self.open.iter_mut().chain(&mut self.under_way);
        pages.for_each(|page| *page = Page::default());
        self.unused = (0..self.under_way.len() as u32).collect();
        self.drains.clear();
        self.hurry = false;
        let forgotten = std::mem::take(&mut self.forgotten);
        let writes = (0..).zip(self.modifying.drain(..));
        let behind = self.behind.drain(..).map(|(write, _)| write);
        writes
            .filter(|(index, _)| !forgotten.contains(index))
            .filter_map(|(_, write)| write)
            .chain(behind)
            .collect()
    }
}
