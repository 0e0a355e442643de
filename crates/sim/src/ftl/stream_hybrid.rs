//! The stream hybrid: whole merge units mapped, a few of them filled in order at a time, and a small
//! log for everything else.
//!
//! ```text
//! write ─▶ goes on where a stream stands? ─▶ the stream's unit; when it is full it becomes the data unit
//!       ─▶ begins a unit?                  ─▶ a new stream; the oldest is folded into the log or merged
//!       ─▶ anything else                   ─▶ the log, cluster by cluster; where it is full, the units of
//!                                             its oldest clusters are merged, several banks at once
//! idle  ─▶ the same merges, a cluster a step, until enough of the log is free
//! ```
//!
//! **Source**: inferred from the black-box measurements of uFLIP (2009) §5 and Table 3; no vendor
//! published it. Streams, log and background reclamation each explain one of its columns.
//! **Faithful**: streams up to a number are as fast as one (Partitions); a working set that fits the
//! log needs no merges (Locality); merges in one bank wait for each other (large Incr); reclamation in
//! idle time gives a start-up phase and makes pauses help (Pause).
//! **Simplified**: pages of a block are programmed in any order; a log cluster keeps its unwritten pages
//! erased, so that writes that follow can fill them; the map is in memory, its changes go to a journal.
//! **Ambiguous**: everything; the numbers of a profile say which reading is taken. A stream begins with
//! the first page of a unit unless the write before was its successor; one that runs downwards begins
//! with the last page of a unit, and only behind such a write.

use std::collections::VecDeque;

use uflip_core::{Error, Result};

use super::{MergingFtl, MergingOptions};
use crate::backend::Extent;
use crate::geometry::{Lpn, Place};
use crate::media::{Merge, MergeMedia};
use crate::profile::StreamsPart;
use crate::run::Run;
use crate::units::{FreeUnits, Journal, Layout, UnitIdx};
use crate::write_log::WriteLog;

/// Map, streams and log.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StreamHybrid {
    part: StreamsPart,
    layout: Layout,
    free: FreeUnits,
    journal: Journal,
    log: WriteLog,
    /// Per logical unit: its data unit.
    map: Vec<Option<UnitIdx>>,
    /// Per logical page, one bit: the host wrote it and did not trim it.
    live: Vec<u64>,
    /// Units being filled, the one written last first.
    streams: Vec<Stream>,
    /// Streams that had to give way: the logical unit and its next page, the latest first.
    displaced: VecDeque<(u32, u32)>,
    /// The first page of the host write before this one, and of this one.
    before: u32,
    current: u32,
    /// What a merge left out, for the host brings it: the logical unit and the next page.
    bringing: Option<(u32, Lpn)>,
    job: Vec<Reclaim>,
    /// The next cluster of the units in `job`.
    job_cluster: u32,
}

/// A unit being filled in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Stream {
    logical: u32,
    unit: UnitIdx,
    run: Run,
}

/// A unit that is merged step by step beside the host.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Reclaim {
    logical: u32,
    target: UnitIdx,
    /// What its stream has there already.
    there: Run,
    /// The cluster for whose sake it is merged, where one was to leave the log.
    cluster: Option<u32>,
}

/// The table [streams] of the profile.
///
/// # Errors
/// Where it has none.
fn part<'a>(options: &MergingOptions<'a>) -> Result<&'a StreamsPart> {
    options.streams.ok_or_else(|| {
        Error::usage("The stream hybrid needs to know its streams")
            .got("ftl = \"stream_hybrid\" without a table [streams]")
            .action("add [streams]; docs/reference/profiles.md explains its keys")
    })
}

impl MergingFtl for StreamHybrid {
    fn check(options: &MergingOptions<'_>) -> Result<()> {
        let part = part(options)?;
        let layout =
            Layout::new(options.geometry, part.unit_bytes, part.cluster_bytes, part.banks)?;
        let in_log = part.log_units.saturating_mul(layout.clusters_per_unit());
        let ranges = [
            ("streams", part.streams, 1, layout.logical_units()),
            ("log_clusters", part.log_clusters, 1, in_log.saturating_sub(1)),
            ("free_clusters", part.free_clusters, 0, part.log_clusters),
            ("merges_at_once", part.merges_at_once, 1, part.banks),
            ("fold_clusters", part.fold_clusters, 0, layout.clusters_per_unit()),
        ];
        for (key, got, least, most) in ranges {
            if got < least || got > most {
                return Err(Error::usage(format!("Profile key '{key}' makes no stream hybrid"))
                    .got(got.to_string())
                    .allowed(format!("{least} to {most}"))
                    .action("change it; log_clusters must be fewer than log_units hold"));
            }
        }
        // In a bank: the streams, the target of a merge, and that of one beside the host.
        let what = "streams, log, journal, and two for merges in every bank";
        layout.check(part.streams + 2, part.log_units + 1 + Journal::UNITS, what)
    }

