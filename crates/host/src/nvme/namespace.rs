//! The properties of a namespace, from Identify structures and its placement handles, and the states
//! of its zones, from Zone Management Receive.
//!
//! **Source**: Base Specification 2.1 (Identify Controller, Namespace Identification Descriptors,
//! Reclaim Unit Handle Status), NVM Command Set 1.1 (Identify Namespace, LBA formats), Zoned
//! Namespace Command Set 1.2 (its Identify structures).

use serde_json::{Map, Value};
use uflip_core::{Bytes, Error, Result, Zone, ZoneLimits, ZoneReport, ZoneState};

use super::command::{BLOCKS_MAX, Command, CommandSet, PAGE_BYTES};
use super::status::os_action;
use super::transport::{CommandError, Transport, read};

const IDENTIFY_BYTES: usize = 4096;
// Values of CNS.
const NAMESPACE: u8 = 0x00;
const CONTROLLER: u8 = 0x01;
const DESCRIPTORS: u8 = 0x03;
const NAMESPACE_OF_SET: u8 = 0x05;
const CONTROLLER_OF_SET: u8 = 0x06;
/// The type of the descriptor that holds the command set.
const COMMAND_SET_DESCRIPTOR: u8 = 4;
/// Bytes of Identify Controller: MDTS, CTRATT, ONCS.
const MDTS: usize = 77;
const CTRATT: usize = 96;
const ONCS: usize = 520;
/// Bits of CTRATT and ONCS: Flexible Data Placement, dataset management.
const DATA_PLACEMENT: u32 = 1 << 19;
const DATASET_MANAGEMENT: u16 = 1 << 2;
/// Bytes of Identify Namespace: NSZE, FLBAS, DPS, the list of LBA formats.
const NSZE: usize = 0;
const FLBAS: usize = 26;
const DPS: usize = 29;
const LBA_FORMATS: usize = 128;
/// Bytes of Identify Namespace of the zoned command set: MAR, MOR, the list of LBA formats.
const MAR: usize = 4;
const MOR: usize = 8;
const ZONE_FORMATS: usize = 2816;
/// Smallest and largest exponent of a block size: 512 bytes to 64 KiB.
const BLOCK_EXPONENTS: std::ops::RangeInclusive<u8> = 9..=16;
/// The list of placement handles: its header, its entries, and the number of these in the header.
const HANDLES_BYTES: usize = 4096;
const HANDLES_HEADER: usize = 16;
const HANDLE_BYTES: usize = 32;
const HANDLE_COUNT: usize = 14;
/// A report of zones: its header, and its descriptors.
const REPORT_HEADER: usize = 64;
const ZONE_DESCRIPTOR: usize = 64;
/// The size of one report: it fits into the smallest MDTS, one page.
const REPORT_BYTES: usize = 4096;
/// Bytes of a zone descriptor: state (upper half), capacity, start, write pointer.
const ZONE_STATE: usize = 1;
const ZONE_CAPACITY: usize = 8;
const ZONE_START: usize = 16;
const ZONE_POINTER: usize = 24;

/// A zoned namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ZoneFormat {
    pub(crate) zone_blocks: u64,
    /// The limit of open zones; 0: no limit.
    pub(crate) max_open: u32,
    /// The limit of active zones; 0: no limit.
    pub(crate) max_active: u32,
}

/// The properties of a namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    pub(crate) id: u32,
    pub(crate) blocks: u64,
    pub(crate) block_bytes: u64,
    /// The largest command with data, by the drive and the kernel.
    pub(crate) command_bytes_max: u64,
    /// The largest zone append.
    pub(crate) append_bytes_max: u64,
    pub(crate) deallocates: bool,
    pub(crate) zones: Option<ZoneFormat>,
    /// The identifiers of its placement handles; empty without data placement.
    pub(crate) placement: Vec<u16>,
}

