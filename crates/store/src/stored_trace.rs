//! A trace in memory or, if it is long, in a file, with one interface; and its columns by name: stored
//! ones, and those that follow from the pattern.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use uflip_core::{Error, ErrorKind, Io, Result};
use uflip_engine::{
    HOST_CAUSES, HostGaps, PatternWalk, PlausibilityCheck, Resolved, Trace, TraceRow, wait_column,
};

use crate::row_groups::RowGroups;
use crate::row_parts;
use crate::table::ColumnData;

/// The distance of cached walks over the pattern [I/Os].
const STEP: usize = if cfg!(test) { 100 } else { 1 << 21 };

/// Every I/O of one run, in memory or in a file.
pub struct StoredTrace {
    /// Its columns are empty if they are in a file.
    pub(crate) trace: Trace,
    pub(crate) groups: Option<RowGroups>,
    /// Cached walks by the number of their next I/O, so that repeated access to the end of a long
    /// run steps through it once.
    walks: Mutex<BTreeMap<usize, PatternWalk>>,
    /// Whether the trace is known to be plausible.
    pub(crate) is_checked: bool,
}

impl From<Trace> for StoredTrace {
    fn from(trace: Trace) -> StoredTrace {
        StoredTrace::in_memory(trace)
    }
}

impl StoredTrace {
    pub(crate) fn in_memory(trace: Trace) -> StoredTrace {
        StoredTrace { trace, groups: None, walks: Mutex::default(), is_checked: false }
    }

    pub(crate) fn in_file(trace: Trace, groups: RowGroups) -> StoredTrace {
        StoredTrace { trace, groups: Some(groups), walks: Mutex::default(), is_checked: false }
    }

    /// Return the complete pattern that was run.
    #[must_use]
    pub fn pattern(&self) -> &Resolved {
        &self.trace.pattern
    }

    /// Return the names of the causes; empty for a device that reports no causes.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.trace.causes
    }

    /// Return whether times come from the host's clock: simulated devices report more causes.
    fn is_in_real_time(&self) -> bool {
        let causes = self.causes();
        causes.is_empty() || causes == HOST_CAUSES
    }

    /// Return the stopping record, if the run had a stop rule.
    #[must_use]
    pub fn stop_record(&self) -> Option<&serde_json::Value> {
        self.trace.stop_record.as_ref()
    }

    /// Return the number of I/Os.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.as_ref().map_or(self.trace.len(), RowGroups::len)
    }

    /// Return whether there are no I/Os.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return I/Os `from` to `to`.
    pub(crate) fn ios(&self, from: usize, to: usize) -> impl Iterator<Item = Io> + '_ {
        self.rows(from, to).map(|row| row.io)
    }

    /// Return the columns that follow from the pattern for I/Os `from` to `to`.
    pub(crate) fn rows(&self, from: usize, to: usize) -> impl Iterator<Item = TraceRow> + '_ {
        let mut walk = self.walk_at(from);
        (from..to).map_while(move |_| walk.next(self.pattern()))
    }

    /// Return a walk whose next I/O is number `index`.
    fn walk_at(&self, index: usize) -> PatternWalk {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        let nearest = walks.range(..=index).next_back();
        let (begin, mut walk) = match nearest {
            Some((number, walk)) => (*number, walk.clone()),
            None => (0, PatternWalk::new(self.pattern())),
        };
        for number in begin..index {
            if number % STEP == 0 {
                walks.entry(number).or_insert_with(|| walk.clone());
            }
            walk.next(self.pattern());
        }
        if index.is_multiple_of(STEP) {
            walks.entry(index).or_insert_with(|| walk.clone());
        }
        walk
    }

    /// Return I/Os `from` to `to` of a measured column, by its number in a file.
    pub(crate) fn measured(&self, number: usize, from: usize, to: usize) -> Result<Cow<'_, [u64]>> {
        if let Some(groups) = &self.groups {
            return groups.read(number, from, to).map(Cow::Owned).map_err(unreadable);
        }
        let columns = &self.trace.columns;
        let column = match number {
            1 => &columns.submit_ns,
            2 => &columns.response_time_ns,
            cause => &columns.cause_ns[cause - 3],
        };
        Ok(Cow::Borrowed(&column[from..to]))
    }

    /// Return the time from the first submission to the last completion [ns].
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn elapsed_ns(&self) -> Result<u64> {
        let Some(groups) = &self.groups else { return Ok(self.trace.elapsed_ns()) };
        let (mut first, mut last) = (u64::MAX, 0);
        for (from, to) in row_parts(self.len()) {
            let columns = groups.columns(from, to, 0).map_err(unreadable)?;
            let ends = columns.submit_ns.iter().zip(&columns.response_time_ns).map(|(s, r)| s + r);
            last = ends.max().unwrap_or(0).max(last);
            first = columns.submit_ns.iter().min().copied().unwrap_or(0).min(first);
        }
        Ok(last.saturating_sub(first))
    }

    /// Return the trace if it is plausible, see [`Trace::check_plausible`]; writing does not check
    /// it again.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`]: it is implausible.
    pub fn checked(mut self, allow_zero_time: bool) -> Result<StoredTrace> {
        self.check_plausible(allow_zero_time).map_err(|message| implausible("dropped", message))?;
        self.is_checked = true;
        Ok(self)
    }

    /// Check as [`Trace::check_plausible`].
    pub(crate) fn check_plausible(&self, allow_zero_time: bool) -> std::result::Result<(), String> {
        let Some(groups) = &self.groups else { return self.trace.check_plausible(allow_zero_time) };
        let mut check =
            PlausibilityCheck::new(&self.trace.pattern, &self.trace.causes, allow_zero_time);
        for (from, to) in row_parts(self.len()) {
            check.check(&groups.columns(from, to, self.trace.causes.len())?)?;
        }
        check.finish()
    }
}

