//! Several patterns on a device, one right after the other: what one leaves behind, the next one meets.
//!
//! uFLIP §4.3 asks how long random writes are felt by the reads that follow them. A device that rests
//! between the two, be it for the time in which a trace is stored, has begun to recover. So everything
//! that all patterns need is allocated before the first I/O, and between the last completion of one
//! and the first submission of the next there are two readings of the clock.

use uflip_core::{Counters, Device, Error, Io, Nanos, Result};

use crate::causes::Causes;
use crate::drive::Control;
use crate::run::{drive_all, kept, submitters, whole};
use crate::spec::Resolved;
use crate::trace::{Columns, Trace};

/// What one pattern of a series did.
pub struct Part {
    /// Every I/O; its times count from `began`.
    pub trace: Trace,
    /// When it began, since the first one did.
    pub began: Nanos,
    /// What the device counted meanwhile; `None` where unknowable.
    pub counters: Option<Counters>,
}

/// Drive `device` with `patterns`, without a rest between them.
///
/// # Errors
/// As [`crate::run`]; a pattern that is to find its length itself.
pub fn run_series<D>(
    device: &mut D,
    patterns: Vec<Resolved>,
    control: &Control,
) -> Result<Vec<Part>>
where
    D: Device<Request = Io> + Send,
{
    for pattern in &patterns {
        pattern.check_on(device.info().kind)?;
        pattern.check_streams(device.info())?;
        pattern.check_complete()?;
        if pattern.stop.is_some() {
            return Err(Error::usage("A pattern of a series says how long it is")
                .got("'stop'")
                .action("take 'stop' out, or run the pattern alone"));
        }
    }
    let prepare = |pattern| submitters(device, pattern, control, None, |_, recorder| recorder);
    let mut prepared = patterns.iter().map(prepare).collect::<Result<Vec<_>>>()?;
    let mut marks = Vec::with_capacity(patterns.len() + 1);
    for submitters in &mut prepared {
        marks.push((device.now(), device.counters()));
        let driven = drive_all(device, submitters, control);
        kept(submitters.iter_mut().map(|submitter| &mut submitter.trace), driven)?;
        control.next_part();
    }
    marks.push((device.now(), device.counters()));
    let start = marks[0].0;
    let parts = prepared.into_iter().zip(patterns).zip(marks.windows(2));
    Ok(parts
        .map(|((submitters, pattern), mark)| {
            let causes = Causes::of::<D>(&pattern).names();
            let kept = submitters.into_iter().map(|submitter| whole(submitter).rest).collect();
            let columns = Columns::concat(kept, causes.len());
            let trace = Trace { pattern, columns, causes, ended: None };
            let counters = mark[0].1.zip(mark[1].1).map(|(before, after)| after.since(&before));
            Part { trace, began: mark[0].0 - start, counters }
        })
        .collect())
}
