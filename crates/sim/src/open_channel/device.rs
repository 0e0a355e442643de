//! A simulated open-channel SSD behind the `Device` trait: vectors, statuses and the virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde_json::Map;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, mix, uniform};
use uflip_core::{
    AddressStatus, Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, FlashGeometry,
    FlashIo, FlashOp, FlashStatus, Nanos, Ppa, Result, Ticket,
};

use super::breakdown::FlashBreakdown;
use super::clocks::Clocks;
pub use super::media::BlockState;
use super::media::Media;
use super::profile::{MediaPart, OpenChannelProfile};
use crate::config::{CLOCK_END_NS, clock_ran_out};

type FlashCompletion = Completion<FlashBreakdown, FlashStatus>;

/// An open-channel SSD in virtual time. A copy is a device of its own in the same state.
#[derive(Clone, Debug)]
pub struct OpenChannelDevice {
    info: DeviceInfo,
    media: Media,
    part: MediaPart,
    clocks: Clocks,
    /// For what is drawn anew each time: retries.
    rng: Xoshiro256PlusPlus,
    now: u64,
    tickets: u64,
    /// By time of completion, then by ticket.
    pending: BinaryHeap<Reverse<(u64, Ticket, usize)>>,
    /// What is pending, at the place that its entry names; free places are used again.
    completions: Vec<FlashCompletion>,
    free_places: Vec<usize>,
    counters: Counters,
}

