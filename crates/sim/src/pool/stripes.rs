//! Stripes: a block of each of several planes, filled page by page across them, collected as a whole.
//!
//! ```text
//! stripe 0: block 0 of planes 0 … w − 1       page i of a stripe: plane i mod w of it, then in order
//! stripe 1: block 1 of the same planes        stripes of the next planes follow those of these planes
//!
//! with parity, w = 4      plane 0   1   2   3
//! row 0                         P   0   1   2      the last page of a row is the parity of the others;
//! row 1                         5   P   3   4      each row begins one plane later than the row before
//! ```

use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Geometry, PageAddress, PlaneIdx, Ppn};
use crate::pool::free::FreePool;

/// The content of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum StripeContent {
    Nothing,
    Data,
    Map,
    /// Data of other stripes that collection moved.
    Relocated,
}

impl StripeContent {
    /// Return whether a stripe of it can be collected for `content`.
    fn is_collected_for(self, content: StripeContent) -> bool {
        self == content || (self, content) == (StripeContent::Relocated, StripeContent::Data)
    }
}

/// All stripes of a device, and the valid pages in them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stripes {
    geometry: Geometry,
    width: u32,
    pages: u32,
    #[serde(rename = "holds")]
    contents: Vec<StripeContent>,
    /// Per stripe: its number of valid pages.
    counts: Vec<u32>,
    /// Per physical page: one bit, set if it is valid.
    valid: Vec<u64>,
    /// Erased stripes, the one erased longest ago first.
    free: FreePool,
    /// The stripes being filled, with data of the host, the map, and moved data.
    data: OpenStripe,
    map: OpenStripe,
    relocated: OpenStripe,
    /// The last page of each row of a stripe of data is parity.
    parity: bool,
}

/// A stripe that is being filled.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Filling")]
struct OpenStripe {
    stripe: Option<u32>,
    next: u32,
    /// Stripes with the same content, this one included.
    stripes: u32,
}

impl Stripes {
    /// Create erased stripes over `width` planes each, which divides the number of planes. `parity`: the last
    /// page of each row of data is parity.
    pub(crate) fn new(geometry: Geometry, width: u32, parity: bool) -> Stripes {
        let stripes = Stripes::count(&geometry, width);
        let none = OpenStripe { stripe: None, next: 0, stripes: 0 };
        Stripes {
            geometry,
            width,
            pages: Stripes::pages_of(&geometry, width),
            contents: vec![StripeContent::Nothing; stripes as usize],
            counts: vec![0; stripes as usize],
            valid: vec![0; geometry.pages().div_ceil(64) as usize],
            free: FreePool::full(1, stripes),
            data: none,
            map: none,
            relocated: none,
            parity,
        }
    }

    /// Return the number of stripes.
    pub(crate) fn count(geometry: &Geometry, width: u32) -> u32 {
        geometry.blocks() / width
    }

    /// Return the pages of a stripe.
    pub(crate) fn pages_of(geometry: &Geometry, width: u32) -> u32 {
        width * geometry.shape().pages_per_block
    }

    /// Return the pages of a stripe.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Return the number of erased stripes.
    pub(crate) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Return the number of stripes with this content.
    pub(crate) fn stripes_with(&self, content: StripeContent) -> u32 {
        self.open_stripe(content).stripes
    }

    #[inline]
    fn open_stripe(&self, content: StripeContent) -> &OpenStripe {
        match content {
            StripeContent::Data => &self.data,
            StripeContent::Relocated => &self.relocated,
            StripeContent::Map | StripeContent::Nothing => &self.map,
        }
    }

    #[inline]
    fn open_stripe_mut(&mut self, content: StripeContent) -> &mut OpenStripe {
        match content {
            StripeContent::Data => &mut self.data,
            StripeContent::Relocated => &mut self.relocated,
            StripeContent::Map | StripeContent::Nothing => &mut self.map,
        }
    }

    /// Return whether the next page needs another stripe.
    #[inline]
    pub(crate) fn is_filled(&self, content: StripeContent) -> bool {
        let open_stripe = self.open_stripe(content);
        open_stripe.stripe.is_none() || open_stripe.next == self.pages
    }

    /// Return the pages left in the stripe that is being filled with this content.
    pub(crate) fn pages_left(&self, content: StripeContent) -> usize {
        (self.pages - self.open_stripe(content).next) as usize
    }

    /// Open an erased stripe for this content.
    pub(crate) fn open(&mut self, content: StripeContent) {
        let stripe = self.free.take(0).expect("a valid profile leaves an erased stripe");
        self.contents[stripe as usize] = content;
        let open_stripe = self.open_stripe_mut(content);
        (open_stripe.stripe, open_stripe.next) = (Some(stripe), 0);
        open_stripe.stripes += 1;
    }

    /// Allocate the next page of the open stripe; it counts as valid.
    #[inline]
    pub(crate) fn take_page(&mut self, content: StripeContent) -> PageAddress {
        let address = self.next_address(content);
        let stripe = self.stripe_of(address);
        bits::insert(&mut self.valid, address.page.0 as usize);
        self.counts[stripe as usize] += 1;
        address
    }

