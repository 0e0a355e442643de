//! The states of zones, from Zone Management Receive (Zoned Namespace Command Set 1.2).

use uflip_core::{Bytes, Error, Result, Zone, ZoneLimits, ZoneReport, ZoneState};

use super::command::Command;
use super::namespace::{Namespace, ZoneFormat, le64};
use super::status::os_action;
use super::transport::Transport;

const HEADER_BYTES: usize = 64;
const ZONE_BYTES: usize = 64;
/// The size of one report: it fits into the smallest MDTS, one page.
const REPORT_BYTES: usize = 4096;
/// Bytes of a descriptor: state (upper half), capacity, start, write pointer.
const STATE: usize = 1;
const CAPACITY: usize = 8;
const START: usize = 16;
const POINTER: usize = 24;

/// Return all zones of a namespace; `None` if it has none.
///
/// # Errors
/// If the drive or the kernel refuses; an inconsistent report.
pub(crate) fn read_zones(
    drive: &dyn Transport,
    namespace: &Namespace,
    url: &str,
) -> Result<Option<ZoneReport>> {
    let Some(format) = namespace.zones else { return Ok(None) };
    let mut zones = Vec::new();
    let mut start = 0;
    while start < namespace.blocks {
        let mut data = vec![0; REPORT_BYTES];
        let command = Command::report_zones(namespace.id, start, REPORT_BYTES);
        drive.io(command, &mut data).map_err(|error| {
            let error = std::io::Error::from(error);
            Error::os("The zones could not be read", url, &error).action(os_action(&error))
        })?;
        let batch = parse(&data, start, &format, namespace.block_bytes).map_err(|got| {
            Error::device("The zone report is inconsistent")
                .at(url)
                .got(got)
                .action("compare the output of `nvme zns report-zones`")
        })?;
        if batch.is_empty() {
            break;
        }
        start += batch.len() as u64 * format.zone_blocks;
        zones.extend(batch);
    }
    let limits = ZoneLimits {
        zone_bytes: format.zone_blocks * namespace.block_bytes,
        max_open_zones: format.max_open,
        max_active_zones: format.max_active,
    };
    Ok(Some(ZoneReport { limits, zones }))
}

/// Parse a report whose first zone begins at block `start`.
fn parse(
    data: &[u8],
    start: u64,
    format: &ZoneFormat,
    block_bytes: u64,
) -> std::result::Result<Vec<Zone>, String> {
    let count = usize::try_from(le64(data, 0)).unwrap_or(usize::MAX);
    let entries = data[HEADER_BYTES..].chunks_exact(ZONE_BYTES).take(count);
    let mut expected = start;
    let mut zones = Vec::with_capacity(entries.len());
    for entry in entries {
        let (capacity, at, pointer) =
            (le64(entry, CAPACITY), le64(entry, START), le64(entry, POINTER));
        let number = entry[STATE] >> 4;
        // The numbers of the specification are those of Linux, without the one for conventional.
        let state = ZoneState::from_linux(number)
            .filter(|state| *state != ZoneState::Conventional)
            .ok_or_else(|| format!("a zone at block {at} in the state {number:#x}"))?;
        if at != expected || capacity > format.zone_blocks {
            let blocks = format.zone_blocks;
            return Err(format!(
                "a zone at block {at} with a capacity of {capacity} of {blocks}, not at {expected}"
            ));
        }
        expected += format.zone_blocks;
        // A full zone has no write pointer.
        let pointer = match state {
            ZoneState::Full => at + capacity,
            _ => pointer.clamp(at, at + capacity),
        };
        zones.push(Zone {
            start_bytes: Bytes(at * block_bytes),
            capacity_bytes: Bytes(capacity * block_bytes),
            write_pointer_bytes: Bytes(pointer * block_bytes),
            state,
            resets: None,
        });
    }
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: ZoneFormat = ZoneFormat { zone_blocks: 4096, max_open: 8, max_active: 12 };

    /// Build a report: state, capacity, start, pointer of each zone.
    fn report(zones: &[(u8, u64, u64, u64)]) -> Vec<u8> {
        let mut data = vec![0; REPORT_BYTES];
        data[..8].copy_from_slice(&(zones.len() as u64).to_le_bytes());
        for (entry, (state, capacity, start, pointer)) in
            data[HEADER_BYTES..].chunks_exact_mut(ZONE_BYTES).zip(zones)
        {
            entry[0] = 2; // sequential writes required
            entry[1] = state << 4;
            entry[8..16].copy_from_slice(&capacity.to_le_bytes());
            entry[16..24].copy_from_slice(&start.to_le_bytes());
            entry[24..32].copy_from_slice(&pointer.to_le_bytes());
        }
        data
    }

    #[test]
    fn report_is_converted_to_bytes() {
        // As `nvme zns report-zones` prints: full zones have no pointer (all ones).
        let data = report(&[
            (1, 3072, 8192, 8192),
            (2, 3072, 12_288, 12_298),
            (0xE, 3072, 16_384, u64::MAX),
            (4, 3072, 20_480, 20_481),
        ]);
        let zones = parse(&data, 8192, &FORMAT, 4096).unwrap();
        let states: Vec<_> = zones.iter().map(|zone| zone.state).collect();
        let expected =
            [ZoneState::Empty, ZoneState::ImplicitlyOpen, ZoneState::Full, ZoneState::Closed];
        assert_eq!(states, expected);
        let written = |zone: &Zone| zone.write_pointer_bytes.0 - zone.start_bytes.0;
        assert_eq!(zones.iter().map(written).collect::<Vec<_>>(), [0, 10 * 4096, 12 << 20, 4096]);
    }

    #[test]
    fn inconsistent_report_is_refused() {
        for zones in [
            &[(0, 3072, 0, 0)][..],
            &[(7, 3072, 0, 0)],
            &[(1, 4097, 0, 0)],
            &[(1, 3072, 4096, 4096)],
            &[(1, 3072, 0, 0), (1, 3072, 4095, 4095)],
        ] {
            assert!(parse(&report(zones), 0, &FORMAT, 4096).is_err(), "{zones:?}");
        }
    }

    #[test]
    fn report_with_more_zones_than_fit_is_read_in_parts() {
        let mut data = report(&[(1, 3072, 0, 0); 1]);
        data[..8].copy_from_slice(&64u64.to_le_bytes());
        for (number, entry) in data[HEADER_BYTES..].chunks_exact_mut(ZONE_BYTES).enumerate() {
            entry[1] = 1 << 4;
            entry[16..24].copy_from_slice(&(number as u64 * 4096).to_le_bytes());
        }
        assert_eq!(parse(&data, 0, &FORMAT, 4096).unwrap().len(), 63);
    }
}
