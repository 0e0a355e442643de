//! Flash operations: what an FTL asks for. NAND checks and applies them; in the timed gear the
//! timeline charges them, in the untimed gear nobody does.

mod array;

pub(crate) use array::Flash;

use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Place, Ppn};

/// Where flash operations go. An FTL calls these in the order in which they must take effect; which
/// of them overlap in time is not its business.
pub(crate) trait Media {
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
    /// `block` will not be used any more.
    fn retire_block(&mut self, block: BlockIdx);
    /// `page`, which is erased, will not be used any more.
    fn retire_page(&mut self, page: Place);
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

/// What FTLs that merge ask for besides. Operations of one merge begin together; their dies decide
/// what runs at the same time and what after another. [`MergeMedia::await_merges`] lets everything
/// that follows begin when all of them have ended.
pub(crate) trait MergeMedia: Media {
    /// Move the page `from` to `to` in a merge.
    fn copy(&mut self, from: Place, to: Place);
    /// [`MergeMedia::copy`] of several pages of a block to the same places of another: those that `set`
    /// has, of which `first` and the `pages` that follow stand for the pages of the block. `from` and
    /// `to` are the first pages of the blocks.
    fn copy_set(&mut self, from: Place, to: Place, set: &[u64], first: usize, pages: usize) {
        for index in bits::members(set, first, first + pages) {
            let at =
                |place: Place| Place { page: Ppn(place.page.0 + (index - first) as u32), ..place };
            self.copy(at(from), at(to));
        }
    }
    /// Erase `block` in a merge.
    fn erase_merged(&mut self, block: BlockIdx);
    /// The firmware stores its map on `to`.
    fn program_map(&mut self, to: Place);
    /// The part of the map in memory was asked for an entry.
    fn count_map_lookup(&mut self, hit: bool);
    /// Read a page of the map.
    fn load_map(&mut self, from: Place);
    /// Program pages of the map; entries that have not changed come from a second place where given.
    fn store_map(&mut self, pages: &[(Place, Option<Place>)]);
    /// [`MergeMedia::copy`] of several pages, each from the first place to the second, as one stream.
    fn copy_stream(&mut self, pages: &[(Place, Place)]) {
        pages.iter().for_each(|(from, to)| self.copy(*from, *to));
    }
    /// A log block was chosen to be reclaimed.
    fn begin_reclaim(&mut self);
    /// A merge of this kind was done.
    fn count_merge(&mut self, merge: Merge);
    /// What follows begins when all that was asked for so far has ended.
    fn await_merges(&mut self);
}

/// How a merge came by its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merge {
    /// The log block holds every page, each in its place: it becomes the data block.
    Switch,
    /// The log block holds the first pages in their places; the others are copied to it.
    Partial,
    /// The newest version of every page is copied to a new block.
    Full,
}
