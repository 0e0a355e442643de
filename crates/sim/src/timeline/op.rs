//! Operations on their way through the device.

use std::num::NonZeroU32;

use super::{AccountIdx, UNKNOWN};
use crate::flash::geometry::DieIdx;
use crate::timeline::breakdown::Cause;

/// What an operation does on its die.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kind {
    /// Cells first, then the channel.
    Read,
    /// The channel first, then cells.
    Program,
    /// An erase, or half of a copy-back: no channel.
    Inside,
}

/// For whom a die works; waiting for it is charged accordingly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Purpose {
    HostRead,
    HostWrite,
    Relocation,
    Merge,
    Erase,
    Metadata,
    Mapping,
    /// In vain: what is done again.
    Retry,
    /// What a block holds is moved because of its reads or its age.
    Scrub,
}

impl Purpose {
    /// What somebody else's wait for it is charged to.
    pub(crate) fn wait(self) -> Cause {
        match self {
            Purpose::HostRead => Cause::ReadWait,
            Purpose::HostWrite => Cause::ProgramWait,
            Purpose::Erase => Cause::EraseWait,
            _ => self.cause(),
        }
    }

    /// What its own time is charged to, where cells or a channel do not tell.
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

/// When the user of an operation is told of its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Report {
    /// As soon as it is known, with its time: for what nobody inside the device waits for.
    WhenKnown,
    /// When everything before has happened.
    AtEnd,
    /// Not at all.
    Never,
}

/// Where an operation arrives next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Stage {
    /// The firmware, where that has rings of descriptors.
    Submit,
    /// Memory and then the bus, or what there is of them.
    BusIn,
    /// The bus, out of memory.
    Bus,
    Ring,
    Channel,
    /// The end of what can be suspended; in a ring, it is suspended.
    Cells,
    BusOut,
    /// Memory, off the bus.
    Memory,
    Link,
}

/// One flash operation.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Op<T> {
    pub(crate) kind: Kind,
    pub(crate) purpose: Purpose,
    pub(crate) stage: Stage,
    pub(crate) report: Report,
    pub(crate) die: DieIdx,
    /// How long the cells take [ns].
    pub(crate) cell_ns: u64,
    /// Pages that go over the channel.
    pub(crate) transfers: u16,
    /// So often it is read and sent again, while it has its die and its channel.
    pub(crate) again: u16,
    pub(crate) account: Option<AccountIdx>,
    /// It is of a plan, which its token names in the upper half, and its place in that in the lower: at a
    /// channel the first of a plan goes first.
    pub(crate) in_turn: bool,
    /// Everything is charged to this cause, whatever it is.
    pub(crate) lump: Option<Cause>,
    /// Bytes of a read that go to the host.
    pub(crate) link_bytes: u32,
    /// What it changes on flash: a record of what is on it; 0: none.
    pub(crate) writes: u32,
    /// The page that it is about, or the first of a block, and one more; none where nobody asks.
    pub(crate) page: Option<NonZeroU32>,
    /// The operation that begins when this one has ended: its index and one more.
    pub(crate) next: Option<NonZeroU32>,
    pub(crate) token: T,
    /// When it arrived at the ring of its die, or from when on it is not known what it waits for; and at
    /// its channel, where that was announced.
    pub(crate) arrived: u64,
    /// When its die will have done it, where its arrival at the channel was announced.
    pub(crate) ends: u64,
}

/// What of an operation is written down.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub(super) kind: Kind,
    pub(super) purpose: Purpose,
    pub(super) cell_ns: u64,
    pub(super) transfers: u16,
    pub(super) writes: u32,
    pub(super) page: Option<NonZeroU32>,
    /// What is left of it, since it was suspended.
    pub(super) rest: bool,
}

impl<T> Op<T> {
    /// What it is; a value of its own, so that an operation that is not written down may stay in registers.
    #[inline]
    pub(super) fn what(&self) -> Noted {
        let Op { kind, purpose, cell_ns, transfers, writes, page, .. } = *self;
        let rest = self.stage == Stage::Cells;
        Noted { kind, purpose, cell_ns, transfers, writes, page, rest }
    }

    /// Whether it programs a page of the host.
    #[inline]
    pub(crate) fn is_host_program(&self) -> bool {
        self.kind == Kind::Program && self.purpose == Purpose::HostWrite
    }
}

impl<T: Copy + Into<u64>> Op<T> {
    /// The plan that it is of, and its place in that.
    #[inline]
    pub(crate) fn turn(&self) -> Option<(u32, u32)> {
        let token: u64 = self.token.into();
        self.in_turn.then_some(((token >> 32) as u32, token as u32))
    }
}

impl<T: Copy> Op<T> {
    /// A read of a page of `die` whose cells take `cell_ns`.
    #[inline]
    pub(crate) fn read(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        Op {
            kind: Kind::Read,
            purpose,
            stage: Stage::Ring,
            report: Report::AtEnd,
            die,
            cell_ns,
            transfers: 1,
            again: 0,
            account: None,
            in_turn: false,
            lump: None,
            link_bytes: 0,
            writes: 0,
            page: None,
            next: None,
            token,
            arrived: 0,
            ends: UNKNOWN,
        }
    }

    /// A program of a page of `die` whose cells take `cell_ns`.
    #[inline]
    pub(crate) fn program(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        let read = Op::read(die, cell_ns, purpose, token);
        Op { kind: Kind::Program, stage: Stage::BusIn, report: Report::Never, ..read }
    }

    /// Something that keeps `die` busy for `cell_ns` and needs no channel.
    #[inline]
    pub(crate) fn inside(die: DieIdx, cell_ns: u64, purpose: Purpose, token: T) -> Op<T> {
        Op { kind: Kind::Inside, ..Op::read(die, cell_ns, purpose, token) }
    }

    /// The same without the channel: half of a copy-back.
    pub(crate) fn inside_the_die(self) -> Op<T> {
        Op { kind: Kind::Inside, stage: Stage::Ring, ..self }
    }

    /// What others time: only its end is told, or its data goes over the link.
    #[inline]
    pub(crate) fn timed_elsewhere(token: T) -> Op<T> {
        Op { stage: Stage::Link, ..Op::read(DieIdx(0), 0, Purpose::HostRead, token) }
    }
}
