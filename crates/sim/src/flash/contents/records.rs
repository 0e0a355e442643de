//! Programs and erases that have not ended, and the waiters for them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::{Defect, Label, PhysicalPage};
use crate::flash::geometry::{BlockIdx, Ppn};

/// The change that an operation makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum RecordKind {
    /// Programs a flash page, from this first page on.
    Program(Ppn),
    /// Programs the list of defects of a plane, with an entry for this block.
    List(Defect, BlockIdx),
    /// Copies the next page of a block to another. If it `ends` the move, the new block holds the content of
    /// this block of the FTL, except that of the failed page.
    Copy(PageCopy),
    /// Erases a physical block, which was the block `logical` of the FTL, if any.
    Erase { logical: Option<BlockIdx>, block: BlockIdx, fails: bool },
}

/// A copy of a page of `old`, which holds `pages` pages, and one more if a program of it has `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct PageCopy {
    pub(super) old: BlockIdx,
    pub(super) into: BlockIdx,
    pub(super) pages: u32,
    pub(super) failed: bool,
    pub(super) ends: Option<(BlockIdx, Option<Ppn>)>,
}

impl RecordKind {
    /// Return whether an erase waits for it.
    fn programs(&self) -> bool {
        matches!(self, RecordKind::Program(_) | RecordKind::Copy(_))
    }

    /// Return the physical block that it erases.
    fn erases(&self) -> Option<BlockIdx> {
        match *self {
            RecordKind::Erase { block, .. } => Some(block),
            RecordKind::Program(_) | RecordKind::List(..) | RecordKind::Copy(_) => None,
        }
    }
}

/// An operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Record")]
pub(super) struct OpRecord {
    #[serde(rename = "what")]
    pub(super) kind: RecordKind,
    /// The content of the pages after it; for a list, the listed pages are torn.
    pub(super) cells: Vec<PhysicalPage>,
    /// The label of its block after it.
    pub(super) label: Label,
    /// The number of records before it.
    number: u64,
    /// The time its cells are busy. Both are [`UNKNOWN`] while it waits; the end alone is if it can be
    /// suspended.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// It has ended, but its times are not recorded yet.
    ended: bool,
}

const UNKNOWN: u64 = u64::MAX;

/// A waiter for the end of all programs before it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Barrier {
    token: u64,
    /// It waits for the records before this number.
    number: u64,
    /// The number of those whose end is unknown, and the latest known end.
    #[serde(rename = "left")]
    remaining: u32,
    latest: u64,
}

/// All records, by their number; 0 is not used.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Records")]
pub(super) struct OpRecords {
    records: Vec<Option<OpRecord>>,
    unused: Vec<u32>,
    #[serde(rename = "came")]
    next_number: u64,
    /// The known ends.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Erases without a known end, in the order in which they were queued.
    erases: Vec<(BlockIdx, u32)>,
    barriers: Vec<Barrier>,
    /// Reused to avoid allocation.
    #[serde(skip)]
    spare: Vec<Vec<PhysicalPage>>,
}

