//! A page map as a bare array loop: map, reverse map, validity bits, valid counts, a minimum, and
//! nothing else; one write frontier, no die, no channel, no check. An upper bound, not a device.

use std::time::Instant;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_sim::huge::{filled, prefetch};

const WRITES: u64 = 4_000_000;
const NOWHERE: u32 = u32::MAX;
const BATCH: usize = 64;

/// Host writes a second [M] under greedy collection of uniform random writes, after `warm_up` of them;
/// the best of three.
pub(crate) fn rate(blocks: u32, pages_per_block: u32, logical_pages: u64, warm_up: u64) -> f64 {
    let mut ftl = Bare::new(blocks, pages_per_block, logical_pages as usize);
    for page in 0..logical_pages as u32 {
        ftl.write(page);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    ftl.random(warm_up, &mut rng);
    let round = |_| {
        let begin = Instant::now();
        ftl.random(WRITES, &mut rng);
        WRITES as f64 / begin.elapsed().as_secs_f64() / 1e6
    };
    (0..3).map(round).fold(0.0, f64::max)
}

struct Bare {
    map: Vec<u32>,
    reverse: Vec<u32>,
    valid: Vec<u64>,
    count: Vec<u16>,
    free: Vec<u32>,
    groups: Vec<u16>,
    pages_per_block: u32,
    frontier: u32,
    end: u32,
}

impl Bare {
    fn new(blocks: u32, pages_per_block: u32, logical_pages: usize) -> Bare {
        let pages = (blocks * pages_per_block) as usize;
        Bare {
            map: filled(logical_pages, NOWHERE),
            reverse: filled(pages, NOWHERE),
            valid: vec![0; pages.div_ceil(64)],
            // Blocks that are free or being filled count as never to be chosen.
            count: vec![u16::MAX; blocks.next_multiple_of(64) as usize],
            free: (0..blocks).rev().collect(),
            groups: vec![u16::MAX; blocks.div_ceil(64) as usize],
            pages_per_block,
            frontier: 0,
            end: 0,
        }
    }

    fn random(&mut self, writes: u64, rng: &mut Xoshiro256PlusPlus) {
        let mut batch = [0u32; BATCH];
        for _ in 0..writes / BATCH as u64 {
            for slot in &mut batch {
                *slot = uniform(rng, self.map.len() as u64) as u32;
                prefetch(&self.map, *slot as usize);
            }
            for page in batch {
                self.write(page);
            }
        }
    }

    #[inline]
    fn write(&mut self, page: u32) {
        if self.frontier == self.end {
            self.open();
        }
        let old = self.map[page as usize];
        if old != NOWHERE {
            self.valid[(old / 64) as usize] &= !(1 << (old % 64));
            let block = old / self.pages_per_block;
            let count = &mut self.count[block as usize];
            *count = count.wrapping_sub(1);
            let group = &mut self.groups[(block / 64) as usize];
            *group = (*group).min(*count);
        }
        self.append(page);
    }

    #[inline]
    fn append(&mut self, page: u32) {
        let to = self.frontier;
        self.frontier += 1;
        self.map[page as usize] = to;
        self.reverse[to as usize] = page;
        self.valid[(to / 64) as usize] |= 1 << (to % 64);
        if self.frontier == self.end {
            self.close();
        }
    }

    fn close(&mut self) {
        let block = (self.end - 1) / self.pages_per_block;
        let first = block * self.pages_per_block;
        let words = (first / 64) as usize..(self.end.div_ceil(64)) as usize;
        let count: u32 = self.valid[words].iter().map(|word| word.count_ones()).sum();
        self.count[block as usize] = count as u16;
        let group = &mut self.groups[(block / 64) as usize];
        *group = (*group).min(count as u16);
    }

    fn open(&mut self) {
        while self.free.len() < 2 {
            self.collect();
            if self.frontier != self.end {
                return;
            }
        }
        let block = self.free.pop().expect("two are free");
        self.frontier = block * self.pages_per_block;
        self.end = self.frontier + self.pages_per_block;
    }

    fn collect(&mut self) {
        let group = (0..self.groups.len()).min_by_key(|g| self.groups[*g]).expect("some");
        let members = group * 64..group * 64 + 64;
        let victim = members.clone().min_by_key(|b| self.count[*b]).expect("some") as u32;
        self.count[victim as usize] = u16::MAX;
        self.groups[group] = self.count[members].iter().copied().min().expect("some");
        let first = victim * self.pages_per_block;
        for word in first / 64..(first + self.pages_per_block) / 64 {
            let mut bits = std::mem::take(&mut self.valid[word as usize]);
            while bits != 0 {
                let page = self.reverse[(word * 64 + bits.trailing_zeros()) as usize];
                bits &= bits - 1;
                if self.frontier == self.end {
                    let block = self.free.pop().expect("one is left for what is moved");
                    self.frontier = block * self.pages_per_block;
                    self.end = self.frontier + self.pages_per_block;
                }
                self.append(page);
            }
        }
        self.free.push(victim);
    }
}
