//! Flash with contents, so that what is read can be compared with what was written.

use crate::flash::geometry::{BlockIdx, Geometry, Place};
use crate::flash::media::{CollectMedia, Flash, Media, Merge, MergeMedia};
use crate::flash::nand::PageOrder;

/// Flash with contents: every page holds the number of the write that programmed it.
pub(super) struct Shadow {
    pub(super) flash: Flash,
    pub(super) content: Vec<Option<u64>>,
    pub(super) writing: u64,
    pub(super) merged: Option<Option<u64>>,
    /// Physical pages that hold a page of the map; and pages of data that collections moved, and
    /// their victims.
    pub(super) mapping: Vec<bool>,
    pub(super) data_moved: u64,
    pub(super) data_victims: u64,
}

impl Shadow {
    pub(super) fn new(geometry: Geometry, order: PageOrder) -> Shadow {
        Shadow {
            flash: Flash::new(geometry, order),
            content: vec![None; geometry.pages() as usize],
            writing: 0,
            merged: None,
            mapping: vec![false; geometry.pages() as usize],
            data_moved: 0,
            data_victims: 0,
        }
    }
}

impl Media for Shadow {
    fn read(&mut self, from: Place) {
        self.flash.read(from);
    }
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        let programmed = self.flash.program(to, merge_from);
        self.merged = merge_from.map(|from| self.content[from.page.0 as usize]);
        self.content[to.page.0 as usize] = programmed.then_some(self.writing);
        self.mapping[to.page.0 as usize] = false;
        programmed
    }
    fn program_metadata(&mut self, to: Place) -> bool {
        self.flash.program_metadata(to)
    }
}

impl CollectMedia for Shadow {
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<Place>) {
        self.flash.begin_collection(victim, metadata);
        let first = self.flash.geometry.first_page(victim).0 as usize;
        self.data_victims += u64::from(!self.mapping[first]);
    }
    fn relocate(&mut self, from: Place, to: Place) -> bool {
        if !self.flash.relocate(from, to) {
            return false;
        }
        self.content[to.page.0 as usize] = self.content[from.page.0 as usize];
        self.mapping[to.page.0 as usize] = self.mapping[from.page.0 as usize];
        self.data_moved += u64::from(!self.mapping[from.page.0 as usize]);
        true
    }
    fn read_for_nothing(&mut self, from: Place) {
        self.flash.read_for_nothing(from);
    }
    fn is_worn(&self, page: Place) -> bool {
        self.flash.is_worn(page)
    }
    fn retire_block(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
    }
    fn retire_page(&mut self, page: Place) {
        self.flash.retire_page(page);
    }
    fn erase(&mut self, block: BlockIdx) -> bool {
        let erased = self.flash.erase(block);
        let first = self.flash.geometry.first_page(block).0 as usize;
        let pages = self.flash.geometry.shape().pages_per_block as usize;
        self.content[first..first + pages].fill(None);
        erased
    }
    fn give_up(&mut self, pages: u32) {
        self.flash.give_up(pages);
    }
    fn look_up_map(&mut self, hit: bool) {
        self.flash.look_up_map(hit);
    }
    fn read_mapping(&mut self, from: Place) {
        self.flash.read_mapping(from);
    }
    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) -> bool {
        let programmed = self.flash.program_mapping(to, merge_from);
        self.mapping[to.page.0 as usize] = true;
        self.content[to.page.0 as usize] = programmed.then_some(self.writing);
        programmed
    }
}

impl MergeMedia for Shadow {
    fn copy(&mut self, from: Place, to: Place) {
        self.relocate(from, to);
    }
    fn erase_merged(&mut self, block: BlockIdx) {
        self.erase(block);
    }
    fn program_map(&mut self, to: Place) {
        self.flash.program_map(to);
    }
    fn count_map_lookup(&mut self, hit: bool) {
        self.flash.count_map_lookup(hit);
    }
    fn load_map(&mut self, from: Place) {
        assert!(self.mapping[from.page.0 as usize], "a page of the map");
        self.flash.load_map(from);
    }
    fn store_map(&mut self, pages: &[(Place, Option<Place>)]) {
        for (to, merge_from) in pages {
            assert!(merge_from.is_none_or(|from| self.mapping[from.page.0 as usize]));
            self.program_mapping(*to, *merge_from);
        }
    }
    fn begin_reclaim(&mut self) {
        self.flash.begin_reclaim();
    }
    fn count_merge(&mut self, merge: Merge) {
        self.flash.count_merge(merge);
    }
    fn await_merges(&mut self) {}
}
