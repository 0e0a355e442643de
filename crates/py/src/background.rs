//! Work on a device on a separate thread, so that Python can show progress and be interrupted. Python
//! holds a [`Handle`] meanwhile, for any kind of work and result.
//!
//! ```text
//! DeviceSlot   present ──start──▶ away, with a BackgroundJob ──end──▶ present
//!                                 └──▶ spent: the work violated an invariant of the device model
//! ```
//!
//! The device is back in its slot before the end of the work is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyType;
use uflip_core::{Error, ErrorKind, Nanos, Result};
use uflip_engine::{Control, LiveRow};
use uflip_host::DeviceWatch;

use crate::conversion::raise;

/// The interval at which a wait for a device handles signals.
const SLICE_S: f64 = 0.05;
/// The time limit for stopping such a wait: a thread blocked in the kernel cannot respond.
const STOP_TIMEOUT_S: f64 = 1.0;

/// Work on another thread, whatever its result.
struct Work {
    control: Control,
    total: u64,
    /// The watch on the outstanding I/O, if the device has one.
    watch: Option<DeviceWatch>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Work {
    /// Block at most `timeout_s` without the interpreter lock; return whether the work is over.
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        let timeout = Duration::from_secs_f64(timeout_s.clamp(0.0, 3600.0));
        py.detach(|| {
            let is_over = self.is_over.lock().expect("the lock is not poisoned");
            let waited = self.ended.wait_timeout_while(is_over, timeout, |is_over| !*is_over);
            *waited.expect("the lock is not poisoned").0
        })
    }

    fn end(&self) {
        *self.is_over.lock().expect("the lock is not poisoned") = true;
        self.ended.notify_all();
    }
}

/// Returns the result of ended work, or its error.
type TakeResult = dyn Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync;

/// The Python handle of work on a device.
#[pyclass(frozen)]
pub struct Handle {
    work: Arc<Work>,
    take: Box<TakeResult>,
}

#[pymethods]
impl Handle {
    /// Support `Handle[T]` in type hints; no effect at run time.
    #[classmethod]
    fn __class_getitem__(class: Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.unbind()
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.work.wait(py, timeout_s)
    }

    /// Return the I/Os done, the I/Os in total, and the last response time [ns].
    fn progress(&self) -> (u64, u64, u64) {
        let (done, last_response_ns) = self.work.control.progress();
        (done, self.work.total, last_response_ns)
    }

    /// Return the zero of all times of the run on the device's clock [ns]; 0 before it begins.
    fn began_ns(&self) -> u64 {
        self.work.control.began_ns()
    }

    /// Return the rows of a run that are complete and were not returned yet.
    /// Each has start, length [ns], I/Os, bytes, bytes written, sum of the response times, p50, p99,
    /// p99.9 [ns], and the pages programmed.
    fn live_rows(&self) -> Vec<(Vec<u64>, Option<u64>)> {
        let rows = self.work.control.live().map(|live| live.take_rows());
        let row = |row: LiveRow| {
            let [p50, p99, p999] = row.percentiles_ns;
            let numbers = vec![
                row.start_ns,
                row.length_ns,
                row.ios,
                row.bytes,
                row.bytes_written,
                row.response_ns,
                p50,
                p99,
                p999,
            ];
            (numbers, row.pages_programmed)
        };
        rows.unwrap_or_default().into_iter().map(row).collect()
    }

    fn cancel(&self) {
        self.work.control.cancel();
    }

    fn overdue(&self, limit_ns: u64) -> PyResult<()> {
        let overdue = self.work.watch.as_ref().and_then(|watch| watch.overdue(Nanos(limit_ns)));
        overdue.map_or(Ok(()), |error| Err(raise(error)))
    }

    fn check_target(&self, py: Python<'_>) -> PyResult<()> {
        let watch = self.work.watch.as_ref();
        let truncated = py.detach(|| watch.and_then(DeviceWatch::truncation_error));
        truncated.map_or(Ok(()), |error| Err(raise(error)))
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        (self.take)(py)
    }
}

/// A device with a watch on its outstanding I/O.
pub(crate) trait Watchable {
    /// Return the watch; `None` if nothing can hang.
    fn watch(&self) -> Option<DeviceWatch>;
}

/// Work in progress with the result `T`.
pub(crate) struct BackgroundJob<T> {
    work: Arc<Work>,
    /// `None` until the end, and after the result was taken.
    outcome: Arc<Mutex<Option<Result<T>>>>,
}