impl Namespace {
    /// Read the properties of namespace `id`; the kernel accepts commands of up to `kernel_bytes_max`.
    pub(crate) fn read(
        drive: &dyn Transport,
        id: u32,
        kernel_bytes_max: u64,
        url: &str,
    ) -> Result<Namespace> {
        let ask = |cns, set| {
            read(drive, Command::identify(cns, id, set), IDENTIFY_BYTES)
                .map_err(|error| unreadable(url, error))
        };
        let set = command_set(&ask(DESCRIPTORS, CommandSet::Nvm)?, url)?;
        let controller = ask(CONTROLLER, CommandSet::Nvm)?;
        let format = BlockFormat::parse(&ask(NAMESPACE, CommandSet::Nvm)?, url)?;
        let kernel = kernel_bytes_max.max(PAGE_BYTES).min(BLOCKS_MAX * format.block_bytes);
        let command_bytes_max = transfer_limit(controller[MDTS], kernel);
        let mut append_bytes_max = command_bytes_max;
        let mut zones = None;
        if set == CommandSet::Zoned {
            let append_limit = ask(CONTROLLER_OF_SET, CommandSet::Zoned)?[0];
            append_bytes_max = transfer_limit(append_limit, command_bytes_max);
            let zoned = ask(NAMESPACE_OF_SET, CommandSet::Zoned)?;
            zones = Some(ZoneFormat::parse(&zoned, format.index));
        }
        let places = le32(&controller, CTRATT) & DATA_PLACEMENT != 0;
        Ok(Namespace {
            id,
            blocks: format.blocks,
            block_bytes: format.block_bytes,
            command_bytes_max,
            append_bytes_max,
            deallocates: le16(&controller, ONCS) & DATASET_MANAGEMENT != 0,
            zones,
            placement: if places { placement_handles(drive, id) } else { vec![] },
        })
    }

    /// Return the properties that are stored with a result.
    pub(crate) fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        details.insert("nsid".into(), self.id.into());
        details.insert("command_bytes_max".into(), self.command_bytes_max.into());
        if self.zones.is_some() {
            details.insert("append_bytes_max".into(), self.append_bytes_max.into());
        }
        if !self.placement.is_empty() {
            details.insert("placement_handles".into(), self.placement.len().into());
        }
        details
    }
}

/// The format of the blocks of a namespace.
struct BlockFormat {
    /// Its number in the lists of formats.
    index: usize,
    blocks: u64,
    block_bytes: u64,
}

impl BlockFormat {
    fn parse(namespace: &[u8], url: &str) -> Result<BlockFormat> {
        let flbas = namespace[FLBAS];
        // Bits 3:0, and 6:5 above them.
        let index = usize::from((flbas & 0xF) | (flbas >> 5 & 3) << 4);
        let format = le32(namespace, LBA_FORMATS + 4 * index);
        let (metadata, exponent) = (format & 0xFFFF, (format >> 16) as u8);
        let blocks = le64(namespace, NSZE);
        if metadata != 0 || namespace[DPS] & 7 != 0 {
            return Err(Error::device("The namespace stores metadata with each block")
                .at(url)
                .got(format!("LBA format {index} with {metadata} bytes of metadata a block"))
                .allowed("a format without metadata and without protection information")
                .action(
                    "format the namespace without metadata (nvme format), or measure another",
                ));
        }
        if blocks == 0 || !BLOCK_EXPONENTS.contains(&exponent) {
            return Err(Error::device("The namespace has no usable format")
                .at(url)
                .got(format!("{blocks} blocks of 2^{exponent} bytes (LBA format {index})"))
                .allowed("blocks of 512 bytes to 64 KiB")
                .action("is the namespace attached and formatted? See `nvme id-ns`"));
        }
        Ok(BlockFormat { index, blocks, block_bytes: 1 << exponent })
    }
}

impl ZoneFormat {
    fn parse(namespace: &[u8], index: usize) -> ZoneFormat {
        // The limits count from zero, and all ones are no limit: both by one addition.
        let limit = |at| le32(namespace, at).wrapping_add(1);
        ZoneFormat {
            zone_blocks: le64(namespace, ZONE_FORMATS + 16 * index),
            max_open: limit(MOR),
            max_active: limit(MAR),
        }
    }
}

