//! Flash translation layers: they decide where every page is stored, and own the map.
//!
//! The page map collects garbage while the host continues (`device/collector.rs`); the others merge within
//! the write that needs space. One file each; names, checks and conformance tests follow from the list below.
//! Zoned devices have no FTL: the host places its data (`zoned`).

mod data_blocks;
pub(crate) mod extent;
mod mapping_cache;
mod options;
mod page_map;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod zoned;

use uflip_core::{Error, Result};

use crate::flash::contents::survey::Survey;
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};
use crate::flash::plan::FlashPlan;
use crate::ftl::extent::PageExtent;

pub(crate) use crate::pool::blocks::BlockUse;
#[cfg(test)]
pub(crate) use mapping_cache::CachePolicy;
pub(crate) use mapping_cache::segment_bytes;
pub(crate) use options::{FtlOptions, LogPart, MergingOptions, Tables, with_tables};
pub(crate) use page_map::{CollectedPage, Collection, PageMap, PageMapOptions, RelocationLoad};
pub use page_map::{HotColdPart, MappingPart, Retire};
pub(crate) use page_map::{MappingOptions, RESERVED_FOR_MAPPING, RetirementOptions};
pub(crate) use page_map::{SlcOptions, mapping_pages, read_only};
pub(crate) use zoned::ZONED;
pub use zoned::{ZoneDies, ZonesPart};

/// An FTL that merges within the write that needs space. It sees no clock and touches no cell: it writes its
/// decisions into a [`FlashPlan`].
pub(crate) trait MergingFtl: Sized {
    /// Whether it programs the pages of a block in order and has no fixed offset for them.
    const APPENDS: bool = false;
    /// Its table in a profile; `()` if it has no parameters.
    type Table;

    /// Check that `options` describe a possible device.
    ///
    /// # Errors
    /// Parameters that leave too little space.
    fn check(options: &FtlOptions<'_, Self::Table>) -> Result<()>;

    /// Create the FTL for checked `options`.
    fn new(options: &FtlOptions<'_, Self::Table>) -> Self;

    /// Return the address of `page`; `None` if it was never written.
    fn lookup(&self, page: Lpn) -> Option<PageAddress>;

    /// Return the address of `page` for a timed read; adds the map reads that this needs to `plan`.
    #[inline]
    fn find(&mut self, page: Lpn, _plan: &mut FlashPlan) -> Option<PageAddress> {
        self.lookup(page)
    }

    /// Write `page` of the host write `extent`, after the merges that this needs.
    fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan);

    /// Discard the content of `page` (TRIM).
    fn trim(&mut self, page: Lpn);

    /// Do one step of background reclaim; returns false if there is nothing to do.
    fn reclaim(&mut self, _plan: &mut FlashPlan) -> bool {
        false
    }

    /// Prefetch the map entry of `page`, which will be looked up soon.
    #[inline]
    fn prefetch(&self, _page: Lpn) {}

    /// Return the number of map pages, in addition to the host's pages.
    fn map_pages(&self) -> u32 {
        0
    }

    /// Return which map page is stored at `to`, numbered after the host's pages.
    fn page_of_map(&self, _to: PageAddress) -> Option<Lpn> {
        None
    }

    /// Return the group of `block`: blocks of a group are filled and erased as a whole.
    fn group_of(&self, block: BlockIdx) -> u32 {
        block.0
    }

    /// Rebuild an empty map from `survey` after a power loss. All blocks are erased except those of the groups
    /// that are kept. `plan` receives the copies and erases that must finish before the device is ready.
    fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan);

    /// Check that the accounting is consistent; for tests.
    ///
    /// # Panics
    /// If it is not.
    #[cfg(test)]
    fn audit(&self);
}

/// Expands to the table of an FTL among those of the profile; or to its name, if it has one.
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
        $options
            .tables
            .$table
            .as_ref()
            .ok_or_else(|| $options.missing_table_error(stringify!($table)))?
    };
}

