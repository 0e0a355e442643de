//! An FTL that merges after power was lost: its tables are made again, and what was cut short is finished.
//!
//! ```text
//! spare areas ─▶ blocks that nobody needs │ tables ─▶ plan: erase │ merge, erase │ merge, erase
//! ```
//!
//! What the plan says is done one thing after the other, but for blocks that are erased together, and power may
//! be cut at any moment of it. Where others stand in for blocks, spare areas say which, and blocks that stand in for
//! none are erased before; what the plan asks for may fail, as at any other time.
//!
//! **Source**: [`Survey`].
//! **Faithful**: what is read, programmed and erased takes its time on its die and channel.
//! **Simplified**: nothing of it goes on beside the host.
//! **Ambiguous**: nothing.

use super::SimDevice;
use super::any::AnyBackend;
use super::decided;
use super::scan::Done;
use crate::config::Profile;
use crate::flash::contents::Contents;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::BlockIdx;
use crate::flash::plan::Plan;
use crate::ftl::Merging;

impl SimDevice {
    /// Go on with the FTL that merges as what is on flash makes it. Returns what has to be done for that, and was; with
    /// `time` also a record of each operation, none of which has ended.
    pub(super) fn rebuild(
        &mut self,
        profile: &Profile,
        contents: &mut Contents,
        time: bool,
    ) -> (Plan, Vec<u32>) {
        self.find(contents);
        let mut ftl = Merging::by_name(&profile.merging_options()).expect("it was made of it");
        let mut plan = Plan::default();
        let mut records = Vec::new();
        if !self.flash.is_used_up() {
            let geometry = *contents.geometry();
            let found = Survey::of(contents, geometry, |block| ftl.group_of(block));
            found.dropped().iter().for_each(|block| plan.erase(*block));
            plan.barrier();
            ftl.rebuild(&found, &mut plan);
            let (pages, flash) = (std::iter::empty(), &mut self.flash);
            records = decided::carry_out(&mut plan, pages, |_| None, time, flash, contents);
        }
        if !time {
            contents.all_is_done();
        }
        let AnyBackend::Merged(merged) = &mut self.backend else { unreachable!("it merges") };
        (merged.ftl, merged.at_end, merged.read_only) = (ftl, None, false);
        if self.flash.is_used_up() {
            merged.has_ended(contents, |_| true);
        }
        (plan, records)
    }

    /// The flash is as `contents` say.
    fn find(&mut self, contents: &Contents) {
        let stand_in = contents.has_beneath().then(|| contents.stand_in());
        if let Some(named) = &stand_in {
            self.flash.stand_in_again(named);
        }
        let geometry = *contents.geometry();
        let blocks = (0..geometry.blocks()).map(BlockIdx);
        let is_there = |block: &BlockIdx| {
            stand_in.as_ref().is_none_or(|named| named[block.0 as usize].is_some())
        };
        for block in blocks.filter(is_there) {
            let erased = |page| contents.is_erased(geometry.place(block, page).page);
            let mut pages = (0..geometry.shape().pages_per_block).rev();
            let end = pages.find(|page| !erased(*page)).map_or(0, |last| last + 1);
            self.flash.found_pages(block, end, |page| !erased(page));
        }
    }

    /// What is known of defects is what lists say, where others stand in for blocks that have any.
    pub(super) fn read_lists(&mut self, contents: &Contents) {
        if let Some(defects) = contents.defects().filter(|_| contents.has_beneath()) {
            self.flash.begin_anew(defects.listed(), contents.erased_blocks());
        }
    }

    /// Of `records` those have been done that end by `at`, as `steps` say; one that has begun is torn.
    pub(super) fn do_until(
        &mut self,
        (records, steps): (&[u32], &[Done]),
        at: u64,
        contents: &mut Contents,
    ) {
        contents.stop(records, steps.iter().map(|step| (step.begin, step.end)), at);
    }
}
