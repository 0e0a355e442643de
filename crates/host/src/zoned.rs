//! Zoned block devices: zone reports and zone commands of Linux.
//!
//! **Source**: `linux/blkzoned.h`, and `queue/zoned`, `queue/chunk_sectors`, `queue/max_open_zones` and
//! `queue/max_active_zones` of sysfs (Documentation/ABI/stable/sysfs-block).
//! **Faithful**: reports of any length, conventional zones, capacities below the size; reset, open, close
//! and finish of whole zones. Writes are ordinary ones at the write pointer, with direct I/O.
//! **Simplified**: no appends: a block device has no system call for them.
//! **Ambiguous**: kernels before 5.9 report no capacity; it is the size then.

use std::fs::File;
use std::os::fd::AsRawFd;

use serde_json::{Map, Value};
use uflip_core::{
    Bytes, DeviceInfo, Error, Mode, Result, SECTOR_BYTES_MIN, Zone, ZoneLimits, ZoneReport,
    ZoneState,
};

use crate::guard::machine::BlockNode;

/// `_IOWR(0x12, 130, struct blk_zone_report)`, and `_IOW(0x12, n, struct blk_zone_range)`: both are 16 bytes.
const BLKREPORTZONE: libc::Ioctl = 0xC010_1282;
const BLKRESETZONE: libc::Ioctl = 0x4010_1283;
const BLKOPENZONE: libc::Ioctl = 0x4010_1286;
const BLKCLOSEZONE: libc::Ioctl = 0x4010_1287;
const BLKFINISHZONE: libc::Ioctl = 0x4010_1288;

/// `struct blk_zone_report` without its zones, and `struct blk_zone`, in words of 64 bits.
const HEADER_WORDS: usize = 2;
const ZONE_WORDS: usize = 8;
/// `BLK_ZONE_REP_CAPACITY`: the report contains capacities.
const HAS_CAPACITY: u32 = 1;
/// Zones per report: 64 KiB.
const ZONES_PER_REPORT: usize = 1024;

/// Return the zone limits of a disk from sysfs; `None` if it is not zoned.
pub(crate) fn limits_of(disk: &BlockNode) -> Option<Map<String, Value>> {
    if !matches!(disk.attribute("queue/zoned").as_str(), "host-managed" | "host-aware") {
        return None;
    }
    let number = |name: &str| disk.attribute(name).parse::<u64>().unwrap_or(0);
    let mut limits = Map::new();
    let zone_bytes = number("queue/chunk_sectors") * SECTOR_BYTES_MIN;
    for (name, value) in [
        ("zone_bytes", zone_bytes),
        ("zone_count", number("queue/nr_zones")),
        ("max_open_zones", number("queue/max_open_zones")),
        ("max_active_zones", number("queue/max_active_zones")),
    ] {
        limits.insert(name.into(), value.into());
    }
    Some(limits)
}

/// Apply the command `mode` to the zones of `size` bytes at `offset`; on failure return false with
/// `errno` set.
pub(crate) fn manage(file: &File, mode: Mode, offset: Bytes, size: Bytes) -> bool {
    let request = match mode {
        Mode::Reset => BLKRESETZONE,
        Mode::Finish => BLKFINISHZONE,
        Mode::Open => BLKOPENZONE,
        Mode::Close => BLKCLOSEZONE,
        _ => {
            // SAFETY: the error number of this thread.
            unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
            return false;
        }
    };
    let range = [offset.0 / SECTOR_BYTES_MIN, size.0 / SECTOR_BYTES_MIN];
    // SAFETY: an open descriptor, and a range of two integers that the call reads.
    unsafe { libc::ioctl(file.as_raw_fd(), request, range.as_ptr()) == 0 }
}

/// The errors for exceeded zone limits: Linux returns `BLK_STS_ZONE_OPEN_RESOURCE` and
/// `BLK_STS_ZONE_ACTIVE_RESOURCE` as error numbers.
pub(crate) const TOO_MANY_OPEN: &str = "the limit of open zones is reached \
     (max_open_zones): close or finish one; `uflip zones DEVICE` lists them";
pub(crate) const TOO_MANY_ACTIVE: &str = "the limit of open and closed zones is reached \
     (max_active_zones): finish or reset one; `uflip zones DEVICE` lists them";

