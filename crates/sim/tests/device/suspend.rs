//! Suspension of programs and erases for host reads: times computed by hand.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, ERASE, LINK, PROGRAM, READ, TRANSFER, io, part, profile, with_ftl};

const SUSPEND: u64 = 20_000;
/// Start of the cell time of a single write, and how long a read holds its die.
const PROGRAMS: u64 = COMMAND + LINK + TRANSFER;
const READS: u64 = READ + TRANSFER;
const SINGLE_READ: u64 = COMMAND + READS + LINK;

fn build_device(text: &str, most: u32) -> SimDevice {
    let overrides = format!(
        r#"{{"die_queue": "reads_first", "program_suspend_ns": {SUSPEND}, "erase_suspend_ns": {SUSPEND},
            "suspensions_max": {most}}}"#
    );
    SimDevice::new("test", Profile::parse(text, "test", &overrides).unwrap()).unwrap()
}

fn one_die(most: u32) -> SimDevice {
    build_device(&profile(1, 1, "sequential"), most)
}

/// Do a write at 0, and reads that reach their die at these times; return response times (the write
/// first) and parts.
fn run_reads_during_write(
    device: &mut SimDevice,
    write: &Io,
    reads: &[u64],
) -> Vec<(u64, Vec<u64>)> {
    let begin = device.now().0;
    let mut tickets = vec![device.submit(write).unwrap()];
    for (read, arrives) in (0..).zip(reads) {
        device.wait_until(Nanos(begin + arrives - COMMAND));
        tickets.push(device.submit(&io(Mode::Read, 50 + read, 1)).unwrap());
    }
    let mut done = vec![(0, Vec::new()); tickets.len()];
    for _ in &tickets {
        let end = device.complete().unwrap();
        let parts = uflip_core::Breakdown::parts(&end.breakdown).to_vec();
        let response = (end.completed - end.submitted).0;
        assert_eq!(parts.iter().sum::<u64>(), response, "the parts sum to the response time");
        let index = tickets.iter().position(|ticket| *ticket == end.ticket).unwrap();
        done[index] = (response, parts);
    }
    done
}

fn write() -> Io {
    io(Mode::Write, 0, 1)
}

#[test]
fn suspended_program_resumes_after_read() {
    let done = run_reads_during_write(&mut one_die(1), &write(), &[PROGRAMS + 100_000]);
    assert_eq!(done[1].0, SINGLE_READ + SUSPEND);
    assert_eq!(part(&done[1].1, "die_wait_ns"), SUSPEND);
    assert_eq!(done[0].0, PROGRAMS + PROGRAM + SUSPEND + READS);
    assert_eq!(part(&done[0].1, "die_wait_ns"), SUSPEND + READS);
    assert_eq!(part(&done[0].1, "cell_program_ns"), PROGRAM);
}

#[test]
fn ending_program_is_not_suspended() {
    for left in [1, SUSPEND] {
        let done = run_reads_during_write(&mut one_die(1), &write(), &[PROGRAMS + PROGRAM - left]);
        assert_eq!(done[1].0, SINGLE_READ + left);
        assert_eq!(done[0].0, PROGRAMS + PROGRAM);
    }
}

#[test]
fn read_during_transfer_suspends_program_at_start() {
    let early = 10_000;
    let done = run_reads_during_write(&mut one_die(1), &write(), &[PROGRAMS - early]);
    assert_eq!(done[1].0, SINGLE_READ + early + SUSPEND);
    assert_eq!(done[0].0, PROGRAMS + PROGRAM + SUSPEND + READS);
}

#[test]
fn reads_during_suspension_share_it() {
    let first = PROGRAMS + 100_000;
    let done = run_reads_during_write(&mut one_die(1), &write(), &[first, first + SUSPEND + 1000]);
    assert_eq!(done[2].0, SINGLE_READ + READS - 1000);
    assert_eq!(done[0].0, PROGRAMS + PROGRAM + SUSPEND + 2 * READS);
}

#[test]
fn suspensions_are_limited() {
    let first = PROGRAMS + 100_000;
    // The remaining program time at its resumption; the second read comes 50 us later.
    let goes_on = first + SUSPEND + READS;
    let second = goes_on + 50_000;
    let once = run_reads_during_write(&mut one_die(1), &write(), &[first, second]);
    assert_eq!(once[2].0, SINGLE_READ + PROGRAM - 100_000 - 50_000);
    assert_eq!(once[0].0, PROGRAMS + PROGRAM + SUSPEND + READS);
    let twice = run_reads_during_write(&mut one_die(2), &write(), &[first, second]);
    assert_eq!(twice[2].0, SINGLE_READ + SUSPEND);
    assert_eq!(twice[0].0, PROGRAMS + PROGRAM + 2 * (SUSPEND + READS));
}

#[test]
fn merge_erase_is_suspended_by_read() {
    let text = with_ftl("block_map", &profile(1, 1, "sequential"));
    // The block has 16 pages, of which 15 move before the new one is programmed.
    let moved = READS + TRANSFER + PROGRAM;
    let erases = COMMAND + LINK + 15 * moved + TRANSFER + PROGRAM;
    let done = run_reads_during_write(&mut build_device(&text, 1), &write(), &[erases + ERASE / 2]);
    assert_eq!(done[1].0, SINGLE_READ + SUSPEND);
    assert_eq!(part(&done[1].1, "erase_ns"), SUSPEND);
    assert_eq!(done[0].0, erases + ERASE + SUSPEND + READS);
}

#[test]
fn suspended_ops_on_shared_channel_end() {
    let text = include_str!("../../../../python/uflip/profiles/demo.toml");
    let today = r#"{"channels": 8, "dies_per_channel": 4, "blocks_per_die": 128, "page_bytes": 16384,
        "pages_per_block": 16, "mapping_unit_bytes": 4096, "partial_transfer": true, "spare_factor": 0.21875,
        "idle_free_blocks": 0, "relocation": "allocator", "copy_back": false, "gc": "greedy",
        "die_queue": "reads_first", "program_suspend_ns": 20000, "erase_suspend_ns": 50000, "suspensions_max": 8,
        "slc_blocks": 4, "slc_blocks_max": 16, "slc_read_ns": 30000, "slc_program_ns": 100000}"#;
    let mut device =
        SimDevice::new("today", Profile::parse(text, "demo.toml", today).unwrap()).unwrap();
    let units = device.info().capacity_bytes.0 / 4096;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut last = Nanos(0);
    for number in 0..700_000 {
        let mode = if number % 8 == 0 { Mode::Read } else { Mode::Write };
        let offset = Bytes(4096 * uniform(&mut rng, units));
        device.submit(&Io { offset, size: Bytes(4096), mode, stream: 0 }).unwrap();
        if number >= 32 {
            let done = device.complete().unwrap();
            assert!(done.completed >= last, "in the order of time");
            last = done.completed;
        }
    }
}
