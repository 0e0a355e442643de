//! Flash with contents: reads can be compared with writes.

use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress};
use crate::flash::media::{CollectMedia, Flash, Media};
use crate::flash::nand::PageOrder;
use crate::flash::plan::{Cmd, FlashPlan, Move};

/// Flash with contents: every page holds the number of the write that programmed it.
pub(super) struct Shadow {
    pub(super) flash: Flash,
    pub(super) content: Vec<Option<u64>>,
    pub(super) writing: u64,
    pub(super) merged: Option<Option<u64>>,
    /// Physical pages with a mapping page; and data pages that collections moved, and their victims.
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
    type Path = crate::flash::fast_path::AllFeatures;

    fn read(&mut self, from: PageAddress) {
        self.flash.read(from);
    }
    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        let programmed = self.flash.program(to, merge_from);
        self.merged = merge_from.map(|from| self.content[from.page.0 as usize]);
        self.content[to.page.0 as usize] = programmed.then_some(self.writing);
        self.mapping[to.page.0 as usize] = false;
        programmed
    }
    fn program_metadata(&mut self, to: PageAddress) -> bool {
        self.flash.program_metadata(to)
    }
}

impl CollectMedia for Shadow {
    fn pad(&mut self, to: PageAddress) {
        self.flash.pad(to);
    }

    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<PageAddress>) {
        self.flash.begin_collection(victim, metadata);
        let first = self.flash.geometry.first_page(victim).0 as usize;
        self.data_victims += u64::from(!self.mapping[first]);
    }
    fn relocate(&mut self, from: PageAddress, to: PageAddress) -> bool {
        if !self.flash.relocate(from, to) {
            return false;
        }
        self.content[to.page.0 as usize] = self.content[from.page.0 as usize];
        self.mapping[to.page.0 as usize] = self.mapping[from.page.0 as usize];
        self.data_moved += u64::from(!self.mapping[from.page.0 as usize]);
        true
    }
    fn read_unneeded(&mut self, from: PageAddress) {
        self.flash.read_unneeded(from);
    }
    fn is_worn(&self, page: PageAddress) -> bool {
        self.flash.is_worn(page)
    }

    fn errors(&self, page: PageAddress) -> u32 {
        self.flash.errors(page)
    }
    fn retire_block(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
    }
    fn retire_page(&mut self, page: PageAddress) {
        self.flash.retire_page(page);
    }
    fn erase(&mut self, block: BlockIdx) -> bool {
        let erased = self.flash.erase(block);
        let first = self.flash.geometry.first_page(block).0 as usize;
        let pages = self.flash.geometry.shape().pages_per_block as usize;
        self.content[first..first + pages].fill(None);
        erased
    }
    fn record_lost_pages(&mut self, pages: u32) {
        self.flash.record_lost_pages(pages);
    }
    fn count_scrubbed(&mut self) {
        self.flash.count_scrubbed();
    }

    fn count_levelled(&mut self) {
        self.flash.count_levelled();
    }

    fn look_up_map(&mut self, hit: bool) {
        self.flash.look_up_map(hit);
    }
    fn read_mapping(&mut self, from: PageAddress) {
        self.flash.read_mapping(from);
    }
    fn program_mapping(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool {
        let programmed = self.flash.program_mapping(to, merge_from);
        self.mapping[to.page.0 as usize] = true;
        self.content[to.page.0 as usize] = programmed.then_some(self.writing);
        programmed
    }
}

impl Shadow {
    /// Execute `plan`, page by page.
    pub(super) fn execute(&mut self, plan: &FlashPlan) {
        for command in plan.commands() {
            match *command {
                Cmd::Read(from) => self.read(from),
                Cmd::Program { to, merge_from: rest } => {
                    self.program(to, rest);
                }
                Cmd::Copy { from, to } => {
                    self.relocate(from, to);
                }
                Cmd::CopySet { from, to, set } => {
                    let words = plan.words(set);
                    for page in bits::members(words, 0, 64 * words.len()) {
                        self.relocate(from.plus_pages(page as u32), to.plus_pages(page as u32));
                    }
                }
                Cmd::CopyRow(row) => {
                    for (from, to) in plan.row(row).moves() {
                        self.relocate(from, to);
                    }
                }
                Cmd::CopyStream(pages) => {
                    for Move { from, to } in plan.moves(pages) {
                        match from {
                            Some(from) => self.relocate(*from, *to),
                            None => self.program_metadata(*to),
                        };
                    }
                }
                Cmd::Erase { block, .. } => {
                    self.erase(block);
                }
                Cmd::ProgramMap(to) | Cmd::Parity(to) => {
                    self.program_metadata(to);
                }
                Cmd::LoadMap(from) => {
                    assert!(self.mapping[from.page.0 as usize], "a mapping page");
                    self.read_mapping(from);
                }
                Cmd::StoreMap(pages) => {
                    for Move { from, to } in plan.moves(pages) {
                        assert!(from.is_none_or(|from| self.mapping[from.page.0 as usize]));
                        self.program_mapping(*to, *from);
                    }
                }
                Cmd::FailedRead(from) => self.read_unneeded(from),
                Cmd::FailedProgram(to) => {
                    self.flash.pad(to);
                }
                Cmd::Count(_) | Cmd::Barrier | Cmd::List(_) | Cmd::Settle => {}
            }
        }
    }
}
