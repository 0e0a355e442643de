//! An FTL that merges after power was lost: its tables are made again, and what was cut short is finished.
//!
//! ```text
//! spare areas ─▶ blocks that nobody needs │ tables ─▶ plan: erase │ merge, erase │ merge, erase
//! ```
//!
//! What the plan says is done one thing after the other, but for blocks that are erased together, and power may
//! be cut at any moment of it.
//!
//! **Source**: [`Survey`].
//! **Faithful**: what is read, programmed and erased takes its time on its die and channel.
//! **Simplified**: nothing of it goes on beside the host.
//! **Ambiguous**: nothing.

use super::SimDevice;
use super::any::AnyBackend;
use super::scan::Done;
use crate::config::Profile;
use crate::flash::contents::Contents;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::BlockIdx;
use crate::flash::plan::{Cmd, Plan};
use crate::ftl::Merging;

impl SimDevice {
    /// The FTL that merges, as what is on flash makes it, and what has to be done; `None` where the device has
    /// another.
    pub(super) fn rebuilt(
        &self,
        profile: &Profile,
        contents: &Contents,
    ) -> Option<(Merging, Plan)> {
        if !profile.merges() {
            return None;
        }
        let mut ftl = Merging::by_name(&profile.merging_options()).expect("it was made of it");
        let found = Survey::of(contents, self.flash.geometry, |block| ftl.group_of(block));
        let mut plan = Plan::default();
        found.dropped().iter().for_each(|block| plan.erase(*block));
        plan.barrier();
        ftl.rebuild(&found, &mut plan);
        Some((ftl, plan))
    }

    /// Go on with `ftl`, once what `plan` says is done.
    pub(super) fn adopt(&mut self, ftl: Merging, plan: &mut Plan, contents: &mut Contents) {
        self.do_now(plan, contents);
        let AnyBackend::Merged(merged) = &mut self.backend else { unreachable!("it merges") };
        merged.ftl = ftl;
    }

    /// Do what `plan` says on what is found on flash.
    fn do_now(&mut self, plan: &mut Plan, contents: &mut Contents) {
        let geometry = self.flash.geometry;
        for block in (0..geometry.blocks()).map(BlockIdx) {
            let erased = |page| contents.is_erased(geometry.place(block, page).page);
            let mut pages = (0..geometry.shape().pages_per_block).rev();
            let end = pages.find(|page| !erased(*page)).map_or(0, |last| last + 1);
            self.flash.found_pages(block, end, |page| !erased(page));
        }
        contents.decide_plan(plan, std::iter::empty(), |_| None, false);
        contents.all_is_done();
        self.flash.carry_out(plan);
    }

    /// Do those of `steps` that end by `at`; one that has begun is torn.
    pub(super) fn do_until(&mut self, steps: &[Done], at: u64, contents: &mut Contents) {
        let mut plan = Plan::default();
        for step in steps.iter().filter(|step| step.end <= at) {
            match step.what {
                Cmd::Copy { from, to } => plan.copy(from, to),
                Cmd::Erase { block, .. } => plan.erase(block),
                other => unreachable!("{other:?} is not done to recover"),
            }
        }
        if steps.is_empty() {
            return;
        }
        self.do_now(&mut plan, contents);
        for step in steps.iter().filter(|step| step.begin < at && at < step.end) {
            match step.what {
                Cmd::Copy { to, .. } => contents.tear(to.page),
                Cmd::Erase { block, .. } => contents.half_erase(block),
                other => unreachable!("{other:?} is not done to recover"),
            }
        }
    }
}
