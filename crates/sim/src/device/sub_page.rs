//! Reads and writes of mapping units smaller than a flash page (see `page_buffer.rs`).

use uflip_core::Io;

use super::cache::{bytes_in, sectors_of};
use super::{AnyBackend, SimDevice};
use crate::device::backend::{Hardware, Write};
use crate::device::event::{CompletionTarget, DeviceEvent, IoIdx};
use crate::device::page_buffer::{PageBuffer, Programmed};
use crate::device::paged::PageMapBackend;
use crate::device::timed_flash::TimedFlash;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{Lpn, PageAddress, PlaneIdx};
use crate::flash::media::Media as _;
use crate::ftl::extent::PageExtent;
use crate::timeline::Report;
use crate::timeline::breakdown::Cause;

/// Units of an I/O that lie in one flash page and are read together.
struct UnitGroup {
    /// The first unit; its host page stands for all.
    from: PageAddress,
    target: CompletionTarget,
    bytes: u64,
    /// Number of further units.
    more_units: u16,
}

impl SimDevice {
    /// Read the units of an I/O; combine neighbours in one flash page.
    pub(super) fn read_units(&mut self, index: IoIdx, io: &Io, extent: PageExtent, at: u64) {
        let SimDevice { backend, flash, events, host, cache, sector_bytes, .. } = self;
        let hardware = &mut Hardware { flash, events };
        let unit_bytes = u64::from(hardware.flash.geometry.shape().page_bytes);
        let mut group: Option<UnitGroup> = None;
        for page in extent.touched().map(Lpn) {
            let bytes = bytes_in(io, page.0, unit_bytes);
            let in_cache = cache.as_ref().is_some_and(|cache| {
                cache.holds(page, sectors_of(io, page, unit_bytes, *sector_bytes))
            });
            let from = backend.unit_on_flash(page).filter(|_| !in_cache);
            let flash_page =
                |address: PageAddress| hardware.flash.geometry.flash_page(address.page);
            if let (Some(from), Some(group)) = (from, &mut group)
                && flash_page(from) == flash_page(group.from)
            {
                hardware.flash.read(from);
                group.more_units += 1;
                group.bytes += bytes;
                host.add_read_unit(index);
                continue;
            }
            let target =
                CompletionTarget::host(host.page(index, page, at, &mut hardware.events.accounts));
            if let Some(group) = group.take() {
                group.read(at, hardware);
            }
            match from {
                Some(from) => group = Some(UnitGroup { from, target, bytes, more_units: 0 }),
                None => hardware.events.deliver(at, at, bytes, target.op()),
            }
        }
        if let Some(group) = group {
            group.read(at, hardware);
        }
    }
}

impl AnyBackend {
    /// Return the address of a unit on flash; `None` if it was never written or is buffered.
    #[inline]
    fn unit_on_flash(&self, page: Lpn) -> Option<PageAddress> {
        match self {
            AnyBackend::Paged(PageMapBackend { ftl, .. }) => {
                ftl.lookup(page).filter(|from| !ftl.is_in_open_flash_page(*from))
            }
            AnyBackend::Zoned(zoned) => zoned.lookup(page),
            AnyBackend::Merged(_) => unreachable!("a merging FTL maps whole pages"),
        }
    }
}

impl UnitGroup {
    fn read(self, at: u64, hardware: &mut Hardware<'_>) {
        let UnitGroup { from, target, bytes, more_units } = self;
        let media =
            TimedFlash::new(hardware.flash, hardware.events, at, target).with_host_transfer(bytes);
        media.read_together(from, more_units);
    }
}

impl PageMapBackend {
    /// Assign the host pages that follow to `stream`.
    #[inline]
    pub(super) fn serve(&mut self, stream: u8) {
        if self.ftl.has_write_streams() {
            self.ftl.select_stream(stream);
            self.ftl.bypass_cache(false);
            self.gather.iter_mut().for_each(|gather| gather.select_stream(stream));
        }
    }

    /// Write a unit. If the host supplies only a part, read the rest first. Later writes to the
    /// unit wait for that read, too, so that the newest data wins.
    pub(super) fn gather(&mut self, write: &Write, at: u64, hardware: &mut Hardware<'_>) {
        let Write { page, extent, target, write_through: through } = *write;
        if let Some(gather) = self.gather.as_mut().filter(|gather| gather.modifies_unit(page)) {
            return gather.queue_after_read(*write, at);
        }
        let old = if extent.covers(page) { None } else { self.ftl.lookup(page) };
        let old = old.filter(|from| !self.ftl.is_in_open_flash_page(*from));
        if let (Some(from), Some(gather)) = (old, &mut self.gather) {
            let token = DeviceEvent::UnitRead(gather.modify(*write)).into();
            let target = CompletionTarget { token, report: Report::AtEnd, ..target };
            return TimedFlash::new(hardware.flash, hardware.events, at, target).modify(from);
        }
        self.allocate_and_write::<AllFeatures>(write, at, hardware);
        if through && target.account.is_some() && extent.ends_with(page) {
            self.pad_pages(false, at, hardware);
        }
    }

