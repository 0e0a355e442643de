//! The stream hybrid: an FTL that maps whole merge units, fills a few of them in order at a time, and has a
//! small log for all other writes.
//!
//! ```text
//! write ─▶ continues a stream?             ─▶ the stream's unit; when it is full it becomes the data unit
//!       ─▶ begins a unit?                  ─▶ a new stream; the oldest is folded into the log or merged
//!       ─▶ anything else                   ─▶ the log, cluster by cluster; if it is full, the units of
//!                                             its oldest clusters are merged, several banks at once
//!       ─▶ less than a cluster             ─▶ a log of small clusters, if there is one
//! idle  ─▶ the same merges, a cluster a step, until enough of the log is free
//! ```
//!
//! **Source**: inferred from the black-box measurements of uFLIP (2009) §5 and Table 3; no vendor
//! published it. Streams, log and background reclamation each explain one of its columns.
//! **Faithful**: streams up to a number are as fast as one (Partitions); a working set that fits the
//! log needs no merges (Locality); merges in one bank wait for each other (large Incr); reclamation in
//! idle time gives a start-up phase and makes pauses help (Pause).
//! **Simplified**: pages of a block are written in any order, for which flash may need a table
//! (`flash/replacement.rs`); a log cluster keeps its unwritten pages erased, so that later writes can fill them;
//! the map is in memory, its changes go to a journal.
//! **Ambiguous**: everything; the numbers of a profile select the reading. A stream begins with the first
//! page of a unit unless the previous write was its successor; one that runs downwards begins with the last
//! page of a unit, and only after such a write. Whether partial clusters have a separate log: if they do, a
//! merge writes back all of them that a unit has there, so that a write costs a share of a merge in
//! proportion to its size.

mod merges;
mod write_log;

use std::collections::VecDeque;
use std::ops::Range;

use uflip_core::{Error, Result};

use super::extent::PageExtent;
use super::run::Run;
use super::{FtlOptions, MergingFtl};
use crate::collections::bits;
use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PageAddresses};
use crate::flash::plan::FlashPlan;
use crate::keys::parameters;
use crate::pool::units::{FreeUnits, Journal, UnitIdx, UnitLayout};
use write_log::{LogLimits, WriteLog};

/// The map, the streams and the logs.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StreamHybrid {
    part: StreamsPart,
    layout: UnitLayout,
    free: FreeUnits,
    journal: Journal,
    /// The log of whole clusters, and that of small ones if there is one.
    logs: Vec<WriteLog>,
    /// Per logical unit: its data unit.
    map: Vec<Option<UnitIdx>>,
    /// Per logical page, one bit: the host wrote it and did not trim it.
    live: Vec<u64>,
    /// Units being filled, the one written last first.
    streams: Vec<SequentialStream>,
    /// Displaced streams: the logical unit and its next page, the latest first.
    #[serde(rename = "displaced")]
    closed_streams: VecDeque<(u32, u32)>,
    /// The first page of the previous host write, and of this one.
    before: u32,
    current: u32,
    /// The pages that a merge omitted because the host writes them.
    #[serde(rename = "bringing")]
    omitted: Option<OmittedPages>,
    /// Power may be lost. All pages of a cluster that the host writes then go to its slot in the log, even
    /// if they continue a stream: only the log erases no block that still has their old versions. `awaited`:
    /// the pages that come next.
    durable: bool,
    awaited: Range<u32>,
    job: Vec<Reclaim>,
    /// The next cluster of the units in `job`.
    job_cluster: u32,
}

/// Every write searches the displaced streams; more than a few are implausible.
const RESUMED_MAX: u32 = 1 << 12;

/// Return the layout of units on the planes, with clusters of `cluster_bytes`.
fn layout(part: &StreamsPart, geometry: Geometry, cluster_bytes: u32) -> Result<UnitLayout> {
    UnitLayout::new(geometry, part.unit_bytes, cluster_bytes, part.banks, part.own_channels)
}

