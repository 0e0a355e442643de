//! The spin policy: whether to poll for the next request before sleeping. Recent success decides.
//!
//! ```text
//! client on another CPU   reply ──▶ ┊ wakes, computes, sends ┊ ──▶ hit: no wake-up needed
//! client on the same CPU  reply ──▶ ┊ waits for the server to sleep ─────────▶ ┊ miss: sleep at once
//! ```
//!
//! Waking a sleeping CPU takes as long as many requests, above all on a virtual machine. On the
//! same CPU a client runs only while the server sleeps, so that spinning never succeeds; and a
//! client with a longer think time does not justify a spinning CPU. Recent misses therefore disable
//! spinning, with an occasional retry.

/// The duration of a spin [ns]: enough to wake a CPU and receive the client's next request.
pub(super) const SPIN_NS: u64 = 100_000;
/// After this number of consecutive misses spinning stops...
const MISSES: u32 = 3;
/// ... for this number of waits: 0.01 % of the time of a client with 10,000 requests per second.
const SKIPPED_WAITS: u32 = 10_000;

/// The results of recent spins.
#[derive(Debug, Default)]
pub(super) struct SpinPolicy {
    missed: u32,
    skipped: u32,
}

impl SpinPolicy {
    /// Return whether to spin before this sleep.
    pub(super) fn should_spin(&mut self) -> bool {
        if self.missed < MISSES {
            return true;
        }
        self.skipped += 1;
        if self.skipped < SKIPPED_WAITS {
            return false;
        }
        // One retry.
        (self.missed, self.skipped) = (MISSES - 1, 0);
        true
    }

    /// Store the result of a spin.
    pub(super) fn record(&mut self, found_work: bool) {
        self.missed = if found_work { 0 } else { self.missed + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futile_spinning_is_skipped_and_retried() {
        let mut policy = SpinPolicy::default();
        let mut tries = 0;
        for _ in 0..MISSES + 3 * SKIPPED_WAITS {
            if policy.should_spin() {
                tries += 1;
                policy.record(false);
            }
        }
        assert_eq!(tries, MISSES + 3);
    }

    #[test]
    fn useful_spinning_continues_until_repeated_misses() {
        let mut policy = SpinPolicy::default();
        for wait in 0..=100 {
            assert!(policy.should_spin(), "{wait}");
            policy.record(wait % MISSES != 0);
        }
        for _ in 0..MISSES {
            assert!(policy.should_spin());
            policy.record(false);
        }
        assert!(!policy.should_spin());
        // One success re-enables spinning.
        while !policy.should_spin() {}
        policy.record(true);
        assert!(policy.should_spin());
    }
}
