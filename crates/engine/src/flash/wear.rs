//! A block that is worn out: one row a cycle, because 17 million page operations are nothing to look at
//! one by one.

use uflip_core::{Completion, Device, FlashIo, FlashOp, FlashStatus, Nanos};

use crate::drive::Record;

/// One row a cycle of erase, writes and reads. Times are sums [ns] until [`WearLog::finish`], means after.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct WearLog {
    /// The job, complete.
    pub canonical: serde_json::Value,
    /// Commands that write the block once; as many read it.
    pub commands: u64,
    pub erase_ns: Vec<u64>,
    pub write_ns: Vec<u64>,
    pub read_ns: Vec<u64>,
    /// Slowest write and read of each cycle.
    pub write_max_ns: Vec<u64>,
    pub read_max_ns: Vec<u64>,
    /// Commands of each cycle of which an address failed.
    pub failed_writes: Vec<u64>,
    pub failed_reads: Vec<u64>,
    /// Whether the last cycle's erase failed: it has no writes and reads.
    pub erase_failed: bool,
}

impl WearLog {
    /// For cycles of an erase, `commands` writes and as many reads.
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

    /// Sums become means.
    pub(crate) fn finish(mut self, canonical: serde_json::Value) -> WearLog {
        self.canonical = canonical;
        let each = self.commands.max(1);
        for sum in self.write_ns.iter_mut().chain(&mut self.read_ns) {
            *sum /= each;
        }
        self
    }

    /// How many cycles there are, a last one that could not be erased included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.erase_ns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.erase_ns.is_empty()
    }
}

impl<D: Device<Request = FlashIo, Status = FlashStatus>> Record<D> for WearLog {
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
        let (sum, most, failures) = match io.op() {
            FlashOp::Write => (&mut self.write_ns, &mut self.write_max_ns, &mut self.failed_writes),
            _ => (&mut self.read_ns, &mut self.read_max_ns, &mut self.failed_reads),
        };
        let cycle = sum.len() - 1;
        sum[cycle] += time_ns;
        most[cycle] = most[cycle].max(time_ns);
        failures[cycle] += failed;
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.erase_failed
    }
}
