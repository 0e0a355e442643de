//! Random operations: what, where, when, and what follows.

use proptest::prelude::*;

use super::geometry;
use crate::flash::geometry::{DieIdx, Ppn};
use crate::timeline::op::Kind;
use crate::timeline::{AccountIdx, MultiPlane, Op, Purpose, Report, Timing};

/// Times are long, and those of operations random beside, so that nothing happens by chance at the very
/// moment of something else: what is planned ahead has its place in the order earlier than what is not.
pub(super) const LONG: u64 = 1 << 28;
pub(super) const LINK_NS: u64 = 500;
const READ_NS: u64 = 7 * LONG;
const PROGRAM_NS: u64 = 23 * LONG;
const PROGRAM_HIGH_NS: u64 = 41 * LONG;

pub(super) const DIES: u32 = 6;
pub(super) const CHANNELS: u32 = 3;
/// Planes of a die, blocks of a plane, pages of a block.
pub(super) const PLANES: u32 = 3;
pub(super) const BLOCKS: u32 = 2;
pub(super) const PAGES: u32 = 2;
/// Bytes of a page: its time on the link is that many times the same.
pub(super) const PAGE: u32 = 100;

pub(super) const PURPOSES: [Purpose; 6] = [
    Purpose::HostRead,
    Purpose::HostWrite,
    Purpose::Relocation,
    Purpose::Merge,
    Purpose::Erase,
    Purpose::Metadata,
];

/// A random operation: what, where, when, and whether its end starts another one.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) after: u64,
    /// Its cells take so much longer than others'.
    pub(super) extra_ns: u64,
    pub(super) transfers: u16,
    kind: u8,
    pub(super) die: u32,
    pub(super) then: Option<u32>,
    pub(super) purpose: usize,
    /// The plan that it is of, if it is of one: the first of a plan goes first on a channel.
    pub(super) plan: Option<u32>,
    /// Where on its die, and whether its cells take as long as those of all others of its kind there.
    pub(super) at: Option<At>,
    pub(super) alike: bool,
    /// The operation that follows when this one has ended.
    pub(super) follow: Option<Box<Job>>,
}

impl Job {
    /// What an operation for it is known by: its number, and where it has turns its plan.
    pub(super) fn token(&self, number: usize) -> u64 {
        u64::from(self.plan.unwrap_or(0)) << 32 | number as u64
    }
}

/// A page of a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) plane: u32,
    pub(super) block: u32,
    pub(super) page: u32,
}

/// `op` on `at`.
fn on(op: Op<u64>, at: Option<At>) -> Op<u64> {
    let Some(At { plane, block, page }) = at else { return op };
    let number = ((plane * DIES + op.die.0) * BLOCKS + block) * PAGES + page;
    op.on(geometry().place_of(Ppn(number)))
}

/// Where an operation is about, by its number alone.
pub(super) fn plane_of(op: &Op<u64>) -> Option<At> {
    let number = op.page?.get() - 1;
    let (block, plane) = (number / PAGES, number / (PAGES * BLOCKS * DIES));
    Some(At { plane, block: block % BLOCKS, page: number % PAGES })
}

/// The operation that a job asks for.
pub(super) fn op(job: &Job, number: usize, timing: &Timing) -> Op<u64> {
    let (die, purpose, token) = (DieIdx(job.die), PURPOSES[job.purpose], job.token(number));
    let mut op = match job.kind {
        0 => Op { link_bytes: PAGE, ..Op::read(die, READ_NS, purpose, token) },
        1 => Op::read(die, READ_NS, purpose, token),
        2 => Op::program(die, PROGRAM_NS, purpose, token),
        3 => Op::inside(die, timing.erase_ns, purpose, token),
        _ => Op::read(die, 2 * READ_NS, purpose, token),
    };
    if job.then.is_some() {
        op.link_bytes = 0;
    }
    op.purpose = purpose_of(op, timing);
    op.cell_ns += extra_ns(job, timing);
    let mut op = on(op, job.at);
    op.transfers = job.transfers;
    op.account = Some(AccountIdx::new(number as u32));
    op.report = Report::AtEnd;
    op.in_turn = timing.in_turn && job.plan.is_some();
    op
}

/// How much longer its cells take: of planes that work together as long, and on each die otherwise.
fn extra_ns(job: &Job, timing: &Timing) -> u64 {
    let together = timing.multi_plane != MultiPlane::None && job.alike;
    if together { LONG / 13 * u64::from(job.die) } else { job.extra_ns }
}

/// The program that follows a job, where it is a read to be programmed elsewhere.
pub(super) fn then(job: &Job, number: usize, timing: &Timing) -> Option<Op<u64>> {
    let die = DieIdx(job.then?);
    let program_ns = PROGRAM_HIGH_NS + extra_ns(&Job { die: die.0, ..job.clone() }, timing) / 2;
    let op = Op::program(die, program_ns, PURPOSES[job.purpose], job.token(number));
    let op = on(op, job.at);
    let account = Some(AccountIdx::new(number as u32));
    let in_turn = timing.in_turn && job.plan.is_some();
    let purpose = purpose_of(op, timing);
    Some(Op {
        purpose,
        account,
        report: Report::AtEnd,
        transfers: job.transfers / 2,
        in_turn,
        ..op
    })
}

/// Where reads of the host suspend others, these are reads.
fn purpose_of(op: Op<u64>, timing: &Timing) -> Purpose {
    let reads = op.kind == Kind::Read || op.purpose != Purpose::HostRead;
    if reads || timing.suspend.is_none() { op.purpose } else { Purpose::HostWrite }
}

/// How much later it comes than the one before: where planes work together, some come at the same moment.
pub(super) fn after(job: &Job, timing: &Timing) -> u64 {
    let together = timing.multi_plane != MultiPlane::None;
    if together && job.after.is_multiple_of(3) { 0 } else { job.after }
}

pub(super) fn job() -> impl Strategy<Value = Job> {
    let times = (0..30 * LONG, 0..8 * LONG, 2..30_000_u16);
    let plan = prop::option::of(0..2u32);
    let what = (0u8..5, 0..DIES, prop::option::of(0..DIES), 0..PURPOSES.len(), plan);
    let at =
        (0..PLANES, 0..BLOCKS, 0..PAGES).prop_map(|(plane, block, page)| At { plane, block, page });
    let at = (prop::option::weighted(0.9, at), any::<bool>());
    let plain = (times, what, at).prop_map(
        |((after, extra_ns, transfers), (kind, die, then, purpose, plan), (at, alike))| Job {
            after,
            extra_ns,
            transfers,
            kind,
            die,
            then,
            purpose,
            plan,
            at,
            alike,
            follow: None,
        },
    );
    plain.prop_recursive(3, 4, 1, |inner| {
        (inner.clone(), inner)
            .prop_map(|(first, follow)| Job { follow: Some(Box::new(follow)), ..first })
    })
}

/// `job` on one of so many dies.
pub(super) fn on_few(job: Job, dies: u32) -> Job {
    let follow = job.follow.map(|follow| Box::new(on_few(*follow, dies)));
    Job { die: job.die % dies, follow, ..job }
}
