//! The cause columns of a run, which split its response times.
//!
//! ```text
//!  the device reports causes   a process is an open loop   columns
//!  no                          no                          none
//!  no                          yes                         submission_wait_ns, device_ns
//!  yes                         no                          those of the device
//!  yes                         yes                         submission_wait_ns, those of the device
//! ```
//!
//! A run may have processes of both kinds. The columns belong to the run, so an I/O of a closed
//! loop in the same run also has a wait, of 0 ns. Only [`Causes`] defines the names, their number
//! and the values of each I/O.

use uflip_core::{Breakdown, Device};

use crate::spec::Resolved;

/// The wait of an I/O from arrival to submission.
const WAIT: &str = "submission_wait_ns";
/// The time after submission, on a device that reports no causes.
const REST: &str = "device_ns";

/// The columns of a run with an open loop on a device that reports no causes.
pub const HOST_CAUSES: [&str; 2] = [WAIT, REST];

/// The causes of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Causes {
    has_wait: bool,
    /// The causes that the device reports.
    own: &'static [&'static str],
}

impl Causes {
    /// Return the causes of a run of `pattern` on a device of the type `D`.
    #[must_use]
    pub fn for_run<D: Device>(pattern: &Resolved) -> Causes {
        Causes { has_wait: pattern.is_open(), own: <D::Breakdown as Breakdown>::CAUSES }
    }

    /// Return the names of the columns, in their order.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let names: Vec<&str> = match (self.has_wait, self.own) {
            (false, own) => own.to_vec(),
            (true, []) => HOST_CAUSES.to_vec(),
            (true, own) => [&[WAIT], own].concat(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Return the number of columns.
    #[must_use]
    pub fn count(self) -> usize {
        let own = if self.has_wait { self.own.len().max(1) } else { self.own.len() };
        usize::from(self.has_wait) + own
    }

    /// Store the causes of one I/O in row `at` of `columns`: its wait before submission [ns], the
    /// device's time after that [ns], and the causes of the device.
    #[inline]
    pub(crate) fn store(
        self,
        columns: &mut [Vec<u64>],
        at: usize,
        wait_ns: u64,
        device_ns: u64,
        own: &[u64],
    ) {
        let of_device = if self.has_wait {
            columns[0][at] = wait_ns;
            &mut columns[1..]
        } else {
            columns
        };
        if self.has_wait && self.own.is_empty() {
            of_device[0][at] = device_ns;
        }
        for (column, part) in of_device.iter_mut().zip(own) {
            column[at] = *part;
        }
    }
}

/// Return the index of the column of submission waits; `None` if no process is an open loop.
#[must_use]
pub fn wait_column(causes: &[String]) -> Option<usize> {
    causes.iter().position(|cause| cause == WAIT)
}