    /// Allocate the page for the parity of a row of data that the last page filled, if there is one.
    #[inline]
    pub(crate) fn take_parity(&mut self, content: StripeContent) -> Option<PageAddress> {
        let is_due = self.parity
            && content != StripeContent::Map
            && self.open_stripe(content).next % self.width == self.width - 1;
        is_due.then(|| self.next_address(content))
    }

    #[inline]
    fn next_address(&mut self, content: StripeContent) -> PageAddress {
        let open_stripe = self.open_stripe_mut(content);
        let (stripe, offset) = (open_stripe.stripe.expect("a stripe is open"), open_stripe.next);
        open_stripe.next += 1;
        self.address_of(stripe, offset)
    }

    /// Mark the page at `at` as invalid.
    #[inline]
    pub(crate) fn invalidate(&mut self, at: PageAddress) {
        bits::remove(&mut self.valid, at.page.0 as usize);
        let stripe = self.stripe_of(at);
        self.counts[stripe as usize] -= 1;
    }

    /// Return the full stripe with the fewest valid pages.
    pub(crate) fn emptiest(&self, content: StripeContent) -> Option<u32> {
        let of_kind = self.contents.iter().zip(&self.counts).zip(0u32..);
        let full = of_kind.filter(|((stripe_content, _), stripe)| {
            stripe_content.is_collected_for(content)
                && Some(*stripe) != self.open_stripe(**stripe_content).stripe
        });
        full.min_by_key(|((_, count), _)| **count).map(|(_, stripe)| stripe)
    }

    /// Return the address of page `offset` of `stripe`, if it is valid.
    #[inline]
    pub(crate) fn valid_address(&self, stripe: u32, offset: u32) -> Option<PageAddress> {
        Some(self.address_of(stripe, offset))
            .filter(|at| bits::has(&self.valid, at.page.0 as usize))
    }

    /// Return the blocks of `stripe`.
    pub(crate) fn blocks(&self, stripe: u32) -> impl Iterator<Item = BlockIdx> + use<> {
        let stripes = (self.width, self.geometry.shape().blocks_per_plane);
        let (first, block) = (stripe / stripes.1 * stripes.0, stripe % stripes.1);
        (first..first + stripes.0).map(move |plane| BlockIdx(plane * stripes.1 + block))
    }

    /// Return the erased `stripe`, which holds no valid page, to the free pool.
    pub(crate) fn release(&mut self, stripe: u32) {
        let content =
            std::mem::replace(&mut self.contents[stripe as usize], StripeContent::Nothing);
        self.open_stripe_mut(content).stripes -= 1;
        self.free.put(0, stripe);
    }

    #[inline]
    fn address_of(&self, stripe: u32, offset: u32) -> PageAddress {
        let shape = self.geometry.shape();
        let (group, block) = (stripe / shape.blocks_per_plane, stripe % shape.blocks_per_plane);
        let row = offset / self.width;
        let shift = if self.parity { row + 1 } else { 0 };
        let column = (offset + shift) % self.width;
        let plane = group * self.width + column;
        let block = BlockIdx(plane * shape.blocks_per_plane + block);
        let page = Ppn(block.0 * shape.pages_per_block + row);
        PageAddress { page, block, plane: PlaneIdx(plane) }
    }

    /// Mark the page at `at`, of a filled stripe, as valid.
    pub(crate) fn set_valid(&mut self, at: PageAddress) {
        bits::insert(&mut self.valid, at.page.0 as usize);
        let stripe = self.stripe_of(at);
        self.counts[stripe as usize] += 1;
    }

    /// Mark `stripe` as filled with this content (recovery).
    pub(crate) fn set_filled(&mut self, stripe: u32, content: StripeContent) {
        self.free.retain(|free| free != stripe);
        self.contents[stripe as usize] = content;
        self.open_stripe_mut(content).stripes += 1;
    }

    /// Return the stripe of a page.
    #[inline]
    pub(crate) fn stripe_of(&self, at: PageAddress) -> u32 {
        let blocks_per_plane = self.geometry.shape().blocks_per_plane;
        at.plane.0 / self.width * blocks_per_plane + (at.block.0 - at.plane.0 * blocks_per_plane)
    }

    /// Check that the accounting is consistent, and that the valid pages are those of `mapped`.
    #[cfg(test)]
    pub(crate) fn audit(&self, mapped: impl Iterator<Item = Ppn>) {
        let mut valid = vec![0; self.valid.len()];
        mapped.for_each(|page| bits::insert(&mut valid, page.0 as usize));
        assert_eq!(self.valid, valid, "the mapped pages and no others are valid");
        for (stripe, count) in (0u32..).zip(&self.counts) {
            let valid: Vec<PageAddress> =
                (0..self.pages).filter_map(|offset| self.valid_address(stripe, offset)).collect();
            assert_eq!(valid.len(), *count as usize);
            assert!(valid.iter().all(|address| self.stripe_of(*address) == stripe));
            assert_eq!(
                self.contents[stripe as usize] == StripeContent::Nothing,
                self.free.iter().any(|free| free == stripe)
            );
        }
    }
}
