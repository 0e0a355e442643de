//! Merges: the newest version of every page of a unit is brought together, at once or step by step, or while
//! a stream fills a unit in order.

use std::ops::Range;

use super::{MergeReason, OmittedPages, Reclaim, SMALL, SequentialStream, StreamHybrid, WHOLE};
use crate::collections::bits;
use crate::flash::geometry::{Lpn, PageAddress, PageAddresses};
use crate::flash::plan::{FlashPlan, Merge, PageRow};
use crate::ftl::MergingFtl as _;
use crate::ftl::extent::PageExtent;
use crate::ftl::run::Run;
use crate::pool::units::UnitIdx;

/// Merges within a host write.
impl StreamHybrid {
    /// Merge the newest version of every page of each of `units`: in the unit of its stream, if it has one,
    /// or in a new unit. The firmware buffers one cluster of each at a time.
    pub(super) fn merge(&mut self, units: &[(u32, MergeReason)], plan: &mut FlashPlan) {
        let merges: Vec<Reclaim> = units.iter().map(|unit| self.begin_merge(*unit, plan)).collect();
        for cluster in 0..self.layout.clusters_per_unit() {
            for merge in &merges {
                self.copy_cluster(merge, cluster, self.layout.unit_pages, plan);
            }
            plan.barrier();
        }
        for merge in merges {
            self.end_merge(merge, plan);
        }
    }

    fn begin_merge(
        &mut self,
        (logical, reason): (u32, MergeReason),
        plan: &mut FlashPlan,
    ) -> Reclaim {
        let stream = self.streams.iter().find(|stream| stream.logical == logical).copied();
        // If the log has newer pages than the stream's unit, they have no erased page in that unit.
        let fits = stream.filter(|stream| !self.superseded(stream));
        let target = match fits {
            Some(stream) => stream.unit,
            None => self.free.take(self.layout.bank_of_logical(logical), plan),
        };
        let existing = fits.map_or(Run::at(0), |stream| stream.run);
        Reclaim { logical, target, existing, reason }
    }

    /// Copy the pages of a cluster that are before page `end` of the unit.
    fn copy_cluster(&self, merge: &Reclaim, cluster: u32, end: u32, plan: &mut FlashPlan) {
        let first = cluster * self.layout.cluster_pages;
        let offsets = first..(first + self.layout.cluster_pages).min(end);
        let to = self.layout.addresses_from(merge.target, first);
        if merge.existing.pages() == 0
            && let Some((from, pages)) = self.contiguous_addresses(merge.logical, offsets.clone())
        {
            return plan.copy_row(PageRow { from, to, pages });
        }
        let newest = self.newest(merge.logical, offsets.clone());
        for ((offset, to), from) in offsets.zip(to).zip(newest) {
            if let Some(from) = from.filter(|_| !merge.existing.has(offset)) {
                plan.copy(from, to);
            }
        }
    }

    /// Return the addresses and the bit mask of the live pages among `offsets`, the lowest bit for the first
    /// one. `None` unless all of them are consecutive in one unit, or in one cluster of the log.
    #[inline]
    fn contiguous_addresses(
        &self,
        logical: u32,
        offsets: Range<u32>,
    ) -> Option<(PageAddresses, u64)> {
        if offsets.is_empty() || self.streams.iter().any(|stream| stream.logical == logical) {
            return None;
        }
        let first = Lpn(logical * self.layout.unit_pages + offsets.start);
        let end = Lpn(first.0 + offsets.len() as u32);
        let pages = bits::word(&self.live, first.0 as usize, offsets.len());
        let (whole, small) = self.logs.split_at(SMALL);
        let in_log = whole[WHOLE].newest_of(first).filter(|(newest, _)| newest & pages != 0);
        let from = match in_log {
            Some((newest, from)) if pages & !newest == 0 => from,
            Some(_) => return None,
            None if small.iter().any(|log| log.newest_from(first, end) & pages != 0) => {
                return None;
            }
            None => self.layout.addresses_from(self.map[logical as usize]?, offsets.start),
        };
        (pages != 0).then_some((from, pages))
    }

