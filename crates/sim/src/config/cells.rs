//! Page types and their times.

use super::TimingPart;
use super::checks::InvalidKeys;
use crate::timeline::cells::{ByPageType, CellTimes};

/// The default number of bits per cell; it matters only if page types differ in time.
const BITS: u32 = 2;

impl TimingPart {
    /// Return the number of pages that share cells.
    pub(crate) fn bits(&self) -> u32 {
        self.bits_per_cell.unwrap_or(BITS)
    }

    fn read_by_kind(&self) -> ByPageType {
        ByPageType {
            low: self.read_ns,
            middle: self.read_middle_ns.unwrap_or(self.read_ns),
            high: self.read_high_ns.unwrap_or(self.read_ns),
        }
    }

    fn program_by_kind(&self) -> ByPageType {
        ByPageType {
            low: self.program_ns,
            middle: self.program_middle_ns.unwrap_or(self.program_ns),
            high: self.program_high_ns,
        }
    }

    pub(super) fn cells(&self) -> CellTimes {
        CellTimes::new(self.bits(), self.read_by_kind(), self.program_by_kind())
    }

    /// Return the longest read and the longest program [ns].
    pub(super) fn slowest_cells(&self) -> (u64, u64) {
        let slowest = |ByPageType { low, middle, high }| low.max(middle).max(high);
        (slowest(self.read_by_kind()), slowest(self.program_by_kind()))
    }

    /// Find times of page types that do not exist.
    pub(super) fn find_invalid_cells(&self, invalid: &mut InvalidKeys) {
        let bits = self.bits();
        let mut reject = |key, got: Option<u64>, allowed: &str| {
            let allowed = format!("{allowed}: no page has this type");
            invalid.reject_if(got.is_some(), key, &got.unwrap_or(0), allowed);
        };
        if bits < 3 {
            let allowed = format!("no such key with bits_per_cell = {bits}");
            reject("program_middle_ns", self.program_middle_ns, &allowed);
            reject("read_middle_ns", self.read_middle_ns, &allowed);
        }
        if bits < 2 {
            let allowed = "no such key with bits_per_cell = 1";
            reject("read_high_ns", self.read_high_ns, allowed);
            let other = Some(self.program_high_ns).filter(|high| *high != self.program_ns);
            let allowed = format!("program_ns = {} with bits_per_cell = 1", self.program_ns);
            reject("program_high_ns", other, &allowed);
        }
    }
}
