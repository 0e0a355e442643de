//! Events of a block device, from the text of blkparse or the binary files of blktrace, as I/Os with
//! their response times.
//!
//! ```text
//!  Q ─────────────▶ D ───────▶ C        Q2C: from the queue of the block layer to the completion
//!                   └──D2C─────┘        D2C: from the device driver to the completion
//!  Q dm ─▶ A ─▶ Q sda                   one I/O: a remapped copy of an I/O of the same trace
//! ```

use std::collections::{BTreeMap, BTreeSet};

use uflip_core::{Mode, SpooledVec};

use crate::lines::{LineError, LineReader};
use crate::recorded::{FoundIo, RecordedTrace};

/// Of more I/Os in flight, those that began first are lost: a trace may have no completions.
const MAX_OUTSTANDING: usize = 1 << 20;

/// The event at which an I/O begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begin {
    Queued,
    Issued,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Queued,
    Issued,
    Completed,
    Remapped,
    Requeued,
}

/// One event of an I/O with a place.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) action: Action,
    pub(crate) device: &'a str,
    pub(crate) mode: Mode,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) at: u64,
}

/// I/Os that begin with one kind of event.
struct Begun {
    recorded: RecordedTrace,
    /// The outstanding I/Os: disk and offset, and the index in `recorded`.
    outstanding: BTreeMap<(u32, u64), usize>,
    /// Those of them that were taken back (R), and will be issued again.
    requeued: BTreeSet<(u32, u64)>,
}

pub(crate) struct EventCollector {
    queued: Begun,
    issued: Begun,
    completions: u64,
    /// The devices with queued I/Os, and where I/Os of these arrive at a device below.
    queued_devices: BTreeSet<String>,
    remapped: BTreeSet<(String, u64)>,
    /// The time from the issue to the completion of each queued I/O [ns].
    device_times: SpooledVec<u64>,
}

impl Begun {
    fn new() -> Begun {
        let (outstanding, requeued) = (BTreeMap::new(), BTreeSet::new());
        Begun { recorded: RecordedTrace::with_offsets(true), outstanding, requeued }
    }

    fn begin(&mut self, lines: &mut LineReader<'_>, event: Event<'_>) -> Result<(), LineError> {
        let Event { mode, offset, size, at, .. } = event;
        let source = self.recorded.source(lines, event.device)?;
        if self.requeued.remove(&(source, offset)) {
            return Ok(());
        }
        let index = self.recorded.ios.len();
        let (ends, response_ns) = (false, None);
        let found = FoundIo { source, mode, offset, size, at, ends, response_ns };
        self.recorded.push(lines, found)?;
        if self.recorded.ios.len() > index {
            self.outstanding.insert((source, offset), index);
        }
        if self.outstanding.len() > 2 * MAX_OUTSTANDING {
            let newest = index - MAX_OUTSTANDING;
            self.outstanding.retain(|_, index| *index > newest);
        }
        Ok(())
    }

    /// Take an I/O back into the queue.
    fn requeue(&mut self, event: Event<'_>) {
        let source = self.recorded.source_index(event.device);
        let key = source.map(|source| (source, event.offset));
        self.requeued.extend(key.filter(|key| self.outstanding.contains_key(key)));
    }

    /// Complete all outstanding I/Os in the range of a completion: requests are merged. Return their
    /// number, and the longest response time [ns].
    fn complete(&mut self, event: Event<'_>) -> (usize, u64) {
        let Some(source) = self.recorded.source_index(event.device) else { return (0, 0) };
        let end = event.offset.saturating_add(event.size.max(1));
        let range = (source, event.offset)..(source, end);
        let done: Vec<(u32, u64)> = self.outstanding.range(range).map(|(key, _)| *key).collect();
        let (mut completed, mut longest) = (0, 0);
        for key in done {
            let Some(index) = self.outstanding.remove(&key) else { continue };
            let io = &mut self.recorded.ios[index];
            let at = event.at.saturating_add(crate::recorded::MAX_RESPONSE_NS);
            if at < io.at {
                continue;
            }
            self.recorded.zero_times += u64::from(at == io.at);
            io.response_ns = (at - io.at).clamp(1, crate::recorded::MAX_RESPONSE_NS);
            completed += 1;
            longest = io.response_ns.max(longest);
        }
        (completed, longest)
    }
}

