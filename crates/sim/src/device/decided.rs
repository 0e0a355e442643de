//! What an FTL that merges has decided is written down, where somebody wants to know it when power is cut.
//!
//! Such a device does one plan after the other, those of idle time too: a block that one erases is programmed by
//! a later one. What erases waits until all has been programmed that was planned before. Where a block has failed that
//! nothing can replace, nothing is planned any more: what is newest is read where it is.

use super::backend::Hardware;
use super::event::Target;
use super::jobs::Line;
use super::merging::Merged;
use super::written::Written;
use crate::flash::contents::planned::notes_of;
use crate::flash::contents::{Contents, Origin};
use crate::flash::geometry::{Lpn, Place};
use crate::flash::media::Flash;
use crate::flash::plan::Plan;

/// Do what `plan` says, which programs `pages` of the host, and write down what that changes; which page of the map a
/// place is to hold, `of_map` says. Where it takes `time`, returns a record of every operation, in order.
pub(super) fn carry_out(
    plan: &mut Plan,
    pages: impl Iterator<Item = (u32, Origin)>,
    of_map: impl Fn(Place) -> Option<u32>,
    time: bool,
    flash: &mut Flash,
    contents: &mut Contents,
) -> Vec<u32> {
    let planned = (!flash.keeps_notes()).then(|| notes_of(plan));
    flash.carry_out(plan);
    let notes = planned.as_deref().unwrap_or_else(|| flash.notes());
    contents.decide_notes(notes, pages, of_map, time, &flash.nand)
}

impl Merged {
    /// The page of a write stays in memory.
    #[inline]
    pub(super) fn keep(&self, page: Lpn, target: Target, hardware: &mut Hardware<'_>) {
        if let Some(contents) = &mut hardware.events.contents {
            contents.keeps(page.0, Merged::origin(target));
        }
    }

    /// Whose version a page is that is written.
    fn origin(target: Target) -> Origin {
        target.account.map_or(Origin::Cache, |account| Origin::Account(account.number()))
    }

    /// Where steps beside the host wait for their turn.
    #[inline]
    pub(super) fn beside(hardware: &Hardware<'_>) -> Line {
        if hardware.events.contents.is_some() { Line::Path } else { Line::Beside }
    }

    /// Do what is planned, of which `written` says what it programs for the host.
    #[inline]
    pub(super) fn carry_out(&mut self, written: Written, hardware: &mut Hardware<'_>) {
        if hardware.events.contents.is_some() {
            self.decide(written, hardware);
        } else {
            hardware.flash.carry_out(&mut self.plan);
        }
        self.read_only = hardware.flash.is_used_up();
    }

    #[inline(never)]
    fn decide(&mut self, written: Written, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let contents = events.contents.as_mut().expect("it is kept what is on flash");
        let pages: Vec<(u32, Origin)> = match written {
            Written::Nothing => Vec::new(),
            Written::Page(page, target) => vec![(page.0, Merged::origin(target))],
            Written::Kept(extent) => extent.pages().map(|page| (page.0, Origin::Kept)).collect(),
        };
        let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
        let records = carry_out(&mut self.plan, pages.into_iter(), of_map, true, flash, contents);
        self.plan.keep_records(records);
        if let Written::Page(page, _) = written
            && self.buffers
            && !flash.is_used_up()
        {
            contents.keeps_no_more(page.0); // what stayed in memory of it is older
        }
        self.ends(flash, contents);
    }

    /// Do what is planned without time; it programs `page` for the host, if any.
    #[inline]
    pub(super) fn carry_out_now(&mut self, page: Option<Lpn>, flash: &mut Flash) {
        match self.contents.take() {
            None => flash.carry_out(&mut self.plan),
            Some((mut contents, origin)) => {
                let page = page.map(|page| (page.0, origin)).into_iter();
                let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
                carry_out(&mut self.plan, page, of_map, false, flash, &mut contents);
                self.ends(flash, &contents);
                self.contents = Some((contents, origin));
            }
        }
        self.read_only = flash.is_used_up();
    }

    /// What a scrub has moved is written down.
    pub(super) fn note_scrub(&mut self, hardware: &mut Hardware<'_>) {
        let Hardware { flash, events } = hardware;
        let Some(contents) = &mut events.contents else { return };
        let notes = flash.notes();
        let records = contents.decide_notes(notes, std::iter::empty(), |_| None, true, &flash.nand);
        self.plan.keep_records(records);
    }

    /// If a block has failed that nothing could replace: what was planned last was not done to its end, so that the
    /// FTL takes pages to be where they are not.
    fn ends(&mut self, flash: &Flash, contents: &Contents) {
        if flash.is_used_up() && self.at_end.is_none() {
            let of_host = (0..flash.geometry.shape().logical_pages).map(Lpn);
            let held = |page: &Lpn| self.ftl.lookup(*page).is_some();
            let held: Vec<bool> = of_host.map(|page| held(&page)).collect();
            self.has_ended(contents, |page| held[page]);
        }
    }

    /// From now on what is newest is read where it is, of those pages that are `held`.
    pub(super) fn has_ended(&mut self, contents: &Contents, held: impl Fn(usize) -> bool) {
        let geometry = contents.geometry();
        let of_host = geometry.shape().logical_pages as usize;
        let newest = contents.newest_decided().into_iter().take(of_host).enumerate();
        let places =
            newest.map(|(page, at)| at.filter(|_| held(page)).map(|at| geometry.place_of(at)));
        self.at_end = Some(places.collect());
        self.read_only = true;
    }
}
