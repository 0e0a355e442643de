//! A workload that ends in a power loss, and the recovery.

use uflip_core::{Device as _, Io, Nanos, Result};

use super::{PowerCut, Recovery, SimDevice};
use crate::config::{CLOCK_END_NS, clock_overflow};

/// A power loss from beginning to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Outage {
    /// I/Os completed to the host before the power loss.
    pub ios_completed: u64,
    /// The losses.
    pub cut: PowerCut,
    /// The recovery.
    pub recovery: Recovery,
}

impl SimDevice {
    /// Do `ios` at a queue depth of `at_once` until power is cut at `at`, and recover. If they end
    /// earlier, the device is idle until then.
    ///
    /// # Errors
    /// Those of the I/Os and of [`SimDevice::cut_power`]; `at` is past the end of the clock.
    pub fn survive(
        &mut self,
        ios: impl Iterator<Item = Io>,
        at_once: u32,
        at: Nanos,
    ) -> Result<Outage> {
        if at.0 >= CLOCK_END_NS {
            return Err(clock_overflow().at(&self.info.url));
        }
        let (mut outstanding, mut ios_completed) = (0, 0);
        let mut ios = ios.fuse();
        loop {
            while outstanding < at_once
                && let Some(io) = ios.next()
            {
                self.submit(&io)?;
                outstanding += 1;
            }
            if outstanding == 0 {
                self.wait_until(at);
                break;
            }
            if self.next_completion(at).is_none() {
                break;
            }
            self.complete()?;
            outstanding -= 1;
            ios_completed += 1;
        }
        let cut = self.cut_power(at)?;
        let recovery = self.recover()?;
        Ok(Outage { ios_completed, cut, recovery })
    }
}