impl EventCollector {
    pub(crate) fn new() -> EventCollector {
        let (queued, issued) = (Begun::new(), Begun::new());
        EventCollector {
            queued,
            issued,
            completions: 0,
            queued_devices: BTreeSet::new(),
            remapped: BTreeSet::new(),
            device_times: SpooledVec::default(),
        }
    }

    pub(crate) fn add(
        &mut self,
        lines: &mut LineReader<'_>,
        event: Event<'_>,
    ) -> Result<(), LineError> {
        match event.action {
            Action::Queued => {
                if self.is_remapped(event.device, event.offset) {
                    self.queued.recorded.skip_operation("remapped copy");
                    return Ok(());
                }
                if !self.queued_devices.contains(event.device) {
                    self.queued_devices.insert(event.device.to_owned());
                }
                self.queued.begin(lines, event)
            }
            Action::Requeued => {
                self.issued.requeue(event);
                Ok(())
            }
            Action::Remapped => Ok(()),
            Action::Issued => self.issued.begin(lines, event),
            Action::Completed => {
                self.completions += 1;
                let (completed, _) = self.queued.complete(event);
                let (issued, longest) = self.issued.complete(event);
                if issued > 0 {
                    self.device_times.extend(std::iter::repeat_n(longest, completed));
                }
                Ok(())
            }
        }
    }

    /// Return whether a queued I/O is the copy of one that a device above passed on.
    fn is_remapped(&mut self, device: &str, offset: u64) -> bool {
        !self.remapped.is_empty() && self.remapped.remove(&(device.to_owned(), offset))
    }

    /// Take note that an I/O of the device `from` passes to `device`. A partition has no queued I/Os
    /// of its own.
    pub(crate) fn remap(&mut self, device: &str, offset: u64, from: &str, from_offset: u64) {
        let is_copy = self.is_remapped(device, from_offset) || self.queued_devices.contains(from);
        if is_copy && self.remapped.len() < MAX_OUTSTANDING {
            self.remapped.insert((device.to_owned(), offset));
        }
    }

    /// Count an operation without data.
    pub(crate) fn skip_operation(&mut self, action: Action, name: &'static str) {
        match action {
            Action::Queued => self.queued.recorded.skip_operation(name),
            Action::Issued => self.issued.recorded.skip_operation(name),
            Action::Completed | Action::Remapped | Action::Requeued => {}
        }
    }

    /// Count what a tracer left incomplete.
    pub(crate) fn skip_record(&mut self, name: &'static str) {
        self.queued.recorded.skip_operation(name);
        self.issued.recorded.skip_operation(name);
    }

    /// Return the I/Os that begin with these events or, without a choice, with the queued ones if
    /// there are any.
    pub(crate) fn finish(self, begin: Option<Begin>) -> RecordedTrace {
        let default =
            if self.queued.recorded.ios.is_empty() { Begin::Issued } else { Begin::Queued };
        let begin = begin.unwrap_or(default);
        let (quantity, events, begun) = match begin {
            Begin::Queued => ("Q2C", "queued (Q)", self.queued),
            Begin::Issued => ("D2C", "issued (D)", self.issued),
        };
        let mut recorded = begun.recorded;
        recorded.assumptions.notes.push(format!("I/Os begin with the {events} events"));
        if begin == Begin::Queued {
            recorded.device_times = self.device_times;
        }
        if self.completions > 0 {
            recorded.assumptions.quantity = quantity.to_owned();
        }
        recorded
    }
}