/// Create the error of an implausible run; `outcome` is what happened to it.
pub(crate) fn implausible(outcome: &str, message: String) -> Error {
    Error::new(ErrorKind::Internal, format!("The run is physically implausible, and was {outcome}"))
        .got(message)
        .action("measure it again; if the error stays, report it as a bug in uflip")
}

fn unreadable(message: String) -> Error {
    Error::new(ErrorKind::Results, "The file of a trace can no longer be read")
        .got(message)
        .action("restore it from a copy, or measure again")
}

const FIXED: [&str; 8] = [
    "stream",
    "submit_ns",
    "response_time_ns",
    "offset_bytes",
    "io_size_bytes",
    "mode",
    "component",
    "ignored",
];

/// The host gap of an I/O; in virtual time there is no such column, because the host takes no time.
/// The column of the delay of the host, which depends on all I/Os before.
pub const HOST_GAP: &str = "host_gap_ns";

/// Return the names that [`column`] accepts for this trace.
pub fn column_names(trace: &StoredTrace) -> impl Iterator<Item = &str> {
    let host = trace.is_in_real_time().then_some(HOST_GAP);
    FIXED.into_iter().chain(host).chain(trace.causes().iter().map(String::as_str))
}

/// Return the host gaps of I/Os `from` to `to`; earlier I/Os are processed piece by piece.
fn host_gaps(trace: &StoredTrace, from: usize, to: usize) -> Result<Vec<u64>> {
    let mut gaps = HostGaps::new(trace.pattern());
    let mut values = Vec::with_capacity(to - from);
    for (begin, end) in row_parts(to) {
        let batch = host_gaps_of(trace, &mut gaps, begin, end)?;
        values.extend(batch.into_iter().skip(from.saturating_sub(begin)));
    }
    Ok(values)
}

/// Return the host gaps of I/Os `from` to `to`, where `gaps` has reached `from`.
fn host_gaps_of(
    trace: &StoredTrace,
    gaps: &mut HostGaps,
    from: usize,
    to: usize,
) -> Result<Vec<u64>> {
    let (submit, times) = (trace.measured(1, from, to)?, trace.measured(2, from, to)?);
    let number = wait_column(trace.causes());
    let waits = number.map(|number| trace.measured(3 + number, from, to)).transpose()?;
    let waited = |row: usize| waits.as_ref().map_or(0, |waits| waits[row]);
    let rows = submit.iter().zip(times.iter()).enumerate();
    let pattern = trace.pattern();
    Ok(rows
        .map(|(row, (from, response_time))| gaps.next(pattern, *from, waited(row), *response_time))
        .collect())
}

fn format_index(number: usize) -> String {
    if number == usize::MAX { "a number below 0".to_owned() } else { number.to_string() }
}

/// Return I/Os `from` to `to` of a column that consists of values and their numbers of repetitions.
fn part<T: Copy>(runs: impl Iterator<Item = (T, u64)>, from: usize, to: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(to - from);
    let mut end = 0;
    for (value, count) in runs {
        let begin = from.max(end);
        end += count as usize;
        values.resize(values.len() + end.min(to).saturating_sub(begin), value);
    }
    values
}

