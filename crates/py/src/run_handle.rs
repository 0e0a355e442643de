//! What Python holds while a device is at work: a run, which ends in a trace, a state that is being
//! enforced, which ends in nothing, or a file that grows, which ends in the device.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use uflip_core::{Counters, Error, Result};
use uflip_engine::{Control, Part, Resolved, ResolvedState};
use uflip_host::{DirectDevice, Growth};

use crate::any_device::AnyDevice;
use crate::device::{Device, Slot};
use crate::error::raise;
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

/// Runs in progress, one right after the other.
#[pyclass(frozen)]
pub struct SeriesHandle {
    job: Job<Vec<Part>>,
}

impl SeriesHandle {
    /// Run `patterns` on `device` without a rest between them; as [`RunHandle::start`].
    pub(crate) fn start(device: AnyDevice, slot: Slot, patterns: Vec<Resolved>) -> SeriesHandle {
        let processes = patterns.iter().map(|pattern| pattern.streams.len()).max().unwrap_or(1);
        let total = patterns.iter().map(|pattern| pattern.totals.total_ios).sum();
        let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
            device.run_series(patterns, control)
        };
        SeriesHandle { job: Job::start(device, slot, Control::new(processes), total, work) }
    }
}

#[pymethods]
impl SeriesHandle {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.job.wait(py, timeout_s)
    }

    fn progress(&self) -> (u64, u64, u64) {
        self.job.progress()
    }

    fn cancel(&self) {
        self.job.cancel();
    }

    fn result(&self, py: Python<'_>) -> PyResult<Vec<(u64, Trace)>> {
        let parts = self.job.take(py)?;
        Ok(parts
            .into_iter()
            .map(|Part { trace, began, counters }| {
                let trace = Trace { trace: Arc::new(trace), metadata: String::new(), counters };
                (began.0, trace)
            })
            .collect())
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

/// A file that is being brought to its size.
#[pyclass(frozen)]
pub struct FileHandle {
    job: Job<()>,
    slot: Slot,
}

impl FileHandle {
    /// Write what the file lacks; whatever stops that, the file is then as it was.
    pub(crate) fn start((device, growth): (DirectDevice, Option<Growth>)) -> FileHandle {
        let slot = Arc::new(Mutex::new(None));
        let total = growth.as_ref().map_or(0, Growth::ios);
        let work = move |device: &mut AnyDevice, control: &Control| -> Result<()> {
            let Some(growth) = growth else { return Ok(()) };
            device.enforce(growth.writes(), control).inspect_err(|_| growth.take_back())?;
            device.grown();
            Ok(())
        };
        let device = AnyDevice::Direct(device);
        let job = Job::start(device, Arc::clone(&slot), Control::new(1), total, work);
        FileHandle { job, slot }
    }
}

#[pymethods]
impl FileHandle {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.job.wait(py, timeout_s)
    }

    fn progress(&self) -> (u64, u64, u64) {
        self.job.progress()
    }

    fn cancel(&self) {
        self.job.cancel();
    }

    fn result(&self, py: Python<'_>) -> PyResult<Device> {
        self.job.take(py)?;
        let device = self.slot.lock().expect("no panic while held").take();
        let taken = || raise(&Error::usage("The device was taken already"));
        device.map(Device::new).ok_or_else(taken)
    }
}
