//! Recovery of a merging FTL: rebuild its tables, and finish interrupted merges.
//!
//! ```text
//! spare areas ─▶ unneeded blocks │ tables ─▶ plan: erase │ merge, erase │ merge, erase
//! ```
//!
//! The plan's steps run one after the other, except erases of several blocks; power may be cut at
//! any time. With replacement blocks, spare areas name the block that each replaces; unused ones
//! are erased first. Operations of the plan may fail as at any other time.
//!
//! **Source**: [`Survey`].
//! **Faithful**: reads, programs and erases take their time on die and channel.
//! **Simplified**: nothing runs concurrently with the host.
//! **Ambiguous**: nothing.

use super::SimDevice;
use super::any::AnyBackend;
use super::plan_records;
use super::scan::RecoveryOp;
use crate::config::Profile;
use crate::flash::contents::Contents;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::BlockIdx;
use crate::flash::plan::FlashPlan;
use crate::ftl::Merging;

impl SimDevice {
    /// Rebuild the merging FTL from flash. Return the plan that was needed and executed. With
    /// `time`, also return a record per operation, none of which has ended.
    pub(super) fn rebuild(
        &mut self,
        profile: &Profile,
        contents: &mut Contents,
        time: bool,
    ) -> (FlashPlan, Vec<u32>) {
        self.restore_flash(contents);
        let mut ftl =
            Merging::by_name(&profile.merging_options()).expect("the options were valid before");
        let mut plan = FlashPlan::default();
        let mut records = Vec::new();
        if !self.flash.is_used_up() {
            let geometry = *contents.geometry();
            let survey = Survey::new(contents, geometry, |block| ftl.group_of(block));
            survey.dropped().iter().for_each(|block| plan.erase(*block));
            plan.barrier();
            ftl.rebuild(&survey, &mut plan);
            let (pages, flash) = (std::iter::empty(), &mut self.flash);
            records = plan_records::execute(&mut plan, pages, |_| None, time, flash, contents);
        }
        if !time {
            contents.apply_all();
        }
        let AnyBackend::Merged(merged) = &mut self.backend else {
            unreachable!("the device has a merging FTL")
        };
        (merged.ftl, merged.last_addresses, merged.read_only) = (ftl, None, false);
        if self.flash.is_used_up() {
            merged.keep_readable(contents, |_| true);
        }
        (plan, records)
    }

    /// Set the flash state from `contents`.
    fn restore_flash(&mut self, contents: &Contents) {
        let stand_in = contents.tracks_physical_blocks().then(|| contents.named_blocks());
        if let Some(named) = &stand_in {
            self.flash.restore_replacements(named);
        }
        let geometry = *contents.geometry();
        let blocks = (0..geometry.blocks()).map(BlockIdx);
        let is_there = |block: &BlockIdx| {
            stand_in.as_ref().is_none_or(|named| named[block.0 as usize].is_some())
        };
        for block in blocks.filter(is_there) {
            let erased = |page| contents.is_erased(geometry.address_at(block, page).page);
            let mut pages = (0..geometry.shape().pages_per_block).rev();
            let end = pages.find(|page| !erased(*page)).map_or(0, |last| last + 1);
            self.flash.restore_pages(block, end, |page| !erased(page));
        }
    }

    /// Read the defect lists, if the flash has replacement blocks.
    pub(super) fn read_lists(&mut self, contents: &Contents) {
        if let Some(defects) = contents.defects().filter(|_| contents.tracks_physical_blocks()) {
            self.flash.reset_after_power_loss(defects.listed(), contents.erased_blocks());
        }
    }

    /// Complete those of `records` that end by `at` according to `steps`; one in progress is torn.
    pub(super) fn do_until(
        &mut self,
        (records, steps): (&[u32], &[RecoveryOp]),
        at: u64,
        contents: &mut Contents,
    ) {
        contents.stop(records, steps.iter().map(|step| (step.begin, step.end)), at);
    }
}
