//! Blocks that are collected whatever they hold: for the sake of their wear, their reads or their age.
//!
//! Such a collection gains no page, and nobody waits for it: a die that wants room gets that every other time.

use std::collections::VecDeque;

use super::PageMap;
use crate::flash::geometry::{BlockIdx, DieIdx};
use crate::flash::levelling::STATIC_INTERVAL;
use crate::flash::make::Equipped;

/// Blocks that were read so often, or are so old, that they are to be moved.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Scrubs {
    /// Per die: those that wait, the one that came first at the front; some may be open still.
    due: Vec<VecDeque<BlockIdx>>,
    /// Per die: the last collection was for want of room, although a block waited.
    gave_way: Vec<bool>,
    /// Per die: the block that was taken of these last, until it is begun with.
    moving: Vec<Option<BlockIdx>>,
    /// Blocks moved so far.
    moved: u64,
}

impl Scrubs {
    pub(super) fn new(dies: u32) -> Scrubs {
        let (due, gave_way) = (vec![VecDeque::new(); dies as usize], vec![false; dies as usize]);
        Scrubs { due, gave_way, moving: vec![None; dies as usize], moved: 0 }
    }
}

impl PageMap {
    /// `block` is to be moved.
    pub(crate) fn must_scrub(&mut self, block: BlockIdx) {
        let die = self.options.geometry.die_of(block);
        let scrubs = self.scrubs.as_mut().expect("blocks are due where they are scrubbed");
        scrubs.due[die.0 as usize].push_back(block);
    }

    /// Whether a block of `die` waits that can be moved.
    #[inline]
    pub(crate) fn has_to_scrub(&self, die: DieIdx) -> bool {
        self.scrubs.is_some() && self.next_scrub(die).is_some()
    }

    /// How many were.
    pub(crate) fn scrubbed(&self) -> u64 {
        self.scrubs.as_ref().map_or(0, |scrubs| scrubs.moved)
    }

    /// How many static wear levelling has moved.
    pub(crate) fn levelled(&self) -> u64 {
        self.levelled
    }

    /// The first of those that wait and are full, by its place among them.
    fn next_scrub(&self, die: DieIdx) -> Option<usize> {
        let due = &self.scrubs.as_ref()?.due[die.0 as usize];
        due.iter().position(|block| self.is_full(die, *block))
    }

    /// Whether `block` of `die` is filled, with data or with a part of the map, and is no victim.
    fn is_full(&self, die: DieIdx, block: BlockIdx) -> bool {
        let of_map = || self.on_flash.as_ref().is_some_and(|kept| kept.is_closed(die, block));
        self.blocks.is_closed(block) || of_map()
    }

    /// `block` of `die` was erased.
    #[inline]
    pub(super) fn forget_scrub(&mut self, die: DieIdx, block: BlockIdx) {
        if let Some(scrubs) = &mut self.scrubs {
            scrubs.due[die.0 as usize].retain(|other| *other != block);
        }
    }

    /// A block of `die` that is to be moved now although nothing may be gained by it.
    pub(super) fn due_whatever_it_holds(&mut self, die: DieIdx) -> Option<BlockIdx> {
        // Where every page counts that costs pages, of the map too.
        if self.is_overruled() {
            return None;
        }
        self.scrub_due(die).or_else(|| self.least_worn_due(die))
    }

    fn scrub_due(&mut self, die: DieIdx) -> Option<BlockIdx> {
        let at = self.next_scrub(die)?;
        let wanted = self.wants_collection::<Equipped>(die);
        let scrubs = self.scrubs.as_mut()?;
        let gave_way = &mut scrubs.gave_way[die.0 as usize];
        if wanted && !std::mem::replace(gave_way, true) {
            return None;
        }
        *gave_way = false;
        scrubs.moved += 1;
        let block = scrubs.due[die.0 as usize].remove(at);
        scrubs.moving[die.0 as usize] = block;
        block
    }

    /// Whether the victim that was chosen last of `die` is moved for its own sake.
    pub(super) fn scrubs(&mut self, die: DieIdx, victim: BlockIdx) -> bool {
        let moving = self.scrubs.as_mut().and_then(|scrubs| scrubs.moving[die.0 as usize].take());
        moving == Some(victim)
    }

    /// The block that static wear levelling wants to move now.
    fn least_worn_due(&mut self, die: DieIdx) -> Option<BlockIdx> {
        let gap = self.options.static_gap;
        let per_die = self.options.geometry.shape().blocks_per_die;
        if gap == 0 || self.since_static[die.0 as usize] < per_die.div_ceil(STATIC_INTERVAL) {
            return None;
        }
        self.since_static[die.0 as usize] = 0;
        let blocks = || self.options.geometry.blocks_of(die);
        let most = blocks().map(|block| self.blocks.wear(block)).max()?;
        let closed = blocks().filter(|block| self.is_full(die, *block));
        let least = closed.min_by_key(|block| self.blocks.wear(*block))?;
        let due = most - self.blocks.wear(least) > gap;
        self.levelled += u64::from(due);
        due.then_some(least)
    }
}