/// Return the layout of the log of small clusters, if there is one.
fn small_layout(part: &StreamsPart, geometry: Geometry) -> Result<Option<UnitLayout>> {
    let bytes = part.small_cluster_bytes;
    if bytes == 0 {
        return Ok(None);
    }
    if bytes >= part.cluster_bytes || !part.cluster_bytes.is_multiple_of(bytes) {
        return Err(Error::usage("Small clusters do not divide clusters")
            .got(format!("small_cluster_bytes = {bytes}"))
            .allowed(format!("0, or less than cluster_bytes = {}, dividing it", part.cluster_bytes))
            .action("change small_cluster_bytes"));
    }
    layout(part, geometry, bytes).map(Some)
}

impl MergingFtl for StreamHybrid {
    type Table = StreamsPart;

    fn check(options: &FtlOptions<'_, StreamsPart>) -> Result<()> {
        let part = options.table;
        options.check_map_pages(&[
            ("switch_map_pages", part.switch_map_pages),
            ("merge_map_pages", part.merge_map_pages),
            ("log_map_pages", part.log_map_pages),
        ])?;
        let layout = layout(part, options.geometry, part.cluster_bytes)?;
        let small = small_layout(part, options.geometry)?;
        let clusters_in =
            |units: u32, layout: UnitLayout| units.saturating_mul(layout.clusters_per_unit());
        // Compaction needs a free slot to move clusters to.
        let spare = u32::from(part.compact_log);
        let in_log = clusters_in(part.log_units, layout).saturating_sub(spare);
        let (min, in_small) = match small {
            Some(small) => (1, clusters_in(part.small_log_units, small).saturating_sub(1)),
            None => (0, 0),
        };
        let ranges = [
            ("streams", part.streams, 1, layout.logical_units()),
            ("log_clusters", part.log_clusters, 1, in_log),
            ("small_log_clusters", part.small_log_clusters, min, in_small),
            ("free_clusters", part.free_clusters, 0, part.log_clusters),
            ("merges_at_once", part.merges_at_once, 1, part.banks),
            ("fold_clusters", part.fold_clusters, 0, layout.clusters_per_unit()),
            ("resumed_streams", part.resumed_streams, 0, RESUMED_MAX),
        ];
        for (key, got, min, max) in ranges {
            if got < min || got > max {
                return Err(Error::usage(format!("Profile key '{key}' has an invalid value"))
                    .got(got.to_string())
                    .allowed(format!("{min} to {max}"))
                    .action(
                        "change it; a log that is compacted has fewer clusters than its units hold",
                    ));
            }
        }
        // Per bank: the streams, the target of a merge, and that of a background merge. Each log is spread
        // over the banks, as if the two units of the journal were in its first one.
        let extra_uses = "streams, logs, journal, and two for merges in every bank";
        let units_for_log = |units: u32| u64::from(units) + 1 + u64::from(Journal::UNITS);
        let in_small = small.map_or(0, |_| units_for_log(part.small_log_units));
        let reserved_units = u64::from(part.streams) + 2 + u64::from(small.is_some());
        let extra_per_bank = reserved_units + u64::from(options.durable);
        layout.check(extra_per_bank, units_for_log(part.log_units) + in_small, extra_uses)
    }

