//! A series: several patterns on a device back to back, each on the state that the previous one
//! leaves.
//!
//! uFLIP §4.3 measures how long random writes affect the reads that follow them. A device that is idle
//! between the two, even while a trace is stored, begins to recover. All memory is therefore
//! allocated before the first I/O. Between the last completion of a pattern and the first
//! submission of the next there are two clock readings.

use uflip_core::{Counters, Device, Error, Io, Nanos, Result};

use crate::causes::Causes;
use crate::drive::Control;
use crate::run::{drive_all, first_failure, into_recorded, submitters};
use crate::spec::Resolved;
use crate::trace::{Columns, Trace};

/// The result of one pattern of a series.
pub struct SeriesPart {
    /// Every I/O; times count from `began`.
    pub trace: Trace,
    /// The start of the pattern, from the start of the series.
    pub began: Nanos,
    /// The device's counters during the pattern; `None` if the device has none.
    pub counters: Option<Counters>,
}

/// Drive `device` with `patterns` back to back.
///
/// # Errors
/// As [`crate::run`]; a pattern with a stop rule.
pub fn run_series<D>(
    device: &mut D,
    patterns: Vec<Resolved>,
    control: &Control,
) -> Result<Vec<SeriesPart>>
where
    D: Device<Request = Io> + Send,
{
    for pattern in &patterns {
        pattern.check_on(device.info().kind)?;
        pattern.check_streams(device.info())?;
        pattern.check_complete()?;
        if pattern.stop.is_some() {
            return Err(Error::usage("A pattern of a series needs a fixed length")
                .got("'stop'")
                .action("remove 'stop', or run the pattern alone"));
        }
    }
    let prepare = |pattern| submitters(device, pattern, control, None, |_, recorder| recorder);
    let mut prepared = patterns.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let mut marks = Vec::with_capacity(patterns.len() + 1);
    for submitters in &mut prepared {
        marks.push((device.now(), device.counters()));
        let result = drive_all(device, submitters, control);
        first_failure(submitters.iter_mut().map(|submitter| &mut submitter.trace), result)?;
        control.begin_next_part();
    }
    marks.push((device.now(), device.counters()));
    let start = marks[0].0;
    let parts = prepared.into_iter().zip(patterns).zip(marks.windows(2));
    Ok(parts
        .map(|((submitters, pattern), mark)| {
            let causes = Causes::for_run::<D>(&pattern).names();
            let recorded =
                submitters.into_iter().map(|submitter| into_recorded(submitter).rest).collect();
            let columns = Columns::concat(recorded, causes.len());
            let trace = Trace { pattern, columns, causes, stop_record: None };
            let counters = mark[0].1.zip(mark[1].1).map(|(before, after)| after.since(&before));
            SeriesPart { trace, began: mark[0].0 - start, counters }
        })
        .collect())
}
