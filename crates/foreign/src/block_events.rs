//! Events of a block device, from the text of blkparse or the binary files of blktrace, as I/Os with
//! their response times.
//!
//! ```text
//!  Q ─────────────▶ D ───────▶ C        Q2C: from the queue of the block layer to the completion
//!                   └──D2C─────┘        D2C: from the device driver to the completion
//! ```

use std::collections::BTreeMap;

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
}

pub(crate) struct EventCollector {
    queued: Begun,
    issued: Begun,
    completions: u64,
    /// The time from the issue to the completion of each queued I/O [ns].
    device_times: SpooledVec<u64>,
}

impl Begun {
    fn new() -> Begun {
        Begun { recorded: RecordedTrace::with_offsets(true), outstanding: BTreeMap::new() }
    }

    fn begin(&mut self, lines: &mut LineReader<'_>, event: Event<'_>) -> Result<(), LineError> {
        let Event { mode, offset, size, at, .. } = event;
        let source = self.recorded.source(lines, event.device)?;
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

    /// Complete all outstanding I/Os in the range of a completion: requests are merged. Return their
    /// number, and the longest response time [ns].
    fn complete(
        &mut self,
        lines: &LineReader<'_>,
        event: Event<'_>,
    ) -> Result<(usize, u64), LineError> {
        let source = self.recorded.source(lines, event.device)?;
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
        Ok((completed, longest))
    }
}

impl EventCollector {
    pub(crate) fn new() -> EventCollector {
        let (queued, issued) = (Begun::new(), Begun::new());
        EventCollector { queued, issued, completions: 0, device_times: SpooledVec::default() }
    }

    pub(crate) fn add(
        &mut self,
        lines: &mut LineReader<'_>,
        event: Event<'_>,
    ) -> Result<(), LineError> {
        match event.action {
            Action::Queued => self.queued.begin(lines, event),
            Action::Issued => self.issued.begin(lines, event),
            Action::Completed => {
                self.completions += 1;
                let (completed, _) = self.queued.complete(lines, event)?;
                let (issued, longest) = self.issued.complete(lines, event)?;
                if issued > 0 {
                    self.device_times.extend(std::iter::repeat_n(longest, completed));
                }
                Ok(())
            }
        }
    }

    /// Count an operation without data.
    pub(crate) fn skip_operation(&mut self, action: Action, name: &'static str) {
        match action {
            Action::Queued => self.queued.recorded.skip_operation(name),
            Action::Issued => self.issued.recorded.skip_operation(name),
            Action::Completed => {}
        }
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
