//! Who waits for whom, and what that is charged to.

use super::*;
use crate::flash::geometry::Shape;
use crate::timeline::breakdown::SimBreakdown;
use uflip_core::Breakdown;

/// A controller of which only the dies take time.
fn dies_alone(planes_in_step: u32) -> Clocks {
    let geometry = Geometry::from(Shape {
        channels: 1,
        dies: 2,
        blocks_per_die: 4,
        pages_per_block: 8,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: 40,
    });
    let (read_ns, program_ns, program_high_ns) = (10, 100, 300);
    let timing = Timing { read_ns, program_ns, program_high_ns, ..Timing::default() };
    Clocks::new(geometry.with_planes_in_step(planes_in_step), timing)
}

#[test]
fn the_planes_of_a_die_copy_one_after_the_other_unless_they_work_on_their_own() {
    let (low, high) = (2, 1);
    let block = low * (10 + 100) + high * (10 + 300);
    for (planes_in_step, both) in [(1, block), (2, 2 * block)] {
        let mut clocks = dies_alone(planes_in_step);
        let ends = [0, 1].map(|plane| clocks.copy_many(DieIdx(plane), DieIdx(plane), low, high, 0));
        assert_eq!(ends, [block, both], "{planes_in_step} planes in step");
        // What follows on the die waits for both, whichever plane it is on.
        let next = clocks.erase(DieIdx(0), 0);
        assert_eq!(next, both + clocks.timing.erase_ns);
    }
}

#[test]
fn pages_copied_as_one_end_when_they_would_one_by_one() {
    for planes_in_step in [1, 2] {
        for plane in [0, 1] {
            let (mut as_one, mut one_by_one) =
                (dies_alone(planes_in_step), dies_alone(planes_in_step));
            let die = DieIdx(plane);
            let other = DieIdx(1 - plane);
            let busy = |clocks: &mut Clocks| clocks.copy(other, other, false, 0);
            assert_eq!(busy(&mut as_one), busy(&mut one_by_one));
            let ends = [false, true, false].map(|high| one_by_one.copy(die, die, high, 5));
            assert_eq!(Some(as_one.copy_many(die, die, 2, 1, 5)), ends.into_iter().max());
        }
    }
}

#[test]
fn waiting_is_charged_to_whom_the_die_works_for() {
    let mut die = Die::idle();
    die.occupy(0, 0, 100, Purpose::Merge);
    die.occupy(0, 100, 150, Purpose::Erase);
    die.occupy(0, 150, 160, Purpose::Host);
    die.occupy(0, 170, 175, Purpose::Metadata);
    let mut path = SimBreakdown::default();
    assert_eq!(die.wait(0, 40, &mut path), 175);
    let part = |name| path.parts()[SimBreakdown::CAUSES.iter().position(|n| *n == name).unwrap()];
    assert_eq!((part("merge_ns"), part("erase_ns"), part("metadata_ns")), (60, 50, 5));
    assert_eq!(part("die_wait_ns"), 10 + 10, "the host's work and the gap before the metadata");
}
