//! The wall clock: CLOCK_MONOTONIC through the vDSO, and waiting on it.

use uflip_core::Nanos;

/// The kernel wakes a sleeper late: a plain sleep of 100 µs lasts about 168 µs with the default
/// timer slack of 50 µs. So sleep until this long before the time, then spin.
const SPIN_NS: u64 = 250_000;

/// Return the current time of CLOCK_MONOTONIC.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Return at `t`, never earlier and as little later as possible; at once if `t` has passed.
pub fn wait_until(t: Nanos) {
    let remaining = t.saturating_sub(now()).0;
    if remaining > SPIN_NS {
        std::thread::sleep(std::time::Duration::from_nanos(remaining - SPIN_NS));
    }
    while now() < t {
        std::hint::spin_loop();
    }
}

/// Return the cost of one clock reading on this machine [ns], from a million readings.
#[must_use]
pub fn clock_cost_ns() -> f64 {
    const READINGS: u32 = 1_000_000;
    let start = now();
    for _ in 0..READINGS {
        std::hint::black_box(now());
    }
    (now() - start).0 as f64 / f64::from(READINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_until_never_returns_early() {
        for pause in [0, 1_000, 100_000, 400_000] {
            let until = now() + Nanos(pause);
            wait_until(until);
            assert!(now() >= until);
        }
    }
}
