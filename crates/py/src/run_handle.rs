//! A run on a thread of its own, so that Python stays free to show progress and to be interrupted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use uflip_core::{Counters, Error, ErrorKind, Result};
use uflip_engine::{Control, Resolved};

use crate::any_device::AnyDevice;
use crate::device::Slot;
use crate::error::raise;
use crate::trace::Trace;

type Outcome = Result<(uflip_engine::Trace, Option<Counters>)>;

struct Shared {
    control: Control,
    total: u64,
    outcome: Mutex<Option<Outcome>>,
    over: Condvar,
}

/// A run in progress.
#[pyclass(frozen)]
pub struct RunHandle {
    shared: Arc<Shared>,
}

impl RunHandle {
    /// Run `pattern` on `device` and put the device back into `slot` when it is over.
    pub(crate) fn start(mut device: AnyDevice, slot: Slot, pattern: Resolved) -> RunHandle {
        let shared = Arc::new(Shared {
            control: Control::new(pattern.streams.len()),
            total: pattern.totals.total_ios,
            outcome: Mutex::new(None),
            over: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let run = AssertUnwindSafe(|| execute(&mut device, pattern, &theirs.control));
            let outcome = match catch_unwind(run) {
                Ok(outcome) => {
                    *slot.lock().expect("no panic while held") = Some(device);
                    outcome
                }
                // A broken rule of the device model: the device is in no state to go on with.
                Err(panic) => Err(broken(&panic)),
            };
            *theirs.outcome.lock().expect("no panic while held") = Some(outcome);
            theirs.over.notify_all();
        });
        RunHandle { shared }
    }
}

fn execute(device: &mut AnyDevice, pattern: Resolved, control: &Control) -> Outcome {
    let before = device.counters();
    let trace = device.run(pattern, control)?;
    let after = device.counters();
    let counters = before.zip(after).map(|(before, after)| after.since(&before));
    Ok((trace, counters))
}

fn broken(panic: &Box<dyn std::any::Any + Send>) -> Error {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Error::new(ErrorKind::Internal, "The run broke a rule inside uflip")
        .got(text.unwrap_or_default())
        .action("this is a fault of uflip: please report it with the command and the seed")
}

#[pymethods]
impl RunHandle {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        let timeout = Duration::from_secs_f64(timeout_s.clamp(0.0, 3600.0));
        py.detach(|| {
            let outcome = self.shared.outcome.lock().expect("no panic while held");
            let (outcome, _) = self
                .shared
                .over
                .wait_timeout_while(outcome, timeout, |outcome| outcome.is_none())
                .expect("no panic while held");
            outcome.is_some()
        })
    }

    fn progress(&self) -> (u64, u64, u64) {
        let (done, last_response_ns) = self.shared.control.progress();
        (done, self.shared.total, last_response_ns)
    }

    fn cancel(&self) {
        self.shared.control.cancel();
    }

    fn result(&self, py: Python<'_>) -> PyResult<Trace> {
        while !self.wait(py, 3600.0) {}
        let outcome = self.shared.outcome.lock().expect("no panic while held").take();
        match outcome {
            Some(Ok((trace, counters))) => {
                Ok(Trace { trace: Arc::new(trace), metadata: String::new(), counters })
            }
            Some(Err(error)) => {
                // The error may be asked for again; a trace is handed out once.
                let again = Some(Err(error.clone()));
                *self.shared.outcome.lock().expect("no panic while held") = again;
                Err(raise(&error))
            }
            None => Err(raise(&Error::usage("The trace of this run was taken already"))),
        }
    }
}