    fn end_merge(&mut self, merge: Reclaim, plan: &mut FlashPlan) {
        let Reclaim { logical, target, existing, reason } = merge;
        plan.count_merge(if existing.pages() > 0 { Merge::Partial } else { Merge::Full });
        if let Some(index) = self.streams.iter().position(|stream| stream.logical == logical) {
            let stream = self.streams.remove(index);
            if stream.unit != target {
                self.free.discard(stream.unit);
            }
        }
        // With `evict_single`, only the cluster that must leave is written back.
        let of_small = self.logs.iter_mut().skip(SMALL);
        match reason {
            MergeReason::Cluster(cluster) if self.part.evict_single => {
                self.logs[WHOLE].drop_cluster(cluster);
            }
            MergeReason::Small if self.part.evict_single => {
                of_small.for_each(|log| log.drop_unit(logical));
            }
            _ => self.logs.iter_mut().for_each(|log| log.drop_unit(logical)),
        }
        self.set_data_unit(logical, target, plan);
    }

    /// Return whether the log has newer versions of pages of `stream`.
    fn superseded(&self, stream: &SequentialStream) -> bool {
        let first = stream.logical * self.layout.unit_pages;
        (stream.run.low..stream.run.high)
            .any(|offset| self.lookup_in_logs(Lpn(first + offset)).is_some())
    }

    /// Make `unit` the data unit of `logical`; the old one is erased when a unit is needed.
    fn set_data_unit(&mut self, logical: u32, unit: UnitIdx, plan: &mut FlashPlan) {
        self.replace_data_unit(logical, unit);
        self.store_map_of_merge(plan);
    }

    fn replace_data_unit(&mut self, logical: u32, unit: UnitIdx) {
        let old = self.map[logical as usize].replace(unit);
        old.into_iter().for_each(|old| self.free.discard(old));
    }

    fn store_map_of_merge(&mut self, plan: &mut FlashPlan) {
        self.journal.store(self.part.merge_map_pages, &mut self.free, plan);
    }

    /// Merge the unit of `page` at once, but leave the pages erased that the host writes.
    pub(super) fn merge_around(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        let (logical, offset) = self.unit_of(page);
        let target = self.free.take(self.layout.bank_of_logical(logical), plan);
        let first = logical * self.layout.unit_pages;
        let addresses = self.layout.addresses_from(target, 0);
        let newest = self.newest(logical, 0..self.layout.unit_pages);
        // No rows: the host's page is programmed last, so blocks are not in order afterwards.
        for ((other, to), from) in (first..).map(Lpn).zip(addresses).zip(newest) {
            let remains = other != page && !extent.covers_part_later(page, other);
            if let Some(from) = from.filter(|_| remains) {
                plan.copy(from, to);
            }
            // Cluster by cluster, like every merge.
            if (other.0 + 1).is_multiple_of(self.layout.cluster_pages) {
                plan.barrier();
            }
        }
        plan.count_merge(Merge::Full);
        plan.program(self.layout.address_of(target, offset), self.merge_source(page, extent));
        let in_part =
            |other: &Lpn| extent.covers_part_later(page, *other) && !extent.covers(*other);
        let mut following_pages = (page.0 + 1..first + self.layout.unit_pages).map(Lpn);
        let merge_from = following_pages.find(in_part).and_then(|other| self.lookup(other));
        // Their pages are erased until the host's data comes; on flash that fails before, it never comes.
        let following = (page.0 + 1..first + self.layout.unit_pages).map(Lpn);
        following
            .filter(|other| extent.covers_part_later(page, *other))
            .for_each(|other| self.set_dead(other));
        if let Some(index) = self.streams.iter().position(|stream| stream.logical == logical) {
            let stream = self.streams.remove(index);
            self.free.discard(stream.unit);
        }
        self.logs.iter_mut().for_each(|log| log.drop_unit(logical));
        plan.barrier();
        self.replace_data_unit(logical, target);
        self.expect_next(page, extent, merge_from, plan);
    }

    /// Write `page` to the page that a merge around the host's data has left for it.
    pub(super) fn write_omitted_page(
        &mut self,
        page: Lpn,
        extent: &PageExtent,
        merge_from: Option<PageAddress>,
        plan: &mut FlashPlan,
    ) {
        let (logical, offset) = self.unit_of(page);
        let unit = self.map[logical as usize].expect("a merge has mapped the unit");
        let to = self.layout.address_of(unit, offset);
        plan.program(to, extent.merge_source(page, || merge_from));
        self.expect_next(page, extent, merge_from, plan);
    }

