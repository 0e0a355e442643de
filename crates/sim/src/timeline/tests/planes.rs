//! Rates of multi-plane operations, compared with the duration of one command.

use super::super::{MultiPlane, Op, Purpose, Report, Timeline, Timing};
use crate::flash::geometry::{BlockIdx, DieIdx, Geometry, PageAddress, PlaneIdx, Ppn, Shape};

const READ: u64 = 50_000;
const PROGRAM: u64 = 600_000;
const ERASE: u64 = 3_000_000;
const TRANSFER: u64 = 20_000;
const ROWS: u32 = 8;

/// Create one die with `planes` planes that have one block and page per row.
fn die(planes: u32, multi_plane: MultiPlane) -> Timeline<u64> {
    let shape = Shape {
        channels: 1,
        planes,
        blocks_per_plane: ROWS,
        pages_per_block: ROWS,
        metadata_pages: 0,
        page_bytes: 4096,
        logical_pages: 1,
    };
    let geometry = Geometry::from(shape).with_planes_in_step(planes);
    let (transfer_ns, link_bytes_per_s) = (TRANSFER, 1_000_000_000);
    let timing = Timing { transfer_ns, link_bytes_per_s, multi_plane, ..Timing::default() };
    let mut timeline = Timeline::new(geometry, timing);
    timeline.set_event_budget(u64::MAX);
    timeline
}

/// The only die.
const DIE: DieIdx = DieIdx(0);

/// Return the address of page `page` of block `block` of a plane.
fn at(plane: u32, block: u32, page: u32) -> PageAddress {
    let block_number = plane * ROWS + block;
    let page_number = Ppn(block_number * ROWS + page);
    PageAddress { page: page_number, block: BlockIdx(block_number), plane: PlaneIdx(plane) }
}

/// Return the end of all issued operations.
fn end(timeline: &mut Timeline<u64>) -> u64 {
    std::iter::from_fn(|| timeline.next(u64::MAX)).map(|(at, _)| at).max().unwrap()
}

/// Issue operations on rows of planes, page by page; return the end of all.
fn rows(planes: u32, rule: MultiPlane, op: impl Fn(DieIdx) -> Op<u64>) -> u64 {
    let mut timeline = die(planes, rule);
    for (row, plane) in (0..ROWS).flat_map(|row| (0..planes).map(move |plane| (row, plane))) {
        let op = Op { report: Report::AtEnd, ..op(DIE) };
        timeline.issue(0, op.on(at(plane, 1, row)));
    }
    end(&mut timeline)
}

const RULES: [MultiPlane; 3] = [MultiPlane::AnyPage, MultiPlane::SamePage, MultiPlane::SameBlock];

#[test]
fn multi_plane_op_shares_cell_time() {
    let n = u64::from(ROWS);
    for planes in [2, 4] {
        let transfers = u64::from(planes) * TRANSFER;
        let program = |die| Op::program(die, PROGRAM, Purpose::HostWrite, 0);
        let read = |die| Op::read(die, READ, Purpose::HostRead, 0);
        let erase = |die| Op::inside(die, ERASE, Purpose::Erase, 0);
        for rule in RULES {
            assert_eq!(rows(planes, rule, program), n * (transfers + PROGRAM), "{rule:?}");
            assert_eq!(rows(planes, rule, read), n * (READ + transfers), "{rule:?}");
            assert_eq!(rows(planes, rule, erase), n * ERASE, "{rule:?}");
        }
        let single_ops = n * u64::from(planes);
        let none = MultiPlane::None;
        assert_eq!(rows(planes, none, program), single_ops * (TRANSFER + PROGRAM));
        assert_eq!(rows(planes, none, read), single_ops * (READ + TRANSFER));
        assert_eq!(rows(planes, none, erase), single_ops * ERASE);
    }
}