impl OpRecords {
    /// Add an operation; returns its number, which is valid until it has ended.
    pub(super) fn add(&mut self, kind: RecordKind, cells: &[PhysicalPage], label: Label) -> u32 {
        let mut copied = self.spare.pop().unwrap_or_default();
        copied.clear();
        copied.extend_from_slice(cells);
        let (number, begin, end) = (self.next_number, UNKNOWN, UNKNOWN);
        self.next_number += 1;
        let record = OpRecord { kind, cells: copied, label, number, begin, end, ended: false };
        let index = self.unused.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() as u32 - 1
        });
        self.records[index as usize] = Some(record);
        self.erases.extend(kind.erases().map(|block| (block, index)));
        index + 1
    }

    /// Record that the cells of a record are busy from `begin` on, unless they already were.
    pub(super) fn set_begin(&mut self, record: u32, begin: u64) {
        let record =
            self.records[record as usize - 1].as_mut().expect("the operation has not completed");
        record.begin = record.begin.min(begin);
    }

    /// Record that the cells of a record are busy from `begin` to `end`. Returns the waiters that this
    /// completes, with their times.
    pub(super) fn set_times(&mut self, record: u32, begin: u64, end: u64) -> Vec<(u64, u64)> {
        let index = record - 1;
        let record =
            self.records[index as usize].as_mut().expect("the operation has not completed");
        if record.kind.erases().is_some() {
            self.erases.retain(|(_, erase)| *erase != index);
        }
        if record.ended {
            self.records[index as usize] = None;
            self.unused.push(index);
            return Vec::new();
        }
        (record.begin, record.end) = (record.begin.min(begin), end);
        self.ends.push(Reverse((end, record.number, index)));
        if self.barriers.is_empty() || !record.kind.programs() {
            return Vec::new();
        }
        for barrier in self.barriers.iter_mut().filter(|barrier| record.number < barrier.number) {
            barrier.remaining -= 1;
            barrier.latest = barrier.latest.max(end);
        }
        let mut over = Vec::new();
        self.barriers.retain(|barrier| {
            over.extend((barrier.remaining == 0).then_some((barrier.latest, barrier.token)));
            barrier.remaining > 0
        });
        over
    }

    /// See [`Contents::after_programs`](super::Contents::after_programs).
    pub(super) fn after_programs(&mut self, token: u64) -> Option<u64> {
        self.after_programs_until(self.next_number, token)
    }

    /// Like [`OpRecords::after_programs`], for the programs queued before `record`.
    pub(super) fn after_programs_before(&mut self, record: u32, token: u64) -> Option<u64> {
        let record =
            self.records[record as usize - 1].as_ref().expect("the operation has not completed");
        self.after_programs_until(record.number, token)
    }

    fn after_programs_until(&mut self, number: u64, token: u64) -> Option<u64> {
        let programs = self.records.iter().flatten();
        let programs = programs.filter(|record| record.kind.programs() && record.number < number);
        let (mut remaining, mut latest) = (0, 0);
        for record in programs {
            if record.end == UNKNOWN {
                remaining += 1;
            } else {
                latest = latest.max(record.end);
            }
        }
        if remaining == 0 {
            return Some(latest);
        }
        self.barriers.push(Barrier { token, number, remaining, latest });
        None
    }

    /// Return the operation that ended first, if one has by `until`; its cells go back to [`OpRecords::reuse`].
    /// If a program has ended, so has the erase before it, even if its end is not recorded yet: both may end
    /// at the same moment.
    pub(super) fn take_ended(
        &mut self,
        until: u64,
    ) -> Option<(RecordKind, Vec<PhysicalPage>, Label)> {
        let Reverse((end, _, index)) = *self.ends.peek()?;
        if end > until {
            return None;
        }
        if let Some(erase) = self.erase_before(index) {
            let record =
                self.records[erase as usize].as_mut().expect("a pending erase is recorded");
            record.ended = true;
            return Some((record.kind, std::mem::take(&mut record.cells), record.label));
        }
        self.ends.pop();
        self.unused.push(index);
        let record = self.records[index as usize].take().expect("the operation has not completed");
        Some((record.kind, record.cells, record.label))
    }

    /// Return the erase before the program `index` in the same block, if its end is unknown.
    fn erase_before(&self, index: u32) -> Option<u32> {
        let record =
            self.records[index as usize].as_ref().expect("the operation has not completed");
        let target_block = match record.kind {
            RecordKind::Program(_) => record.label.by,
            RecordKind::Copy(copied) => copied.into,
            RecordKind::Erase { .. } | RecordKind::List(..) => return None,
        };
        let mut erases = self.erases.iter().filter(|(block, _)| *block == target_block);
        let (_, erase) = erases.find(|(_, erase)| {
            let erase =
                self.records[*erase as usize].as_ref().expect("a pending erase is recorded");
            !erase.ended && erase.number < record.number
        })?;
        Some(*erase)
    }

    pub(super) fn reuse(&mut self, cells: Vec<PhysicalPage>) {
        self.spare.push(cells);
    }

    /// Remove and return all records that have not ended, in the order in which they were queued.
    pub(super) fn drain(&mut self) -> Vec<OpRecord> {
        let records = self.records.drain(..).flatten();
        let mut all: Vec<OpRecord> = records.filter(|record| !record.ended).collect();
        all.sort_unstable_by_key(|record| record.number);
        *self = OpRecords { next_number: self.next_number, ..OpRecords::default() };
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_program_ends_earlier_erase() {
        let by = BlockIdx(3);
        let erase = |block| RecordKind::Erase { logical: None, block, fails: false };
        let mut records = OpRecords::default();
        let other = records.add(erase(BlockIdx(0)), &[], Label::default());
        let before = records.add(erase(by), &[], Label::default());
        let label = Label { by, ..Label::default() };
        let program = records.add(RecordKind::Program(Ppn(0)), &[PhysicalPage::Nothing], label);
        let later = records.add(erase(by), &[], Label::default());
        records.set_times(program, 10, 10);
        let ended = |records: &mut OpRecords| records.take_ended(10).map(|(kind, ..)| kind);
        assert_eq!(ended(&mut records), Some(erase(by)));
        assert_eq!(ended(&mut records), Some(RecordKind::Program(Ppn(0))));
        assert_eq!(ended(&mut records), None);
        // Its end is recorded now, and it ends only once.
        records.set_times(before, 1, 10);
        assert_eq!(ended(&mut records), None);
        [other, later].into_iter().for_each(|erase| drop(records.set_times(erase, 11, 20)));
        let left: Vec<u64> = records.drain().iter().map(|record| record.number).collect();
        assert_eq!(left, [0, 3]);
    }
}
