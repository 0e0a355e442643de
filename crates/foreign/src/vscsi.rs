//! The binary traces of CloudPhysics (vSCSI), versions 1 and 2.
//!
//! ```text
//!  version 1   0 number  4 bytes  8 segments  12 command  14 version  16 LBA  24 time [µs]        32
//!  version 2   0 command 2 version  4 number  8 bytes  12 segments  16 LBA  24 time [µs]  32 …    40
//! ```
//!
//! **Source**: the record layouts in libCacheSim (`vscsi.h`), whose authors published these traces;
//! SCSI block commands for the codes of reads and writes.
//! **Faithful**: offsets in sectors of 512 bytes, sizes, modes and times.
//! **Simplified**: other commands are counted by name.
//! **Ambiguous**: the last field of version 2 is a response time of unknown unit, and is ignored.

use std::io::BufRead;

use uflip_core::Mode;

use crate::blktrace::{INCOMPLETE, fill};
use crate::lines::{LineError, LineReader};
use crate::recorded::{FoundIo, RecordedTrace};

const MAX_RECORD_BYTES: usize = 40;
/// The records by which a version is recognised.
const SAMPLE_RECORDS: usize = 8;

struct Layout {
    version: u16,
    record_bytes: usize,
    command: usize,
    version_at: usize,
    size: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout { version: 2, record_bytes: 40, command: 0, version_at: 2, size: 8 },
    Layout { version: 1, record_bytes: 32, command: 12, version_at: 14, size: 4 },
];

fn layout(bytes: &[u8]) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| {
        let records = bytes.chunks_exact(layout.record_bytes).take(SAMPLE_RECORDS);
        records.len() > 1
            && records.clone().all(|record| {
                u16_at(record, layout.version_at) >> 8 == layout.version
                    && mode(u16_at(record, layout.command)).is_some()
            })
    })
}

pub(crate) fn matches(bytes: &[u8]) -> bool {
    layout(bytes).is_some()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16_at(bytes, at)) | u64::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}

/// Return the mode of a SCSI command, or the name of one without data; `None` if it is unknown.
fn mode(command: u16) -> Option<Result<Mode, &'static str>> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Ok(Mode::Read)),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Ok(Mode::Write)),
        0x42 => Some(Err("unmap")),
        0x35 | 0x91 => Some(Err("flush")),
        0..=0xff => Some(Err("command")),
        _ => None,
    }
}

pub(crate) fn read(sample: &[u8], input: &mut dyn BufRead) -> Result<RecordedTrace, LineError> {
    let layout = layout(sample).ok_or_else(|| {
        LineError::of_file("other bytes", "records of vSCSI traces, version 1 or 2")
    })?;
    let mut recorded = RecordedTrace::with_offsets(true);
    recorded.assumptions.version = layout.version.to_string();
    let mut nothing = std::io::empty();
    let mut lines = LineReader::new(&mut nothing);
    let mut bytes = [0; MAX_RECORD_BYTES];
    let record = &mut bytes[..layout.record_bytes];
    loop {
        let filled = fill(input, record)?;
        if filled < record.len() {
            (0..filled.min(1)).for_each(|_| recorded.skip_operation(INCOMPLETE));
            break;
        }
        let mode = match mode(u16_at(record, layout.command)) {
            Some(Ok(mode)) => mode,
            Some(Err(name)) => {
                recorded.skip_operation(name);
                continue;
            }
            None => {
                recorded.skip_operation("odd record");
                continue;
            }
        };
        let found = FoundIo {
            source: 0,
            mode,
            offset: u64_at(record, 16).saturating_mul(512),
            size: u32_at(record, layout.size),
            at: u64_at(record, 24).saturating_mul(1000),
            ends: false,
            response_ns: None,
        };
        recorded.push(&mut lines, found)?;
    }
    recorded.odd = lines.odd_lines(recorded.ios.len(), "records of vSCSI traces")?;
    Ok(recorded)
}
