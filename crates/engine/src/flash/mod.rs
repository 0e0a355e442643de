//! Jobs over the physical addresses of an open-channel device.
//!
//! **Source**: uFLIP-OC (2017) §3 and Table 1; its tool FOX (options and output of version 1.2).
//! **Faithful**: channels, LUNs, blocks and pages to cover; mix, threads, vector length, sleep,
//! sequential, round-robin and isolated iteration; synchronous threads; a line an I/O.
//! **Simplified**: read data is not compared with written data, because simulated devices store
//! none.
//! FOX's running time in seconds is a repeat count here, so that a job is deterministic.
//! **Ambiguous**: FOX's manual visits blocks before pages in its round robin, Table 1 of the paper
//! pages before blocks; here the paper's order is used. The sources do not state which pages the
//! reads of a mix access. Here they follow the writes from the first page on, and restart when they
//! catch up.

mod requests;
mod spec;
mod trace;

use uflip_core::{Breakdown, Device, FlashIo, FlashStatus, Nanos, Result};

use crate::drive::{Control, Submitter};
use crate::recorder::{RecordingPlan, not_enough_memory};
use crate::run::drive_all;

pub use requests::{FlashRequests, FlashTotals};

pub use spec::{FlashJob, FlashSpec, ITERATIONS, JOB_KINDS, JobKind};
pub use trace::{FlashTrace, WearLog};

/// Longer than any work of a LUN after its completion, so that the device is idle after
/// preparation.
const SETTLE: Nanos = Nanos(100_000_000);

/// The output of a job.
#[derive(Clone, PartialEq, Debug)]
pub enum FlashOutcome {
    /// The trace of every command.
    Trace(FlashTrace),
    /// One row per cycle of erase, writes and reads.
    Wear(WearLog),
}

/// Prepare the device for `job`: erase the blocks to be written, and write the pages that are only
/// read. Returns when the device is idle; nothing is recorded.
///
/// # Errors
/// The first error of the device, or cancellation.
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

/// Run `job` on `device` and record every command; for a wear job, a summary of every cycle.
///
/// # Errors
/// The first error of the device, or cancellation.
pub fn run_flash<D>(device: &mut D, job: FlashJob, control: &Control) -> Result<FlashOutcome>
where
    D: Device<Request = FlashIo, Status = FlashStatus> + Send,
{
    let causes = <D::Breakdown as Breakdown>::CAUSES;
    if job.kind() == JobKind::Wear {
        let requests = job.requests(0);
        let total = requests.total();
        let log = WearLog::new(job.commands_per_cycle());
        let mut submitters = [Submitter::new(0, requests, total, log)];
        drive_all(device, &mut submitters, control)?;
        let [submitter] = submitters;
        return Ok(FlashOutcome::Wear(submitter.trace.finish(job.canonical)));
    }
    let plan = RecordingPlan {
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
            let trace = trace
                .ok_or_else(|| not_enough_memory(total as usize, 0, control.available_memory()))?;
            Ok(Submitter::new(thread as usize, requests, total, trace))
        })
        .collect::<Result<_>>()?;
    drive_all(device, &mut submitters, control)?;
    let traces = submitters.into_iter().map(|submitter| submitter.trace);
    Ok(FlashOutcome::Trace(FlashTrace::joined(traces, job, causes)))
}
