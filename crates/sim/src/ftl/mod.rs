//! Flash translation layers: they decide where every page lives and own the map.
//!
//! The page map collects beside the host (`device/collector.rs`); the others merge in the path of the write
//! that needs room. One file each; names, checks and conformance tests follow from the list below. Zones have
//! no FTL: the host decides where its data goes (`zoned`).

mod data_blocks;
mod data_restore;
pub(crate) mod extent;
pub(crate) mod log_part;
mod mapping_cache;
mod options;
mod page_map;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod zoned;

use uflip_core::{Error, Result};

use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn, Place};
use crate::flash::plan::Plan;
use crate::ftl::extent::Extent;

pub(crate) use crate::pool::blocks::Use;
#[cfg(test)]
pub(crate) use mapping_cache::CachePolicy;
pub(crate) use mapping_cache::segment_bytes;
pub(crate) use options::{FtlOptions, MergingOptions, Tables, with_tables};
pub(crate) use page_map::{Collection, Item, PageMap, PageMapOptions, RelocationLoad};
pub use page_map::{HotColdPart, MappingPart, Retire};
pub(crate) use page_map::{MappingOptions, RESERVED_FOR_MAPPING, RetirementOptions};
pub(crate) use page_map::{SlcOptions, mapping_pages, read_only};
pub(crate) use zoned::ZONED;
pub use zoned::{ZoneDies, ZonesPart};

/// An FTL that merges in the path of the write that needs room. It sees no clock and touches no
/// cell: what is to be done it writes down in a [`Plan`].
pub(crate) trait MergingFtl: Sized {
    /// Whether it programs the pages of a block one after the other: it has no places for them.
    const APPENDS: bool = false;
    /// Its table in a profile; `()` where it has no numbers of its own.
    type Table;

