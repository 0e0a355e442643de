//! Whether to look on for the next request before sleeping: only where it has come in time lately.
//!
//! ```text
//! client on another processor   reply ──▶ ┊ wakes, thinks, asks ┊ ──▶ found: nobody is woken for it
//! client on the same one        reply ──▶ ┊ waits for us to sleep ─────────────▶ ┊ missed: sleep, at once
//! ```
//!
//! To wake somebody on a processor that sleeps takes as long as many requests, above all on a virtual
//! machine. On the same processor a client runs only when we do not, so that every look is in vain; and a
//! client that thinks for longer is not worth a processor. So what was missed lately decides, and now and
//! then it is tried again.

/// For how long to look on [ns]: a processor is woken within that, and a client asks again.
pub(super) const LOOK_ON_NS: u64 = 100_000;
/// Missed so often in a row, it is left alone...
const MISSES: u32 = 3;
/// ... for so many waits: a hundredth of a percent of the time of a client with 10,000 requests a second.
const LEFT_ALONE: u32 = 10_000;

/// What became of looking on lately.
#[derive(Debug, Default)]
pub(super) struct Patience {
    missed: u32,
    left_alone: u32,
}

impl Patience {
    /// Whether to look on before this sleep.
    pub(super) fn is_worth_it(&mut self) -> bool {
        if self.missed < MISSES {
            return true;
        }
        self.left_alone += 1;
        if self.left_alone < LEFT_ALONE {
            return false;
        }
        // One more try.
        (self.missed, self.left_alone) = (MISSES - 1, 0);
        true
    }

    /// It came, or it did not.
    pub(super) fn ended(&mut self, found: bool) {
        self.missed = if found { 0 } else { self.missed + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_vain_is_left_alone_and_tried_now_and_then() {
        let mut patience = Patience::default();
        let mut tries = 0;
        for _ in 0..MISSES + 3 * LEFT_ALONE {
            if patience.is_worth_it() {
                tries += 1;
                patience.ended(false);
            }
        }
        assert_eq!(tries, MISSES + 3);
    }

    #[test]
    fn what_pays_goes_on_until_it_is_missed_in_a_row() {
        let mut patience = Patience::default();
        for wait in 0..=100 {
            assert!(patience.is_worth_it(), "{wait}");
            patience.ended(wait % MISSES != 0);
        }
        for _ in 0..MISSES {
            assert!(patience.is_worth_it());
            patience.ended(false);
        }
        assert!(!patience.is_worth_it());
        // A try that pays is enough to go on.
        while !patience.is_worth_it() {}
        patience.ended(true);
        assert!(patience.is_worth_it());
    }
}
