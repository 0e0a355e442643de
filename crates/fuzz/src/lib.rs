//! Fuzz targets: each parser of untrusted bytes as one function.
//!
//! A target accepts any bytes and must return whether they were accepted. An error is fine; a panic
//! is a bug, and so is an accepted value that is invalid. `tests/replay.rs` feeds them the corpus
//! and seeded mutations of it, in `make test`; the targets in `fuzz/` pass the same functions to
//! libFuzzer, which tracks coverage (`make fuzz`).

#![forbid(unsafe_code)]

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use twox_hash::XxHash3_64;
use uflip_core::{Bytes, Device, FlashGeometry, Io, Mode};
use uflip_engine::flash::FlashSpec;
use uflip_engine::{PatternSpec, StateSpec};
use uflip_foreign::{Fit, ReadOptions};
use uflip_serve::{
    Export, LONGEST_DATA, LONGEST_OPTION, NbdCommand, NbdDevice, Session, SessionEvent,
};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile, Profile, SimDevice, Snapshot};

/// A target: takes any bytes, and returns whether they were accepted.
pub type FuzzTarget = fn(&[u8]) -> bool;

/// The name of each target and of its corpus folder, with its function.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("pattern", pattern),
    ("state", state),
    ("job", job),
    ("profile", profile),
    ("snapshot", snapshot),
    ("trace", trace),
    ("recording", recording),
    ("nbd", nbd),
    ("nbd-server", nbd_server),
    ("fio-log", fio_log),
    ("columns", columns),
    ("fio-rates", fio_rates),
    ("series", series),
];

/// The device that patterns and states are checked against.
const CAPACITY: Bytes = Bytes(4 << 30);
const SECTOR: Bytes = Bytes(512);
/// The number of I/Os checked of an accepted input.
const IOS: usize = 64;

const GEOMETRY: FlashGeometry = FlashGeometry {
    channels: 8,
    luns_per_channel: 4,
    planes: 2,
    blocks_per_plane: 1024,
    pages_per_block: 512,
    sectors_per_page: 4,
    sector_bytes: 4096,
    vector_max: 64,
};

/// Parse a pattern specification: an accepted one stays inside the device, and can be parsed again.
pub fn pattern(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(resolved) = PatternSpec::parse(text).and_then(|spec| spec.resolve(CAPACITY, SECTOR))
    else {
        return false;
    };
    inside(resolved.issued().take(IOS));
    let canonical = resolved.canonical.to_string();
    let again = PatternSpec::parse(&canonical).and_then(|spec| spec.resolve(CAPACITY, SECTOR));
    let again = again.expect("a canonical specification is valid");
    assert_eq!(again.canonical, resolved.canonical, "a canonical specification is complete");
    assert_eq!(again.totals, resolved.totals);
    true
}

/// Parse a device state.
pub fn state(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let resolved = StateSpec::parse(text).and_then(|spec| spec.resolve(CAPACITY, SECTOR));
    resolved.map(|resolved| inside(resolved.writes().take(IOS))).is_ok()
}

/// Parse a job over physical addresses.
pub fn job(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(job) = FlashSpec::parse(text).and_then(|spec| spec.resolve(GEOMETRY)) else {
        return false;
    };
    let totals = job.totals();
    assert!(totals.total_ios > 0, "a job has commands");
    for block in job.blocks().take(IOS) {
        assert!(u32::from(block.channel) < GEOMETRY.channels, "{block:?}");
        assert!(u32::from(block.lun) < GEOMETRY.luns_per_channel, "{block:?}");
        assert!(block.block < GEOMETRY.blocks_per_plane, "{block:?}");
    }
    true
}

/// Parse a profile and, after a NUL, the overrides of a device URL as JSON.
pub fn profile(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let (text, overrides) = text.split_once('\0').unwrap_or((text, "{}"));
    if let Ok(profile) = Profile::parse(text, "profile", overrides) {
        let info = SimDevice::inspect("profile", &profile);
        assert!(info.capacity_bytes.0 > 0, "a device has a capacity");
        assert!(
            info.capacity_bytes.0.is_multiple_of(info.sector_bytes.0),
            "the capacity is in whole sectors"
        );
        return true;
    }
    if let Ok(profile) = OpenChannelProfile::parse(text, "profile", overrides) {
        let _ = uflip_sim::OpenChannelDevice::inspect("profile", &profile);
        return true;
    }
    false
}

