//! Every merging FTL against a flat array: host writes of any extent, trims and idle steps, on devices
//! of every shape.

mod levelled;
mod shapes;
mod worn;

use proptest::prelude::*;
use serde_json::json;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Io, Mode};

use super::Shadow;
use crate::config::BLOCK;
use crate::flash::geometry::{BlockIdx, Geometry, Lpn, Shape};
use crate::flash::media::{Flash, Media};
use crate::flash::nand::PageOrder;
use crate::flash::plan::FlashPlan;
use crate::ftl::extent::PageExtent;
use crate::ftl::options::{Compat, LogPart};
use crate::ftl::stream_hybrid::StreamsPart;
use crate::ftl::{MERGING_FTLS, Merging, MergingOptions, Tables};
use shapes::{geometries, one_for_all, stripes, units};
use worn::{execute, physical_address};

const PAGE: u64 = 4096;

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_ftls_read_own_writes(
        geometry in geometries(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for name in ftls_without_table() {
            let options = MergingOptions::with_tables(name, geometry, random_table(name, &mut rng));
            if Merging::check(&options).is_ok() {
                read_your_writes(&options, seed, hot);
            }
        }
        // All remaining space goes to the log.
        let data = geometry.shape().logical_pages.div_ceil(geometry.shape().pages_per_block);
        let log_blocks = (geometry.blocks() - data - 1).min(12);
        let part = LogPart {
            log_blocks, superblock_blocks: 1 + hot as u32 % 4, compat: Compat::None, log_per_die: false,
        };
        let log = |part: &LogPart| Tables { log: Some(part.clone()), ..Tables::default() };
        for name in ["bast", "fast", "superblock"] {
            let options = MergingOptions::with_tables(name, geometry, log(&part));
            if log_blocks >= 2 {
                read_your_writes(&options, seed, hot);
            }
        }
        let per_plane = LogPart { log_per_die: true, ..part };
        if log_blocks > geometry.shape().planes {
            let options = MergingOptions::with_tables("fast", geometry, log(&per_plane));
            read_your_writes(&options, seed, hot);
        }
    }

    #[test]
    fn unit_ftls_read_own_writes(
        (geometry, streams, linear) in units(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        read_your_writes(&with_streams(geometry, streams), seed, hot);
        let tables = Tables { linear: Some(linear), ..Tables::default() };
        let options = MergingOptions::with_tables("linear", geometry, tables);
        read_your_writes(&options, seed, hot);
    }

    #[test]
    fn stripe_map_reads_own_writes(
        (geometry, part) in stripes(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        let tables = Tables { stripes: Some(part), ..Tables::default() };
        let options = MergingOptions::with_tables("stripe_map", geometry, tables);
        read_your_writes(&options, seed, hot);
    }
}

/// FTLs whose tables are drawn from the list of keys.
fn ftls_without_table() -> impl Iterator<Item = &'static str> {
    let drawn = ["bast", "fast", "linear", "stream_hybrid", "stripe_map", "superblock"];
    MERGING_FTLS.iter().copied().filter(move |name| !drawn.contains(name))
}

/// Draw a table for the FTL `name`, if it has one.
fn random_table(name: &str, rng: &mut Xoshiro256PlusPlus) -> Tables {
    let Some(table) = Merging::table(name) else { return Tables::default() };
    let drawn = BLOCK.drawn(table, |end| uniform(rng, end));
    serde_json::from_value(json!({ table: drawn })).expect("each key is in its range")
}

fn with_streams(geometry: Geometry, part: StreamsPart) -> MergingOptions<'static> {
    let tables = Tables { streams: Some(part), ..Tables::default() };
    MergingOptions::with_tables("stream_hybrid", geometry, tables)
}

