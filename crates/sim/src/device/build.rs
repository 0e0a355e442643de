//! Creation of the backend and the write cache of a profile.

use uflip_core::Result;

use crate::config::{GcPart, Profile};
use crate::device::any::AnyBackend;
use crate::device::cache::WriteCache;
use crate::device::collector::Pace;
use crate::device::jobs::PlanJobs;
use crate::device::merging::MergingBackend;
use crate::device::page_buffer::PageBuffer;
use crate::device::paged::PageMapBackend;
use crate::device::zoned::ZonedBackend;
use crate::ftl::{Merging, PageMap};

impl GcPart {
    /// Return the limits of concurrent garbage collection.
    fn pace(&self) -> Pace {
        Pace {
            idle_goal: self.idle_free_blocks as usize,
            blocks: self.collections_per_channel,
            pages: self.relocations_at_once.unwrap_or(1),
        }
    }
}

impl Profile {
    /// Return the write cache, if the profile has one.
    pub(crate) fn write_cache(&self) -> Option<WriteCache> {
        let unit = self.geometry.page_bytes / self.units();
        let sectors = unit / self.geometry.sector_bytes;
        let pages = self.cache.write_cache_bytes / u64::from(unit);
        let together = self.units() as usize;
        (pages > 0).then(|| WriteCache::new(pages as usize, sectors, self.cache.flush, together))
    }

    /// Return the backend of the profile.
    ///
    /// # Errors
    /// Unknown names or parameters of policies.
    pub(crate) fn backend(&self) -> Result<AnyBackend> {
        let geometry = self.geometry();
        let planes = geometry.shape().planes;
        if let Some(part) = self.zones {
            return Ok(AnyBackend::Zoned(ZonedBackend::new(geometry, part)));
        }
        if self.merges() {
            let steps = self.streams.as_ref().map_or(0, |part| part.reads_per_step);
            let buffers = self.streams.as_ref().is_some_and(|part| part.rewrite_buffer);
            let ftl = Merging::by_name(&self.merging_options())?;
            let jobs = PlanJobs::new(planes, self.ftl.merges_side_by_side.unwrap_or(1));
            return Ok(AnyBackend::Merged(MergingBackend::new(ftl, jobs, steps, buffers)));
        }
        let gc = self.gc()?;
        let ftl = PageMap::new(self.ftl_options()?);
        let hosts = ftl.write_streams();
        let frontiers = self.relocation_frontier(gc).open_blocks(hosts);
        let gather = (self.units() > 1).then(|| PageBuffer::new(planes, hosts, frontiers));
        Ok(AnyBackend::Paged(PageMapBackend::new(ftl, geometry.shape(), gc.pace(), gather)))
    }
}