    fn new(options: &MergingOptions<'_>) -> StreamHybrid {
        let part = part(options).expect("checked").clone();
        let layout = Layout::new(options.geometry, part.unit_bytes, part.cluster_bytes, part.banks)
            .expect("checked");
        let pages = options.geometry.shape().logical_pages as usize;
        StreamHybrid {
            layout,
            free: FreeUnits::new(layout),
            journal: Journal::new(layout),
            log: WriteLog::new(layout, part.log_clusters, part.log_units, part.compact_log),
            map: vec![None; layout.logical_units() as usize],
            live: vec![0; pages.div_ceil(64)],
            streams: Vec::with_capacity(part.streams as usize),
            displaced: VecDeque::with_capacity(part.resumed_streams as usize + 1),
            before: 0,
            current: 0,
            bringing: None,
            job: Vec::with_capacity(part.merges_at_once as usize),
            job_cluster: 0,
            part,
        }
    }

    fn lookup(&self, page: Lpn) -> Option<Place> {
        if self.live[page.0 as usize / 64] >> (page.0 % 64) & 1 == 0 {
            return None;
        }
        let (cluster, within) = self.cluster_of(page);
        if let Some(place) = self.log.lookup(cluster, within) {
            return Some(place);
        }
        let (logical, offset) = self.unit_of(page);
        let stream = self.streams.iter().find(|stream| stream.logical == logical);
        let stream = stream.filter(|stream| stream.run.has(offset)).map(|stream| stream.unit);
        stream.or(self.map[logical as usize]).map(|unit| self.layout.place(unit, offset))
    }

    fn write<M: MergeMedia>(&mut self, page: Lpn, extent: &Extent, media: &mut M) {
        if extent.begin() != self.current {
            (self.before, self.current) = (self.current, extent.begin());
        }
        let (logical, offset) = self.unit_of(page);
        self.leave_alone(logical);
        if self.bringing.take() == Some((logical, page)) {
            let unit = self.map[logical as usize].expect("a merge made it");
            self.bringing =
                extent.brings_after(page, Lpn(page.0 + 1)).then_some((logical, Lpn(page.0 + 1)));
            media.program(self.layout.place(unit, offset), None);
        } else if let Some(stream) = self.stream_for(page, extent) {
            self.write_stream(stream, page, extent, media);
        } else if self.resumes_stream(logical, offset) {
            self.resume_stream(logical, offset, media);
            self.write_stream(0, page, extent, media);
        } else if self.begins_stream(page, extent) {
            self.open_stream(logical, offset, media);
            self.write_stream(0, page, extent, media);
        } else if self.bypasses(page, extent) {
            self.merge_around(page, extent, media);
        } else {
            self.write_log(page, extent, media);
        }
        self.live[page.0 as usize / 64] |= 1 << (page.0 % 64);
    }

    fn trim(&mut self, page: Lpn) {
        let (cluster, within) = self.cluster_of(page);
        self.leave_alone(self.unit_of(page).0);
        self.live[page.0 as usize / 64] &= !(1 << (page.0 % 64));
        self.log.invalidate(cluster, within);
    }

    fn reclaim<M: MergeMedia>(&mut self, media: &mut M) -> bool {
        if self.part.free_clusters == 0 {
            return false;
        }
        if self.job.is_empty() && self.log.len() + self.part.free_clusters > self.part.log_clusters
        {
            self.begin_reclaim(media);
            return true;
        }
        if self.job.is_empty() {
            return self.free.erase_some(media);
        }
        self.step(media);
        true
    }

