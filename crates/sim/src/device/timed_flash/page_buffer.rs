//! Units in the page buffer, which is programmed when it is full.

use super::TimedFlash;
use crate::device::event::DeviceEvent;
use crate::flash::contents::Origin;
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{BlockIdx, PageAddress, PlaneIdx, Ppn};
use crate::flash::media::{CollectMedia as _, Media as _};
use crate::timeline::breakdown::Cause;
use crate::timeline::{Op, Purpose, Report};

impl<M: FastPath> TimedFlash<'_, M> {
    /// Handle a unit added to the page buffer: program the flash page if the unit fills it.
    #[inline(always)]
    pub(super) fn gathered(&mut self, to: PageAddress, relocated: bool) {
        if self.flash.geometry.ends_flash_page(to.page) {
            self.program_gathered(to.page, to.block, to.plane, relocated);
        }
    }

    /// Program the flash page that ends with `page`. The address is passed in parts, as in
    /// `records.rs`.
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
    pub(super) fn gather(&mut self, to: PageAddress) -> bool {
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
    pub(super) fn gather_moved(&mut self, from: PageAddress, to: PageAddress) -> bool {
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
}
