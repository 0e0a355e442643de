//! A plain discrete-event simulation of the same device, as a test oracle: every resource has a
//! queue and a release event, nothing is computed ahead, and the next event is found by a linear
//! search.

mod jobs;
mod queues;

use proptest::prelude::*;
use uflip_core::Breakdown as _;

use crate::flash::geometry::{Geometry, Shape};
use crate::timeline::breakdown::SimBreakdown;
use crate::timeline::{CompletionNotice, DieQueue, MultiPlane, Rings, Suspend, Timeline, Timing};
use jobs::{BLOCKS, CHANNELS, DIES, LINK_NS, LONG, PAGE, PAGES, PLANES, RandomOp};
use jobs::{after, follow_up, job, limit_dies, op, plane_of};
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
