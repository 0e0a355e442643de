//! The tables of merging FTLs, one for each family, and what must hold for all of them.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use super::Profile;
use crate::ftl::{Merging, MergingOptions};

/// Block-mapped FTLs with log blocks: bast, fast, superblock.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct LogPart {
    /// Blocks that take what finds no free page in its data block.
    pub log_blocks: u32,
    /// Neighbouring logical blocks that make a superblock; 1 where the FTL has none.
    pub superblock_blocks: u32,
    pub compat: Compat,
    /// Each die has log blocks of its own; shared by all where not said.
    #[serde(default)]
    pub log_per_die: bool,
}

/// Whose faults are repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Compat {
    /// Nobody's.
    None,
    /// FAST of the FlashSim of 2010: merges lose the pages whose newest version is in a log block.
    Flashsim2010,
}

/// The stream hybrid.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StreamsPart {
    /// What is mapped, filled and merged as a whole.
    pub unit_bytes: u32,
    /// What the log maps as a whole.
    pub cluster_bytes: u32,
    /// Groups of dies; a unit is spread over the dies of one.
    pub banks: u32,
    /// Whether each bank has channels of its own; else every bank has dies on all of them.
    pub own_channels: bool,
    /// Units that may be filled in order at a time.
    pub streams: u32,
    /// Streams that had to give way and may come back: what they had is copied.
    pub resumed_streams: u32,
    /// A stream may also run downwards, from the end of a unit.
    pub reverse_streams: bool,
    /// A stream that ends with at most so many clusters goes to the log; others are merged.
    pub fold_clusters: u32,
    /// Clusters that the log holds.
    pub log_clusters: u32,
    /// Units of flash that it has for them.
    pub log_units: u32,
    /// Whether clusters of a log unit that are mostly superseded move on to the next; else the units
    /// that they belong to are merged.
    pub compact_log: bool,
    /// Logical units that the log may have clusters of at a time; 0: any number.
    pub log_members: u32,
    /// What a log of its own maps as a whole for writes of parts of a cluster; 0: there is none.
    pub small_cluster_bytes: u32,
    /// Such clusters that it holds, and units of flash that it has for them.
    pub small_log_clusters: u32,
    pub small_log_units: u32,
    /// A merge takes only the oldest cluster of its unit out of the log, as a cache writes back; else all
    /// that the unit has there.
    pub evict_single: bool,
    /// Clusters of the log that are kept free in idle time; 0: none.
    pub free_clusters: u32,
    /// Units that are merged at once, each in a bank of its own.
    pub merges_at_once: u32,
    /// After every so many host reads reclamation does a step; 0: reads are left alone.
    pub reads_per_step: u32,
    /// Writes of a part of a cluster merge its unit at once.
    pub bypass_partial_clusters: bool,
    /// A write to exactly where the last one went stays in memory until another one comes.
    pub rewrite_buffer: bool,
    /// Map pages that are programmed when another stream continues, when a unit gets a new place, and
    /// when a cluster gets one in the log.
    pub switch_map_pages: u32,
    pub merge_map_pages: u32,
    pub log_map_pages: u32,
}

/// The linear FTL of low-end sticks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct LinearPart {
    /// What is mapped, filled and merged as a whole.
    pub unit_bytes: u32,
    /// In what a unit is filled.
    pub cluster_bytes: u32,
    /// Groups of dies; a unit is spread over the dies of one.
    pub banks: u32,
    /// Units that may be open at a time.
    pub open_units: u32,
    /// How far below its first cluster an open unit may still be filled.
    pub backward_clusters: u32,
    /// How often a page of an open unit may be written again before its unit is merged.
    pub rewrites: u32,
    /// Map pages that are programmed when a unit is opened at its beginning, when another open unit
    /// continues, and when a unit gets a new place.
    pub open_map_pages: u32,
    pub switch_map_pages: u32,
    pub merge_map_pages: u32,
}

/// The page map over stripes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StripesPart {
    /// Dies that a stripe spans, with a block of each.
    pub stripe_dies: u32,
    /// Memory for pages of the map.
    pub map_memory_bytes: u64,
    /// How much of it may be newer than what is on flash.
    pub map_changed_bytes: u64,
}

impl Profile {
    /// What a merging FTL is made of.
    pub(crate) fn merging_options(&self) -> MergingOptions<'_> {
        MergingOptions {
            name: &self.ftl.ftl,
            geometry: self.geometry(),
            log: self.log.as_ref(),
            streams: self.streams.as_ref(),
            linear: self.linear.as_ref(),
            stripes: self.stripes.as_ref(),
        }
    }

    /// Check what a merging FTL needs, before anything is made.
    pub(super) fn check_merging(&self, source: &str) -> Result<()> {
        let part = &self.geometry;
        if part.metadata_pages > 0 {
            return Err(Error::usage("Merging FTLs keep no metadata pages in their blocks")
                .at(source)
                .got(format!(
                    "ftl = \"{}\", metadata_pages = {}",
                    self.ftl.ftl, part.metadata_pages
                ))
                .allowed("metadata_pages = 0")
                .action("change one of the two"));
        }
        if self.wear.static_wear_gap > 0 {
            return Err(Error::usage("Merging FTLs have no static wear levelling")
                .at(source)
                .got(format!("static_wear_gap = {}", self.wear.static_wear_gap))
                .allowed("0")
                .action("set static_wear_gap = 0, or use ftl = \"page_map\""));
        }
        self.check_map_pages(source)?;
        Merging::check(&self.merging_options()).map_err(|error| error.at(source))
    }

    /// What one write costs must end: no change of the map programs more pages than there are.
    fn check_map_pages(&self, source: &str) -> Result<()> {
        let of_streams = self.streams.iter().flat_map(|part| {
            [
                ("switch_map_pages", part.switch_map_pages),
                ("merge_map_pages", part.merge_map_pages),
                ("log_map_pages", part.log_map_pages),
            ]
        });
        let of_linear = self.linear.iter().flat_map(|part| {
            [
                ("open_map_pages", part.open_map_pages),
                ("switch_map_pages", part.switch_map_pages),
                ("merge_map_pages", part.merge_map_pages),
            ]
        });
        let pages = self.geometry().pages();
        match of_streams.chain(of_linear).find(|(_, got)| *got > pages) {
            None => Ok(()),
            Some((key, got)) => Err(Error::usage(format!("Profile key '{key}' makes no device"))
                .at(source)
                .got(got.to_string())
                .allowed(format!("0 to {pages}, which are the pages of all dies"))
                .action("change it")),
        }
    }
}
