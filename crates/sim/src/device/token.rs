//! What a device is told by its timeline when its time has come, and for whom flash works.

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

/// So many of them at most are told apart.
pub(crate) const EPOCHS: Epoch = 1 << (KIND - JOB);

/// What a device is told when its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The controller has taken an I/O in.
    TakenIn(IoIdx),
    /// The data of a page to be written is in the controller's memory.
    Arrived(PageIdx),
    /// A page of the host ends.
    Ended(PageIdx),
    /// A page of the host ends unwritten or unread: its I/O fails.
    Failed(PageIdx),
    /// This page of the write cache, whose flush began in this epoch, as far as they are told apart, is on flash.
    Flushed(Epoch, Lpn),
    /// The next step of the collection of a plane.
    Collect(PlaneIdx),
    /// A plan may begin.
    Begin(JobIdx),
    /// The processor has planned to move a page of a plan.
    Planned(JobIdx, StepIdx),
    /// A step of a plan has ended.
    Stepped(JobIdx, StepIdx),
    /// The programs have ended that a plan waits for before it erases.
    Settled(JobIdx),
    /// A page of the host that waited for memory to be written to flash ends.
    Drained(PageIdx),
    /// A flash page that was gathered is on flash.
    Programmed(u32),
    /// The unit of a write was read, of which the host brings only a part.
    Modified(u32),
    /// A command of the host has ended: the next that waits for that is let in.
    Freed,
    /// An I/O has ended, and the host has not heard of it.
    Posted(IoIdx),
    /// The first end of which the host has not heard since so many interrupts has waited long enough.
    Coalesced(u32),
}

/// The same in one word, which moves through queues as a whole: the halves of an enum, written one by
/// one and read together, make the processor wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Token(u64);

/// Where the kind of a token is, and where the plan that it is about.
const KIND: u32 = 56;
const JOB: u32 = 32;

impl Token {
    #[inline]
    fn new(kind: u64, index: u32) -> Token {
        Token(kind << KIND | u64::from(index))
    }

    #[inline]
    fn of_job(kind: u64, job: JobIdx, step: u32) -> Token {
        debug_assert!(job.0 >> (KIND - JOB) == 0, "few plans are under way");
        Token(kind << KIND | u64::from(job.0) << JOB | u64::from(step))
    }

    #[inline]
    pub(crate) fn told(self) -> Told {
        let index = self.0 as u32;
        let job = JobIdx((self.0 >> JOB) as u32 & ((1 << (KIND - JOB)) - 1));
        match self.0 >> KIND {
            0 => Told::TakenIn(IoIdx(index)),
            ARRIVED => Told::Arrived(PageIdx(index)),
            ENDED => Told::Ended(PageIdx(index)),
            3 => Told::Failed(PageIdx(index)),
            4 => Told::Flushed(job.0, Lpn(index)),
            COLLECT => Told::Collect(PlaneIdx(index)),
            6 => Told::Freed,
            7 => Told::Begin(job),
            8 => Told::Planned(job, StepIdx(index)),
            9 => Told::Stepped(job, StepIdx(index)),
            10 => Told::Drained(PageIdx(index)),
            11 => Told::Programmed(index),
            13 => Told::Posted(IoIdx(index)),
            14 => Told::Coalesced(index),
            15 => Told::Settled(job),
            _ => Told::Modified(index),
        }
    }
}

/// What is told with every page, by its kind; see `From<Told>`.
const ARRIVED: u64 = 1;
const ENDED: u64 = 2;
const COLLECT: u64 = 5;

impl Token {
    /// [`Token::told`] of what is told with every page, found with a comparison each; `None` of the rest.
    #[inline(always)]
    pub(crate) fn collects(self) -> Option<PlaneIdx> {
        (self.0 >> KIND == COLLECT).then_some(PlaneIdx(self.0 as u32))
    }

    /// See [`Token::collects`].
    #[inline(always)]
    pub(crate) fn arrived(self) -> Option<PageIdx> {
        (self.0 >> KIND == ARRIVED).then_some(PageIdx(self.0 as u32))
    }

    /// See [`Token::collects`].
    #[inline(always)]
    pub(crate) fn ended(self) -> Option<PageIdx> {
        (self.0 >> KIND == ENDED).then_some(PageIdx(self.0 as u32))
    }
}

impl From<Told> for Token {
    #[inline]
    fn from(told: Told) -> Token {
        match told {
            Told::TakenIn(io) => Token::new(0, io.0),
            Told::Arrived(page) => Token::new(ARRIVED, page.0),
            Told::Ended(page) => Token::new(ENDED, page.0),
            Told::Failed(page) => Token::new(3, page.0),
            Told::Flushed(epoch, page) => Token::of_job(4, JobIdx(epoch % EPOCHS), page.0),
            Told::Collect(plane) => Token::new(COLLECT, plane.0),
            Told::Freed => Token::new(6, 0),
            Told::Begin(job) => Token::of_job(7, job, 0),
            Told::Planned(job, step) => Token::of_job(8, job, step.0),
            Told::Stepped(job, step) => Token::of_job(9, job, step.0),
            Told::Drained(page) => Token::new(10, page.0),
            Told::Programmed(number) => Token::new(11, number),
            Told::Modified(index) => Token::new(12, index),
            Told::Posted(io) => Token::new(13, io.0),
            Told::Coalesced(raised) => Token::new(14, raised),
            Told::Settled(job) => Token::of_job(15, job, 0),
        }
    }
}

impl From<u64> for Token {
    #[inline]
    fn from(word: u64) -> Token {
        Token(word)
    }
}

impl From<Token> for u64 {
    #[inline]
    fn from(token: Token) -> u64 {
        token.0
    }
}

/// For whom flash works: who is told of the end, how, and where the time is written down.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Target {
    pub(crate) token: Token,
    pub(crate) report: Report,
    pub(crate) account: Option<AccountIdx>,
}

impl Target {
    /// A page of a host I/O: its end need only be known.
    #[inline]
    pub(crate) fn host(page: PageIdx) -> Target {
        let account = Some(page.account());
        Target { token: Told::Ended(page).into(), report: Report::WhenKnown, account }
    }

    /// An operation that is timed elsewhere.
    #[inline]
    pub(crate) fn op(self) -> Op<Token> {
        let Target { token, report, account } = self;
        Op { report, account, ..Op::timed_elsewhere(token) }
    }

    /// The same for work that was not done.
    pub(crate) fn failed(self) -> Target {
        match self.token.told() {
            Told::Ended(page) => Target { token: Told::Failed(page).into(), ..self },
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
        Target { token: Told::Flushed(epoch, page).into(), report: Report::AtEnd, account: None }
    }

    /// A page of the host that waits for memory to be written to flash.
    pub(crate) fn drained(page: PageIdx) -> Target {
        Target { token: Told::Drained(page).into(), report: Report::AtEnd, account: None }
    }

    /// The collection of a plane.
    #[inline]
    pub(crate) fn collection(plane: PlaneIdx) -> Target {
        Target { token: Told::Collect(plane).into(), report: Report::AtEnd, account: None }
    }
}
