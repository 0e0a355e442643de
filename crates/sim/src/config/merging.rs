//! What must hold for all FTLs that merge.

use uflip_core::{Error, Result};

use super::Profile;
use crate::ftl::{Merging, MergingOptions};

impl Profile {
    /// What a merging FTL is made of.
    pub(crate) fn merging_options(&self) -> MergingOptions<'_> {
        MergingOptions {
            name: &self.ftl.ftl,
            geometry: self.known_geometry(),
            log: self.log.as_ref(),
            streams: self.streams.as_ref(),
            linear: self.linear.as_ref(),
            stripes: self.stripes.as_ref(),
            durable: self.power_loss.is_some(),
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