    /// Expect the next page of the host write in the same unit. The map is stored after its last page:
    /// storing it may take a unit, and so erase the one with `merge_from`.
    fn expect_next(
        &mut self,
        page: Lpn,
        extent: &PageExtent,
        merge_from: Option<PageAddress>,
        plan: &mut FlashPlan,
    ) {
        let next = Lpn(page.0 + 1);
        let continues = extent.covers_part_later(page, next) && self.unit_of(next).1 > 0;
        self.omitted = continues.then_some(OmittedPages { next, merge_from });
        if !continues {
            self.store_map_of_merge(plan);
        }
    }
}

/// Background merges.
impl StreamHybrid {
    /// Choose units to merge step by step; those that are being filled are merged at once.
    pub(super) fn begin_reclaim(&mut self, plan: &mut FlashPlan) {
        plan.begin_reclaim();
        self.job_cluster = 0;
        for (logical, reason) in self.oldest_units(WHOLE) {
            if self.streams.iter().any(|stream| stream.logical == logical) {
                self.merge(&[(logical, reason)], plan);
            } else {
                let merge = self.begin_merge((logical, reason), plan);
                self.job.push(merge);
            }
        }
    }

    /// Copy the next cluster of every unit of the job, or finish the job.
    pub(super) fn step(&mut self, plan: &mut FlashPlan) {
        for merge in &self.job {
            self.copy_cluster(merge, self.job_cluster, self.layout.unit_pages, plan);
        }
        self.job_cluster += 1;
        plan.barrier();
        if self.job_cluster == self.layout.clusters_per_unit() {
            for merge in std::mem::take(&mut self.job) {
                self.end_merge(merge, plan);
            }
        }
    }

    /// Abandon the background merge of `logical`, which the host changes: its copies are obsolete.
    pub(super) fn abandon_merge(&mut self, logical: u32) {
        if let Some(index) = self.job.iter().position(|reclaim| reclaim.logical == logical) {
            let reclaim = self.job.remove(index);
            self.free.discard(reclaim.target);
        }
    }
}

// Streams: units being filled in order, and the handling of displaced ones.

/// Classification of writes.
impl StreamHybrid {
    /// Return the stream that `page` continues.
    pub(super) fn stream_for(&self, page: Lpn, extent: &PageExtent) -> Option<usize> {
        let (logical, offset) = self.unit_of(page);
        let index = self.streams.iter().position(|stream| stream.logical == logical)?;
        let stream = &self.streams[index];
        let first = logical * self.layout.unit_pages;
        let below = self.part.reverse_streams && stream.run.ends_below(page, extent, first);
        (offset == stream.run.next() || below).then_some(index)
    }

    /// Return whether page `offset` continues a displaced stream of the unit.
    pub(super) fn resumes_stream(&self, logical: u32, offset: u32) -> bool {
        self.closed_streams.contains(&(logical, offset))
            && self.streams.iter().all(|stream| stream.logical != logical)
    }

    /// Return whether `page` is the first of a new stream.
    pub(super) fn begins_stream(&self, page: Lpn, extent: &PageExtent) -> bool {
        let (logical, offset) = self.unit_of(page);
        // Writes that run downwards end where the previous write began.
        let downwards = extent.end_before(self.before);
        let end = (logical + 1) * self.layout.unit_pages;
        if self.part.reverse_streams && downwards && extent.is_last_before(page, end) {
            // A stream that has hardly begun is displaced: the unit is now filled from its end.
            return self.stream_of(logical).is_none_or(|index| self.folds(&self.streams[index]));
        }
        offset == 0 && !downwards && self.stream_of(logical).is_none()
    }

    /// Return the stream of a unit.
    pub(super) fn stream_of(&self, logical: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.logical == logical)
    }

    /// Return whether a stream is so short that its clusters go to the log.
    fn folds(&self, stream: &SequentialStream) -> bool {
        stream.run.pages().div_ceil(self.layout.cluster_pages) <= self.part.fold_clusters
    }
}

/// Opening, filling and closing of streams.
impl StreamHybrid {
    /// Begin to fill a unit at `offset`.
    pub(super) fn open_stream(&mut self, logical: u32, offset: u32, plan: &mut FlashPlan) {
        if let Some(index) = self.stream_of(logical) {
            let stream = self.streams.remove(index);
            self.streams.push(stream);
            self.close_oldest_stream(plan);
        }
        while self.streams.len() >= self.part.streams as usize {
            self.close_oldest_stream(plan);
        }
        let unit = self.free.take(self.layout.bank_of_logical(logical), plan);
        // One that runs downwards is full up to its end once this write is over.
        let run = Run::at(if offset == 0 { 0 } else { self.layout.unit_pages });
        self.streams.insert(0, SequentialStream { logical, unit, run });
    }

