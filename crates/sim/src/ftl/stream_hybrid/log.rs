//! The logs: which writes go there, and which units are merged to make space.

use super::StreamHybrid;
use super::work::{MergeReason, SMALL, WHOLE};
use crate::flash::geometry::Lpn;
use crate::flash::plan::FlashPlan;
use crate::ftl::extent::PageExtent;
use crate::pool::units::UnitIdx;

impl StreamHybrid {
    pub(super) fn write_log(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let log_index = self.log_for(page, extent);
        let (cluster, within) = self.logs[log_index].cluster_of(page);
        let mut old = None;
        if self.logs[log_index].erased_page(cluster, within).is_none() {
            self.make_free_space(log_index, cluster, plan);
            let first = self.logs[log_index].first_page(cluster).0;
            let pages = first..first + self.logs[log_index].cluster_pages();
            let later = pages.map(Lpn).filter(|other| extent.covers_later(page, *other));
            let is_brought = |other| other == page || extent.covers_later(page, other);
            old = self.renew(log_index, cluster, is_brought, plan);
            // They count as dead from now on: a merge before the host writes them does not copy them.
            for other in later {
                self.set_dead(other);
                if self.durable {
                    self.awaited = page.0 + 1..other.0 + 1;
                }
            }
            self.journal.store(self.part.log_map_pages, &mut self.free, plan);
        }
        // The old version is where the cluster was, unless the log did not have it.
        let old = old.filter(|(_, _, valid)| valid >> within & 1 == 1);
        let merge_from = match old {
            Some((unit, first, _)) if !extent.covers(page) => {
                Some(self.layout.address_of(unit, first + within))
            }
            _ => self.merge_source(page, extent),
        };
        let to = self.logs[log_index].erased_page(cluster, within).expect("a new slot is erased");
        plan.program(to, merge_from);
        self.logs[log_index].set_programmed(cluster, within);
        let others = self.logs.iter_mut().enumerate().filter(|(other, _)| *other != log_index);
        others.for_each(|(_, log)| log.invalidate(page));
    }

    /// Return the log that `page` goes to. A partial cluster that the log of whole clusters does not have
    /// goes to the log of small clusters.
    fn log_for(&self, page: Lpn, extent: &PageExtent) -> usize {
        let whole = &self.logs[WHOLE];
        let small = self.logs.len() > SMALL
            && !whole.has(whole.cluster_of(page).0)
            && !self.is_whole_cluster(page, extent);
        if small { SMALL } else { WHOLE }
    }

    /// Give `cluster` a new slot in the log, with its pages there except those that the host writes. Returns
    /// its old address, and the pages that were valid there.
    pub(super) fn renew(
        &mut self,
        log_index: usize,
        cluster: u32,
        is_brought: impl Fn(Lpn) -> bool,
        plan: &mut FlashPlan,
    ) -> Option<(UnitIdx, u32, u64)> {
        let log = &mut self.logs[log_index];
        let (unit, first, valid) = log.renew(cluster, &mut self.free, plan)?;
        for within in (0..log.cluster_pages()).filter(|within| valid >> within & 1 == 1) {
            if !is_brought(Lpn(log.first_page(cluster).0 + within)) {
                let to = log.erased_page(cluster, within).expect("a new slot is erased");
                plan.copy(self.layout.address_of(unit, first + within), to);
                log.set_programmed(cluster, within);
            }
        }
        plan.barrier();
        Some((unit, first, valid))
    }

    /// Merge units, several at once, until the log can take `cluster`.
    pub(super) fn make_free_space(&mut self, log_index: usize, cluster: u32, plan: &mut FlashPlan) {
        while self.logs[log_index].lacks_space(cluster) {
            if !self.job.is_empty() {
                while !self.job.is_empty() {
                    self.step(plan);
                }
                continue;
            }
            plan.begin_reclaim();
            let before = self.logs[log_index].len();
            self.merge(&self.oldest_units(log_index), plan);
            assert!(self.logs[log_index].len() < before, "merged clusters have left the log");
            plan.barrier();
        }
    }

    /// Return the units of the oldest clusters in a log, each in a bank of its own, and the reason for their
    /// merge. Only the older half of the log is considered: recently written clusters stay, even if their
    /// bank would be idle.
    pub(super) fn oldest_units(&self, log_index: usize) -> Vec<(u32, MergeReason)> {
        let log = &self.logs[log_index];
        let mut chosen: Vec<(u32, MergeReason)> = Vec::new();
        for cluster in log.by_age().take(log.len().div_ceil(2) as usize) {
            let logical = log.unit_of(cluster);
            let bank = self.layout.bank_of_logical(logical);
            if chosen.iter().all(|(other, _)| self.layout.bank_of_logical(*other) != bank) {
                let reason = if log_index == SMALL {
                    MergeReason::Small
                } else {
                    MergeReason::Cluster(cluster)
                };
                chosen.push((logical, reason));
                if chosen.len() == self.part.merges_at_once as usize {
                    break;
                }
            }
        }
        chosen
    }
}