/// Load a saved device: the bytes as they are, and again with correct checksums, so that the parser
/// behind the checksums is also tested.
pub fn snapshot(data: &[u8]) -> bool {
    let unchanged = restore(data);
    sealed(data).is_some_and(|sealed| restore(&sealed)) || unchanged
}

fn restore(data: &[u8]) -> bool {
    with_file(data, |path| {
        let _ = uflip_sim::inspect_snapshot(path, None);
        SimDevice::restore(path).is_ok() || OpenChannelDevice::restore(path).is_ok()
    })
}

/// Return `data` as a file with a valid schema, lengths and checksums; see
/// `crates/sim/src/snapshot.rs` for the format.
#[must_use]
pub fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    const FIXED: usize = 40;
    let number = |at: usize| Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().ok()?));
    let rest = data.get(FIXED..)?;
    let (header, state) = rest.split_at_checked(usize::try_from(number(8)?).ok()?)?;
    let mut header: serde_json::Value = serde_json::from_slice(header).ok()?;
    header.as_object_mut()?.insert("schema".into(), uflip_sim::snapshot::SCHEMA.into());
    let header = header.to_string();
    let mut sealed = b"uflipsim".to_vec();
    for part in [header.as_bytes(), state] {
        sealed.extend((part.len() as u64).to_le_bytes());
        sealed.extend(XxHash3_64::oneshot(part).to_le_bytes());
    }
    sealed.extend([header.as_bytes(), state].concat());
    Some(sealed)
}

/// Read a stored trace: an accepted one has a submission and a response time for every I/O.
pub fn trace(data: &[u8]) -> bool {
    with_file(data, |path| {
        let Ok((trace, _)) = uflip_store::read_trace(path, None) else { return false };
        let _ = uflip_store::column(&trace, "offset_bytes", 0, trace.len())
            .map(|column| column.into_owned());
        assert!(!trace.is_empty(), "a run has I/Os");
        true
    })
}

/// Read a trace of another tool, in any format: an accepted one fits any device in every way, and its
/// response times are plausible.
pub fn recording(data: &[u8]) -> bool {
    check_recording(data, "trace", &ReadOptions::default())
}

/// Read a log of fio, whose quantity is in the name of the file.
pub fn fio_log(data: &[u8]) -> bool {
    check_recording(data, "job_lat.1.log", &ReadOptions::default())
}

/// Read a log of rates or histograms of fio: its columns have one length.
pub fn fio_rates(data: &[u8]) -> bool {
    let read = uflip_foreign::read_rates_from(&mut std::io::Cursor::new(data), "job_bw.1.log");
    let Ok(Some(log)) = read else { return false };
    let rows = log.time_ms.len();
    assert!([&log.direction, &log.value, &log.size].iter().all(|column| column.len() == rows));
    assert!(log.direction.iter().all(|direction| *direction <= 2));
    assert!(log.bin.iter().all(|bin| *bin as usize + 1 < log.bin_limits_ns.len()));
    true
}

/// Read a table: after its first line, which names the columns as `--columns` does.
pub fn columns(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let (columns, table) = text.split_once('\n').unwrap_or((text, ""));
    let columns = Some(columns.to_owned());
    check_recording(table.as_bytes(), "trace", &ReadOptions { columns, ..ReadOptions::default() })
}

/// Read a column of a table as response times: they are finite and above zero.
pub fn series(data: &[u8]) -> bool {
    let mut input = std::io::Cursor::new(data);
    let read = uflip_foreign::read_series_from(&mut input, "table", None, None);
    let Ok(series) = read else { return false };
    assert!(series.values.iter().all(|value| value.is_finite() && *value > 0.0));
    true
}

fn check_recording(data: &[u8], name: &str, options: &ReadOptions) -> bool {
    let read = uflip_foreign::read_from(&mut std::io::Cursor::new(data), name, options);
    let Ok(recorded) = read else { return false };
    for rule in Fit::NAMES {
        let rule = Fit::by_name(rule).expect("a known name");
        for speed in [None, Some(1), Some(1_000_000)] {
            let fitted = uflip_foreign::fit(&recorded, (CAPACITY.0, SECTOR.0), rule, speed);
            let Ok(fitted) = fitted else { continue };
            inside(fitted.list.ios().take(IOS));
            assert!(fitted.list.instants().is_sorted(), "arrivals are in order");
        }
    }
    let Ok(run) = recorded.measured() else { return true };
    assert!(run.submit_ns.is_sorted(), "I/Os are in the order of submission");
    assert_eq!(run.submit_ns.len(), run.list.len());
    assert!(run.response_time_ns.iter().all(|time| *time > 0), "every I/O takes time");
    assert!(run.depth >= 1 && run.depth <= run.list.len() as u64);
    true
}

