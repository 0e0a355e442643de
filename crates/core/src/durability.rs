//! What a write waits for: a named condition of a measurement, the same for real and simulated devices.
//!
//! ```text
//! cached    the write is over when the device has taken the data, wherever it keeps it
//! fua       each write is over when its data would survive a loss of power
//! flush:N   as cached; after every N-th write all that was written before is made durable, and that
//!           write is over when it is
//! ```
//!
//! **Source**: uFLIP (2009) §4.3 asks for synchronous I/O, "to avoid the parallelism features of the
//! operating system": a write blocks, and nothing is said of the device's own cache (`cached`). Myers
//! & Sinclair (2010) §4: "the time it takes to perform the write *and* flush that write to the disk"
//! (`fua`).
//! **Faithful**: the time of a flush belongs to the write that it follows, as in Myers & Sinclair's
//! definition.
//! **Simplified**: where several submitters write, writes are counted as they are submitted, whoever
//! submits them; the count begins anew with each run.
//! **Ambiguous**: nothing says whether uFLIP's Windows machines let drives keep data in volatile
//! caches. A host that does not ask for more gets `cached`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::{Error, Result};

/// What a write waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum Durability {
    /// For the device to have the data.
    #[default]
    Cached,
    /// For the data to be durable.
    Fua,
    /// As cached; every so many writes for everything before to be durable.
    Flush(NonZeroU32),
}

impl Durability {
    /// The forms, as they are shown to who gets one wrong.
    pub const FORMS: &str = "cached, fua, flush:N with N from 1 to 4294967295";

    /// Whether a flush follows the write before which `written` others were submitted.
    #[inline]
    #[must_use]
    pub fn flushes_after(self, written: u64) -> bool {
        match self {
            Durability::Cached | Durability::Fua => false,
            Durability::Flush(every) => (written + 1).is_multiple_of(u64::from(every.get())),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Durability> {
        let every = |number: &str| -> Option<NonZeroU32> {
            let plain =
                number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
            plain.then(|| number.parse().ok()).flatten()
        };
        match (text, text.strip_prefix("flush:").and_then(every)) {
            ("cached", _) => Ok(Durability::Cached),
            ("fua", _) => Ok(Durability::Fua),
            (_, Some(every)) => Ok(Durability::Flush(every)),
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
            Durability::Flush(every) => write!(f, "flush:{every}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_written_as_it_is_read() {
        for text in ["cached", "fua", "flush:1", "flush:4294967295"] {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_other_form_is_refused_with_the_known_ones() {
        for text in ["", "FUA", "flush", "flush:", "flush:0", "flush:01", "flush:-1", "flush:+1"] {
            let said = text.parse::<Durability>().unwrap_err().to_string();
            assert!(said.contains("flush:N"), "{text}: {said}");
        }
        assert!("flush:4294967296".parse::<Durability>().is_err());
    }

    #[test]
    fn a_flush_follows_each_nth_write() {
        let third: Durability = "flush:3".parse().unwrap();
        let followed: Vec<u64> = (0..9).filter(|before| third.flushes_after(*before)).collect();
        assert_eq!(followed, [2, 5, 8]);
        assert!(!(0..9).any(|before| Durability::Fua.flushes_after(before)));
    }
}
