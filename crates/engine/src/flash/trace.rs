//! The output of a job: the in-memory trace of every command, 28 bytes each and 8 more for each cause;
//! or the log of a wear job, one row a cycle, because 17 million single page operations are too many to
//! read.
//!
//! ```text
//!  submit_ns         u64   from the start of the job on the device's clock
//!  response_time_ns  u64   completed − submitted
//!  first             u64   the first address: channel 8 │ LUN 8 │ block 24 │ page 24 bits
//!  how               u32   operation 8 │ addresses 8 │ failed 8 │ first failure 8 bits
//! ```
//!
//! The other addresses of a vector follow from the job.

use uflip_core::{
    AddressStatus, Breakdown, Completion, Device, FlashIo, FlashOp, FlashStatus, Nanos, Ppa,
};

use crate::drive::RecordCompletion;
use crate::flash::spec::FlashJob;

/// Status numbers are below this.
const STATUSES: u64 = AddressStatus::NAMES.len() as u64;

/// Every command of a job, grouped by thread.
#[derive(Clone, PartialEq, Debug)]
pub struct FlashTrace {
    /// The complete job.
    pub canonical: serde_json::Value,
    /// The number of commands of each thread.
    pub per_thread: Vec<usize>,
    /// The submission of each command [ns], from the start of the job.
    pub submit_ns: Vec<u64>,
    /// The response time of each command [ns].
    pub response_time_ns: Vec<u64>,
    first: Vec<u64>,
    command: Vec<u32>,
    /// The names of the causes.
    pub causes: Vec<String>,
    /// One column per cause [ns].
    pub cause_ns: Vec<Vec<u64>>,
}

impl FlashTrace {
    /// Allocate columns for `commands` commands; `None` if memory is insufficient.
    pub(crate) fn with_capacity(commands: usize, causes: usize) -> Option<FlashTrace> {
        Some(FlashTrace {
            canonical: serde_json::Value::Null,
            per_thread: vec![commands],
            submit_ns: column(commands, u64::MAX)?,
            response_time_ns: column(commands, u64::MAX)?,
            first: column(commands, u64::MAX)?,
            command: column(commands, u32::MAX)?,
            causes: Vec::new(),
            cause_ns: (0..causes).map(|_| column(commands, u64::MAX)).collect::<Option<_>>()?,
        })
    }

    /// Join the traces of the threads of `job`.
    pub(crate) fn joined(
        mut threads: impl Iterator<Item = FlashTrace>,
        job: FlashJob,
        causes: &[&str],
    ) -> FlashTrace {
        let mut whole = threads.next().expect("a job has at least one thread");
        for mut thread in threads {
            whole.per_thread.append(&mut thread.per_thread);
            whole.submit_ns.append(&mut thread.submit_ns);
            whole.response_time_ns.append(&mut thread.response_time_ns);
            whole.first.append(&mut thread.first);
            whole.command.append(&mut thread.command);
            for (column, mut more) in whole.cause_ns.iter_mut().zip(thread.cause_ns) {
                column.append(&mut more);
            }
        }
        whole.causes = causes.iter().map(|name| (*name).to_owned()).collect();
        whole.canonical = job.canonical;
        whole
    }

