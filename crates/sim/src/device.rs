//! A simulated SSD behind the `Device` trait: the host interface and the virtual clock.
//!
//! A host I/O is taken in by the controller, cut into flash pages, and completes when its last page
//! does. Reads of pages that were never written are answered by the controller alone. A write that
//! covers a page only in part reads the rest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde_json::{Map, Value, json};
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Io, Mode, Nanos, Result, Ticket,
};

use crate::breakdown::{Cause, SimBreakdown};
use crate::ftl::{PageMap, PageMapOptions};
use crate::geometry::Lpn;
use crate::media::{Flash, Timed};
use crate::nand::Nand;
use crate::profile::Profile;
use crate::timeline::Timeline;

/// A flash device in virtual time. A copy is a device of its own in the same state.
#[derive(Clone, Debug)]
pub struct SimDevice {
    info: DeviceInfo,
    flash: Flash,
    ftl: PageMap,
    timeline: Timeline,
    now: u64,
    tickets: u64,
    /// What is under way, by time of completion, then by ticket.
    outstanding: BinaryHeap<Reverse<Pending>>,
    /// Free blocks of all dies that idle collection works towards; 0: none.
    idle_goal: u32,
}

/// A completion that waits for its time. Ordered by time, then by ticket, which is unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending(Completion<SimBreakdown>);

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (self.0.completed, self.0.ticket).cmp(&(other.0.completed, other.0.ticket))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl SimDevice {
    /// Make the device that `profile` describes, in the state that it asks for.
    ///
    /// # Errors
    /// Names in the profile that do not exist.
    pub fn new(name: &str, profile: Profile) -> Result<SimDevice> {
        let geometry = profile.geometry();
        let nand = Nand::new(geometry);
        let mut flash = Flash {
            geometry,
            nand,
            counters: Counters::default(),
        };
        let mut ftl = PageMap::new(PageMapOptions {
            geometry,
            allocator: crate::alloc::by_name(&profile.allocation.allocator, geometry)?,
            victims: crate::gc::by_name(&profile.gc.gc)?,
            reserved_blocks: profile.gc.reserved_blocks.max(1) as usize,
        });
        crate::precondition::enforce(&profile, &mut ftl, &mut flash);
        let info = describe(name, &profile, &flash);
        // What brought the device into its state is not part of any measurement.
        flash.counters = Counters::default();
        Ok(SimDevice {
            info,
            flash,
            ftl,
            timeline: Timeline::new(geometry, profile.timing()),
            now: 0,
            tickets: 0,
            outstanding: BinaryHeap::new(),
            idle_goal: profile.gc.idle_free_blocks * geometry.dies,
        })
    }

    /// Collect blocks until `until`, or until enough are free. The last collection may end later:
    /// an I/O that comes then waits for it.
    fn collect_idle(&mut self, until: u64) {
        while self.ftl.free_blocks() < self.idle_goal {
            let at = self.timeline.idle_at().max(self.now);
            if at >= until {
                return;
            }
            let mut media = Timed::new(&mut self.flash, &mut self.timeline, at);
            if !self.ftl.collect(&mut media) {
                return;
            }
            self.flash.counters.blocks_collected_idle += 1;
            self.timeline.forget_before(at);
        }
    }
}

/// Serve `io` from `submitted` on: the end and how it came to that.
fn serve(
    ftl: &mut PageMap,
    flash: &mut Flash,
    timeline: &mut Timeline,
    io: &Io,
    submitted: u64,
) -> (u64, SimBreakdown) {
    let page_bytes = u64::from(flash.geometry.page_bytes);
    let command_ns = timeline.timing().command_ns;
    let (offset, end) = (io.offset.0, io.offset.0 + io.size.0);

    let mut taken_in = SimBreakdown::default();
    taken_in.add(Cause::Controller, command_ns);
    let mut ready = submitted + command_ns;
    let mut media = Timed::new(flash, timeline, ready);
    for page in offset / page_bytes..end.div_ceil(page_bytes) {
        let from = offset.max(page * page_bytes);
        let bytes = end.min((page + 1) * page_bytes) - from;
        let page = Lpn(page as u32);
        match io.mode {
            Mode::Read => {
                media.path = taken_in;
                media.at = ready;
                media.read_bytes = bytes;
                match ftl.lookup(page) {
                    Some(at) => crate::media::Media::read(&mut media, at),
                    None => {
                        let mut path = taken_in;
                        let sent = media.timeline().link(ready, bytes, &mut path);
                        media.ended(sent, path);
                    }
                }
            }
            Mode::Write => {
                // Data comes over the link page after page; what it took is on each page's path.
                let arrived = media.timeline().link(ready, bytes, &mut taken_in);
                ready = arrived;
                media.path = taken_in;
                media.at = arrived;
                ftl.write(page, bytes == page_bytes, &mut media);
            }
        }
    }
    media.last
}

impl Device for SimDevice {
    type Request = Io;
    type Breakdown = SimBreakdown;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn wait_until(&mut self, t: Nanos) {
        if t.0 <= self.now {
            return;
        }
        self.collect_idle(t.0);
        self.now = t.0;
        self.timeline.forget_before(self.now);
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        let submitted = self.now;
        let (completed, breakdown) = serve(
            &mut self.ftl,
            &mut self.flash,
            &mut self.timeline,
            request,
            submitted,
        );
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.outstanding.push(Reverse(Pending(Completion {
            ticket,
            submitted: Nanos(submitted),
            completed: Nanos(completed),
            breakdown,
        })));
        Ok(ticket)
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.outstanding
            .peek()
            .map(|Reverse(pending)| pending.0.completed)
    }

    fn complete(&mut self) -> Result<Completion<SimBreakdown>> {
        let Reverse(Pending(completion)) =
            self.outstanding.pop().expect("something is outstanding");
        self.now = self.now.max(completion.completed.0);
        self.timeline.forget_before(self.now);
        Ok(completion)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.flash.counters)
    }

    fn split(&self, _: usize) -> Result<Option<Vec<SimDevice>>> {
        // One device serves all submitters: they meet at its dies and channels.
        Ok(None)
    }
}

fn describe(name: &str, profile: &Profile, flash: &Flash) -> DeviceInfo {
    let geometry = flash.geometry;
    let (least, mean, most) = flash.nand.wear();
    let mut details = Map::new();
    details.insert(
        "profile".into(),
        serde_json::to_value(profile).expect("plain data"),
    );
    details.insert(
        "history".into(),
        json!({
            "pages_written": flash.counters.host_pages_written,
            "pages_programmed": flash.counters.pages_programmed,
            "blocks_erased": flash.counters.blocks_erased,
            "erases_of_a_block": {"least": least, "mean": mean, "most": most},
        }),
    );
    details.insert(
        "flash_bytes".into(),
        Value::from(u64::from(geometry.pages()) * u64::from(geometry.page_bytes)),
    );
    DeviceInfo {
        url: format!("sim:{name}"),
        kind: DeviceKind::Sim,
        simulated: true,
        model: name.into(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: Bytes(u64::from(geometry.logical_pages) * u64::from(geometry.page_bytes)),
        sector_bytes: Bytes(u64::from(profile.geometry.sector_bytes)),
        clock: "virtual",
        io: "virtual".into(),
        data: "none",
        details,
    }
}
