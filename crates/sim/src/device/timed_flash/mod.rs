//! Flash operations on the event timeline: issued on request of an FTL, reported when they end.

mod ops;
mod page_buffer;
mod prerequisites;
mod records;

use std::hint::cold_path;
use std::marker::PhantomData;

use crate::device::event::{CompletionTarget, EventTag};
use crate::device::page_buffer::PageBuffer;
use crate::flash::contents::{Defect, Origin};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};
use crate::flash::media::{CollectMedia, Flash, Media};
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Timeline};

/// Flash in timed mode: requested operations are issued at `at`.
pub(crate) struct TimedFlash<'a, M: FastPath = AllFeatures> {
    flash: &'a mut Flash,
    events: &'a mut Timeline<EventTag>,
    /// Page buffers, if the mapping unit is smaller than a flash page.
    gather: Option<&'a mut PageBuffer>,
    /// The moved unit was read together with another one.
    pub(crate) is_shared_read: bool,
    /// Write-through: a host unit waits until it is on flash.
    pub(crate) write_through: bool,
    /// Purpose of page moves.
    pub(crate) moves: Purpose,
    /// Number of transfers of a page read: a unit, sectors, or the whole page.
    units_read: u16,
    at: u64,
    target: CompletionTarget,
    /// Bytes that a read sends over the host link.
    read_bytes: u64,
    /// Operations that precede the read or program of a host page, and their delay.
    before: Vec<Op<EventTag>>,
    later: u64,
    /// The next logical page to be programmed, and the open block of its die that it goes to.
    page: Option<Lpn>,
    role: u8,
    make: PhantomData<M>,
}

impl<'a> TimedFlash<'a> {
    #[inline]
    pub(crate) fn new(
        flash: &'a mut Flash,
        events: &'a mut Timeline<EventTag>,
        at: u64,
        target: CompletionTarget,
    ) -> TimedFlash<'a> {
        TimedFlash::for_path(flash, events, at, target)
    }
}

impl<'a, M: FastPath> TimedFlash<'a, M> {
    /// Like [`TimedFlash::new`], for a given [`FastPath`].
    #[inline(always)]
    pub(crate) fn for_path(
        flash: &'a mut Flash,
        events: &'a mut Timeline<EventTag>,
        at: u64,
        target: CompletionTarget,
    ) -> TimedFlash<'a, M> {
        let units_read = events.timing.read_transfers;
        let (is_shared_read, write_through, read_bytes, before) = (false, false, 0, Vec::new());
        TimedFlash {
            flash,
            events,
            gather: None,
            is_shared_read,
            write_through,
            moves: Purpose::Relocation,
            units_read,
            at,
            target,
            read_bytes,
            before,
            later: 0,
            page: None,
            role: 0,
            make: PhantomData,
        }
    }

    /// Add page buffers.
    #[inline]
    pub(crate) fn with_page_buffer(self, gather: Option<&'a mut PageBuffer>) -> TimedFlash<'a, M> {
        TimedFlash { gather, ..self }
    }

    /// Set the number of bytes that the read sends to the host.
    #[inline]
    pub(crate) fn with_host_transfer(self, read_bytes: u64) -> TimedFlash<'a, M> {
        let units_read = self.events.transfers_of(read_bytes);
        TimedFlash { read_bytes, units_read, ..self }
    }

    /// Read `from` and `more_units` more units of the same flash page, which were counted.
    pub(crate) fn read_together(mut self, from: PageAddress, more_units: u16) {
        if self.events.timing.read_transfers == 1 {
            self.units_read += more_units;
        }
        self.read(from);
    }

    /// Answer a read of a page that was never written, without flash.
    pub(crate) fn answer_unwritten(mut self) {
        let op = Op { link_bytes: self.read_bytes as u32, ..self.target.op() };
        self.issue(op);
    }

    /// Issue `op` after the operations that precede it.
    #[inline(always)]
    fn issue(&mut self, op: Op<EventTag>) {
        if self.before.is_empty() {
            self.events.issue_of::<M>(self.at, op);
        } else {
            self.events.issue_chain(self.at + self.later, self.at, &self.before, op);
        }
    }

    /// Read a unit for a partial write; report the end to the target.
    pub(crate) fn modify(&mut self, from: PageAddress) {
        self.flash.read_to_modify(from);
        self.issue_retries(from, Purpose::HostWrite);
        let CompletionTarget { token, report, account } = self.target;
        let read = self.read_op(from, Purpose::HostWrite, token);
        let op = Op { report, account, charge_as: Some(Cause::ReadToModify), ..read };
        self.issue(op);
        self.before.clear();
    }
}

