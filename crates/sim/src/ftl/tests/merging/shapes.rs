//! Devices for merging FTLs: of every shape, with the minimum space that they need.

use proptest::prelude::*;

use super::PAGE;
use crate::flash::geometry::{Geometry, Shape};
use crate::ftl::Tables;
use crate::ftl::how_to::ReplacementPart;
use crate::ftl::linear::LinearPart;
use crate::ftl::options::{Compat, LogPart};
use crate::ftl::stream_hybrid::StreamsPart;
use crate::ftl::stripe_map::StripesPart;

prop_compose! {
    /// Small devices of every shape; the host addresses a share of them.
    pub(super) fn geometries()(
        channels in 1u32..4, dies_per_channel in 1u32..3, pages_per_block in 1u32..80,
        blocks_per_plane in 4u32..40, share in 0.1f64..1.0, last in 0u32..80,
    ) -> Geometry {
        let planes = channels * dies_per_channel;
        let data_blocks = (f64::from(planes * blocks_per_plane - 1) * share) as u32;
        let pages = (data_blocks * pages_per_block).saturating_sub(last % pages_per_block);
        Geometry::from(Shape {
            channels, planes, blocks_per_plane, pages_per_block, metadata_pages: 0,
            page_bytes: PAGE as u32, logical_pages: pages.max(1),
        })
    }
}

prop_compose! {
    /// Small devices with merge units, and the minimum space that they need.
    pub(super) fn units()(
        shape in (1u32..4, 1u32..3, 1u32..40, any::<bool>(), 1u32..3),
        data_per_bank in 1u32..12, cluster in 0usize..6, log in (1u32..100, 1u32..5, 0u32..20),
        streams in 1u32..4, merges in 1u32..4, fold in 0u32..4, flags in any::<[bool; 6]>(),
        small in (0usize..6, 1u32..60, 1u32..4), map_pages in (0u32..2, 0u32..3),
    ) -> (Geometry, StreamsPart, LinearPart) {
        let (channels, dies_per_channel, pages_per_block, together, rows) = shape;
        let (log_clusters, log_units, free) = log;
        let planes = channels * dies_per_channel;
        let banks = if together { 1 } else { planes };
        let unit_pages = rows * planes / banks * pages_per_block;
        let divisors: Vec<u32> =
            (1..=unit_pages.min(64)).filter(|pages| unit_pages.is_multiple_of(*pages)).collect();
        let cluster_pages = divisors[cluster % divisors.len()];
        let in_unit = unit_pages / cluster_pages;
        // One cluster less than the log's units hold, if it is compacted; and a unit of one cluster needs
        // two.
        let log_units = log_units + u32::from(in_unit == 1);
        let log_clusters = log_clusters.min(log_units * in_unit - u32::from(flags[2]));
        let rewrites = fold % 3;
        let unit_log = (merges - 1).min(in_unit);
        // A log of small clusters if a size below a cluster exists.
        let parts: Vec<u32> =
            (1..cluster_pages).filter(|pages| flags[4] && cluster_pages.is_multiple_of(*pages)).collect();
        let small_pages = parts.get(small.0 % parts.len().max(1)).copied().unwrap_or(0);
        let small_units = if small_pages > 0 { small.2 } else { 0 };
        let in_small = (small_units * unit_pages).checked_div(small_pages).unwrap_or(1) - 1;
        let for_small = if small_pages > 0 { small_units + 3 } else { 0 };
        let reserved = streams + 2 + u32::from(small_pages > 0)
            + (log_units + 3 + for_small).div_ceil(banks);
        let reserved = reserved.max(streams * (1 + rewrites + unit_log.min(1)) + 1 + 2u32.div_ceil(banks));
        let geometry = Geometry::from(Shape {
            channels, planes, blocks_per_plane: rows * (data_per_bank + reserved), pages_per_block,
            metadata_pages: 0, page_bytes: PAGE as u32,
            logical_pages: banks * data_per_bank * unit_pages,
        });
        let (unit_bytes, cluster_bytes) = (unit_pages * PAGE as u32, cluster_pages * PAGE as u32);
        let streams = streams.min(banks * data_per_bank);
        let linear = LinearPart {
            unit_bytes, cluster_bytes, banks, open_units: streams, backward_clusters: free, rewrites,
            log_clusters: unit_log, open_map_pages: map_pages.1, switch_map_pages: map_pages.0, merge_map_pages: map_pages.1,
        };
        let streams = StreamsPart {
            unit_bytes, cluster_bytes, banks, own_channels: flags[5] && channels.is_multiple_of(banks),
            streams, reverse_streams: flags[0],
            resumed_streams: free % 4, log_members: merges % 3, compact_log: flags[2],
            fold_clusters: fold.min(in_unit), log_clusters, log_units,
            free_clusters: free.min(log_clusters), merges_at_once: merges.min(banks),
            reads_per_step: 0, bypass_partial_clusters: flags[1],
            switch_map_pages: map_pages.0, merge_map_pages: map_pages.1,
            log_map_pages: map_pages.0, rewrite_buffer: false, evict_single: flags[3],
            small_cluster_bytes: small_pages * PAGE as u32,
            small_log_clusters: small.1.min(in_small), small_log_units: small_units,
        };
        (geometry, streams, linear)
    }
}