impl<T: Send + 'static> BackgroundJob<T> {
    /// Do `work`, of `total` I/Os, on `device`, and put the device back into `slot` afterwards.
    pub(crate) fn start<D: Watchable + Send + 'static>(
        mut device: D,
        slot: DeviceSlot<D>,
        control: Control,
        total: u64,
        work: impl FnOnce(&mut D, &Control) -> Result<T> + Send + 'static,
    ) -> BackgroundJob<T> {
        BackgroundJob::make(control, total, device.watch(), move |control| {
            match catch_unwind(AssertUnwindSafe(|| work(&mut device, control))) {
                Ok(outcome) => {
                    slot.put_back(device);
                    outcome
                }
                // A violated invariant of the device model: the device cannot be used further.
                Err(panic) => {
                    let error = panic_error(&panic);
                    slot.mark_failed(error.clone());
                    Err(error)
                }
            }
        })
    }

    /// Do `work` that creates its device; `watch` observes it.
    pub(crate) fn make(
        control: Control,
        total: u64,
        watch: Option<DeviceWatch>,
        work: impl FnOnce(&Control) -> Result<T> + Send + 'static,
    ) -> BackgroundJob<T> {
        let control = control.with_memory(uflip_core::available_bytes);
        let (is_over, ended) = (Mutex::new(false), Condvar::new());
        let job = BackgroundJob {
            work: Arc::new(Work { control, total, watch, is_over, ended }),
            outcome: Arc::default(),
        };
        let (thread_work, outcome) = (Arc::clone(&job.work), Arc::clone(&job.outcome));
        let thread = std::thread::Builder::new().spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(&thread_work.control)));
            let result = result.unwrap_or_else(|panic| Err(panic_error(&panic)));
            *outcome.lock().expect("the lock is not poisoned") = Some(result);
            thread_work.end();
        });
        if let Err(error) = thread {
            let error = Error::new(ErrorKind::Unavailable, "No thread can be started")
                .at("the run")
                .got(error.to_string())
                .action("raise the limit of processes or memory (ulimit -u, -v)");
            *job.outcome() = Some(Err(error));
            job.work.end();
        }
        job
    }

    /// Return its handle; `convert` converts the result for Python.
    pub(crate) fn handle(
        self,
        convert: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Handle {
        Handle {
            work: Arc::clone(&self.work),
            take: Box::new(move |py| convert(py, self.take(py)?)),
        }
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Result<T>>> {
        self.outcome.lock().expect("the lock is not poisoned")
    }

    /// Wait for the end and take the result; an error can be taken repeatedly, a result only once.
    fn take(&self, py: Python<'_>) -> PyResult<T> {
        while !self.work.wait(py, 3600.0) {}
        let mut outcome = self.outcome();
        match outcome.take() {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => {
                *outcome = Some(Err(error.clone()));
                Err(raise(error))
            }
            None => Err(raise(Error::new(
                ErrorKind::Internal,
                "The result of this run was taken already",
            ))),
        }
    }
}

/// Do work that may block on a device and checks for its end at intervals. It runs on a separate
/// thread, so that signals are handled meanwhile; a thread blocked in the kernel is left alone.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let job =
        BackgroundJob::make(Control::new(1), 1, None, |control| work(&|| control.is_cancelled()));
    while !job.work.wait(py, SLICE_S) {
        if let Err(signal) = py.check_signals() {
            job.work.control.cancel();
            job.work.wait(py, STOP_TIMEOUT_S);
            return Err(signal);
        }
    }
    job.take(py)
}

/// Create the error of work that panicked.
pub(crate) fn panic_error(panic: &Box<dyn std::any::Any + Send>) -> Error {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Error::new(ErrorKind::Internal, "The run failed a check inside uflip")
        .got(text.unwrap_or_default())
        .action("this is a fault of uflip: please report it with the command and the seed")
}

/// A device or the reason why it is absent. Copies share one slot.
pub(crate) struct DeviceSlot<D> {
    state: Arc<Mutex<SlotState<D>>>,
    /// The URL of the device.
    url: Arc<str>,
}

enum SlotState<D> {
    Present(D),
    Away,
    Spent(Error),
}

impl<D> Clone for DeviceSlot<D> {
    fn clone(&self) -> DeviceSlot<D> {
        DeviceSlot { state: Arc::clone(&self.state), url: Arc::clone(&self.url) }
    }
}

impl<D> DeviceSlot<D> {
    pub(crate) fn new(device: D, url: &str) -> DeviceSlot<D> {
        DeviceSlot { state: Arc::new(Mutex::new(SlotState::Present(device))), url: url.into() }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<D>> {
        self.state.lock().expect("the lock is not poisoned")
    }

    /// Use the device now.
    pub(crate) fn with<T>(&self, operate: impl FnOnce(&mut D) -> Result<T>) -> Result<T> {
        let mut state = self.lock();
        let SlotState::Present(device) = &mut *state else { return Err(self.missing(&state)) };
        match catch_unwind(AssertUnwindSafe(|| operate(device))) {
            Ok(result) => result,
            Err(panic) => {
                let error = panic_error(&panic);
                *state = SlotState::Spent(error.clone());
                Err(error)
            }
        }
    }

    /// Take the device, for work on another thread.
    pub(crate) fn take(&self) -> Result<D> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, SlotState::Away) {
            SlotState::Present(device) => Ok(device),
            other => {
                *state = other;
                Err(self.missing(&state))
            }
        }
    }

    /// Put the device back after the work.
    pub(crate) fn put_back(&self, device: D) {
        *self.lock() = SlotState::Present(device);
    }

    /// Mark the device as spent after `error`.
    pub(crate) fn mark_failed(&self, error: Error) {
        *self.lock() = SlotState::Spent(error);
    }

    fn missing(&self, state: &SlotState<D>) -> Error {
        match state {
            SlotState::Spent(error) => Error::new(error.kind(), "The device can no longer be used")
                .at(&*self.url)
                .got(format!("an earlier run failed a check inside uflip: {}", error.parts().2))
                .action("open it again; and please report the fault with the command and the seed"),
            _ => Error::usage("The device is busy with another run")
                .at(&*self.url)
                .action("wait for the run to end, or open the device a second time"),
        }
    }
}
