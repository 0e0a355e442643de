//! What must hold for a map on flash.

use uflip_core::{Error, Result};

use super::Profile;
use crate::ftl::{CACHED_ENTRY_BYTES, MappingOptions, RESERVED_FOR_MAPPING, mapping_pages};

impl Profile {
    /// How the map is kept on flash; `None` where it is in memory.
    pub(super) fn mapping_options(&self) -> Option<MappingOptions> {
        self.mapping.as_ref().map(|part| MappingOptions {
            cached_entries: (part.mapping_cache_bytes / CACHED_ENTRY_BYTES) as usize,
            policy: part.mapping_cache_policy,
            batch_update: part.mapping_batch_update,
        })
    }

    /// Blocks a die that are kept free for mapping pages.
    pub(super) fn reserved_for_mapping(&self) -> u32 {
        if self.mapping.is_some() { RESERVED_FOR_MAPPING } else { 0 }
    }

    /// Pages that filled mapping blocks may take: they are collected once half of them is invalid.
    pub(super) fn pages_for_mapping(&self) -> u64 {
        if self.mapping.is_none() {
            return 0;
        }
        let block = u64::from(self.geometry().data_pages());
        (2 * u64::from(mapping_pages(&self.geometry()))).next_multiple_of(block)
    }

    pub(super) fn check_mapping(&self, source: &str) -> Result<()> {
        match &self.mapping {
            None if self.ftl.ftl == "dftl" => {
                Err(Error::usage("DFTL needs to know how much of its map is in memory")
                    .at(source)
                    .got("ftl = \"dftl\" without a table [mapping]")
                    .allowed("mapping_cache_bytes, mapping_cache_policy, mapping_batch_update")
                    .action("add [mapping], or name the three keys behind the device's name"))
            }
            Some(part) if part.mapping_cache_bytes < CACHED_ENTRY_BYTES => {
                Err(Error::usage("The mapping cache holds no entry")
                    .at(source)
                    .got(format!("mapping_cache_bytes = {}", part.mapping_cache_bytes))
                    .allowed(format!("{CACHED_ENTRY_BYTES} or more"))
                    .action("raise mapping_cache_bytes"))
            }
            _ => Ok(()),
        }
    }
}
