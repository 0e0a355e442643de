//! What dies do until a device that lost power is ready, on clocks of its own: nothing else goes on.

use crate::collections::bits;
use crate::config::Profile;
use crate::flash::contents::{Contents, Found};
use crate::flash::geometry::{BlockIdx, DieIdx, Place};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::plan::{Cmd, Plan};
use crate::timeline::{DieQueue, Op, Purpose, Report, Timeline, Timing};

/// In which order pages of a block were programmed, as far as that says how many of them have to be looked at.
#[derive(Clone, Copy)]
enum Order {
    /// The first one that is erased says that no other follows.
    Ascending,
    /// The same, but what is where a table says.
    ByTable,
    Any,
}

/// Something that was done to finish what was cut short, and when.
pub(super) struct Done {
    pub(super) what: Cmd,
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Done {
    pub(super) fn is_erase(&self) -> bool {
        matches!(self.what, Cmd::Erase { .. })
    }
}

/// The clocks, and what was done by them.
pub(super) struct Scan<'a> {
    flash: &'a Flash,
    clocks: Timeline<u64>,
    half_erased: Vec<BlockIdx>,
    pub(super) spare_areas: u64,
    pub(super) metadata_pages: u64,
    /// How often the bytes of a spare area are those of a page with it.
    page_transfers: u16,
    order: Order,
    /// When everything so far has ended.
    pub(super) end: u64,
}