prop_compose! {
    /// Small devices of stripes, with the minimum space that they need.
    pub(super) fn stripes()(
        groups in 1u32..4, stripe_dies in 1u32..4, pages_per_block in 1u32..20, entries in 4u32..40,
        data in 1u32..12, more in 0u32..4, short in 0u32..20, memory in 0u64..12, changed in 1u64..12,
        separate in any::<bool>(), parity in any::<bool>(),
    ) -> (Geometry, StripesPart) {
        let stripe_pages = stripe_dies * pages_per_block;
        let parity = parity && stripe_dies > 1;
        let data_pages = stripe_pages - if parity { pages_per_block } else { 0 };
        let logical_pages = (data * data_pages).saturating_sub(short % stripe_pages).max(1);
        let map = 4 * logical_pages.div_ceil(entries).div_ceil(stripe_pages) + 1;
        let map = if memory == 0 { 0 } else { map };
        let least = data + map + if separate { 5 } else { 3 };
        let page_bytes = 4 * entries;
        let geometry = Geometry::from(Shape {
            channels: 1, planes: groups * stripe_dies,
            blocks_per_plane: least.div_ceil(groups) + more, pages_per_block,
            metadata_pages: 0, page_bytes, logical_pages,
        });
        let page = u64::from(page_bytes);
        let part = StripesPart {
            stripe_dies, map_memory_bytes: memory * page, map_changed_bytes: changed.min(memory) * page,
            separate_stripes: Some(separate), stripe_parity: Some(parity),
        };
        (geometry, part)
    }
}

/// Return a device for every FTL, and a table for each FTL that has one.
pub(super) fn one_for_all() -> (Geometry, Tables) {
    let geometry = Geometry::from(Shape {
        channels: 2,
        planes: 4,
        blocks_per_plane: 64,
        pages_per_block: 32,
        metadata_pages: 0,
        page_bytes: PAGE as u32,
        logical_pages: 128 * 32,
    });
    let unit_bytes = 4 * 32 * PAGE as u32;
    let streams = StreamsPart {
        unit_bytes,
        cluster_bytes: 4 * PAGE as u32,
        banks: 1,
        own_channels: false,
        streams: 3,
        resumed_streams: 1,
        reverse_streams: true,
        fold_clusters: 2,
        log_clusters: 60,
        log_units: 4,
        compact_log: true,
        log_members: 0,
        small_cluster_bytes: PAGE as u32,
        small_log_clusters: 300,
        small_log_units: 3,
        evict_single: false,
        rewrite_buffer: false,
        log_map_pages: 0,
        free_clusters: 20,
        merges_at_once: 1,
        reads_per_step: 0,
        bypass_partial_clusters: false,
        switch_map_pages: 1,
        merge_map_pages: 1,
    };
    let linear = LinearPart {
        unit_bytes,
        cluster_bytes: 4 * PAGE as u32,
        banks: 1,
        open_units: 3,
        backward_clusters: 4,
        rewrites: 1,
        log_clusters: 1,
        open_map_pages: 1,
        switch_map_pages: 1,
        merge_map_pages: 1,
    };
    let stripes = StripesPart {
        stripe_dies: 2,
        map_memory_bytes: 2 * PAGE,
        map_changed_bytes: PAGE,
        separate_stripes: None,
        stripe_parity: None,
    };
    let part =
        LogPart { log_blocks: 40, superblock_blocks: 4, compat: Compat::None, log_per_die: false };
    let tables = Tables {
        log: Some(part),
        streams: Some(streams),
        linear: Some(linear),
        stripes: Some(stripes),
        replacement: Some(ReplacementPart { replaced_at_once: 3 }),
    };
    (geometry, tables)
}