    #[cfg(test)]
    fn audit(&self) {
        self.log.audit();
        let data = self.map.iter().flatten().copied();
        let streams = self.streams.iter().map(|stream| stream.unit);
        let targets = self.job.iter().map(|reclaim| reclaim.target);
        let others = data.chain(streams).chain(targets).chain(self.journal.unit());
        self.free.audit(others.chain(self.log.units()));
    }
}

/// Where things are.
impl StreamHybrid {
    /// The logical unit of `page`, and its number there.
    #[inline]
    fn unit_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.unit_pages, page.0 % self.layout.unit_pages)
    }

    /// The cluster of `page`, and its number there.
    #[inline]
    fn cluster_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.cluster_pages, page.0 % self.layout.cluster_pages)
    }

    /// Where the rest of `page` is, if the host brings only a part of it.
    fn rest_of(&self, page: Lpn, extent: &Extent) -> Option<Place> {
        if extent.covers(page) { None } else { self.lookup(page) }
    }

    /// Which stream `page` continues.
    fn stream_for(&self, page: Lpn, extent: &Extent) -> Option<usize> {
        let (logical, offset) = self.unit_of(page);
        let index = self.streams.iter().position(|stream| stream.logical == logical)?;
        let stream = &self.streams[index];
        let first = logical * self.layout.unit_pages;
        let below = self.part.reverse_streams && stream.run.ends_below(page, extent, first);
        (offset == stream.run.next() || below).then_some(index)
    }

    /// Whether page `offset` goes on where a stream of the unit stood when it had to give way.
    fn resumes_stream(&self, logical: u32, offset: u32) -> bool {
        self.displaced.contains(&(logical, offset))
            && self.streams.iter().all(|stream| stream.logical != logical)
    }

    /// Whether `page` is the first of a stream.
    fn begins_stream(&self, page: Lpn, extent: &Extent) -> bool {
        let (logical, offset) = self.unit_of(page);
        // Writes that run downwards come from the page behind their end.
        let downwards = extent.end_before(self.before);
        let end = (logical + 1) * self.layout.unit_pages;
        if self.part.reverse_streams && downwards && extent.is_last_before(page, end) {
            // One that has hardly begun gives way: the unit is filled from its end now.
            return self.stream_of(logical).is_none_or(|index| self.folds(&self.streams[index]));
        }
        offset == 0 && !downwards && self.stream_of(logical).is_none()
    }

    /// The stream of a unit.
    fn stream_of(&self, logical: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.logical == logical)
    }

    /// Whether a stream is so short that its clusters go to the log.
    fn folds(&self, stream: &Stream) -> bool {
        stream.run.pages().div_ceil(self.layout.cluster_pages) <= self.part.fold_clusters
    }

    /// Whether `page` is of a part of a cluster that the log does not take.
    fn bypasses(&self, page: Lpn, extent: &Extent) -> bool {
        let first = page.0 - self.cluster_of(page).1;
        self.part.bypass_partial_clusters
            && !extent.covers_all(Lpn(first), self.layout.cluster_pages)
    }
}

/// Streams.
impl StreamHybrid {
    /// Begin to fill a unit at `offset`.
    fn open_stream<M: MergeMedia>(&mut self, logical: u32, offset: u32, media: &mut M) {
        if let Some(index) = self.stream_of(logical) {
            let stream = self.streams.remove(index);
            self.streams.push(stream);
            self.close_oldest_stream(media);
        }
        while self.streams.len() >= self.part.streams as usize {
            self.close_oldest_stream(media);
        }
        let unit = self.free.take(self.layout.home(logical), media);
        // One that runs downwards is full up to its end once this write is over.
        let run = Run::at(if offset == 0 { 0 } else { self.layout.unit_pages });
        self.streams.insert(0, Stream { logical, unit, run });
    }

    /// Let a stream that had to give way go on at `offset`: what lies before is copied to a new unit.
    fn resume_stream<M: MergeMedia>(&mut self, logical: u32, offset: u32, media: &mut M) {
        self.displaced.retain(|(other, _)| *other != logical);
        while self.streams.len() >= self.part.streams as usize {
            self.close_oldest_stream(media);
        }
        let target = self.free.take(self.layout.home(logical), media);
        let merge = Reclaim { logical, target, there: Run::at(0), cluster: None };
        for cluster in 0..offset.div_ceil(self.layout.cluster_pages) {
            self.copy_cluster(&merge, cluster, offset, media);
            media.await_merges();
        }
        for other in 0..offset {
            let (cluster, within) = self.cluster_of(Lpn(logical * self.layout.unit_pages + other));
            self.log.invalidate(cluster, within);
        }
        let run = Run::between(0, offset);
        self.streams.insert(0, Stream { logical, unit: target, run });
    }

