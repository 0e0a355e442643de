//! Merge units: the addresses of their pages.

use std::collections::BTreeSet;

use super::units::{UnitIdx, UnitLayout};
use crate::flash::geometry::{Geometry, Shape};

/// Two banks of two planes each, units of two blocks of each. Every page occurs once, in blocks of the unit,
/// from whichever page the iteration starts.
#[test]
fn address_iterator_matches_single_addresses() {
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
        let layout = UnitLayout::new(geometry, 24 * 4096, 4 * 4096, 2, own_channels).unwrap();
        for unit in (0..8).map(UnitIdx) {
            let places: Vec<_> = layout.addresses_from(unit, 0).take(24).collect();
            for offset in 0..24 {
                assert_eq!(layout.address_of(unit, offset), places[offset as usize]);
                assert!(
                    layout
                        .addresses_from(unit, offset)
                        .zip(&places[offset as usize..])
                        .all(|(one, other)| one == *other)
                );
            }
            assert_eq!(places.iter().map(|place| place.page.0).collect::<BTreeSet<_>>().len(), 24);
            for place in places {
                assert_eq!(geometry.address_of(place.page), place);
                assert_eq!(layout.unit_of(place.block), Some(unit));
            }
        }
    }
}
