//! The zone state machine: the state of every zone, and the commands allowed in it.
//!
//! ```text
//!            write            full, finish
//!  empty ────────────▶ implicitly open ──────▶ full
//!    │ open            │ open    ▲ write         ▲
//!    ▼                 ▼         │               │ full, finish
//!  explicitly open ◀───┘       closed ───────────┤
//!    └──────────── close ────────▲               │       reset: back to empty from all of these
//!    └───────────────────────────────────────────┘
//! ```
//!
//! Open and closed zones are active. If no more zones can be open, the zone that a write opened longest ago
//! is closed; a zone that the host opened explicitly stays open.
//!
//! **Source**: NVM Express Zoned Namespace Command Set Specification 1.1 (2.1.1, Zone State Machine; 3.3
//! and 3.4, Zone Append and Zone Management Send).
//! **Faithful**: states, changes of state, limits, status codes, and which of several codes takes precedence.
//! **Simplified**: zones neither wear out nor go offline; no zone descriptor extensions; no random write area
//! (ZRWA).
//! **Ambiguous**: which implicitly open zone a controller closes to open another: the one opened longest ago.

use std::collections::VecDeque;

use uflip_core::{Mode, ZoneState, ZoneStatus};

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
    use proptest::prelude::*;

    use super::*;

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
