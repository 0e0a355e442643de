//! The backend of a zoned device: a zone command is accepted or refused on submission; the flash
//! work follows.
//!
//! ```text
//! submitted      the zone's state and write pointer change, or the command is refused
//! data arrives   a unit waits in the zone's buffer for its flash page; the last one sends that to its die
//! reset          every block of the zone that holds anything is erased, all dies at a time
//! finish         the rest of the open flash page, or of the zone, is padded
//! ```
//!
//! **Source**: as the states' (`ftl/zoned.rs`); that a reset costs erases and a finish the programs of
//! the rest: Doekemeijer et al., Performance Characterization of NVMe Flash Devices with Zoned
//! Namespaces (IEEE CLUSTER 2023), for a drive without other published details.
//! **Faithful**: nothing is relocated: only the host's writes and the padding of a finish are
//! programmed.
//! **Simplified**: a zone's buffer keeps its data without power; writes take effect in the order of
//! submission; an append costs as much as a write.
//! Worn flash is re-read and erased more slowly. If an erase fails, its zone is offline from the
//! reset on. The reset itself completes normally; later I/Os that were already accepted fail.
//! **Ambiguous**: a zone command while writes to the zone are in flight. Here it is refused: a host
//! that needs a certain outcome waits for its writes.

use uflip_core::{
    Bytes, Error, Io, Mode, Result, Zone, ZoneLimits, ZoneReport, ZoneState, ZoneStatus,
};

use super::event::{CompletionTarget, DeviceEvent, EventTag, IoIdx};
use super::{AnyBackend, SimDevice};
use crate::device::backend::{Backend, Hardware, Write, no_zones};
use crate::device::timed_flash::TimedFlash;
use crate::flash::geometry::{Geometry, Lpn, PageAddress};
use crate::flash::media::{CollectMedia as _, Flash, Media as _};
use crate::ftl::extent::PageExtent;
use crate::ftl::zoned::{ZoneLayout, ZoneStates, ZonesPart};
use crate::timeline::{Op, Purpose, Timing};

/// Progress of a zone's data.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Content")]
struct ZoneProgress {
    /// Pages accepted, and those of them whose data has not arrived.
    #[serde(rename = "taken")]
    accepted: u32,
    #[serde(rename = "coming")]
    pending: u32,
    /// Pages on flash; the other pages that have arrived wait in the buffer.
    programmed: u32,
    resets: u64,
}

/// The zones and their data.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Zoned")]
pub(crate) struct ZonedBackend {
    layout: ZoneLayout,
    #[serde(rename = "book")]
    states: ZoneStates,
    contents: Vec<ZoneProgress>,
}

/// Work of a die for a zone command. The NAND state already includes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ZoneWork {
    /// Erase the block that begins here; the number is its extra time compared with a new block.
    Erase(PageAddress, u64),
    /// Program the flash page that ends here.
    Program(PageAddress),
}

impl ZoneWork {
    /// Return the operation of this work; its end is reported to `target`.
    pub(crate) fn op(
        self,
        geometry: &Geometry,
        timing: &Timing,
        target: CompletionTarget,
    ) -> Op<EventTag> {
        match self {
            ZoneWork::Program(address) => program_op(address, geometry, timing, target),
            ZoneWork::Erase(first, extra_ns) => {
                let erase_ns = timing.erase_ns + extra_ns;
                let die = geometry.die_at(first);
                report_to(Op::inside(die, erase_ns, Purpose::Erase, target.token), target).on(first)
            }
        }
    }
}

impl ZonedBackend {
    pub(crate) fn new(geometry: Geometry, part: ZonesPart) -> ZonedBackend {
        let layout = ZoneLayout::new(geometry, part);
        let (zones, capacity) = (layout.zones(), layout.capacity());
        ZonedBackend {
            states: ZoneStates::new(zones, capacity, part.max_open_zones, part.max_active_zones),
            contents: vec![ZoneProgress::default(); zones as usize],
            layout,
        }
    }