    fn new(options: &FtlOptions<'_, StreamsPart>) -> StreamHybrid {
        let part = options.table.clone();
        let layout =
            layout(&part, options.geometry, part.cluster_bytes).expect("the options were checked");
        let small = small_layout(&part, options.geometry).expect("the options were checked");
        let whole = LogLimits {
            clusters: part.log_clusters,
            units: part.log_units,
            members: part.log_members,
            compacts: part.compact_log,
        };
        let of_small = LogLimits {
            clusters: part.small_log_clusters,
            units: part.small_log_units,
            members: 0,
            compacts: true,
        };
        let logs = [WriteLog::new(layout, whole)].into_iter();
        let pages = options.geometry.shape().logical_pages as usize;
        StreamHybrid {
            layout,
            free: FreeUnits::new(layout, options.durable),
            journal: Journal::new(layout),
            logs: logs.chain(small.map(|small| WriteLog::new(small, of_small))).collect(),
            map: vec![None; layout.logical_units() as usize],
            live: vec![0; pages.div_ceil(64)],
            streams: Vec::with_capacity(part.streams as usize),
            closed_streams: VecDeque::with_capacity(part.resumed_streams as usize + 1),
            before: 0,
            current: 0,
            omitted: None,
            durable: options.durable,
            awaited: 0..0,
            job: Vec::with_capacity(part.merges_at_once as usize),
            job_cluster: 0,
            part,
        }
    }

    fn lookup(&self, page: Lpn) -> Option<PageAddress> {
        let (logical, offset) = self.unit_of(page);
        self.newest(logical, offset..offset + 1).next()?
    }

    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
        if extent.begin() != self.current {
            (self.before, self.current) = (self.current, extent.begin());
        }
        let (logical, offset) = self.unit_of(page);
        self.abandon_merge(logical);
        let omitted = self.omitted.take().filter(|omitted| omitted.next == page);
        if let Some(OmittedPages { merge_from: rest, .. }) = omitted {
            self.write_omitted_page(page, extent, rest, plan);
        } else if self.is_awaited(page) {
            self.write_log(page, extent, plan);
        } else if let Some(stream) = self.stream_for(page, extent) {
            self.write_stream(stream, page, extent, plan);
        } else if self.resumes_stream(logical, offset) {
            self.resume_stream(logical, offset, plan);
            self.write_stream(0, page, extent, plan);
        } else if self.begins_stream(page, extent) {
            self.open_stream(logical, offset, plan);
            self.write_stream(0, page, extent, plan);
        } else if self.part.bypass_partial_clusters && !self.is_whole_cluster(page, extent) {
            self.merge_around(page, extent, plan);
        } else {
            self.write_log(page, extent, plan);
        }
        bits::insert(&mut self.live, page.0 as usize);
    }

    fn trim(&mut self, page: Lpn) {
        self.abandon_merge(self.unit_of(page).0);
        self.set_dead(page);
        self.invalidate_in_logs(page);
    }

    fn reclaim(&mut self, plan: &mut FlashPlan) -> bool {
        if self.part.free_clusters == 0 {
            return false;
        }
        if !self.job.is_empty() {
            self.step(plan);
            return true;
        }
        if self.logs[WHOLE].len() + self.part.free_clusters > self.part.log_clusters {
            self.begin_reclaim(plan);
            return true;
        }
        self.free.erase_some(plan)
    }

    fn group_of(&self, block: BlockIdx) -> u32 {
        self.layout.group_of(block)
    }

    /// Streams and logs are merged; the journal starts empty.
    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
        let units = self.layout.restore(survey, &mut self.free);
        let merged = self.layout.merge_found(units, survey, &mut self.free, plan);
        for (logical, unit) in merged {
            self.map[logical as usize] = Some(unit);
        }
        let pages = (0..self.layout.logical_units() * self.layout.unit_pages).map(Lpn);
        pages.filter(|page| survey.address_of(*page).is_some()).for_each(|page| {
            bits::insert(&mut self.live, page.0 as usize);
        });
    }

    #[cfg(test)]
    fn audit(&self) {
        self.logs.iter().for_each(WriteLog::audit);
        let data = self.map.iter().flatten().copied();
        let streams = self.streams.iter().map(|stream| stream.unit);
        let targets = self.job.iter().map(|reclaim| reclaim.target);
        let others = data.chain(streams).chain(targets).chain(self.journal.unit());
        self.free.audit(others.chain(self.logs.iter().flat_map(WriteLog::units)));
    }
}

