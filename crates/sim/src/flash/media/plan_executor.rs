//! Execution of plans on a device that replaces the FTL's blocks or pages. On flash that wears out, reads are
//! retried and failed blocks are replaced; on flash that requires it, the pages of a block are programmed in
//! order. The executed operations take the address of the planned ones.
//!
//! ```text
//! planned   copy A3 → B3                                  erase A
//! executed  read A3 (fails), copy A3 → B3 (fails),        erase A (fails): Z replaces A
//!           copy B0 → R0, copy B1 → R1: R replaces B,
//!           copy A3 → R3
//! ```

use super::{CollectMedia as _, Flash, Media as _};
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, PageAddress};
use crate::flash::plan::{Cmd, FlashPlan, Move, PageRow};
use crate::flash::replacement::{BlockMove, Note, PageContent, ReplacementTable};

impl Flash {
    /// [`Flash::execute`] on a device that replaces blocks or pages.
    #[inline(never)]
    pub(super) fn execute_replaced(&mut self, plan: &mut FlashPlan) {
        let mut requested = self.replacements().planned.take().unwrap_or_default();
        std::mem::swap(plan, &mut *requested);
        plan.clear();
        self.replacements().notes.clear();
        let mut executor = PlanExecutor { flash: self, executed: plan };
        for command in requested.commands() {
            executor.execute_command(command, &requested);
        }
        if self.records_notes() {
            plan.record_requested(&requested);
        }
        self.replacements().planned = Some(requested);
    }

    /// Return whether a block has failed and no replacement was left.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.replacements.as_ref().is_some_and(|replacements| replacements.used_up)
    }

    pub(super) fn replacements(&mut self) -> &mut ReplacementTable {
        self.replacements.as_mut().expect("the replacement table exists")
    }

    /// Return whether executed operations are recorded as notes.
    #[inline]
    pub(crate) fn records_notes(&self) -> bool {
        self.replacements.as_ref().is_some_and(|replacements| replacements.records_notes)
    }

    /// Return whether blocks or pages can be replaced by others.
    pub(crate) fn replaces_blocks(&self) -> bool {
        self.replacements.is_some()
    }

    /// Return the physical block of an FTL's block.
    #[cfg(test)]
    pub(crate) fn physical_block(&self, logical: BlockIdx) -> BlockIdx {
        self.replacements.as_ref().map_or(logical, |replacements| replacements.block(logical))
    }

    /// Return whether pages of a block are programmed in the FTL's order.
    pub(crate) fn is_ordered(&self) -> bool {
        let by_table =
            self.replacements.as_ref().is_some_and(|replacements| replacements.is_by_table());
        !self.nand.is_in_any_order() && !by_table
    }

    /// Return the notes of the last plan, if they are recorded.
    pub(crate) fn notes(&self) -> &[Note] {
        self.replacements.as_ref().map_or(&[], |replacements| &replacements.notes)
    }

    /// Record notes: the content of the flash is tracked.
    pub(crate) fn record_notes(&mut self) {
        self.replacements().records_notes = true;
    }

    /// Return the physical address of the FTL's page at `address`.
    #[inline]
    pub(crate) fn physical_address(&self, address: PageAddress) -> PageAddress {
        self.replacements
            .as_ref()
            .map_or(address, |replacements| replacements.physical_address(address, &self.geometry))
    }
}

/// Flash that replaces blocks or pages, and the executed operations.
struct PlanExecutor<'a> {
    pub(super) flash: &'a mut Flash,
    pub(super) executed: &'a mut FlashPlan,
}

