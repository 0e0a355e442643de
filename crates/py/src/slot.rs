//! The slot of a device between two works: present, away with work on another thread, or spent,
//! because the last work violated an invariant of the device model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use uflip_core::{Error, Result};

use crate::job::broken;

/// A device or its whereabouts. Copies share one slot.
pub(crate) struct Slot<D> {
    place: Arc<Mutex<Place<D>>>,
    /// The URL of the device.
    url: Arc<str>,
}

enum Place<D> {
    Here(D),
    Away,
    Spent(Error),
}

impl<D> Clone for Slot<D> {
    fn clone(&self) -> Slot<D> {
        Slot { place: Arc::clone(&self.place), url: Arc::clone(&self.url) }
    }
}

impl<D> Slot<D> {
    pub(crate) fn new(device: D, url: &str) -> Slot<D> {
        Slot { place: Arc::new(Mutex::new(Place::Here(device))), url: url.into() }
    }

    fn lock(&self) -> MutexGuard<'_, Place<D>> {
        self.place.lock().expect("no panic while held")
    }

    /// Use the device now.
    ///
    /// # Errors
    /// If it is away or spent, or if `use_it` breaks it.
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut D) -> Result<T>) -> Result<T> {
        let mut place = self.lock();
        let Place::Here(device) = &mut *place else { return Err(self.missing(&place)) };
        match catch_unwind(AssertUnwindSafe(|| use_it(device))) {
            Ok(used) => used,
            Err(panic) => {
                let error = broken(&panic);
                *place = Place::Spent(error.clone());
                Err(error)
            }
        }
    }

    /// Take the device, for work on another thread.
    ///
    /// # Errors
    /// If it is away or spent.
    pub(crate) fn take(&self) -> Result<D> {
        let mut place = self.lock();
        match std::mem::replace(&mut *place, Place::Away) {
            Place::Here(device) => Ok(device),
            other => {
                *place = other;
                Err(self.missing(&place))
            }
        }
    }

    /// Put the device back after the work.
    pub(crate) fn put_back(&self, device: D) {
        *self.lock() = Place::Here(device);
    }

    /// Mark the device as spent after `error`.
    pub(crate) fn spend(&self, error: Error) {
        *self.lock() = Place::Spent(error);
    }

    fn missing(&self, place: &Place<D>) -> Error {
        match place {
            Place::Spent(error) => Error::new(error.kind(), "The device is spent")
                .at(&*self.url)
                .got(format!("an earlier run broke a rule inside uflip: {}", error.parts().2))
                .action("open it again; and please report the fault with the command and the seed"),
            _ => Error::usage("The device is busy with another run")
                .at(&*self.url)
                .action("wait for the run to end, or open the device a second time"),
        }
    }
}
