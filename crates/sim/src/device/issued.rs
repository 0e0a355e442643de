//! Flash operations on the timeline of events: issued when an FTL asks for them, told when they end.

use crate::device::token::{Target, Token};
use crate::flash::geometry::{BlockIdx, Place};
use crate::flash::media::{CollectMedia, Flash, Media};
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report, Timeline};

/// The timed gear: what is asked for is issued at `at`.
pub(crate) struct Issued<'a> {
    flash: &'a mut Flash,
    events: &'a mut Timeline<Token>,
    at: u64,
    target: Target,
    /// Bytes that a read sends over the host link.
    read_bytes: u64,
    /// What must have ended before the host's page is read or programmed.
    before: Vec<Op<Token>>,
}

impl<'a> Issued<'a> {
    #[inline]
    pub(crate) fn new(
        flash: &'a mut Flash,
        events: &'a mut Timeline<Token>,
        at: u64,
        target: Target,
    ) -> Issued<'a> {
        Issued { flash, events, at, target, read_bytes: 0, before: Vec::new() }
    }

    /// The same, for a read that sends so many bytes to the host.
    #[inline]
    pub(crate) fn sending(self, read_bytes: u64) -> Issued<'a> {
        Issued { read_bytes, ..self }
    }

    /// Nothing was ever written there: the controller answers a read alone.
    pub(crate) fn answer(self) {
        let op = Op { link_bytes: self.read_bytes as u32, ..self.target.op() };
        self.events.issue_after(self.at, &self.before, op);
    }

    /// An operation on the map: the host's page waits for it, a collection does not.
    fn on_map(&mut self, op: Op<Token>) {
        match self.target.account {
            None => self.events.issue(self.at, Op { report: Report::Never, ..op }),
            account => self.before.push(Op { account, lump: Some(Cause::Mapping), ..op }),
        }
    }

    /// What was read is read again, as often as the ECC asked for it; the host's page waits for that.
    #[inline]
    fn read_again(&mut self, from: Place, purpose: Purpose) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            let Target { token, account, .. } = self.target;
            let op = Op::read(from.die, self.read_ns(from), purpose, token);
            let report = Report::Never;
            self.before.push(Op { report, account, lump: Some(Cause::Retry), ..op });
        }
    }

    /// How long the cells of `page` are programmed.
    #[inline]
    fn program_ns(&self, page: Place) -> u64 {
        self.events.timing.cells.program_page(self.flash.geometry.page_in_block(page))
    }

    /// How long the cells of `page` are read.
    #[inline]
    fn read_ns(&self, page: Place) -> u64 {
        self.events.timing.cells.read_page(|| self.flash.geometry.page_in_block(page))
    }
}

impl Media for Issued<'_> {
    #[inline]
    fn read(&mut self, from: Place) {
        self.flash.read(from);
        self.read_again(from, Purpose::HostRead);
        let failed = std::mem::take(&mut self.flash.read_failed);
        let target = if failed { self.target.failed() } else { self.target };
        let Target { token, report, account } = target;
        let read_ns = self.read_ns(from);
        let op = Op::read(from.die, read_ns, Purpose::HostRead, token);
        let op = Op { report, account, link_bytes: self.read_bytes as u32, ..op };
        self.events.issue_after(self.at, &self.before, op);
    }

    #[inline]
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        let programmed = self.flash.program(to, merge_from);
        let Target { token, report, account } = self.target;
        let program_ns = self.program_ns(to);
        if let Some(from) = merge_from {
            self.read_again(from, Purpose::HostWrite);
            let read = Op::read(from.die, self.read_ns(from), Purpose::HostWrite, token);
            self.before.push(Op { account, lump: Some(Cause::ReadToModify), ..read });
        }
        let op = Op::program(to.die, program_ns, Purpose::HostWrite, token);
        if programmed {
            self.events.issue_after(self.at, &self.before, Op { report, account, ..op });
        } else {
            self.before.push(Op { account, lump: Some(Cause::Retry), ..op });
        }
        programmed
    }

    #[inline]
    fn program_metadata(&mut self, to: Place) -> bool {
        let programmed = self.flash.program_metadata(to);
        let program_ns = self.program_ns(to);
        let op = Op::program(to.die, program_ns, Purpose::Metadata, self.target.token);
        self.events.issue(self.at, op);
        programmed
    }
}

impl CollectMedia for Issued<'_> {
    /// The collection goes on when the processor has planned it and its metadata has been read.
    #[inline]
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<Place>) {
        self.flash.begin_collection(victim, metadata);
        self.events.collects(self.flash.geometry.die_of(victim).0, victim.0);
        let planned = self.events.process(self.at, self.events.timing.collect_ns);
        let token = self.target.token;
        match metadata {
            None => self.events.remind(planned, token),
            Some(page) => {
                let read_ns = self.read_ns(page);
                let op = Op::read(page.die, read_ns, Purpose::Relocation, token);
                self.flash.retries = 0;
                self.events.issue_when(planned, self.at, op);
            }
        }
    }

    #[inline]
    fn read_for_nothing(&mut self, from: Place) {
        self.flash.read_for_nothing(from);
        self.flash.retries = 0;
    }

    /// The read was charged when it was issued; the program is issued now that its data is there.
    #[inline]
    fn relocate(&mut self, from: Place, to: Place) -> bool {
        let programmed = self.flash.relocate(from, to);
        self.read_again(from, Purpose::Relocation);
        let (program_ns, token) = (self.program_ns(to), self.target.token);
        let op = Op::program(to.die, program_ns, Purpose::Relocation, token);
        let inside = self.events.timing.copy_back && from.die == to.die;
        let op = if inside { op.inside_the_die() } else { op };
        self.events.issue_after(self.at, &self.before, op);
        self.before.clear();
        programmed
    }

    /// Charged when it was issued; now it has ended.
    #[inline]
    fn erase(&mut self, block: BlockIdx) -> bool {
        self.flash.erase(block)
    }

    fn is_worn(&self, page: Place) -> bool {
        self.flash.is_worn(page)
    }

    fn retire_block(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
    }

    fn retire_page(&mut self, page: Place) {
        self.flash.retire_page(page);
    }

    fn give_up(&mut self, pages: u32) {
        self.flash.give_up(pages);
    }

    #[inline]
    fn look_up_map(&mut self, hit: bool) {
        self.flash.look_up_map(hit);
    }

    fn read_mapping(&mut self, from: Place) {
        self.flash.read_mapping(from);
        let (read_ns, token) = (self.read_ns(from), self.target.token);
        for _ in 0..=std::mem::take(&mut self.flash.retries) {
            self.on_map(Op::read(from.die, read_ns, Purpose::Mapping, token));
        }
    }

    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        let programmed = self.flash.program_mapping(to, merge_from);
        let token = self.target.token;
        if let Some(from) = merge_from {
            let read_ns = self.read_ns(from);
            for _ in 0..=std::mem::take(&mut self.flash.retries) {
                self.on_map(Op::read(from.die, read_ns, Purpose::Mapping, token));
            }
        }
        self.on_map(Op::program(to.die, self.program_ns(to), Purpose::Mapping, token));
        programmed
    }
}