impl PlanExecutor<'_> {
    fn execute_command(&mut self, command: &Cmd, plan: &FlashPlan) {
        match *command {
            Cmd::Read(from) => {
                let from = self.flash.physical_address(from);
                self.flash.read(from);
                self.record_retries(from);
                self.executed.read(from);
            }
            Cmd::Program { to, merge_from: rest } => self.program(to, rest),
            Cmd::Copy { from, to } => self.copy(from, to),
            Cmd::CopySet { from, to, set } => {
                let words = plan.words(set);
                for page in bits::members(words, 0, 64 * words.len()) {
                    self.copy(from.plus_pages(page as u32), to.plus_pages(page as u32));
                }
            }
            Cmd::CopyRow(row) => self.copy_row(plan.row(row)),
            Cmd::CopyStream(pages) => self.stream(plan.moves(pages), false),
            Cmd::Erase { block, .. } => self.erase(block),
            Cmd::ProgramMap(to) => {
                self.attempt(to, PageContent::Nothing, |executor, to| {
                    executor.executed.program_map(to);
                    executor.flash.program_metadata(to)
                });
            }
            Cmd::Parity(to) => {
                self.attempt(to, PageContent::Nothing, |executor, to| {
                    let programmed = executor.flash.program_metadata(to);
                    match programmed {
                        true => executor.executed.parity(to),
                        false => executor.executed.add_failed_program(to),
                    }
                    programmed
                });
            }
            Cmd::LoadMap(_) if self.should_stop() => {}
            Cmd::LoadMap(from) => {
                let from = self.flash.physical_address(from);
                self.flash.read_mapping(from);
                self.record_internal_retries(from);
                self.executed.load_map(from);
            }
            Cmd::StoreMap(pages) => self.stream(plan.moves(pages), true),
            Cmd::Count(counted) => {
                self.flash.count(counted);
                self.executed.count(counted);
            }
            Cmd::Barrier => self.executed.barrier(),
            Cmd::FailedRead(_) | Cmd::FailedProgram(_) | Cmd::List(_) | Cmd::Settle => {
                unreachable!("an FTL does not plan this command")
            }
        }
    }

    /// Record the read retries of the page at `from`.
    fn record_retries(&mut self, from: PageAddress) {
        for _ in 0..std::mem::take(&mut self.flash.retries) {
            self.executed.add_failed_read(from);
        }
    }

    /// Like [`PlanExecutor::record_retries`], for a read that is not an I/O of the host.
    fn record_internal_retries(&mut self, from: PageAddress) {
        self.record_retries(from);
        self.flash.read_failed = false;
    }

    #[inline]
    pub(super) fn note(&mut self, note: Note) {
        let replacements = self.flash.replacements();
        if replacements.records_notes {
            replacements.notes.push(note);
        }
    }

    /// Return whether to stop executing the plan: a block has failed without a replacement, and the content
    /// of the flash is tracked. The data must stay as it is, since the rest of the plan erases pages that
    /// should have been copied by now.
    #[inline]
    fn should_stop(&self) -> bool {
        self.flash.records_notes() && self.flash.is_used_up()
    }

    /// Program the FTL's page `to` with the content `holds` until that succeeds. `program` receives the
    /// physical address and returns whether it succeeded. Returns false if no block is left to replace a failed
    /// one.
    fn attempt(
        &mut self,
        to: PageAddress,
        holds: PageContent,
        mut program: impl FnMut(&mut Self, PageAddress) -> bool,
    ) -> bool {
        if self.should_stop() {
            return false;
        }
        self.flash.replacements().allocate(to);
        loop {
            let at = self.flash.physical_address(to);
            let programmed = program(self, at);
            self.note(Note::Program { to, by: at.block, holds, fails: !programmed });
            if programmed {
                return true;
            }
            if !self.replace(to.block, Some((at, to))) {
                self.flash.record_lost_pages(1);
                return false;
            }
        }
    }

    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) {
        if self.should_stop() {
            return;
        }
        let merge_from = merge_from.map(|merge_from| self.flash.physical_address(merge_from));
        if let Some(merge_from) = merge_from {
            self.flash.read_to_modify(merge_from);
            self.record_internal_retries(merge_from);
        }
        self.attempt(to, PageContent::Host, |executor, to| {
            let programmed = executor.flash.program(to, None);
            match programmed {
                true => executor.executed.program(to, merge_from),
                false => executor.executed.add_failed_program(to),
            }
            programmed
        });
    }

    #[inline]
    fn copy(&mut self, from: PageAddress, to: PageAddress) {
        if !self.flash.wears_out() {
            // No read is retried, and no program fails.
            let Flash { replacements, geometry, .. } = &mut *self.flash;
            let replacements = replacements.as_mut().expect("the replacement table exists");
            replacements.allocate(to);
            let (at, by) = (
                replacements.physical_address(from, geometry),
                replacements.physical_address(to, geometry),
            );
            if replacements.records_notes {
                let holds = PageContent::Page(from.page);
                replacements.notes.push(Note::Program { to, by: by.block, holds, fails: false });
            }
            self.flash.relocate(at, by);
            return self.executed.copy(at, by);
        }
        let holds = PageContent::Page(from.page);
        self.attempt(to, holds, |executor, to| {
            executor.move_to(executor.flash.physical_address(from), to)
        });
    }

    /// Move pages that are at their own offsets plane by plane, the others one by one.
    #[inline]
    fn copy_row(&mut self, row: &PageRow) {
        if !self.flash.wears_out() && self.flash.moves_in_order(row) {
            return self.executed.copy_row(*row);
        }
        row.moves().for_each(|(from, to)| self.copy(from, to));
    }

    /// Move a page between physical addresses. Returns false if it cannot be programmed.
    fn move_to(&mut self, from: PageAddress, to: PageAddress) -> bool {
        let programmed = self.flash.relocate(from, to);
        self.record_internal_retries(from);
        self.executed.copy(from, to);
        programmed
    }

    /// Move pages of a merge, or of the map, one after the other: one stream up to each failure.
    fn stream(&mut self, pages: &[Move], of_map: bool) {
        let mut moved: Vec<Move> = Vec::with_capacity(pages.len());
        for Move { from, to } in pages {
            let holds = match from {
                _ if of_map => PageContent::Map,
                Some(from) => PageContent::Page(from.page),
                None => PageContent::Nothing,
            };
            self.attempt(*to, holds, |executor, to| {
                let from = from.map(|from| executor.flash.physical_address(from));
                let programmed = match from {
                    _ if of_map => executor.flash.program_mapping(to, from),
                    Some(from) => executor.flash.relocate(from, to),
                    None => executor.flash.program_metadata(to),
                };
                from.into_iter().for_each(|from| executor.record_internal_retries(from));
                moved.push(Move { from, to });
                if !programmed {
                    executor.flush_stream(&mut moved, of_map);
                }
                programmed
            });
        }
        self.flush_stream(&mut moved, of_map);
    }

    /// Record the pages moved so far as one stream.
    fn flush_stream(&mut self, moved: &mut Vec<Move>, of_map: bool) {
        match of_map {
            _ if moved.is_empty() => {}
            true => self.executed.store_map_of(moved),
            false => self.executed.copy_stream(moved),
        }
        moved.clear();
    }

    fn erase(&mut self, logical: BlockIdx) {
        if self.should_stop() {
            return;
        }
        let block = self.flash.replacements().block(logical);
        let extra_ns = self.flash.erase_extra_ns(block);
        let erased = self.flash.erase(block);
        self.flash.replacements().erased(logical);
        self.executed.erase_worn(block, extra_ns);
        self.note(Note::Erase { logical: Some(logical), block, fails: !erased });
        self.is_erased(logical, erased);
        let may_fail = self.flash.wears_out();
        let Flash { replacements, nand, .. } = &mut *self.flash;
        let replacements = replacements.as_mut().expect("the replacement table exists");
        if let Some((cold, free)) =
            replacements.next_levelling_move(logical, may_fail, |block| nand.erases(block))
        {
            self.level(cold, free);
        }
    }

    // Moves of whole rows of pages, and of blocks under a merging FTL: a failed block is replaced; a block that
    // wears too little, or was read too often, is copied.

    /// Handle the erase of the FTL's block `logical`, successful or not: an unfit physical block is replaced.
    pub(super) fn is_erased(&mut self, logical: BlockIdx, erased: bool) {
        let block = self.flash.replacements().block(logical);
        let unusable =
            !erased || self.flash.replacements().retire_worn && self.has_worn_pages(block);
        if !unusable || self.replace(logical, None) {
            self.record_erased(logical);
        }
    }

    /// Record that the physical block of `logical` is erased.
    fn record_erased(&mut self, logical: BlockIdx) {
        let block = self.flash.replacements().block(logical);
        let wear = self.flash.nand.erases(block);
        self.flash.replacements().is_erased(logical, wear);
    }

    /// Move the data of the FTL's block `cold` to the physical block of `free`, which is erased; `free`
    /// receives the old block of `cold`.
    pub(super) fn level(&mut self, cold: BlockIdx, free: BlockIdx) {
        let old = self.flash.replacements().block(cold);
        let by = self.flash.replacements().block(free);
        let programmed = self.flash.nand.programmed(old);
        self.executed.barrier();
        if !self.move_block(BlockMove { logical: cold, failed: None }, by, &programmed) {
            let next = self.flash.replacements().next(free).expect("a replacement block is left");
            self.flash.replacements().replace(free, next);
            return self.record_erased(free);
        }
        let erased = self.erase_source(old);
        self.executed.barrier();
        self.flash.counters.blocks_levelled += 1;
        self.flash.replacements().replace(free, old);
        self.is_erased(free, erased);
    }

    /// Erase `old`, whose pages were all copied; returns false if that fails.
    fn erase_source(&mut self, old: BlockIdx) -> bool {
        let extra_ns = self.flash.erase_extra_ns(old);
        self.executed.barrier();
        self.executed.erase_worn(old, extra_ns);
        let erased = self.flash.erase(old);
        self.note(Note::Erase { logical: None, block: old, fails: !erased });
        erased
    }

    fn has_worn_pages(&self, block: BlockIdx) -> bool {
        let geometry = &self.flash.geometry;
        let units = geometry.units() as usize;
        let mut pages = (0..geometry.shape().pages_per_block).step_by(units);
        pages.any(|page| self.flash.is_worn(geometry.address_at(block, page)))
    }

    /// Replace the physical block of the FTL's block `logical`. `failed`: the page whose program failed,
    /// physical and as the FTL numbers it; `None` if the block is empty. Returns false if no block is left.
    pub(super) fn replace(
        &mut self,
        logical: BlockIdx,
        failed: Option<(PageAddress, PageAddress)>,
    ) -> bool {
        let old = self.flash.replacements().block(logical);
        let mut pages_to_copy = match failed {
            Some(_) => self.flash.nand.programmed(old),
            None => Vec::new(),
        };
        let (at, failed) = failed.unzip();
        pages_to_copy.retain(|page| Some(self.flash.geometry.address_at(old, *page)) != at);
        while let Some(by) = self.flash.replacements().next(logical) {
            if self.move_block(BlockMove { logical, failed }, by, &pages_to_copy) {
                self.retire(old);
                return true;
            }
        }
        false
    }

    /// Make `by` the physical block of the `moved` block, with copies of its pages `kept_pages`. Returns false if a
    /// copy fails; `by` is then retired.
    fn move_block(&mut self, moved: BlockMove, by: BlockIdx, kept_pages: &[u32]) -> bool {
        let old = self.flash.replacements().block(moved.logical);
        let geometry = self.flash.geometry;
        if self.flash.records_notes() && !kept_pages.is_empty() {
            // Some of them may still be in progress.
            self.executed.settle();
        }
        let (pages, failed) = (kept_pages.len() as u32, moved.failed.is_some());
        for (left, page) in (0..kept_pages.len()).rev().zip(kept_pages) {
            let copied =
                self.move_to(geometry.address_at(old, *page), geometry.address_at(by, *page));
            let ends = (copied && left == 0).then_some(moved);
            self.note(Note::Copy { old, into: by, pages, failed, ends });
            if !copied {
                self.retire(by);
                return false;
            }
        }
        self.flash.replacements().replace(moved.logical, by);
        true
    }

    /// Retire `block`.
    fn retire(&mut self, block: BlockIdx) {
        self.flash.retire_block(block);
        if self.flash.records_notes() {
            self.executed.list(self.flash.geometry.address_at(block, 0));
            self.note(Note::List(block));
        }
    }

    /// Copy the FTL's block `logical` to a reserve block; its old block is erased and joins the reserve.
    /// Returns false if the reserve is empty.
    pub(super) fn scrub(&mut self, logical: BlockIdx) -> bool {
        let old = self.flash.replacements().block(logical);
        let programmed = self.flash.nand.programmed(old);
        let moved = BlockMove { logical, failed: None };
        while let Some(by) = self.flash.replacements().spare(logical) {
            if !self.move_block(moved, by, &programmed) {
                continue;
            }
            match self.erase_source(old) {
                true => self.flash.replacements().release(logical, old),
                false => self.retire(old),
            }
            return true;
        }
        false
    }
}

