//! fio's logs (`write_lat_log`, `write_bw_log`, `write_iops_log`, `write_hist_log`).
//!
//! ```text
//!  time [ms], value, 0|1|2, block size [bytes] …      0 read, 1 write, 2 trim
//!    4  … nothing more                    until 3.17
//!    5  … offset                          until 3.17, log_offset=1
//!       … priority                        since 3.18
//!    6  … offset, priority                since 3.18, log_offset=1
//!    7  … offset, priority, issue time    since 3.38, log_issue_time=1, which needs log_offset=1
//!  time, mean, maximum, 0|1|2, …          log_window_value=both
//!  time, 0|1|2, block size, bin, bin, …   histograms
//! ```
//!
//! **Source**: fio's documentation, "Log file formats"; `flush_samples` in its `iolog.c`, of 3.17
//! to 3.42; the output of fio 3.17, 3.33 and 3.42. The quantity is in the name of the file alone.
//! **Faithful**: response times, sizes, modes, offsets and issue times if they are logged.
//! **Simplified**: an I/O logged at t is assumed to have begun at t − response time; `measured.rs`
//! refines that, because fio's clock here has whole milliseconds.
//! **Ambiguous**: the meaning of the fifth of five fields depends on all lines of a log. A priority
//! is 0, 1, or hexadecimal (0x…) in every line. If all lines have 0 or 1, the offsets count as
//! unknown and are 0: if they were offsets of an earlier version, all I/Os were there. Any other
//! log is an error. fio 2 logged µs with the same columns as 3.0 to 3.17, which log ns: see [`Unit`].

use uflip_core::{Mode, SpooledVec};

use crate::fields::{unit_name, words};
use crate::lines::{LineError, LineReader};
use crate::recorded::{FoundIo, MAX_TIME_NS, RecordedIo, RecordedTrace};
use crate::sample::Sample;

pub(crate) const EXAMPLE: &str = "1, 88700, 0, 4096, 794472448, 0";
const ALLOWED: &str =
    "TIME, RESPONSE_TIME, 0|1|2, SIZE[, OFFSET][, PRIORITY[, ISSUE_TIME]], all lines alike";
/// The number of fields of every line, and of optional ones.
const FIELDS: usize = 4;
const OPTIONAL_FIELDS: usize = 3;
/// A log of histograms has at least as many fields.
const HISTOGRAM_FIELDS: usize = 20;
const MS: u64 = 1_000_000;
const US: u64 = 1000;
/// The most I/Os at a time that a log of one job may mean.
const MAX_DEPTH: f64 = 512.0;

/// The quantity of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quantity {
    Time(&'static str),
    Bandwidth,
    Iops,
    Histogram,
    Unknown,
}

/// Return the quantity that the name of a log contains last, as "iops-test_clat.1.log" does.
pub(crate) fn quantity_of_name(name: &str) -> Quantity {
    let quantity = |word: &str| match word {
        "hist" => Some(Quantity::Histogram),
        "bw" | "bandwidth" => Some(Quantity::Bandwidth),
        "iops" => Some(Quantity::Iops),
        _ => {
            let times = ["clat", "slat", "lat", "latency"];
            times.into_iter().find(|time| *time == word).map(Quantity::Time)
        }
    };
    words(name).iter().rev().find_map(|word| quantity(word)).unwrap_or(Quantity::Unknown)
}

/// One line of a log of single values.
pub(crate) struct LogLine<'a> {
    pub(crate) time_ms: u64,
    pub(crate) value: u64,
    /// Whether the line has a mean and a maximum.
    has_maximum: bool,
    pub(crate) direction: u64,
    pub(crate) size: u64,
    tail: &'a [&'a str],
}

pub(crate) fn log_line<'a>(fields: &'a [&'a str]) -> Option<LogLine<'a>> {
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let (time_ms, value) = (number(0)?, number(1)?);
    let direction = number(2)?;
    if direction <= 2 && fields.len() <= FIELDS + OPTIONAL_FIELDS {
        let (size, tail) = (number(3)?, &fields[FIELDS..]);
        return is_tail(tail).then_some(LogLine {
            time_ms,
            value,
            has_maximum: false,
            direction,
            size,
            tail,
        });
    }
    let (direction, size) = (number(3)?, number(4)?);
    let tail = fields.get(FIELDS + 1..)?;
    // The versions that write a maximum write a priority, too.
    (direction <= 2 && !tail.is_empty() && tail.len() <= OPTIONAL_FIELDS && is_tail(tail))
        .then_some(LogLine { time_ms, value, has_maximum: true, direction, size, tail })
}

fn is_tail(tail: &[&str]) -> bool {
    tail.iter().all(|field| match field.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).is_ok(),
        None => field.parse::<u64>().is_ok(),
    })
}

