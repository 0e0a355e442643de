//! The flash of a profile, and its wear.

use uflip_core::Result;

use super::profile::OpenChannelProfile;
use crate::flash::geometry::{BlockIdx, Geometry, Shape};
use crate::flash::media::Flash;
use crate::flash::nand::PageOrder;
use crate::flash::reliability::Reliability;
use crate::flash::wear_out::{BlockHistory, Grain, WearOut, WearOutOptions, chance};

/// Pages per MLC cell; the second is worse.
const PAGES_OF_A_CELL: u32 = 2;

impl OpenChannelProfile {
    /// Return the wear laws of this device's sectors.
    pub(super) fn laws(&self) -> Result<Reliability> {
        Reliability::new(&self.reliability, self.geometry.sector_bytes)
    }

    /// Return the geometry as the flash tables use it. Planes of a LUN work together, so a block
    /// spans all planes; a page is a sector, the smallest readable unit.
    pub(super) fn flash_geometry(&self) -> Geometry {
        let part = self.geometry();
        let blocks = part.luns() * part.blocks_per_plane;
        let shape = Shape {
            channels: part.channels,
            planes: part.luns(),
            blocks_per_plane: part.blocks_per_plane,
            pages_per_block: part.pages_per_block * part.write_sectors(),
            metadata_pages: 0,
            page_bytes: part.sector_bytes,
            logical_pages: blocks * part.pages_per_block * part.write_sectors(),
        };
        Geometry::from(shape).with_units(part.write_sectors())
    }

    /// Create the flash with every block erased.
    ///
    /// # Errors
    /// Numbers that make no wear law.
    pub(super) fn flash(&self) -> Result<Flash> {
        let geometry = self.flash_geometry();
        let blocks = geometry.blocks();
        let failures = self.failures.as_ref();
        let seed = self.state.seed;
        let options = WearOutOptions {
            seed,
            cycles_before: self.state.erases,
            rated_cycles: self.reliability.rated_cycles,
            pages_of_a_cell: PAGES_OF_A_CELL,
            grain: Grain { quality: self.geometry.sectors_per_page, read: 1 },
            data_age_ns: 0,
            read_retries: self.media.retries_max as u32,
            retry_gain: failures.map_or(1.0, |part| part.retry_gain),
            program_failures: failures.map_or(0.0, |part| part.program_failures),
            erase_failures: failures.map_or(0.0, |part| part.erase_failures),
            // Only failed blocks are retired.
            retire_rber: 0.5,
        };
        let ages = self.reliability.retention_doubling_s > 0.0;
        let doubling = failures.and_then(|part| part.read_disturb_doubling);
        let mut wear_out = WearOut::new(self.laws()?, geometry, options);
        if ages || doubling.is_some() {
            wear_out = wear_out.with_history(BlockHistory::new(blocks, ages, doubling));
        }
        let share = chance(failures.map_or(0.0, |part| part.factory_bad_share));
        let is_bad = |block: &BlockIdx| WearOut::is_factory_bad(seed, share, *block);
        let bad: Vec<BlockIdx> = (0..blocks).map(BlockIdx).filter(is_bad).collect();
        Ok(Flash::new(geometry, PageOrder::Ascending).with_wear(wear_out, &bad, false))
    }
}
