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
use uflip_engine::Control;
use uflip_host::DeviceWatch;

use crate::error::raise;

/// The interval at which a wait for a device handles signals.
const SLICE_S: f64 = 0.05;
/// The time limit for stopping such a wait: a thread blocked in the kernel cannot respond.
const STOP_TIMEOUT_S: f64 = 1.0;

struct Shared<T> {
    control: Control,
    total: u64,
    /// The watch on the outstanding I/O, if the device has one.
    watch: Option<DeviceWatch>,
    outcome: Mutex<Option<Result<T>>>,
    ended: Condvar,
}

/// The Python handle of work on a device.
#[pyclass(frozen)]
pub struct Handle {
    work: Box<dyn AnyJob>,
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

    fn progress(&self) -> (u64, u64, u64) {
        self.work.progress()
    }

    fn cancel(&self) {
        self.work.cancel();
    }

    fn overdue(&self, limit_ns: u64) -> PyResult<()> {
        self.work.overdue(Nanos(limit_ns)).map_or(Ok(()), |error| Err(raise(&error)))
    }

    fn check_target(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.work.truncation_error()).map_or(Ok(()), |error| Err(raise(&error)))
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.work.result(py)
    }
}

/// Work in progress.
trait AnyJob: Send + Sync {
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool;
    fn progress(&self) -> (u64, u64, u64);
    fn cancel(&self);
    fn overdue(&self, limit: Nanos) -> Option<Error>;
    fn truncation_error(&self) -> Option<Error>;
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// Work with a result `T`, and its conversion for Python.
struct ConvertedJob<T, F> {
    job: BackgroundJob<T>,
    convert: F,
}

impl<T, F> AnyJob for ConvertedJob<T, F>
where
    T: Send + 'static,
    F: Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync,
{
    fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        self.job.wait(py, timeout_s)
    }

    fn progress(&self) -> (u64, u64, u64) {
        self.job.progress()
    }

    fn cancel(&self) {
        self.job.cancel();
    }

    fn overdue(&self, limit: Nanos) -> Option<Error> {
        self.job.shared.watch.as_ref().and_then(|watch| watch.overdue(limit))
    }

    fn truncation_error(&self) -> Option<Error> {
        self.job.shared.watch.as_ref().and_then(DeviceWatch::truncation_error)
    }

    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        (self.convert)(py, self.job.take(py)?)
    }
}

/// A device with a watch on its outstanding I/O.
pub(crate) trait Watchable {
    /// Return the watch; `None` if nothing can hang.
    fn watch(&self) -> Option<DeviceWatch>;
}

/// Work in progress with the result `T`.
pub(crate) struct BackgroundJob<T> {
    shared: Arc<Shared<T>>,
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
        BackgroundJob::begin(control, total, device.watch(), move |control| {
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
        BackgroundJob::begin(control, total, watch, work)
    }

    fn begin(
        control: Control,
        total: u64,
        watch: Option<DeviceWatch>,
        work: impl FnOnce(&Control) -> Result<T> + Send + 'static,
    ) -> BackgroundJob<T> {
        let (outcome, ended) = (Mutex::new(None), Condvar::new());
        let control = control.with_memory(uflip_core::available_bytes);
        let shared = Arc::new(Shared { control, total, watch, outcome, ended });
        let thread_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&thread_shared.control)));
            let outcome = outcome.unwrap_or_else(|panic| Err(panic_error(&panic)));
            *thread_shared.outcome.lock().expect("the lock is not poisoned") = Some(outcome);
            thread_shared.ended.notify_all();
        });
        if let Err(error) = thread {
            let error = Error::new(ErrorKind::Unavailable, "No thread can be started")
                .at("the run")
                .got(error.to_string())
                .action("raise the limit of processes or memory (ulimit -u, -v)");
            *shared.outcome.lock().expect("the lock is not poisoned") = Some(Err(error));
        }
        BackgroundJob { shared }
    }

    /// Return its handle; `convert` converts the result for Python.
    pub(crate) fn handle(
        self,
        convert: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> Handle {
        Handle { work: Box::new(ConvertedJob { job: self, convert }) }
    }

    /// Cancel the work.
    pub(crate) fn cancel(&self) {
        self.shared.control.cancel();
    }

    /// Block at most `timeout_s` without the interpreter lock; return whether the work is over.
    pub(crate) fn wait(&self, py: Python<'_>, timeout_s: f64) -> bool {
        let timeout = Duration::from_secs_f64(timeout_s.clamp(0.0, 3600.0));
        py.detach(|| {
            let outcome = self.shared.outcome.lock().expect("the lock is not poisoned");
            let (outcome, _) = self
                .shared
                .ended
                .wait_timeout_while(outcome, timeout, |outcome| outcome.is_none())
                .expect("the lock is not poisoned");
            outcome.is_some()
        })
    }

    /// Return the I/Os done, the I/Os in total, and the last response time [ns].
    fn progress(&self) -> (u64, u64, u64) {
        let (done, last_response_ns) = self.shared.control.progress();
        (done, self.shared.total, last_response_ns)
    }

    /// Wait for the end and take the result; an error can be taken repeatedly, a result only once.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<T> {
        while !self.wait(py, 3600.0) {}
        let outcome = self.shared.outcome.lock().expect("the lock is not poisoned").take();
        match outcome {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => {
                let repeated = Some(Err(error.clone()));
                *self.shared.outcome.lock().expect("the lock is not poisoned") = repeated;
                Err(raise(&error))
            }
            None => Err(raise(&Error::new(
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
    while !job.wait(py, SLICE_S) {
        if let Err(signal) = py.check_signals() {
            job.cancel();
            job.wait(py, STOP_TIMEOUT_S);
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
    ///
    /// # Errors
    /// If it is away or spent, or if `operate` panics.
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
    ///
    /// # Errors
    /// If it is away or spent.
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
