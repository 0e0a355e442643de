//! What an FTL that merges has decided is written down, where somebody wants to know it when power is cut.
//!
//! Such a device does one plan after the other, those of idle time too: a block that one erases is programmed by
//! a later one. What erases waits until all has been programmed that was planned before.

use super::backend::Hardware;
use super::jobs::Line;
use super::merging::Merged;
use super::token::Target;
use super::written::Written;
use crate::flash::contents::Origin;
use crate::flash::geometry::Lpn;
use crate::flash::media::Flash;

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
        let contents = hardware.events.contents.as_mut().expect("it is kept what is on flash");
        let pages: Vec<(u32, Origin)> = match written {
            Written::Nothing => Vec::new(),
            Written::Page(page, target) => {
                if self.buffers {
                    contents.keeps_no_more(page.0); // what stayed in memory of it is older
                }
                vec![(page.0, Merged::origin(target))]
            }
            Written::Kept(extent) => extent.pages().map(|page| (page.0, Origin::Kept)).collect(),
        };
        let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
        let records = contents.decide_plan(&self.plan, pages.into_iter(), of_map, true);
        hardware.flash.carry_out(&mut self.plan);
        self.plan.keep_records(records);
    }

    /// Do what is planned without time; it programs `page` for the host, if any.
    #[inline]
    pub(super) fn carry_out_now(&mut self, page: Option<Lpn>, flash: &mut Flash) {
        if let Some((contents, origin)) = &mut self.contents {
            let page = page.map(|page| (page.0, *origin)).into_iter();
            let of_map = |to| self.ftl.page_of_map(to).map(|page| page.0);
            contents.decide_plan(&self.plan, page, of_map, false);
        }
        flash.carry_out(&mut self.plan);
        self.read_only = flash.is_used_up();
    }
}
