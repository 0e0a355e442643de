//! Options and checks of all merging FTLs.

use serde_json::{Map, Value};
use uflip_core::{Error, Result};

use super::Profile;
use super::keys::BLOCK;
use crate::ftl::{Merging, MergingOptions};

impl Profile {
    /// Return the options of a merging FTL.
    pub(crate) fn merging_options(&self) -> MergingOptions<'_> {
        MergingOptions {
            name: &self.ftl.ftl,
            geometry: self.ftl_geometry(),
            tables: self.tables(),
            durable: self.power_loss.is_some(),
        }
    }

    /// Check the requirements of a merging FTL.
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
        Merging::check(&self.merging_options()).map_err(|error| error.at(source))
    }
}

/// Return values for the keys of a merging FTL's own table, each in its range but otherwise
/// arbitrary; nothing if it has no table. For tests that draw devices: `below` draws a number.
pub fn drawn_keys(ftl: &str, below: impl FnMut(u64) -> u64) -> Map<String, Value> {
    Merging::table(ftl).map(|table| BLOCK.drawn(table, below)).unwrap_or_default()
}
