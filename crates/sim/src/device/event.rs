//! Events of the device, and the target of each flash operation: its event, and the account to
//! charge.

use crate::flash::geometry::{Lpn, PlaneIdx};
use crate::timeline::{AccountIdx, Op, Report};

/// An I/O of the host.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct IoIdx(pub(crate) u32);

/// A page of an I/O; its account has the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageIdx(pub(crate) u32);

impl PageIdx {
    pub(crate) fn account(self) -> AccountIdx {
        AccountIdx::new(self.0)
    }
}

/// A plan in progress; there are few.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobIdx(pub(crate) u32);

/// A step of a plan: the work of one die.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StepIdx(pub(crate) u32);

/// Number of a flush epoch. Each flush of all data begins a new one.
pub(crate) type Epoch = u32;

/// Number of epochs that an event tag can distinguish.
pub(crate) const EPOCHS: Epoch = 1 << (KIND_SHIFT - JOB_SHIFT);

/// An event of the device, in the order of the calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceEvent {
    /// The controller has processed the command of an I/O.
    CommandProcessed(IoIdx),
    /// The data of a page to be written is in the controller's memory.
    DataInMemory(PageIdx),
    /// A host page completes.
    PageDone(PageIdx),
    /// A host page completes unwritten or unread: its I/O fails.
    PageFailed(PageIdx),
    /// A page of the write cache is on flash; its flush began in this epoch (modulo [`EPOCHS`]).
    Flushed(Epoch, Lpn),
    /// Next step of the garbage collection of a plane.
    Collect(PlaneIdx),
    /// A plan may start.
    PlanStart(JobIdx),
    /// The processor has planned a page move of a plan.
    MovePlanned(JobIdx, StepIdx),
    /// A step of a plan has completed.
    StepDone(JobIdx, StepIdx),
    /// The programs have completed that a plan waits for before it erases.
    ProgramsDone(JobIdx),
    /// A host page completes that waited for buffered data to reach flash.
    Drained(PageIdx),
    /// A flash page that was gathered from units is on flash.
    GatheredPageProgrammed(u32),
    /// The unit of a partial write has been read (read-modify-write).
    UnitRead(u32),
    /// A host command has completed: the interface admits the next one that waits.
    CommandSlotFreed,
    /// An I/O has completed, and the host has not been notified.
    CompletionPosted(IoIdx),
    /// The aggregation time of the oldest pending completion is over. The number counts interrupts
    /// so far.
    CoalescingTimeout(u32),
}

/// A [`DeviceEvent`] packed into one word. Queues move it as a whole: an enum's halves, written one
/// by one and read together, would stall the processor (store forwarding).
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Token")]
pub(crate) struct EventTag(u64);

/// Bit positions of the event kind and of the plan's index.
const KIND_SHIFT: u32 = 56;
const JOB_SHIFT: u32 = 32;

impl EventTag {
    #[inline]
    fn new(kind: u64, index: u32) -> EventTag {
        EventTag(kind << KIND_SHIFT | u64::from(index))
    }

    #[inline]
    fn of_job(kind: u64, job: JobIdx, step: u32) -> EventTag {
        debug_assert!(job.0 >> (KIND_SHIFT - JOB_SHIFT) == 0, "the plan index fits");
        EventTag(kind << KIND_SHIFT | u64::from(job.0) << JOB_SHIFT | u64::from(step))
    }

    #[inline]
    pub(crate) fn event(self) -> DeviceEvent {
        let index = self.0 as u32;
        let job = JobIdx((self.0 >> JOB_SHIFT) as u32 & ((1 << (KIND_SHIFT - JOB_SHIFT)) - 1));
        match self.0 >> KIND_SHIFT {
            0 => DeviceEvent::CommandProcessed(IoIdx(index)),
            ARRIVED => DeviceEvent::DataInMemory(PageIdx(index)),
            ENDED => DeviceEvent::PageDone(PageIdx(index)),
            3 => DeviceEvent::PageFailed(PageIdx(index)),
            4 => DeviceEvent::Flushed(job.0, Lpn(index)),
            COLLECT => DeviceEvent::Collect(PlaneIdx(index)),
            6 => DeviceEvent::CommandSlotFreed,
            7 => DeviceEvent::PlanStart(job),
            8 => DeviceEvent::MovePlanned(job, StepIdx(index)),
            9 => DeviceEvent::StepDone(job, StepIdx(index)),
            10 => DeviceEvent::Drained(PageIdx(index)),
            11 => DeviceEvent::GatheredPageProgrammed(index),
            13 => DeviceEvent::CompletionPosted(IoIdx(index)),
            14 => DeviceEvent::CoalescingTimeout(index),
            15 => DeviceEvent::ProgramsDone(job),
            _ => DeviceEvent::UnitRead(index),
        }
    }
}

/// Kinds of the events that occur for every page; see `From<DeviceEvent>`.
const ARRIVED: u64 = 1;
const ENDED: u64 = 2;
const COLLECT: u64 = 5;

