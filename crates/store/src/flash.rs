//! The log of a job over physical addresses, as columns, as a Parquet table, and as text.
//!
//! | column | type | what |
//! |---|---|---|
//! | `thread` | u16 | the thread that submitted the command |
//! | `submit_ns`, `response_time_ns` | u64 | submission, from the start of the job; response time |
//! | `op` | u8 | 0 read, 1 write, 2 erase |
//! | `channel`, `lun`, `block`, `page` | | the first address; those of a vector follow from the job |
//! | `addresses`, `failed` | u8 | the number of addresses, and of failed ones |
//! | `status` | u8 | the status of the first failed address |
//! | one per cause | u64 | the parts of the response time |
//!
//! The log of a wear job has one row a cycle instead. Its metadata contains the number of commands
//! that write the block once, and whether the last erase failed.
//!
//! The format has a version (`uflip.flash_table_version`); a file of any other version is refused.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use uflip_core::{AddressStatus, Error, ErrorKind, FlashOp, Ppa, Result};
use uflip_engine::flash::{FlashOutcome, FlashTrace, WearLog};

use crate::digest::Digest;
use crate::read::{Problem, Table, read_table};
use crate::safe_read::contained;
use crate::table::{ColumnData, write_columns};
use crate::{KEY_JOB, KEY_RUN, version_error};

const KEY_VERSION: &str = "uflip.flash_table_version";
const KEY_WEAR: &str = "uflip.flash_wear";
/// The version of the table.
const VERSION: &str = "1";

const COMMANDS: [&str; 11] = [
    "thread",
    "submit_ns",
    "response_time_ns",
    "op",
    "channel",
    "lun",
    "block",
    "page",
    "addresses",
    "failed",
    "status",
];
const CYCLES: [&str; 7] = [
    "erase_ns",
    "write_ns",
    "read_ns",
    "write_max_ns",
    "read_max_ns",
    "failed_writes",
    "failed_reads",
];

/// Return the names that [`flash_column`] accepts.
#[must_use]
pub fn flash_column_names(outcome: &FlashOutcome) -> Vec<&str> {
    match outcome {
        FlashOutcome::Trace(trace) => {
            COMMANDS.into_iter().chain(trace.causes.iter().map(String::as_str)).collect()
        }
        FlashOutcome::Wear(_) => CYCLES.to_vec(),
    }
}

/// Return a column by name.
///
/// # Errors
/// An unknown name; the error lists the known ones.
pub fn flash_column<'a>(outcome: &'a FlashOutcome, name: &str) -> Result<ColumnData<'a>> {
    let column = match outcome {
        FlashOutcome::Trace(trace) => command_column(trace, name),
        FlashOutcome::Wear(log) => cycle_column(log, name),
    };
    column.ok_or_else(|| Error::unknown("column of a job", name, &flash_column_names(outcome)))
}

fn command_column<'a>(trace: &'a FlashTrace, name: &str) -> Option<ColumnData<'a>> {
    let first = |field: fn(Ppa) -> u32| trace.first_addresses().map(field);
    Some(match name {
        "thread" => ColumnData::U16(trace.threads().collect()),
        "submit_ns" => ColumnData::U64(Cow::Borrowed(&trace.submit_ns)),
        "response_time_ns" => ColumnData::U64(Cow::Borrowed(&trace.response_time_ns)),
        "op" => ColumnData::U8(trace.ops().collect()),
        "channel" => ColumnData::U8(trace.first_addresses().map(|ppa| ppa.channel).collect()),
        "lun" => ColumnData::U8(trace.first_addresses().map(|ppa| ppa.lun).collect()),
        "block" => ColumnData::U32(first(|ppa| ppa.block).collect()),
        "page" => ColumnData::U32(first(|ppa| ppa.page).collect()),
        "addresses" => ColumnData::U8(trace.addresses().collect()),
        "failed" => ColumnData::U8(trace.failed().collect()),
        "status" => ColumnData::U8(trace.statuses().collect()),
        _ => {
            let cause = trace.causes.iter().position(|cause| cause == name)?;
            ColumnData::U64(Cow::Borrowed(&trace.cause_ns[cause]))
        }
    })
}

fn cycle_column<'a>(log: &'a WearLog, name: &str) -> Option<ColumnData<'a>> {
    let column = match name {
        "erase_ns" => &log.erase_ns,
        "write_ns" => &log.write_ns,
        "read_ns" => &log.read_ns,
        "write_max_ns" => &log.write_max_ns,
        "read_max_ns" => &log.read_max_ns,
        "failed_writes" => &log.failed_writes,
        "failed_reads" => &log.failed_reads,
        _ => return None,
    };
    Some(ColumnData::U64(Cow::Borrowed(column)))
}

