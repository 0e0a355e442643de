//! What stands between the host interface and the flash: an FTL, and when it does its work.
//!
//! There are three kinds. A page map collects blocks beside the host, on a clock of its own
//! (`paged.rs`); a merging FTL merges in the path of the write that needs room, and in steps while
//! the host leaves the device alone (`merging.rs`); and zones are no FTL at all: the host decides
//! (`zoned.rs`). The device is written once, for all of them.

use std::ops::Range;

use uflip_core::{Error, Io, Mode, Result};

use crate::device::event::{DeviceEvent, EventTag, Target};
use crate::flash::geometry::Lpn;
use crate::flash::media::Flash;
use crate::ftl::extent::Extent;
use crate::timeline::Timeline;

/// The flash and its clocks, which outlive every operation of an FTL.
pub(crate) struct Hardware<'a> {
    pub(crate) flash: &'a mut Flash,
    pub(crate) events: &'a mut Timeline<EventTag>,
}

/// A page that is to be written, which belongs to `extent` and whose data is there.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Write {
    pub(crate) page: Lpn,
    pub(crate) extent: Extent,
    pub(crate) target: Target,
    /// Nothing of it may stay in memory that the host takes for written.
    pub(crate) through: bool,
}

impl Write {
    /// Whether it is of one of `pages`, and its data was in the write cache: the host takes it for written.
    pub(crate) fn has_left_cache(&self, pages: &Range<u32>) -> bool {
        pages.contains(&self.page.0)
            && matches!(self.target.token.event(), DeviceEvent::Flushed(..))
    }
}

/// A page that an I/O in the untimed gear touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) mode: Mode,
    pub(crate) page: Lpn,
    pub(crate) extent: Extent,
}

/// An FTL and the times of its work.
pub(crate) trait Backend {
    /// Whether the pages of a host write are planned as one, as soon as the controller has taken it in,
    /// and none of another write may come between them.
    const PLANS_WHOLE_WRITES: bool;

    /// Read `page` from `at` on; `bytes` of it go to the host.
    fn read(&mut self, page: Lpn, bytes: u64, at: u64, target: Target, hardware: &mut Hardware<'_>);

    /// Write a page from `at` on, when its data is there; its stream may be another one afterwards.
    fn write(&mut self, write: &mut Write, at: u64, hardware: &mut Hardware<'_>);

    /// What a collection, or a plan, waited for has happened.
    fn handle_event(&mut self, event: DeviceEvent, at: u64, hardware: &mut Hardware<'_>);

    /// A read of the host ends at `end`.
    #[inline]
    fn after_read(&mut self, _end: u64, _hardware: &mut Hardware<'_>) {}

    /// Move what is due because of its reads or its age, if anything is.
    #[inline]
    fn scrub_if_due(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        if hardware.flash.has_scrubs(at) {
            self.scrub(at, hardware);
        }
    }

    /// Move what is due; see `scrub.rs`.
    #[cold]
    fn scrub(&mut self, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// What leaves the write cache is to be on flash as soon as it can.
    fn fill_up(&mut self, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// Write to flash, from `at` on, what memory alone has; `target` is told when it is there. False where
    /// there is nothing.
    #[inline]
    fn drain(&mut self, _at: u64, _target: Target, _hardware: &mut Hardware<'_>) -> bool {
        false
    }

    /// The host leaves the device alone from `now` to `until`.
    fn begin_idle(&mut self, now: u64, until: u64, hardware: &mut Hardware<'_>);

    /// The host is back.
    fn end_idle(&mut self) {}

    /// Nothing will happen any more after `at`, and an I/O has not ended: it ends now, and fails.
    ///
    /// # Panics
    /// Where none waits for anything: the books must be wrong.
    fn stuck(&mut self, at: u64, hardware: &mut Hardware<'_>);

    /// Whether too little flash is left to write to the device.
    #[inline]
    fn is_read_only(&self) -> bool {
        false
    }

    /// Why it is.
    fn why_read_only(&self) -> Error;

    /// What is under way ends now; the untimed gear follows.
    fn end_untimed(&mut self, flash: &mut Flash);

    /// Whether an I/O in the untimed gear can be done; an append becomes a write.
    ///
    /// # Errors
    /// It is for a zone that does not take it, or that is not there.
    #[inline]
    fn admit_untimed(&mut self, io: &Io, _page_bytes: u64) -> Result<Io> {
        if io.mode.requires_zones() { Err(no_zones()) } else { Ok(*io) }
    }

    /// Do what an I/O asks of a zone in the untimed gear.
    fn manage_untimed(&mut self, _io: &Io, _flash: &mut Flash) {}

    /// [`Backend::write`] in the untimed gear.
    fn write_untimed(&mut self, page: Lpn, extent: &Extent, flash: &mut Flash);

    /// [`Backend::read`] in the untimed gear.
    fn read_untimed(&mut self, page: Lpn, flash: &mut Flash);

    /// Do what a batch of I/Os asks for in the untimed gear, in order.
    fn apply(&mut self, pieces: &[Piece], flash: &mut Flash) {
        for Piece { mode, page, extent } in pieces {
            match mode {
                Mode::Write => self.write_untimed(*page, extent, flash),
                Mode::Read => self.read_untimed(*page, flash),
                _ => self.trim(*page),
            }
        }
    }

    /// What has left the write cache of `pages` and waits for its turn is not written: it is trimmed.
    #[inline]
    fn forget(&mut self, _pages: Range<u32>, _at: u64, _hardware: &mut Hardware<'_>) {}

    /// `page` holds nothing any more (TRIM).
    fn trim(&mut self, page: Lpn);

    /// `page` will be looked up soon.
    #[inline]
    fn prefetch(&self, _page: Lpn) {}

    /// `page`, for which [`Backend::prefetch`] was called, will be written soon.
    #[inline]
    fn prefetch_old(&self, _page: Lpn) {}
}

/// The error of a command to a zone on a device without any.
#[cold]
pub(crate) fn no_zones() -> Error {
    Error::usage("The device has no zones")
        .allowed("read, write, trim")
        .action("name a device with zones, like sim:zns")
}
