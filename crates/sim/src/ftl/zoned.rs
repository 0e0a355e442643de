//! Zones: no translation. The host writes zones in order and resets them as a whole, at fixed offsets of the
//! flash.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use uflip_core::{Mode, ZoneState, ZoneStatus};

use crate::flash::geometry::{BlockIdx, Geometry, Lpn, PageAddress, PlaneIdx};
use crate::keys::parameters;

/// Its name in the list of FTLs.
pub(crate) const ZONED: &str = "zoned";

// The layout of zones: their planes and blocks, and the address of each page.
//
// ```text
// dies_per_zone = 2, stripe_pages = 2      flash pages of the zone:  0 1 | 4 5 | …   on its first plane
//                                                                    2 3 | 6 7 | …   on its second
//
// 4 channels of 2 planes, 2 planes a zone      across_channels: zone 0 on channels 0 1, zone 1 on 2 3, …
//                                          within_channel:  zone 0 on both planes of channel 0, zone 1 of 1, …
// ```
//
// Consecutive zones are on different planes until all planes have one; then the next blocks of the planes
// follow. The map is therefore arithmetic, and a zone always keeps its blocks: it wears as often as it is
// reset.
//
// **Source**: zones as stripes of blocks over planes: Bjørling et al., ZNS: Avoiding the Block Interface Tax
// (USENIX ATC 2021) §2; differences between drives, large zones over all planes and small ones on few: Bae
// et al., What You Can't Forget: Exploiting Parallelism for Zoned Namespaces (HotStorage 2022).
// **Faithful**: pages of blocks in order, blocks of a zone erased together.
// **Simplified**: no block is exchanged, neither for wear nor for a failure.
// **Ambiguous**: how drives lay out zones over planes is not published: the parameters decide.

parameters! {
    /// The table `[zones]`.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct ZonesPart {
        zone_bytes: u64 = "the capacity of a zone or more; whole flash pages" in "bytes",
            "distance from the beginning of a zone to that of the next; addresses beyond the \
             zone's capacity hold no data, and read as unwritten";
        dies_per_zone: u32 = "a divisor of the number of dies (planes, where a die has several)",
            "dies of a zone; consecutive zones are on different dies until all dies have a zone";
        zone_blocks_per_die: u32 = "a divisor of the blocks of a die or plane" in "blocks",
            "erase blocks of a zone on each of its dies; a zone keeps them. It holds \
             `dies_per_zone` × `zone_blocks_per_die` blocks";
        zone_dies: ZoneDies = "`across_channels`, `within_channel`",
            "whether the dies of a zone are on as many channels as possible, or on as few";
        stripe_pages: u32 = "a divisor of the pages that a zone has on a die" in "pages",
            "consecutive flash pages on a die of a zone before the next die";
        max_open_zones: u32 =
            "0 or more, at most `max_active_zones` where that is not 0" in "zones",
            "zones that can be open at a time; 0: all of them. At the limit the zone that was \
             implicitly opened longest ago is closed";
        max_active_zones: u32 = "0 or more" in "zones",
            "zones that can be open or closed at a time; 0: all of them";
        finish_pads: bool = "`true`, `false`",
            "finishing a zone programs the rest of its flash with padding; otherwise only the \
             rest of a partly filled flash page";
    }
}

/// The planes of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ZoneDies {
    /// On as many channels as possible.
    AcrossChannels,
    /// On as few channels as possible.
    WithinChannel,
}

/// The layout of zones, in pages as the map counts them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Layout")]
pub(crate) struct ZoneLayout {
    geometry: Geometry,
    part: ZonesPart,
    /// Pages from zone to zone, and data pages of each.
    size: u32,
    capacity: u32,
    zones: u32,
    /// Number of zones side by side, which share no plane.
    groups: u32,
    /// Flash pages of a block.
    flash_pages: u32,
}

