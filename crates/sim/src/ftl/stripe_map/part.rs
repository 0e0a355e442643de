//! The table [stripes] of the profile, and the checks of a device that has it.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use crate::flash::geometry::Geometry;
use crate::ftl::FtlOptions;
use crate::pool::stripes::Stripes;

/// Parameters of the page map over stripes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StripesPart {
    /// Planes that a stripe spans, with one block of each.
    pub stripe_dies: u32,
    /// Memory for pages of the map.
    pub map_memory_bytes: u64,
    /// The part of it that may be newer than the copy on flash.
    pub map_changed_bytes: u64,
}

/// Bytes of an entry: a physical page number.
pub(super) const ENTRY_BYTES: u32 = 4;

/// Size of the stripes for the map, as a multiple of the size of the map.
pub(super) const MAP_STRIPE_FACTOR: u32 = 4;

/// Erased stripes in addition to those that the map may still take: one for data, one for the map.
pub(super) const RESERVE: u32 = 2;

/// Return the pages of the map, and the stripes that they may take: the multiple of its size, and one that is
/// filled.
pub(super) fn map_size(geometry: &Geometry, stripe_pages: u32) -> (u32, u32) {
    let shape = geometry.shape();
    let pages = shape.logical_pages.div_ceil(shape.page_bytes / ENTRY_BYTES);
    (pages, MAP_STRIPE_FACTOR * pages.div_ceil(stripe_pages) + 1)
}

/// Check that `options` describe a possible device.
///
/// # Errors
/// Parameters that leave too little space.
pub(super) fn check(options: &FtlOptions<'_, StripesPart>) -> Result<()> {
    let (part, geometry) = (options.table, options.geometry);
    let shape = geometry.shape();
    if part.stripe_dies == 0 || !shape.planes.is_multiple_of(part.stripe_dies) {
        return Err(Error::usage("The dies cannot be divided into stripes")
            .got(format!("stripe_dies = {} of {} dies", part.stripe_dies, shape.planes))
            .allowed("a number that divides the dies")
            .action("change stripe_dies"));
    }
    let page = u64::from(shape.page_bytes);
    let (cached, changed) = (part.map_memory_bytes / page, part.map_changed_bytes / page);
    if changed == 0 || changed > cached {
        return Err(Error::usage("The part of the map in memory has an invalid size")
            .got(format!(
                "map_memory_bytes = {}, map_changed_bytes = {}",
                part.map_memory_bytes, part.map_changed_bytes
            ))
            .allowed(format!("map_changed_bytes from {page} (a page) to map_memory_bytes"))
            .action("change one of the two"));
    }
    let pages = Stripes::pages_of(&geometry, part.stripe_dies);
    let stripes = Stripes::count(&geometry, part.stripe_dies);
    let data = shape.logical_pages.div_ceil(pages);
    let (_, map) = map_size(&geometry, pages);
    let needed = u64::from(data) + u64::from(map) + u64::from(RESERVE) + 1;
    if needed > u64::from(stripes) {
        return Err(Error::usage("The device has too few stripes for its FTL")
            .got(format!("{stripes} stripes, of which the host's data takes {data}"))
            .allowed(format!("{needed} or more: {map} for the map, 3 to collect with"))
            .action("raise spare_factor or blocks_per_die, or lower stripe_dies"));
    }
    Ok(())
}
