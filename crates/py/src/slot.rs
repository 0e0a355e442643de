//! Where a device is kept between two works: here, away with a work on a thread of its own, or spent,
//! because the last work broke a rule of the device model and left it in no state to go on with.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use uflip_core::{Error, Result};

use crate::job::broken;

/// A device, and what became of it. Copies name the same place.
pub(crate) struct Slot<D> {
    place: Arc<Mutex<Place<D>>>,
    /// What the device is called.
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

    /// Use the device here and now.
    ///
    /// # Errors
    /// It is away, or spent, or `use_it` breaks it.
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

    /// The device itself, for work on a thread of its own.
    ///
    /// # Errors
    /// It is away, or spent.
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

    /// The work is over.
    pub(crate) fn put_back(&self, device: D) {
        *self.lock() = Place::Here(device);
    }

    /// The work broke the device with `error`.
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