pub(crate) fn is_histogram(fields: &[&str]) -> bool {
    fields.len() >= HISTOGRAM_FIELDS
        && fields.iter().all(|field| field.parse::<u64>().is_ok())
        && matches!(fields[1], "0" | "1" | "2")
}

pub(crate) fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

pub(crate) fn matches(sample: &Sample) -> usize {
    let is_line = |line: &&String| {
        let fields = fields(line);
        log_line(&fields).is_some() || is_histogram(&fields)
    };
    sample.lines.iter().filter(is_line).count()
}

/// The fields after the size, over a whole log.
#[derive(Default)]
struct OptionalFields {
    /// The number of fields; `None` before the first line.
    fields: Option<usize>,
    /// For each field, whether a line has a hexadecimal number there, and whether one has a number
    /// above 1.
    hexadecimal: [bool; OPTIONAL_FIELDS],
    large: [bool; OPTIONAL_FIELDS],
}

impl OptionalFields {
    /// Add the fields of one line, and return the first as a possible offset [bytes] and the third as
    /// a possible issue time [ns]; `None` if their number differs from earlier lines.
    fn add(&mut self, fields: &[&str]) -> Option<(u64, u64)> {
        let expected = *self.fields.get_or_insert(fields.len());
        if fields.len() != expected {
            return None;
        }
        let mut numbers = [0; OPTIONAL_FIELDS];
        for (index, field) in fields.iter().enumerate() {
            if field.starts_with("0x") {
                self.hexadecimal[index] = true;
            } else {
                numbers[index] = field.parse().ok()?;
                self.large[index] |= numbers[index] > 1;
            }
        }
        Some((numbers[0], numbers[2]))
    }

    /// Return whether all lines can have a priority in this field.
    fn may_be_priority(&self, field: usize) -> bool {
        !self.large[field]
    }

    /// Return whether all lines can have an offset or an issue time in this field.
    fn may_be_number(&self, field: usize) -> bool {
        !self.hexadecimal[field]
    }

    /// Return a description of each field.
    fn describe(&self) -> String {
        let words = |field: usize| match (self.hexadecimal[field], self.large[field]) {
            (false, false) => "0 or 1",
            (false, true) => "decimal numbers",
            (true, false) => "hexadecimal numbers",
            (true, true) => "decimal and hexadecimal numbers",
        };
        let describe_field = |field| format!("field {}: {}", FIELDS + field + 1, words(field));
        let fields: Vec<String> = (0..self.fields.unwrap_or(0)).map(describe_field).collect();
        fields.join(", ")
    }

    /// Return whether the first field is an offset; `None` if fio does not write such a log.
    fn has_offsets(&self) -> Option<bool> {
        match self.fields.unwrap_or(0) {
            0 => Some(false),
            1 if self.may_be_priority(0) => Some(false),
            1 => self.may_be_number(0).then_some(true),
            more => {
                let fits = self.may_be_number(0) && self.may_be_priority(1);
                (fits && (more == 2 || self.may_be_number(2))).then_some(true)
            }
        }
    }

    /// Return whether the version logs response times in ns for certain: since 3.18.
    fn is_nanoseconds(&self, has_offsets: bool) -> bool {
        let fields = self.fields.unwrap_or(0);
        fields > 1 || (fields == 1 && !has_offsets)
    }

    fn columns(&self, has_offsets: bool, unit: u64) -> String {
        let mut columns = vec![
            "time [ms]".to_owned(),
            format!("response [{}]", unit_name(unit)),
            "direction".to_owned(),
            "size [bytes]".to_owned(),
        ];
        let names: &[&str] = if has_offsets {
            &["offset [bytes]", "priority", "issue time [ns]"]
        } else {
            &["priority"]
        };
        let count = self.fields.unwrap_or(0).min(names.len());
        columns.extend(names[..count].iter().map(|name| (*name).to_owned()));
        columns.join(", ")
    }
}

/// The averages in a log.
#[derive(Default)]
struct Averages {
    count: u64,
    last_time_ms: u64,
    /// The longest time between two of them [ms].
    step_ms: u64,
}

