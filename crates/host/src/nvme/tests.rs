//! The whole path from a pattern to encoded commands and back: the engine drives a drive in memory,
//! which interprets the commands by the specification.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use uflip_core::{Bytes, Device, DeviceInfo, DeviceKind, Durability, Error, Io, Mode, ZoneState};
use uflip_engine::{Control, PatternSpec, Trace, run};

use super::model::{BLOCK, Format, Model, ModelDrive, State};
use super::namespace::Namespace;
use super::open::GenericNode;
use super::queue::{NvmeDevice, NvmeQueue};
use super::transport::Transport;
use crate::buffer::Data;
use crate::direct::DirectDevice;
use crate::guard::ownership::{OwnershipMark, SectorStamp};
use crate::queued_device::QueuedDevice;

const URL: &str = "nvme:/dev/nvme0n1";
const KIB: u64 = 1 << 10;
const BLOCKS: u64 = 4096;
const PLAIN: Format =
    Format { blocks: BLOCKS, zones: None, handles: vec![], metadata: 0, command_set: 0 };
/// Zones of 1 MiB with a capacity of 768 KiB; four may be open and six active.
const ZONE: u64 = 256;
const CAPACITY: u64 = 192;

fn zoned() -> Format {
    Format { zones: Some((ZONE, CAPACITY, 4, 6)), command_set: 2, ..PLAIN }
}

fn read_namespace(drive: &ModelDrive) -> Result<Namespace, Error> {
    Namespace::read(drive, 1, 1 << 20, URL)
}