/// Defines one enum of all merging FTLs: a call costs a jump.
macro_rules! ftls {
    (hosted: $hosted:ident; paged: $($paged:literal),+; merging: $($(#[$only:meta] $(#[$path:meta])?)? $name:literal => $module:ident :: $ftl:ident $([$table:ident])?),+ $(,)?) => {
        $($(#[$only] $(#[$path])?)? pub(crate) mod $module;)+

        /// The names of all FTLs.
        pub const FTLS: &[&str] = &[$($paged,)+ $($(#[$only])? $name,)+ $hosted];

        /// The names of the FTLs that merge within host writes.
        pub(crate) const MERGING_FTLS: &[&str] = &[$($(#[$only])? $name),+];

        /// Any of the merging FTLs. Not boxed: a device has one, and every page goes through it.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Merging {
            $($(#[$only])? #[allow(missing_docs)] $ftl($module::$ftl)),+
        }

        impl Merging {
            /// Check that the options describe a possible device.
            pub(crate) fn check(options: &MergingOptions<'_>) -> Result<()> {
                match options.name {
                    $($(#[$only])? $name => $module::$ftl::check(&options.with(table!(of options $(, $table)?))),)+
                    name => Err(Error::unknown("FTL", name, FTLS)),
                }
            }

            /// Return the name of the table that the FTL `name` has, if any.
            pub(crate) fn table(name: &str) -> Option<&'static str> {
                match name {
                    $($(#[$only])? $name => table!($($table)?),)+
                    _ => None,
                }
            }

            /// Return whether the FTL `name` has no fixed offset for the pages of a block.
            pub(crate) fn appends(name: &str) -> bool {
                match name {
                    $($(#[$only])? $name => $module::$ftl::APPENDS,)+
                    _ => false,
                }
            }

            /// Create the FTL that `options` name.
            pub(crate) fn by_name(options: &MergingOptions<'_>) -> Result<Merging> {
                match options.name {
                    $($(#[$only])? $name => {
                        Ok(Merging::$ftl($module::$ftl::new(&options.with(table!(of options $(, $table)?)))))
                    })+
                    name => Err(Error::unknown("FTL", name, FTLS)),
                }
            }

            pub(crate) fn lookup(&self, page: Lpn) -> Option<PageAddress> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.lookup(page)),+ }
            }

            #[inline]
            pub(crate) fn find(&mut self, page: Lpn, plan: &mut FlashPlan) -> Option<PageAddress> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.find(page, plan)),+ }
            }

            #[inline]
            pub(crate) fn write(&mut self, page: Lpn, extent: &PageExtent, plan: &mut FlashPlan) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.write(page, extent, plan)),+ }
            }

            pub(crate) fn trim(&mut self, page: Lpn) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.trim(page)),+ }
            }

            pub(crate) fn reclaim(&mut self, plan: &mut FlashPlan) -> bool {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.reclaim(plan)),+ }
            }

            #[inline]
            pub(crate) fn prefetch(&self, page: Lpn) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.prefetch(page)),+ }
            }

            pub(crate) fn map_pages(&self) -> u32 {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.map_pages()),+ }
            }

            pub(crate) fn page_of_map(&self, to: PageAddress) -> Option<Lpn> {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.page_of_map(to)),+ }
            }

            pub(crate) fn group_of(&self, block: BlockIdx) -> u32 {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.group_of(block)),+ }
            }

            pub(crate) fn rebuild(&mut self, survey: &Survey<'_>, plan: &mut FlashPlan) {
                match self { $($(#[$only])? Merging::$ftl(ftl) => ftl.rebuild(survey, plan)),+ }
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
    // Name in profiles, module, type, and the name of its table, if it has one.
    merging:
    "bast" => bast::Bast [log],
    "block_map" => block_map::BlockMap,
    "fast" => fast::Fast [log],
    "linear" => linear::Linear [linear],
    "stream_hybrid" => stream_hybrid::StreamHybrid [streams],
    "stripe_map" => stripe_map::StripeMap [stripes],
    "superblock" => superblock::Superblock [log],
    #[cfg(test)] #[path = "tests/how_to/mod.rs"] "how_to" => how_to::HowTo [replacement],
}
