//! Options and checks of a map on flash.

use uflip_core::{Error, Result};

use super::Profile;
use crate::ftl::{MappingOptions, MappingPart, RESERVED_FOR_MAPPING, mapping_pages, segment_bytes};

impl Profile {
    /// Return the options of a map on flash; `None` if the map is in memory.
    pub(super) fn mapping_options(&self) -> Option<MappingOptions> {
        self.mapping.as_ref().map(|part| {
            let segment_entries = part.mapping_segment_entries.unwrap_or(1);
            MappingOptions {
                cached_segments: (part.mapping_cache_bytes / segment_bytes(segment_entries))
                    as usize,
                segment_entries,
                policy: part.mapping_cache_policy,
                batch_update: part.mapping_batch_update,
            }
        })
    }

    /// Return the latency of a cached entry in host memory; 0 if the cache is in the controller.
    pub(super) fn host_memory_read_ns(&self) -> u64 {
        self.mapping.as_ref().and_then(|part| part.host_memory_read_ns).unwrap_or(0)
    }

    /// Return the blocks per die that are kept free for mapping pages.
    pub(super) fn reserved_for_mapping(&self) -> u32 {
        if self.mapping.is_some() { RESERVED_FOR_MAPPING } else { 0 }
    }

    /// Return the pages that full mapping blocks may take: they are collected once half of them is
    /// invalid.
    pub(super) fn pages_for_mapping(&self) -> u64 {
        if self.mapping.is_none() {
            return 0;
        }
        let block = u64::from(self.geometry().data_pages());
        (2 * u64::from(mapping_pages(&self.geometry()))).next_multiple_of(block)
    }

    pub(super) fn check_mapping(&self, source: &str) -> Result<()> {
        match &self.mapping {
            None if self.ftl.ftl == "dftl" => Err(Error::usage("DFTL needs a table [mapping]")
                .at(source)
                .got("ftl = \"dftl\" without a table [mapping]")
                .allowed("mapping_cache_bytes, mapping_cache_policy, mapping_batch_update")
                .action("add [mapping], or name the three keys behind the device's name")),
            None => Ok(()),
            Some(part) => self.check_cache(source, part),
        }
    }
    /// Check that segments divide a mapping page, and that one fits into the cache.
    fn check_cache(&self, source: &str, part: &MappingPart) -> Result<()> {
        let entries = part.mapping_segment_entries.unwrap_or(1);
        let max_entries = self.geometry().shape().page_bytes / 4;
        if !max_entries.is_multiple_of(entries) {
            return Err(Error::usage("The map segments do not divide a mapping page")
                .at(source)
                .got(format!("mapping_segment_entries = {entries}"))
                .allowed(format!("a divisor of {max_entries}, the entries of a mapping page"))
                .action("change mapping_segment_entries"));
        }
        let min_bytes = segment_bytes(entries);
        if part.mapping_cache_bytes < min_bytes {
            return Err(Error::usage("The mapping cache holds no entry")
                .at(source)
                .got(format!("mapping_cache_bytes = {}", part.mapping_cache_bytes))
                .allowed(format!("{min_bytes} or more"))
                .action("raise mapping_cache_bytes"));
        }
        Ok(())
    }
}