    /// Return the limits common to all zones.
    fn limits(&self) -> ZoneLimits {
        let ZonesPart { zone_bytes, max_open_zones, max_active_zones, .. } = *self.layout.part();
        ZoneLimits { zone_bytes, max_open_zones, max_active_zones }
    }

    /// Return the state of every zone.
    pub(crate) fn report(&self, page_bytes: u64) -> ZoneReport {
        let bytes = |pages: u32| Bytes(u64::from(pages) * page_bytes);
        let zone = |number| {
            let start = bytes(number * self.layout.size());
            Zone {
                start_bytes: start,
                capacity_bytes: bytes(self.layout.capacity()),
                write_pointer_bytes: Bytes(start.0 + bytes(self.states.pointer(number)).0),
                state: self.states.state(number),
                resets: Some(self.contents[number as usize].resets),
            }
        };
        ZoneReport { limits: self.limits(), zones: (0..self.layout.zones()).map(zone).collect() }
    }

    /// Accept `io` if its zone accepts it: an append becomes a write at its assigned address.
    ///
    /// # Errors
    /// The error of the standard otherwise.
    pub(crate) fn admit(&mut self, io: &Io, page_bytes: u64) -> Result<Io> {
        let first = Lpn((io.offset.0 / page_bytes) as u32);
        let (zone, page) = self.layout.zone_of(first);
        let location = format!("zone {zone}, byte {} of it", u64::from(page) * page_bytes);
        let refused = |error: Error| error.at(&location);
        match io.mode {
            Mode::Read => {
                let last = Lpn(((io.offset.0 + io.size.0 - 1) / page_bytes) as u32);
                let offline = |zone| self.states.state(zone) == ZoneState::Offline;
                if (zone..=self.layout.zone_of(last).0).any(offline) {
                    return Err(refused(ZoneStatus::Offline.error("read")));
                }
                Ok(*io)
            }
            Mode::Write | Mode::Append => {
                let pages = (io.size.0 / page_bytes) as u32;
                let at = (io.mode == Mode::Write).then_some(page);
                let outcome = self.states.write(zone, at, pages);
                let at = outcome.map_err(|status| refused(status.error(io.mode.name())))?;
                let content = &mut self.contents[zone as usize];
                content.accepted += pages;
                content.pending += pages;
                let offset = u64::from(zone * self.layout.size() + at) * page_bytes;
                Ok(Io { offset: Bytes(offset), mode: Mode::Write, ..*io })
            }
            Mode::Trim => Err(refused(
                Error::usage("A zone cannot be deallocated in part")
                    .got(format!("a trim of {}", io.size))
                    .action("reset the zone"),
            )),
            mode => {
                let whole = u64::from(self.layout.size()) * page_bytes;
                if page != 0 || io.size.0 != whole {
                    return Err(refused(
                        Error::usage(format!("A {} must cover exactly one zone", mode.name()))
                            .got(format!("{} bytes at byte {}", io.size.0, io.offset.0))
                            .allowed(format!("{whole} bytes at a multiple of them"))
                            .action("give the start of a zone and its size"),
                    ));
                }
                if self.contents[zone as usize].pending > 0 {
                    return Err(refused(
                        Error::usage(format!("A {} of a zone with writes in flight", mode.name()))
                            .got("writes to it that have not ended")
                            .action("wait for them"),
                    ));
                }
                let outcome = self.states.manage(zone, mode);
                outcome.map_err(|status| refused(status.error(mode.name())))?;
                self.note(zone, mode);
                Ok(*io)
            }
        }
    }

    /// Update the zone's contents for an accepted command.
    fn note(&mut self, zone: u32, mode: Mode) {
        let content = &mut self.contents[zone as usize];
        match mode {
            Mode::Reset => {
                let was_used = content.accepted > 0 || content.programmed > 0;
                let resets = content.resets + u64::from(was_used);
                *content = ZoneProgress { resets, ..ZoneProgress::default() };
            }
            Mode::Finish => {
                content.programmed = self.layout.finished(content.accepted);
            }
            _ => {}
        }
    }

