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
const DEVICE: &str = "device_ns";

/// The columns of a run with an open loop on a device that reports no causes.
pub const HOST_CAUSES: [&str; 2] = [WAIT, DEVICE];

/// The causes of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Causes {
    has_wait: bool,
    /// The causes that the device reports.
    device_causes: &'static [&'static str],
}

impl Causes {
    /// Return the causes of a run of `pattern` on a device of the type `D`.
    #[must_use]
    pub fn for_run<D: Device>(pattern: &Resolved) -> Causes {
        Causes { has_wait: pattern.is_open(), device_causes: <D::Breakdown as Breakdown>::CAUSES }
    }

    /// Return the names of the columns, in their order.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let names: Vec<&str> = match (self.has_wait, self.device_causes) {
            (false, device_causes) => device_causes.to_vec(),
            (true, []) => HOST_CAUSES.to_vec(),
            (true, device_causes) => [&[WAIT], device_causes].concat(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Return the number of columns.
    #[must_use]
    pub fn count(self) -> usize {
        let device_columns =
            if self.has_wait { self.device_causes.len().max(1) } else { self.device_causes.len() };
        usize::from(self.has_wait) + device_columns
    }

    /// Store the causes of one I/O in row `at` of `columns`: its wait before submission [ns], the
    /// device's time after that [ns], and the causes of the device.
    #[inline]
    pub(crate) fn store(
        self,
        columns: &mut [Vec<u64>],
        row: usize,
        wait_ns: u64,
        device_ns: u64,
        values: &[u64],
    ) {
        let device_columns = if self.has_wait {
            columns[0][row] = wait_ns;
            &mut columns[1..]
        } else {
            columns
        };
        if self.has_wait && self.device_causes.is_empty() {
            device_columns[0][row] = device_ns;
        }
        for (column, part) in device_columns.iter_mut().zip(values) {
            column[row] = *part;
        }
    }
}

/// Return the index of the column of submission waits; `None` if no process is an open loop.
#[must_use]
pub fn wait_column(causes: &[String]) -> Option<usize> {
    causes.iter().position(|cause| cause == WAIT)
}
