//! The null device, which completes at once: a run on it measures the cost of the harness.

use uflip_core::{
    Bytes, Completion, CompletionQueue, Device, DeviceInfo, DeviceKind, Io, Nanos, Result, Ticket,
};

use crate::clock;

/// A device without any work, on the wall clock.
#[derive(Clone, Debug)]
pub struct NullDevice {
    info: DeviceInfo,
    completions: CompletionQueue,
}

impl NullDevice {
    /// Create a null device with a nominal `capacity`.
    #[must_use]
    pub fn new(capacity: Bytes) -> NullDevice {
        let info = DeviceInfo {
            url: "null".into(),
            kind: DeviceKind::Null,
            simulated: false,
            model: "null".into(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: capacity,
            sector_bytes: Bytes(uflip_core::SECTOR_BYTES_MIN),
            clock: "monotonic",
            io: "none".into(),
            data: "none",
            details: serde_json::Map::new(),
        };
        NullDevice { info, completions: CompletionQueue::default() }
    }
}

impl Device for NullDevice {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn wait_until(&mut self, t: Nanos) {
        clock::wait_until(t);
    }

    #[inline]
    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        let submitted = clock::now();
        std::hint::black_box(request);
        let completed = clock::now();
        Ok(self.completions.push(submitted, completed))
    }

    #[inline]
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.completions.next_completion()
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<()>> {
        Ok(self.completions.complete())
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<NullDevice>>> {
        Ok(Some(vec![self.clone(); submitters]))
    }
}