impl<M: FastPath> Media for TimedFlash<'_, M> {
    type Path = M;

    #[inline]
    fn set_content(&mut self, page: Option<Lpn>, role: impl FnOnce() -> u8) {
        if !M::MINIMAL && self.events.contents.is_some() {
            (self.page, self.role) = (page, role());
        }
    }

    #[inline]
    fn read(&mut self, from: PageAddress) {
        self.flash.read(from);
        self.issue_retries(from, Purpose::HostRead);
        let failed = std::mem::take(&mut self.flash.read_failed);
        let CompletionTarget { token, report, account } = self.target.failed_if(failed);
        let op = self.read_op(from, Purpose::HostRead, token);
        let op = Op { report, account, link_bytes: self.read_bytes as u32, ..op };
        self.issue(op);
    }

    #[inline(always)]
    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        if !M::MINIMAL && self.gather.is_some() {
            return self.gather(to);
        }
        let programmed = self.flash.program(to, merge_from);
        let writes = self.note(to, None, programmed);
        let CompletionTarget { token, report, account } = self.target;
        if let Some(from) = merge_from {
            self.issue_retries(from, Purpose::HostWrite);
            let read = self.read_op(from, Purpose::HostWrite, token);
            self.before.push(Op { account, charge_as: Some(Cause::ReadToModify), ..read });
        }
        let op = self.program_op(to, Purpose::HostWrite, token);
        let op = Op { writes, ..op };
        if programmed {
            self.issue(Op { report, account, ..op });
        } else {
            cold_path();
            self.before.push(Op { account, charge_as: Some(Cause::Retry), ..op });
        }
        programmed
    }

    #[inline]
    fn program_metadata(&mut self, to: PageAddress) -> bool {
        let programmed = self.flash.program_metadata(to);
        let writes = self.note_metadata(to, programmed);
        let op = self.program_op(to, Purpose::Metadata, self.target.token);
        self.events.issue(self.at, Op { writes, ..op });
        programmed
    }
}

impl<M: FastPath> CollectMedia for TimedFlash<'_, M> {
    fn pad(&mut self, to: PageAddress) {
        self.flash.pad(to);
        self.page = None;
        self.note(to, None, true);
        self.gathered(to, false);
    }

    fn set_slc(&mut self, block: BlockIdx) {
        self.flash.set_slc(block);
    }

    fn count_scrubbed(&mut self) {
        self.flash.count_scrubbed();
        self.moves = Purpose::Scrub;
    }

    fn count_levelled(&mut self) {
        self.flash.count_levelled();
    }

    /// The collection continues when the processor has planned it and its metadata has been read.
    #[inline]
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<PageAddress>) {
        self.flash.begin_collection(victim, metadata);
        self.events.log_collection(self.flash.geometry.plane_of(victim).0, victim.0);
        let planned = self.events.process(self.at, self.events.timing.collect_ns, 0);
        let token = self.target.token;
        match metadata {
            None => self.events.remind(planned, token),
            Some(page) => {
                // The whole page is metadata.
                let transfers = self.events.timing.program_transfers;
                let op = self.read_op(page, self.relocation_purpose(), token);
                let op = Op { transfers, ..op };
                self.flash.retries = 0;
                // A scrub starts at the end of a read, which is known in advance.
                self.events.issue_when(planned, self.events.now(), op);
            }
        }
    }

    #[inline]
    fn read_unneeded(&mut self, from: PageAddress) {
        self.flash.read_unneeded(from);
        self.flash.retries = 0;
    }

    /// The read was charged when it was issued; issue the program now that the data is in memory.
    #[inline(always)]
    fn relocate(&mut self, from: PageAddress, to: PageAddress) -> bool {
        if !M::MINIMAL && self.gather.is_some() {
            return self.gather_moved(from, to);
        }
        let programmed = self.flash.relocate(from, to);
        let writes = self.note(to, Some(Origin::Page(from.page)), programmed);
        self.issue_retries(from, self.relocation_purpose());
        let op = self.program_op(to, self.relocation_purpose(), self.target.token);
        let op = Op { writes, ..op };
        let inside = self.events.timing.copy_back && from.plane == to.plane;
        let op = if inside { op.without_transfer() } else { op };
        if M::MINIMAL {
            self.events.issue_of::<M>(self.at, op);
            return programmed;
        }
        self.issue(op);
        self.before.clear();
        programmed
    }

    /// The erase was charged when it was issued; now it has ended.
    #[inline]
    fn erase(&mut self, block: BlockIdx) -> bool {
        if let Some(contents) = &mut self.events.contents {
            contents.decide_erased(block);
        }
        let erased = self.flash.erase(block);
        if !erased {
            self.note_failed_erase(block);
        }
        erased
    }

    fn is_worn(&self, page: PageAddress) -> bool {
        self.flash.is_worn(page)
    }

    fn errors(&self, page: PageAddress) -> u32 {
        self.flash.errors(page)
    }

    fn retire_block(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
    }

    fn retire_page(&mut self, page: PageAddress) {
        self.flash.retire_page(page);
    }

    #[cold]
    fn list_defect(&mut self, defect: Defect, block: BlockIdx) {
        self.note_defect(defect, block);
    }

    fn record_lost_pages(&mut self, pages: u32) {
        self.flash.record_lost_pages(pages);
    }

    #[inline]
    fn look_up_map(&mut self, hit: bool) {
        self.flash.look_up_map(hit);
        if hit && self.events.timing.host_memory_read_ns > 0 {
            self.fetch_entry();
        }
    }

    fn read_mapping(&mut self, from: PageAddress) {
        self.flash.read_mapping(from);
        self.read_map_page(from);
    }

    fn program_mapping(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        let programmed = self.flash.program_mapping(to, merge_from);
        if let Some(from) = merge_from {
            self.read_map_page(from);
        }
        let writes = self.note(to, Some(Origin::Map), programmed);
        let op = self.program_op(to, Purpose::Mapping, self.target.token);
        self.map_op(Op { writes, ..op });
        programmed
    }
}
