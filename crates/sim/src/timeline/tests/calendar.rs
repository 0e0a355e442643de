//! Test of the calendar against a list that is sorted each time.

use super::super::calendar::{Calendar, EventKind};
use crate::flash::geometry::DieIdx;
use proptest::prelude::*;

/// An event as added: its time, and the die of a release or the number of another event.
type AddedEvent = (u64, Result<u32, u64>);

/// Return the next event: at equal times releases come first, by die; others in the order of
/// addition.
fn next_of(list: &mut Vec<AddedEvent>) -> AddedEvent {
    list.sort_by_key(|(at, added)| (*at, added.map_or((1, 0), |die| (0, die))));
    list.remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn calendar_orders_events_by_time_then_insertion(
        steps in prop::collection::vec((0u64..60, 0u32..5, 0u32..9, 0u32..4), 1..300),
        // Event distances such that few events, or most, are in the far list.
        scale in prop::sample::select(vec![1u64, 20_000, 60_000, 1_000_000]),
        busy in 1u32..5,
    ) {
        let (mut calendar, mut list) = (Calendar::default(), Vec::<AddedEvent>::new());
        calendar.set_event_budget(u64::MAX);
        for (number, (after, action, die, kind)) in (0..).zip(steps) {
            let dense = if die % 2 == 0 { after / 20 } else { after };
            let at = calendar.now + dense * scale;
            // A die has at most one pending release.
            let is_busy = list.iter().any(|(_, added)| *added == Ok(die));
            if kind == 0 && !is_busy {
                calendar.release(at, DieIdx(die));
                list.push((at, Ok(die)));
            } else {
                calendar.add_report(at, number);
                list.push((at, Err(number)));
            }
            match action {
                0 => {
                    // Save and restore it.
                    let bytes = postcard::to_allocvec(&calendar).expect("save the calendar");
                    calendar = postcard::from_bytes(&bytes).expect("restore the calendar");
                    calendar.set_event_budget(u64::MAX);
                }
                1 => {
                    if let Some(index) = list.iter().position(|(_, added)| added.is_ok()) {
                        let (_, die) = list.remove(index);
                        calendar.withdraw_release(DieIdx(die.expect("the event is a release")));
                    }
                }
                _ => {}
            }
            if action < busy && !list.is_empty() {
                let (at, added) = next_of(&mut list);
                prop_assert!(calendar.is_due(at) && (at == 0 || !calendar.is_due(at - 1)));
                let event = calendar.take(u64::MAX).expect("an event was just added");
                prop_assert_eq!(event.at, at);
                match event.kind::<u64>() {
                    EventKind::Report(token) => prop_assert_eq!(added, Err(token)),
                    EventKind::Release(die) => prop_assert_eq!(added, Ok(die.0)),
                    other => prop_assert!(false, "{:?} was not added", other),
                }
            }
        }
        while !list.is_empty() {
            let (at, _) = next_of(&mut list);
            prop_assert_eq!(calendar.take(u64::MAX).map(|event| event.at), Some(at));
        }
        prop_assert!(calendar.take(u64::MAX).is_none());
    }
}
