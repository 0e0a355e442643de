//! The in-memory trace of a job: 28 bytes a command, and 8 more for each cause.
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

use super::spec::FlashJob;
use crate::drive::RecordCompletion;

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
