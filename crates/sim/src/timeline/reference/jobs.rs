//! Random operations: kind, address, time, and successor.

use proptest::prelude::*;

use super::geometry;
use crate::flash::geometry::{DieIdx, Ppn};
use crate::timeline::op::OpKind;
use crate::timeline::{AccountIdx, MultiPlane, Op, Purpose, Report, Timing};

/// Times are long, with random parts, so that events do not coincide by chance: the order of ties
/// differs between planned and unplanned events.
pub(super) const LONG: u64 = 1 << 28;
pub(super) const LINK_NS: u64 = 500;
const READ_NS: u64 = 7 * LONG;
const PROGRAM_NS: u64 = 23 * LONG;
const PROGRAM_HIGH_NS: u64 = 41 * LONG;

pub(super) const DIES: u32 = 6;
pub(super) const CHANNELS: u32 = 3;
/// Planes per die, blocks per plane, pages per block.
pub(super) const PLANES: u32 = 3;
pub(super) const BLOCKS: u32 = 2;
pub(super) const PAGES: u32 = 2;
/// Bytes of a page: its time on the link is that many times the unit.
pub(super) const PAGE: u32 = 100;

pub(super) const PURPOSES: [Purpose; 6] = [
    Purpose::HostRead,
    Purpose::HostWrite,
    Purpose::Relocation,
    Purpose::Merge,
    Purpose::Erase,
    Purpose::Metadata,
];

/// A random operation, and whether its end starts another one.
#[derive(Clone, Debug)]
pub(super) struct RandomOp {
    pub(super) after: u64,
    /// Its additional cell time.
    pub(super) extra_ns: u64,
    pub(super) transfers: u16,
    kind: u8,
    pub(super) die: u32,
    pub(super) successor: Option<u32>,
    pub(super) purpose: usize,
    /// Its plan, if any: a channel serves the operations of a plan in order.
    pub(super) plan: Option<u32>,
    /// Its address on its die, and whether its cell time equals that of others of its kind there.
    pub(super) at: Option<DiePage>,
    pub(super) has_same_cell_time: bool,
    /// The operation that follows its end.
    pub(super) follow: Option<Box<RandomOp>>,
}

impl RandomOp {
    /// Return its token: its number, and its plan if operations have an order.
    pub(super) fn token(&self, number: usize) -> u64 {
        u64::from(self.plan.unwrap_or(0)) << 32 | number as u64
    }
}

/// A page of a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiePage {
    pub(super) plane: u32,
    pub(super) block: u32,
    pub(super) page: u32,
}

/// Return `op` on `at`.
fn on(op: Op<u64>, at: Option<DiePage>) -> Op<u64> {
    let Some(DiePage { plane, block, page }) = at else { return op };
    let number = ((plane * DIES + op.die.0) * BLOCKS + block) * PAGES + page;
    op.on(geometry().address_of(Ppn(number)))
}

/// Return the address of an operation, derived from its page number.
pub(super) fn plane_of(op: &Op<u64>) -> Option<DiePage> {
    let number = op.page?.get() - 1;
    let (block, plane) = (number / PAGES, number / (PAGES * BLOCKS * DIES));
    Some(DiePage { plane, block: block % BLOCKS, page: number % PAGES })
}

/// Return the operation of a job.
pub(super) fn op(job: &RandomOp, number: usize, timing: &Timing) -> Op<u64> {
    let (die, purpose, token) = (DieIdx(job.die), PURPOSES[job.purpose], job.token(number));
    let mut op = match job.kind {
        0 => Op { link_bytes: PAGE, ..Op::read(die, READ_NS, purpose, token) },
        1 => Op::read(die, READ_NS, purpose, token),
        2 => Op::program(die, PROGRAM_NS, purpose, token),
        3 => Op::inside(die, timing.erase_ns, purpose, token),
        _ => Op::read(die, 2 * READ_NS, purpose, token),
    };
    if job.successor.is_some() {
        op.link_bytes = 0;
    }
    op.purpose = purpose_of(op, timing);
    op.cell_ns += extra_ns(job, timing);
    let mut op = on(op, job.at);
    op.transfers = job.transfers;
    op.account = Some(AccountIdx::new(number as u32));
    op.report = Report::AtEnd;
    op.has_plan_order = timing.has_plan_order && job.plan.is_some();
    op
}

/// Return its additional cell time: equal for planes that work together, different per die.
fn extra_ns(job: &RandomOp, timing: &Timing) -> u64 {
    let together = timing.multi_plane != MultiPlane::None && job.has_same_cell_time;
    if together { LONG / 13 * u64::from(job.die) } else { job.extra_ns }
}

/// Return the program that follows a job, if it is a read to be programmed elsewhere.
pub(super) fn follow_up(job: &RandomOp, number: usize, timing: &Timing) -> Option<Op<u64>> {
    let die = DieIdx(job.successor?);
    let program_ns =
        PROGRAM_HIGH_NS + extra_ns(&RandomOp { die: die.0, ..job.clone() }, timing) / 2;
    let op = Op::program(die, program_ns, PURPOSES[job.purpose], job.token(number));
    let op = on(op, job.at);
    let account = Some(AccountIdx::new(number as u32));
    let has_plan_order = timing.has_plan_order && job.plan.is_some();
    let purpose = purpose_of(op, timing);
    Some(Op {
        purpose,
        account,
        report: Report::AtEnd,
        transfers: job.transfers / 2,
        has_plan_order,
        ..op
    })
}

/// Return the purpose: with suspension, host reads for reads.
fn purpose_of(op: Op<u64>, timing: &Timing) -> Purpose {
    let reads = op.kind == OpKind::Read || op.purpose != Purpose::HostRead;
    if reads || timing.suspend.is_none() { op.purpose } else { Purpose::HostWrite }
}

/// Return its delay after the previous one: with multi-plane operations some arrive together.
pub(super) fn after(job: &RandomOp, timing: &Timing) -> u64 {
    let together = timing.multi_plane != MultiPlane::None;
    if together && job.after.is_multiple_of(3) { 0 } else { job.after }
}

pub(super) fn job() -> impl Strategy<Value = RandomOp> {
    let times = (0..30 * LONG, 0..8 * LONG, 2..30_000_u16);
    let plan = prop::option::of(0..2u32);
    let operation = (0u8..5, 0..DIES, prop::option::of(0..DIES), 0..PURPOSES.len(), plan);
    let at = (0..PLANES, 0..BLOCKS, 0..PAGES).prop_map(|(plane, block, page)| DiePage {
        plane,
        block,
        page,
    });
    let at = (prop::option::weighted(0.9, at), any::<bool>());
    let plain = (times, operation, at).prop_map(
        |(
            (after, extra_ns, transfers),
            (kind, die, successor, purpose, plan),
            (at, has_same_cell_time),
        )| {
            RandomOp {
                after,
                extra_ns,
                transfers,
                kind,
                die,
                successor,
                purpose,
                plan,
                at,
                has_same_cell_time,
                follow: None,
            }
        },
    );
    plain.prop_recursive(3, 4, 1, |inner| {
        (inner.clone(), inner)
            .prop_map(|(first, follow)| RandomOp { follow: Some(Box::new(follow)), ..first })
    })
}

/// Restrict `job` to the first `dies` dies.
pub(super) fn limit_dies(job: RandomOp, dies: u32) -> RandomOp {
    let follow = job.follow.map(|follow| Box::new(limit_dies(*follow, dies)));
    RandomOp { die: job.die % dies, follow, ..job }
}