impl EventTag {
    /// Like [`EventTag::event`] for one per-page event, by a single comparison; `None` for other
    /// events.
    #[inline(always)]
    pub(crate) fn collecting_plane(self) -> Option<PlaneIdx> {
        (self.0 >> KIND_SHIFT == COLLECT).then_some(PlaneIdx(self.0 as u32))
    }

    /// See [`EventTag::collecting_plane`].
    #[inline(always)]
    pub(crate) fn arrived_page(self) -> Option<PageIdx> {
        (self.0 >> KIND_SHIFT == ARRIVED).then_some(PageIdx(self.0 as u32))
    }

    /// See [`EventTag::collecting_plane`].
    #[inline(always)]
    pub(crate) fn ended_page(self) -> Option<PageIdx> {
        (self.0 >> KIND_SHIFT == ENDED).then_some(PageIdx(self.0 as u32))
    }
}

impl From<DeviceEvent> for EventTag {
    #[inline]
    fn from(event: DeviceEvent) -> EventTag {
        match event {
            DeviceEvent::CommandProcessed(io) => EventTag::new(0, io.0),
            DeviceEvent::DataInMemory(page) => EventTag::new(ARRIVED, page.0),
            DeviceEvent::PageDone(page) => EventTag::new(ENDED, page.0),
            DeviceEvent::PageFailed(page) => EventTag::new(3, page.0),
            DeviceEvent::Flushed(epoch, page) => {
                EventTag::of_job(4, JobIdx(epoch % EPOCHS), page.0)
            }
            DeviceEvent::Collect(plane) => EventTag::new(COLLECT, plane.0),
            DeviceEvent::CommandSlotFreed => EventTag::new(6, 0),
            DeviceEvent::PlanStart(job) => EventTag::of_job(7, job, 0),
            DeviceEvent::MovePlanned(job, step) => EventTag::of_job(8, job, step.0),
            DeviceEvent::StepDone(job, step) => EventTag::of_job(9, job, step.0),
            DeviceEvent::Drained(page) => EventTag::new(10, page.0),
            DeviceEvent::GatheredPageProgrammed(number) => EventTag::new(11, number),
            DeviceEvent::UnitRead(index) => EventTag::new(12, index),
            DeviceEvent::CompletionPosted(io) => EventTag::new(13, io.0),
            DeviceEvent::CoalescingTimeout(raised) => EventTag::new(14, raised),
            DeviceEvent::ProgramsDone(job) => EventTag::of_job(15, job, 0),
        }
    }
}

impl From<u64> for EventTag {
    #[inline]
    fn from(word: u64) -> EventTag {
        EventTag(word)
    }
}

impl From<EventTag> for u64 {
    #[inline]
    fn from(token: EventTag) -> u64 {
        token.0
    }
}

/// The target of a flash operation: which event its completion raises, when, and which account it
/// charges.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Target")]
pub(crate) struct CompletionTarget {
    pub(crate) token: EventTag,
    pub(crate) report: Report,
    pub(crate) account: Option<AccountIdx>,
}

impl CompletionTarget {
    /// Return the target of a page of a host I/O: its end is reported as soon as it is known.
    #[inline]
    pub(crate) fn host(page: PageIdx) -> CompletionTarget {
        let account = Some(page.account());
        CompletionTarget {
            token: DeviceEvent::PageDone(page).into(),
            report: Report::WhenKnown,
            account,
        }
    }

    /// Return an operation with this target whose times are charged elsewhere.
    #[inline]
    pub(crate) fn op(self) -> Op<EventTag> {
        let CompletionTarget { token, report, account } = self;
        Op { report, account, ..Op::without_flash_time(token) }
    }

    /// Return the same target for work that failed.
    pub(crate) fn failed(self) -> CompletionTarget {
        match self.token.event() {
            DeviceEvent::PageDone(page) => {
                CompletionTarget { token: DeviceEvent::PageFailed(page).into(), ..self }
            }
            _ => self,
        }
    }

    /// Return [`CompletionTarget::failed`] if `failed`, else the target itself.
    #[inline]
    pub(crate) fn failed_if(self, failed: bool) -> CompletionTarget {
        if failed { self.failed() } else { self }
    }

    /// Return the target of a page that leaves the write cache.
    pub(crate) fn flush(page: Lpn, epoch: Epoch) -> CompletionTarget {
        CompletionTarget {
            token: DeviceEvent::Flushed(epoch, page).into(),
            report: Report::AtEnd,
            account: None,
        }
    }

    /// Return the target of a host page that waits for buffered data to reach flash.
    pub(crate) fn drained(page: PageIdx) -> CompletionTarget {
        CompletionTarget {
            token: DeviceEvent::Drained(page).into(),
            report: Report::AtEnd,
            account: None,
        }
    }

    /// Return the target of the garbage collection of a plane.
    #[inline]
    pub(crate) fn collection(plane: PlaneIdx) -> CompletionTarget {
        CompletionTarget {
            token: DeviceEvent::Collect(plane).into(),
            report: Report::AtEnd,
            account: None,
        }
    }
}
