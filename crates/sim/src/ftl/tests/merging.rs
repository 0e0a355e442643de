//! Every merging FTL against a flat array: host writes of any extent, trims and idle steps, on devices
//! of every shape.

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Io, Mode};

use super::Shadow;
use crate::backend::Extent;
use crate::ftl::{MERGING_FTLS, Merging, MergingOptions};
use crate::geometry::{Geometry, Lpn, Shape};
use crate::media::Media;
use crate::nand::PageOrder;

const PAGE: u64 = 4096;

/// What a random device is made of.
#[derive(Clone, Debug)]
struct Variant {
    geometry: Geometry,
}

prop_compose! {
    /// Small devices of every shape.
    fn variants()(
        channels in 1u32..4, dies_per_channel in 1u32..3, pages_per_block in 1u32..80,
        data_blocks in 1u32..30, other_blocks in 1u32..12, last in 0u32..80,
    ) -> Variant {
        let dies = channels * dies_per_channel;
        let blocks_per_die = (data_blocks + other_blocks).div_ceil(dies);
        let logical_pages = (data_blocks * pages_per_block - last % pages_per_block).max(1);
        let geometry = Geometry::from(Shape {
            channels, dies, blocks_per_die, pages_per_block, metadata_pages: 0,
            page_bytes: PAGE as u32, logical_pages,
        });
        Variant { geometry }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_merging_ftl_reads_what_was_written(
        variant in variants(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        for name in MERGING_FTLS {
            read_your_writes(name, &variant, seed, hot);
        }
    }
}

fn read_your_writes(name: &str, variant: &Variant, seed: u64, hot: u64) {
    let geometry = variant.geometry;
    let options = MergingOptions { name, geometry, log: None, streams: None, linear: None };
    if Merging::check(&options).is_err() {
        return;
    }
    let mut ftl = Merging::by_name(&options).expect("a known name");
    let mut media = Shadow::new(geometry, PageOrder::Any);
    let pages = u64::from(geometry.shape().logical_pages);
    let mut oracle: Vec<Option<u64>> = vec![None; pages as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut cursor = 0;
    for number in 0..2 * u64::from(geometry.pages()) {
        let io = draw(&mut rng, pages, hot, &mut cursor);
        match uniform(&mut rng, 20) {
            0 => {
                let page = Lpn((io.offset.0 / PAGE) as u32);
                ftl.trim(page);
                oracle[page.0 as usize] = None;
            }
            1 => {
                ftl.reclaim(&mut media);
            }
            _ => write(&mut ftl, &mut media, &io, number, &mut oracle),
        }
    }
    ftl.audit();
    for (page, expected) in oracle.iter().enumerate() {
        let at = ftl.lookup(Lpn(page as u32));
        assert_eq!(
            at.and_then(|at| media.content[at.page.0 as usize]),
            *expected,
            "{name}: page {page}"
        );
    }
    let counters = media.flash.counters;
    assert_eq!(
        counters.pages_programmed,
        counters.host_pages_written + counters.pages_relocated + counters.metadata_pages_programmed,
        "every program has a reason"
    );
}

/// Random places, hot ones, and runs in order, which meet the logs for sequential writes.
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
    Io { offset: Bytes(offset * 512), size: Bytes(size * 512), mode: Mode::Write }
}

fn write(ftl: &mut Merging, media: &mut Shadow, io: &Io, number: u64, oracle: &mut [Option<u64>]) {
    let extent = Extent::of(io, PAGE);
    let end = (io.offset.0 + io.size.0).div_ceil(PAGE) as u32;
    for page in ((io.offset.0 / PAGE) as u32..end).map(Lpn) {
        media.writing = number;
        media.merged = None;
        ftl.write(page, &extent, media);
        let old = oracle[page.0 as usize].replace(number);
        let merged = if extent.covers(page) || old.is_none() { None } else { Some(old) };
        assert_eq!(media.merged, merged, "a partial write merges the newest version of {page:?}");
        let at = ftl.lookup(page).expect("it was just written");
        media.read(at);
        assert_eq!(media.content[at.page.0 as usize], Some(number), "read your write");
    }
}
