//! Write page allocators, one file each: they choose *where* the next page goes. Names and conformance tests
//! follow from the list at the end.

use uflip_core::{Error, Result};

use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::{Blocks, PageStream};

/// Chooses the plane that takes the next page. It reads the block accounting and has no access to time.
pub(crate) trait WriteAllocator: Sized {
    /// Create the allocator of a device.
    fn new(geometry: &Geometry) -> Self;
    /// Return the plane for the next page; collection makes room there if it is full. `page` is the host's
    /// logical page, `None` for any other page.
    fn choose(&mut self, blocks: &Blocks, page: Option<Lpn>) -> PlaneIdx;
}

/// Defines one enum of all allocators: a call costs a jump.
macro_rules! allocators {
    ($($name:literal => $module:ident :: $allocator:ident),+ $(,)?) => {
        $(mod $module;)+

        /// The names of all allocators.
        pub const ALLOCATORS: &[&str] = &[$($name),+];

        /// Any of the registered allocators.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Allocator {
            $(#[allow(missing_docs)] $allocator($module::$allocator)),+
        }

        impl Allocator {
            pub(crate) fn by_name(name: &str, geometry: &Geometry) -> Result<Allocator> {
                match name {
                    $($name => Ok(Allocator::$allocator($module::$allocator::new(geometry))),)+
                    _ => Err(Error::unknown("allocator", name, ALLOCATORS)),
                }
            }

            #[inline(always)]
            fn next(&mut self, blocks: &Blocks, page: Option<Lpn>) -> PlaneIdx {
                match self { $(Allocator::$allocator(allocator) => allocator.choose(blocks, page)),+ }
            }
        }
    };
}

allocators! {
    "round_robin" => channel_first::ChannelFirst,
    "die_first" => die_first::DieFirst,
    "most_free" => most_free::MostFree,
    "static" => fixed::Fixed,
}

impl Allocator {
    /// Return the plane for the host's `page`.
    #[inline]
    pub(crate) fn choose(&mut self, blocks: &Blocks, page: Lpn) -> PlaneIdx {
        self.next(blocks, Some(page))
    }

    /// Return a plane that has a page of `stream` without collecting first: the next in turn, or the plane
    /// with the most free blocks where that one is full.
    #[inline(always)]
    pub(crate) fn choose_with_page(
        &mut self,
        blocks: &Blocks,
        stream: PageStream,
    ) -> Option<PlaneIdx> {
        let plane = self.next(blocks, None);
        if blocks.has_page(plane, stream) {
            Some(plane)
        } else {
            Allocator::fullest(blocks, stream)
        }
    }

    #[cold]
    fn fullest(blocks: &Blocks, stream: PageStream) -> Option<PlaneIdx> {
        let planes = (0..blocks.geometry().shape().planes).map(PlaneIdx);
        planes
            .filter(|plane| blocks.has_page(*plane, stream))
            .max_by_key(|plane| blocks.free_in(*plane))
    }
}
