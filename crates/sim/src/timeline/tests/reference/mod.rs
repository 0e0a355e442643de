//! A plain discrete-event simulation of the same device, as a test oracle: every resource has a
//! queue and a release event, nothing is computed ahead, and the next event is found by a linear
//! search.

mod queues;

use proptest::prelude::*;
use uflip_core::Breakdown as _;

use crate::flash::geometry::{DieIdx, Geometry, Ppn, Shape};
use crate::timeline::breakdown::SimBreakdown;
use crate::timeline::op::OpKind;
use crate::timeline::{
    AccountIdx, CompletionNotice, DieQueue, MultiPlane, Op, Purpose, Report, Rings, Suspend,
    Timeline, Timing,
};
use queues::Reference;

const QUEUES: [DieQueue; 3] = [DieQueue::Fifo, DieQueue::CollectionFirst, DieQueue::ReadsFirst];

fn timing(buses: u32, queue: usize, cache_program: bool, has_plan_order: bool) -> Timing {
    Timing {
        erase_ns: 90 * LONG,
        transfer_ns: LONG / 1000,
        bus_ns: if buses > 0 { 4 * LONG } else { 0 },
        buses,
        link_bytes_per_s: 1_000_000_000 * u64::from(PAGE) / LINK_NS,
        die_queue: QUEUES[queue],
        cache_program,
        has_plan_order,
        ..Timing::default()
    }
}

fn geometry() -> Geometry {
    let shape = Shape {
        channels: CHANNELS,
        planes: DIES * PLANES,
        blocks_per_plane: BLOCKS,
        pages_per_block: PAGES,
        metadata_pages: 0,
        page_bytes: PAGE,
        logical_pages: 2,
    };
    Geometry::from(shape).with_planes_in_step(PLANES)
}

/// Begin and end of every operation, by number.
type BeginsAndEnds = (Vec<u64>, Vec<u64>);

/// The timeline under test, and its reports.
struct TestedTimeline {
    timeline: Timeline<u64>,
    times: BeginsAndEnds,
    follows: Vec<Option<Box<RandomOp>>>,
}

impl TestedTimeline {
    fn issue(&mut self, at: u64, job: &RandomOp) {
        let number = self.follows.len();
        self.times.0.push(at);
        self.times.1.push(0);
        self.follows.push(job.follow.clone());
        self.timeline.accounts.push(SimBreakdown::default());
        let timing = self.timeline.timing;
        let op = op(job, number, &timing);
        match follow_up(job, number, &timing) {
            None => self.timeline.issue(at, op),
            Some(then) => self.timeline.issue_after(at, &[op], then),
        }
    }

    fn run(&mut self, until: u64) {
        while let Some((at, token)) = self.timeline.next(until) {
            let number = token as u32 as usize;
            self.times.1[number] = at;
            if let Some(job) = self.follows[number].take() {
                self.issue(at, &job);
            }
        }
    }
}

fn fast(jobs: &[RandomOp], timing: Timing) -> TestedTimeline {
    let mut timeline = Timeline::new(geometry(), timing);
    timeline.set_event_budget(u64::MAX);
    let mut fast =
        TestedTimeline { timeline, times: BeginsAndEnds::default(), follows: Vec::new() };
    let mut now = 0;
    for job in jobs {
        let after = after(job, &timing);
        now += after;
        if after > 0 {
            fast.run(now);
        }
        fast.issue(now, job);
    }
    fast.run(u64::MAX - 1);
    fast
}