    fn write_stream<M: MergeMedia>(
        &mut self,
        index: usize,
        page: Lpn,
        extent: &Extent,
        media: &mut M,
    ) {
        if index > 0 {
            let stream = self.streams.remove(index);
            self.streams.insert(0, stream);
            self.journal.store(self.part.switch_map_pages, &mut self.free, media);
        }
        let offset = self.unit_of(page).1;
        let rest = self.rest_of(page, extent);
        let stream = &mut self.streams[0];
        media.program(self.layout.place(stream.unit, offset), rest);
        stream.run.take(offset);
        let full = stream.run.is_full(self.layout.unit_pages);
        let (cluster, within) = self.cluster_of(page);
        self.log.invalidate(cluster, within);
        if full {
            let stream = self.streams.remove(0);
            media.await_merges();
            media.count_merge(Merge::Switch);
            self.set_data_unit(stream.logical, stream.unit, media);
        }
    }

    /// Close the stream that was written longest ago: a short one goes to the log, a longer one gets
    /// the rest of its unit.
    fn close_oldest_stream<M: MergeMedia>(&mut self, media: &mut M) {
        let Some(stream) = self.streams.last().copied() else { return };
        if stream.run.low == 0 {
            self.displaced.push_front((stream.logical, stream.run.high));
            self.displaced.truncate(self.part.resumed_streams as usize);
        }
        if !self.folds(&stream) {
            self.merge(&[(stream.logical, None)], media);
            media.await_merges();
            return;
        }
        let pages = self.layout.cluster_pages;
        for cluster in stream.run.low / pages..stream.run.high.div_ceil(pages) {
            let cluster = stream.logical * self.layout.clusters_per_unit() + cluster;
            self.make_room(cluster, media);
            // Making room may have merged this unit, and the stream with it.
            if self.streams.last().is_none_or(|last| last.unit != stream.unit) {
                return;
            }
            self.fold(stream, cluster, media);
        }
        self.streams.pop();
        self.free.discard(stream.unit);
    }

    /// Copy what `stream` has of `cluster` to the log, which has room.
    fn fold<M: MergeMedia>(&mut self, stream: Stream, cluster: u32, media: &mut M) {
        let pages = self.layout.cluster_pages;
        let first = cluster * pages;
        let newest: Vec<(u32, Place)> = (0..pages)
            .filter(|within| stream.run.has(self.unit_of(Lpn(first + within)).1))
            .filter(|within| self.log.lookup(cluster, *within).is_none())
            .filter_map(|within| self.lookup(Lpn(first + within)).map(|from| (within, from)))
            .collect();
        let erased = |(within, _): &(u32, Place)| self.log.erased_place(cluster, *within).is_some();
        if !newest.iter().all(erased) {
            self.renew(cluster, |_| false, media);
        }
        for (within, from) in newest {
            let to = self.log.erased_place(cluster, within).expect("a place for every page");
            media.copy(from, to);
            self.log.set_programmed(cluster, within);
        }
        media.await_merges();
    }
}

/// The log.
impl StreamHybrid {
    fn write_log<M: MergeMedia>(&mut self, page: Lpn, extent: &Extent, media: &mut M) {
        let (cluster, within) = self.cluster_of(page);
        let mut old = None;
        if self.log.erased_place(cluster, within).is_none() {
            self.make_room(cluster, media);
            let first = cluster * self.layout.cluster_pages;
            let brought =
                |other: u32| other == within || extent.brings_after(page, Lpn(first + other));
            old = self.renew(cluster, brought, media);
            self.journal.store(self.part.log_map_pages, &mut self.free, media);
        }
        // The old version is where the cluster was, unless the log did not have it.
        let old = old.filter(|(_, _, valid)| valid >> within & 1 == 1);
        let rest = match old {
            Some((unit, first, _)) if !extent.covers(page) => {
                Some(self.layout.place(unit, first + within))
            }
            _ => self.rest_of(page, extent),
        };
        let to = self.log.erased_place(cluster, within).expect("a new place is erased");
        media.program(to, rest);
        self.log.set_programmed(cluster, within);
    }