impl OpenChannelDevice {
    /// Make the device that `profile` describes.
    ///
    /// # Errors
    /// Numbers that make no law of wear.
    pub fn new(name: &str, profile: &OpenChannelProfile) -> Result<OpenChannelDevice> {
        let geometry = profile.geometry();
        let (channels, luns) = (geometry.channels as usize, geometry.luns_per_channel as usize);
        let (erases, seed) = (profile.state.erases, profile.state.seed);
        Ok(OpenChannelDevice {
            info: OpenChannelDevice::inspect(name, profile),
            media: Media::new(geometry, profile.laws()?, erases, seed),
            part: profile.media.clone(),
            clocks: Clocks::new(profile.times(), channels, luns),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0,
            tickets: 0,
            pending: BinaryHeap::new(),
            completions: Vec::new(),
            free_places: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// What is known of the device that `profile` describes, without making it.
    #[must_use]
    pub fn inspect(name: &str, profile: &OpenChannelProfile) -> DeviceInfo {
        let geometry = profile.geometry();
        let mut details = Map::new();
        details.insert("interface".into(), "open_channel".into());
        details.insert("geometry".into(), serde_json::to_value(geometry).expect("plain data"));
        details.insert("profile".into(), serde_json::to_value(profile).expect("plain data"));
        DeviceInfo {
            url: format!("sim:{name}"),
            kind: DeviceKind::Sim,
            simulated: true,
            model: name.into(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: Bytes(geometry.capacity_bytes()),
            sector_bytes: Bytes(u64::from(geometry.sector_bytes)),
            clock: "virtual",
            io: "virtual".into(),
            data: "none",
            details,
        }
    }

    /// How many of what.
    #[must_use]
    pub fn geometry(&self) -> &FlashGeometry {
        self.media.geometry()
    }

    /// What is known of the block of `at`.
    ///
    /// # Errors
    /// The address lies outside the device.
    pub fn block_state(&self, at: Ppa) -> Result<BlockState> {
        self.geometry().check(at)?;
        Ok(self.media.state(at))
    }

    /// Serve `io`, submitted now: when it ends, how it came to that, and how each address ended.
    #[inline]
    fn serve(&mut self, io: &FlashIo) -> (u64, FlashBreakdown, FlashStatus) {
        let ppas = io.ppas();
        let mut status = FlashStatus::default();
        let (mut end, mut slowest) = (0, FlashBreakdown::default());
        let mut from = 0;
        while from < ppas.len() {
            let to = from + group_length(io.op(), &ppas[from..]);
            let mut path = FlashBreakdown::default();
            let ended = match io.op() {
                FlashOp::Write => self.write(ppas, from..to, &mut status, &mut path),
                FlashOp::Read => self.read(ppas, from..to, &mut status, &mut path),
                FlashOp::Erase => self.erase(ppas[from], from, &mut status, &mut path),
            };
            if ended >= end {
                (end, slowest) = (ended, path);
            }
            from = to;
        }
        (self.clocks.answer(end, &mut slowest), slowest, status)
    }

    fn write(
        &mut self,
        ppas: &[Ppa],
        range: std::ops::Range<usize>,
        status: &mut FlashStatus,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let group = &ppas[range.clone()];
        let at = group[0];
        let geometry = *self.media.geometry();
        let found = if !group.iter().all(|ppa| geometry.contains(*ppa)) {
            AddressStatus::OutOfRange
        } else if !is_whole_page(&geometry, group) {
            AddressStatus::PartialPage
        } else {
            self.media.program(at, self.now)
        };
        if found != AddressStatus::Done {
            for (index, ppa) in range.zip(group) {
                // In a page with an address outside, the others are not to blame: they are partial.
                let inside = found == AddressStatus::OutOfRange && geometry.contains(*ppa);
                status.set(index, if inside { AddressStatus::PartialPage } else { found });
            }
            return self.clocks.submit(self.now, path);
        }
        self.counters.host_pages_written += u64::from(geometry.planes);
        self.counters.pages_programmed += u64::from(geometry.planes);
        let program_ns = program_ns(&self.part, at);
        let ready = self.clocks.take_in(self.now, usize::from(at.channel), path);
        self.clocks.write(at, geometry.write_bytes(), program_ns, ready, path)
    }

    fn read(
        &mut self,
        ppas: &[Ppa],
        range: std::ops::Range<usize>,
        status: &mut FlashStatus,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let geometry = *self.media.geometry();
        let (mut sectors, mut planes, mut at) = (0, 0, ppas[range.start]);
        let (mut plane, mut below, mut lost) = (None, 0, false);
        for index in range {
            let ppa = ppas[index];
            let found = if geometry.contains(ppa) {
                self.media.readable(ppa)
            } else {
                AddressStatus::OutOfRange
            };
            if found != AddressStatus::Done {
                status.set(index, found);
                continue;
            }
            (sectors, at) = (sectors + 1, ppa);
            if plane != Some(ppa.plane) {
                (plane, planes) = (Some(ppa.plane), planes + 1);
                below = self.media.failing_below(ppa, self.now);
            }
            if below > 0 && self.media.draw(ppa) < below {
                status.set(index, AddressStatus::Uncorrectable);
                lost = true;
            }
        }
        if sectors == 0 {
            return self.clocks.submit(self.now, path);
        }
        self.counters.host_pages_read += planes;
        self.counters.pages_read += planes;
        let ready = self.clocks.take_in(self.now, usize::from(at.channel), path);
        let disturbed = self.clocks.is_programming(at, ready);
        // What worn cells lost is given up only when every retry was in vain: reads slow down with wear.
        let retries = match (lost, disturbed) {
            (true, _) => self.part.retries_max,
            (false, true) => self.retries(),
            (false, false) => 0,
        };
        self.counters.read_retries += retries;
        self.clocks.read(at, sectors * u64::from(geometry.sector_bytes), retries, ready, path)
    }

    /// How often a disturbed read is read again.
    fn retries(&mut self) -> u64 {
        let MediaPart { retry_permille, retries_max, .. } = self.part;
        let mut again = || uniform(&mut self.rng, 1000) < retry_permille;
        (0..retries_max).take_while(|_| again()).count() as u64
    }

    fn erase(
        &mut self,
        at: Ppa,
        index: usize,
        status: &mut FlashStatus,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let names_a_block = (at.plane, at.page, at.sector) == (0, 0, 0);
        if !names_a_block || !self.media.geometry().contains(at) {
            status.set(index, AddressStatus::OutOfRange);
            return self.clocks.submit(self.now, path);
        }
        let (found, extra_ns) = self.media.erase(at);
        status.set(index, found);
        if found == AddressStatus::Retired {
            return self.clocks.submit(self.now, path);
        }
        self.counters.blocks_erased += 1;
        let ready = self.clocks.take_in(self.now, usize::from(at.channel), path);
        self.clocks.erase(at, self.part.erase_ns + extra_ns, ready, path)
    }
}

/// How many of the first addresses are served together: those of one page, for a write no more than a
/// page has.
#[inline]
fn group_length(op: FlashOp, ppas: &[Ppa]) -> usize {
    if op == FlashOp::Erase {
        return 1;
    }
    let page = |ppa: &Ppa| (ppa.channel, ppa.lun, ppa.block, ppa.page);
    let first = page(&ppas[0]);
    let mut length = 1;
    while length < ppas.len() && page(&ppas[length]) == first {
        // A second copy of the first address begins a new group: the same page once more.
        if op == FlashOp::Write && ppas[length] == ppas[0] {
            break;
        }
        length += 1;
    }
    length
}

/// Whether `group` has every sector of every plane of a page, in their order.
#[inline]
fn is_whole_page(geometry: &FlashGeometry, group: &[Ppa]) -> bool {
    group.len() == geometry.write_sectors() as usize
        && group.iter().enumerate().all(|(index, ppa)| {
            let number = u32::from(ppa.plane) * geometry.sectors_per_page + u32::from(ppa.sector);
            number as usize == index
        })
}

/// How long the page of `at` takes to program: the same in every block, as wordlines are.
#[inline]
fn program_ns(part: &MediaPart, at: Ppa) -> u64 {
    let lot = mix(u64::from(at.page));
    let low = at.page.is_multiple_of(2);
    if low && part.quick_low_pages > 0 && (lot >> 32).is_multiple_of(part.quick_low_pages.into()) {
        return part.program_quick_ns;
    }
    let middle = if low { part.program_low_ns } else { part.program_high_ns };
    let most = middle * part.program_spread_permille / 1000;
    middle - most + ((u128::from(lot) * u128::from(2 * most + 1)) >> 64) as u64
}

impl Device for OpenChannelDevice {
    type Request = FlashIo;
    type Status = FlashStatus;
    type Breakdown = FlashBreakdown;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn wait_until(&mut self, t: Nanos) {
        self.now = self.now.max(t.0);
    }

    fn submit(&mut self, request: &FlashIo) -> Result<Ticket> {
        if self.now >= CLOCK_END_NS {
            return Err(clock_ran_out().at(&self.info.url));
        }
        let (completed, breakdown, status) = self.serve(request);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let completion = Completion {
            ticket,
            submitted: Nanos(self.now),
            completed: Nanos(completed),
            breakdown,
            status,
        };
        let place = match self.free_places.pop() {
            Some(place) => {
                self.completions[place] = completion;
                place
            }
            None => {
                self.completions.push(completion);
                self.completions.len() - 1
            }
        };
        self.pending.push(Reverse((completed, ticket, place)));
        Ok(ticket)
    }

    #[inline]
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.pending.peek().map(|Reverse((completed, ..))| Nanos(*completed))
    }

    #[inline]
    fn complete(&mut self) -> Result<FlashCompletion> {
        let Reverse((completed, _, place)) = self.pending.pop().expect("something is outstanding");
        self.now = self.now.max(completed);
        self.free_places.push(place);
        Ok(self.completions[place])
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters)
    }

    fn split(&self, _: usize) -> Result<Option<Vec<OpenChannelDevice>>> {
        // One device serves all threads: they meet at its channels.
        Ok(None)
    }
}
