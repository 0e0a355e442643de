//! The same device as a plain discrete-event simulation, to compare with: every resource has a queue
//! and an event at which it is released, nothing is computed ahead, and the next event is found by
//! looking at all of them.

mod queues;

use proptest::prelude::*;
use uflip_core::Breakdown as _;

use crate::flash::geometry::{DieIdx, Geometry, Shape};
use crate::timeline::breakdown::SimBreakdown;
use crate::timeline::op::Kind;
use crate::timeline::{
    AccountIdx, Completion, DieQueue, Op, Purpose, Report, Rings, Suspend, Timeline, Timing,
};
use queues::Reference;

/// A random operation: what, where, when, and whether its end starts another one.
#[derive(Clone, Debug)]
struct Job {
    after: u64,
    /// Its cells take so much longer than others'.
    extra_ns: u64,
    transfers: u16,
    kind: u8,
    die: u32,
    then: Option<u32>,
    purpose: usize,
    /// The plan that it is of, if it is of one: the first of a plan goes first on a channel.
    plan: Option<u32>,
    /// The operation that follows when this one has ended.
    follow: Option<Box<Job>>,
}

impl Job {
    /// What an operation for it is known by: its number, and where it has turns its plan.
    fn token(&self, number: usize) -> u64 {
        u64::from(self.plan.unwrap_or(0)) << 32 | number as u64
    }
}

const PURPOSES: [Purpose; 6] = [
    Purpose::HostRead,
    Purpose::HostWrite,
    Purpose::Relocation,
    Purpose::Merge,
    Purpose::Erase,
    Purpose::Metadata,
];
const QUEUES: [DieQueue; 3] = [DieQueue::Fifo, DieQueue::CollectionFirst, DieQueue::ReadsFirst];

/// Times are long, and those of operations random beside, so that nothing happens by chance at the very
/// moment of something else: what is planned ahead has its place in the order earlier than what is not.
const LONG: u64 = 1 << 28;
const LINK_NS: u64 = 500;
const READ_NS: u64 = 7 * LONG;
const PROGRAM_NS: u64 = 23 * LONG;
const PROGRAM_HIGH_NS: u64 = 41 * LONG;

const DIES: u32 = 6;
const CHANNELS: u32 = 3;
/// Bytes of a page: its time on the link is that many times the same.
const PAGE: u32 = 100;

fn timing(buses: u32, queue: usize, cache_program: bool, in_turn: bool) -> Timing {
    Timing {
        erase_ns: 90 * LONG,
        transfer_ns: LONG / 1000,
        bus_ns: if buses > 0 { 4 * LONG } else { 0 },
        buses,
        link_bytes_per_s: 1_000_000_000 * u64::from(PAGE) / LINK_NS,
        die_queue: QUEUES[queue],
        cache_program,
        in_turn,
        ..Timing::default()
    }
}

fn geometry() -> Geometry {
    Geometry::from(Shape {
        channels: CHANNELS,
        dies: DIES,
        blocks_per_die: 2,
        pages_per_block: 2,
        metadata_pages: 0,
        page_bytes: PAGE,
        logical_pages: 2,
    })
}

/// The operation that a job asks for.
fn op(job: &Job, number: usize, timing: &Timing) -> Op<u64> {
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
    op.cell_ns += job.extra_ns;
    op.transfers = job.transfers;
    op.account = Some(AccountIdx::new(number as u32));
    op.report = Report::AtEnd;
    op.in_turn = timing.in_turn && job.plan.is_some();
    op
}

