//! The fast path of the untimed mode for devices without a map on flash and without failing pages.
//!
//! It makes the same decisions as `write.rs` and `collect.rs`, page by page; but a batch of host pages, or
//! all valid pages of a victim, is applied directly to the flat arrays. Everything out of the ordinary, such
//! as opening a block, is left to those files. A test runs both on the same writes.

use super::{Collection, PageMap, UNMAPPED};
use crate::collections::huge;
use crate::flash::fast_path::{AllFeatures, FastPath, Minimal};
use crate::flash::geometry::{Lpn, PageAddress, Ppn};
use crate::flash::media::{CollectMedia as _, Flash};
use crate::pool::blocks::PageStream;

impl PageMap {
    /// Return whether the fast path applies: no map on flash, no retirement, no separate streams.
    #[inline]
    pub(super) fn has_fast_path(&self) -> bool {
        self.on_flash.is_none() && self.retirement.is_none() && self.host_streams.is_none()
    }

    /// Return whether the FTL has only map, accounting and policies: see
    /// [`crate::flash::fast_path`].
    pub(crate) fn is_minimal(&self) -> bool {
        self.has_fast_path() && self.slc.is_none() && self.scrubs.is_none() && !self.packs_units()
    }

    /// Write pages, each in whole or in part and with its stream, as [`PageMap::write`] does.
    pub(crate) fn write_all(
        &mut self,
        pages: impl Iterator<Item = (Lpn, bool, u8)>,
        flash: &mut Flash,
    ) {
        if !self.has_fast_path() || flash.unworn().is_none() {
            return pages.for_each(|(page, whole, stream)| {
                let stream = self.stream_of(page, stream);
                self.write(page, whole, stream, flash);
            });
        }
        if self.packs_units() {
            self.write_fast::<AllFeatures>(pages, flash);
        } else {
            self.write_fast::<Minimal>(pages, flash);
        }
    }

    #[inline(always)]
    fn write_fast<M: FastPath>(
        &mut self,
        pages: impl Iterator<Item = (Lpn, bool, u8)>,
        flash: &mut Flash,
    ) {
        let mut written = 0;
        for (page, whole, _) in pages {
            let plane = self.choose_plane::<M>(page);
            let ordinary = self.blocks.has_open_page(plane, PageStream::Host)
                && !self.wants_collection::<M>(plane)
                && self.reserved == 0;
            if !ordinary {
                self.write_from(plane, page, whole, flash);
                continue;
            }
            self.set_last_plane::<M>(plane, PageStream::Host);
            let allocated = self.blocks.take_open_page(plane, PageStream::Host);
            let to = allocated.address;
            let old = std::mem::replace(&mut self.map[page.0 as usize], to.page.0);
            self.reverse[to.page.0 as usize] = page.0;
            if old != UNMAPPED {
                let old = self.options.geometry.address_of(Ppn(old));
                if !whole {
                    flash.read_to_modify(old);
                }
                self.invalidate(old);
            }
            flash.nand.program(to);
            written += 1;
            self.close_if_full(allocated, PageStream::Host, flash);
        }
        flash.counters.pages_programmed += written;
        flash.counters.host_pages_written += written;
    }

    /// Move all valid pages of a victim; returns their number.
    pub(super) fn move_fast(&mut self, collection: &Collection, flash: &mut Flash) -> u32 {
        if self.packs_units() {
            self.move_fast_of::<AllFeatures>(collection, flash)
        } else {
            self.move_fast_of::<Minimal>(collection, flash)
        }
    }

    #[inline(always)]
    fn move_fast_of<M: FastPath>(&mut self, collection: &Collection, flash: &mut Flash) -> u32 {
        let Collection { plane: home, victim, stream, .. } = *collection;
        let mut pages = std::mem::take(&mut self.moving);
        let valid = usize::from(self.blocks.valid_count(victim));
        pages.resize(valid, Lpn(0));
        let mut slots = pages.iter_mut();
        let mut last = None;
        self.blocks.drain_valid(victim, |page| {
            let Some(slot) = slots.next() else { return };
            *slot = Lpn(self.reverse[page.0 as usize]);
            huge::prefetch(&self.map, slot.0 as usize);
            last = Some(page);
        });
        assert!(slots.next().is_none(), "{victim:?} has as many valid pages as were counted");
        if let Some(page) = last {
            // The last page is the highest: if it was programmed, so were the others.
            flash.nand.read(PageAddress { page, block: victim, plane: home });
        }
        for page in &pages {
            let Some(plane) = self.plane_with_page::<M>(Some(home), stream) else {
                // The page stays where it is, and so does its block.
                let from = self.options.geometry.address_of(Ppn(self.map[page.0 as usize]));
                self.blocks.mark_valid(from);
                continue;
            };
            if !self.blocks.has_open_page(plane, stream) {
                self.blocks.open_another(plane, stream);
            }
            let allocated = self.blocks.take_open_page(plane, stream);
            let to = allocated.address;
            self.map[page.0 as usize] = to.page.0;
            self.reverse[to.page.0 as usize] = page.0;
            flash.nand.program(to);
            self.close_if_full(allocated, stream, flash);
        }
        let moved = pages.len() as u32;
        self.moving = pages;
        flash.counters.pages_read += u64::from(moved);
        flash.counters.pages_programmed += u64::from(moved);
        flash.counters.pages_relocated += u64::from(moved);
        moved
    }
}
