//! Where the pages of a unit lie, one after the other: found without dividing.

use crate::flash::geometry::{BlockIdx, Place, PlaneIdx, Ppn};

/// The pages of a unit from one of them on. It does not end with the unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The plane of the first page of a row, and how many lie between those of two.
    pub(super) first_plane: u32,
    pub(super) planes_apart: u32,
    pub(super) planes: u32,
    pub(super) blocks_per_plane: u32,
    pub(super) pages_per_block: u32,
    /// The block of its plane that the next page is in, its page there, and the plane's number in its row.
    pub(super) block: u32,
    pub(super) page: u32,
    pub(super) turn: u32,
}

impl Places {
    /// The next.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        let plane = self.first_plane + self.turn * self.planes_apart;
        let block = plane * self.blocks_per_plane + self.block;
        let page = Ppn(block * self.pages_per_block + self.page);
        Place { page, block: BlockIdx(block), plane: PlaneIdx(plane) }
    }
}

impl Iterator for Places {
    type Item = Place;

    #[inline]
    fn next(&mut self) -> Option<Place> {
        let place = self.place();
        self.turn += 1;
        if self.turn == self.planes {
            (self.turn, self.page) = (0, self.page + 1);
            if self.page == self.pages_per_block {
                (self.page, self.block) = (0, self.block + 1);
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::flash::geometry::{Geometry, Shape};
    use crate::pool::units::{Layout, UnitIdx};

    /// Two banks of two planes each, units of two blocks of each: every page once, in blocks of the unit, whichever
    /// page is the first that is asked for.
    #[test]
    fn pages_one_after_the_other_are_where_each_of_them_is() {
        let geometry = Geometry::from(Shape {
            channels: 2,
            planes: 4,
            blocks_per_plane: 8,
            pages_per_block: 6,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 48,
        });
        for own_channels in [true, false] {
            let layout = Layout::new(geometry, 24 * 4096, 4 * 4096, 2, own_channels).unwrap();
            for unit in (0..8).map(UnitIdx) {
                let places: Vec<_> = layout.places(unit, 0).take(24).collect();
                for offset in 0..24 {
                    assert_eq!(layout.place(unit, offset), places[offset as usize]);
                    assert!(
                        layout
                            .places(unit, offset)
                            .zip(&places[offset as usize..])
                            .all(|(one, other)| one == *other)
                    );
                }
                assert_eq!(
                    places.iter().map(|place| place.page.0).collect::<BTreeSet<_>>().len(),
                    24
                );
                for place in places {
                    assert_eq!(geometry.place_of(place.page), place);
                    assert_eq!(layout.unit_of(place.block), Some(unit));
                }
            }
        }
    }
}
