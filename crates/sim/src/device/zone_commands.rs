//! Zone requests at the host interface, and zone reports.

use uflip_core::{Io, Result, ZoneReport};

use super::SimDevice;
use super::any::AnyBackend;
use super::backend::no_zones;
use super::event::{CompletionTarget, IoIdx};
use crate::flash::geometry::Lpn;

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
