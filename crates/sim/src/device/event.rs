//! What a device is event by its timeline when its time has come, and for whom flash works.

use crate::flash::geometry::{Lpn, PlaneIdx};
use crate::timeline::{AccountIdx, Op, Report};

/// One I/O of the host.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct IoIdx(pub(crate) u32);

/// One page of an I/O; its account has the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct PageIdx(pub(crate) u32);

impl PageIdx {
    pub(crate) fn account(self) -> AccountIdx {
        AccountIdx::new(self.0)
    }
}

/// A plan under way; there are few.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct JobIdx(pub(crate) u32);

/// A step of a plan: what one die does for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StepIdx(pub(crate) u32);

/// Between two wishes that everything be flushed.
pub(crate) type Epoch = u32;

/// So many of them at most are event apart.
pub(crate) const EPOCHS: Epoch = 1 << (KIND - JOB);

/// What a device is event when its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceEvent {
    /// The controller has taken an I/O in.
    CommandProcessed(IoIdx),
    /// The data of a page to be written is in the controller's memory.
    DataInMemory(PageIdx),
    /// A page of the host ends.
    PageDone(PageIdx),
    /// A page of the host ends unwritten or unread: its I/O fails.
    PageFailed(PageIdx),
    /// This page of the write cache, whose flush began in this epoch, as far as they are event apart, is on flash.
    Flushed(Epoch, Lpn),
    /// The next step of the collection of a plane.
    Collect(PlaneIdx),
    /// A plan may begin.
    PlanStart(JobIdx),
    /// The processor has planned to move a page of a plan.
    MovePlanned(JobIdx, StepIdx),
    /// A step of a plan has ended.
    StepDone(JobIdx, StepIdx),
    /// The programs have ended that a plan waits for before it erases.
    ProgramsDone(JobIdx),
    /// A page of the host that waited for memory to be written to flash ends.
    Drained(PageIdx),
    /// A flash page that was gathered is on flash.
    GatheredPageProgrammed(u32),
    /// The unit of a write was read, of which the host brings only a part.
    UnitRead(u32),
    /// A command of the host has ended: the next that waits for that is let in.
    CommandSlotFreed,
    /// An I/O has ended, and the host has not heard of it.
    CompletionPosted(IoIdx),
    /// The first end of which the host has not heard since so many interrupts has waited long enough.
    CoalescingTimeout(u32),
}

/// The same in one word, which moves through queues as a whole: the halves of an enum, written one by
/// one and read together, make the processor wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Token")]
pub(crate) struct EventTag(u64);

/// Where the kind of a token is, and where the plan that it is about.
const KIND: u32 = 56;
const JOB: u32 = 32;

impl EventTag {
    #[inline]
    fn new(kind: u64, index: u32) -> EventTag {
        EventTag(kind << KIND | u64::from(index))
    }

    #[inline]
    fn of_job(kind: u64, job: JobIdx, step: u32) -> EventTag {
        debug_assert!(job.0 >> (KIND - JOB) == 0, "few plans are under way");
        EventTag(kind << KIND | u64::from(job.0) << JOB | u64::from(step))
    }

    #[inline]
    pub(crate) fn event(self) -> DeviceEvent {
        let index = self.0 as u32;
        let job = JobIdx((self.0 >> JOB) as u32 & ((1 << (KIND - JOB)) - 1));
        match self.0 >> KIND {
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

/// What is event with every page, by its kind; see `From<DeviceEvent>`.
const ARRIVED: u64 = 1;
const ENDED: u64 = 2;
const COLLECT: u64 = 5;

impl EventTag {
    /// [`EventTag::event`] of what is event with every page, found with a comparison each; `None` of the rest.
    #[inline(always)]
    pub(crate) fn collects(self) -> Option<PlaneIdx> {
        (self.0 >> KIND == COLLECT).then_some(PlaneIdx(self.0 as u32))
    }

    /// See [`EventTag::collects`].
    #[inline(always)]
    pub(crate) fn arrived(self) -> Option<PageIdx> {
        (self.0 >> KIND == ARRIVED).then_some(PageIdx(self.0 as u32))
    }

    /// See [`EventTag::collects`].
    #[inline(always)]
    pub(crate) fn ended(self) -> Option<PageIdx> {
        (self.0 >> KIND == ENDED).then_some(PageIdx(self.0 as u32))
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

/// For whom flash works: who is event of the end, how, and where the time is written down.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Target {
    pub(crate) token: EventTag,
    pub(crate) report: Report,
    pub(crate) account: Option<AccountIdx>,
}

impl Target {
    /// A page of a host I/O: its end need only be known.
    #[inline]
    pub(crate) fn host(page: PageIdx) -> Target {
        let account = Some(page.account());
        Target { token: DeviceEvent::PageDone(page).into(), report: Report::WhenKnown, account }
    }

    /// An operation that is timed elsewhere.
    #[inline]
    pub(crate) fn op(self) -> Op<EventTag> {
        let Target { token, report, account } = self;
        Op { report, account, ..Op::timed_elsewhere(token) }
    }

    /// The same for work that was not done.
    pub(crate) fn failed(self) -> Target {
        match self.token.event() {
            DeviceEvent::PageDone(page) => {
                Target { token: DeviceEvent::PageFailed(page).into(), ..self }
            }
            _ => self,
        }
    }

    /// [`Target::failed`] where it was not.
    #[inline]
    pub(crate) fn failed_if(self, failed: bool) -> Target {
        if failed { self.failed() } else { self }
    }

    /// A page that leaves the write cache.
    pub(crate) fn flush(page: Lpn, epoch: Epoch) -> Target {
        Target {
            token: DeviceEvent::Flushed(epoch, page).into(),
            report: Report::AtEnd,
            account: None,
        }
    }

    /// A page of the host that waits for memory to be written to flash.
    pub(crate) fn drained(page: PageIdx) -> Target {
        Target { token: DeviceEvent::Drained(page).into(), report: Report::AtEnd, account: None }
    }

    /// The collection of a plane.
    #[inline]
    pub(crate) fn collection(plane: PlaneIdx) -> Target {
        Target { token: DeviceEvent::Collect(plane).into(), report: Report::AtEnd, account: None }
    }
}
