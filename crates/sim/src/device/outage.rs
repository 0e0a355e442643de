//! A host at work until the power goes, and the device that it finds again.

use uflip_core::{Device as _, Io, Nanos, Result};

use super::{PowerCut, Recovery, SimDevice};
use crate::config::{CLOCK_END_NS, clock_ran_out};

/// A loss of power from beginning to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Outage {
    /// I/Os of whose end the host heard before.
    pub ios_completed: u64,
    /// What it cost.
    pub cut: PowerCut,
    /// How the device came back.
    pub recovery: Recovery,
}

impl SimDevice {
    /// Do `ios`, so many at a time, until power is cut at `at`, and recover. Where they end before, the device
    /// is left alone until then.
    ///
    /// # Errors
    /// Those of the I/Os and of [`SimDevice::cut_power`]; `at` is when the clock has run out.
    pub fn survive(
        &mut self,
        ios: impl Iterator<Item = Io>,
        at_once: u32,
        at: Nanos,
    ) -> Result<Outage> {
        if at.0 >= CLOCK_END_NS {
            return Err(clock_ran_out().at(&self.info.url));
        }
        let (mut under_way, mut ios_completed) = (0, 0);
        let mut ios = ios.fuse();
        loop {
            while under_way < at_once
                && let Some(io) = ios.next()
            {
                self.submit(&io)?;
                under_way += 1;
            }
            if under_way == 0 {
                self.wait_until(at);
                break;
            }
            if self.next_completion(at).is_none() {
                break;
            }
            self.complete()?;
            under_way -= 1;
            ios_completed += 1;
        }
        let cut = self.cut_power(at)?;
        let recovery = self.recover()?;
        Ok(Outage { ios_completed, cut, recovery })
    }
}