/// Return the smaller one of `other` and a limit of the drive: 2^`exponent` pages, 0 for none.
fn transfer_limit(exponent: u8, other: u64) -> u64 {
    match exponent {
        0 | 52.. => other,
        exponent => other.min(PAGE_BYTES << exponent),
    }
}

/// Return the command set in a list of namespace identification descriptors. Drives before version
/// 2.0 list none: they have blocks.
fn command_set(descriptors: &[u8], url: &str) -> Result<CommandSet> {
    let mut rest = descriptors;
    while let [kind, length, _, _, tail @ ..] = rest {
        let value = tail.split_at_checked(usize::from(*length));
        let Some((value, next)) = value.filter(|(value, _)| !value.is_empty()) else { break };
        match (*kind, value[0]) {
            (COMMAND_SET_DESCRIPTOR, 0) => return Ok(CommandSet::Nvm),
            (COMMAND_SET_DESCRIPTOR, 2) => return Ok(CommandSet::Zoned),
            (COMMAND_SET_DESCRIPTOR, other) => {
                return Err(Error::device("The namespace has another command set")
                    .at(url)
                    .got(format!("command set {other}"))
                    .allowed("0 (blocks), 2 (zones)")
                    .action("name a namespace with blocks or zones"));
            }
            _ => rest = next,
        }
    }
    Ok(CommandSet::Nvm)
}

/// Return the identifiers of the placement handles; none if data placement is disabled.
fn placement_handles(drive: &dyn Transport, id: u32) -> Vec<u16> {
    let mut data = vec![0; HANDLES_BYTES];
    let command = Command::placement_handles(id, HANDLES_BYTES);
    if drive.io(command, &mut data).is_err() {
        return vec![];
    }
    let count = usize::from(le16(&data, HANDLE_COUNT));
    let entries = data[HANDLES_HEADER..].chunks_exact(HANDLE_BYTES);
    entries.take(count).map(|entry| le16(entry, 0)).collect()
}

/// Return all zones of a namespace; `None` if it has none.
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
        let batch = parse_zones(&data, start, &format, namespace.block_bytes).map_err(|got| {
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
fn parse_zones(
    data: &[u8],
    start: u64,
    format: &ZoneFormat,
    block_bytes: u64,
) -> std::result::Result<Vec<Zone>, String> {
    let count = usize::try_from(le64(data, 0)).unwrap_or(usize::MAX);
    let entries = data[REPORT_HEADER..].chunks_exact(ZONE_DESCRIPTOR).take(count);
    let mut expected = start;
    let mut zones = Vec::with_capacity(entries.len());
    for entry in entries {
        let (capacity, at, pointer) =
            (le64(entry, ZONE_CAPACITY), le64(entry, ZONE_START), le64(entry, ZONE_POINTER));
        let number = entry[ZONE_STATE] >> 4;
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

fn unreadable(url: &str, error: CommandError) -> Error {
    let error = std::io::Error::from(error);
    Error::os("The namespace does not describe itself", url, &error).action(os_action(&error))
}

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
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
            data[REPORT_HEADER..].chunks_exact_mut(ZONE_DESCRIPTOR).zip(zones)
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
        let zones = parse_zones(&data, 8192, &FORMAT, 4096).unwrap();
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
            assert!(parse_zones(&report(zones), 0, &FORMAT, 4096).is_err(), "{zones:?}");
        }
    }

    #[test]
    fn report_with_more_zones_than_fit_is_read_in_parts() {
        let mut data = report(&[(1, 3072, 0, 0); 1]);
        data[..8].copy_from_slice(&64u64.to_le_bytes());
        for (number, entry) in data[REPORT_HEADER..].chunks_exact_mut(ZONE_DESCRIPTOR).enumerate() {
            entry[1] = 1 << 4;
            entry[16..24].copy_from_slice(&(number as u64 * 4096).to_le_bytes());
        }
        assert_eq!(parse_zones(&data, 0, &FORMAT, 4096).unwrap().len(), 63);
    }
}
