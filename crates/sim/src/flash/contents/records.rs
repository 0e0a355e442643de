//! Programs and erases that have not ended, and who waits for them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::{Cell, Defect, Label};
use crate::flash::geometry::{BlockIdx, Ppn};

/// What an operation changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// A flash page, from its first page on.
    Program(Ppn),
    /// The list of defects of a plane, with one of this block.
    List(Defect, BlockIdx),
    /// The next page of a block, to another; if it `ends` that: what the FTL knows as this block is there, but what was
    /// to be on this page.
    Copy(Copied),
    /// A block of the flash, which stood in for `known`, if for any.
    Erase { known: Option<BlockIdx>, block: BlockIdx, fails: bool },
}

/// A copy of a page of `old`, which holds so many `pages` and one, or none, that has `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) old: BlockIdx,
    pub(super) into: BlockIdx,
    pub(super) pages: u32,
    pub(super) failed: bool,
    pub(super) ends: Option<(BlockIdx, Option<Ppn>)>,
}

impl What {
    /// Whether an erase waits for it.
    fn programs(&self) -> bool {
        matches!(self, What::Program(_) | What::Copy(_))
    }

    /// The block of the flash that it erases.
    fn erases(&self) -> Option<BlockIdx> {
        match *self {
            What::Erase { block, .. } => Some(block),
            What::Program(_) | What::List(..) | What::Copy(_) => None,
        }
    }
}

/// An operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) what: What,
    /// What the pages hold then; of a list those are torn that are on it.
    pub(super) cells: Vec<Cell>,
    /// What its block says of itself then.
    pub(super) label: Label,
    /// So many came before it.
    number: u64,
    /// While its cells are at work; both [`UNKNOWN`] while it waits, and the end alone of what may be suspended.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// It has ended, and when is not told yet.
    ended: bool,
}

const UNKNOWN: u64 = u64::MAX;

/// Somebody waits until all programs before it have ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Barrier {
    token: u64,
    /// It waits for those that came before this one.
    number: u64,
    /// The ends of so many are not known; that of the last of the others.
    left: u32,
    latest: u64,
}

/// All of them, by their number: 0 is none.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Records {
    records: Vec<Option<Record>>,
    unused: Vec<u32>,
    came: u64,
    /// When those end of which that is known.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The erases that have not ended as far as is known, in the order in which they came.
    erases: Vec<(BlockIdx, u32)>,
    barriers: Vec<Barrier>,
    /// Kept, so that nothing is allocated.
    #[serde(skip)]
    spare: Vec<Vec<Cell>>,
}

