//! A page-mapped FTL as a bare array loop: map, reverse map, validity bits, valid counts, a
//! minimum; one write frontier, no checks. With time, it adds the next free time of each die and
//! channel, and a histogram of response times; there is no queueing. An upper bound on speed, not a
//! device.

use std::time::Instant;

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_sim::huge::{filled, prefetch};

const WRITES: u64 = 4_000_000;
const UNMAPPED: u32 = u32::MAX;
const BATCH: usize = 64;

/// Eight channels of four dies; consecutive pages are striped over them.
pub(crate) const DIES: usize = 32;
const CHANNELS: usize = 8;

/// Durations [ns], from `demo.toml`.
const READ: u64 = 50_000;
const PROGRAM: u64 = 300_000;
const TRANSFER: u64 = 24_675;
const ERASE: u64 = 2_000_000;

/// Measure host writes per second [M] under greedy garbage collection of uniform random writes,
/// after `warm_up` of them: the best of three, without time and with it.
pub(crate) fn rates(
    blocks: u32,
    pages_per_block: u32,
    logical_pages: u64,
    warm_up: u64,
) -> (f64, f64) {
    let mut ftl = BareFtl::new(blocks, pages_per_block, logical_pages as usize);
    for page in 0..logical_pages as u32 {
        ftl.write(page, &mut Untimed);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    ftl.random(warm_up, &mut rng, &mut Untimed);
    let untimed = best_of_three(|| ftl.random(WRITES, &mut rng, &mut Untimed));
    let mut clocks = ResourceClocks::default();
    let timed = best_of_three(|| ftl.random(WRITES, &mut rng, &mut clocks));
    std::hint::black_box(clocks.histogram);
    (untimed, timed)
}

fn best_of_three(mut round: impl FnMut()) -> f64 {
    let mut rate = || {
        let begin = Instant::now();
        round();
        WRITES as f64 / begin.elapsed().as_secs_f64() / 1e6
    };
    (0..3).map(|_| rate()).fold(0.0, f64::max)
}

/// The cost of page operations; one host write at a time.
trait DeviceClock {
    fn write(&mut self, to: u32);
    fn relocate(&mut self, from: u32, to: u32);
    fn erase(&mut self, first: u32);
}

struct Untimed;

impl DeviceClock for Untimed {
    #[inline]
    fn write(&mut self, _: u32) {}
    #[inline]
    fn relocate(&mut self, _: u32, _: u32) {}
    #[inline]
    fn erase(&mut self, _: u32) {}
}

/// The next free time of each die and channel.
struct ResourceClocks {
    now: u64,
    dies: [u64; DIES],
    channels: [u64; CHANNELS],
    histogram: [u64; 64],
}

impl Default for ResourceClocks {
    fn default() -> ResourceClocks {
        ResourceClocks { now: 0, dies: [0; DIES], channels: [0; CHANNELS], histogram: [0; 64] }
    }
}

impl ResourceClocks {
    /// Transfer a page over the channel of `die`, from `at` on at the earliest; return the end.
    #[inline]
    fn transfer(&mut self, die: usize, at: u64) -> u64 {
        let channel = &mut self.channels[die % CHANNELS];
        *channel = at.max(*channel) + TRANSFER;
        *channel
    }

    #[inline]
    fn program(&mut self, to: u32, at: u64) -> u64 {
        let die = to as usize % DIES;
        let sent = self.transfer(die, at);
        self.dies[die] = sent.max(self.dies[die]) + PROGRAM;
        self.dies[die]
    }
}

impl DeviceClock for ResourceClocks {
    #[inline]
    fn write(&mut self, to: u32) {
        let end = self.program(to, self.now);
        self.histogram[64 - (end - self.now).leading_zeros() as usize] += 1;
        self.now = end;
    }

    #[inline]
    fn relocate(&mut self, from: u32, to: u32) {
        let die = from as usize % DIES;
        self.dies[die] = self.now.max(self.dies[die]) + READ;
        let read = self.transfer(die, self.dies[die]);
        self.program(to, read);
    }

    #[inline]
    fn erase(&mut self, first: u32) {
        self.dies[first as usize % DIES] += ERASE;
    }
}

struct BareFtl {
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

impl BareFtl {
    fn new(blocks: u32, pages_per_block: u32, logical_pages: usize) -> BareFtl {
        let pages = (blocks * pages_per_block) as usize;
        BareFtl {
            map: filled(logical_pages, UNMAPPED),
            reverse: filled(pages, UNMAPPED),
            valid: vec![0; pages.div_ceil(64)],
            // Free and open blocks have the largest count, so they are never victims.
            count: vec![u16::MAX; blocks.next_multiple_of(64) as usize],
            free: (0..blocks).rev().collect(),
            groups: vec![u16::MAX; blocks.div_ceil(64) as usize],
            pages_per_block,
            frontier: 0,
            end: 0,
        }
    }

    fn random(&mut self, writes: u64, rng: &mut Xoshiro256PlusPlus, time: &mut impl DeviceClock) {
        let mut batch = [0u32; BATCH];
        for _ in 0..writes / BATCH as u64 {
            for slot in &mut batch {
                *slot = uniform(rng, self.map.len() as u64) as u32;
                prefetch(&self.map, *slot as usize);
            }
            for page in batch {
                self.write(page, time);
            }
        }
    }

    #[inline]
    fn write(&mut self, page: u32, time: &mut impl DeviceClock) {
        if self.frontier == self.end {
            self.open(time);
        }
        let old = self.map[page as usize];
        if old != UNMAPPED {
            self.valid[(old / 64) as usize] &= !(1 << (old % 64));
            let block = old / self.pages_per_block;
            let count = &mut self.count[block as usize];
            *count = count.wrapping_sub(1);
            let group = &mut self.groups[(block / 64) as usize];
            *group = (*group).min(*count);
        }
        time.write(self.frontier);
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

    fn open(&mut self, time: &mut impl DeviceClock) {
        while self.free.len() < 2 {
            self.collect(time);
            if self.frontier != self.end {
                return;
            }
        }
        let block = self.free.pop().expect("two blocks are free");
        self.frontier = block * self.pages_per_block;
        self.end = self.frontier + self.pages_per_block;
    }

    fn collect(&mut self, time: &mut impl DeviceClock) {
        let group =
            (0..self.groups.len()).min_by_key(|g| self.groups[*g]).expect("at least one group");
        let members = group * 64..group * 64 + 64;
        let victim =
            members.clone().min_by_key(|b| self.count[*b]).expect("at least one block") as u32;
        self.count[victim as usize] = u16::MAX;
        self.groups[group] = self.count[members].iter().copied().min().expect("at least one group");
        let first = victim * self.pages_per_block;
        for word in first / 64..(first + self.pages_per_block) / 64 {
            let mut bits = std::mem::take(&mut self.valid[word as usize]);
            while bits != 0 {
                let from = word * 64 + bits.trailing_zeros();
                let page = self.reverse[from as usize];
                bits &= bits - 1;
                if self.frontier == self.end {
                    let block = self.free.pop().expect("a block is reserved for relocated pages");
                    self.frontier = block * self.pages_per_block;
                    self.end = self.frontier + self.pages_per_block;
                }
                time.relocate(from, self.frontier);
                self.append(page);
            }
        }
        time.erase(first);
        self.free.push(victim);
    }
}
