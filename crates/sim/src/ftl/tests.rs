//! The FTL against a flat array: whatever is written must be what is read, whatever was moved
//! around in between; and the books must balance.

use proptest::prelude::*;
use uflip_core::Counters;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use super::{PageMap, PageMapOptions};
use crate::geometry::{BlockIdx, Geometry, Lpn, Ppn};
use crate::media::{Flash, Media};
use crate::nand::Nand;

/// Flash with contents: every page holds the number of the write that programmed it.
struct Shadow {
    flash: Flash,
    content: Vec<Option<u64>>,
    writing: u64,
    merged: Option<Option<u64>>,
}

impl Shadow {
    fn new(geometry: Geometry) -> Shadow {
        Shadow {
            flash: Flash {
                geometry,
                nand: Nand::new(geometry),
                counters: Counters::default(),
            },
            content: vec![None; geometry.pages() as usize],
            writing: 0,
            merged: None,
        }
    }
}

impl Media for Shadow {
    fn read(&mut self, from: Ppn) {
        self.flash.read(from);
    }
    fn program(&mut self, to: Ppn, merge_from: Option<Ppn>) {
        self.flash.program(to, merge_from);
        self.merged = merge_from.map(|from| self.content[from.0 as usize]);
        self.content[to.0 as usize] = Some(self.writing);
    }
    fn relocate(&mut self, from: Ppn, to: Ppn) {
        self.flash.relocate(from, to);
        self.content[to.0 as usize] = self.content[from.0 as usize];
    }
    fn erase(&mut self, block: BlockIdx) {
        self.flash.erase(block);
        let first = self.flash.geometry.first_page(block).0 as usize;
        let pages = self.flash.geometry.pages_per_block as usize;
        self.content[first..first + pages].fill(None);
    }
}

fn page_map(geometry: Geometry, victims: &str, allocator: &str, reserved: usize) -> PageMap {
    PageMap::new(PageMapOptions {
        geometry,
        allocator: crate::alloc::by_name(allocator, geometry).expect("a known allocator"),
        victims: crate::gc::by_name(victims).expect("a known policy"),
        reserved_blocks: reserved,
    })
}

prop_compose! {
    /// Small devices of every shape that leave the host at least one page.
    fn geometries()(
        channels in 1u32..5, dies_per_channel in 1u32..4, pages_per_block in 1u32..20,
        more_blocks in 1u32..12, reserved in 1usize..3, fullness in 1u32..=100,
    ) -> (Geometry, usize) {
        let dies = channels * dies_per_channel;
        let held = reserved as u32 + 2;
        let blocks_per_die = held + more_blocks;
        let most = dies * more_blocks * pages_per_block;
        let logical_pages = (most * fullness / 100).max(1);
        let geometry = Geometry {
            channels, dies, blocks_per_die, pages_per_block, page_bytes: 4096, logical_pages,
        };
        (geometry, reserved)
    }
}

proptest! {
    #[test]
    fn every_ftl_reads_what_was_written(
        (geometry, reserved) in geometries(), seed in any::<u64>(), hot in 1u64..100,
    ) {
        for victims in crate::VICTIM_POLICIES {
            for allocator in crate::ALLOCATORS {
                read_your_writes(geometry, reserved, seed, hot, victims, allocator);
            }
        }
    }
}

fn read_your_writes(
    geometry: Geometry,
    reserved: usize,
    seed: u64,
    hot: u64,
    victims: &str,
    allocator: &str,
) {
    let mut ftl = page_map(geometry, victims, allocator, reserved);
    let mut media = Shadow::new(geometry);
    let mut oracle: Vec<Option<u64>> = vec![None; geometry.logical_pages as usize];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let pages = u64::from(geometry.logical_pages);
    for write in 0..4 * u64::from(geometry.pages()) {
        // Partly skewed, so that blocks with many and with few valid pages come about.
        let range = if uniform(&mut rng, 2) == 0 {
            pages
        } else {
            (pages * hot / 100).max(1)
        };
        let page = uniform(&mut rng, range);
        let whole = uniform(&mut rng, 4) > 0;
        media.writing = write;
        ftl.write(Lpn(page as u32), whole, &mut media);
        let old = oracle[page as usize].replace(write);
        let merged = if whole || old.is_none() {
            None
        } else {
            Some(old)
        };
        assert_eq!(
            media.merged, merged,
            "a partial write merges the newest version"
        );
    }
    for (page, expected) in oracle.iter().enumerate() {
        let at = ftl.lookup(Lpn(page as u32));
        assert_eq!(
            at.and_then(|at| media.content[at.0 as usize]),
            *expected,
            "page {page}"
        );
    }
    ftl.check();
    let counters = media.flash.counters;
    assert_eq!(
        counters.pages_programmed,
        counters.host_pages_written + counters.pages_relocated,
        "every program has a reason"
    );
    // What is programmed and not erased is what the blocks hold.
    let held = media.content.iter().filter(|page| page.is_some()).count() as u64;
    let pages_per_block = u64::from(geometry.pages_per_block);
    assert_eq!(
        held,
        counters.pages_programmed - counters.blocks_erased * pages_per_block
    );
}

/// Uniform random writes under the cyclic buffer: A = 1 / (1 − x), x = exp(−α (1 − x)), α = T / U
/// (OFC equation (2); Menon & Stockmeyer 1998), T being the blocks that take part.
#[test]
fn write_amplification_of_the_cyclic_buffer_meets_its_closed_form() {
    for (spare, pages_per_block) in [(0.125, 64), (0.28, 64), (0.28, 128)] {
        let blocks_per_die = 131_072 / pages_per_block / 4;
        let geometry = Geometry {
            channels: 4,
            dies: 4,
            blocks_per_die,
            pages_per_block,
            page_bytes: 4096,
            logical_pages: (131_072.0 * (1.0 - spare)) as u32,
        };
        let mut ftl = page_map(geometry, "cyclic", "round_robin", 1);
        let mut flash = Flash {
            geometry,
            nand: Nand::new(geometry),
            counters: Counters::default(),
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(42);
        let pages = u64::from(geometry.logical_pages);
        for page in 0..geometry.logical_pages {
            ftl.write(Lpn(page), true, &mut flash);
        }
        for _ in 0..4 * pages {
            ftl.write(Lpn(uniform(&mut rng, pages) as u32), true, &mut flash);
        }
        flash.counters = Counters::default();
        for _ in 0..8 * pages {
            ftl.write(Lpn(uniform(&mut rng, pages) as u32), true, &mut flash);
        }
        let counted =
            flash.counters.pages_programmed as f64 / flash.counters.host_pages_written as f64;
        // Of every die, on average one reserved block and half an open one hold no old data.
        let idle = 4.0 * 1.5 * f64::from(pages_per_block);
        let alpha = (f64::from(geometry.pages()) - idle) / pages as f64;
        let mut x = 0.5f64;
        for _ in 0..10_000 {
            x = (-alpha * (1.0 - x)).exp();
        }
        let expected = 1.0 / (1.0 - x);
        let deviation = counted / expected - 1.0;
        println!(
            "spare {spare}, {pages_per_block} pages: {counted:.3}, closed form {expected:.3}, {:+.2} %",
            deviation * 100.0
        );
        assert!(deviation.abs() < 0.02, "{counted} against {expected}");
    }
}