    /// Write the units that waited for the read of `unit`.
    fn write_units_after_read(&mut self, unit: Lpn, at: u64, hardware: &mut Hardware<'_>) {
        while let Some((write, since)) =
            self.gather.as_mut().and_then(|gather| gather.next_behind(unit))
        {
            hardware.events.charge_account(write.target.account, Cause::ReadToModify, at - since);
            self.gather(&write, at, hardware);
            self.pad_late_unit(write.write_through, at, hardware);
        }
    }

    /// Pad the page of a unit that arrived after the other units of its request, if it must be
    /// durable: no other unit would fill it.
    pub(super) fn pad_late_unit(&mut self, through: bool, at: u64, hardware: &mut Hardware<'_>) {
        let Some(gather) = &mut self.gather else { return };
        if through || gather.urgent {
            gather.urgent &= gather.modifies() || !self.backlog.is_empty();
            self.pad_pages(false, at, hardware);
        }
    }

    /// Pad and program the flash pages that hold acknowledged data, or (unless `volatile`) any host
    /// data.
    fn pad_pages(&mut self, volatile: bool, at: u64, hardware: &mut Hardware<'_>) {
        let planes = hardware.flash.geometry.shape().planes;
        let streams = self.ftl.write_streams();
        for (stream, plane) in
            (0..streams).flat_map(|stream| (0..planes).map(move |plane| (stream, PlaneIdx(plane))))
        {
            self.serve(stream);
            let Some(gather) = self.gather.as_deref_mut() else { return };
            if gather.has_data(plane, volatile) {
                let target = CompletionTarget::collection(plane);
                let mut media = TimedFlash::new(hardware.flash, hardware.events, at, target)
                    .with_page_buffer(Some(gather));
                self.ftl.pad(plane, &mut media);
            }
        }
    }

    /// Pad the pages that targets wait for, because no further unit will come. Return false if
    /// no such page exists.
    #[cold]
    pub(super) fn pad_waited_for(&mut self, at: u64, hardware: &mut Hardware<'_>) -> bool {
        let is_waited_for =
            |paged: &PageMapBackend| paged.gather.as_deref().is_some_and(PageBuffer::has_waiters);
        let filled = is_waited_for(self);
        if filled {
            self.pad_pages(false, at, hardware);
            assert!(!is_waited_for(self), "a full page is being programmed");
        }
        filled
    }

    /// Bring data from the write cache to flash as soon as possible.
    #[cold]
    pub(super) fn pad_all(&mut self, at: u64, hardware: &mut Hardware<'_>) {
        self.pad_pages(false, at, hardware);
        if let Some(gather) = &mut self.gather {
            gather.urgent = gather.modifies() || !self.backlog.is_empty();
        }
    }

    /// Let `target` wait until all acknowledged data is on flash; return false if it already is.
    #[cold]
    pub(super) fn drain_gathered(
        &mut self,
        at: u64,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    ) -> bool {
        self.pad_pages(true, at, hardware);
        self.gather.as_mut().is_some_and(|gather| gather.drain(target))
    }

    /// Handle a completed page program, or the read of a unit.
    #[inline(never)]
    pub(super) fn handle_sub_page_event(
        &mut self,
        event: DeviceEvent,
        at: u64,
        hardware: &mut Hardware<'_>,
    ) {
        let gather = self.gather.as_mut().expect("the device has page buffers");
        match event {
            DeviceEvent::UnitRead(index) => {
                let (unit, write) = gather.modified(index);
                if let Some(write) = &write {
                    self.allocate_and_write::<AllFeatures>(write, at, hardware);
                }
                self.pad_late_unit(write.is_some_and(|write| write.write_through), at, hardware);
                self.write_units_after_read(unit, at, hardware);
            }
            DeviceEvent::GatheredPageProgrammed(number) => {
                let Programmed { waits, drained } = gather.programmed(number);
                let last = waits.len().saturating_sub(1);
                // The target that is charged the whole time comes first.
                for (index, (target, since)) in waits.iter().enumerate().rev() {
                    if index < last {
                        hardware.events.charge_account(
                            target.account,
                            Cause::CacheWait,
                            at - since,
                        );
                    }
                    hardware.events.end(at, at, target.op());
                }
                gather.recycle(waits);
                for target in drained {
                    hardware.events.end(at, at, target.op());
                }
            }
            event => unreachable!("{event:?} is not an event of a page buffer"),
        }
    }
}