impl ZoneLayout {
    /// Create the layout for a checked geometry and table. Ignores the logical pages of the geometry.
    pub(crate) fn new(geometry: Geometry, part: ZonesPart) -> ZoneLayout {
        let shape = geometry.shape();
        let groups = shape.planes / part.dies_per_zone;
        let blocks = part.dies_per_zone * part.zone_blocks_per_die;
        ZoneLayout {
            geometry,
            part,
            size: (part.zone_bytes / u64::from(shape.page_bytes)) as u32,
            capacity: blocks * shape.pages_per_block,
            zones: groups * (shape.blocks_per_plane / part.zone_blocks_per_die),
            groups,
            flash_pages: shape.pages_per_block / geometry.units(),
        }
    }

    pub(crate) fn part(&self) -> &ZonesPart {
        &self.part
    }

    pub(crate) fn zones(&self) -> u32 {
        self.zones
    }

    /// Return the pages that the host can address, including the unused ones between zones.
    pub(crate) fn logical_pages(&self) -> u64 {
        u64::from(self.zones) * u64::from(self.size)
    }

    /// Return the pages from the beginning of a zone to that of the next.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Return the pages that a zone can hold.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Return the pages that make a flash page.
    pub(crate) fn units(&self) -> u32 {
        self.geometry.units()
    }

    /// Return the zone of a page, and its number there.
    #[inline]
    pub(crate) fn zone_of(&self, page: Lpn) -> (u32, u32) {
        (page.0 / self.size, page.0 % self.size)
    }

    /// Return the plane with index `number` of the zone.
    fn plane(&self, zone: u32, number: u32) -> PlaneIdx {
        let first_plane = zone % self.groups * self.part.dies_per_zone + number;
        let shape = self.geometry.shape();
        match self.part.zone_dies {
            // Planes are counted channels first.
            ZoneDies::AcrossChannels => PlaneIdx(first_plane),
            ZoneDies::WithinChannel => {
                let of_channel = shape.planes / shape.channels;
                PlaneIdx(first_plane % of_channel * shape.channels + first_plane / of_channel)
            }
        }
    }

    /// Return the block with index `number` of the zone on one of its planes.
    fn block(&self, zone: u32, plane: u32, number: u32) -> BlockIdx {
        let row = zone / self.groups * self.part.zone_blocks_per_die + number;
        BlockIdx(self.plane(zone, plane).0 * self.geometry.shape().blocks_per_plane + row)
    }

    /// Return every block of the zone.
    pub(crate) fn blocks(&self, zone: u32) -> impl Iterator<Item = BlockIdx> + use<'_> {
        (0..self.part.dies_per_zone).flat_map(move |plane| {
            (0..self.part.zone_blocks_per_die).map(move |number| self.block(zone, plane, number))
        })
    }

    /// Return the page up to which finishing pads a zone with `written` pages.
    pub(crate) fn finished(&self, written: u32) -> u32 {
        if self.part.finish_pads { self.capacity() } else { written.next_multiple_of(self.units()) }
    }

    /// Return the address of page `page` of a zone.
    #[inline]
    pub(crate) fn address_of(&self, zone: u32, page: u32) -> PageAddress {
        let units = self.geometry.units();
        let (flash_page, unit) = (page / units, page % units);
        let (stripe, within) =
            (flash_page / self.part.stripe_pages, flash_page % self.part.stripe_pages);
        let (turn, plane) = (stripe / self.part.dies_per_zone, stripe % self.part.dies_per_zone);
        let on_plane = turn * self.part.stripe_pages + within;
        let block = self.block(zone, plane, on_plane / self.flash_pages);
        self.geometry.address_at(block, on_plane % self.flash_pages * units + unit)
    }
}

