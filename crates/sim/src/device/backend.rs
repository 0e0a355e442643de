//! The layer between host interface and flash: an FTL and the timing of its work.
//!
//! There are three kinds. A page map collects garbage concurrently with the host, in steps of its
//! own (`paged.rs`). A merging FTL merges in the path of the write that needs space, and in steps
//! while the host is idle (`merging.rs`). A zoned device has no FTL: the host decides (`zoned.rs`).
//! The rest of the device is the same for all of them.

use std::ops::Range;

use uflip_core::{Error, Io, Mode, Result};

use crate::device::event::{CompletionTarget, DeviceEvent, EventTag};
use crate::flash::geometry::Lpn;
use crate::flash::media::Flash;
use crate::ftl::extent::PageExtent;
use crate::timeline::Timeline;

/// The flash and its timeline, which outlive each operation of an FTL.
pub(crate) struct Hardware<'a> {
    pub(crate) flash: &'a mut Flash,
    pub(crate) events: &'a mut Timeline<EventTag>,
}

/// A page to be written. It belongs to `extent`, and its data is in memory.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Write {
    pub(crate) page: Lpn,
    pub(crate) extent: PageExtent,
    pub(crate) target: CompletionTarget,
    /// Write-through: no acknowledged data of it may stay in memory.
    #[serde(rename = "through")]
    pub(crate) write_through: bool,
}

impl Write {
    /// Return whether its page is one of `pages` and its data has left the write cache, i.e. was
    /// acknowledged.
    pub(crate) fn has_left_cache(&self, pages: &Range<u32>) -> bool {
        pages.contains(&self.page.0)
            && matches!(self.target.token.event(), DeviceEvent::Flushed(..))
    }
}

/// A page that an untimed I/O touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoPage {
    pub(crate) mode: Mode,
    pub(crate) page: Lpn,
    pub(crate) extent: PageExtent,
}

/// An FTL and the timing of its work.
pub(crate) trait Backend {
    /// Whether the pages of a host write are planned together as soon as its command has been
    /// processed, with no page of another write between them.
    const PLANS_WHOLE_WRITES: bool;

    /// Read `page` from `at` on; send `bytes` of it to the host.
    fn read(
        &mut self,
        page: Lpn,
        bytes: u64,
        at: u64,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    );

    /// Write a page from `at` on, when its data has arrived; may change its stream.
    fn write(&mut self, write: &mut Write, at: u64, hardware: &mut Hardware<'_>);

    /// Handle an event of a collection or a plan.
    fn handle_event(&mut self, event: DeviceEvent, at: u64, hardware: &mut Hardware<'_>);

    /// Handle the completion of a host read at `end`.
    #[inline]
    fn after_read(&mut self, _end: u64, _hardware: &mut Hardware<'_>) {}

    /// Scrub the blocks whose reads or age require it, if any.
    #[inline]
    fn scrub_if_due(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        if hardware.flash.has_scrubs(at) {
            self.scrub(at, hardware);
        }
    }

    /// Relocate the blocks that are due because of their reads or their age, concurrently with the
    /// host. A block's scrub starts as soon as its die does no other collection. The host's wait for
    /// it has a cause of its own: `scrub_ns`.
    #[cold]
    fn scrub(&mut self, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// Program partly filled flash pages, so that data from the write cache becomes durable soon.
    fn pad_for_flush(&mut self, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// Write the data that is only in memory to flash, from `at` on, and report the end to
    /// `target`. Return false if there is no such data.
    #[inline]
    fn drain(&mut self, _at: u64, _target: CompletionTarget, _hardware: &mut Hardware<'_>) -> bool {
        false
    }

    /// Start idle-time work: the host is idle from `now` to `until`.
    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>);

    /// End idle-time work: the host is back.
    fn end_idle(&mut self) {}

    /// Fail the I/Os that have not completed although no event is left after `at`.
    ///
    /// # Panics
    /// If no I/O waits: the bookkeeping must be wrong.
    fn fail_stuck_ios(&mut self, at: u64, hardware: &mut Hardware<'_>);

    /// Return whether too little flash is left to write to the device.
    #[inline]
    fn is_read_only(&self) -> bool {
        false
    }

    /// Return the error of a read-only device.
    fn read_only_error(&self) -> Error;

    /// Complete the work in progress; untimed mode follows.
    fn end_untimed(&mut self, flash: &mut Flash);

    /// Check an untimed I/O and return it, with an append as a write.
    ///
    /// # Errors
    /// Its zone does not exist or does not accept it.
    #[inline]
    fn admit_untimed(&mut self, io: &Io, _page_bytes: u64) -> Result<Io> {
        if io.mode.requires_zones() { Err(no_zones()) } else { Ok(*io) }
    }

    /// Do a zone command untimed.
    fn manage_untimed(&mut self, _io: &Io, _flash: &mut Flash) {}

    /// [`Backend::write`], untimed.
    fn write_untimed(&mut self, page: Lpn, extent: &PageExtent, flash: &mut Flash);

    /// [`Backend::read`], untimed.
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash);

    /// Do a batch of I/Os untimed, in order.
    fn apply(&mut self, pieces: &[IoPage], flash: &mut Flash) {
        for IoPage { mode, page, extent } in pieces {
            match mode {
                Mode::Write => self.write_untimed(*page, extent, flash),
                Mode::Read => self.read_untimed(*page, flash),
                _ => self.trim(*page),
            }
        }
    }

    /// Drop waiting writes to `pages` that have left the write cache: the pages were trimmed.
    #[inline]
    fn drop_trimmed_writes(&mut self, _pages: Range<u32>, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// Unmap `page` (TRIM).
    fn trim(&mut self, page: Lpn);

    /// Prefetch the map entry of `page`.
    #[inline]
    fn prefetch(&self, _page: Lpn) {}

    /// Prefetch what the write of `page` will touch; [`Backend::prefetch`] was called before.
    #[inline]
    fn prefetch_old(&self, _page: Lpn) {}
}

/// Return the error of a zone command on a device without zones.
#[cold]
pub(crate) fn no_zones() -> Error {
    Error::usage("The device has no zones")
        .allowed("read, write, trim")
        .action("name a device with zones, like sim:zns")
}
