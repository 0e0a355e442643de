//! Cell times, which depend on the page type.
//!
//! A cell of n bits is shared by n pages of its block:
//!
//! ```text
//! page of a block      0     1      2      3     4      5     …
//! 2 bits (MLC)        low   high   low    high  low    high         LSB, MSB
//! 3 bits (TLC)        low   middle high   low   middle high         LSB, CSB, MSB
//! ```
//!
//! **Source**: Grupp et al., Characterizing Flash Memory (MICRO 2009): the fast and the slow pages of MLC;
//! SimpleSSD and MQSim (LSB, CSB and MSB latencies of TLC).
//! **Faithful**: each page type has its own read and program time.
//! **Simplified**: pages that share cells are neighbours; chips offset them by some word lines, and
//! begin and end a block with pages of one type. Of four pages the middle two take the same time.
//! **Ambiguous**: nothing.

use crate::collections::bits;

/// Maximum number of bits per cell.
pub(crate) const BITS_MAX: u32 = 4;

/// Number of pages after which the types repeat, for any number of bits.
const PERIOD: usize = 12;

/// Page types of the first pages, for cells of one bit, two, and so on.
const KINDS: [[u8; PERIOD]; BITS_MAX as usize] = {
    let mut kinds = [[0; PERIOD]; BITS_MAX as usize];
    let mut page = 0;
    while page < BITS_MAX as usize * PERIOD {
        let bits = page / PERIOD;
        kinds[bits][page % PERIOD] = (page % PERIOD % (bits + 1)) as u8;
        page += 1;
    }
    kinds
};

/// Every second page of 64, from the first on.
const EVEN: u64 = u64::MAX / 3;

/// A page type: the index of a page among those that share its cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Kind")]
pub(crate) struct PageType(u8);

/// Times by page type: the first, those between, the last [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByPageType {
    pub(crate) low: u64,
    pub(crate) middle: u64,
    pub(crate) high: u64,
}

impl ByPageType {
    fn table(self, bits: u32) -> [u64; BITS_MAX as usize] {
        let mut table = [self.middle; BITS_MAX as usize];
        table[bits as usize - 1] = self.high;
        // The page of a single-bit cell is the first.
        table[0] = self.low;
        table
    }
}

/// Cell times of all pages [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Cells")]
pub(crate) struct CellTimes {
    bits: u32,
    read_ns: [u64; BITS_MAX as usize],
    program_ns: [u64; BITS_MAX as usize],
    /// All pages have the same read time; saves computing the page type.
    #[serde(rename = "read_alike")]
    has_uniform_read_time: bool,
}

impl CellTimes {
    /// Return the mean time of a read and a program of a page [ns].
    pub(crate) fn mean_move_ns(&self) -> u64 {
        let bits = self.bits.max(1) as usize;
        let times = self.read_ns[..bits].iter().zip(&self.program_ns);
        times.map(|(read_ns, program_ns)| read_ns + program_ns).sum::<u64>() / bits as u64
    }

    /// Create the times of cells with `bits` bits (pages), from 1 to [`BITS_MAX`].
    pub(crate) fn new(bits: u32, read: ByPageType, program: ByPageType) -> CellTimes {
        let read_ns = read.table(bits);
        let has_uniform_read_time = read_ns[..bits as usize].iter().all(|ns| *ns == read.low);
        CellTimes { bits, read_ns, program_ns: program.table(bits), has_uniform_read_time }
    }

    /// Return the page type of a page of a block.
    #[inline]
    pub(crate) fn kind(&self, page: u32) -> PageType {
        // A division by a run-time constant takes as long as all the rest.
        PageType(KINDS[self.bits as usize - 1][page as usize % PERIOD])
    }

    /// Return the read time of this page type.
    #[inline]
    pub(crate) fn read(&self, kind: PageType) -> u64 {
        self.read_ns[usize::from(kind.0)]
    }

    /// Return the read time of a page of a block; `page` is called only if needed.
    #[inline]
    pub(crate) fn read_page(&self, page: impl FnOnce() -> u32) -> u64 {
        if self.has_uniform_read_time { self.read_ns[0] } else { self.read(self.kind(page())) }
    }

    /// Return the program time of a page of a block.
    #[inline]
    pub(crate) fn program_page(&self, page: u32) -> u64 {
        self.program_ns[usize::from(self.kind(page).0)]
    }

    /// Return the time to read a page of a block and to program it at the same offset of another
    /// block.
    #[inline]
    pub(crate) fn moved(&self, page: u32) -> u64 {
        self.moved_of(self.kind(page))
    }

    #[inline]
    fn moved_of(&self, kind: PageType) -> u64 {
        self.read(kind) + self.program_ns[usize::from(kind.0)]
    }

    /// Return the sum of [`CellTimes::moved`] over the pages of a bit set. Pages of alternating types
    /// are counted by type.
    pub(crate) fn all_moved(&self, set: &[u64]) -> u64 {
        let of_kind = |kind, mask: u64| {
            let pages: u32 = set.iter().map(|word| (word & mask).count_ones()).sum();
            u64::from(pages) * self.moved_of(PageType(kind))
        };
        match self.bits {
            1 => of_kind(0, u64::MAX),
            2 => of_kind(0, EVEN) + of_kind(1, !EVEN),
            _ => bits::members(set, 0, 64 * set.len()).map(|page| self.moved(page as u32)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: ByPageType = ByPageType { low: 1, middle: 2, high: 3 };
    const PROGRAM: ByPageType = ByPageType { low: 10, middle: 20, high: 30 };

    #[test]
    fn page_types_alternate_within_block() {
        for (bits, kinds) in [
            (1, [1, 1, 1, 1, 1, 1]),
            (2, [1, 3, 1, 3, 1, 3]),
            (3, [1, 2, 3, 1, 2, 3]),
            (4, [1, 2, 2, 3, 1, 2]),
        ] {
            let cells = CellTimes::new(bits, READ, PROGRAM);
            for (page, expected) in (0..).zip(kinds) {
                assert_eq!(cells.read_page(|| page), expected, "{bits} bits, page {page}");
                assert_eq!(cells.program_page(page), 10 * expected, "{bits} bits, page {page}");
            }
        }
    }

    #[test]
    fn page_set_time_is_sum_of_pages() {
        for bits in 1..=BITS_MAX {
            let cells = CellTimes::new(bits, READ, PROGRAM);
            for set in [
                vec![],
                vec![0],
                vec![0b1011],
                vec![u64::MAX, 0, 0x8000_0000_0000_0001 | 0x1234_5678 << 20],
            ] {
                let pages = (0..64 * set.len()).filter(|page| bits::has(&set, *page));
                let each: u64 = pages
                    .map(|page| cells.read_page(|| page as u32) + cells.program_page(page as u32))
                    .sum();
                assert_eq!(cells.all_moved(&set), each, "{bits} bits, {set:x?}");
            }
        }
    }
}
