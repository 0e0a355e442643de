//! Flash operations: what an FTL asks for. NAND checks and applies them; in the timed gear the
//! timeline charges them, in the untimed gear nobody does. FTLs that merge ask with a
//! [plan](crate::flash::plan).

mod array;
mod found;
mod moved;
mod planned;
mod scrub;
mod vector;
mod worn;

pub(crate) use array::Flash;

use crate::flash::contents::Defect;
use crate::flash::fast_path::FastPath;
use crate::flash::geometry::{BlockIdx, Lpn, Place};

/// Where flash operations go. An FTL calls these in the order in which they must take effect; which
/// of them overlap in time is not its business.
pub(crate) trait Media {
    /// What the device is made of that they go to.
    type Path: FastPath;
    /// What is programmed next holds this logical page, or nothing of anybody's, and is in the block that its
    /// plane has open as the `role`-th.
    #[inline]
    fn holds(&mut self, _page: Option<Lpn>, _role: impl FnOnce() -> u8) {}
    /// Read `from` for the host.
    fn read(&mut self, from: Place);
    /// Program `to` with host data; the rest of the page comes from `merge_from` where given. False
    /// where that fails: the page then holds nothing.
    fn program(&mut self, to: Place, merge_from: Option<Place>) -> bool;
    /// Program the metadata page of a block that is full; false where that fails.
    fn program_metadata(&mut self, to: Place) -> bool;
}

/// What FTLs that collect blocks beside the host ask for besides.
pub(crate) trait CollectMedia: Media {
    /// `block`, which is erased or was said before, holds one bit a cell until it is erased.
    fn set_slc(&mut self, _block: BlockIdx) {}
    /// Program `to`, which belongs to a flash page that is not full, with nothing.
    fn pad(&mut self, to: Place);
    /// The victim that is chosen next is moved because of its reads or its age.
    fn scrubs(&mut self);
    /// It is moved because it wears less than others.
    fn levels(&mut self);
    /// A victim was chosen; its metadata page is read where it has one.
    fn begin_collection(&mut self, victim: BlockIdx, metadata: Option<Place>);
    /// Read `from` for a relocation that turns out not to be needed.
    fn read_for_nothing(&mut self, from: Place);
    /// Move the page `from` to `to`; false where `to` cannot be programmed.
    fn relocate(&mut self, from: Place, to: Place) -> bool;
    /// Erase `block`; false where that fails.
    fn erase(&mut self, block: BlockIdx) -> bool;
    /// Whether `page`, which is erased, has too many bit errors to be used again.
    fn is_worn(&self, page: Place) -> bool;
    /// How many bit errors `page` has when it is read: greater where there are more.
    fn errors(&self, page: Place) -> u32;
    /// `block` will not be used any more.
    fn retire_block(&mut self, block: BlockIdx);
    /// `page`, which is erased, will not be used any more.
    fn retire_page(&mut self, page: Place);
    /// What is known of `block` by now has to be known when power comes back.
    fn list(&mut self, _defect: Defect, _block: BlockIdx) {}
    /// So many valid pages of a victim are not moved: their data is lost (OFC figure 5(a)).
    fn give_up(&mut self, pages: u32);
    /// The cached map was asked for an entry.
    fn look_up_map(&mut self, hit: bool);
    /// Read a page of the map. What follows waits for it.
    fn read_mapping(&mut self, from: Place);
    /// The flash itself, where no time passes and nothing wears out: whoever asks may do many
    /// operations at once, and must count them.
    #[inline]
    fn unworn(&mut self) -> Option<&mut Flash> {
        None
    }
    /// Program a page of the map; the entries that have not changed come from `merge_from` where
    /// given. What follows waits for it. False where that fails.
    fn program_mapping(&mut self, to: Place, merge_from: Option<Place>) -> bool;
}

#[cfg(test)]
mod tests;
