//! The options of merging FTLs, and their tables in profiles.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use super::data_blocks::DataBlocks;
use crate::flash::geometry::Geometry;
use crate::keys::parameters;

/// The profile tables of merging FTLs, one a line: name and type. The list of FTLs assigns a table to an FTL;
/// all other code that depends on the tables is generated from this list.
macro_rules! with_tables {
    ($then:ident) => {
        $then! {
            log: crate::ftl::LogPart,
            stripes: crate::ftl::stripe_map::StripesPart,
            streams: crate::ftl::stream_hybrid::StreamsPart,
            linear: crate::ftl::linear::LinearPart,
            #[cfg(test)] replacement: crate::ftl::how_to::ReplacementPart,
        }
    };
}
pub(crate) use with_tables;

macro_rules! tables {
    ($($(#[$only:meta])? $table:ident: $part:ty),+ $(,)?) => {
        /// The tables of a profile.
        #[derive(Clone, Default, Debug)]
        #[cfg_attr(test, derive(serde::Deserialize))]
        #[allow(missing_docs)]
        pub(crate) struct Tables {
            $($(#[$only])? pub(crate) $table: Option<$part>),+
        }

        impl Tables {
            /// Return the names of the tables that the profile has.
            pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
                let all = [$($(#[$only])? self.$table.as_ref().map(|_| stringify!($table))),+];
                all.into_iter().flatten()
            }
        }
    };
}
with_tables!(tables);

/// The options of a merging FTL: its name, the device, and the tables of its profile.
#[derive(Clone, Debug)]
pub(crate) struct MergingOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) geometry: Geometry,
    pub(crate) tables: Tables,
    /// Power may be lost: an old version of a page is kept until a newer one is on flash.
    pub(crate) durable: bool,
}

/// The options of one FTL: with its table, `()` if it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FtlOptions<'a, T> {
    pub(crate) name: &'a str,
    pub(crate) geometry: Geometry,
    pub(crate) table: &'a T,
    pub(crate) durable: bool,
}

impl MergingOptions<'_> {
    /// Return the options of the FTL that has this table.
    pub(super) fn with<'a, T>(&'a self, table: &'a T) -> FtlOptions<'a, T> {
        let MergingOptions { name, geometry, durable, .. } = *self;
        FtlOptions { name, geometry, table, durable }
    }

    /// Return the error for a profile that lacks the `table` of its FTL.
    pub(super) fn missing_table_error(&self, table: &str) -> Error {
        let ftl = self.name;
        Error::usage("The profile lacks the table of its FTL")
            .got(format!("ftl = \"{ftl}\" without a table [{table}]"))
            .action(format!("add [{table}]; docs/reference/profiles.md explains its keys"))
    }
}

#[cfg(test)]
impl MergingOptions<'_> {
    /// Create the options of an FTL with these tables.
    pub(crate) fn with_tables(
        name: &str,
        geometry: Geometry,
        tables: Tables,
    ) -> MergingOptions<'_> {
        MergingOptions { name, geometry, tables, durable: false }
    }

    /// Create the options of an FTL without tables.
    pub(crate) fn bare(name: &str, geometry: Geometry) -> MergingOptions<'_> {
        MergingOptions::with_tables(name, geometry, Tables::default())
    }
}

impl<T> FtlOptions<'_, T> {
    /// Check that a map update never programs more pages than the device has: the cost of one write must be
    /// bounded.
    ///
    /// # Errors
    /// The number under one of these keys is larger.
    pub(super) fn check_map_pages(&self, keys: &[(&str, u32)]) -> Result<()> {
        let pages = self.geometry.pages();
        match keys.iter().find(|(_, got)| *got > pages) {
            None => Ok(()),
            Some((key, got)) => {
                Err(Error::usage(format!("Profile key '{key}' has an invalid value"))
                    .got(got.to_string())
                    .allowed(format!("0 to {pages}, which are the pages of all dies"))
                    .action("change it"))
            }
        }
    }
}

// The table [log] of the profile: common parameters of FTLs with log blocks.

parameters! {
    /// Block-mapped FTLs with log blocks: bast, fast, superblock.
    #[derive(Clone, PartialEq, Debug)]
    pub struct LogPart {
        log_blocks: u32 =
            "1 or more, 2 with `fast`; fewer than the blocks of the device" in "blocks",
            "blocks for pages without an erased place in their data block; with `fast` one of \
             them is the sequential one, with `superblock` they are the update blocks of all \
             superblocks";
        superblock_blocks: u32 = "1 or more" in "blocks",
            "logical blocks of a superblock; with `fast`, only the first page of one opens the \
             sequential log (1: that of every block); without effect on the others";
        compat: Compat = "`none`, `flashsim2010`",
            "with `fast`: repeat the fault of FlashSim's code of 2010, which loses data; see \
             [merges](../explanation/merges.md#the-fault-of-2010)";
        #[serde(default)]
        log_per_die: bool = "true, false; false without the key",
            "with `fast`: each die has its own random log blocks for its data blocks, \
             (`log_blocks` − 1) / dies of them; if several dies have none left, one write \
             reclaims a block of each";
    }
}

/// The implementation whose faults are reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Compat {
    /// No faults.
    None,
    /// FAST in the FlashSim of 2010: merges lose the pages whose newest version is in a log block.
    Flashsim2010,
}

/// Check that the device has the configured log blocks, and at least `min_blocks`.
///
/// # Errors
/// Fewer, or more than fit on the device.
pub(super) fn check_log(options: &FtlOptions<'_, LogPart>, min_blocks: u32) -> Result<()> {
    let part = options.table;
    let blocks = options.geometry.blocks();
    if part.log_blocks < min_blocks || part.log_blocks >= blocks {
        return Err(Error::usage("The number of log blocks is out of range")
            .got(format!("log_blocks = {} of {blocks} blocks", part.log_blocks))
            .allowed(format!("{min_blocks} or more, and fewer than the blocks of the device"))
            .action("change log_blocks"));
    }
    if part.compat != Compat::None && options.name != "fast" {
        return Err(Error::usage("Only FAST supports 'compat'")
            .got(format!("a 'compat' with ftl = \"{}\"", options.name))
            .allowed("compat = \"none\"")
            .action("change one of the two"));
    }
    if part.log_per_die && options.name != "fast" {
        return Err(Error::usage("Only FAST has a log for each die")
            .got(format!("log_per_die = true with ftl = \"{}\"", options.name))
            .allowed("log_per_die = false")
            .action("change one of the two"));
    }
    DataBlocks::check(
        options,
        u64::from(part.log_blocks) + 1,
        &format!("{} log blocks, and 1 for merges", part.log_blocks),
    )
}