impl Averages {
    fn add(&mut self, log: &LogLine<'_>) {
        if !log.has_maximum && (log.size > 0 || log.value == 0) {
            return;
        }
        if self.count > 0 {
            self.step_ms = self.step_ms.max(log.time_ms.saturating_sub(self.last_time_ms));
        }
        self.count += 1;
        self.last_time_ms = log.time_ms;
    }
}

/// A log before the unit of its response times is known.
struct LogContent {
    recorded: RecordedTrace,
    tail: OptionalFields,
    averages: Averages,
    /// The issue time of each I/O [ns], if the log has a column for them.
    issue_times: SpooledVec<u64>,
}

/// Read a log of response times. `unit` is that of the response times [ns], which also states that
/// the values are response times where the name of the file does not.
pub(crate) fn read(
    sample: &Sample,
    lines: &mut LineReader<'_>,
    unit: Option<u64>,
) -> Result<RecordedTrace, LineError> {
    if sample.lines.iter().any(|line| is_histogram(&fields(line))) {
        return Err(quantity_error(Quantity::Histogram, sample));
    }
    let quantity = match (quantity_of_name(&sample.name), unit) {
        (Quantity::Unknown, Some(_)) => Quantity::Time("log"),
        (quantity, _) => quantity,
    };
    let Quantity::Time(name) = quantity else { return Err(quantity_error(quantity, sample)) };
    let LogContent { mut recorded, tail, averages, mut issue_times } = read_lines(lines)?;
    recorded.odd = lines.odd_lines(recorded.ios.len(), ALLOWED)?;
    recorded.assumptions.quantity = name.to_owned();
    let is_averaged = averages.count * 2 > recorded.ios.len() as u64;
    if !is_averaged && averages.count > 0 {
        let lines_read = recorded.ios.len();
        recorded.ios.retain(|io| io.size > 1);
        issue_times = SpooledVec::default();
        for _ in recorded.ios.len()..lines_read {
            recorded.skip_operation("empty");
        }
    }
    let Some(has_offsets) = tail.has_offsets() else {
        let count = FIELDS + tail.fields.unwrap_or(0);
        let got = format!("{count} fields in every line, {}", tail.describe());
        let allowed = "offsets and issue times, which are decimal; priorities, which are 0, 1, or \
                       hexadecimal (0x…)";
        return Err(LineError::of_file(got, allowed));
    };
    recorded.has_offsets = has_offsets;
    if !has_offsets {
        recorded.ios.iter_mut().for_each(|io| io.offset = 0);
    }
    let is_ns = tail.is_nanoseconds(has_offsets);
    let unit = match unit {
        Some(unit) => unit,
        None => unit_of(&recorded.ios, is_ns, name == "slat")?,
    };
    recorded.assumptions.version = version(is_ns, unit).to_owned();
    recorded.assumptions.unit = unit_name(unit).to_owned();
    recorded.assumptions.columns = tail.columns(has_offsets, unit);
    apply(&mut recorded, unit, &issue_times);
    recorded.averaged_ns = is_averaged.then(|| averages.step_ms.max(1).saturating_mul(MS));
    Ok(recorded)
}

fn read_lines(lines: &mut LineReader<'_>) -> Result<LogContent, LineError> {
    let mut recorded = RecordedTrace::with_offsets(true);
    let (mut tail, mut averages) = (OptionalFields::default(), Averages::default());
    let mut issue_times = SpooledVec::default();
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let fields = fields(&line);
        let parsed = log_line(&fields).and_then(|log| {
            let (offset, issue_ns) = tail.add(log.tail)?;
            let at = log.time_ms.checked_mul(MS)?;
            Some((log, offset, issue_ns, at))
        });
        let Some((log, offset, issue_ns, at)) = parsed else {
            lines.skip_odd_line();
            continue;
        };
        averages.add(&log);
        let mode = match log.direction {
            0 => Mode::Read,
            1 => Mode::Write,
            _ => Mode::Trim,
        };
        // An average has no size.
        let size = if log.value > 0 { log.size.max(1) } else { log.size };
        let (source, ends, response_ns) = (0, false, Some(log.value));
        let before = recorded.ios.len();
        let found = FoundIo { source, mode, offset, size, at, ends, response_ns };
        recorded.push(lines, found)?;
        if recorded.ios.len() > before && tail.fields == Some(OPTIONAL_FIELDS) {
            issue_times.push(issue_ns);
        }
    }
    Ok(LogContent { recorded, tail, averages, issue_times })
}

