//! What Python holds while a device is at work: a run, which ends in a trace, or a state that is
//! being enforced, which ends in nothing.

use std::sync::Arc;

use pyo3::prelude::*;
use uflip_core::{Counters, Result};
use uflip_engine::{Control, Resolved, ResolvedState};

use crate::any_device::AnyDevice;
use crate::device::Slot;
use crate::job::Job;
use crate::trace::Trace;

/// A run in progress.
#[pyclass(frozen)]
pub struct RunHandle {
    job: Job<(uflip_engine::Trace, Option<Counters>)>,
}

impl RunHandle {
    /// Run `pattern` on `device` and put the device back into `slot` when it is over.
    pub(crate) fn start(device: AnyDevice, slot: Slot, pattern: Resolved) -> RunHandle {
        let control = Control::new(pattern.streams.len());
        let total = pattern.totals.total_ios;
        let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
            let before = device.counters();
            let trace = device.run(pattern, control)?;
            let after = device.counters();
            let counters = before.zip(after).map(|(before, after)| after.since(&before));
            Ok((trace, counters))
        };
        RunHandle { job: Job::start(device, slot, control, total, work) }
    }
}

#[pymethods]
impl RunHandle {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.job.wait(py, timeout_s)
    }

    fn progress(&self) -> (u64, u64, u64) {
        self.job.progress()
    }

    fn cancel(&self) {
        self.job.cancel();
    }

    fn result(&self, py: Python<'_>) -> PyResult<Trace> {
        let (trace, counters) = self.job.take(py)?;
        Ok(Trace { trace: Arc::new(trace), metadata: String::new(), counters })
    }
}

/// A state that is being enforced.
#[pyclass(frozen)]
pub struct StateHandle {
    job: Job<()>,
}

impl StateHandle {
    /// Make the writes of `state` after the first `skip`; as [`RunHandle::start`].
    pub(crate) fn start(
        device: AnyDevice,
        slot: Slot,
        state: ResolvedState,
        skip: u64,
    ) -> StateHandle {
        let total = state.totals().total_ios.saturating_sub(skip);
        let writes = state.writes().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let work = move |device: &mut AnyDevice, control: &Control| device.enforce(writes, control);
        StateHandle { job: Job::start(device, slot, Control::new(1), total, work) }
    }
}

#[pymethods]
impl StateHandle {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.job.wait(py, timeout_s)
    }

    fn progress(&self) -> (u64, u64, u64) {
        self.job.progress()
    }

    fn cancel(&self) {
        self.job.cancel();
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        self.job.take(py)
    }
}
