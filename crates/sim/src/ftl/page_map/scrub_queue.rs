//! Blocks that are collected regardless of their valid pages: because of their wear, their reads or their
//! age.
//!
//! Such a collection frees no page, and no request waits for it: a plane that needs space collects for space
//! every other time.

use std::collections::VecDeque;

use super::PageMap;
use crate::flash::fast_path::AllFeatures;
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::flash::levelling::STATIC_INTERVAL;
use crate::flash::media::CollectMedia;

/// Blocks that are to be moved because of their reads or their age.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct ScrubQueue {
    /// Per plane: waiting blocks, the oldest request first; some may still be open.
    due: Vec<VecDeque<BlockIdx>>,
    /// Per plane: the last collection was for space, although a block waited.
    yielded: Vec<bool>,
    /// Per plane: the block taken from the queue last, until its collection begins.
    moving: Vec<Option<BlockIdx>>,
}

impl ScrubQueue {
    pub(super) fn new(planes: u32) -> ScrubQueue {
        let (due, yielded) = (vec![VecDeque::new(); planes as usize], vec![false; planes as usize]);
        ScrubQueue { due, yielded, moving: vec![None; planes as usize] }
    }
}

impl PageMap {
    /// Queue `block` to be moved.
    pub(crate) fn queue_scrub(&mut self, block: BlockIdx) {
        let plane = self.options.geometry.plane_of(block);
        let scrubs = self.scrubs.as_mut().expect("scrubbing is configured");
        scrubs.due[plane.0 as usize].push_back(block);
    }

    /// Return whether a block of `plane` waits that can be moved.
    #[inline]
    pub(crate) fn has_scrub_waiting(&self, plane: PlaneIdx) -> bool {
        self.scrubs.is_some() && self.next_scrub(plane).is_some()
    }

    /// Return the index of the first waiting block that is full.
    fn next_scrub(&self, plane: PlaneIdx) -> Option<usize> {
        let due = &self.scrubs.as_ref()?.due[plane.0 as usize];
        due.iter().position(|block| self.is_full(plane, *block))
    }

    /// Return whether `block` of `plane` is full, with data or mapping pages, and not a victim.
    fn is_full(&self, plane: PlaneIdx, block: BlockIdx) -> bool {
        let of_map =
            || self.on_flash.as_ref().is_some_and(|flash_map| flash_map.is_closed(plane, block));
        self.blocks.is_closed(block) || of_map()
    }

    /// Remove `block` of `plane`, which was erased, from the queue.
    #[inline]
    pub(super) fn remove_scrub(&mut self, plane: PlaneIdx, block: BlockIdx) {
        if let Some(scrubs) = &mut self.scrubs {
            scrubs.due[plane.0 as usize].retain(|other| *other != block);
        }
    }

    /// Return a block of `plane` that is to be moved now, even if that frees no page.
    pub(super) fn scrub_or_levelling_victim(
        &mut self,
        plane: PlaneIdx,
        media: &mut impl CollectMedia,
    ) -> Option<BlockIdx> {
        // The policy is overruled when free pages are short: collect for space only.
        if self.is_overruled() {
            return None;
        }
        if let Some(block) = self.scrub_victim(plane) {
            return Some(block);
        }
        let block = self.static_levelling_victim(plane)?;
        media.count_levelled();
        Some(block)
    }

    fn scrub_victim(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let at = self.next_scrub(plane)?;
        let wants_collection = self.wants_collection::<AllFeatures>(plane);
        let scrubs = self.scrubs.as_mut()?;
        let yielded = &mut scrubs.yielded[plane.0 as usize];
        if wants_collection && !std::mem::replace(yielded, true) {
            return None;
        }
        *yielded = false;
        let block = scrubs.due[plane.0 as usize].remove(at);
        scrubs.moving[plane.0 as usize] = block;
        block
    }

    /// Return whether `victim`, chosen last of `plane`, is moved because of its reads or its age.
    pub(super) fn is_scrub_victim(&mut self, plane: PlaneIdx, victim: BlockIdx) -> bool {
        let moving = self.scrubs.as_mut().and_then(|scrubs| scrubs.moving[plane.0 as usize].take());
        moving == Some(victim)
    }

    /// Return the block that static wear levelling moves now, if any.
    fn static_levelling_victim(&mut self, plane: PlaneIdx) -> Option<BlockIdx> {
        let gap = self.options.static_threshold;
        let per_plane = self.options.geometry.shape().blocks_per_plane;
        if gap == 0 || self.since_static[plane.0 as usize] < per_plane.div_ceil(STATIC_INTERVAL) {
            return None;
        }
        self.since_static[plane.0 as usize] = 0;
        let blocks = || self.options.geometry.blocks_of(plane);
        let max_wear = blocks().map(|block| self.blocks.wear(block)).max()?;
        let closed = blocks().filter(|block| self.is_full(plane, *block));
        let coldest = closed.min_by_key(|block| self.blocks.wear(*block))?;
        (max_wear - self.blocks.wear(coldest) > gap).then_some(coldest)
    }
}
