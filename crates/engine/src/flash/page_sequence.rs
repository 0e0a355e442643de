//! The order in which a thread visits its pages.
//!
//! ```text
//!  sequential    unit after unit: all pages of a block, then the next block
//!  round robin   a page of every unit, then the next page of every unit; blocks last (Table 1)
//! ```
//!
//! A unit is a LUN of a channel. A page is stored as its index in this order; division yields its
//! address.

use uflip_core::Ppa;

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
