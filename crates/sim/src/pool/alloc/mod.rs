//! *Where* the next page goes: write page allocators, one file each. Names and conformance tests
//! follow from the list at the end.

use uflip_core::{Error, Result};

use crate::flash::geometry::{Geometry, Lpn, PlaneIdx};
use crate::pool::blocks::{Blocks, Stream};

/// Chooses the plane that takes the next page. Sees the books, knows no time.
pub(crate) trait WriteAllocator: Sized {
    /// Make it for a device.
    fn new(geometry: &Geometry) -> Self;
    /// The plane whose turn it is; collection makes room there if there is none. `page` is the host's page that
    /// goes there, `None` for any other one.
    fn choose(&mut self, blocks: &Blocks, page: Option<Lpn>) -> PlaneIdx;
}

/// Makes one enum of all allocators, so that a call costs a jump and no more.
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
    /// The plane that the host's `page` goes to.
    #[inline]
    pub(crate) fn choose(&mut self, blocks: &Blocks, page: Lpn) -> PlaneIdx {
        self.next(blocks, Some(page))
    }

    /// A plane that has a page of `stream` without collecting first: the next turn, or the plane with
    /// the most free blocks where that one has none.
    #[inline(always)]
    pub(crate) fn choose_with_page(&mut self, blocks: &Blocks, stream: Stream) -> Option<PlaneIdx> {
        let plane = self.next(blocks, None);
        if blocks.has_page(plane, stream) {
            Some(plane)
        } else {
            Allocator::fullest(blocks, stream)
        }
    }

    #[cold]
    fn fullest(blocks: &Blocks, stream: Stream) -> Option<PlaneIdx> {
        let planes = (0..blocks.geometry().shape().planes).map(PlaneIdx);
        planes
            .filter(|plane| blocks.has_page(*plane, stream))
            .max_by_key(|plane| blocks.free_in(*plane))
    }
}