    /// Give `cluster` a new place in the log, with its pages there apart from those that are brought.
    /// Returns the place that it had, and the pages that were valid there.
    fn renew<M: MergeMedia>(
        &mut self,
        cluster: u32,
        brought: impl Fn(u32) -> bool,
        media: &mut M,
    ) -> Option<(UnitIdx, u32, u64)> {
        let (unit, first, valid) = self.log.renew(cluster, &mut self.free, media)?;
        for within in (0..self.layout.cluster_pages).filter(|within| valid >> within & 1 == 1) {
            if !brought(within) {
                let to = self.log.erased_place(cluster, within).expect("a new place is erased");
                media.copy(self.layout.place(unit, first + within), to);
                self.log.set_programmed(cluster, within);
            }
        }
        media.await_merges();
        Some((unit, first, valid))
    }

    /// Whether the log cannot take `cluster` without a merge.
    fn lacks_room(&self, cluster: u32) -> bool {
        let StreamsPart { log_clusters, log_members, compact_log, .. } = self.part;
        let logical = cluster / self.layout.clusters_per_unit();
        let another = log_members > 0
            && !self.log.is_member(logical)
            && self.log.member_units() >= log_members;
        another
            || (!self.log.has(cluster) && self.log.len() >= log_clusters)
            || (!compact_log && self.log.is_full())
    }

    /// Let the log have room for `cluster`: units are merged, several at once, until it has.
    fn make_room<M: MergeMedia>(&mut self, cluster: u32, media: &mut M) {
        while self.lacks_room(cluster) {
            if !self.job.is_empty() {
                while !self.job.is_empty() {
                    self.step(media);
                }
                continue;
            }
            media.begin_reclaim();
            self.merge(&self.oldest_units(), media);
            media.await_merges();
        }
    }

    /// The units of the oldest clusters in the log, each in a bank of its own, with the cluster.
    fn oldest_units(&self) -> Vec<(u32, Option<u32>)> {
        let mut chosen: Vec<(u32, Option<u32>)> = Vec::new();
        for cluster in self.log.by_age() {
            let logical = cluster / self.layout.clusters_per_unit();
            let bank = self.layout.home(logical);
            if chosen.iter().all(|(other, _)| self.layout.home(*other) != bank) {
                chosen.push((logical, Some(cluster)));
                if chosen.len() == self.part.merges_at_once as usize {
                    break;
                }
            }
        }
        chosen
    }
}

/// Merges.
impl StreamHybrid {
    /// Bring the newest version of every page of each of `units` together: in the unit of its stream,
    /// where it has one, or in a new unit. The firmware holds one cluster of each at a time.
    fn merge<M: MergeMedia>(&mut self, units: &[(u32, Option<u32>)], media: &mut M) {
        let merges: Vec<Reclaim> =
            units.iter().map(|unit| self.begin_merge(*unit, media)).collect();
        for cluster in 0..self.layout.clusters_per_unit() {
            for merge in &merges {
                self.copy_cluster(merge, cluster, self.layout.unit_pages, media);
            }
            media.await_merges();
        }
        for merge in merges {
            self.end_merge(merge, media);
        }
    }

    fn begin_merge<M: MergeMedia>(
        &mut self,
        (logical, cluster): (u32, Option<u32>),
        media: &mut M,
    ) -> Reclaim {
        let stream = self.streams.iter().find(|stream| stream.logical == logical).copied();
        // Pages of the stream that are newer in the log have no place left in the stream's unit.
        let fits = stream.filter(|stream| !self.superseded(stream));
        let target = match fits {
            Some(stream) => stream.unit,
            None => self.free.take(self.layout.home(logical), media),
        };
        let there = fits.map_or(Run::at(0), |stream| stream.run);
        Reclaim { logical, target, there, cluster }
    }

    /// Copy the pages of a cluster that lie before page `end` of the unit.
    fn copy_cluster<M: MergeMedia>(&self, merge: &Reclaim, cluster: u32, end: u32, media: &mut M) {
        let first = cluster * self.layout.cluster_pages;
        for offset in first..(first + self.layout.cluster_pages).min(end) {
            if merge.there.has(offset) {
                continue;
            }
            if let Some(from) = self.lookup(Lpn(merge.logical * self.layout.unit_pages + offset)) {
                media.copy(from, self.layout.place(merge.target, offset));
            }
        }
    }