/// Return the action for a failed zone command.
pub(crate) fn command_error_action(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EOPNOTSUPP) => {
            "the device has no zones, or no such command: see `uflip info DEVICE`"
        }
        Some(libc::EINVAL) => "give whole zones: the start and the size of a zone",
        Some(libc::EBADF | libc::EACCES | libc::EPERM) => "open it for writing",
        Some(libc::ETOOMANYREFS) => TOO_MANY_OPEN,
        Some(libc::EOVERFLOW) => TOO_MANY_ACTIVE,
        Some(libc::EIO) => "the state of the zone does not allow this: see `uflip zones DEVICE`",
        _ => "see the message of the system above",
    }
}

/// Return all zones of `file`; `None` if `info` has no zones.
pub(crate) fn report(file: &File, info: &DeviceInfo) -> Result<Option<ZoneReport>> {
    let Some(limits_json) = info.details.get("zones") else { return Ok(None) };
    let number = |name: &str| limits_json.get(name).and_then(Value::as_u64).unwrap_or(0);
    let limits = ZoneLimits {
        zone_bytes: number("zone_bytes"),
        max_open_zones: number("max_open_zones") as u32,
        max_active_zones: number("max_active_zones") as u32,
    };
    let end = info.capacity_bytes.0 / SECTOR_BYTES_MIN;
    let mut zones = Vec::new();
    let mut sector = 0;
    let mut buffer = vec![0u64; HEADER_WORDS + ZONES_PER_REPORT * ZONE_WORDS];
    while sector < end {
        buffer.fill(0);
        (buffer[0], buffer[1]) = (sector, ZONES_PER_REPORT as u64);
        // SAFETY: an open descriptor, and a buffer for the requested number of zones.
        if unsafe { libc::ioctl(file.as_raw_fd(), BLKREPORTZONE, buffer.as_mut_ptr()) } != 0 {
            let error = std::io::Error::last_os_error();
            let problem = "The zones could not be read";
            return Err(Error::os(problem, &info.url, &error).action(command_error_action(&error)));
        }
        let (batch, next) = read_report(&buffer).map_err(|got| {
            Error::device("The zone report is inconsistent")
                .at(&info.url)
                .got(got)
                .action("compare the output of `blkzone report`")
        })?;
        if next <= sector {
            break;
        }
        zones.extend(batch);
        sector = next;
    }
    Ok(Some(ZoneReport { limits, zones }))
}