impl Flash {
    /// Move the pages of `row`, if all its pieces are at their own offsets in the source and the target block;
    /// returns false if it moved none. No page can fail.
    fn moves_in_order(&mut self, row: &PageRow) -> bool {
        let Flash { replacements, nand, counters, .. } = self;
        let replacements = replacements.as_mut().expect("the replacement table exists");
        if !nand.is_regular() || !replacements.collect_pieces(row) {
            return false;
        }
        for piece in replacements.take_pieces() {
            nand.copy_piece(piece);
        }
        let pages = u64::from(row.pages.count_ones());
        counters.pages_read += pages;
        counters.pages_programmed += pages;
        counters.pages_relocated += pages;
        true
    }

    // Recovery of the flash under a merging FTL after a power loss: programmed pages and replaced blocks.

    /// Set the programmed pages of an FTL's block, in whatever order the flash requires; `programmed` tests a
    /// page, and all are before `end`.
    pub(crate) fn restore_pages(
        &mut self,
        block: BlockIdx,
        end: u32,
        programmed: impl Fn(u32) -> bool,
    ) {
        let Flash { nand, replacements, .. } = self;
        let by = replacements.as_ref().map_or(block, |replacements| replacements.block(block));
        if nand.is_in_any_order() {
            return nand.restore_pages(by, programmed);
        }
        let programmed_pages =
            replacements.as_mut().and_then(|replacements| replacements.rebuild(block, programmed));
        nand.restore_programmed(by, programmed_pages.unwrap_or(end));
    }