fn inside(ios: impl Iterator<Item = Io>) {
    for io in ios {
        let end = io.offset.0.checked_add(io.size.0);
        assert!(end.is_some_and(|end| end <= CAPACITY.0), "{io:?} exceeds the device");
        assert!(
            io.size.0 > 0 && io.offset.0.is_multiple_of(SECTOR.0),
            "{io:?} is not in whole sectors"
        );
    }
}

fn with_file(data: &[u8], read: impl FnOnce(&Path) -> bool) -> bool {
    let mut file = tempfile::NamedTempFile::new().expect("create a temporary file");
    file.write_all(data).expect("write the file");
    read(file.path())
}

/// Run the input of an NBD client, in pieces of the length in the first byte. Accepted means that
/// it reaches the transmission phase.
pub fn nbd(data: &[u8]) -> bool {
    let export = |name: &str, read_only| Export {
        name: name.into(),
        description: "a device".into(),
        size: CAPACITY,
        sector: SECTOR.0 as u32,
        preferred: 4096,
        read_only,
    };
    let exports = [export("one", false), export("two", true)];
    let Some((first, sent)) = data.split_first() else { return false };
    let mut out = Vec::new();
    let mut session = Session::new(&mut out);
    for piece in sent.chunks(usize::from(*first).max(1)) {
        let mut input = piece;
        // Each step consumes input, or passes on a complete write.
        for steps in 0.. {
            assert!(steps <= 2 * piece.len() + 1, "nothing happens");
            match session.step(&mut input, &exports, &mut out) {
                SessionEvent::NeedInput | SessionEvent::Close => break,
                SessionEvent::Data { export, offset, bytes } => {
                    assert!(!bytes.is_empty() && !exports[export].read_only);
                    assert!(
                        offset + bytes.len() as u64 <= CAPACITY.0,
                        "the data lies inside the device"
                    );
                }
                SessionEvent::Request(request) => {
                    let carries = matches!(request.command, NbdCommand::Read | NbdCommand::Write);
                    assert!(!carries || request.length <= LONGEST_DATA);
                    assert!(request.offset + u64::from(request.length) <= CAPACITY.0);
                    assert!(request.offset.is_multiple_of(SECTOR.0));
                    assert!(u64::from(request.length).is_multiple_of(SECTOR.0));
                    let reads = matches!(request.command, NbdCommand::Read | NbdCommand::Flush);
                    assert!(reads || !exports[request.export].read_only);
                }
            }
        }
        assert!(
            session.buffered_bytes() <= LONGEST_OPTION as usize,
            "at most one option is buffered"
        );
    }
    // Every reply belongs to a header of at least sixteen bytes, and a list is the longest one.
    assert!(out.len() <= 256 + sent.len() * 16, "{} for {}", out.len(), sent.len());
    session.is_transmitting()
}

/// The part of a server's output that fits into an unread socket [bytes].
const MAX_REPLY_BYTES: usize = 64 << 10;

/// Run our NBD client on the output of a server: it must yield a usable device or an error.
/// Accepted means that it reaches a read.
pub fn nbd_server(data: &[u8]) -> bool {
    let (client, mut server) = UnixStream::pair().expect("create a pair of sockets");
    server.write_all(&data[..data.len().min(MAX_REPLY_BYTES)]).expect("write to the socket");
    server.shutdown(std::net::Shutdown::Write).expect("shut down the socket");
    let Ok(mut device) = NbdDevice::from_socket(client.into(), "fuzzed", true) else {
        return false;
    };
    let (capacity, sector) = (device.info().capacity_bytes.0, device.info().sector_bytes);
    assert!(sector.0.is_power_of_two() && sector.0 >= SECTOR.0, "{sector} is not a sector size");
    assert!(
        capacity > 0 && capacity.is_multiple_of(sector.0),
        "{capacity} is not in whole sectors"
    );
    let mut read = false;
    for mode in [Mode::Read, Mode::Write, Mode::Read] {
        let io = Io { offset: Bytes(0), size: Bytes(SECTOR.0), mode, stream: 0 };
        let Ok(done) = device.submit(&io).and_then(|_| device.complete()) else {
            break;
        };
        assert!(done.completed >= done.submitted);
        read |= mode == Mode::Read;
    }
    let _ = device.sync();
    read
}