fn open(drive: &ModelDrive) -> NvmeDevice {
    let namespace = read_namespace(drive).expect("the drive describes itself");
    let mut details = Map::new();
    details.insert("namespace".into(), namespace.details().into());
    let info = DeviceInfo {
        url: URL.into(),
        kind: DeviceKind::Nvme,
        simulated: false,
        model: "model".into(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: Bytes(namespace.blocks * namespace.block_bytes),
        sector_bytes: Bytes(namespace.block_bytes),
        clock: "monotonic",
        io: String::new(),
        data: "random",
        details,
    };
    let file = tempfile::tempfile().expect("create a temporary file");
    let mark = Arc::new(OwnershipMark::device(SectorStamp::generate()));
    let mut direct = DirectDevice::new(info, file, Data::Random, mark);
    let transport: Arc<dyn Transport> = Arc::new(drive.clone());
    let queue = NvmeQueue::open(transport, Arc::new(namespace), &mut direct, 1).expect("a queue");
    QueuedDevice::with_queue(queue, direct, 1, BLOCK).expect("a device")
}

/// Run a pattern as the program does: with a queue of its depth.
fn run_pattern(
    drive: &ModelDrive,
    pattern: &Value,
    durability: Durability,
) -> Result<Trace, Error> {
    let mut device = open(drive);
    device.direct_mut().set_durability(durability);
    let (capacity, sector) = (device.info().capacity_bytes, device.info().sector_bytes);
    let pattern = PatternSpec::parse(&pattern.to_string())?.resolve(capacity, sector)?;
    let mut queued = device.with_depth(pattern.queue_depth_max(), pattern.io_size_max())?;
    run(&mut queued, pattern, &Control::new(1))
}

fn with_model<T>(drive: &ModelDrive, read: impl FnOnce(&mut Model) -> T) -> T {
    read(&mut drive.0.lock().unwrap())
}

fn execute(device: &mut NvmeDevice, mode: Mode, offset: u64, size: u64) -> Result<(), Error> {
    device.submit(&Io { offset: Bytes(offset), size: Bytes(size), mode, stream: 0 })?;
    device.complete().map(|_| ())
}

#[test]
fn properties_come_from_identify() {
    let plain = read_namespace(&ModelDrive::new(PLAIN)).unwrap();
    assert_eq!((plain.blocks, plain.block_bytes), (BLOCKS, 4096));
    assert_eq!((plain.command_bytes_max, plain.deallocates), (128 * KIB, true));
    assert_eq!((plain.zones, plain.placement), (None, vec![]));
    let zoned = read_namespace(&ModelDrive::new(zoned())).unwrap();
    assert_eq!(zoned.append_bytes_max, 32 * KIB);
    let zones = zoned.zones.unwrap();
    assert_eq!((zones.zone_blocks, zones.max_open, zones.max_active), (ZONE, 4, 6));
    let placing = Format { handles: vec![0, 1, 2, 0x8000], ..PLAIN };
    assert_eq!(read_namespace(&ModelDrive::new(placing)).unwrap().placement, [0, 1, 2, 0x8000]);
}

#[test]
fn unusable_namespaces_are_refused() {
    let metadata = Format { metadata: 8, ..PLAIN };
    let error = read_namespace(&ModelDrive::new(metadata)).unwrap_err().to_string();
    assert!(error.contains("8 bytes of metadata") && error.contains("nvme format"), "{error}");
    let key_value = Format { command_set: 1, ..PLAIN };
    let error = read_namespace(&ModelDrive::new(key_value)).unwrap_err().to_string();
    assert!(error.contains("command set 1"), "{error}");
    let empty = Format { blocks: 0, ..PLAIN };
    let error = read_namespace(&ModelDrive::new(empty)).unwrap_err().to_string();
    assert!(error.contains("no usable format"), "{error}");
}

#[test]
fn writes_reach_their_blocks_at_any_depth() {
    for depth in [1, 4, 64] {
        let drive = ModelDrive::new(PLAIN);
        let pattern = json!({"kind": "basic", "mode": "write", "location": "sequential",
            "io_size": 8192, "io_count": 100, "target_offset": 81_920, "queue_depth": depth});
        let trace = run_pattern(&drive, &pattern, Durability::Cached).unwrap();
        assert_eq!(trace.len(), 100);
        with_model(&drive, |model| {
            let mut starts: Vec<u64> = model.log.iter().map(|entry| entry.1).collect();
            starts.sort_unstable();
            assert_eq!(starts, (20..220).step_by(2).collect::<Vec<_>>());
            assert!(model.log.iter().all(|entry| (entry.0, entry.2, entry.3) == (1, 1, 0)));
            // Random data: every written block differs from zeros, no other one does.
            let written = |block: &[u8]| block.iter().any(|byte| *byte != 0);
            let blocks = model.data.chunks(BLOCK).map(written);
            assert!(blocks.enumerate().all(|(at, found)| found == (20..220).contains(&at)));
        });
    }
}

#[test]
fn reads_are_reads_and_leave_the_data() {
    let drive = ModelDrive::new(PLAIN);
    let pattern = json!({"kind": "basic", "mode": "read", "location": "random", "io_size": 4096,
        "io_count": 50, "queue_depth": 8});
    assert_eq!(run_pattern(&drive, &pattern, Durability::Fua).unwrap().len(), 50);
    with_model(&drive, |model| {
        assert!(model.log.iter().all(|entry| (entry.0, entry.2) == (2, 0)), "a read has no FUA");
        assert!(model.data.iter().all(|byte| *byte == 0));
    });
}

#[test]
fn long_ios_are_sent_in_pieces_that_the_drive_accepts() {
    let drive = ModelDrive::new(PLAIN);
    for mode in ["write", "read"] {
        with_model(&drive, |model| model.log.clear());
        let pattern = json!({"kind": "basic", "mode": mode, "location": "sequential",
            "io_size": 300 * KIB, "io_count": 6, "queue_depth": 2});
        assert_eq!(run_pattern(&drive, &pattern, Durability::Cached).unwrap().len(), 6);
        with_model(&drive, |model| {
            let mut pieces: Vec<_> = model.log.iter().map(|entry| (entry.1, entry.2 + 1)).collect();
            pieces.sort_unstable();
            let expected = (0..6).flat_map(|io| {
                [(0, 32), (32, 32), (64, 11)].map(|(at, blocks)| (io * 75 + at, blocks))
            });
            assert_eq!(pieces, expected.collect::<Vec<_>>());
        });
    }
    let read = with_model(&drive, |model| model.data.clone());
    assert!(read[..6 * 300 * 1024].chunks(BLOCK).all(|block| block.iter().any(|byte| *byte != 0)));
}

#[test]
fn durability_is_a_bit_or_a_flush() {
    let pattern = json!({"kind": "basic", "mode": "write", "location": "sequential",
        "io_size": 4096, "io_count": 6});
    let opcodes = |durability: &str| {
        let drive = ModelDrive::new(PLAIN);
        run_pattern(&drive, &pattern, durability.parse().unwrap()).unwrap();
        with_model(&drive, |model| {
            model.log.iter().map(|entry| (entry.0, entry.2 >> 30)).collect::<Vec<_>>()
        })
    };
    assert_eq!(opcodes("cached"), [(1, 0); 6]);
    assert_eq!(opcodes("fua"), [(1, 1); 6]);
    let (write, flush) = ((1, 0), (0, 0));
    assert_eq!(opcodes("flush:3"), [write, write, write, flush, write, write, write, flush]);
    let drive = ModelDrive::new(PLAIN);
    let mut deep = pattern.clone();
    deep["queue_depth"] = 4.into();
    let error = run_pattern(&drive, &deep, "flush:3".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("flush:N with a queue depth above 1"), "{error}");
}

#[test]
fn streams_name_placement_handles() {
    let drive = ModelDrive::new(Format { handles: vec![0, 7, 0x8001], ..PLAIN });
    for (stream, placement) in [(0, None), (1, Some(7)), (2, Some(0x8001))] {
        let pattern = json!({"kind": "basic", "mode": "write", "location": "sequential",
            "io_size": 8192, "io_count": 10, "write_stream": stream});
        run_pattern(&drive, &pattern, Durability::Cached).unwrap();
        assert_eq!(with_model(&drive, |model| model.placed[&placement]), 20);
    }
    let beyond = json!({"kind": "basic", "mode": "write", "location": "sequential",
        "io_count": 10, "write_stream": 3});
    let error = run_pattern(&drive, &beyond, Durability::Cached).unwrap_err().to_string();
    assert!(error.contains("no such write stream") && error.contains("0 to 2"), "{error}");
}

#[test]
fn trims_deallocate_their_range_even_in_a_queue() {
    let drive = ModelDrive::new(PLAIN);
    let pattern = json!({"kind": "basic", "mode": "trim", "location": "sequential",
        "io_size": 1 << 20, "io_count": 8, "queue_depth": 4});
    run_pattern(&drive, &pattern, Durability::Cached).unwrap();
    let mut ranges = with_model(&drive, |model| model.deallocated.clone());
    ranges.sort_unstable();
    assert_eq!(ranges, (0..8).map(|io| (io * 256, 256)).collect::<Vec<_>>());
}

#[test]
fn appends_of_one_zone_are_in_flight_together() {
    let drive = ModelDrive::new(zoned());
    let pattern = json!({"kind": "basic", "mode": "append", "location": "sequential",
        "io_size": 64 * KIB, "io_count": 12, "queue_depth": 8, "target_offset": 3 << 20,
        "target_size": 1 << 20});
    run_pattern(&drive, &pattern, Durability::Cached).unwrap();
    with_model(&drive, |model| {
        let zone = model.zones[3];
        assert_eq!((zone.state, zone.pointer), (State::Full, 3 * ZONE + CAPACITY));
        // 64 KiB exceed the append limit of 32 KiB; each command names the start of the zone.
        assert_eq!(model.log.len(), 24);
        assert!(model.log.iter().all(|entry| (entry.0, entry.1, entry.2) == (0x7D, 3 * ZONE, 7)));
    });
}

#[test]
fn zone_writes_longer_than_a_command_stay_in_order() {
    let drive = ModelDrive::new(zoned());
    let mut device = open(&drive);
    execute(&mut device, Mode::Write, 0, 700 * KIB).unwrap();
    let pieces = with_model(&drive, |model| model.log.iter().map(|e| e.1).collect::<Vec<_>>());
    assert_eq!(pieces, [0, 32, 64, 96, 128, 160]);
    assert_eq!(with_model(&drive, |model| model.zones[0].pointer), 175);
}

#[test]
fn zone_commands_change_the_state_that_the_report_contains() {
    let drive = ModelDrive::new(zoned());
    let mut device = open(&drive);
    let (zone, mib) = (|number: u64| number << 20, 1 << 20);
    execute(&mut device, Mode::Open, zone(1), mib).unwrap();
    execute(&mut device, Mode::Write, zone(2), 4096).unwrap();
    execute(&mut device, Mode::Close, zone(2), mib).unwrap();
    execute(&mut device, Mode::Finish, zone(5), mib).unwrap();
    execute(&mut device, Mode::Write, zone(6), 8192).unwrap();
    execute(&mut device, Mode::Append, zone(7), 4096).unwrap();
    execute(&mut device, Mode::Reset, zone(7), mib).unwrap();
    let report = device.zones().unwrap().unwrap();
    assert_eq!((report.limits.zone_bytes, report.limits.max_open_zones), (mib, 4));
    assert_eq!((report.limits.max_active_zones, report.zones.len()), (6, 16));
    let states: Vec<_> = report.zones[1..8].iter().map(|zone| zone.state).collect();
    let expected = [
        ZoneState::ExplicitlyOpen,
        ZoneState::Closed,
        ZoneState::Empty,
        ZoneState::Empty,
        ZoneState::Full,
        ZoneState::ImplicitlyOpen,
        ZoneState::Empty,
    ];
    assert_eq!(states, expected);
    assert_eq!(report.zones[6].write_pointer_bytes.0, (6 << 20) + 8192);
    // One command a zone, also for several zones at once.
    execute(&mut device, Mode::Reset, 0, 8 << 20).unwrap();
    let states = device.zones().unwrap().unwrap().zones;
    assert!(states.iter().all(|zone| zone.state == ZoneState::Empty));
}

#[test]
fn failures_name_the_io_and_the_status() {
    let drive = ModelDrive::new(zoned());
    let mut device = open(&drive);
    let astray = execute(&mut device, Mode::Write, 64 * KIB, 4096).unwrap_err().to_string();
    assert!(astray.contains("A write of 4 KiB at byte 65536 failed"), "{astray}");
    assert!(astray.contains("NVMe status 0x1bc: Zone Invalid Write"), "{astray}");
    for number in 0..4 {
        execute(&mut device, Mode::Open, number << 20, 1 << 20).unwrap();
    }
    let full = execute(&mut device, Mode::Open, 4 << 20, 1 << 20).unwrap_err().to_string();
    assert!(full.contains("Too Many Open Zones") && full.contains("close or finish one"), "{full}");
    with_model(&drive, |model| model.fails_with = Some(-libc::EINTR));
    let pattern = json!({"kind": "basic", "mode": "read", "location": "random",
        "io_size": 256 * KIB, "io_count": 50, "queue_depth": 8});
    let reset = run_pattern(&drive, &pattern, Durability::Cached).unwrap_err().to_string();
    assert!(reset.contains("controller was reset or removed"), "{reset}");
    let plain = ModelDrive::new(PLAIN);
    let append = execute(&mut open(&plain), Mode::Append, 0, 4096).unwrap_err().to_string();
    assert!(append.contains("Invalid Command Opcode"), "{append}");
}

#[test]
fn several_submitters_have_a_queue_each() {
    let drive = ModelDrive::new(PLAIN);
    let writer = |at: u64| {
        json!({"kind": "basic", "mode": "write", "location": "sequential", "io_size": 4096,
            "io_count": 40, "target_offset": at, "target_size": 1 << 20})
    };
    let pattern = json!({"kind": "parallel", "patterns": [writer(0), writer(4 << 20)]});
    let mut device = open(&drive);
    let resolved = PatternSpec::parse(&pattern.to_string()).unwrap();
    let resolved = resolved.resolve(Bytes(BLOCKS * 4096), Bytes(4096)).unwrap();
    let trace = run(&mut device, resolved, &Control::new(2)).unwrap();
    assert_eq!(trace.len(), 80);
    let mut starts = with_model(&drive, |model| model.log.iter().map(|e| e.1).collect::<Vec<_>>());
    starts.sort_unstable();
    assert_eq!(starts, (0..40).chain(1024..1064).collect::<Vec<_>>());
}

#[test]
fn generic_node_belongs_to_the_same_namespace() {
    let (_root, machine) = crate::guard::tests::machine("nvme");
    let of = |name: &str| {
        let node = machine.node(name).expect("the machine has this device");
        GenericNode::of_node(&machine, node, &format!("/dev/{name}"))
    };
    let found = format!("{:?}", of("nvme0n1").unwrap());
    assert!(found.contains("ng0n1") && found.contains("major: 239"), "{found}");
    let partition = of("nvme0n1p2").unwrap_err().to_string();
    assert!(partition.contains("A partition takes no NVMe commands"), "{partition}");
    assert!(partition.contains("nvme:/dev/nvme0n1,"), "{partition}");
    let missing = of("nvme0n2").unwrap_err().to_string();
    assert!(missing.contains("no ng0n2 beside nvme0n2"), "{missing}");
}