impl Records {
    /// An operation is asked for; returns the number that it goes by until it has ended.
    pub(super) fn add(&mut self, what: What, cells: &[Cell], label: Label) -> u32 {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(cells);
        let (number, begin, end) = (self.came, UNKNOWN, UNKNOWN);
        self.came += 1;
        let record = Record { what, cells: kept, label, number, begin, end, ended: false };
        let index = self.unused.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() as u32 - 1
        });
        self.records[index as usize] = Some(record);
        self.erases.extend(what.erases().map(|block| (block, index)));
        index + 1
    }

    /// The cells of a record are at work from `begin` on, if they have not been before.
    pub(super) fn begun(&mut self, record: u32, begin: u64) {
        let record = self.records[record as usize - 1].as_mut().expect("it has not ended");
        record.begin = record.begin.min(begin);
    }

    /// The cells of a record are at work from `begin` to `end`. Whoever waited for that, when it is over.
    pub(super) fn known(&mut self, record: u32, begin: u64, end: u64) -> Vec<(u64, u64)> {
        let index = record - 1;
        let record = self.records[index as usize].as_mut().expect("it has not ended");
        if record.what.erases().is_some() {
            self.erases.retain(|(_, erase)| *erase != index);
        }
        if record.ended {
            self.records[index as usize] = None;
            self.unused.push(index);
            return Vec::new();
        }
        (record.begin, record.end) = (record.begin.min(begin), end);
        self.ends.push(Reverse((end, record.number, index)));
        if self.barriers.is_empty() || !record.what.programs() {
            return Vec::new();
        }
        for barrier in self.barriers.iter_mut().filter(|barrier| record.number < barrier.number) {
            barrier.left -= 1;
            barrier.latest = barrier.latest.max(end);
        }
        let mut over = Vec::new();
        self.barriers.retain(|barrier| {
            over.extend((barrier.left == 0).then_some((barrier.latest, barrier.token)));
            barrier.left > 0
        });
        over
    }

    /// See [`Contents::after_programs`](super::Contents::after_programs).
    pub(super) fn after_programs(&mut self, token: u64) -> Option<u64> {
        self.after_programs_until(self.came, token)
    }

    /// The same of programs that were asked for before `record` was.
    pub(super) fn after_programs_before(&mut self, record: u32, token: u64) -> Option<u64> {
        let record = self.records[record as usize - 1].as_ref().expect("it has not ended");
        self.after_programs_until(record.number, token)
    }

    fn after_programs_until(&mut self, number: u64, token: u64) -> Option<u64> {
        let programs = self.records.iter().flatten();
        let programs = programs.filter(|record| record.what.programs() && record.number < number);
        let (mut left, mut latest) = (0, 0);
        for record in programs {
            if record.end == UNKNOWN {
                left += 1;
            } else {
                latest = latest.max(record.end);
            }
        }
        if left == 0 {
            return Some(latest);
        }
        self.barriers.push(Barrier { token, number, left, latest });
        None
    }

    /// The operation that ended first, where one has by `until`; what is done with is given back to
    /// [`Records::reuse`]. Where a program has ended, the erase before it has, though nobody has told of that yet: at
    /// one moment one and the other may end.
    pub(super) fn ended(&mut self, until: u64) -> Option<(What, Vec<Cell>, Label)> {
        let Reverse((end, _, index)) = *self.ends.peek()?;
        if end > until {
            return None;
        }
        if let Some(erase) = self.erase_before(index) {
            let record = self.records[erase as usize].as_mut().expect("it is told of");
            record.ended = true;
            return Some((record.what, std::mem::take(&mut record.cells), record.label));
        }
        self.ends.pop();
        self.unused.push(index);
        let record = self.records[index as usize].take().expect("it has not ended");
        Some((record.what, record.cells, record.label))
    }

    /// The erase that came before what `index` programs there, where its end is not known.
    fn erase_before(&self, index: u32) -> Option<u32> {
        let record = self.records[index as usize].as_ref().expect("it has not ended");
        let there = match record.what {
            What::Program(_) => record.label.by,
            What::Copy(copied) => copied.into,
            What::Erase { .. } | What::List(..) => return None,
        };
        let mut erases = self.erases.iter().filter(|(block, _)| *block == there);
        let (_, erase) = erases.find(|(_, erase)| {
            let erase = self.records[*erase as usize].as_ref().expect("it is told of");
            !erase.ended && erase.number < record.number
        })?;
        Some(*erase)
    }

    pub(super) fn reuse(&mut self, cells: Vec<Cell>) {
        self.spare.push(cells);
    }

    /// All that have not ended, in the order in which they came: nothing is under way any more.
    pub(super) fn drain(&mut self) -> Vec<Record> {
        let records = self.records.drain(..).flatten();
        let mut all: Vec<Record> = records.filter(|record| !record.ended).collect();
        all.sort_unstable_by_key(|record| record.number);
        *self = Records { came: self.came, ..Records::default() };
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_has_ended_says_that_the_erase_before_it_has() {
        let by = BlockIdx(3);
        let erase = |block| What::Erase { known: None, block, fails: false };
        let mut records = Records::default();
        let other = records.add(erase(BlockIdx(0)), &[], Label::default());
        let before = records.add(erase(by), &[], Label::default());
        let label = Label { by, ..Label::default() };
        let program = records.add(What::Program(Ppn(0)), &[Cell::Nothing], label);
        let later = records.add(erase(by), &[], Label::default());
        records.known(program, 10, 10);
        let ended = |records: &mut Records| records.ended(10).map(|(what, ..)| what);
        assert_eq!(ended(&mut records), Some(erase(by)));
        assert_eq!(ended(&mut records), Some(What::Program(Ppn(0))));
        assert_eq!(ended(&mut records), None);
        // It is told of now, and ends but once.
        records.known(before, 1, 10);
        assert_eq!(ended(&mut records), None);
        [other, later].into_iter().for_each(|erase| drop(records.known(erase, 11, 20)));
        let left: Vec<u64> = records.drain().iter().map(|record| record.number).collect();
        assert_eq!(left, [0, 3]);
    }
}
