//! The state of the NAND and its rules, answered per address: erase before program, pages of a block in
//! order, whole pages, no read of what was not written; and what wears out.
//!
//! A broken rule is the host's mistake here, not the simulator's: it is a status in the completion.

use uflip_core::random::mix;
use uflip_core::{AddressStatus, FlashGeometry, Ppa};

use crate::flash::reliability::{Rber, Reliability};

/// One block of all planes.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    next_page: u32,
    erases: u32,
    /// When its first page was programmed [ns].
    written_at: u64,
    /// What its erases have done to it.
    wear: Rber,
    retired: bool,
}

/// All blocks of a device.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    geometry: FlashGeometry,
    laws: Reliability,
    seed: u64,
    blocks: Vec<Block>,
}

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[allow(missing_docs)]
pub struct BlockState {
    pub erases: u32,
    pub pages_written: u32,
    pub retired: bool,
}

impl Media {
    /// Every block erased, after `erases` erases.
    pub(crate) fn new(geometry: FlashGeometry, laws: Reliability, erases: u32, seed: u64) -> Media {
        let blocks = geometry.luns() as usize * geometry.blocks_per_plane as usize;
        let block = Block { erases, wear: laws.wear(erases), ..Block::default() };
        Media { geometry, laws, seed, blocks: vec![block; blocks] }
    }

    pub(crate) fn geometry(&self) -> &FlashGeometry {
        &self.geometry
    }

    #[inline]
    fn index(&self, at: Ppa) -> usize {
        let lun = usize::from(at.channel) * self.geometry.luns_per_channel as usize;
        (lun + usize::from(at.lun)) * self.geometry.blocks_per_plane as usize + at.block as usize
    }

    pub(crate) fn state(&self, at: Ppa) -> BlockState {
        let block = &self.blocks[self.index(at)];
        BlockState { erases: block.erases, pages_written: block.next_page, retired: block.retired }
    }

    /// Erase the block of `at`; how much longer than the first time it takes [ns].
    #[inline]
    pub(crate) fn erase(&mut self, at: Ppa) -> (AddressStatus, u64) {
        let index = self.index(at);
        let block = &mut self.blocks[index];
        if block.retired {
            return (AddressStatus::Retired, 0);
        }
        match self.laws.erase_extra_ns(block.erases) {
            Some(extra) => {
                block.erases = block.erases.saturating_add(1);
                block.next_page = 0;
                block.wear = self.laws.wear(block.erases);
                (AddressStatus::Done, extra)
            }
            None => {
                block.retired = true;
                (
                    AddressStatus::EraseFailed,
                    self.laws.erase_extra_ns(block.erases - 1).unwrap_or(0),
                )
            }
        }
    }

    /// Program the page of `at` in all planes at `now`.
    #[inline]
    pub(crate) fn program(&mut self, at: Ppa, now: u64) -> AddressStatus {
        let index = self.index(at);
        let block = &mut self.blocks[index];
        if block.retired {
            return AddressStatus::Retired;
        }
        if block.next_page != at.page {
            return AddressStatus::OutOfOrder;
        }
        if at.page == 0 {
            block.written_at = now;
        }
        block.next_page += 1;
        AddressStatus::Done
    }

    /// Whether the page of `at` can be read at all.
    #[inline]
    pub(crate) fn readable(&self, at: Ppa) -> AddressStatus {
        let block = &self.blocks[self.index(at)];
        if block.retired {
            AddressStatus::Retired
        } else if at.page >= block.next_page {
            AddressStatus::Unwritten
        } else {
            AddressStatus::Done
        }
    }

    /// Below which random number a sector of the page and plane of `at` is lost, `now`; 0: none is.
    #[inline]
    pub(crate) fn failing_below(&self, at: Ppa, now: u64) -> u64 {
        let index = self.index(at);
        let block = &self.blocks[index];
        let place = (index as u64) << 32 | u64::from(at.page) << 8 | u64::from(at.plane);
        let quality = self.laws.page(mix(self.seed ^ mix(place)), at.page % 2 == 1);
        let age = self.laws.age(now.saturating_sub(block.written_at));
        self.laws.failing_below(block.wear + quality + age)
    }

    /// The random number of a sector for as long as it is not erased: a read that fails fails again.
    #[inline]
    pub(crate) fn draw(&self, at: Ppa) -> u64 {
        let index = self.index(at);
        let sector = u64::from(at.page) << 16 | u64::from(at.plane) << 8 | u64::from(at.sector);
        let place = (index as u64) << 40 ^ sector;
        mix(mix(self.seed.wrapping_add(place)) ^ u64::from(self.blocks[index].erases))
    }
}
