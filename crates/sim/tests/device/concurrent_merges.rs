//! Concurrency of merges with host I/Os: dies that a merge does not need serve the host, and so do
//! dies that it waits for. Times are computed by hand.

use uflip_core::{Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{
    COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, run_alone, with_ftl,
};

const PAGES: u64 = 16;
/// Time of a page move of a merge, between two blocks of one die.
const MOVE: u64 = READ + TRANSFER + TRANSFER + PROGRAM;

/// Create a full device of `dies` dies, each on its own channel; block n is on die n mod `dies`.
fn block_map(dies: u32, overrides: &str) -> SimDevice {
    let text = with_ftl("block_map", &profile(dies, 1, "sequential"));
    SimDevice::new("test", Profile::parse(&text, "test", overrides).unwrap()).unwrap()
}

fn write(block: u64) -> Io {
    io(Mode::Write, block * PAGES, 1)
}

fn read(block: u64) -> Io {
    io(Mode::Read, block * PAGES + 1, 1)
}

/// Submit all of `ios` at once; return response time and parts of each, in that order.
fn run_concurrently(device: &mut SimDevice, ios: &[Io]) -> Vec<(u64, Vec<u64>)> {
    let tickets: Vec<_> = ios.iter().map(|io| device.submit(io).unwrap()).collect();
    let mut done = vec![(0, Vec::new()); ios.len()];
    for _ in ios {
        let completion = device.complete().unwrap();
        let index = tickets.iter().position(|ticket| *ticket == completion.ticket).unwrap();
        let response = (completion.completed - completion.submitted).0;
        done[index] = (response, device_parts(&completion.breakdown));
    }
    done
}

fn device_parts(breakdown: &uflip_sim::SimBreakdown) -> Vec<u64> {
    use uflip_core::Breakdown as _;
    breakdown.parts().to_vec()
}

/// Time of a write that merges a block: its other pages move, then it is programmed, then the old
/// block is erased.
const MERGE: u64 = COMMAND + LINK + (PAGES - 1) * MOVE + TRANSFER + PROGRAM + ERASE;

#[test]
fn merge_time_is_sum_of_steps() {
    let mut device = block_map(2, "{}");
    let (response, parts) = run_alone(&mut device, write(0));
    assert_eq!(response, MERGE);
    assert_eq!(part(&parts, "merge_ns"), (PAGES - 1) * MOVE);
    assert_eq!(part(&parts, "erase_ns"), ERASE);
    assert_eq!(part(&parts, "cell_program_ns"), PROGRAM);
}

#[test]
fn read_during_merge_waits_for_its_die() {
    let mut device = block_map(2, "{}");
    let (alone_ns, _) = run_alone(&mut device, read(1));
    assert_eq!(alone_ns, COMMAND + READ + TRANSFER + LINK);
    // The first write merges on die 0. The second, to die 1, waits for the merge; nothing is
    // reserved for it there.
    let done = run_concurrently(&mut device, &[write(0), write(1), read(3)]);
    assert_eq!(done[0].0, MERGE);
    // The third command is processed after the two others.
    assert_eq!(done[2].0, 2 * COMMAND + alone_ns);
    // The firmware merges one block after the other; the second write waits for that.
    assert_eq!(done[1].0, 2 * MERGE - COMMAND - LINK);
    assert_eq!(part(&done[1].1, "merge_ns"), MERGE - 2 * COMMAND - LINK + (PAGES - 1) * MOVE);
}

#[test]
fn merges_of_different_blocks_run_concurrently() {
    let run_on_new_device = |ios: &[Io]| {
        let mut device = block_map(2, r#"{"merges_side_by_side": 2}"#);
        let done = run_concurrently(&mut device, ios);
        let times: Vec<u64> = done.iter().map(|(response, _)| *response).collect();
        (times, device.counters().unwrap())
    };
    // On different dies. The second command is processed after the first.
    let (separate, counters) = run_on_new_device(&[write(0), write(1)]);
    assert_eq!(separate, [MERGE, COMMAND + MERGE]);
    // The third waits for the first, and then has its die to itself.
    let (third, _) = run_on_new_device(&[write(0), write(1), write(2)]);
    assert_eq!(third[..2], separate);
    assert_eq!(third[2], 2 * MERGE - COMMAND - LINK);
    // On one die they alternate: together they take as long as one after the other, and both end
    // late.
    let (together, same) = run_on_new_device(&[write(0), write(2)]);
    assert_eq!(*together.iter().max().unwrap(), 2 * MERGE - COMMAND - LINK);
    assert!(
        together.iter().all(|response| *response > 2 * MERGE - 2 * (MOVE + ERASE)),
        "{together:?}"
    );
    assert_eq!(same, counters, "the flash operations are the same");
    // The second write of a page merges the block that the first one fills, and waits for it.
    let (again, _) = run_on_new_device(&[write(0), write(0)]);
    assert_eq!(again, [MERGE, 2 * MERGE - COMMAND - LINK]);
}

#[test]
fn read_waits_for_one_merge_page() {
    let mut device = block_map(2, "{}");
    let done = run_concurrently(&mut device, &[write(0), read(2)]);
    // It arrives while the first page is read, and is next after that.
    let waited = LINK + READ + TRANSFER - COMMAND;
    assert_eq!(done[1].0, 2 * COMMAND + waited + READ + TRANSFER + LINK);
    assert_eq!(part(&done[1].1, "merge_ns"), waited);
    assert_eq!(done[0].0, MERGE + READ + TRANSFER, "the merge waits for the read");
}

#[test]
fn processor_interleaves_commands_with_merge_planning() {
    let relocate = 1_000_000;
    let mut device = block_map(2, &format!(r#"{{"relocate_ns": {relocate}}}"#));
    // A page moves while the processor plans the next.
    let (merge, _) = run_alone(&mut device, write(0));
    assert_eq!(merge, MERGE + (PAGES - 1) * (relocate - MOVE) + MOVE);
    device.wait_until(device.now() + Nanos(1_000_000_000));
    let done = run_concurrently(&mut device, &[write(0), read(3)]);
    assert_eq!(
        done[1].0,
        2 * COMMAND + READ + TRANSFER + LINK,
        "the command is accepted before any page"
    );
    let begun = device.submit(&write(0)).unwrap();
    device.wait_until(device.now() + Nanos(COMMAND + LINK + 1));
    device.submit(&read(3)).unwrap();
    let completion = device.complete().unwrap();
    assert_ne!(completion.ticket, begun);
    // The processor plans the first page; the command is next, before the second.
    let response = (completion.completed - completion.submitted).0;
    assert_eq!(response, relocate - 1 + COMMAND + READ + TRANSFER + LINK);
}

#[test]
fn reads_first_overtakes_next_merge_page() {
    let response = |queue: &str| {
        let mut device = block_map(2, &format!(r#"{{"die_queue": "{queue}"}}"#));
        device.submit(&write(0)).unwrap();
        // The first page is programmed, and the read of the second waits for that.
        device.wait_until(device.now() + Nanos(200_000));
        device.submit(&read(2)).unwrap();
        let done = device.complete().unwrap();
        (done.completed - done.submitted).0
    };
    let first_page = COMMAND + LINK + MOVE - 200_000;
    let read = READ + TRANSFER + LINK;
    assert_eq!(response("fifo"), first_page + READ + TRANSFER + read);
    assert_eq!(response("collection_first"), first_page + READ + TRANSFER + read);
    assert_eq!(response("reads_first"), first_page + read);
}

#[test]
fn cache_program_loads_next_page_during_program() {
    for profile_of in [block_map as fn(u32, &str) -> SimDevice, page_map] {
        let mut device = profile_of(1, r#"{"cache_program": true, "state": "empty"}"#);
        let (one, _) = run_alone(&mut device, io(Mode::Write, 0, 1));
        assert_eq!(one, COMMAND + LINK + TRANSFER);
        device.wait_until(device.now() + Nanos(1_000_000_000));
        // The second is in the register while the first is programmed; the third waits for that.
        let (two, _) = run_alone(&mut device, io(Mode::Write, 1, 2));
        assert_eq!(two, COMMAND + LINK + 2 * TRANSFER);
        device.wait_until(device.now() + Nanos(1_000_000_000));
        let (three, parts) = run_alone(&mut device, io(Mode::Write, 3, 3));
        assert_eq!(three, COMMAND + LINK + TRANSFER + PROGRAM + TRANSFER);
        assert_eq!(part(&parts, "die_wait_ns"), TRANSFER + PROGRAM - 2 * LINK);
        // The read waits for the cells: the previous page, which began when the register was free,
        // and the last.
        let (read, _) = run_alone(&mut device, io(Mode::Read, 0, 1));
        let cells = 2 * PROGRAM - TRANSFER;
        assert_eq!(read, cells + READ + TRANSFER + LINK);
    }
}

#[test]
fn cache_read_reads_next_page_during_transfer() {
    const PAGES_READ: u64 = 5;
    for read_ns in [TRANSFER / 3, TRANSFER, 4 * TRANSFER] {
        for profile_of in [block_map as fn(u32, &str) -> SimDevice, page_map] {
            let time = |cached: bool| {
                let keys = format!(
                    r#"{{"cache_read": {cached}, "read_ns": {read_ns}, "state": "sequential"}}"#
                );
                run_alone(&mut profile_of(1, &keys), io(Mode::Read, 0, PAGES_READ)).0
            };
            let around = COMMAND + LINK;
            assert_eq!(time(false), around + PAGES_READ * (read_ns + TRANSFER));
            let others = (PAGES_READ - 1) * read_ns.max(TRANSFER);
            assert_eq!(time(true), around + read_ns + others + TRANSFER);
        }
    }
}

#[test]
fn cache_read_refuses_incompatible_keys() {
    for (changes, key) in [
        (r#""die_queue": "reads_first""#, "die_queue"),
        (r#""planes_per_die": 2, "multi_plane": "any_page""#, "cache_read"),
    ] {
        let changes = format!(r#"{{"cache_read": true, {changes}}}"#);
        let text =
            Profile::parse(&profile(1, 1, "empty"), "test", &changes).unwrap_err().to_string();
        assert!(text.contains(key), "{changes}: {text}");
    }
}

fn page_map(dies: u32, overrides: &str) -> SimDevice {
    let text = profile(dies, 1, "empty");
    SimDevice::new("test", Profile::parse(&text, "test", overrides).unwrap()).unwrap()
}
