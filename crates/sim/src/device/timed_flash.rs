//! Flash operations on the event timeline: issued on request of an FTL, reported when they end.

use std::hint::cold_path;
use std::marker::PhantomData;

use super::event::{CompletionTarget, DeviceEvent, EventTag};
use crate::device::page_buffer::PageBuffer;
use crate::flash::contents::{Defect, Origin};
use crate::flash::fast_path::{AllFeatures, FastPath};
use crate::flash::geometry::{BlockIdx, DieIdx, Lpn, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::{CollectMedia, Flash, Media};
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report, Timeline};

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

// Timeline operations on pages: cell times, dies and purposes.

impl<M: FastPath> TimedFlash<'_, M> {
    /// Return the program time of the cells of `page`.
    #[inline]
    fn program_ns(&self, page: PageAddress) -> u64 {
        if !M::MINIMAL
            && let Some((_, program_ns)) = self.flash.slc_ns(page.block)
        {
            return program_ns;
        }
        let geometry = &self.flash.geometry;
        let page = if M::MINIMAL {
            geometry.page_in_block(page)
        } else {
            geometry.flash_page_in_block(page)
        };
        self.events.timing.cells.program_page(page)
    }

    /// Return the read time of the cells of `page`.
    #[inline]
    fn read_ns(&self, page: PageAddress) -> u64 {
        if let Some((read_ns, _)) = self.flash.slc_ns(page.block) {
            return read_ns;
        }
        self.events.timing.cells.read_page(|| self.flash.geometry.flash_page_in_block(page))
    }

    /// Return the purpose of page moves.
    #[inline(always)]
    fn relocation_purpose(&self) -> Purpose {
        if M::MINIMAL { Purpose::Relocation } else { self.moves }
    }

    /// Add the page to `op`, if operations are recorded.
    #[inline(always)]
    fn op_at(address: PageAddress, op: Op<EventTag>) -> Op<EventTag> {
        if M::MINIMAL { op } else { op.on(address) }
    }

    #[inline(always)]
    fn die_at(&self, address: PageAddress) -> DieIdx {
        self.flash.geometry.die_at_of::<M>(address)
    }

    /// Return a read of `from`.
    #[inline]
    fn read_op(&self, from: PageAddress, purpose: Purpose, token: EventTag) -> Op<EventTag> {
        let transfers = self.units_read;
        let op = Op::read(self.die_at(from), self.read_ns(from), purpose, token);
        Self::op_at(from, Op { transfers, ..op })
    }

    /// Return a program of the whole flash page of `to`.
    #[inline(always)]
    fn program_op(&self, to: PageAddress, purpose: Purpose, token: EventTag) -> Op<EventTag> {
        let transfers = if M::MINIMAL { 1 } else { self.events.timing.program_transfers };
        let op = Op::program(self.die_at(to), self.program_ns(to), purpose, token);
        Self::op_at(to, Op { transfers, ..op })
    }
}

// Operations that precede the read or program of a host page: map reads and read retries.

/// Transfer size of the host's memory over the link: one cache line.
const HOST_LINE_BYTES: u32 = 64;