    fn end_merge<M: MergeMedia>(&mut self, merge: Reclaim, media: &mut M) {
        let Reclaim { logical, target, there, cluster } = merge;
        media.count_merge(if there.pages() > 0 { Merge::Partial } else { Merge::Full });
        if let Some(index) = self.streams.iter().position(|stream| stream.logical == logical) {
            let stream = self.streams.remove(index);
            if stream.unit != target {
                self.free.discard(stream.unit);
            }
        }
        match cluster.filter(|_| self.part.evict_single) {
            Some(cluster) => self.log.drop_cluster(cluster),
            None => self.drop_from_log(logical),
        }
        self.set_data_unit(logical, target, media);
    }

    /// Whether the log has newer versions of pages of `stream`.
    fn superseded(&self, stream: &Stream) -> bool {
        let first = stream.logical * self.layout.unit_pages;
        (stream.run.low..stream.run.high).any(|offset| {
            let (cluster, within) = self.cluster_of(Lpn(first + offset));
            self.log.lookup(cluster, within).is_some()
        })
    }

    fn drop_from_log(&mut self, logical: u32) {
        let clusters = self.layout.clusters_per_unit();
        (logical * clusters..(logical + 1) * clusters)
            .for_each(|cluster| self.log.drop_cluster(cluster));
    }

    /// `unit` holds the data of `logical` from now on; the old one is erased when a unit is needed.
    fn set_data_unit<M: MergeMedia>(&mut self, logical: u32, unit: UnitIdx, media: &mut M) {
        let old = self.map[logical as usize].replace(unit);
        old.into_iter().for_each(|old| self.free.discard(old));
        self.journal.store(self.part.merge_map_pages, &mut self.free, media);
    }

    /// Merge the unit of `page` at once, with a place for what the host brings.
    fn merge_around<M: MergeMedia>(&mut self, page: Lpn, extent: &Extent, media: &mut M) {
        let (logical, offset) = self.unit_of(page);
        let target = self.free.take(self.layout.home(logical), media);
        let first = logical * self.layout.unit_pages;
        for other in (first..first + self.layout.unit_pages).map(Lpn) {
            if other == page || extent.brings_after(page, other) {
                continue;
            }
            if let Some(from) = self.lookup(other) {
                media.copy(from, self.layout.place(target, other.0 - first));
            }
        }
        media.count_merge(Merge::Full);
        media.await_merges();
        media.program(self.layout.place(target, offset), self.rest_of(page, extent));
        if let Some(index) = self.streams.iter().position(|stream| stream.logical == logical) {
            let stream = self.streams.remove(index);
            self.free.discard(stream.unit);
        }
        self.drop_from_log(logical);
        media.await_merges();
        self.set_data_unit(logical, target, media);
        let next = Lpn(page.0 + 1);
        self.bringing = extent.brings_after(page, next).then_some((logical, next));
    }
}

/// What is done beside the host.
impl StreamHybrid {
    /// Choose units to merge step by step; those that are being filled are merged at once.
    fn begin_reclaim<M: MergeMedia>(&mut self, media: &mut M) {
        media.begin_reclaim();
        self.job_cluster = 0;
        for (logical, cluster) in self.oldest_units() {
            if self.streams.iter().any(|stream| stream.logical == logical) {
                self.merge(&[(logical, cluster)], media);
            } else {
                let merge = self.begin_merge((logical, cluster), media);
                self.job.push(merge);
            }
        }
    }

    /// Copy the next cluster of every unit of the job, or end it.
    fn step<M: MergeMedia>(&mut self, media: &mut M) {
        for merge in &self.job {
            self.copy_cluster(merge, self.job_cluster, self.layout.unit_pages, media);
        }
        self.job_cluster += 1;
        media.await_merges();
        if self.job_cluster == self.layout.clusters_per_unit() {
            for merge in std::mem::take(&mut self.job) {
                self.end_merge(merge, media);
            }
        }
    }

    /// The host changes `logical`: what was copied of it beside the host is worth nothing.
    fn leave_alone(&mut self, logical: u32) {
        if let Some(index) = self.job.iter().position(|reclaim| reclaim.logical == logical) {
            let reclaim = self.job.remove(index);
            self.free.discard(reclaim.target);
        }
    }
}