    /// Do the zone command `io`, which was accepted; return the flash work.
    pub(crate) fn manage(&mut self, io: &Io, flash: &mut Flash) -> Vec<ZoneWork> {
        let page_bytes = u64::from(flash.geometry.shape().page_bytes);
        let (zone, _) = self.layout.zone_of(Lpn((io.offset.0 / page_bytes) as u32));
        match io.mode {
            Mode::Reset => self.erase(zone, flash),
            Mode::Finish => self.pad(zone, flash),
            _ => Vec::new(),
        }
    }

    /// Erase the zone's blocks that hold anything.
    fn erase(&mut self, zone: u32, flash: &mut Flash) -> Vec<ZoneWork> {
        let mut work = Vec::new();
        let mut is_lost = false;
        for block in self.layout.blocks(zone) {
            if !flash.nand.is_erased(block) {
                work.push(ZoneWork::Erase(
                    flash.geometry.address_at(block, 0),
                    flash.erase_extra_ns(block),
                ));
                is_lost |= !flash.erase(block);
            }
        }
        if is_lost {
            self.states.lose(zone);
        }
        work
    }

    /// Pad the open flash page, or the rest of the zone. The flash state determines what is
    /// missing, because other commands may have been accepted since.
    fn pad(&mut self, zone: u32, flash: &mut Flash) -> Vec<ZoneWork> {
        let from = self.layout.blocks(zone).map(|block| flash.nand.next_page(block)).sum();
        let end = self.layout.finished(from);
        let mut work = Vec::new();
        for page in from..end {
            let address = self.layout.address_of(zone, page);
            flash.pad(address);
            if flash.geometry.ends_flash_page(address.page) {
                work.push(ZoneWork::Program(address));
            }
        }
        work
    }

    /// Return the address of `page` on flash; `None` if it was never written or is buffered.
    #[inline]
    pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let (zone, page) = self.layout.zone_of(page);
        let ZoneProgress { accepted: taken, programmed, .. } = self.contents[zone as usize];
        (page < programmed.min(taken)).then(|| self.layout.address_of(zone, page))
    }

    /// Return whether the zone of `page` was lost by an earlier reset.
    pub(crate) fn is_lost(&self, page: Lpn) -> bool {
        self.states.state(self.layout.zone_of(page).0) == ZoneState::Offline
    }

    /// Add `page` to the buffer; if it fills a flash page, return its address for the program.
    #[inline]
    fn take(&mut self, page: Lpn, flash: &mut Flash) -> Option<PageAddress> {
        let (zone, page) = self.layout.zone_of(page);
        let address = self.layout.address_of(zone, page);
        flash.program(address, None);
        let content = &mut self.contents[zone as usize];
        content.pending -= 1;
        let full = flash.geometry.ends_flash_page(address.page);
        if full {
            content.programmed = page + 1;
        }
        full.then_some(address)
    }
}

/// Return a program of the flash page that ends with `address`; its end is reported to `target`.
#[inline]
fn program_op(
    address: PageAddress,
    geometry: &Geometry,
    timing: &Timing,
    target: CompletionTarget,
) -> Op<EventTag> {
    let cell_ns = timing.cells.program_page(geometry.flash_page_in_block(address));
    let transfers = timing.program_transfers;
    let die = geometry.die_at(address);
    let op = Op { transfers, ..Op::program(die, cell_ns, Purpose::HostWrite, target.token) };
    report_to(op, target).on(address)
}

#[inline]
fn report_to(op: Op<EventTag>, target: CompletionTarget) -> Op<EventTag> {
    let CompletionTarget { report, account, .. } = target;
    Op { report, account, ..op }
}

impl Backend for ZonedBackend {
    const PLANS_WHOLE_WRITES: bool = false;

