//! Retired blocks and pages found after a power loss.

use super::Nand;
use crate::collections::bits;
use crate::flash::geometry::{BlockIdx, Ppn};

impl Nand {
    /// Set the retired blocks and pages, a bit each, and no others.
    pub(crate) fn restore_retired(&mut self, bad: &[bool], pages: &[u64]) {
        self.begin_retiring();
        (self.bad, self.retired) = (bad.to_vec(), pages.to_vec());
    }

    /// Return whether `block` is retired.
    pub(crate) fn is_bad(&self, block: BlockIdx) -> bool {
        self.bad.get(block.0 as usize).is_some_and(|bad| *bad)
    }

    /// Return whether `page` is retired individually.
    pub(crate) fn is_page_retired(&self, page: Ppn) -> bool {
        !self.retired.is_empty() && bits::has(&self.retired, page.0 as usize)
    }
}