/// The program that follows a job, where it is a read to be programmed elsewhere.
fn then(job: &Job, number: usize, timing: &Timing) -> Option<Op<u64>> {
    let die = DieIdx(job.then?);
    let program_ns = PROGRAM_HIGH_NS + job.extra_ns / 2;
    let op = Op::program(die, program_ns, PURPOSES[job.purpose], job.token(number));
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

/// When every operation began and ended, by number.
type Times = (Vec<u64>, Vec<u64>);

/// The timeline, and what its user would remember.
struct Fast {
    timeline: Timeline<u64>,
    times: Times,
    follows: Vec<Option<Box<Job>>>,
}

impl Fast {
    fn issue(&mut self, at: u64, job: &Job) {
        let number = self.follows.len();
        self.times.0.push(at);
        self.times.1.push(0);
        self.follows.push(job.follow.clone());
        self.timeline.accounts.push(SimBreakdown::default());
        let timing = self.timeline.timing;
        let op = op(job, number, &timing);
        match then(job, number, &timing) {
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

fn fast(jobs: &[Job], timing: Timing) -> Fast {
    let mut timeline = Timeline::new(geometry(), timing);
    timeline.allow(u64::MAX);
    let mut fast = Fast { timeline, times: Times::default(), follows: Vec::new() };
    let mut now = 0;
    for job in jobs {
        now += job.after;
        fast.run(now);
        fast.issue(now, job);
    }
    fast.run(u64::MAX - 1);
    fast
}

fn reference(jobs: &[Job], timing: Timing) -> Vec<u64> {
    let mut reference = Reference::new(timing);
    let mut now = 0;
    for job in jobs {
        now += job.after;
        reference.run(now);
        reference.issue(job);
    }
    reference.run(u64::MAX - 1);
    reference.ends.into_iter().map(|end| end.expect("every operation ends")).collect()
}

fn job() -> impl Strategy<Value = Job> {
    let times = (0..30 * LONG, 0..8 * LONG, 2..30_000_u16);
    let plan = prop::option::of(0..2u32);
    let what = (0u8..5, 0..DIES, prop::option::of(0..DIES), 0..PURPOSES.len(), plan);
    let plain = (times, what).prop_map(
        |((after, extra_ns, transfers), (kind, die, then, purpose, plan))| Job {
            after,
            extra_ns,
            transfers,
            kind,
            die,
            then,
            purpose,
            plan,
            follow: None,
        },
    );
    plain.prop_recursive(3, 4, 1, |inner| {
        (inner.clone(), inner)
            .prop_map(|(first, follow)| Job { follow: Some(Box::new(follow)), ..first })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The same where memory is in the way and the firmware has rings; operations that have turns are of FTLs that
    /// merge, which have none.
    #[test]
    fn rings_are_equal_to_queues(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        queue in 0usize..3,
        cache_program in any::<bool>(),
        memory in any::<bool>(),
        sizes in (1u32..4, 1u32..5),
        polling in any::<bool>(),
    ) {
        let completion = if polling { Completion::Polling } else { Completion::Interrupt };
        let (tx_entries, rx_entries) = sizes;
        // No end of anything else is a multiple of the period.
        let rings = Rings { tx_entries, rx_entries, completion, completion_ns: 11 * LONG + 1 };
        let timing = Timing {
            memory_ns: if memory { LONG / 7000 } else { 0 },
            bus_read_setup_ns: 3 * LONG / 2,
            bus_write_setup_ns: 5 * LONG / 3,
            rings: Some(rings),
            ..timing(buses, queue, cache_program, false)
        };
        let Fast { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// The same where reads suspend what dies do, with rings and turns or without.
    #[test]
    fn what_is_suspended_goes_on_as_queues_have_it(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        in_turn in any::<bool>(),
        ringed in any::<bool>(),
        program_ns in prop::option::of(0..9 * LONG),
        erase_ns in prop::option::of(0..30 * LONG),
        most in 1u32..4,
    ) {
        let completion = Completion::Interrupt;
        let rings = Rings { tx_entries: 3, rx_entries: 3, completion, completion_ns: 11 * LONG + 1 };
        let timing = Timing {
            suspend: Some(Suspend { program_ns, erase_ns, most }),
            rings: (ringed && !in_turn).then_some(rings),
            ..timing(buses, 2, false, in_turn)
        };
        let Fast { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }

    /// Every operation ends at the same nanosecond, and its parts sum to its time.
    #[test]
    fn clocks_are_equal_to_queues(
        jobs in prop::collection::vec(job(), 1..60),
        buses in 0u32..3,
        queue in 0usize..3,
        cache_program in any::<bool>(),
        in_turn in any::<bool>(),
    ) {
        let timing = timing(buses, queue, cache_program, in_turn);
        let Fast { timeline, times: (begins, ends), .. } = fast(&jobs, timing);
        prop_assert_eq!(&ends, &reference(&jobs, timing));
        for ((begin, end), parts) in begins.iter().zip(&ends).zip(&timeline.accounts) {
            prop_assert_eq!(parts.parts().iter().sum::<u64>(), end - begin);
        }
    }
}