    #[inline]
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    ) {
        let location = self.lookup(page);
        let mut media =
            TimedFlash::new(hardware.flash, hardware.events, at, target).with_host_transfer(bytes);
        match location {
            Some(from) => media.read(from),
            None => media.answer_unwritten(),
        }
    }

    #[inline]
    fn write(&mut self, write: &mut Write, at: u64, hardware: &mut Hardware<'_>) {
        if self.is_lost(write.page) {
            self.contents[self.layout.zone_of(write.page).0 as usize].pending -= 1;
            return hardware.events.end(at, at, write.target.failed().op());
        }
        match self.take(write.page, hardware.flash) {
            None => hardware.events.end(at, at, write.target.op()),
            Some(location) => {
                let Hardware { flash, events } = hardware;
                events
                    .issue(at, program_op(location, &flash.geometry, &events.timing, write.target));
            }
        }
    }

    fn handle_event(&mut self, event: DeviceEvent, _at: u64, _hardware: &mut Hardware<'_>) {
        unreachable!("{event:?} is not an event of a zone")
    }

    fn begin_idle(&mut self, _now: u64, _until: u64, _hardware: &mut Hardware<'_>) {}

    fn fail_stuck_ios(&mut self, _at: u64, _hardware: &mut Hardware<'_>) {
        unreachable!("an accepted zone command always completes")
    }

    /// An accepted I/O fails if its zone is lost meanwhile.
    fn read_only_error(&self) -> Error {
        ZoneStatus::Offline.error("command")
    }

    fn end_untimed(&mut self, _flash: &mut Flash) {}

    fn admit_untimed(&mut self, io: &Io, page_bytes: u64) -> Result<Io> {
        self.admit(io, page_bytes)
    }

    fn manage_untimed(&mut self, io: &Io, flash: &mut Flash) {
        self.manage(io, flash);
    }

    #[inline]
    fn write_untimed(&mut self, page: Lpn, _extent: &PageExtent, flash: &mut Flash) {
        self.take(page, flash);
    }

    #[inline]
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash) {
        if let Some(from) = self.lookup(page) {
            flash.read(from);
        }
    }

    fn trim(&mut self, _page: Lpn) {
        unreachable!("a zoned device refuses trims")
    }
}

// Zone requests at the host interface, and zone reports.

impl SimDevice {
    /// Return whether the device has zones.
    #[must_use]
    pub fn has_zones(&self) -> bool {
        matches!(self.backend, AnyBackend::Zoned(_))
    }

    /// Return the current state of the zones.
    pub(super) fn zone_report(&self) -> Option<ZoneReport> {
        let AnyBackend::Zoned(zoned) = &self.backend else { return None };
        Some(zoned.report(u64::from(self.flash.geometry.shape().page_bytes)))
    }

    /// Accept a request to a zone.
    ///
    /// # Errors
    /// The device has no zones, or the zone does not accept the request.
    #[inline(never)]
    pub(super) fn admit(&mut self, io: &Io) -> Result<Io> {
        let page_bytes = u64::from(self.flash.geometry.shape().page_bytes);
        let AnyBackend::Zoned(zoned) = &mut self.backend else {
            return Err(no_zones().at(&self.info.url).got(io.mode.name()));
        };
        zoned.admit(io, page_bytes)
    }

    /// Do a zone command that the controller has processed. The I/O ends with the last flash
    /// operation.
    #[cold]
    pub(super) fn zone_command_accepted(&mut self, index: IoIdx, io: &Io, at: u64) {
        self.events.advance_to(at);
        self.host.command_processed(index, at);
        let SimDevice { backend, flash, events, host, .. } = self;
        let AnyBackend::Zoned(zoned) = backend else {
            unreachable!("a zone command is admitted only on a zoned device")
        };
        let first = Lpn((io.offset.0 / u64::from(flash.geometry.shape().page_bytes)) as u32);
        let lost = zoned.is_lost(first);
        let work = if lost { Vec::new() } else { zoned.manage(io, flash) };
        host.has_pages(index, work.len());
        if work.is_empty() {
            let page = host.page(index, Lpn(0), at, &mut events.accounts);
            if lost {
                host.fail(page);
            }
            return self.end_page::<crate::flash::fast_path::AllFeatures>(page, at);
        }
        for work in work {
            let page = host.page(index, Lpn(0), at, &mut events.accounts);
            events.assign_account(page.account(), || host.number_of(index));
            let op = work.op(&flash.geometry, &events.timing, CompletionTarget::host(page));
            events.issue(at, op);
        }
    }
}