// The zone state machine: the state of every zone, and the commands allowed in it.
//
// ```text
//            write            full, finish
//  empty ────────────▶ implicitly open ──────▶ full
//    │ open            │ open    ▲ write         ▲
//    ▼                 ▼         │               │ full, finish
//  explicitly open ◀───┘       closed ───────────┤
//    └──────────── close ────────▲               │       reset: back to empty from all of these
//    └───────────────────────────────────────────┘
// ```
//
// Open and closed zones are active. If no more zones can be open, the zone that a write opened longest ago
// is closed; a zone that the host opened explicitly stays open.
//
// **Source**: NVM Express Zoned Namespace Command Set Specification 1.1 (2.1.1, Zone State Machine; 3.3
// and 3.4, Zone Append and Zone Management Send).
// **Faithful**: states, changes of state, limits, status codes, and which of several codes takes precedence.
// **Simplified**: zones neither wear out nor go offline; no zone descriptor extensions; no random write area
// (ZRWA).
// **Ambiguous**: which implicitly open zone a controller closes to open another: the one opened longest ago.

/// One zone: its state, and its number of written pages.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Entry")]
struct ZoneEntry {
    state: ZoneState,
    pointer: u32,
}

/// The states of all zones.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ZoneStates {
    zones: Vec<ZoneEntry>,
    /// Pages of a zone.
    capacity: u32,
    /// Maximum number of open and of active zones; 0: no limit.
    max_open: u32,
    max_active: u32,
    open: u32,
    active: u32,
    /// Implicitly open zones, in the order in which they were opened.
    implicit: VecDeque<u32>,
}

impl ZoneStates {
    pub(crate) fn new(zones: u32, capacity: u32, max_open: u32, max_active: u32) -> ZoneStates {
        let empty = ZoneEntry { state: ZoneState::Empty, pointer: 0 };
        ZoneStates {
            zones: vec![empty; zones as usize],
            capacity,
            max_open,
            max_active,
            open: 0,
            active: 0,
            implicit: VecDeque::new(),
        }
    }

    pub(crate) fn state(&self, zone: u32) -> ZoneState {
        self.zones[zone as usize].state
    }

    /// Return the write pointer of the zone.
    pub(crate) fn pointer(&self, zone: u32) -> u32 {
        self.zones[zone as usize].pointer
    }

    /// Write `pages` to the zone, at `at` or at its write pointer; returns where they go.
    ///
    /// # Errors
    /// The status code of the standard if they cannot be written. No state has changed then.
    pub(crate) fn write(
        &mut self,
        zone: u32,
        at: Option<u32>,
        pages: u32,
    ) -> Result<u32, ZoneStatus> {
        let ZoneEntry { state, pointer } = self.zones[zone as usize];
        match state {
            ZoneState::Full => return Err(ZoneStatus::Full),
            ZoneState::ReadOnly => return Err(ZoneStatus::ReadOnly),
            ZoneState::Offline => return Err(ZoneStatus::Offline),
            _ => {}
        }
        if at.is_some_and(|at| at != pointer) {
            return Err(ZoneStatus::InvalidWrite);
        }
        if pages > self.capacity - pointer {
            return Err(ZoneStatus::BoundaryError);
        }
        if !state.is_open() {
            self.close_for_limit(!state.is_active())?;
            self.enter(zone, ZoneState::ImplicitlyOpen);
        }
        self.zones[zone as usize].pointer += pages;
        if pointer + pages == self.capacity {
            self.enter(zone, ZoneState::Full);
        }
        Ok(pointer)
    }

    /// Set the zone offline, as the standard calls it: its flash cannot be erased any more.
    pub(crate) fn lose(&mut self, zone: u32) {
        self.enter(zone, ZoneState::Offline);
    }

