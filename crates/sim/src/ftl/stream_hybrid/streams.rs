//! Streams: units being filled in order, and the handling of displaced ones.

use super::StreamHybrid;
use super::work::{MergeReason, Reclaim, SequentialStream, WHOLE};
use crate::flash::geometry::{Lpn, PageAddress};
use crate::flash::plan::{FlashPlan, Merge};
use crate::ftl::MergingFtl as _;
use crate::ftl::extent::PageExtent;
use crate::ftl::run::Run;

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
    pub(super) fn folds(&self, stream: &SequentialStream) -> bool {
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