/// Parse a report in the kernel's layout; return its zones and the sector after the last one.
fn read_report(words: &[u64]) -> std::result::Result<(Vec<Zone>, u64), String> {
    let (count, flags) = (words[1] as u32 as usize, (words[1] >> 32) as u32);
    let entries = words[HEADER_WORDS..].chunks_exact(ZONE_WORDS);
    if count > entries.len() {
        return Err(format!("{count} zones instead of at most {}", entries.len()));
    }
    let (mut zones, mut end) = (Vec::with_capacity(count), 0);
    for words in entries.take(count) {
        let (start, length, pointer) = (words[0], words[1], words[2]);
        let [_kind, condition, ..] = words[3].to_ne_bytes();
        let capacity = if flags & HAS_CAPACITY == 0 { length } else { words[4] };
        let state = ZoneState::from_linux(condition)
            .ok_or_else(|| format!("a zone at sector {start} in the state {condition:#x}"))?;
        if length == 0 || capacity > length || start < end {
            return Err(format!(
                "a zone of {length} sectors at {start} with a capacity of {capacity}, after {end}"
            ));
        }
        end = start
            .checked_add(length)
            .filter(|end| end.checked_mul(SECTOR_BYTES_MIN).is_some())
            .ok_or_else(|| format!("a zone at sector {start}"))?;
        // A full zone has no write pointer: the kernel reports the end of the zone, or nothing.
        let pointer = match state {
            ZoneState::Full => start + capacity,
            _ => pointer.clamp(start, start + capacity),
        };
        let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES_MIN);
        zones.push(Zone {
            start_bytes: bytes(start),
            capacity_bytes: bytes(capacity),
            write_pointer_bytes: bytes(pointer),
            state,
            resets: None,
        });
    }
    Ok((zones, end))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Build a report with these zones: start, length, pointer, condition, capacity.
    fn words(flags: u32, zones: &[(u64, u64, u64, u8, u64)]) -> Vec<u64> {
        let mut words = vec![0, zones.len() as u64 | u64::from(flags) << 32];
        for (start, length, pointer, condition, capacity) in zones {
            let kind = u64::from_ne_bytes([2, *condition, 0, 0, 0, 0, 0, 0]);
            words.extend([*start, *length, *pointer, kind, *capacity, 0, 0, 0]);
        }
        words
    }

    #[test]
    fn zone_report_is_converted_to_bytes() {
        let zones =
            [(0, 4096, 8, 0x2, 2048), (4096, 4096, 8192, 0xe, 2048), (8192, 4096, 8192, 1, 2048)];
        let (zones, end) = read_report(&words(HAS_CAPACITY, &zones)).unwrap();
        assert_eq!(end, 12_288);
        let output: Vec<_> = zones
            .iter()
            .map(|zone| {
                (zone.start_bytes.0, zone.capacity_bytes.0, zone.write_pointer_bytes.0, zone.state)
            })
            .collect();
        let mib = 1 << 20;
        assert_eq!(
            output,
            [
                (0, mib, 4096, ZoneState::ImplicitlyOpen),
                (2 * mib, mib, 3 * mib, ZoneState::Full),
                (4 * mib, mib, 4 * mib, ZoneState::Empty),
            ]
        );
        // Without the flag the report has no capacity.
        let (zones, _) = read_report(&words(0, &[(0, 4096, 8, 2, 0)])).unwrap();
        assert_eq!(zones[0].capacity_bytes.0, 4096 * 512);
    }

    #[test]
    fn inconsistent_zone_report_is_refused() {
        for zones in [
            &[(0, 0, 0, 1, 0)][..],
            &[(0, 8, 0, 1, 9)],
            &[(0, 8, 0, 5, 8)],
            &[(8, 8, 8, 1, 8), (0, 8, 0, 1, 8)],
            &[(u64::MAX - 3, 8, 0, 1, 8)],
            &[(1 << 60, 8, 0, 1, 8)],
        ] {
            assert!(read_report(&words(HAS_CAPACITY, zones)).is_err(), "{zones:?}");
        }
        let mut short = words(HAS_CAPACITY, &[(0, 8, 0, 1, 8)]);
        short[1] = 7;
        assert!(read_report(&short).unwrap_err().contains("7 zones instead of at most 1"));
    }

    #[test]
    fn file_has_no_zones_and_refuses_zone_commands() {
        let path = std::env::temp_dir().join(format!("uflip-no-zones-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let modes = [Mode::Reset, Mode::Finish, Mode::Open, Mode::Close, Mode::Append];
        for mode in modes {
            assert!(!manage(&file, mode, Bytes(0), Bytes(4096)));
            let output = command_error_action(&std::io::Error::last_os_error());
            assert!(output.contains("no zones"), "{mode:?}: {output}");
        }
        std::fs::remove_file(path).unwrap();
    }

    /// Compares the numbers and offsets with those that a C compiler derives from the kernel's
    /// header.
    #[test]
    fn requests_and_layouts_match_the_kernel() {
        let source = r#"
            #include <linux/blkzoned.h>
            #include <stddef.h>
            #include <stdio.h>
            int main(void) {
                printf("%#x %#x %#x %#x %#x ", (unsigned)BLKREPORTZONE, (unsigned)BLKRESETZONE,
                       (unsigned)BLKOPENZONE, (unsigned)BLKCLOSEZONE, (unsigned)BLKFINISHZONE);
                printf("%zu %zu %zu %zu ", sizeof(struct blk_zone_report), sizeof(struct blk_zone),
                       sizeof(struct blk_zone_range), offsetof(struct blk_zone_report, nr_zones));
                printf("%zu %zu %zu %zu %zu", offsetof(struct blk_zone, start),
                       offsetof(struct blk_zone, len), offsetof(struct blk_zone, wp),
                       offsetof(struct blk_zone, cond), offsetof(struct blk_zone, capacity));
            }"#;
        let name = format!("uflip-blkzoned-{}", std::process::id());
        let (code, program) =
            (std::env::temp_dir().join(format!("{name}.c")), std::env::temp_dir().join(name));
        std::fs::write(&code, source).unwrap();
        let compiled = Command::new("cc").arg(&code).arg("-o").arg(&program).status();
        if !compiled.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no C compiler, or no linux/blkzoned.h with capacities");
            return;
        }
        let output = Command::new(&program).output().unwrap();
        let requests = [BLKREPORTZONE, BLKRESETZONE, BLKOPENZONE, BLKCLOSEZONE, BLKFINISHZONE];
        let requests = requests.map(|request| format!("{request:#x}")).join(" ");
        let expected =
            format!("{requests} {} {} 16 8 0 8 16 25 32", HEADER_WORDS * 8, ZONE_WORDS * 8);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let _ = (std::fs::remove_file(code), std::fs::remove_file(program));
    }
}
