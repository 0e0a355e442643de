//! The durability of writes: the condition at which a write completes, for real and simulated
//! devices.
//!
//! ```text
//! cached    a write completes when the device has the data, in any cache
//! fua       a write completes when its data would survive a loss of power
//! flush:N   as cached; a flush follows every N-th write, makes all earlier writes durable, and counts as
//!           part of the response time of that write
//! ```
//!
//! **Source**: uFLIP (2009) §4.3 requires synchronous I/O, "to avoid the parallelism features of
//! the operating system": a write blocks. The paper does not mention the device's own cache
//! (`cached`). Myers & Sinclair (2010) §4: "the time it takes to perform the write *and* flush that
//! write to the disk" (`fua`).
//! **Faithful**: the time of a flush belongs to the write before it, as Myers & Sinclair define it.
//! **Simplified**: with several submitters, all their writes share one count, in the order of
//! submission. The count restarts with each run.
//! **Ambiguous**: uFLIP does not state whether its Windows machines let drives keep data in
//! volatile caches. The default is `cached`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::{Error, Result};

/// The condition at which a write completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum Durability {
    /// The device has the data.
    #[default]
    Cached,
    /// The data is durable.
    Fua,
    /// As cached; after every N-th write, all earlier writes are durable.
    Flush(NonZeroU32),
}

impl Durability {
    /// The allowed forms, for error messages.
    pub const FORMS: &str = "cached, fua, flush:N with N from 1 to 4294967295";

    /// Return whether a flush follows the write that comes after `written` others.
    #[inline]
    #[must_use]
    pub fn flushes_after(self, written: u64) -> bool {
        match self {
            Durability::Cached | Durability::Fua => false,
            Durability::Flush(interval) => (written + 1).is_multiple_of(u64::from(interval.get())),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Durability> {
        let interval = |number: &str| -> Option<NonZeroU32> {
            let is_plain =
                number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
            is_plain.then(|| number.parse().ok()).flatten()
        };
        match (text, text.strip_prefix("flush:").and_then(interval)) {
            ("cached", _) => Ok(Durability::Cached),
            ("fua", _) => Ok(Durability::Fua),
            (_, Some(interval)) => Ok(Durability::Flush(interval)),
            _ => Err(Error::usage("Unknown durability")
                .got(format!("'{text}'"))
                .allowed(Durability::FORMS)
                .action("choose what a write waits for, as in flush:32")),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Cached => f.write_str("cached"),
            Durability::Fua => f.write_str("fua"),
            Durability::Flush(interval) => write!(f, "flush:{interval}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_round_trips_through_text() {
        for text in ["cached", "fua", "flush:1", "flush:4294967295"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn unknown_durability_is_refused_with_allowed_forms() {
        for text in ["", "FUA", "flush", "flush:", "flush:0", "flush:01", "flush:-1", "flush:+1"] {
            let error = text.parse::<Durability>().unwrap_err().to_string();
            assert!(error.contains("flush:N"), "{text}: {error}");
        }
        assert!("flush:4294967296".parse::<Durability>().is_err());
    }

    #[test]
    fn flush_follows_each_nth_write() {
        let third: Durability = "flush:3".parse().unwrap();
        let followed: Vec<u64> = (0..9).filter(|before| third.flushes_after(*before)).collect();
        assert_eq!(followed, [2, 5, 8]);
        assert!(!(0..9).any(|before| Durability::Fua.flushes_after(before)));
    }
}