/// Return I/Os `from` to `to` of a column of `trace`.
///
/// # Errors
/// An unknown name (the error lists the known ones); I/Os that do not exist (`usize::MAX` stands
/// for an invalid number); an unreadable file.
pub fn column<'a>(
    trace: &'a StoredTrace,
    name: &str,
    from: usize,
    to: usize,
) -> Result<ColumnData<'a>> {
    if from > to || to > trace.len() {
        return Err(Error::usage("The trace has no such I/Os")
            .at("start, stop")
            .got(format!("{} to {}", format_index(from), format_index(to)))
            .allowed(format!("0 to {}, in order", trace.len()))
            .action("choose a part of the trace"));
    }
    let ios = || trace.ios(from, to);
    let streams = &trace.pattern().streams;
    Ok(match name {
        "stream" => {
            let totals = streams.iter().map(|stream| stream.total_ios);
            ColumnData::U16(part((0..).zip(totals), from, to))
        }
        "submit_ns" => ColumnData::U64(trace.measured(1, from, to)?),
        "response_time_ns" => ColumnData::U64(trace.measured(2, from, to)?),
        "offset_bytes" => ColumnData::U64(ios().map(|io| io.offset.0).collect()),
        "io_size_bytes" => ColumnData::U32(ios().map(|io| io.size.0 as u32).collect()),
        "mode" => ColumnData::U8(ios().map(|io| io.mode.number()).collect()),
        "component" => ColumnData::U8(trace.rows(from, to).map(|row| row.component).collect()),
        "ignored" => {
            let counts = streams.iter().flat_map(|stream| {
                [(1, stream.ignored_ios), (0, stream.total_ios - stream.ignored_ios)]
            });
            ColumnData::U8(part(counts, from, to))
        }
        HOST_GAP if trace.is_in_real_time() => ColumnData::U64(host_gaps(trace, from, to)?.into()),
        _ => {
            let cause = trace.causes().iter().position(|cause| cause == name);
            let Some(cause) = cause else {
                let names: Vec<&str> = column_names(trace).collect();
                return Err(Error::unknown("column of a trace", name, &names));
            };
            ColumnData::U64(trace.measured(3 + cause, from, to)?)
        }
    })
}

/// Return I/Os `from` to `to` of every column, where `walk` has reached `from`. Columns that follow
/// from the pattern can only be found by stepping through it.
///
/// # Errors
/// If the file cannot be read.
pub fn window<'a>(
    trace: &'a StoredTrace,
    walk: &mut PatternWalk,
    from: usize,
    to: usize,
) -> Result<Vec<ColumnData<'a>>> {
    let rows: Vec<TraceRow> = (from..to).map_while(|_| walk.next(trace.pattern())).collect();
    let flag_column = |value: fn(&TraceRow) -> u8| ColumnData::U8(rows.iter().map(value).collect());
    let mut columns = vec![
        ColumnData::U16(rows.iter().map(|row| row.stream).collect()),
        ColumnData::U64(trace.measured(1, from, to)?),
        ColumnData::U64(trace.measured(2, from, to)?),
        ColumnData::U64(rows.iter().map(|row| row.io.offset.0).collect()),
        ColumnData::U32(rows.iter().map(|row| row.io.size.0 as u32).collect()),
        flag_column(|row| row.io.mode.number()),
        flag_column(|row| row.component),
        flag_column(|row| u8::from(row.ignored)),
    ];
    if trace.is_in_real_time() {
        let gaps = walk.host_gaps(trace.pattern());
        columns.push(ColumnData::U64(host_gaps_of(trace, gaps, from, to)?.into()));
    }
    for cause in 0..trace.causes().len() {
        columns.push(ColumnData::U64(trace.measured(3 + cause, from, to)?));
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use uflip_core::Bytes;
    use uflip_engine::{Columns, PatternSpec};

    use super::*;

    /// Compares with the pattern itself, in random order and repeatedly.
    #[test]
    fn random_access_returns_the_ios_of_the_pattern() {
        let basic = |mode: &str, count: &str| {
            format!(r#""mode": "{mode}", "location": "random", "io_size": 4096{count}"#)
        };
        let basic_spec = |mode: &str, count: u64| {
            let parts = basic(mode, &format!(r#", "io_count": {count}"#));
            format!(r#"{{"kind": "basic", {parts}}}"#)
        };
        let mix = format!(
            r#"{{"kind": "mix", "first": {{{}}}, "second": {{{}}}, "ratio": 3, "io_count": 250}}"#,
            basic("read", ""),
            basic("write", "")
        );
        let parallel = format!(
            r#"{{"kind": "parallel", "patterns": [{}, {}]}}"#,
            basic_spec("read", 700),
            basic_spec("write", 500)
        );
        for spec in [basic_spec("write", 1000), mix, parallel] {
            let pattern = PatternSpec::parse(&spec).expect("a valid pattern");
            let pattern =
                pattern.resolve(Bytes(1 << 30), Bytes(512)).expect("the pattern fits the device");
            let all: Vec<Io> = pattern.issued().collect();
            let trace = Trace {
                pattern,
                columns: Columns::default(),
                causes: Vec::new(),
                stop_record: None,
            };
            let stored = StoredTrace::in_memory(trace);
            for (from, to) in
                [(950, 1000), (0, 10), (650, 800), (399, 401), (650, 800), (0, all.len())]
            {
                assert_eq!(
                    stored.ios(from, to).collect::<Vec<_>>(),
                    all[from..to],
                    "{spec}: {from} to {to}"
                );
            }
            let walks = stored.walks.lock().expect("the lock is not poisoned").len();
            assert!((2..=all.len() / STEP).contains(&walks), "{walks} walks of {} I/Os", all.len());
        }
    }
}
