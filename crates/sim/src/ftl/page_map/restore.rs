//! Recovery of the page map from spare areas after a power loss.
//!
//! ```text
//! spare areas ─▶ newest version of each logical page ─▶ map, reverse map, valid pages
//!             └▶ programmed pages of each block      ─▶ free │ open, continued behind them │ full
//! ```
//!
//! **Source**: uFLIP (2009) §2.2, where the direct map is in memory and recovered from the inverse map on flash.
//! **Faithful**: only data that was read is used. In a block that was being filled, the pages after the last
//! programmed one are used; pages that are torn or were passed over are lost until it is collected.
//! **Simplified**: policies, wear levelling and filters of hot pages start empty; a map on flash (DFTL) is
//! found with the pages that it was last written to, and later changes are known.
//! **Ambiguous**: if two blocks of a plane were being filled for the same stream, the one that was opened
//! later is continued.

use std::collections::BTreeMap;

use super::PageMap;
use crate::flash::contents::{BlockCondition, Contents, Image, Label};
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress, Ppn};
use crate::flash::media::Flash;
use crate::pool::blocks::{BlockUse, PageStream};
use crate::pool::free::FreeOrder;

impl PageMap {
    /// Rebuild an empty map from `contents`. Blocks in `erase_again` become free, or are retired if
    /// that erase failed. Returns the use of every block.
    pub(crate) fn restore(
        &mut self,
        contents: &Contents,
        erase_again: &[(BlockIdx, bool)],
        flash: &mut Flash,
    ) -> Vec<BlockUse> {
        if let Some(listed) = contents.defects() {
            self.find_defects(listed);
        }
        let image = &contents.read_image();
        let mut uses = self.uses(image);
        self.mark_unusable(&mut uses, contents, erase_again);
        let wear = contents.estimated_erases();
        let keys = match self.options.free_order {
            FreeOrder::FewestErrors => {
                let blocks = (0..uses.len() as u32).map(BlockIdx);
                blocks.map(|block| self.errors_of(block, flash)).collect()
            }
            FreeOrder::Oldest | FreeOrder::LeastWorn => wear.clone(),
        };
        self.blocks.restore(&uses, &wear, &keys);
        for (page, at) in (0..).map(Lpn).zip(&image.map) {
            if let Some(at) = *at {
                let at = self.options.geometry.address_of(at);
                self.map_page(page, at);
                self.blocks.mark_valid(at);
            }
        }
        let mut filled: Vec<(u64, BlockIdx, u8)> = Vec::new();
        for (index, used) in (0..).zip(&uses) {
            if let BlockUse::Filled { role } = *used {
                filled.push((image.blocks[index as usize].1.opened, BlockIdx(index), role));
            }
        }
        filled.sort_unstable();
        for (_, block, role) in filled {
            let stream = self.blocks.stream_in(role, self.on_flash.is_some());
            self.blocks.close(block, stream);
            let address =
                PageAddress { page: Ppn(0), block, plane: self.options.geometry.plane_of(block) };
            self.register_closed(address, stream);
        }
        for (at, _) in uses.iter().enumerate().filter(|(_, used)| **used == BlockUse::Erased) {
            let block = BlockIdx(at as u32);
            let erased = erase_again.iter().all(|(other, erased)| *other != block || *erased);
            self.reuse(self.options.geometry.plane_of(block), block, erased, flash);
        }
        self.resume_collection();
        uses
    }

    /// Correct the use of blocks that seem to be free: listed ones are bad. Those that were erased `again`,
    /// or had a failed program, must be checked.
    fn mark_unusable(
        &self,
        uses: &mut [BlockUse],
        contents: &Contents,
        erase_again: &[(BlockIdx, bool)],
    ) {
        erase_again.iter().for_each(|(block, _)| uses[block.0 as usize] = BlockUse::Erased);
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            if contents.is_listed(block) {
                *used = BlockUse::Bad;
            } else if *used == BlockUse::Free
                && self.failed_programs().binary_search(&block).is_ok()
            {
                *used = BlockUse::Erased;
            }
        }
    }

    /// Return the use of every block.
    fn uses(&self, image: &Image) -> Vec<BlockUse> {
        let geometry = &self.options.geometry;
        let mut uses = Vec::with_capacity(image.blocks.len());
        // Per plane and role: the block opened last, of those with a page left, and when.
        let mut last: BTreeMap<(u32, u8), (u64, usize)> = BTreeMap::new();
        for (block, (condition, label)) in (0..).map(BlockIdx).zip(&image.blocks) {
            let Label { role, opened, .. } = *label;
            let BlockCondition::Programmed(pages) = *condition else {
                uses.push(BlockUse::Free);
                continue;
            };
            let next = Ppn(geometry.first_page(block).0 + pages);
            let mut used = BlockUse::Filled { role };
            if let Some(next) = self.blocks.next_usable_page(block, role, next) {
                let newest = last.entry((geometry.plane_of(block).0, role)).or_insert((0, 0));
                if opened > newest.0 {
                    if newest.0 > 0 {
                        uses[newest.1] = used;
                    }
                    *newest = (opened, uses.len());
                    used = BlockUse::Open { role, next };
                }
            }
            uses.push(used);
        }
        uses
    }

    /// Return every mapped page and its address.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, PageAddress)> + '_ {
        (0..self.map.len() as u32).filter_map(|page| Some((page, self.lookup(Lpn(page))?)))
    }

    /// Return the number of map entries, those of mapping pages included.
    pub(crate) fn mapped_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Return the label in the spare areas of `block`, as far as the accounting has it.
    pub(crate) fn label(&self, block: BlockIdx) -> Label {
        let (role, order) = self.blocks.label(block);
        let plane = self.options.geometry.plane_of(block);
        let of_map =
            self.on_flash.as_ref().is_some_and(|flash_map| flash_map.is_closed(plane, block));
        let role = if of_map { self.blocks.kind(PageStream::Mapping) as u8 } else { role };
        Label { role, opened: 1 + order, erases: self.blocks.wear(block), by: block }
    }

    /// Register a full block with the component that chooses it: mapping blocks, SLC cache or policy.
    pub(super) fn register_closed(&mut self, last_page: PageAddress, stream: PageStream) {
        let PageAddress { block, plane, .. } = last_page;
        match (&mut self.on_flash, stream) {
            (Some(flash_map), PageStream::Mapping) => flash_map.closed(plane, block),
            _ if self.blocks.is_cache(block) => {
                self.slc.iter_mut().for_each(|slc| slc.filled(plane, block));
            }
            _ => self.options.victims.closed(plane, block, self.blocks.valid_count(block)),
        }
    }
}