impl<'a> Scan<'a> {
    /// Read the spare areas from `at` on.
    pub(super) fn of(
        flash: &'a Flash,
        contents: &Contents,
        profile: &Profile,
        at: u64,
    ) -> Scan<'a> {
        let mut scan = Scan::clocks(flash, profile, at);
        if contents.defects().is_some() {
            scan.read_lists();
        }
        for (block, (found, _)) in (0..).map(BlockIdx).zip(contents.read().blocks) {
            if !contents.is_listed(block) {
                scan.look_at(block, found, contents);
            }
        }
        scan.wait();
        scan
    }

    /// Nothing was done by `at`.
    pub(super) fn clocks(flash: &'a Flash, profile: &Profile, at: u64) -> Scan<'a> {
        let part = profile.power_loss.expect("only then power is lost");
        let timing = profile.timing();
        let at_rate = |rate: u64| u64::from(part.spare_read_bytes) * 1_000_000_000 / rate.max(1);
        let whole = profile.geometry.page_bytes + profile.geometry.spare_bytes;
        let clocks = Timing {
            transfer_ns: at_rate(profile.timing.channel_bytes_per_s),
            transfer_parts: 0,
            bus_ns: at_rate(profile.timing.bus_bytes_per_s),
            die_queue: DieQueue::Fifo,
            cache_program: false,
            in_turn: false,
            ..timing
        };
        let mut scan = Scan {
            flash,
            clocks: Timeline::new(flash.geometry, clocks),
            half_erased: Vec::new(),
            spare_areas: 0,
            metadata_pages: 0,
            page_transfers: whole.div_ceil(part.spare_read_bytes).min(u16::MAX.into()) as u16,
            order: match profile.page_order() {
                PageOrder::Any => Order::Any,
                PageOrder::Ascending if profile.keeps_places() => Order::ByTable,
                PageOrder::Ascending => Order::Ascending,
            },
            end: at,
        };
        scan.clocks.reach(at);
        scan
    }

    /// Every die reads its list of defects, before anything else.
    fn read_lists(&mut self) {
        for die in (0..self.flash.geometry.shape().dies).map(DieIdx) {
            self.metadata_pages += 1;
            let read_ns = self.clocks.timing.cells.read_page(|| 0);
            let op = Op::read(die, read_ns, Purpose::Metadata, 0);
            self.clocks.issue(self.end, Op { transfers: self.page_transfers, ..op });
        }
        self.wait();
    }

    /// The lists of the dies of `blocks` are programmed, once for each.
    pub(super) fn list(&mut self, blocks: &[BlockIdx]) {
        let program_ns = self.clocks.timing.cells.program_page(0);
        for block in blocks {
            let die = self.flash.geometry.die_of(*block);
            let op = Op::program(die, program_ns, Purpose::Metadata, 0);
            let (transfers, report) = (self.page_transfers, Report::AtEnd);
            self.clocks.issue(self.end, Op { transfers, report, ..op });
        }
        self.wait();
    }

    /// Find out what `block` holds.
    fn look_at(&mut self, block: BlockIdx, found: Found, contents: &Contents) {
        let geometry = self.flash.geometry;
        let units = geometry.units();
        if geometry.shape().metadata_pages > 0 {
            let metadata = geometry.place(block, geometry.data_pages());
            if contents.is_readable(metadata.page) {
                self.metadata_pages += 1;
                return self.read(metadata, self.page_transfers);
            }
            self.spare_areas += 1;
            self.read(metadata, 1);
        }
        let programmed = match found {
            Found::Programmed(_) if matches!(self.order, Order::ByTable) => {
                contents.programmed_pages(block)
            }
            Found::Programmed(pages) => pages.min(geometry.data_pages()),
            Found::Erased => 0,
            Found::HalfErased => {
                self.half_erased.push(block);
                0
            }
        };
        let read = match self.order {
            Order::Any => geometry.data_pages(),
            _ => (programmed + units).min(geometry.data_pages()),
        };
        for page in (0..read).step_by(units as usize) {
            self.spare_areas += 1;
            self.read(geometry.place(block, page), 1);
        }
    }

    fn read(&mut self, from: Place, transfers: u16) {
        let read_ns = self.read_ns(from);
        let op = Op::read(from.die, read_ns, Purpose::Metadata, 0).on(from);
        self.clocks.issue(self.end, Op { transfers, ..op });
    }

    fn read_ns(&self, from: Place) -> u64 {
        let geometry = &self.flash.geometry;
        let cells = &self.clocks.timing.cells;
        let usual = || cells.read_page(|| geometry.flash_page_in_block(from));
        self.flash.slc_ns(from.block).map_or_else(usual, |(read_ns, _)| read_ns)
    }

    /// Everything so far ends.
    fn wait(&mut self) {
        self.clocks.allow(u64::MAX);
        while let Some((at, _)) = self.clocks.next(u64::MAX) {
            self.end = self.end.max(at);
        }
        self.clocks.reach(self.end);
    }

    /// Erase what was half erased, once all is read; returns when each of these ends.
    pub(super) fn erase_again(&mut self) -> Vec<(BlockIdx, u64)> {
        let begin = self.end;
        for block in std::mem::take(&mut self.half_erased) {
            let die = self.flash.geometry.die_of(block);
            let erase_ns = self.clocks.timing.erase_ns + self.flash.erase_extra_ns(block);
            let op = Op::inside(die, erase_ns, Purpose::Erase, u64::from(block.0));
            self.clocks.issue(begin, op.on(self.flash.geometry.place(block, 0)));
        }
        let mut ends = Vec::new();
        while let Some((at, block)) = self.clocks.next(u64::MAX) {
            ends.push((BlockIdx(block as u32), at));
            self.end = self.end.max(at);
        }
        self.clocks.reach(self.end);
        ends
    }

    /// Do what `plan` says: blocks are erased together, pages copied one after the other.
    pub(super) fn carry_out(&mut self, plan: &Plan) -> Vec<Done> {
        let mut done = Vec::new();
        let mut erases = Vec::new();
        for command in plan.commands() {
            match *command {
                Cmd::Erase { .. } => erases.push(*command),
                Cmd::Copy { from, to } => {
                    self.erase_all(&mut erases, &mut done);
                    self.copy(from, to, &mut done);
                }
                Cmd::CopySet { from, to, set } => {
                    self.erase_all(&mut erases, &mut done);
                    let words = plan.words(set);
                    for page in bits::members(words, 0, 64 * words.len()) {
                        let (from, to) = (from.behind(page as u32), to.behind(page as u32));
                        self.copy(from, to, &mut done);
                    }
                }
                Cmd::Count(_) | Cmd::Barrier => {}
                other => unreachable!("{other:?} is not done to recover"),
            }
        }
        self.erase_all(&mut erases, &mut done);
        done
    }

    fn erase_all(&mut self, erases: &mut Vec<Cmd>, done: &mut Vec<Done>) {
        let begin = self.end;
        let blocks = erases.iter().filter_map(|command| match command {
            Cmd::Erase { block, .. } => Some(*block),
            _ => None,
        });
        self.half_erased.extend(blocks);
        erases.clear();
        for (block, end) in self.erase_again() {
            done.push(Done { what: Cmd::Erase { block, extra_ns: 0 }, begin, end });
        }
    }

    fn copy(&mut self, from: Place, to: Place, done: &mut Vec<Done>) {
        let (begin, transfers) = (self.end, self.page_transfers);
        let read = Op::read(from.die, self.read_ns(from), Purpose::Merge, 0);
        let page = self.flash.geometry.page_in_block(to);
        let program_ns = self.clocks.timing.cells.program_page(page);
        let program = Op::program(to.die, program_ns, Purpose::Merge, 0);
        let program = Op { transfers, report: Report::AtEnd, ..program };
        self.clocks.issue_after(begin, &[Op { transfers, ..read }], program);
        self.wait();
        done.push(Done { what: Cmd::Copy { from, to }, begin, end: self.end });
    }

    /// So many pages that capacitors have saved are read from where they are, and programmed, the dies in turn.
    pub(super) fn put_back(&mut self, pages: usize) {
        let geometry = self.flash.geometry;
        let (page_transfers, dies) = (self.page_transfers, geometry.shape().dies);
        let flash_pages = pages.div_ceil(geometry.units() as usize) as u32;
        let program_ns = self.clocks.timing.cells.program_page(0);
        let read_ns = self.clocks.timing.cells.read_page(|| 0);
        for page in 0..flash_pages {
            let die = DieIdx(page % dies);
            let transfers = page_transfers;
            let read = Op { transfers, ..Op::read(die, read_ns, Purpose::Metadata, 0) };
            let program = Op::program(die, program_ns, Purpose::Metadata, 0);
            let program = Op { transfers, report: Report::AtEnd, ..program };
            self.clocks.issue_after(self.end, &[read], program);
        }
        self.wait();
    }
}