/// Return a small device with merge units and logs of every kind.
fn small_streams(unit_bytes: u32, banks: u32) -> StreamsPart {
    StreamsPart {
        unit_bytes,
        cluster_bytes: unit_bytes,
        banks,
        own_channels: false,
        streams: 1,
        resumed_streams: 2,
        reverse_streams: false,
        fold_clusters: 1,
        log_clusters: 2,
        log_units: 5,
        compact_log: false,
        log_members: 2,
        small_cluster_bytes: 8192,
        small_log_clusters: 15,
        small_log_units: 2,
        evict_single: false,
        free_clusters: 2,
        merges_at_once: 2,
        reads_per_step: 0,
        bypass_partial_clusters: false,
        rewrite_buffer: false,
        switch_map_pages: 0,
        merge_map_pages: 0,
        log_map_pages: 0,
    }
}

/// A write begins in the log, which does not copy the pages that the write will contain; then a stream
/// continues in the middle of it, and makes space by merging the very unit.
#[test]
fn merge_within_write_skips_later_pages() {
    let geometry = Geometry::from(Shape {
        channels: 1,
        planes: 2,
        blocks_per_plane: 28,
        pages_per_block: 8,
        metadata_pages: 0,
        page_bytes: PAGE as u32,
        logical_pages: 96,
    });
    let options = with_streams(geometry, small_streams(65536, 2));
    read_your_writes(&options, 1_102_563_130_385_891_042, 72);
}

/// The rest of the last page is where the unit was before the merge, and storing the map takes units.
#[test]
fn map_store_of_merge_keeps_unit_being_read() {
    let geometry = Geometry::from(Shape {
        channels: 3,
        planes: 6,
        blocks_per_plane: 8,
        pages_per_block: 17,
        metadata_pages: 0,
        page_bytes: PAGE as u32,
        logical_pages: 408,
    });
    let streams = StreamsPart {
        resumed_streams: 0,
        log_units: 3,
        compact_log: true,
        small_cluster_bytes: 0,
        small_log_clusters: 0,
        small_log_units: 0,
        bypass_partial_clusters: true,
        merge_map_pages: 2,
        ..small_streams(69632, 6)
    };
    let options = with_streams(geometry, streams);
    read_your_writes(&options, 14_908_130_873_068_906_049, 28);
}

fn read_your_writes(options: &MergingOptions<'_>, seed: u64, hot: u64) {
    let operations = 2 * u64::from(options.geometry.pages());
    work(options, seed, hot, operations, None);
    if seed.is_multiple_of(2) && !Merging::appends(options.name) {
        let mut in_order = worn::in_order(options.geometry);
        work(options, seed, hot, operations / 2, Some(&mut in_order));
    }
    worn::read_your_writes(options, seed, hot, operations);
}