fn version(is_ns: bool, unit: u64) -> &'static str {
    match (is_ns, unit) {
        (true, _) => "3.18 or later",
        (false, US) => "2",
        _ => "3.0 to 3.17",
    }
}

/// Scale the response times, and move each I/O to its beginning.
fn apply(recorded: &mut RecordedTrace, unit: u64, issue_times: &[u64]) {
    let has_issue_times =
        issue_times.len() == recorded.ios.len() && issue_times.iter().any(|at| *at > 0);
    recorded.has_coarse_times = !has_issue_times;
    // A submission ends at the issue time, and every other measurement begins there.
    let is_submission = recorded.assumptions.quantity == "slat";
    let mut zeros = 0;
    let limit = crate::recorded::MAX_RESPONSE_NS;
    for (number, io) in recorded.ios.iter_mut().enumerate() {
        // A time of 0 is shorter than a tick of fio's clock.
        zeros += u64::from(io.response_ns == 0);
        io.response_ns = io.response_ns.max(1).saturating_mul(unit).min(limit);
        let ended =
            if has_issue_times { limit + issue_times[number].min(MAX_TIME_NS) } else { io.at };
        io.at = if has_issue_times && !is_submission { ended } else { ended - io.response_ns };
    }
    recorded.zero_times = zeros;
}

/// Return the unit of the response times [ns] from the log itself.
///
/// A value in µs must fit between the start of fio and the time of its line, and all together must
/// not mean more I/Os at a time than a job has. If both ns and µs are possible, the log is refused.
fn unit_of(ios: &[RecordedIo], is_ns: bool, is_submission: bool) -> Result<u64, LineError> {
    if is_ns || ios.is_empty() {
        return Ok(1);
    }
    let shift = crate::recorded::MAX_RESPONSE_NS;
    let (first, last) = ios.iter().fold((u64::MAX, 0), |(first, last), io| {
        (first.min(io.at - shift), last.max(io.at - shift))
    });
    let starts_at_zero = first < 1000 * MS;
    let span = if starts_at_zero { last } else { last - first };
    let begins_too_early = |io: &&RecordedIo| io.response_ns * US > io.at - shift + 2 * MS;
    if starts_at_zero && ios.iter().filter(begins_too_early).count() * 100 > ios.len() {
        return Ok(1);
    }
    let busy: f64 = ios.iter().map(|io| io.response_ns as f64).sum();
    let depth_if_us = busy * US as f64 / (span + MS) as f64;
    if depth_if_us > MAX_DEPTH {
        return Ok(1);
    }
    let mut values: SpooledVec<u64> = ios.iter().map(|io| io.response_ns).collect();
    let middle = values.len() / 2;
    let median = *values.select_nth_unstable(middle).1;
    // No device answers in less than half a microsecond.
    if !is_submission && median < 500 {
        return Ok(US);
    }
    // One I/O at a time, for nearly the whole of the log.
    let is_serial = (0.8..1.05).contains(&depth_if_us) && ios.len() > 20;
    if is_serial && starts_at_zero {
        return Ok(US);
    }
    Err(LineError::of_file(
        format!("values around {median}, which can be ns (fio 3) or µs (fio 2)"),
        "a log that only one version of fio can have written, or --unit",
    )
    .action("give --unit ns for fio 3, or --unit us for fio 2"))
}

fn quantity_error(quantity: Quantity, sample: &Sample) -> LineError {
    let name = &sample.name;
    let got = match quantity {
        Quantity::Bandwidth => format!("{name}: bandwidths in KiB/s, as write_bw_log logs them"),
        Quantity::Iops => format!("{name}: numbers of I/Os, as write_iops_log logs them"),
        Quantity::Histogram => {
            format!("{name}: histograms of response times, as write_hist_log logs them")
        }
        _ => {
            format!("{name}: a log of fio whose name does not contain lat, clat, slat, bw or iops")
        }
    };
    let action = if quantity == Quantity::Unknown {
        "give --unit ns (fio 3) or --unit us (fio 2) if the values are response times"
    } else {
        "print it with `uflip show`; response times are in the log beside it: *_lat.*.log, \
         *_clat.*.log or *_slat.*.log (write_lat_log)"
    };
    LineError::of_file(got, "a log of response times").action(action)
}
