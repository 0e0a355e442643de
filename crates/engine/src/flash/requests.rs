//! The commands of one thread of a job, in order.
//!
//! ```text
//!  sequential    unit after unit: all pages of a block, then the next block
//!  round robin   a page of every unit, then the next page of every unit; blocks last (Table 1)
//! ```
//!
//! A unit is a LUN of a channel. A page is stored as its index in this order; division yields its
//! address.

use uflip_core::{FlashGeometry, FlashIo, FlashOp, Nanos, Ppa};

use crate::drive::{NextRequest, Requests, When};

/// The total work of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[allow(missing_docs)]
pub struct FlashTotals {
    pub total_ios: u64,
    pub pages_read: u64,
    pub pages_written: u64,
    pub blocks_erased: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// The kind of commands that a thread issues.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Script {
    /// Reads and writes in the order of `mix`; blocks are erased between repetitions.
    Pages { mix: Vec<FlashOp>, repeat: u64 },
    /// Erase every block once.
    Erase,
    /// Repeat: erase, write all pages, read all pages.
    Wear { cycles: u64 },
}

/// The commands of one thread.
#[derive(Clone, Debug)]
pub struct FlashRequests {
    geometry: FlashGeometry,
    pages: PageSequence,
    script: Script,
    /// Pages per command.
    vector: u64,
    sleep: Nanos,
    /// Commands that visit all pages once; the vector divides the pages evenly.
    round: u64,
    issued: u64,
    /// Positions in the present repetition: commands of any kind, erases, writes, reads.
    step: u64,
    erased: u64,
    written: u64,
    read: u64,
}

impl FlashRequests {
    pub(crate) fn new(
        geometry: FlashGeometry,
        pages: PageSequence,
        script: Script,
        vector: u32,
        sleep_ns: u64,
    ) -> FlashRequests {
        let vector = u64::from(vector);
        let round = pages.len() / vector;
        FlashRequests {
            geometry,
            pages,
            script,
            vector,
            sleep: Nanos(sleep_ns),
            round,
            issued: 0,
            step: 0,
            erased: 0,
            written: 0,
            read: 0,
        }
    }

    fn blocks(&self) -> u64 {
        self.pages.units.len() as u64 * u64::from(self.pages.blocks)
    }

    /// Return the number of commands.
    #[must_use]
    pub fn total(&self) -> u64 {
        match &self.script {
            Script::Erase => self.blocks(),
            Script::Pages { mix, repeat } => {
                let erases = if mix.contains(&FlashOp::Write) { self.blocks() } else { 0 };
                self.round * repeat + erases * (repeat - 1)
            }
            Script::Wear { cycles } => cycles * (self.blocks() + 2 * self.round),
        }
    }

    /// Add the commands of this thread to `totals`.
    pub(crate) fn add_to(&self, totals: &mut FlashTotals) {
        totals.total_ios += self.total();
        match &self.script {
            Script::Erase => totals.blocks_erased += self.blocks(),
            Script::Wear { cycles } => {
                totals.blocks_erased += cycles * self.blocks();
                totals.pages_written += cycles * self.pages.len();
                totals.pages_read += cycles * self.pages.len();
            }
            Script::Pages { mix, repeat } => {
                let rounds = self.round / mix.len() as u64;
                let index = (self.round % mix.len() as u64) as usize;
                let count = |op| {
                    let in_mix =
                        |part: &[FlashOp]| part.iter().filter(|o| **o == op).count() as u64;
                    rounds * in_mix(mix) + in_mix(&mix[..index])
                };
                let writes = count(FlashOp::Write);
                totals.pages_written += writes * self.vector * repeat;
                totals.pages_read += count(FlashOp::Read) * self.vector * repeat;
                if writes > 0 {
                    totals.blocks_erased += self.blocks() * (repeat - 1);
                }
            }
        }
    }

    /// Return the operation, and the index of the block or first page, of the next erase, write or
    /// read.
    fn erase(&mut self) -> (FlashOp, u64) {
        self.erased += 1;
        (FlashOp::Erase, self.erased - 1)
    }

    fn write(&mut self) -> (FlashOp, u64) {
        self.written += self.vector;
        (FlashOp::Write, self.written - self.vector)
    }

    /// Return the next read. Reads follow the writes, or visit every page if nothing is written;
    /// they restart when they catch up.
    fn read(&mut self, everything: bool) -> (FlashOp, u64) {
        let end = if everything { self.pages.len() } else { self.written };
        if self.read >= end {
            self.read = 0;
        }
        self.read += self.vector;
        (FlashOp::Read, self.read - self.vector)
    }

    fn restart(&mut self) {
        (self.step, self.erased, self.written, self.read) = (0, 0, 0, 0);
    }

