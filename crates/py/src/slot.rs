//! The slot of a device between two jobs: present, away with a job on another thread, or spent,
//! because the last job violated an invariant of the device model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use uflip_core::{Error, Result};

use crate::job::panic_error;

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
