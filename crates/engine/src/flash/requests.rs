//! The commands of one thread of a job, one after the other.

use uflip_core::{FlashGeometry, FlashIo, FlashOp, Nanos, Ppa};

use super::places::Places;
use super::spec::FlashTotals;
use crate::drive::Requests;
use crate::pattern::{Next, When};

/// What a thread does with its places.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Script {
    /// Reads and writes in the order of `mix`; every block is erased before it is written again.
    Pages { mix: Vec<FlashOp>, repeat: u64 },
    /// Erases every block, once.
    Erase,
    /// Erase, write all, read all, over and over.
    Wear { cycles: u64 },
}

/// The commands of one thread.
#[derive(Clone, Debug)]
pub struct FlashRequests {
    geometry: FlashGeometry,
    places: Places,
    script: Script,
    /// Pages a command.
    vector: u64,
    sleep: Nanos,
    /// Commands that go over all places once; the vector divides them evenly.
    round: u64,
    issued: u64,
    /// Within the present repetition: commands of any kind, erases, writes, reads.
    step: u64,
    erased: u64,
    written: u64,
    read: u64,
}

impl FlashRequests {
    pub(crate) fn new(
        geometry: FlashGeometry,
        places: Places,
        script: Script,
        vector: u32,
        sleep_ns: u64,
    ) -> FlashRequests {
        let vector = u64::from(vector);
        let round = places.len() / vector;
        FlashRequests {
            geometry,
            places,
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
        self.places.units.len() as u64 * u64::from(self.places.blocks)
    }

    /// How many commands there are.
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

    /// Count what the thread does.
    pub(crate) fn add_to(&self, totals: &mut FlashTotals) {
        totals.total_ios += self.total();
        match &self.script {
            Script::Erase => totals.blocks_erased += self.blocks(),
            Script::Wear { cycles } => {
                totals.blocks_erased += cycles * self.blocks();
                totals.pages_written += cycles * self.places.len();
                totals.pages_read += cycles * self.places.len();
            }
            Script::Pages { mix, repeat } => {
                let rounds = self.round / mix.len() as u64;
                let rest = (self.round % mix.len() as u64) as usize;
                let of = |op| {
                    let in_mix =
                        |part: &[FlashOp]| part.iter().filter(|o| **o == op).count() as u64;
                    rounds * in_mix(mix) + in_mix(&mix[..rest])
                };
                let writes = of(FlashOp::Write);
                totals.pages_written += writes * self.vector * repeat;
                totals.pages_read += of(FlashOp::Read) * self.vector * repeat;
                if writes > 0 {
                    totals.blocks_erased += self.blocks() * (repeat - 1);
                }
            }
        }
    }

    /// The command that goes to pages number `from` and after.
    fn pages(&self, op: FlashOp, from: u64) -> FlashIo {
        let mut io = FlashIo::empty(op);
        for number in from..from + self.vector {
            io.push_page(&self.geometry, self.places.page(number));
        }
        io
    }

    fn erase(&mut self) -> FlashIo {
        let (units, number) = (self.places.units.len() as u64, self.erased);
        self.erased += 1;
        let (channel, lun) = self.places.units[(number % units) as usize];
        let block = self.places.first_block + (number / units) as u32;
        let mut io = FlashIo::empty(FlashOp::Erase);
        io.push(Ppa { channel, lun, block, ..Ppa::default() });
        io
    }

    fn write(&mut self) -> FlashIo {
        let from = self.written;
        self.written += self.vector;
        self.pages(FlashOp::Write, from)
    }

    /// Reads follow the writes (or go over everything, where nothing is written), and begin again
    /// where they have caught up.
    fn reading(&mut self, everything: bool) -> FlashIo {
        let end = if everything { self.places.len() } else { self.written };
        if self.read >= end {
            self.read = 0;
        }
        let from = self.read;
        self.read += self.vector;
        self.pages(FlashOp::Read, from)
    }

    fn restart(&mut self) {
        (self.step, self.erased, self.written, self.read) = (0, 0, 0, 0);
    }
}

impl Requests for FlashRequests {
    type Request = FlashIo;

    #[inline]
    fn next_request(&mut self) -> Next<FlashIo> {
        let first = self.issued == 0;
        self.issued += 1;
        let io = match &self.script {
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
                    let io = self.reading(true);
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
                        _ => self.reading(!writes),
                    }
                } else if writes && self.erased < self.blocks() {
                    // Between two repetitions: what was written is erased.
                    let io = self.erase();
                    if self.erased == self.blocks() {
                        self.restart();
                    }
                    io
                } else {
                    self.restart();
                    self.step = 1;
                    self.reading(true)
                }
            }
        };
        Next { io, when: When::After(if first { Nanos(0) } else { self.sleep }) }
    }
}