/// Perform this number of host operations, each checked against a flat array; on flash that wears out, until it is used up.
fn work(
    options: &MergingOptions<'_>,
    seed: u64,
    hot: u64,
    operations: u64,
    mut worn: Option<&mut Flash>,
) {
    let MergingOptions { name, geometry, .. } = *options;
    Merging::check(options).expect("the options are valid");
    let mut ftl = Merging::by_name(options).expect("a known FTL");
    let whole = worn.as_ref().map_or(geometry, |worn| worn.geometry);
    let appends = worn.is_none() && Merging::appends(name);
    let order = if appends { PageOrder::Ascending } else { PageOrder::Any };
    let mut media = Shadow::new(whole, order);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut oracle: Vec<Option<u64>> = vec![None; pages as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cursor = 0;
    for number in 0..operations {
        let io = draw(&mut rng, pages, hot, &mut cursor);
        match uniform(&mut rng, 20) {
            0 => {
                let page = Lpn((io.offset.0 / PAGE) as u32);
                ftl.trim(page);
                oracle[page.0 as usize] = None;
            }
            1 => {
                let mut plan = FlashPlan::default();
                ftl.reclaim(&mut plan);
                execute(&mut plan, &mut media, worn.as_deref_mut());
            }
            2 if worn.is_some() => {
                let block = uniform(&mut rng, u64::from(whole.blocks())) as u32;
                worn::scrub(BlockIdx(block), &mut media, worn.as_deref_mut());
            }
            _ => write(&mut ftl, &mut media, &io, number, &mut oracle, worn.as_deref_mut()),
        }
        if worn.as_ref().is_some_and(|worn| worn.is_used_up()) {
            return;
        }
    }
    ftl.audit();
    for (page, expected) in oracle.iter().enumerate() {
        let at = ftl.lookup(Lpn(page as u32)).map(|at| physical_address(worn.as_deref(), at));
        assert_eq!(
            at.and_then(|at| media.content[at.page.0 as usize]),
            *expected,
            "{name}: page {page}"
        );
    }
    let counters = worn.map_or(media.flash.counters, |worn| worn.counters);
    assert_eq!(
        counters.pages_programmed - counters.program_failures,
        counters.host_pages_written
            + counters.pages_relocated
            + counters.metadata_pages_programmed
            + counters.mapping_pages_programmed,
        "every program has a reason"
    );
}

/// Random pages, hot ones, and sequential runs, which reach the logs for sequential writes.
fn draw(rng: &mut Xoshiro256PlusPlus, pages: u64, hot: u64, cursor: &mut u64) -> Io {
    let sectors = pages * 8;
    let size = 1 + uniform(rng, 8 * 8);
    let size = if uniform(rng, 2) == 0 { size.next_multiple_of(8) } else { size }.min(sectors);
    let offset = match uniform(rng, 4) {
        0 => uniform(rng, sectors - size + 1),
        1 => uniform(rng, ((sectors - size) * hot / 100).max(1)),
        2 => uniform(rng, (sectors - size) / 8 + 1) * 8,
        _ => *cursor % (sectors - size + 1),
    };
    *cursor = offset + size;
    Io { offset: Bytes(offset * 512), size: Bytes(size * 512), mode: Mode::Write, stream: 0 }
}

fn write(
    ftl: &mut Merging,
    media: &mut Shadow,
    io: &Io,
    number: u64,
    oracle: &mut [Option<u64>],
    mut worn: Option<&mut Flash>,
) {
    let extent = PageExtent::of_io(io, PAGE);
    let end = (io.offset.0 + io.size.0).div_ceil(PAGE) as u32;
    for page in ((io.offset.0 / PAGE) as u32..end).map(Lpn) {
        media.writing = number;
        media.merged = None;
        let mut plan = FlashPlan::default();
        ftl.write(page, &extent, &mut plan);
        execute(&mut plan, media, worn.as_deref_mut());
        if worn.as_ref().is_some_and(|worn| worn.is_used_up()) {
            return;
        }
        let old = oracle[page.0 as usize].replace(number);
        let merged = if extent.covers(page) || old.is_none() { None } else { Some(old) };
        assert_eq!(media.merged, merged, "a partial write merges the newest version of {page:?}");
        let at = physical_address(worn.as_deref(), ftl.lookup(page).expect("the page was written"));
        media.read(at);
        assert_eq!(
            media.content[at.page.0 as usize],
            Some(number),
            "a read returns the newest write"
        );
    }
}

/// Write all of `page`.
pub(super) fn write_whole(ftl: &mut Merging, page: Lpn, flash: &mut Flash) {
    let mut plan = FlashPlan::default();
    ftl.write(page, &PageExtent::single(page, true, 0), &mut plan);
    flash.execute(&mut plan);
}

/// `make soak`: every merging FTL under ten million host operations.
#[test]
#[ignore = "minutes; make soak"]
fn ten_million_operations_read_own_writes() {
    let (geometry, mut tables) = one_for_all();
    for name in MERGING_FTLS {
        work(&MergingOptions::with_tables(name, geometry, tables.clone()), 1, 20, 10_000_000, None);
        println!("{name}: 10,000,000 host operations");
    }
    tables.log = tables.log.map(|part| LogPart { log_per_die: true, ..part });
    work(&MergingOptions::with_tables("fast", geometry, tables), 1, 20, 10_000_000, None);
    println!("fast with a log for each die: 10,000,000 host operations");
}
