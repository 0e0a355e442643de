//! Random page maps, on small devices of every shape.

use super::*;

/// The parameters of a random device, except its policies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) geometry: Geometry,
    pub(super) reserved_blocks: usize,
    pub(super) same_die: bool,
    pub(super) separate: bool,
    pub(super) free_order: FreeOrder,
    pub(super) static_threshold: u32,
    pub(super) mapping: Option<MappingOptions>,
    pub(super) write_streams: u8,
}

prop_compose! {
    /// Small devices of every shape that leave the host at least one page.
    pub(super) fn variants()(
        channels in 1u32..5, dies_per_channel in 1u32..4, data_pages in 1u32..20,
        metadata_pages in 0u32..2, more_blocks in 1u32..12, reserved_blocks in 1usize..3,
        fullness in 1u32..=100, same_die in any::<bool>(), separate in any::<bool>(),
        least_worn in any::<bool>(), static_threshold in 0u32..4, mapping in mappings(), units in 1u32..5,
        streams in 1u8..5,
    ) -> Variant {
        // A map on flash counts in whole pages.
        let units = if mapping.0.is_some() { 1 } else { units };
        let write_streams = if mapping.0.is_some() { 1 } else { streams };
        let (data_pages, metadata_pages) = (data_pages * units, metadata_pages * units);
        let planes = channels * dies_per_channel;
        let relocation = RelocationFrontier::for_streams(separate, write_streams);
        let open = u32::from(write_streams + relocation.open_blocks(write_streams));
        let max_logical_pages = planes * more_blocks * data_pages;
        let logical_pages = (max_logical_pages * fullness / 100).max(1);
        let (mapping, page_bytes) = mapping;
        // A map on flash takes blocks of its own.
        let mapping_pages = logical_pages.div_ceil(page_bytes / 4);
        let for_map = 1 + (2 * mapping_pages).div_ceil(data_pages).div_ceil(planes);
        let (reserved_for_map, for_map) =
            if mapping.is_some() { (RESERVED_FOR_MAPPING, for_map) } else { (0, 0) };
        let reserved_blocks = reserved_blocks + reserved_for_map as usize;
        let blocks_per_plane = reserved_blocks as u32 + open + 1 + more_blocks + for_map;
        let geometry = Geometry::from(Shape {
            channels, planes, blocks_per_plane, pages_per_block: data_pages + metadata_pages,
            metadata_pages, page_bytes, logical_pages,
        });
        let geometry = geometry.with_units(units);
        let free_order = if least_worn { FreeOrder::LeastWorn } else { FreeOrder::Oldest };
        Variant {
            geometry, reserved_blocks, same_die, separate, free_order, static_threshold, mapping,
            write_streams,
        }
    }
}

prop_compose! {
    /// A map in memory, or on flash; and pages that hold few or many entries of it.
    fn mappings()(
        on_flash in any::<bool>(), cached_segments in 1usize..200, segmented in any::<bool>(),
        batch_update in any::<bool>(), entries in 4u32..200, segment_entries in 1u32..5,
    ) -> (Option<MappingOptions>, u32) {
        let policy = if segmented { CachePolicy::SegmentedLru } else { CachePolicy::Lru };
        let options = MappingOptions {
            cached_segments, segment_entries, policy, batch_update,
        };
        (on_flash.then_some(options), 4 * entries * segment_entries)
    }
}