    /// Resume a displaced stream at `offset`: the pages before it are copied to a new unit.
    pub(super) fn resume_stream(&mut self, logical: u32, offset: u32, plan: &mut FlashPlan) {
        self.closed_streams.retain(|(other, _)| *other != logical);
        while self.streams.len() >= self.part.streams as usize {
            self.close_oldest_stream(plan);
        }
        let target = self.free.take(self.layout.bank_of_logical(logical), plan);
        let merge = Reclaim { logical, target, existing: Run::at(0), reason: MergeReason::Stream };
        for cluster in 0..offset.div_ceil(self.layout.cluster_pages) {
            self.copy_cluster(&merge, cluster, offset, plan);
            plan.barrier();
        }
        let first = logical * self.layout.unit_pages;
        (first..first + offset).for_each(|page| self.invalidate_in_logs(Lpn(page)));
        let run = Run::between(0, offset);
        self.streams.insert(0, SequentialStream { logical, unit: target, run });
    }

    pub(super) fn write_stream(
        &mut self,
        index: usize,
        page: Lpn,
        extent: &PageExtent,
        plan: &mut FlashPlan,
    ) {
        if index > 0 {
            let stream = self.streams.remove(index);
            self.streams.insert(0, stream);
            self.journal.store(self.part.switch_map_pages, &mut self.free, plan);
        }
        let offset = self.unit_of(page).1;
        let merge_from = self.merge_source(page, extent);
        let stream = &mut self.streams[0];
        plan.program(self.layout.address_of(stream.unit, offset), merge_from);
        stream.run.take(offset);
        let full = stream.run.is_full(self.layout.unit_pages);
        self.invalidate_in_logs(page);
        if full {
            let stream = self.streams.remove(0);
            plan.barrier();
            plan.count_merge(Merge::Switch);
            self.set_data_unit(stream.logical, stream.unit, plan);
        }
    }

    /// Close the stream that was written longest ago: a short one goes to the log, a longer one is completed
    /// with the rest of its unit.
    fn close_oldest_stream(&mut self, plan: &mut FlashPlan) {
        let Some(stream) = self.streams.last().copied() else { return };
        if stream.run.low == 0 {
            self.closed_streams.push_front((stream.logical, stream.run.high));
            self.closed_streams.truncate(self.part.resumed_streams as usize);
        }
        if !self.folds(&stream) {
            self.merge(&[(stream.logical, MergeReason::Stream)], plan);
            plan.barrier();
            return;
        }
        let pages = self.layout.cluster_pages;
        for cluster in stream.run.low / pages..stream.run.high.div_ceil(pages) {
            let cluster = stream.logical * self.layout.clusters_per_unit() + cluster;
            self.make_free_space(WHOLE, cluster, plan);
            // Making space may have merged this unit, and the stream with it.
            if self.streams.last().is_none_or(|last| last.unit != stream.unit) {
                return;
            }
            self.fold(stream, cluster, plan);
        }
        self.streams.pop();
        self.free.discard(stream.unit);
    }

    /// Copy the pages that `stream` has of `cluster` to the log, which has space.
    fn fold(&mut self, stream: SequentialStream, cluster: u32, plan: &mut FlashPlan) {
        let pages = self.layout.cluster_pages;
        let first = cluster * pages;
        let newest: Vec<(u32, PageAddress)> = (0..pages)
            .filter(|within| stream.run.has(self.unit_of(Lpn(first + within)).1))
            .filter(|within| self.lookup_in_logs(Lpn(first + within)).is_none())
            .filter_map(|within| self.lookup(Lpn(first + within)).map(|from| (within, from)))
            .collect();
        let log = &self.logs[WHOLE];
        let erased = |(within, _): &(u32, PageAddress)| log.erased_page(cluster, *within).is_some();
        if !newest.iter().all(erased) {
            self.renew(WHOLE, cluster, |_| false, plan);
        }
        for (within, from) in newest {
            let log = &mut self.logs[WHOLE];
            let to = log.erased_page(cluster, within).expect("a new slot is erased");
            plan.copy(from, to);
            log.set_programmed(cluster, within);
        }
        plan.barrier();
    }
}
