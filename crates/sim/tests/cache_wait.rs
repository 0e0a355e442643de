//! The causes charged to a write that waits for the write cache, compared with hand-computed sums
//! and with recorded operations.

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Bytes, Device, Io, Mode, Nanos};
use uflip_sim::{Operation, Operations, Profile, SimBreakdown, SimDevice, Wait};

use crate::durability::{ACCEPT, COMMAND, LINK, PAGE_PROGRAM, PROGRAM, TRANSFER, with, write};

fn part(parts: &[u64], cause: &str) -> u64 {
    parts[SimBreakdown::CAUSES.iter().position(|each| *each == cause).expect("a known cause")]
}

/// Return the parts of a single write of one page.
fn parts_of(device: &mut SimDevice, page: u64) -> Vec<u64> {
    device.submit(&write(page, 4096)).unwrap();
    let done = device.complete().unwrap();
    let parts = done.breakdown.parts().to_vec();
    assert_eq!(parts.iter().sum::<u64>(), (done.completed - done.submitted).0);
    parts
}

/// Check that the device spends time on these causes only.
fn assert_parts(parts: &[u64], expected: &[(&str, u64)]) {
    let named = SimBreakdown::CAUSES.iter().copied().zip(parts.iter().copied());
    let charged: Vec<(&str, u64)> = named.filter(|(_, ns)| *ns > 0).collect();
    assert_eq!(charged, expected);
}