/// Write every column of `outcome`, with `run` (JSON) as metadata, to the new file `path`.
///
/// # Errors
/// If the file exists, or cannot be written.
pub fn write_flash_table(outcome: &FlashOutcome, path: &Path, run: &str) -> Result<()> {
    let (job, rows) = match outcome {
        FlashOutcome::Trace(trace) => (&trace.canonical, trace.len()),
        FlashOutcome::Wear(log) => (&log.canonical, log.len()),
    };
    let columns = flash_column_names(outcome)
        .into_iter()
        .map(|name| Ok((name.to_owned(), flash_column(outcome, name)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut metadata = vec![
        KeyValue::new(KEY_VERSION.to_owned(), VERSION.to_owned()),
        KeyValue::new(KEY_JOB.to_owned(), job.to_string()),
        KeyValue::new(KEY_RUN.to_owned(), run.to_owned()),
    ];
    if let FlashOutcome::Wear(log) = outcome {
        let wear = WearMetadata { commands: log.commands, erase_failed: log.erase_failed };
        let wear = serde_json::to_string(&wear).expect("serializable");
        metadata.push(KeyValue::new(KEY_WEAR.to_owned(), wear));
    }
    write_columns(path, &columns, rows, metadata)
}

/// The metadata of a wear job.
#[derive(Serialize, Deserialize)]
struct WearMetadata {
    commands: u64,
    erase_failed: bool,
}

/// Read the table in `path` and its metadata. With `expected`, the length [bytes] and digest are
/// checked before anything is parsed.
///
/// # Errors
/// [`ErrorKind::Results`]: missing, not the expected file, damaged, not such a table, or of another
/// version.
pub fn read_flash_table(path: &Path, expected: Option<&Digest>) -> Result<(FlashOutcome, String)> {
    let table = read_table(path, expected).map_err(Problem::from);
    table.and_then(|table| contained(|| outcome_of(table))?).map_err(|problem| match problem {
        Problem::Version(version) => version_error("The log", path, &version, VERSION),
        Problem::Damage(message) => Error::new(
            ErrorKind::Results,
            "The log cannot be read: it is damaged or not the log of a job",
        )
        .at(path.display().to_string())
        .got(message)
        .action("move the file away to look at the other runs, or measure again"),
        Problem::Log | Problem::Long => unreachable!("a problem of traces"),
    })
}

fn outcome_of(mut table: Table) -> std::result::Result<(FlashOutcome, String), Problem> {
    let key = |name: &str| table.value(name).ok_or_else(|| format!("no '{name}' in its metadata"));
    let (version, job, run) = (key(KEY_VERSION)?, key(KEY_JOB)?, key(KEY_RUN)?);
    let canonical: serde_json::Value =
        serde_json::from_str(&job).map_err(|error| format!("'{KEY_JOB}': {error}"))?;
    let wear = table.value(KEY_WEAR);
    if version != VERSION {
        return Err(Problem::Version(version));
    }
    let Some(wear) = wear else {
        let causes = table.names_except(&COMMANDS);
        let trace = FlashTrace::from_columns(canonical, causes, |name| table.take(name))?;
        return Ok((FlashOutcome::Trace(trace), run));
    };
    let wear: WearMetadata =
        serde_json::from_str(&wear).map_err(|error| format!("'{KEY_WEAR}': {error}"))?;
    let [erase_ns, write_ns, read_ns, write_max_ns, read_max_ns, failed_writes, failed_reads] =
        CYCLES.map(|name| table.take(name));
    let log = WearLog {
        canonical,
        commands: wear.commands,
        erase_ns: erase_ns?,
        write_ns: write_ns?,
        read_ns: read_ns?,
        write_max_ns: write_max_ns?,
        read_max_ns: read_max_ns?,
        failed_writes: failed_writes?,
        failed_reads: failed_reads?,
        erase_failed: wear.erase_failed,
    };
    Ok((FlashOutcome::Wear(log), run))
}

/// Write a line per command, with the columns of FOX separated by semicolons, to the new file
/// `path`. Times are nanoseconds from the start of the job. FOX's comparison of data is not
/// available.
///
/// # Errors
/// If it is not a log of commands; if the file exists, or cannot be written.
pub fn write_flash_csv(outcome: &FlashOutcome, path: &Path, sector_bytes: u64) -> Result<()> {
    let FlashOutcome::Trace(trace) = outcome else {
        return Err(Error::usage("A wear job has no line per command")
            .at(path.display().to_string())
            .action("write a .parquet table, which has a row per cycle"));
    };
    let failed = |error: &std::io::Error| {
        Error::os("The log cannot be written", path.display().to_string(), error)
            .action("choose a new name in a folder that exists")
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut out = BufWriter::new(file.map_err(|error| failed(&error))?);
    lines(trace, &mut out, sector_bytes).map_err(|error| failed(&error))
}

fn lines(trace: &FlashTrace, out: &mut impl Write, sector_bytes: u64) -> std::io::Result<()> {
    writeln!(
        out,
        "sequence;node_sequence;node_id;channel;lun;block;page;start_ns;end_ns;response_time_ns;\
         type;is_failed;status;bytes"
    )?;
    let mut order: Vec<usize> = (0..trace.len()).collect();
    order.sort_by_key(|row| trace.submit_ns[*row]);
    let (threads, first_addresses): (Vec<_>, Vec<_>) =
        (trace.threads().collect(), trace.first_addresses().collect());
    let mut numbers = vec![0u64; trace.per_thread.len()];
    let (ops, failed): (Vec<_>, Vec<_>) = (trace.ops().collect(), trace.failed().collect());
    let (statuses, addresses): (Vec<_>, Vec<_>) =
        (trace.statuses().collect(), trace.addresses().collect());
    for (sequence, row) in order.into_iter().enumerate() {
        let (thread, address): (u16, Ppa) = (threads[row], first_addresses[row]);
        let number = &mut numbers[usize::from(thread)];
        let (start, length) = (trace.submit_ns[row], trace.response_time_ns[row]);
        let op = match FlashOp::ALL[usize::from(ops[row])] {
            FlashOp::Read => 'r',
            FlashOp::Write => 'w',
            FlashOp::Erase => 'e',
        };
        let bytes = if op == 'e' { 0 } else { u64::from(addresses[row]) * sector_bytes };
        writeln!(
            out,
            "{sequence};{number};{thread};{};{};{};{};{start};{};{length};{op};{};{};{bytes}",
            address.channel,
            address.lun,
            address.block,
            address.page,
            start + length,
            u8::from(failed[row] > 0),
            AddressStatus::NAMES[usize::from(statuses[row])],
        )?;
        *number += 1;
    }
    out.flush()
}
