//! Records of the planned work of a merging FTL, kept if power may be cut.
//!
//! Such a device executes one plan after the other, including those of idle time: a later plan
//! programs a block that an earlier one erased. An erase waits for all programs planned before.
//! After a block has failed without a replacement nothing more is planned: reads go to the newest
//! version on flash.

use super::backend::Hardware;
use super::event::CompletionTarget;
use super::jobs::PlanClass;
use super::merging::MergingBackend;
use super::planned_write::PlannedPages;
use crate::flash::contents::plan_notes::notes_of;
use crate::flash::contents::{Contents, Origin};
use crate::flash::geometry::{Lpn, PageAddress};
use crate::flash::media::Flash;
use crate::flash::plan::FlashPlan;

/// Execute `plan`, which programs `pages` of the host, and record its changes. `of_map` gives the
/// map page of an address. With `time`, return a record per operation, in order.
pub(super) fn execute(
    plan: &mut FlashPlan,
    pages: impl Iterator<Item = (u32, Origin)>,
    of_map: impl Fn(PageAddress) -> Option<u32>,
    time: bool,
    flash: &mut Flash,
    contents: &mut Contents,
) -> Vec<u32> {
    let planned = (!flash.records_notes()).then(|| notes_of(plan));
    flash.execute(plan);
    let notes = planned.as_deref().unwrap_or_else(|| flash.notes());
    contents.decide_notes(notes, pages, of_map, time, &flash.nand)
}

impl MergingBackend {
    /// Record that the page of a write stays in memory.
    #[inline]
    pub(super) fn record_buffered(
        &self,
        page: Lpn,
        target: CompletionTarget,
        hardware: &mut Hardware<'_>,
    ) {
        if let Some(contents) = &mut hardware.events.contents {
            contents.mark_in_memory(page.0, MergingBackend::origin(target));
        }
    }

    /// Return the origin of the version that a write creates.
    fn origin(target: CompletionTarget) -> Origin {
        target.account.map_or(Origin::Cache, |account| Origin::Account(account.number()))
    }

    /// Return the queue of idle-time steps.
    #[inline]
    pub(super) fn idle_class(hardware: &Hardware<'_>) -> PlanClass {
        if hardware.events.contents.is_some() {
            PlanClass::Foreground
        } else {
            PlanClass::Background
        }
    }

    /// Execute the plan, which programs `written` for the host.
    #[inline]
    pub(super) fn execute(&mut self, written: PlannedPages, hardware: &mut Hardware<'_>) {
        if hardware.events.contents.is_some() {
            self.decide(written, hardware);
        } else {
            hardware.flash.execute(&mut self.plan);
        }
        self.read_only = hardware.flash.is_used_up();
    }

    #[inline(never)]
    fn decide(&mut self, written: PlannedPages, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let contents = events.contents.as_mut().expect("flash contents are recorded");
        let pages: Vec<(u32, Origin)> = match written {
            PlannedPages::Nothing => Vec::new(),
            PlannedPages::Page(page, target) => vec![(page.0, MergingBackend::origin(target))],
            PlannedPages::Buffered(extent) => {
                extent.pages().map(|page| (page.0, Origin::InMemory)).collect()
            }
        };
        let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
        let records = execute(&mut self.plan, pages.into_iter(), of_map, true, flash, contents);
        self.plan.set_records(records);
        if let PlannedPages::Page(page, _) = written
            && self.buffers
            && !flash.is_used_up()
        {
            contents.release_from_memory(page.0); // its buffered version is older
        }
        self.handle_wear_out(flash, contents);
    }

    /// Execute the plan untimed; it programs `page` for the host, if any.
    #[inline]
    pub(super) fn execute_untimed(&mut self, page: Option<Lpn>, flash: &mut Flash) {
        match self.contents.take() {
            None => flash.execute(&mut self.plan),
            Some((mut contents, origin)) => {
                let page = page.map(|page| (page.0, origin)).into_iter();
                let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
                execute(&mut self.plan, page, of_map, false, flash, &mut contents);
                self.handle_wear_out(flash, &contents);
                self.contents = Some((contents, origin));
            }
        }
        self.read_only = flash.is_used_up();
    }

    /// Record the moves of a scrub.
    pub(super) fn note_scrub(&mut self, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let Some(contents) = &mut events.contents else { return };
        let notes = flash.notes();
        let records = contents.decide_notes(notes, std::iter::empty(), |_| None, true, &flash.nand);
        self.plan.set_records(records);
    }

    /// Handle a block failure without a replacement. The last plan was not completed, so the FTL's
    /// tables are wrong.
    fn handle_wear_out(&mut self, flash: &Flash, contents: &Contents) {
        if flash.is_used_up() && self.last_addresses.is_none() {
            let of_host = (0..flash.geometry.shape().logical_pages).map(Lpn);
            let held = |page: &Lpn| self.ftl.lookup(*page).is_some();
            let held: Vec<bool> = of_host.map(|page| held(&page)).collect();
            self.keep_readable(contents, |page| held[page]);
        }
    }

    /// From now on read the newest version on flash of the pages for which `held` is true.
    pub(super) fn keep_readable(&mut self, contents: &Contents, held: impl Fn(usize) -> bool) {
        let geometry = contents.geometry();
        let of_host = geometry.shape().logical_pages as usize;
        let newest = contents.newest_decided().into_iter().take(of_host).enumerate();
        let addresses =
            newest.map(|(page, at)| at.filter(|_| held(page)).map(|at| geometry.address_of(at)));
        self.last_addresses = Some(addresses.collect());
        self.read_only = true;
    }
}
