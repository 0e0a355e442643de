//! How long cells take, by which of the pages that share them is read or programmed.
//!
//! A cell of so many bits is shared by as many pages of its block:
//!
//! ```text
//! page of a block      0     1      2      3     4      5     …
//! 2 bits (MLC)        low   high   low    high  low    high         LSB, MSB
//! 3 bits (TLC)        low   middle high   low   middle high         LSB, CSB, MSB
//! ```
//!
//! **Source**: Grupp et al., Characterizing Flash Memory (MICRO 2009): the fast and the slow pages of MLC;
//! SimpleSSD and MQSim (LSB, CSB and MSB latencies of TLC).
//! **Faithful**: each page of a cell has its own time to be read and to be programmed.
//! **Simplified**: pages that share cells are neighbours; chips shift them by some word lines, and begin and
//! end a block with pages of one kind. Of four pages the two in the middle take the same time.
//! **Ambiguous**: nothing.

/// The most bits that a cell holds.
pub(crate) const BITS_MAX: u32 = 4;

/// Which of the pages that share their cells one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Kind(u8);

/// The times of the pages that share cells: the first, those between, the last [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByKind {
    pub(crate) low: u64,
    pub(crate) middle: u64,
    pub(crate) high: u64,
}

impl ByKind {
    fn table(self, bits: u32) -> [u64; BITS_MAX as usize] {
        let mut table = [self.middle; BITS_MAX as usize];
        table[bits as usize - 1] = self.high;
        // Of one page only, that is the first.
        table[0] = self.low;
        table
    }
}

/// How long the cells of every page take [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Cells {
    bits: u32,
    read_ns: [u64; BITS_MAX as usize],
    program_ns: [u64; BITS_MAX as usize],
    /// All pages are read in the same time, which saves asking which one it is.
    read_alike: bool,
}

impl Cells {
    /// Cells that so many pages share, from 1 to [`BITS_MAX`].
    pub(crate) fn new(bits: u32, read: ByKind, program: ByKind) -> Cells {
        let read_ns = read.table(bits);
        let read_alike = read_ns[..bits as usize].iter().all(|ns| *ns == read.low);
        Cells { bits, read_ns, program_ns: program.table(bits), read_alike }
    }

    /// Which of those that share their cells a page of a block is.
    #[inline]
    pub(crate) fn kind(&self, page: u32) -> Kind {
        // A division by what is only known now takes as long as all the rest.
        Kind(if self.bits == 2 { page % 2 } else { page % self.bits } as u8)
    }

    /// How long a page of this kind is read.
    #[inline]
    pub(crate) fn read(&self, kind: Kind) -> u64 {
        self.read_ns[usize::from(kind.0)]
    }

    /// How long a page of a block is read; asked for its number only where that matters.
    #[inline]
    pub(crate) fn read_page(&self, page: impl FnOnce() -> u32) -> u64 {
        if self.read_alike { self.read_ns[0] } else { self.read(self.kind(page())) }
    }

    /// How long a page of a block is programmed.
    #[inline]
    pub(crate) fn program_page(&self, page: u32) -> u64 {
        self.program_ns[usize::from(self.kind(page).0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: ByKind = ByKind { low: 1, middle: 2, high: 3 };
    const PROGRAM: ByKind = ByKind { low: 10, middle: 20, high: 30 };

    #[test]
    fn pages_that_share_cells_take_turns() {
        for (bits, kinds) in [
            (1, [1, 1, 1, 1, 1, 1]),
            (2, [1, 3, 1, 3, 1, 3]),
            (3, [1, 2, 3, 1, 2, 3]),
            (4, [1, 2, 2, 3, 1, 2]),
        ] {
            let cells = Cells::new(bits, READ, PROGRAM);
            for (page, expected) in (0..).zip(kinds) {
                assert_eq!(cells.read_page(|| page), expected, "{bits} bits, page {page}");
                assert_eq!(cells.program_page(page), 10 * expected, "{bits} bits, page {page}");
            }
        }
    }
}