    /// Restore the replacement of blocks: `named` is the physical block of each of the FTL's blocks. All
    /// other good blocks are erased.
    pub(crate) fn restore_replacements(&mut self, named: &[Option<BlockIdx>]) {
        let Flash { nand, replacements, geometry, .. } = self;
        let mut used = vec![false; geometry.blocks() as usize];
        named.iter().flatten().for_each(|block| used[block.0 as usize] = true);
        let others = (0..geometry.blocks()).map(BlockIdx);
        let erased: Vec<BlockIdx> =
            others.filter(|block| !used[block.0 as usize] && !nand.is_bad(*block)).collect();
        for block in &erased {
            match nand.is_in_any_order() {
                true => nand.restore_pages(*block, |_| false),
                false => nand.restore_programmed(*block, 0),
            }
        }
        let replacements = replacements.as_mut().expect("the replacement table exists");
        replacements.reset_after_power_loss(named, &erased, geometry, |block| nand.erases(block));
    }
}

// Scrubbing: blocks are moved because of their reads or their age.
//
// A page map moves the valid pages, as in a collection. Under a merging FTL it is invisible: the programmed
// pages are copied to a reserve block, page by page, which replaces the block; the block is erased and joins
// the end of the reserve.

impl Flash {
    /// Return whether a block may be due at `clock`.
    #[inline]
    pub(crate) fn has_scrubs(&self, clock: u64) -> bool {
        self.wear_out.as_ref().is_some_and(|wear_out| wear_out.has_due(clock))
    }

    /// Return the next block that is due.
    pub(crate) fn next_scrub(&mut self, clock: u64) -> Option<BlockIdx> {
        self.wear_out.as_mut()?.next_due(clock)
    }

    /// Copy `block` to a reserve block; `plan` receives the executed operations. Does nothing if the reserve
    /// is empty or the FTL does not use `block`.
    pub(crate) fn scrub(&mut self, block: BlockIdx, plan: &mut FlashPlan) {
        let logical =
            self.replacements.as_ref().and_then(|replacements| replacements.logical(block));
        let held = logical.filter(|_| !self.nand.programmed(block).is_empty());
        if let Some(logical) = held {
            self.replacements().notes.clear();
            let scrubbed = PlanExecutor { flash: self, executed: plan }.scrub(logical);
            self.counters.blocks_scrubbed += u64::from(scrubbed);
        }
    }
}
