//! Flash operations of FTLs. NAND checks and applies them; in the timed mode the timeline charges their time,
//! in the untimed mode they take none. Merging FTLs request them with a [plan](crate::flash::plan).

mod array;
mod block_moves;
mod plan_executor;
mod recovery;
mod scrub;
mod untimed_plan;
mod vector;

pub(crate) use array::Flash;

use crate::flash::contents::Defect;
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{BlockIdx, Lpn, PageAddress};

/// The receiver of flash operations. An FTL calls these in the order in which they must take effect; their
/// overlap in time is decided elsewhere.
pub(crate) trait Media {
    /// The kind of device: see [`crate::flash::fast_path`].
    type Path: FastPath;
    /// Set the logical page of the next program, `None` for pages without one, and the role of its block
    /// among the open blocks of its plane.
    #[inline]
    fn set_content(&mut self, _page: Option<Lpn>, _role: impl FnOnce() -> u8) {}
    /// Read `from` for the host.
    fn read(&mut self, from: PageAddress);
    /// Program `to` with host data; the rest of the page comes from `merge_from` if given. Returns false if
    /// that fails: the page then holds no data.
    fn program(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool;
    /// Program the metadata page of a full block; returns false if that fails.
    fn program_metadata(&mut self, to: PageAddress) -> bool;
}

/// Additional operations of FTLs that collect blocks in the background.
pub(crate) trait CollectMedia: Media {
    /// Make `block`, which is erased or already an SLC block, hold one bit a cell until it is erased.
    fn set_slc(&mut self, _block: BlockIdx) {}
    /// Program `to`, a unit of a partly filled flash page, as padding.
    fn pad(&mut self, to: PageAddress);
    /// Count the next victim as scrubbed: it is moved because of its reads or its age.
    fn count_scrubbed(&mut self);
    /// Count it as levelled: it is moved because it wears less than others.
    fn count_levelled(&mut self);
    /// Begin the collection of a victim; reads its metadata page, if it has one.
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<PageAddress>);
    /// Read `from` for a relocation that is no longer needed.
    fn read_unneeded(&mut self, from: PageAddress);
    /// Move the page `from` to `to`; returns false if `to` cannot be programmed.
    fn relocate(&mut self, from: PageAddress, to: PageAddress) -> bool;
    /// Erase `block`; returns false if that fails.
    fn erase(&mut self, block: BlockIdx) -> bool;
    /// Return whether `page`, which is erased, has too many bit errors to be used again.
    fn is_worn(&self, page: PageAddress) -> bool;
    /// Return a number that grows with the bit errors of `page` when it is read.
    fn errors(&self, page: PageAddress) -> u32;
    /// Retire `block`.
    fn retire_block(&mut self, block: BlockIdx);
    /// Retire `page`, which is erased.
    fn retire_page(&mut self, page: PageAddress);
    /// List the defect of `block` on flash, for recovery after a power loss.
    fn list_defect(&mut self, _defect: Defect, _block: BlockIdx) {}
    /// Count `pages` valid pages of a victim as dropped: their data is lost (OFC figure 5(a)).
    fn record_lost_pages(&mut self, pages: u32);
    /// Count a lookup in the cached map.
    fn look_up_map(&mut self, hit: bool);
    /// Read a mapping page. Later operations wait for it.
    fn read_mapping(&mut self, from: PageAddress);
    /// Return the flash itself if operations take no time and flash does not wear out. The caller may then do
    /// many operations at once, and must count them.
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        None
    }
    /// Program a mapping page; its unchanged entries come from `merge_from` if given. Later operations wait
    /// for it. Returns false if that fails.
    fn program_mapping(&mut self, to: PageAddress, merge_from: Option<PageAddress>) -> bool;
}

#[cfg(test)]
mod tests;