#[test]
fn full_cache_write_waits_for_flush_program() {
    // The flush begins with the write's arrival, so the write waits for all of it.
    let mut device = with(1, 1, "");
    assert_parts(&parts_of(&mut device, 0), &[("controller_ns", COMMAND), ("link_ns", LINK)]);
    let full_program = [
        ("controller_ns", COMMAND),
        ("link_ns", LINK),
        ("transfer_ns", TRANSFER),
        ("cell_program_ns", PROGRAM),
    ];
    assert_parts(&parts_of(&mut device, 1), &full_program);
    // The flush began with the previous page: the time until the write's arrival has passed
    // already.
    let mut device = with(1, 1, r#", "flush": "eager""#);
    parts_of(&mut device, 0);
    let rest_of_program = [
        ("controller_ns", COMMAND),
        ("link_ns", LINK),
        ("transfer_ns", TRANSFER - ACCEPT),
        ("cell_program_ns", PROGRAM),
    ];
    assert_parts(&parts_of(&mut device, 1), &rest_of_program);
}

#[test]
fn earlier_programs_count_as_die_wait() {
    let mut device = with(1, 2, r#", "flush": "eager""#);
    (0..3).for_each(|page| drop(parts_of(&mut device, page)));
    device.wait_until(device.now() + Nanos(10 * PAGE_PROGRAM));
    device.set_durability("flush:2".parse().unwrap());
    parts_of(&mut device, 3);
    // The program of the previous page began when that arrived.
    let expected = [
        ("controller_ns", COMMAND),
        ("link_ns", LINK),
        ("die_wait_ns", PAGE_PROGRAM - ACCEPT),
        ("transfer_ns", TRANSFER),
        ("cell_program_ns", PROGRAM),
    ];
    assert_parts(&parts_of(&mut device, 4), &expected);
}

const NVME: [(&str, &str); 4] = [
    ("tlc", include_str!("../../../python/uflip/profiles/tlc-nvme.toml")),
    ("qlc", include_str!("../../../python/uflip/profiles/qlc-nvme.toml")),
    ("enterprise", include_str!("../../../python/uflip/profiles/enterprise-nvme.toml")),
    ("dramless", include_str!("../../../python/uflip/profiles/dramless-nvme.toml")),
];
const DEMO: &str = include_str!("../../../python/uflip/profiles/demo.toml");
const FAST: &str = include_str!("../../../python/uflip/profiles/fast-1gb.toml");

/// Return drives of the `today` profiles with small caches, and others with an added cache.
fn cached() -> Vec<(String, SimDevice)> {
    let small = json!({"channels": 2, "dies_per_channel": 1, "blocks_per_die": 64, "spare_factor": 0.3,
        "random_overwrites": 1.0, "write_cache_bytes": 1 << 17});
    let with = |more: &Value| {
        let mut keys = small.clone();
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        keys
    };
    let drive = json!({"blocks_per_die": 128});
    let slc = json!({"slc_blocks": 4, "slc_blocks_max": 8});
    let mut tried: Vec<(&str, &str, Value)> = Vec::new();
    for (name, text) in NVME {
        let mut keys = with(&drive);
        let more = if name == "qlc" { slc.clone() } else { json!({}) };
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tried.push((name, text, keys));
    }
    for more in [
        json!({}),
        json!({"flush": "eager", "die_queue": "reads_first", "gc": "greedy"}),
        json!({"flush": "eager", "relocation": "same_die", "copy_back": true}),
        json!({"flush": "eager", "cache_program": true}),
        json!({"flush": "eager", "buses": 1, "bus_bytes_per_s": 400_000_000}),
    ] {
        tried.push(("demo", DEMO, with(&more)));
    }
    tried.push((
        "fast",
        FAST,
        json!({"blocks_per_die": 64, "log_blocks": 8, "spare_factor": 0.3, "write_cache_bytes": 1 << 16}),
    ));
    let made = tried.into_iter().map(|(name, text, keys)| {
        let profile = Profile::parse(text, name, &keys.to_string()).unwrap();
        (format!("{name} {keys}"), SimDevice::new(name, profile).unwrap())
    });
    made.collect()
}

/// Do random 4 KiB writes and a few reads at queue depth `at_once`; return the parts of each in the
/// order of submission.
fn load(device: &mut SimDevice, ios: u64, at_once: u64) -> Vec<Vec<u64>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let pages = device.info().capacity_bytes.0 / 4096;
    let mut causes_by_io = vec![Vec::new(); ios as usize];
    let mut first = None;
    let mut complete = |device: &mut SimDevice, first: u64| {
        let done = device.complete().unwrap();
        let parts = done.breakdown.parts().to_vec();
        assert_eq!(parts.iter().sum::<u64>(), (done.completed - done.submitted).0, "the parts sum");
        causes_by_io[(done.ticket.0 - first) as usize] = parts;
    };
    for number in 0..ios {
        if number >= at_once {
            complete(device, first.unwrap());
        }
        let mode = if uniform(&mut rng, 64) == 0 { Mode::Read } else { Mode::Write };
        let offset = Bytes(uniform(&mut rng, pages) * 4096);
        let ticket = device.submit(&Io { offset, size: Bytes(4096), mode, stream: 0 }).unwrap();
        first.get_or_insert(ticket.0);
    }
    (0..at_once).for_each(|_| complete(device, first.unwrap()));
    causes_by_io
}

/// Return the causes of a wait from the operations of its die, by a linear search.
fn expected_charges(wait: &Wait, all: &[Operation], clocks: &[u32]) -> Vec<(&'static str, u64)> {
    let mut on_die: Vec<&Operation> =
        all.iter().filter(|op| clocks[op.plane as usize] == wait.plane).collect();
    on_die.sort_by_key(|op| (op.begin, op.end));
    let mut charged_until = wait.from;
    let mut charged = Vec::new();
    for op in on_die {
        let (begin, end) = (op.begin.max(charged_until), op.end.min(wait.until));
        if begin >= end {
            continue;
        }
        charged.push(("idle", begin - charged_until));
        charged_until = end;
        let (purpose, _) = Operations::PURPOSES[op.purpose as usize];
        if purpose == "host write" && op.end == wait.until {
            let cells = (end - begin).min(op.cells);
            let sent = (op.sent_until - op.sent).min(end - begin - cells);
            charged.extend([("cell_program_ns", cells), ("transfer_ns", sent)]);
            charged.push(("channel_wait_ns", end - begin - cells - sent));
            continue;
        }
        let cause = match purpose {
            "host read" | "host write" => "die_wait_ns",
            "relocation" => "relocation_ns",
            "erase" => "erase_ns",
            "metadata" => "metadata_ns",
            "mapping" => "mapping_ns",
            "merge" => "merge_ns",
            "retry" => "retry_ns",
            _ => "scrub_ns",
        };
        charged.push((cause, end - begin));
    }
    charged.push(("idle", wait.until - charged_until));
    charged
}

#[test]
fn cache_wait_is_split_by_work_of_flush_die() {
    let causes = SimBreakdown::CAUSES;
    for (name, mut device) in cached() {
        let merges = name.starts_with("fast");
        for at_once in [1, 16] {
            load(&mut device, 600, 4);
            device.wait_until(device.now() + Nanos(3_000_000_000));
            device.record_operations();
            let clocks = device.clocks();
            let all_parts = load(&mut device, 900, at_once);
            let Operations { operations, waits, gaps, .. } = device.recorded_operations();
            assert_eq!(gaps, []);
            let (mut waited, mut explained) = (0, 0);
            for wait in
                waits.iter().filter(|wait| Operations::WAITS[wait.kind as usize] == "write cache")
            {
                let parts = &all_parts[wait.io as usize - 1];
                let idle = part(parts, "cache_wait_ns") + part(parts, "free_page_wait_ns");
                waited += wait.until - wait.from;
                explained += wait.until - wait.from - part(parts, "cache_wait_ns");
                if merges {
                    continue; // other dies work for the page as well
                }
                let mut expected = vec![0; causes.len() + 1];
                for (cause, ns) in expected_charges(wait, &operations, &clocks) {
                    let column = causes.iter().position(|each| *each == cause);
                    expected[column.unwrap_or(causes.len())] += ns;
                }
                assert_eq!(idle, expected[causes.len()], "{name}, {at_once} at once: {wait:?}");
                for (column, cause) in causes.iter().enumerate().skip(3) {
                    if !["cache_wait_ns", "free_page_wait_ns"].contains(cause) {
                        assert_eq!(parts[column], expected[column], "{name}: {cause} of {wait:?}");
                    }
                }
            }
            assert!(waited > 0, "{name}: writes waited for the cache");
            assert!(
                2 * explained > waited,
                "{name}, {at_once} at once: {explained} ns of {waited}"
            );
        }
    }
}
