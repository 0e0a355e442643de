//! The preparation of zones: the zone states that a pattern needs, and the commands that set them.
//!
//! ```text
//! written by the pattern                    reset, unless it is empty
//! only read                                 reset and filled: a full zone may have been finished early
//! neither, but open or closed               reset: it would count against the limits of the device
//! reset, opened or finished by the pattern  unchanged
//! ```

use std::collections::BTreeMap;

use uflip_core::{Bytes, Io, Mode, Zone, ZoneReport, ZoneState};

use crate::spec::Resolved;

/// The largest write of a preparation.
const IO_SIZE: u64 = 128 << 10;

/// The preparation of one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonePreparation {
    zone: Zone,
    zone_bytes: u64,
    resets: bool,
    fills: bool,
}

impl ZonePreparation {
    /// Return the I/Os, in order.
    pub fn ios(&self) -> impl Iterator<Item = Io> + use<> {
        let ZonePreparation { zone, zone_bytes, resets, fills } = *self;
        let start = zone.start_bytes.0;
        let reset =
            Io { offset: zone.start_bytes, size: Bytes(zone_bytes), mode: Mode::Reset, stream: 0 };
        let end = if fills { start + zone.capacity_bytes.0 } else { start };
        let write = move |at| Io {
            offset: Bytes(at),
            size: Bytes(IO_SIZE.min(end - at)),
            mode: Mode::Write,
            stream: 0,
        };
        resets.then_some(reset).into_iter().chain((start..end).step_by(IO_SIZE as usize).map(write))
    }
}

/// The accesses of a pattern to one zone.
#[derive(Clone, Copy, Default)]
struct ZoneUse {
    written: bool,
    read: bool,
    managed: bool,
}

/// Return the preparation of all zones for `pattern`. Resets come first, to free active zones for
/// those that are filled.
#[must_use]
pub fn preparation(pattern: &Resolved, report: &ZoneReport) -> Vec<ZonePreparation> {
    let zone_bytes = report.limits.zone_bytes.max(1);
    let mut uses: BTreeMap<u64, ZoneUse> = BTreeMap::new();
    for io in pattern.issued() {
        let last = (io.offset.0 + io.size.0.max(1) - 1) / zone_bytes;
        for zone in io.offset.0 / zone_bytes..=last {
            let zone_use = uses.entry(zone).or_default();
            zone_use.written |= io.mode.is_write();
            zone_use.read |= io.mode == Mode::Read;
            zone_use.managed |= io.mode.manages_zones();
        }
    }
    let step = |(number, zone): (u64, &Zone)| {
        let ZoneUse { written, read, managed } = uses.get(&number).copied().unwrap_or_default();
        let unchanged = matches!(
            zone.state,
            ZoneState::Conventional | ZoneState::ReadOnly | ZoneState::Offline
        );
        let resets = match (written || read, managed) {
            (true, _) => zone.state != ZoneState::Empty,
            (false, true) => false,
            (false, false) => zone.state.is_active(),
        };
        let fills = read && !written && !managed;
        let step = ZonePreparation { zone: *zone, zone_bytes, resets, fills };
        (!unchanged && (resets || fills)).then_some(step)
    };
    let mut steps: Vec<ZonePreparation> = (0..).zip(&report.zones).filter_map(step).collect();
    steps.sort_by_key(|step| step.fills);
    steps
}

#[cfg(test)]
mod tests {
    use uflip_core::ZoneLimits;

    use super::*;
    use crate::PatternSpec;

    const ZONE: u64 = 1 << 20;
    const CAPACITY: u64 = 640 << 10;

    fn report(states: &[(ZoneState, u64)]) -> ZoneReport {
        let zone = |(number, (state, written)): (u64, &(ZoneState, u64))| Zone {
            start_bytes: Bytes(number * ZONE),
            capacity_bytes: Bytes(CAPACITY),
            write_pointer_bytes: Bytes(number * ZONE + written),
            state: *state,
            resets: None,
        };
        ZoneReport {
            limits: ZoneLimits { zone_bytes: ZONE, max_open_zones: 0, max_active_zones: 0 },
            zones: (0..).zip(states).map(zone).collect(),
        }
    }

    fn pattern(json: &str) -> Resolved {
        PatternSpec::parse(json).unwrap().resolve(Bytes(8 * ZONE), Bytes(4096)).unwrap()
    }

    /// Return offset in KiB, size in KiB and mode of every I/O.
    fn prepared_ios(pattern: &Resolved, report: &ZoneReport) -> Vec<(u64, u64, Mode)> {
        let steps = preparation(pattern, report);
        let ios = steps.iter().flat_map(ZonePreparation::ios);
        ios.map(|io| (io.offset.0 >> 10, io.size.0 >> 10, io.mode)).collect()
    }

    #[test]
    fn preparation_empties_written_zones_and_fills_read_zones() {
        let report = report(&[
            (ZoneState::Full, CAPACITY),
            (ZoneState::Empty, 0),
            (ZoneState::Closed, 512 << 10),
            (ZoneState::ExplicitlyOpen, 4096),
            (ZoneState::Offline, 0),
            (ZoneState::Full, CAPACITY),
        ]);
        let writes = r#"{"kind": "basic", "mode": "write", "location": "sequential", "io_size": 4096,
            "target_size": 2097152, "parallel_degree": 2, "io_count": 10}"#;
        assert_eq!(
            prepared_ios(&pattern(writes), &report),
            [(0, 1024, Mode::Reset), (2048, 1024, Mode::Reset), (3072, 1024, Mode::Reset)]
        );
        // Zones 1 and 2; zone 2 holds data of unknown content.
        let reads = r#"{"kind": "basic", "mode": "read", "location": "sequential", "io_size": 4096,
            "target_offset": 1048576, "target_size": 2097152, "parallel_degree": 2, "io_count": 10}"#;
        assert_eq!(
            prepared_ios(&pattern(reads), &report),
            [
                (3072, 1024, Mode::Reset),
                (1024, 128, Mode::Write),
                (1152, 128, Mode::Write),
                (1280, 128, Mode::Write),
                (1408, 128, Mode::Write),
                (1536, 128, Mode::Write),
                (2048, 1024, Mode::Reset),
                (2048, 128, Mode::Write),
                (2176, 128, Mode::Write),
                (2304, 128, Mode::Write),
                (2432, 128, Mode::Write),
                (2560, 128, Mode::Write),
            ]
        );
        let resets = r#"{"kind": "basic", "mode": "reset", "location": "sequential",
            "io_size": 1048576, "io_count": 4}"#;
        assert_eq!(
            prepared_ios(&pattern(resets), &report),
            [],
            "zones that the pattern resets stay unchanged"
        );
    }
}
