//! Who is busy until when: the shared submission path, a thread a channel, channels, LUNs.
//!
//! ```text
//! write:  submission │ dispatch │ channel │ LUN │ switch │ transfer ┬ completion     (write-back)
//!                               └────── the channel is held ───────┘└ program cells … LUN busy
//! read:   submission │ dispatch │ LUN │ cells │ channel │ transfer │ (cells │ transfer)* │ completion
//! erase:  submission │ dispatch │ LUN │ erase │ completion
//! ```
//!
//! Everything is first come, first served. A write that finds its LUN busy holds the channel until
//! the LUN is ready (head-of-line blocking, as OX's traffic control does it), and a read takes the
//! channel after whatever was sent before it.

use uflip_core::{FlashOp, Ppa};

use super::breakdown::{Cause, FlashBreakdown};

/// How long things take [ns].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) read_ns: u64,
    pub(crate) submission_ns: u64,
    pub(crate) dispatch_ns: u64,
    pub(crate) completion_ns: u64,
    pub(crate) lun_switch_ns: u64,
    pub(crate) channel_bytes_per_s: u64,
    /// Writes are answered when their data has arrived, not when it is programmed.
    pub(crate) write_back: bool,
}

/// All clocks of a device.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    times: Times,
    luns_per_channel: usize,
    submission: u64,
    channels: Vec<Channel>,
    luns: Vec<Lun>,
}

#[derive(Clone, Debug)]
struct Channel {
    dispatch: u64,
    free: u64,
    /// The LUN that was written last.
    lun: Option<u8>,
}

#[derive(Clone, Debug)]
struct Lun {
    free: u64,
    busy_with: FlashOp,
}

impl Lun {
    /// When the LUN is free for work that is ready at `ready`; charges the wait to what it does.
    #[inline]
    fn wait(&self, ready: u64, path: &mut FlashBreakdown) -> u64 {
        if self.free <= ready {
            return ready;
        }
        let cause = match self.busy_with {
            FlashOp::Read => Cause::ReadWait,
            FlashOp::Write => Cause::ProgramWait,
            FlashOp::Erase => Cause::EraseWait,
        };
        path.add(cause, self.free - ready);
        self.free
    }

    #[inline]
    fn occupy(&mut self, until: u64, op: FlashOp) {
        self.free = until;
        self.busy_with = op;
    }
}

impl Clocks {
    pub(crate) fn new(times: Times, channels: usize, luns_per_channel: usize) -> Clocks {
        Clocks {
            times,
            luns_per_channel,
            submission: 0,
            channels: vec![Channel { dispatch: 0, free: 0, lun: None }; channels],
            luns: vec![Lun { free: 0, busy_with: FlashOp::Read }; channels * luns_per_channel],
        }
    }

    /// One page of a command comes in at `now`; returns when its channel's thread has it.
    #[inline]
    pub(crate) fn take_in(&mut self, now: u64, channel: usize, path: &mut FlashBreakdown) -> u64 {
        let taken = self.submit(now, path);
        let thread = &mut self.channels[channel];
        thread.dispatch = thread.dispatch.max(taken) + self.times.dispatch_ns;
        path.add(Cause::Dispatch, thread.dispatch - taken);
        thread.dispatch
    }

    /// The shared submission path alone: what a command costs that is refused.
    #[inline]
    pub(crate) fn submit(&mut self, now: u64, path: &mut FlashBreakdown) -> u64 {
        self.submission = self.submission.max(now) + self.times.submission_ns;
        path.add(Cause::Submission, self.submission - now);
        self.submission
    }

    /// The answer of a command whose last page ended at `end` reaches the host.
    #[inline]
    pub(crate) fn answer(&self, end: u64, path: &mut FlashBreakdown) -> u64 {
        path.add(Cause::Completion, self.times.completion_ns);
        end + self.times.completion_ns
    }

    #[inline]
    fn transfer_ns(&self, bytes: u64) -> u64 {
        bytes * 1_000_000_000 / self.times.channel_bytes_per_s
    }

    #[inline]
    fn lun_of(&self, at: Ppa) -> usize {
        usize::from(at.channel) * self.luns_per_channel + usize::from(at.lun)
    }

    /// Program a page of `bytes` in `program_ns`; returns when the write may be answered.
    #[inline]
    pub(crate) fn write(
        &mut self,
        at: Ppa,
        bytes: u64,
        program_ns: u64,
        ready: u64,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let transfer = self.transfer_ns(bytes);
        let lun = self.lun_of(at);
        let channel = &mut self.channels[usize::from(at.channel)];
        let held = ready.max(channel.free);
        path.add(Cause::ChannelWait, held - ready);
        let lun = &mut self.luns[lun];
        let mut start = lun.wait(held, path);
        if channel.lun.is_some_and(|last| last != at.lun) {
            start += self.times.lun_switch_ns;
            path.add(Cause::LunSwitch, self.times.lun_switch_ns);
        }
        channel.lun = Some(at.lun);
        let arrived = start + transfer;
        path.add(Cause::Transfer, transfer);
        channel.free = arrived;
        lun.occupy(arrived + program_ns, FlashOp::Write);
        if self.times.write_back {
            return arrived;
        }
        path.add(Cause::CellProgram, program_ns);
        arrived + program_ns
    }

    /// Whether a read that is ready at `ready` would wait for a program of its LUN.
    #[inline]
    pub(crate) fn is_programming(&self, at: Ppa, ready: u64) -> bool {
        let lun = &self.luns[self.lun_of(at)];
        lun.free > ready && lun.busy_with == FlashOp::Write
    }

    /// Read `bytes` of a page, and again `retries` times; returns when the data is there.
    #[inline]
    pub(crate) fn read(
        &mut self,
        at: Ppa,
        bytes: u64,
        retries: u64,
        ready: u64,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let (transfer, cells) = (self.transfer_ns(bytes), self.times.read_ns);
        let lun = self.lun_of(at);
        let channel = &mut self.channels[usize::from(at.channel)];
        let lun = &mut self.luns[lun];
        let data = lun.wait(ready, path) + cells;
        path.add(Cause::CellRead, cells);
        let sent = data.max(channel.free);
        path.add(Cause::ChannelWait, sent - data);
        path.add(Cause::Transfer, transfer);
        let again = retries * (cells + transfer);
        path.add(Cause::Retry, again);
        channel.free = sent + transfer + again;
        lun.occupy(channel.free, FlashOp::Read);
        channel.free
    }

    /// Erase a block in `erase_ns`; returns the end.
    #[inline]
    pub(crate) fn erase(
        &mut self,
        at: Ppa,
        erase_ns: u64,
        ready: u64,
        path: &mut FlashBreakdown,
    ) -> u64 {
        let lun = self.lun_of(at);
        let lun = &mut self.luns[lun];
        let end = lun.wait(ready, path) + erase_ns;
        path.add(Cause::CellErase, erase_ns);
        lun.occupy(end, FlashOp::Erase);
        end
    }
}