/// Lookup.
impl StreamHybrid {
    /// Return the logical unit of `page`, and its offset there.
    #[inline]
    fn unit_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.layout.unit_pages, page.0 % self.layout.unit_pages)
    }

    /// Return whether the log has an erased page for `page`, which the host was to write.
    #[inline]
    fn is_awaited(&mut self, page: Lpn) -> bool {
        let awaited = std::mem::take(&mut self.awaited);
        let is_awaited = awaited.contains(&page.0);
        if is_awaited {
            self.awaited = page.0 + 1..awaited.end;
        }
        is_awaited
    }

    /// Mark `page` as empty.
    #[inline]
    fn set_dead(&mut self, page: Lpn) {
        bits::remove(&mut self.live, page.0 as usize);
    }

    /// Return the address of the newest version of each of the pages `offsets` of a unit.
    #[inline]
    fn newest(
        &self,
        logical: u32,
        offsets: Range<u32>,
    ) -> impl Iterator<Item = Option<PageAddress>> {
        let first = logical * self.layout.unit_pages;
        let is_in_logs = self.logs.iter().any(|log| log.is_member(logical));
        let stream = self.streams.iter().find(|stream| stream.logical == logical);
        let data = self.map[logical as usize];
        let mut data = data.map(|unit| self.layout.addresses_from(unit, offsets.start));
        offsets.map(move |offset| {
            let page = Lpn(first + offset);
            let address = data.as_mut().and_then(PageAddresses::next);
            if !bits::has(&self.live, page.0 as usize) {
                return None;
            }
            if is_in_logs && let Some(place) = self.lookup_in_logs(page) {
                return Some(place);
            }
            match stream.filter(|stream| stream.run.has(offset)) {
                Some(stream) => Some(self.layout.address_of(stream.unit, offset)),
                None => address,
            }
        })
    }

    /// Return the address of `page`, if a log has its newest version.
    #[inline]
    fn lookup_in_logs(&self, page: Lpn) -> Option<PageAddress> {
        self.logs.iter().find_map(|log| log.lookup(page))
    }

    /// Invalidate the versions of `page` in the logs.
    #[inline]
    fn invalidate_in_logs(&mut self, page: Lpn) {
        self.logs.iter_mut().for_each(|log| log.invalidate(page));
    }

    /// Return the page that supplies the rest of `page`, if the host writes only a part of it.
    fn merge_source(&self, page: Lpn, extent: &PageExtent) -> Option<PageAddress> {
        extent.merge_source(page, || self.lookup(page))
    }

    /// Return whether the host writes all of the cluster of `page`.
    fn is_whole_cluster(&self, page: Lpn, extent: &PageExtent) -> bool {
        let pages = self.layout.cluster_pages;
        extent.covers_all(Lpn(page.0 / pages * pages), pages)
    }

    // The logs: which writes go there, and which units are merged to make space.

    fn write_log(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
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
    fn renew(
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
    fn make_free_space(&mut self, log_index: usize, cluster: u32, plan: &mut FlashPlan) {
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
    fn oldest_units(&self, log_index: usize) -> Vec<(u32, MergeReason)> {
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

// The table [streams] of the profile.

parameters! {
    /// Parameters of the stream hybrid.
    #[derive(Clone, PartialEq, Debug)]
    pub struct StreamsPart {
        unit_bytes: u32 = "see above" in "bytes",
            "granularity of mapping, filling, merging and erasing";
        cluster_bytes: u32 = "a page to 64 pages; divides `unit_bytes`" in "bytes",
            "granularity of the log's map, and unit of windows";
        banks: u32 = "a divisor of the number of dies",
            "groups of dies; different banks merge at the same time";
        own_channels: bool = "`true`, `false`",
            "each bank has its own channels: `banks` divides the channels, and merges in two \
             banks share no channel; otherwise every bank has dies on every channel";
        streams: u32 = "1 or more",
            "units that may be filled in order at a time";
        resumed_streams: u32 = "0 or more",
            "displaced streams that may resume: their data is copied to a new unit";
        reverse_streams: bool = "`true`, `false`",
            "a stream may run downwards, from the end of a unit";
        fold_clusters: u32 = "0 to those of a unit" in "clusters",
            "a closed stream with at most this number of clusters goes to the log; others are \
             merged";
        log_clusters: u32 =
            "the clusters that `log_units` hold; fewer with `compact_log`" in "clusters",
            "clusters that the log holds";
        log_units: u32 = "1 or more" in "units",
            "units of flash for the log's clusters";
        compact_log: bool = "`true`, `false`",
            "when no other log unit is free, the clusters of the emptiest one are moved; \
             otherwise the whole log is merged, and starts empty";
        log_members: u32 = "0 or more" in "units",
            "number of units whose clusters the log may hold at a time, 0: any number; before \
             another unit enters, the oldest are merged";
        small_cluster_bytes: u32 = "0, or a part of `cluster_bytes`" in "bytes",
            "cluster size of a second log, for writes of parts of a cluster; its merges write \
             back all its clusters of the unit. 0: no such log";
        small_log_clusters: u32 =
            "fewer than `small_log_units` hold; 0 without such a log" in "small clusters",
            "clusters that the second log holds";
        small_log_units: u32 = "0 or more; 1 or more with such a log" in "units",
            "units of flash for the second log; superseded clusters are always compacted";
        evict_single: bool = "`true`, `false`",
            "a merge takes only the oldest cluster of its unit out of the log, as a write-back \
             cache does; otherwise all clusters of the unit";
        free_clusters: u32 = "0 to `log_clusters`" in "clusters",
            "clusters that reclamation in idle time keeps free; 0: no reclamation in idle time";
        merges_at_once: u32 = "1 to `banks`",
            "units that are merged at the same time, each in a different bank";
        reads_per_step: u32 = "0 or more" in "reads",
            "host reads between steps of reclamation, each step moves a cluster in each bank \
             that reclaims; 0: no reclamation during reads";
        bypass_partial_clusters: bool = "`true`, `false`",
            "a write of a part of a cluster merges its unit at once instead of going to the log";
        rewrite_buffer: bool = "`true`, `false`",
            "a write to the same address as the previous one stays in memory until another write \
             arrives";
        switch_map_pages: u32 = "0 to all pages" in "pages",
            "map pages that are programmed when another stream or open unit continues";
        merge_map_pages: u32 = "0 to all pages" in "pages",
            "the same when a unit moves to a new location";
        log_map_pages: u32 = "0 to all pages" in "pages",
            "map pages that are programmed when a cluster is written to the log";
    }
}

// Work in progress: units that are filled in order, and units that are merged.

/// Indices of the log of whole clusters, and of the log of small ones.
const WHOLE: usize = 0;
const SMALL: usize = 1;

/// A unit being filled in order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Stream")]
struct SequentialStream {
    logical: u32,
    unit: UnitIdx,
    run: Run,
}

/// The reason for a merge.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Reason")]
enum MergeReason {
    /// Its stream is closed or resumed.
    Stream,
    /// This cluster must leave the log.
    Cluster(u32),
    /// A small cluster must leave the log of small clusters.
    Small,
}

/// A unit that is merged step by step in the background.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Reclaim {
    logical: u32,
    target: UnitIdx,
    /// The pages that its stream already has there.
    #[serde(rename = "there")]
    existing: Run,
    reason: MergeReason,
}

/// The pages that a merge around the host's data omitted, because the host writes them.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Bringing")]
struct OmittedPages {
    /// The page that comes next.
    next: Lpn,
    /// The address of the rest of the last page, if the host writes only a part of it. It is the address before
    /// the merge, which is not erased before it is read: no step takes a unit until then.
    #[serde(rename = "rest")]
    merge_from: Option<PageAddress>,
}