    /// Return the next operation, with the index of its block or first page.
    #[inline]
    fn next_command(&mut self) -> (FlashOp, u64) {
        match &self.script {
            Script::Erase => self.erase(),
            Script::Wear { .. } => {
                let (blocks, round) = (self.blocks(), self.round);
                let step = self.step;
                self.step += 1;
                if step < blocks {
                    self.erase()
                } else if step < blocks + round {
                    self.write()
                } else {
                    let io = self.read(true);
                    if self.step == blocks + 2 * round {
                        self.restart();
                    }
                    io
                }
            }
            Script::Pages { mix, .. } => {
                let writes = mix.contains(&FlashOp::Write);
                let op = mix[(self.step % mix.len() as u64) as usize];
                if self.step < self.round {
                    self.step += 1;
                    match op {
                        FlashOp::Write => self.write(),
                        _ => self.read(!writes),
                    }
                } else if writes && self.erased < self.blocks() {
                    // Between two repetitions: erase the written blocks.
                    let io = self.erase();
                    if self.erased == self.blocks() {
                        self.restart();
                    }
                    io
                } else {
                    self.restart();
                    self.step = 1;
                    self.read(true)
                }
            }
        }
    }

    /// Build in `io` the command for the block, or the first page, with this index.
    #[inline]
    fn build(&self, op: FlashOp, number: u64, io: &mut FlashIo) {
        io.begin(op);
        if op == FlashOp::Erase {
            return io.push(self.pages.block(number));
        }
        for number in number..number + self.vector {
            io.push_page(&self.geometry, self.pages.page(number));
        }
    }
}

impl Requests for FlashRequests {
    type Request = FlashIo;

    fn next_request(&mut self) -> NextRequest<FlashIo> {
        let mut next =
            NextRequest { io: FlashIo::empty(FlashOp::Erase), when: When::After(Nanos(0)) };
        self.replace(&mut next);
        next
    }

    #[inline]
    fn replace(&mut self, submitted: &mut NextRequest<FlashIo>) {
        let first = self.issued == 0;
        self.issued += 1;
        let (op, number) = self.next_command();
        self.build(op, number, &mut submitted.io);
        submitted.when = When::After(if first { Nanos(0) } else { self.sleep });
    }
}

/// The pages of one thread, numbered in the order of visits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageSequence {
    /// Channel and LUN of each unit.
    pub(crate) units: Vec<(u8, u8)>,
    pub(crate) first_block: u32,
    pub(crate) blocks: u32,
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
    pub(crate) round_robin: bool,
}

impl PageSequence {
    /// Return the number of pages.
    pub(crate) fn len(&self) -> u64 {
        self.units.len() as u64 * u64::from(self.blocks) * u64::from(self.pages)
    }

    /// Return the page with this index.
    #[inline]
    pub(crate) fn page(&self, number: u64) -> Ppa {
        let (units, pages) = (self.units.len() as u64, u64::from(self.pages));
        let (unit, block, page) = if self.round_robin {
            (number % units, number / units / pages, number / units % pages)
        } else {
            let pages_per_unit = u64::from(self.blocks) * pages;
            (number / pages_per_unit, number % pages_per_unit / pages, number % pages)
        };
        let (channel, lun) = self.units[unit as usize];
        let block = self.first_block + block as u32;
        Ppa { channel, lun, block, page: self.first_page + page as u32, ..Ppa::default() }
    }

    /// Return the block with this index: one of every unit, then the next of every unit.
    #[inline]
    pub(crate) fn block(&self, number: u64) -> Ppa {
        let units = self.units.len() as u64;
        let (channel, lun) = self.units[(number % units) as usize];
        let block = self.first_block + (number / units) as u32;
        Ppa { channel, lun, block, ..Ppa::default() }
    }

    /// Return every block.
    pub(crate) fn all_blocks(&self) -> impl Iterator<Item = Ppa> + '_ {
        let blocks = self.first_block..self.first_block + self.blocks;
        blocks.flat_map(|block| {
            self.units.iter().map(move |&(channel, lun)| Ppa {
                channel,
                lun,
                block,
                ..Ppa::default()
            })
        })
    }

    /// Return the pages below the covered ones in every covered block: a block must be written in
    /// order.
    pub(crate) fn pages_below(&self) -> PageSequence {
        PageSequence { first_page: 0, pages: self.first_page, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit_order(round_robin: bool) -> Vec<(u8, u32, u32)> {
        let pages = PageSequence {
            units: vec![(0, 0), (1, 0)],
            first_block: 4,
            blocks: 2,
            first_page: 0,
            pages: 2,
            round_robin,
        };
        let visits = (0..pages.len()).map(|number| pages.page(number));
        visits.map(|ppa| (ppa.channel, ppa.block, ppa.page)).collect()
    }

    #[test]
    fn page_sequences_equal_nested_loops() {
        let mut expected = Vec::new();
        for block in 4..6 {
            for page in 0..2 {
                for channel in 0..2 {
                    expected.push((channel, block, page));
                }
            }
        }
        assert_eq!(visit_order(true), expected);
        expected.clear();
        for channel in 0..2 {
            for block in 4..6 {
                for page in 0..2 {
                    expected.push((channel, block, page));
                }
            }
        }
        assert_eq!(visit_order(false), expected);
    }
}