    /// Whether `options` make a device.
    ///
    /// # Errors
    /// Numbers that leave no room.
    fn check(options: &FtlOptions<'_, Self::Table>) -> Result<()>;

    /// Make it for `options` that were checked.
    fn new(options: &FtlOptions<'_, Self::Table>) -> Self;

    /// Where `page` is; `None` where it was never written.
    fn lookup(&self, page: Lpn) -> Option<Place>;

    /// Where `page` is, for a timed read of it; whatever must be read to find out is asked of `plan`.
    #[inline]
    fn find(&mut self, page: Lpn, _plan: &mut Plan) -> Option<Place> {
        self.lookup(page)
    }

    /// Write `page`, which belongs to the host write `extent`, after whatever must be merged first.
    fn write(&mut self, page: Lpn, extent: &Extent, plan: &mut Plan);

    /// `page` holds nothing any more (TRIM).
    fn trim(&mut self, page: Lpn);

    /// One step of what can be done without the host; false where there is nothing to do.
    fn reclaim(&mut self, _plan: &mut Plan) -> bool {
        false
    }

    /// `page` will be looked up soon.
    #[inline]
    fn prefetch(&self, _page: Lpn) {}

    /// How many pages its map has, beside those of the host.
    fn map_pages(&self) -> u32 {
        0
    }

    /// Which page of the map `to` was chosen for, numbered behind those of the host.
    fn page_of_map(&self, _to: Place) -> Option<Lpn> {
        None
    }

    /// Which blocks it fills and erases as a whole: the number of that of which `block` is one.
    fn group_of(&self, block: BlockIdx) -> u32 {
        block.0
    }

    /// A map that nothing was written to becomes the one of which `found` tells, after power was lost: all
    /// blocks are erased but those of the groups that are kept. What has to be copied and erased before the
    /// device is ready, `plan` says.
    fn rebuild(&mut self, found: &Survey<'_>, plan: &mut Plan);

    /// Check that its books agree; for tests.
    ///
    /// # Panics
    /// Where they do not.
    #[cfg(test)]
    fn audit(&self);
}

/// The table of an FTL, out of those of the profile; or its name, where it has one.
macro_rules! table {
    () => {
        None
    };
    ($table:ident) => {
        Some(stringify!($table))
    };
    (of $options:ident) => {
        &()
    };
    (of $options:ident, $table:ident) => {
        $options.tables.$table.as_ref().ok_or_else(|| $options.lacks(stringify!($table)))?
    };
}

/// Makes one enum of all merging FTLs, so that a call costs a jump and no more.
macro_rules! ftls {
    (hosted: $hosted:ident; paged: $($paged:literal),+; merging: $($(#[$only:meta])? $name:literal => $module:ident :: $ftl:ident $([$table:ident])?),+ $(,)?) => {
        $($(#[$only])? pub(crate) mod $module;)+

        /// The names of all FTLs.
        pub const FTLS: &[&str] = &[$($paged,)+ $($(#[$only])? $name,)+ $hosted];

        /// Those that merge in the host's path.
        pub(crate) const MERGING_FTLS: &[&str] = &[$($(#[$only])? $name),+];

        /// Any of the merging FTLs. In place: a device has one, and goes through it with every page.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Merging {
            $($(#[$only])? #[allow(missing_docs)] $ftl($module::$ftl)),+
        }

        impl Merging {
            /// Whether the options make a device.
            pub(crate) fn check(options: &MergingOptions<'_>) -> Result<()> {
                match options.name {
                    $($(#[$only])? $name => $module::$ftl::check(&options.with(table!(of options $(, $table)?))),)+
                    name => Err(Error::unknown("FTL", name, FTLS)),
                }
            }

            /// The table that belongs to the FTL that is named, where it has one.
            pub(crate) fn table(name: &str) -> Option<&'static str> {
                match name {
                    $($(#[$only])? $name => table!($($table)?),)+
                    _ => None,
                }
            }

            /// Whether the FTL that is named has no places for the pages of a block.
            pub(crate) fn appends(name: &str) -> bool {
                match name {
                    $($(#[$only])? $name => $module::$ftl::APPENDS,)+
                    _ => false,
                }
            }

            /// Make the FTL that is named.
            pub(crate) fn by_name(options: &MergingOptions<'_>) -> Result<Merging> {
                match options.name {
                    $($(#[$only])? $name => {
                        Ok(Merging::$ftl($module::$ftl::new(&options.with(table!(of options $(, $table)?)))))
                    })+
                    name => Err(Error::unknown("FTL", name, FTLS)),
                }
            }

            pub(crate) fn lookup(&self, page: Lpn) -> Option<Place> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.lookup(page)),+ }
            }

            #[inline]
            pub(crate) fn find(&mut self, page: Lpn, plan: &mut Plan) -> Option<Place> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.find(page, plan)),+ }
            }

            #[inline]
            pub(crate) fn write(&mut self, page: Lpn, extent: &Extent, plan: &mut Plan) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.write(page, extent, plan)),+ }
            }

            pub(crate) fn trim(&mut self, page: Lpn) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.trim(page)),+ }
            }

            pub(crate) fn reclaim(&mut self, plan: &mut Plan) -> bool {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.reclaim(plan)),+ }
            }

            #[inline]
            pub(crate) fn prefetch(&self, page: Lpn) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.prefetch(page)),+ }
            }

            pub(crate) fn map_pages(&self) -> u32 {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.map_pages()),+ }
            }

            pub(crate) fn page_of_map(&self, to: Place) -> Option<Lpn> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.page_of_map(to)),+ }
            }

            pub(crate) fn group_of(&self, block: BlockIdx) -> u32 {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.group_of(block)),+ }
            }

            pub(crate) fn rebuild(&mut self, found: &Survey<'_>, plan: &mut Plan) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.rebuild(found, plan)),+ }
            }

            #[cfg(test)]
            pub(crate) fn audit(&self) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.audit()),+ }
            }
        }
    };
}

ftls! {
    hosted: ZONED;
    paged: "page_map", "dftl";
    // The name in profiles, the file, the type; and its table, where it has one.
    merging:
    "bast" => bast::Bast [log],
    "block_map" => block_map::BlockMap,
    "fast" => fast::Fast [log],
    "linear" => linear::Linear [linear],
    "stream_hybrid" => stream_hybrid::StreamHybrid [streams],
    "stripe_map" => stripe_map::StripeMap [stripes],
    "superblock" => superblock::Superblock [log],
    #[cfg(test)] "how_to" => how_to::HowTo [replacement],
}