impl<M: FastPath> TimedFlash<'_, M> {
    /// Do a map operation: a host page waits for it, a collection does not.
    fn map_op(&mut self, op: Op<EventTag>) {
        match self.target.account {
            None => self.events.issue(self.at, Op { report: Report::Never, ..op }),
            account => self.before.push(Op { account, charge_as: Some(Cause::Mapping), ..op }),
        }
    }

    /// Read a page of the map, including ECC retries.
    fn read_map_page(&mut self, from: PageAddress) {
        let transfers = self.events.timing.program_transfers;
        let op = Op { transfers, ..self.read_op(from, Purpose::Mapping, self.target.token) };
        for _ in 0..=std::mem::take(&mut self.flash.retries) {
            self.map_op(op);
        }
    }

    /// Fetch a map entry from host memory: one cache line over the link, after the host's latency.
    #[cold]
    fn fetch_entry(&mut self) {
        let CompletionTarget { token, account, .. } = self.target;
        self.later = self.events.timing.host_memory_read_ns;
        self.events.charge_account(account, Cause::Mapping, self.later);
        let (report, lump) = (Report::Never, Some(Cause::Mapping));
        let op = Op { link_bytes: HOST_LINE_BYTES, ..Op::without_flash_time(token) };
        self.before.push(Op { report, account, charge_as: lump, ..op });
    }

    /// Repeat the last read as often as the ECC requires; the host page waits for that.
    #[inline(always)]
    fn issue_retries(&mut self, from: PageAddress, purpose: Purpose) {
        if !M::MINIMAL && self.flash.retries > 0 {
            self.retry(from, purpose);
        }
    }

    #[cold]
    fn retry(&mut self, from: PageAddress, purpose: Purpose) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            let CompletionTarget { token, account, .. } = self.target;
            let op = self.read_op(from, purpose, token);
            let report = Report::Never;
            self.before.push(Op { report, account, charge_as: Some(Cause::Retry), ..op });
        }
    }

    // Units in the page buffer, which is programmed when it is full.

    /// Handle a unit added to the page buffer: program the flash page if the unit fills it.
    #[inline(always)]
    fn gathered(&mut self, to: PageAddress, relocated: bool) {
        if self.flash.geometry.ends_flash_page(to.page) {
            self.program_gathered(to.page, to.block, to.plane, relocated);
        }
    }

    /// Program the flash page that ends with `page`. The address is passed in parts, as in
    /// the records below.
    #[inline(never)]
    fn program_gathered(&mut self, page: Ppn, block: BlockIdx, plane: PlaneIdx, relocated: bool) {
        let to = PageAddress { page, block, plane };
        let writes = self.events.contents.as_mut().map_or(0, |contents| contents.program(to));
        let purpose = if relocated { self.relocation_purpose() } else { Purpose::HostWrite };
        let gather = self.gather.as_mut().expect("the device has page buffers");
        let op = match gather.send_to_flash(to, relocated) {
            None => self.program_op(to, purpose, self.target.token),
            Some((number, last)) => {
                let token = DeviceEvent::GatheredPageProgrammed(number).into();
                let op = self.program_op(to, Purpose::HostWrite, token);
                let account = last.and_then(|(target, _)| target.account);
                let since = last.map_or(self.at, |(_, since)| since);
                self.events.charge_account(account, Cause::CacheWait, self.at - since);
                Op { report: Report::AtEnd, account, ..op }
            }
        };
        self.events.issue(self.at, Op { writes, ..op });
    }

    /// Add a host unit to the page buffer; return false if its page cannot be programmed.
    #[inline(always)]
    fn gather(&mut self, to: PageAddress) -> bool {
        let programmed = self.flash.program(to, None);
        self.note(to, None, programmed);
        let fills = self.flash.geometry.ends_flash_page(to.page);
        let gather = self.gather.as_mut().expect("the device has page buffers");
        if programmed && gather.add(to, self.target, self.at, fills || self.write_through) {
            self.events.end(self.at, self.at, self.target.op());
        }
        self.gathered(to, false);
        programmed
    }

    /// Add a relocated unit to the buffer of its new flash page.
    #[inline(always)]
    fn gather_moved(&mut self, from: PageAddress, to: PageAddress) -> bool {
        let programmed = self.flash.relocate(from, to);
        self.note(to, Some(Origin::Page(from.page)), programmed);
        // A unit that was read together with another is also re-read with it.
        if !self.is_shared_read {
            self.issue_retries(from, self.relocation_purpose());
        }
        self.flash.retries = 0;
        if !self.before.is_empty() {
            self.before.drain(..).for_each(|op| self.events.issue(self.at, op));
        }
        self.gathered(to, true);
        programmed
    }

    // Records of programs and erases, kept if power may be cut.

    /// Record the content of `to`, if power may be cut. Return the record of its program; 0 for a
    /// unit of a flash page, which is recorded with the page.
    #[inline]
    fn note(&mut self, to: PageAddress, origin: Option<Origin>, programmed: bool) -> u32 {
        if M::MINIMAL || self.events.contents.is_none() {
            0
        } else {
            cold_path();
            self.record_program(to.page, to.block, to.plane, origin, programmed)
        }
    }

    /// The address is passed in parts: a value just written in parts is slow to read as a whole, and
    /// slower behind a cache miss (store forwarding).
    #[inline(never)]
    fn record_program(
        &mut self,
        page: Ppn,
        block: BlockIdx,
        plane: PlaneIdx,
        origin: Option<Origin>,
        programmed: bool,
    ) -> u32 {
        let to = PageAddress { page, block, plane };
        let Some(contents) = &mut self.events.contents else { return 0 };
        let origin = origin.or(match self.target.account {
            Some(account) => Some(Origin::Account(account.number())),
            None => Some(Origin::Cache),
        });
        let holds = self.page.map(|page| page.0).zip(origin);
        contents.decide(to, holds, self.role, programmed);
        if self.gather.is_some() { 0 } else { contents.program(to) }
    }

    /// Like [`TimedFlash::note`], for a metadata page, which occupies a whole flash page.
    fn note_metadata(&mut self, to: PageAddress, programmed: bool) -> u32 {
        let units = self.flash.geometry.units();
        let Some(contents) = &mut self.events.contents else { return 0 };
        (0..units).for_each(|unit| contents.decide(to.plus_pages(unit), None, 0, programmed));
        contents.program(to)
    }

    /// Record that the erase of `block` has failed.
    #[cold]
    fn note_failed_erase(&mut self, block: BlockIdx) {
        if let Some(contents) = &mut self.events.contents {
            contents.erase_failed(block, self.at);
        }
    }

    /// Program the defect list of the die of `block` with its present content.
    fn note_defect(&mut self, defect: Defect, block: BlockIdx) {
        let contents = self.events.contents.as_mut();
        let nand = &self.flash.nand;
        let listed = contents.and_then(|contents| contents.list(defect, block, nand));
        let Some(writes) = listed else { return };
        let geometry = &self.flash.geometry;
        let die = geometry.die_of(geometry.plane_of(block));
        let program_ns = self.events.timing.cells.program_page(0);
        let transfers = self.events.timing.program_transfers;
        let op = Op::program(die, program_ns, Purpose::Metadata, self.target.token);
        self.events.issue(self.at, Op { transfers, writes, report: Report::Never, ..op });
    }
}
