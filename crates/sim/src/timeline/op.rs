//! Operations of the timeline.

use std::num::NonZeroU32;

use super::{AccountIdx, UNKNOWN};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

/// Kind of die operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Kind")]
pub(crate) enum OpKind {
    /// Cells first, then the channel.
    Read,
    /// The channel first, then cells.
    Program,
    /// An erase, or half of a copy-back: no channel.
    Inside,
}

/// Purpose of die work; it determines the cause that a wait for it is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Purpose {
    HostRead,
    HostWrite,
    Relocation,
    Merge,
    Erase,
    Metadata,
    Mapping,
    /// Repeated work: a read retry.
    Retry,
    /// The block is relocated because of its reads or its age.
    Scrub,
}

impl Purpose {
    /// Return the cause of another operation's wait for it.
    pub(crate) fn wait_cause(self) -> Cause {
        match self {
            Purpose::HostRead => Cause::ReadWait,
            Purpose::HostWrite => Cause::ProgramWait,
            Purpose::Erase => Cause::EraseWait,
            _ => self.cause(),
        }
    }

    /// Return the cause of its own time, apart from cell and channel time.
    pub(crate) fn cause(self) -> Cause {
        match self {
            Purpose::HostRead | Purpose::HostWrite => Cause::DieWait,
            Purpose::Relocation => Cause::Relocation,
            Purpose::Merge => Cause::Merge,
            Purpose::Erase => Cause::Erase,
            Purpose::Metadata => Cause::Metadata,
            Purpose::Mapping => Cause::Mapping,
            Purpose::Retry => Cause::Retry,
            Purpose::Scrub => Cause::Scrub,
        }
    }
}

/// The time at which the end of an operation is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Report {
    /// As soon as it is known, with its time: nothing inside the device waits for it.
    WhenKnown,
    /// After all earlier events.
    AtEnd,
    /// Not at all.
    Never,
}

/// The next stage of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Stage {
    /// The firmware, if it has descriptor rings.
    Submit,
    /// Memory and then the bus, if there are any.
    BusIn,
    /// The bus, from memory.
    Bus,
    Ring,
    Channel,
    /// The end of a suspendable operation; in a queue: it is suspended.
    Cells,
    BusOut,
    /// Memory, from the bus.
    Memory,
    Link,
}

/// One flash operation.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Op<T> {
    pub(crate) kind: OpKind,
    pub(crate) purpose: Purpose,
    pub(crate) stage: Stage,
    pub(crate) report: Report,
    pub(crate) die: DieIdx,
    /// Cell time [ns].
    pub(crate) cell_ns: u64,
    /// Number of pages transferred over the channel.
    pub(crate) transfers: u16,
    /// Number of read retries, each including its transfer, while it holds its die and channel.
    #[serde(rename = "again")]
    pub(crate) retries: u16,
    pub(crate) account: Option<AccountIdx>,
    /// It belongs to a plan. Its token contains the plan in the upper half and its position in the
    /// lower; a channel serves the operations of a plan in this order.
    #[serde(rename = "in_turn")]
    pub(crate) has_plan_order: bool,
    /// Everything is charged to this cause, if given.
    #[serde(rename = "lump")]
    pub(crate) charge_as: Option<Cause>,
    /// Bytes of a read that go to the host.
    pub(crate) link_bytes: u32,
    /// Record of its change of the flash contents; 0: none.
    pub(crate) writes: u32,
    /// Its page (or first page of its block) plus 1; none unless recorded.
    pub(crate) page: Option<NonZeroU32>,
    /// Index plus 1 of the operation that starts when this one ends.
    pub(crate) next: Option<NonZeroU32>,
    pub(crate) token: T,
    /// When it arrived at its die's queue, or the end of the known part of its wait; once
    /// announced, when it arrives at its channel.
    pub(crate) arrived: u64,
    /// When its die will have completed it, once announced.
    pub(crate) ends: u64,
}

/// The recorded part of an operation.
#[derive(Clone, Copy)]
pub(super) struct OpSummary {
    pub(super) kind: OpKind,
    pub(super) purpose: Purpose,
    pub(super) cell_ns: u64,
    pub(super) transfers: u16,
    pub(super) writes: u32,
    pub(super) page: Option<NonZeroU32>,
    pub(super) charge_as: Option<Cause>,
    /// It is the rest of a suspended operation.
    pub(super) is_remainder: bool,
}

impl<T> Op<T> {
    /// Return the recorded part; a separate value, so that an operation that is not recorded may
    /// stay in registers.
    #[inline]
    pub(super) fn summary(&self) -> OpSummary {
        let Op { kind, purpose, cell_ns, transfers, writes, page, charge_as, .. } = *self;
        let is_remainder = self.stage == Stage::Cells;
        OpSummary { kind, purpose, cell_ns, transfers, writes, page, charge_as, is_remainder }
    }

    /// Return whether it reads a host page.
    #[inline]
    pub(crate) fn is_host_read(&self) -> bool {
        self.kind == OpKind::Read && self.purpose == Purpose::HostRead
    }

    /// Return whether it programs a host page.
    #[inline]
    pub(crate) fn is_host_program(&self) -> bool {
        self.kind == OpKind::Program && self.purpose == Purpose::HostWrite
    }
}

impl<T: Copy + Into<u64>> Op<T> {
    /// Return its plan and its position in the plan.
    #[inline]
    pub(crate) fn plan_turn(&self) -> Option<(u32, u32)> {
        let token: u64 = self.token.into();
        self.has_plan_order.then_some(((token >> 32) as u32, token as u32))
    }
}

impl<T: Copy> Op<T> {
    /// Create a read of a page of `die` with cell time `cell_ns`.
    #[inline]
    pub(crate) fn read(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        Op {
            kind: OpKind::Read,
            purpose,
            stage: Stage::Ring,
            report: Report::AtEnd,
            die,
            cell_ns,
            transfers: 1,
            retries: 0,
            account: None,
            has_plan_order: false,
            charge_as: None,
            link_bytes: 0,
            writes: 0,
            page: None,
            next: None,
            token,
            arrived: 0,
            ends: UNKNOWN,
        }
    }

    /// Create a program of a page of `die` with cell time `cell_ns`.
    #[inline]
    pub(crate) fn program(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        let read = Op::read(die, cell_ns, purpose, token);
        Op { kind: OpKind::Program, stage: Stage::BusIn, report: Report::Never, ..read }
    }

    /// Create an operation that occupies `die` for `cell_ns` without a channel.
    #[inline]
    pub(crate) fn inside(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        Op { kind: OpKind::Inside, ..Op::read(die, cell_ns, purpose, token) }
    }

    /// Remove the channel transfer: half of a copy-back.
    pub(crate) fn without_transfer(self) -> Op<T> {
        Op { kind: OpKind::Inside, stage: Stage::Ring, ..self }
    }

    /// Create an operation whose time is determined elsewhere: only its end is reported, or its
    /// data goes over the link.
    #[inline]
    pub(crate) fn without_flash_time(token: T) -> Op<T> {
        Op { stage: Stage::Link, ..Op::read(DieIdx(0), 0, Purpose::HostRead, token) }
    }
}