fn reference(jobs: &[RandomOp], timing: Timing) -> Vec<u64> {
    let mut reference = Reference::new(timing);
    let mut now = 0;
    for job in jobs {
        let after = after(job, &timing);
        now += after;
        if after > 0 {
            reference.run(now);
        }
        reference.issue(job);
    }
    reference.run(u64::MAX - 1);
    reference.ends.into_iter().map(|end| end.expect("every operation ends")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The same with memory and descriptor rings. Operations with an order belong to merging FTLs,
    /// which have no rings.
    #[test]
    fn descriptor_rings_match_queue_model(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        queue in 0usize..3,
        cache_program in any::<bool>(),
        memory in any::<bool>(),
        sizes in (1u32..4, 1u32..5),
        polling in any::<bool>(),
    ) {
        let completion = if polling { CompletionNotice::Polling } else { CompletionNotice::Interrupt };
        let (tx_entries, rx_entries) = sizes;
        // No other end is a multiple of the period.
        let rings = Rings { tx_entries, rx_entries, completion, completion_ns: 11 * LONG + 1 };
        let timing = Timing {
            memory_ns: if memory { LONG / 7000 } else { 0 },
            bus_read_setup_ns: 3 * LONG / 2,
            bus_write_setup_ns: 5 * LONG / 3,
            rings: Some(rings),
            ..timing(buses, queue, cache_program, false)
        };
        let TestedTimeline { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// The same with suspension for reads, with and without rings and plan order.
    #[test]
    fn suspend_and_resume_match_queue_model(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        has_plan_order in any::<bool>(),
        ringed in any::<bool>(),
        program_ns in prop::option::of(0..9 * LONG),
        erase_ns in prop::option::of(0..30 * LONG),
        max_suspensions in 1u32..4,
    ) {
        let completion = CompletionNotice::Interrupt;
        let rings = Rings { tx_entries: 3, rx_entries: 3, completion, completion_ns: 11 * LONG + 1 };
        let timing = Timing {
            suspend: Some(Suspend { program_ns, erase_ns, max_suspensions }),
            rings: (ringed && !has_plan_order).then_some(rings),
            ..timing(buses, 2, false, has_plan_order)
        };
        let TestedTimeline { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// The same with multi-plane operations, with and without rings and plan order.
    #[test]
    fn multi_plane_timeline_matches_queue_model(
        jobs in prop::collection::vec(job(), 1..80),
        few in 1u32..=DIES,
        buses in 0u32..3,
        queue in 0usize..3,
        rule in 0usize..3,
        has_plan_order in any::<bool>(),
        ringed in any::<bool>(),
    ) {
        let completion = CompletionNotice::Interrupt;
        let rings = Rings { tx_entries: 3, rx_entries: 3, completion, completion_ns: 11 * LONG + 1 };
        let rules = [MultiPlane::AnyPage, MultiPlane::SamePage, MultiPlane::SameBlock];
        let timing = Timing {
            multi_plane: rules[rule],
            rings: (ringed && !has_plan_order).then_some(rings),
            ..timing(buses, queue, false, has_plan_order)
        };
        // On few dies more operations coincide.
        let jobs: Vec<RandomOp> = jobs.into_iter().map(|job| limit_dies(job, few)).collect();
        let TestedTimeline { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// The same with cache read, with and without cache program, rings and plan order.
    #[test]
    fn cache_read_matches_queue_model(
        jobs in prop::collection::vec(job(), 1..80),
        few in 1u32..=DIES,
        buses in 0u32..3,
        cache_program in any::<bool>(),
        has_plan_order in any::<bool>(),
        ringed in any::<bool>(),
    ) {
        let completion = CompletionNotice::Interrupt;
        let rings = Rings { tx_entries: 3, rx_entries: 3, completion, completion_ns: 11 * LONG + 1 };
        let timing = Timing {
            cache_read: true,
            rings: (ringed && !has_plan_order).then_some(rings),
            ..timing(buses, 0, cache_program, has_plan_order)
        };
        let jobs: Vec<RandomOp> = jobs.into_iter().map(|job| limit_dies(job, few)).collect();
        let TestedTimeline { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// Every operation ends at the same nanosecond, and its parts sum to its time.
    #[test]
    fn timeline_matches_queue_model(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        queue in 0usize..3,
        cache_program in any::<bool>(),
        has_plan_order in any::<bool>(),
    ) {
        let timing = timing(buses, queue, cache_program, has_plan_order);
        let TestedTimeline { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }
}

// Random operations: kind, address, time, and successor.

/// Times are long, with random parts, so that events do not coincide by chance: the order of ties
/// differs between planned and unplanned events.
const LONG: u64 = 1 << 28;
const LINK_NS: u64 = 500;
const READ_NS: u64 = 7 * LONG;
const PROGRAM_NS: u64 = 23 * LONG;
const PROGRAM_HIGH_NS: u64 = 41 * LONG;

const DIES: u32 = 6;
const CHANNELS: u32 = 3;
/// Planes per die, blocks per plane, pages per block.
const PLANES: u32 = 3;
const BLOCKS: u32 = 2;
const PAGES: u32 = 2;
/// Bytes of a page: its time on the link is that many times the unit.
const PAGE: u32 = 100;

const PURPOSES: [Purpose; 6] = [
    Purpose::HostRead,
    Purpose::HostWrite,
    Purpose::Relocation,
    Purpose::Merge,
    Purpose::Erase,
    Purpose::Metadata,
];

/// A random operation, and whether its end starts another one.
#[derive(Clone, Debug)]
struct RandomOp {
    after: u64,
    /// Its additional cell time.
    extra_ns: u64,
    transfers: u16,
    kind: u8,
    die: u32,
    successor: Option<u32>,
    purpose: usize,
    /// Its plan, if any: a channel serves the operations of a plan in order.
    plan: Option<u32>,
    /// Its address on its die, and whether its cell time equals that of others of its kind there.
    at: Option<DiePage>,
    has_same_cell_time: bool,
    /// The operation that follows its end.
    follow: Option<Box<RandomOp>>,
}

impl RandomOp {
    /// Return its token: its number, and its plan if operations have an order.
    fn token(&self, number: usize) -> u64 {
        u64::from(self.plan.unwrap_or(0)) << 32 | number as u64
    }
}

/// A page of a die.
#[derive(Clone, Copy, Debug)]
struct DiePage {
    plane: u32,
    block: u32,
    page: u32,
}

/// Return `op` on `at`.
fn on(op: Op<u64>, at: Option<DiePage>) -> Op<u64> {
    let Some(DiePage { plane, block, page }) = at else { return op };
    let number = ((plane * DIES + op.die.0) * BLOCKS + block) * PAGES + page;
    op.on(geometry().address_of(Ppn(number)))
}

/// Return the address of an operation, derived from its page number.
fn plane_of(op: &Op<u64>) -> Option<DiePage> {
    let number = op.page?.get() - 1;
    let (block, plane) = (number / PAGES, number / (PAGES * BLOCKS * DIES));
    Some(DiePage { plane, block: block % BLOCKS, page: number % PAGES })
}

/// Return the operation of a job.
fn op(job: &RandomOp, number: usize, timing: &Timing) -> Op<u64> {
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
fn follow_up(job: &RandomOp, number: usize, timing: &Timing) -> Option<Op<u64>> {
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
fn after(job: &RandomOp, timing: &Timing) -> u64 {
    let together = timing.multi_plane != MultiPlane::None;
    if together && job.after.is_multiple_of(3) { 0 } else { job.after }
}

fn job() -> impl Strategy<Value = RandomOp> {
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
fn limit_dies(job: RandomOp, dies: u32) -> RandomOp {
    let follow = job.follow.map(|follow| Box::new(limit_dies(*follow, dies)));
    RandomOp { die: job.die % dies, follow, ..job }
}