    /// Reset, finish, open or close the zone.
    ///
    /// # Errors
    /// The status code of the standard if its state does not allow that. No state has changed then.
    pub(crate) fn manage(&mut self, zone: u32, mode: Mode) -> Result<(), ZoneStatus> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly};
        let state = self.state(zone);
        let next = match (mode, state) {
            (_, ReadOnly | Offline) => return Err(ZoneStatus::InvalidTransition),
            (Mode::Reset, _) => Empty,
            (Mode::Finish, _) => Full,
            (Mode::Open, Empty | Closed) => {
                self.close_for_limit(state == Empty)?;
                ExplicitlyOpen
            }
            (Mode::Open, ImplicitlyOpen | ExplicitlyOpen) => ExplicitlyOpen,
            (Mode::Close, ImplicitlyOpen | ExplicitlyOpen | Closed) => Closed,
            _ => return Err(ZoneStatus::InvalidTransition),
        };
        self.enter(zone, next);
        match next {
            Empty => self.zones[zone as usize].pointer = 0,
            Full => self.zones[zone as usize].pointer = self.capacity,
            _ => {}
        }
        Ok(())
    }

    /// Check the limits before a zone is opened; `activated` if it was not active before. Closes an
    /// implicitly open zone if necessary.
    fn close_for_limit(&mut self, activated: bool) -> Result<(), ZoneStatus> {
        if activated && self.max_active > 0 && self.active == self.max_active {
            return Err(ZoneStatus::TooManyActive);
        }
        if self.max_open > 0 && self.open == self.max_open {
            let oldest = self.implicit.front().copied().ok_or(ZoneStatus::TooManyOpen)?;
            self.enter(oldest, ZoneState::Closed);
        }
        Ok(())
    }

    /// Set the state of the zone.
    fn enter(&mut self, zone: u32, next: ZoneState) {
        let before = std::mem::replace(&mut self.zones[zone as usize].state, next);
        if before == next {
            return;
        }
        if before == ZoneState::ImplicitlyOpen {
            self.implicit.retain(|other| *other != zone);
        }
        if next == ZoneState::ImplicitlyOpen {
            self.implicit.push_back(zone);
        }
        self.open = self.open - u32::from(before.is_open()) + u32::from(next.is_open());
        self.active = self.active - u32::from(before.is_active()) + u32::from(next.is_active());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::flash::geometry::Shape;

    fn layout(part: ZonesPart, units: u32) -> ZoneLayout {
        let geometry = Geometry::from(Shape {
            channels: 4,
            planes: 8,
            blocks_per_plane: 6,
            pages_per_block: 4 * units,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 0,
        });
        ZoneLayout::new(geometry.with_units(units), part)
    }

    const PART: ZonesPart = ZonesPart {
        zone_bytes: 1 << 20,
        dies_per_zone: 2,
        zone_blocks_per_die: 2,
        zone_dies: ZoneDies::AcrossChannels,
        stripe_pages: 1,
        max_open_zones: 0,
        max_active_zones: 0,
        finish_pads: true,
    };

    #[test]
    fn zone_layout_is_injective_and_in_order() {
        for (dies_per_zone, blocks) in [(1, 1), (2, 2), (4, 3), (8, 6), (8, 1)] {
            for stripe_pages in [1, 2, 4] {
                for units in [1, 4] {
                    for zone_dies in [ZoneDies::AcrossChannels, ZoneDies::WithinChannel] {
                        let zone_blocks_per_die = blocks;
                        let part = ZonesPart {
                            dies_per_zone,
                            zone_blocks_per_die,
                            zone_dies,
                            stripe_pages,
                            ..PART
                        };
                        all_of(&layout(part, units));
                    }
                }
            }
        }
    }

    fn all_of(layout: &ZoneLayout) {
        let mut addresses = BTreeSet::new();
        for zone in 0..layout.zones() {
            let zone_blocks: BTreeSet<u32> = layout.blocks(zone).map(|block| block.0).collect();
            let mut next = std::collections::BTreeMap::new();
            for page in 0..layout.capacity() {
                let address = layout.address_of(zone, page);
                assert!(addresses.insert(address.page), "{address:?} twice");
                assert!(zone_blocks.contains(&address.block.0));
                let expected = next.entry(address.block).or_insert(0);
                assert_eq!(layout.geometry.page_in_block(address), *expected, "in order");
                *expected += 1;
            }
        }
        assert_eq!(
            addresses.len() as u32,
            layout.geometry.pages(),
            "every block belongs to a zone"
        );
    }

    #[test]
    fn zone_dies_select_planes() {
        let channels = |zone_dies, zone| {
            let layout = layout(ZonesPart { zone_dies, ..PART }, 1);
            let channel = |page| layout.geometry.channel_of(layout.address_of(zone, page).plane);
            (channel(0), channel(1))
        };
        assert_eq!(channels(ZoneDies::AcrossChannels, 0), (0, 1));
        assert_eq!(channels(ZoneDies::AcrossChannels, 1), (2, 3));
        assert_eq!(
            channels(ZoneDies::AcrossChannels, 2),
            (0, 1),
            "the other dies of these channels"
        );
        assert_eq!(channels(ZoneDies::WithinChannel, 0), (0, 0));
        assert_eq!(channels(ZoneDies::WithinChannel, 3), (3, 3));
        assert_eq!(
            channels(ZoneDies::WithinChannel, 4),
            (0, 0),
            "the next blocks of the same dies"
        );
    }

    #[test]
    fn stripe_pages_are_consecutive_on_plane() {
        let layout = layout(ZonesPart { stripe_pages: 2, ..PART }, 4);
        let planes: Vec<u32> = (0..8).map(|page| layout.address_of(0, 4 * page).plane.0).collect();
        assert_eq!(planes, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(
            layout.address_of(0, 0).plane,
            layout.address_of(0, 3).plane,
            "units of a flash page"
        );
    }

    #[test]
    fn zone_transitions_match_standard() {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let wrong = Err(ZoneStatus::InvalidTransition);
        // Empty, implicitly open, explicitly open, closed, full: the next state (2.1.1.4 of the standard).
        let table = [
            (
                Mode::Open,
                [
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    Ok(ExplicitlyOpen),
                    wrong,
                ],
            ),
            (Mode::Close, [wrong, Ok(Closed), Ok(Closed), Ok(Closed), wrong]),
            (Mode::Finish, [Ok(Full); 5]),
            (Mode::Reset, [Ok(Empty); 5]),
        ];
        let states = [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full];
        for (mode, outcomes) in table {
            for (state, expected) in states.into_iter().zip(outcomes) {
                let mut book = ZoneStates::new(4, 10, 2, 3);
                let reach: &[Mode] = match state {
                    ExplicitlyOpen => &[Mode::Open],
                    Closed => &[Mode::Open, Mode::Close],
                    Full => &[Mode::Finish],
                    _ => &[],
                };
                reach.iter().for_each(|mode| book.manage(0, *mode).unwrap());
                if state == ImplicitlyOpen {
                    assert_eq!(book.write(0, Some(0), 3), Ok(0));
                }
                assert_eq!(book.state(0), state);
                let got = book.manage(0, mode).map(|()| book.state(0));
                assert_eq!(got, expected, "{mode:?} of a zone in state {state:?}");
                if got == Ok(Empty) {
                    assert_eq!(book.pointer(0), 0);
                }
            }
        }
    }

    #[test]
    fn refused_zone_write_changes_nothing() {
        let mut book = ZoneStates::new(2, 10, 0, 0);
        assert_eq!(book.write(0, Some(1), 1), Err(ZoneStatus::InvalidWrite));
        assert_eq!(book.write(0, Some(0), 11), Err(ZoneStatus::BoundaryError));
        assert_eq!((book.state(0), book.pointer(0)), (ZoneState::Empty, 0));
        assert_eq!(book.write(0, None, 4), Ok(0));
        assert_eq!(book.write(0, None, 7), Err(ZoneStatus::BoundaryError));
        assert_eq!(book.write(0, Some(4), 6), Ok(4));
        assert_eq!(book.state(0), ZoneState::Full);
        assert_eq!(book.write(0, None, 1), Err(ZoneStatus::Full));
    }

    #[test]
    fn zone_limit_closes_first_opened_zone() {
        let mut book = ZoneStates::new(6, 10, 2, 3);
        assert_eq!((book.write(0, None, 1), book.write(1, None, 1)), (Ok(0), Ok(0)));
        assert_eq!(book.write(2, None, 1), Ok(0));
        let states = |book: &ZoneStates| (0..4).map(|zone| book.state(zone)).collect::<Vec<_>>();
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        assert_eq!(states(&book), [Closed, ImplicitlyOpen, ImplicitlyOpen, Empty]);
        assert_eq!(book.write(3, None, 1), Err(ZoneStatus::TooManyActive));
        assert_eq!(book.manage(3, Mode::Open), Err(ZoneStatus::TooManyActive));
        // A zone that the host opened explicitly is not closed.
        assert_eq!((book.manage(0, Mode::Open), book.manage(1, Mode::Open)), (Ok(()), Ok(())));
        assert_eq!(states(&book), [ExplicitlyOpen, ExplicitlyOpen, Closed, Empty]);
        assert_eq!(book.write(2, None, 1), Err(ZoneStatus::TooManyOpen));
        assert_eq!(book.manage(0, Mode::Finish), Ok(()));
        assert_eq!(book.write(3, None, 1), Ok(0), "a full zone is not open");
    }

    /// A reference: a list of states that is searched each time.
    #[derive(Default)]
    struct NaiveZones {
        zones: Vec<(ZoneState, u32)>,
        opened: Vec<u32>,
    }

    impl NaiveZones {
        fn count(&self, is: impl Fn(ZoneState) -> bool) -> usize {
            self.zones.iter().filter(|(state, _)| is(*state)).count()
        }
    }

    proptest! {
        #[test]
        fn zone_states_match_list_model(commands in proptest::collection::vec((0u32..5, 0u8..6, 1u32..5), 1..200)) {
            let (mut states, mut naive) = (ZoneStates::new(5, 8, 2, 3), NaiveZones::default());
            naive.zones = vec![(ZoneState::Empty, 0); 5];
            for (zone, command, pages) in commands {
                let (state, pointer) = naive.zones[zone as usize];
                let modes = [Mode::Reset, Mode::Finish, Mode::Open, Mode::Close];
                let done = match modes.get(usize::from(command)) {
                    Some(mode) => states.manage(zone, *mode).is_ok(),
                    None => states.write(zone, (command == 4).then_some(pointer), pages).is_ok(),
                };
                if done {
                    let next = match modes.get(usize::from(command)) {
                        Some(Mode::Reset) => (ZoneState::Empty, 0),
                        Some(Mode::Finish) => (ZoneState::Full, 8),
                        Some(Mode::Open) => (ZoneState::ExplicitlyOpen, pointer),
                        Some(_) => (ZoneState::Closed, pointer),
                        None if pointer + pages == 8 => (ZoneState::Full, 8),
                        None if state.is_open() => (state, pointer + pages),
                        None => (ZoneState::ImplicitlyOpen, pointer + pages),
                    };
                    let opens = !state.is_open() && (modes.get(usize::from(command)) == Some(&Mode::Open) || command > 3);
                    if opens && naive.count(ZoneState::is_open) == 2 {
                        let first = naive.opened.iter().position(|zone| naive.zones[*zone as usize].0 == ZoneState::ImplicitlyOpen);
                        let first = naive.opened.remove(first.unwrap());
                        naive.zones[first as usize].0 = ZoneState::Closed;
                    }
                    naive.zones[zone as usize] = next;
                    naive.opened.retain(|other| *other != zone || state.is_open() && next.0.is_open());
                    if next.0.is_open() && !state.is_open() {
                        naive.opened.push(zone);
                    }
                }
                for (zone, (state, pointer)) in (0..).zip(&naive.zones) {
                    prop_assert_eq!((states.state(zone), states.pointer(zone)), (*state, *pointer));
                }
                prop_assert!(naive.count(ZoneState::is_open) <= 2);
                prop_assert!(naive.count(ZoneState::is_active) <= 3);
                prop_assert_eq!(states.open as usize, naive.count(ZoneState::is_open));
                prop_assert_eq!(states.active as usize, naive.count(ZoneState::is_active));
            }
        }
    }
}
