//! The log of a wear job: one row a cycle, because 17 million single page operations are too many
//! to read.

use uflip_core::{Completion, Device, FlashIo, FlashOp, FlashStatus, Nanos};

use crate::drive::RecordCompletion;

/// One row per cycle of erase, writes and reads. Times are sums [ns] until [`WearLog::finish`],
/// then means.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct WearLog {
    /// The complete job.
    pub canonical: serde_json::Value,
    /// Write commands per cycle; there are as many reads.
    pub commands: u64,
    pub erase_ns: Vec<u64>,
    pub write_ns: Vec<u64>,
    pub read_ns: Vec<u64>,
    /// The slowest write and read of each cycle.
    pub write_max_ns: Vec<u64>,
    pub read_max_ns: Vec<u64>,
    /// Commands of each cycle with a failed address.
    pub failed_writes: Vec<u64>,
    pub failed_reads: Vec<u64>,
    /// Whether the erase of the last cycle failed; that cycle has no writes and reads.
    pub erase_failed: bool,
}

impl WearLog {
    /// Create a log for cycles of an erase, `commands` writes and as many reads.
    pub(crate) fn new(commands: u64) -> WearLog {
        WearLog {
            canonical: serde_json::Value::Null,
            commands,
            erase_ns: Vec::new(),
            write_ns: Vec::new(),
            read_ns: Vec::new(),
            write_max_ns: Vec::new(),
            read_max_ns: Vec::new(),
            failed_writes: Vec::new(),
            failed_reads: Vec::new(),
            erase_failed: false,
        }
    }

    /// Turn sums into means.
    pub(crate) fn finish(mut self, canonical: serde_json::Value) -> WearLog {
        self.canonical = canonical;
        let commands = self.commands.max(1);
        for sum in self.write_ns.iter_mut().chain(&mut self.read_ns) {
            *sum /= commands;
        }
        self
    }

    /// Return the number of cycles, including a last one whose erase failed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.erase_ns.len()
    }

    /// Return whether the log is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.erase_ns.is_empty()
    }
}

impl<D: Device<Request = FlashIo, Status = FlashStatus>> RecordCompletion<D> for WearLog {
    #[inline]
    fn record(
        &mut self,
        _: usize,
        io: &FlashIo,
        _: Nanos,
        _: Nanos,
        completion: &Completion<D::Breakdown, FlashStatus>,
    ) {
        let time_ns = completion.completed.0 - completion.submitted.0;
        let failed = u64::from(completion.status.failed() != 0);
        if io.op() == FlashOp::Erase {
            self.erase_ns.push(time_ns);
            for column in [
                &mut self.write_ns,
                &mut self.read_ns,
                &mut self.write_max_ns,
                &mut self.read_max_ns,
                &mut self.failed_writes,
                &mut self.failed_reads,
            ] {
                column.push(0);
            }
            self.erase_failed = failed != 0;
            return;
        }
        let (sum, max, failures) = match io.op() {
            FlashOp::Write => (&mut self.write_ns, &mut self.write_max_ns, &mut self.failed_writes),
            _ => (&mut self.read_ns, &mut self.read_max_ns, &mut self.failed_reads),
        };
        let cycle = sum.len() - 1;
        sum[cycle] += time_ns;
        max[cycle] = max[cycle].max(time_ns);
        failures[cycle] += failed;
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.erase_failed
    }
}