#[test]
fn copy_back_uses_all_planes() {
    for (planes, rule) in [(2, RULES[0]), (4, RULES[1]), (3, RULES[2])] {
        let mut timeline = die(planes, rule);
        for (row, plane) in (0..ROWS).flat_map(|row| (0..planes).map(move |plane| (row, plane))) {
            let read = Op::inside(DIE, READ, Purpose::Relocation, 0).on(at(plane, 0, row));
            let program = Op::program(DIE, PROGRAM, Purpose::Relocation, 0).without_transfer();
            let program = Op { report: Report::AtEnd, ..program.on(at(plane, 1, row)) };
            timeline.issue_after(0, &[read], program);
        }
        assert_eq!(end(&mut timeline), u64::from(ROWS) * (READ + PROGRAM));
    }
}

/// The second of two planes has another page or block. Expect the time of one read if one command
/// reads both.
#[test]
fn multi_plane_addresses_follow_chip_rule() {
    let reads = |rule, block, page| {
        let mut timeline = die(2, rule);
        timeline.issue(0, Op::read(DIE, READ, Purpose::HostRead, 0).on(at(0, 2, 3)));
        timeline.issue(0, Op::read(DIE, READ, Purpose::HostRead, 0).on(at(1, block, page)));
        end(&mut timeline)
    };
    let (one, two) = (READ + 2 * TRANSFER, 2 * (READ + TRANSFER));
    for (rule, other_page, other_block) in
        [(RULES[0], one, one), (RULES[1], two, one), (RULES[2], two, two)]
    {
        assert_eq!(reads(rule, 2, 3), one, "{rule:?}");
        assert_eq!(reads(rule, 2, 4), other_page, "{rule:?}");
        assert_eq!(reads(rule, 5, 3), other_block, "{rule:?}");
    }
}

/// Programs of one plane keep their order, whatever another plane could do earlier.
#[test]
fn multi_plane_keeps_order_within_plane() {
    let mut timeline = die(2, MultiPlane::SamePage);
    let program = |plane: u32, page: u32| {
        let token = u64::from(page);
        let op = Op::program(DIE, PROGRAM, Purpose::HostWrite, token);
        Op { report: Report::AtEnd, ..op.on(at(plane, 1, page)) }
    };
    // Page 5 would match the first plane, but page 4 of its own plane comes first.
    for op in [program(0, 5), program(1, 4), program(1, 5)] {
        timeline.issue(0, op);
    }
    let ends: Vec<_> = std::iter::from_fn(|| timeline.next(u64::MAX)).collect();
    let program_ns = TRANSFER + PROGRAM;
    assert_eq!(ends, [(program_ns, 5), (2 * program_ns, 4), (3 * program_ns, 5)]);
}

/// A copy without duration inside the die is over at once, and the program behind it is on its way
/// to the die. A copy for the other plane then waits, because it is no page of this program.
#[test]
fn zero_time_op_frees_die_for_next_program() {
    for rule in RULES {
        let mut timeline = die(2, rule);
        let copy = |plane, token| {
            let op = Op::inside(DIE, 0, Purpose::Relocation, token);
            Op { report: Report::AtEnd, ..op.on(at(plane, 0, 0)) }
        };
        let program = |page, token| {
            let op = Op::program(DIE, PROGRAM, Purpose::HostWrite, token);
            Op { report: Report::AtEnd, ..op.on(at(0, 1, page)) }
        };
        for op in [program(0, 0), copy(0, 1), program(1, 2)] {
            timeline.issue(0, op);
        }
        let once = TRANSFER + PROGRAM;
        timeline.issue_when(once + TRANSFER / 2, 0, copy(1, 3));
        // A stuck die reports nothing more; an endless loop exceeds the event budget.
        timeline.set_event_budget(100);
        let mut ends: Vec<_> = std::iter::from_fn(|| timeline.next(u64::MAX)).collect();
        ends.sort_unstable();
        assert_eq!(ends, [(once, 0), (once, 1), (2 * once, 2), (2 * once, 3)], "{rule:?}");
    }
}