    /// Build a trace from its columns. `take` returns each column by name, all of one length.
    ///
    /// # Errors
    /// The error of `take`, or a description of inconsistent columns.
    pub fn from_columns(
        canonical: serde_json::Value,
        causes: Vec<String>,
        mut take: impl FnMut(&str) -> Result<Vec<u64>, String>,
    ) -> Result<FlashTrace, String> {
        let mut field = |name: &str, below: u64| {
            let values = take(name)?;
            match values.iter().find(|value| **value >= below) {
                Some(value) => Err(format!("{value} in column '{name}', below {below}")),
                None => Ok(values),
            }
        };
        let threads = field("thread", 1 << 16)?;
        let submit_ns = field("submit_ns", 1 << 62)?;
        let response_time_ns = field("response_time_ns", 1 << 62)?;
        let (op, addresses) = (field("op", 3)?, field("addresses", 1 << 8)?);
        let (failed, status) = (field("failed", 1 << 8)?, field("status", STATUSES)?);
        let (channel, lun) = (field("channel", 1 << 8)?, field("lun", 1 << 8)?);
        let (block, page) = (field("block", 1 << 24)?, field("page", 1 << 24)?);
        let cause_ns: Vec<Vec<u64>> =
            causes.iter().map(|cause| field(cause, 1 << 62)).collect::<Result<_, _>>()?;
        let rows = 0..threads.len();
        if threads.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err("threads that do not follow each other".to_owned());
        }
        let cause_sum =
            |row: usize| cause_ns.iter().map(|column| u128::from(column[row])).sum::<u128>();
        if !causes.is_empty()
            && rows.clone().any(|row| cause_sum(row) != u128::from(response_time_ns[row]))
        {
            return Err("causes that do not sum to the response time".to_owned());
        }
        let mut per_thread = vec![0; threads.last().map_or(0, |last| *last as usize + 1)];
        threads.iter().for_each(|thread| per_thread[*thread as usize] += 1);
        let first = |row: usize| channel[row] << 56 | lun[row] << 48 | block[row] << 24 | page[row];
        let encode =
            |row: usize| op[row] << 24 | addresses[row] << 16 | failed[row] << 8 | status[row];
        Ok(FlashTrace {
            canonical,
            per_thread,
            first: rows.clone().map(first).collect(),
            command: rows.map(|row| encode(row) as u32).collect(),
            submit_ns,
            response_time_ns,
            causes,
            cause_ns,
        })
    }

    /// Return the number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.submit_ns.len()
    }

    /// Return whether the trace is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.submit_ns.is_empty()
    }

    /// Return the thread of each command.
    pub fn threads(&self) -> impl Iterator<Item = u16> + '_ {
        let counts = self.per_thread.iter().enumerate();
        counts.flat_map(|(thread, count)| std::iter::repeat_n(thread as u16, *count))
    }

    /// Return the first address of each command; planes and sectors are 0.
    pub fn first_addresses(&self) -> impl Iterator<Item = Ppa> + '_ {
        self.first.iter().map(|packed| Ppa {
            channel: (packed >> 56) as u8,
            lun: (packed >> 48) as u8,
            block: (packed >> 24) as u32 & 0xFF_FFFF,
            page: *packed as u32 & 0xFF_FFFF,
            ..Ppa::default()
        })
    }

    /// Return the operation of each command, as its index in [`FlashOp::ALL`].
    pub fn ops(&self) -> impl Iterator<Item = u8> + '_ {
        self.command.iter().map(|command| (command >> 24) as u8)
    }

    /// Return the number of addresses of each command.
    pub fn addresses(&self) -> impl Iterator<Item = u8> + '_ {
        self.command.iter().map(|command| (command >> 16) as u8)
    }

    /// Return the number of failed addresses of each command.
    pub fn failed(&self) -> impl Iterator<Item = u8> + '_ {
        self.command.iter().map(|command| (command >> 8) as u8)
    }

    /// Return the status of the first failed address of each command, as its index in
    /// [`uflip_core::AddressStatus::NAMES`].
    pub fn statuses(&self) -> impl Iterator<Item = u8> + '_ {
        self.command.iter().map(|command| *command as u8)
    }

    /// Return the time from the first submission to the last completion [ns].
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let ends = self.submit_ns.iter().zip(&self.response_time_ns).map(|(s, r)| s + r);
        let first = self.submit_ns.iter().min().copied().unwrap_or(0);
        ends.max().unwrap_or(0) - first
    }
}

fn column<T: Copy>(length: usize, value: T) -> Option<Vec<T>> {
    let mut column = Vec::new();
    column.try_reserve_exact(length).ok()?;
    column.resize(length, value);
    Some(column)
}

impl<D: Device<Request = FlashIo, Status = FlashStatus>> RecordCompletion<D> for FlashTrace {
    #[inline]
    fn record(
        &mut self,
        index: usize,
        io: &FlashIo,
        start: Nanos,
        _: Nanos,
        completion: &Completion<D::Breakdown, FlashStatus>,
    ) {
        let Completion { submitted, completed, breakdown, status, .. } = completion;
        self.submit_ns[index] = submitted.0 - start.0;
        self.response_time_ns[index] = completed.0 - submitted.0;
        let first = io.ppas()[0];
        self.first[index] = u64::from(first.channel) << 56
            | u64::from(first.lun) << 48
            | u64::from(first.block) << 24
            | u64::from(first.page);
        let op = match io.op() {
            FlashOp::Read => 0,
            FlashOp::Write => 1,
            FlashOp::Erase => 2,
        };
        self.command[index] = op << 24
            | (io.ppas().len() as u32) << 16
            | status.failed().count_ones() << 8
            | status.first_failure() as u32;
        for (column, part) in self.cause_ns.iter_mut().zip(breakdown.parts()) {
            column[index] = *part;
        }
    }
}

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
