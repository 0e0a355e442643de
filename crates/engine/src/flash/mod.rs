//! Jobs over the physical addresses of an open-channel device, and the run of one.
//!
//! **Source**: uFLIP-OC (2017) §3 and Table 1; its tool FOX (options and output of version 1.2).
//! **Faithful**: channels, LUNs, blocks and pages to cover; mix, threads, vector length, sleep,
//! sequential, round-robin and isolated iteration; synchronous threads; a line an I/O.
//! **Simplified**: no comparison of what was read with what was written: simulated devices keep no data.
//! FOX's running time in seconds is a count of repetitions here, so that a job is the same every time.
//! **Ambiguous**: FOX's manual takes blocks before pages in its round robin, Table 1 of the paper pages
//! before blocks; here it is the paper's order. Which pages the reads of a mix go to is not told: here
//! they follow the writes from the first page on, and begin again where they catch up.

mod places;
mod requests;
mod spec;
mod trace;
mod wear;

use uflip_core::{Breakdown, Device, FlashIo, FlashStatus, Nanos, Result};

use crate::drive::{Control, Submitter};
use crate::recorder::{Plan, too_little};
use crate::run::drive_all;

pub use requests::FlashRequests;
pub use spec::{FlashJob, FlashSpec, FlashTotals, ITERATIONS, JOB_KINDS, JobKind};
pub use trace::FlashTrace;
pub use wear::WearLog;

/// Longer than anything that a LUN does after it has answered: what is prepared has come to rest.
const SETTLE: Nanos = Nanos(100_000_000);

/// What a job leaves behind.
#[derive(Clone, PartialEq, Debug)]
pub enum FlashOutcome {
    /// Every command.
    Trace(FlashTrace),
    /// One row a cycle of erase, writes and reads.
    Wear(WearLog),
}

/// Erase what `job` will write, and write what it will only read; nothing of it is kept. Ends when the
/// device has nothing left to do.
///
/// # Errors
/// The first error of the device, or that of a cancelled run.
pub fn prepare_flash<D>(device: &mut D, job: &FlashJob, control: &Control) -> Result<()>
where
    D: Device<Request = FlashIo, Status = FlashStatus> + Send,
{
    for requests in job.preparations() {
        let total = requests.total();
        let mut submitters = [Submitter::new(0, requests, total, ())];
        drive_all(device, &mut submitters, control)?;
    }
    device.wait_until(device.now() + SETTLE);
    Ok(())
}

/// Drive `device` with `job` and keep every command (of a wear job, a summary of every cycle).
///
/// # Errors
/// The first error of the device, or that of a cancelled run.
pub fn run_flash<D>(device: &mut D, job: FlashJob, control: &Control) -> Result<FlashOutcome>
where
    D: Device<Request = FlashIo, Status = FlashStatus> + Send,
{
    let causes = <D::Breakdown as Breakdown>::CAUSES;
    if job.kind() == JobKind::Wear {
        let requests = job.requests(0);
        let total = requests.total();
        let log = WearLog::new(job.commands_a_cycle());
        let mut submitters = [Submitter::new(0, requests, total, log)];
        drive_all(device, &mut submitters, control)?;
        let [submitter] = submitters;
        return Ok(FlashOutcome::Wear(submitter.trace.finish(job.canonical)));
    }
    let plan = Plan {
        processes: job.threads() as usize,
        causes: causes.len() + 2,
        in_real_time: true,
        has_open_end: false,
        has_sink: false,
    };
    let all = job.totals().total_ios as usize;
    plan.check(all, all, control)?;
    let mut submitters: Vec<_> = (0..job.threads())
        .map(|thread| {
            let requests = job.requests(thread);
            let total = requests.total();
            let trace = FlashTrace::with_capacity(total as usize, causes.len());
            let trace = trace.ok_or_else(|| too_little(total as usize, 0, control.room()))?;
            Ok(Submitter::new(thread as usize, requests, total, trace))
        })
        .collect::<Result<_>>()?;
    drive_all(device, &mut submitters, control)?;
    let traces = submitters.into_iter().map(|submitter| submitter.trace);
    Ok(FlashOutcome::Trace(FlashTrace::joined(traces, job, causes)))
}
