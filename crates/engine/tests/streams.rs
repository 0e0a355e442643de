//! Processes of different kinds side by side: open and closed loops, shallow and deep queues, reads and writes.

#[allow(dead_code)]
mod one_server;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use one_server::{OneServer, info, trace_on};
use proptest::prelude::*;
use serde_json::{Value, json};
use uflip_core::{
    Breakdown, Completion, Counters, Device, DeviceInfo, Io, Mode, Nanos, Result, Ticket,
};
use uflip_engine::{Pattern, Trace, When};

/// Reports a part for each of two causes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct CauseTimes([u64; 2]);

impl Breakdown for CauseTimes {
    const CAUSES: &'static [&'static str] = &["controller_ns", "cell_ns"];

    fn parts(&self) -> &[u64] {
        &self.0
    }
}

/// Return the parts of an I/O's time, independent of other I/Os: 40 ns in the controller, then its cells.
fn parts(io: &Io) -> [u64; 2] {
    let cell = if io.mode == Mode::Read { 100 } else { 700 };
    [40, cell + io.size.0 / 512]
}

/// An I/O in flight, ordered by its end: end, ticket, submission [ns], parts.
type InFlight = Reverse<(u64, u64, u64, [u64; 2])>;

/// A device without queues: every I/O takes its own time. `B` reports its parts.
struct Unlimited<B> {
    info: DeviceInfo,
    now: u64,
    tickets: u64,
    outstanding: BinaryHeap<InFlight>,
    breakdown: fn([u64; 2]) -> B,
}

impl<B: Breakdown> Unlimited<B> {
    fn new(breakdown: fn([u64; 2]) -> B) -> Unlimited<B> {
        let outstanding = BinaryHeap::new();
        Unlimited { info: info("unlimited"), now: 23, tickets: 0, outstanding, breakdown }
    }
}

impl<B: Breakdown> Device for Unlimited<B> {
    type Request = Io;
    type Status = ();
    type Breakdown = B;

    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
    fn wait_until(&mut self, t: Nanos) {
        self.now = self.now.max(t.0);
    }
    fn submit(&mut self, io: &Io) -> Result<Ticket> {
        let (ticket, parts) = (self.tickets, parts(io));
        self.tickets += 1;
        let end = self.now + parts.iter().sum::<u64>();
        self.outstanding.push(Reverse((end, ticket, self.now, parts)));
        Ok(Ticket(ticket))
    }
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.outstanding.peek().map(|Reverse((end, ..))| Nanos(*end))
    }
    fn complete(&mut self) -> Result<Completion<B>> {
        let Reverse((end, ticket, submitted, parts)) =
            self.outstanding.pop().expect("an I/O is outstanding");
        self.now = self.now.max(end);
        Ok(Completion {
            ticket: Ticket(ticket),
            submitted: Nanos(submitted),
            completed: Nanos(end),
            breakdown: (self.breakdown)(parts),
            status: (),
        })
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn split(&self, _: usize) -> Result<Option<Vec<Unlimited<B>>>> {
        Ok(None)
    }
}

/// The arrival of an I/O, its wait before submission, and the parts of its time after that.
type Expected = (u64, u64, [u64; 2]);

/// Return the expected times of one process on that device, from its I/Os alone: an I/O is submitted when it
/// has arrived, all earlier ones were submitted, and fewer than `depth` are outstanding; after a pause when none is.
fn expected_alone(pattern: &Trace, process: usize) -> Vec<Expected> {
    let stream = &pattern.pattern.streams[process];
    let mut sequence = Pattern::new(stream);
    let (mut ends, mut before): (Vec<u64>, u64) = (Vec::new(), 0);
    let mut expected = Vec::new();
    for _ in 0..stream.total_ios {
        let next = sequence.next_io();
        ends.sort_unstable();
        let depth = stream.queue_depth as usize;
        let free_at = if ends.len() < depth { 0 } else { ends[ends.len() - depth] };
        let last = ends.last().copied().unwrap_or(0);
        let (arrived, submitted) = match next.when {
            When::At(instant) => (Some(instant.0), free_at.max(before).max(instant.0)),
            When::After(Nanos(0)) => (None, free_at.max(before)),
            When::After(pause) => (None, last + pause.0),
        };
        let (arrived, parts) = (arrived.unwrap_or(submitted), parts(&next.io));
        ends.push(submitted + parts.iter().sum::<u64>());
        before = submitted;
        expected.push((arrived, submitted - arrived, parts));
    }
    expected
}

/// Return the columns of a run that `expected` gives, process after process.
fn expected_columns(expected: &[Expected], has_open_loop: bool, reports: bool) -> Vec<Vec<u64>> {
    let column = |value: fn(&Expected) -> u64| expected.iter().map(value).collect::<Vec<u64>>();
    let mut columns = vec![column(|io| io.0), column(|io| io.1 + io.2[0] + io.2[1])];
    if has_open_loop {
        columns.push(column(|io| io.1));
    }
    match (reports, has_open_loop) {
        (true, _) => columns.extend([column(|io| io.2[0]), column(|io| io.2[1])]),
        (false, true) => columns.push(column(|io| io.2[0] + io.2[1])),
        (false, false) => {}
    }
    columns
}

fn measured_columns(trace: &Trace) -> Vec<Vec<u64>> {
    let columns = &trace.columns;
    let measured = [columns.submit_ns.clone(), columns.response_time_ns.clone()];
    measured.into_iter().chain(columns.cause_ns.iter().cloned()).collect()
}

prop_compose! {
    fn one_pattern()(
        write in any::<bool>(), sectors in 1u64..64, ios in 1u64..60, depth in 1u64..6,
        time in 0usize..5, interval in 1u64..1500,
    ) -> Value {
        let mut spec = json!({
            "kind": "basic", "mode": if write { "write" } else { "read" }, "location": "random",
            "io_size": sectors * 512, "io_count": ios, "queue_depth": depth, "io_ignore": 0,
        });
        let (name, key) = [
            ("consecutive", ""), ("pause", "pause"), ("burst", "pause"), ("fixed", "interval"),
            ("poisson", "interval"),
        ][time];
        spec["time"] = name.into();
        if !key.is_empty() {
            spec[key] = interval.into();
        }
        if name == "burst" {
            spec["burst"] = 3.into();
        }
        spec
    }
}

proptest! {
    /// On a device without queues processes do not affect each other, and every I/O has the causes of its own
    /// process in the columns of the run.
    #[test]
    fn parallel_processes_have_their_own_times_and_causes(
        patterns in prop::collection::vec(one_pattern(), 1..5),
    ) {
        let open = patterns.iter().any(|pattern| pattern.get("interval").is_some());
        let spec = json!({"kind": "parallel", "patterns": patterns});
        let reporting = trace_on(&mut Unlimited::new(CauseTimes), spec.clone());
        let silent = trace_on(&mut Unlimited::new(|_| ()), spec);
        let expected: Vec<Expected> =
            (0..patterns.len()).flat_map(|process| expected_alone(&reporting, process)).collect();
        prop_assert_eq!(measured_columns(&reporting), expected_columns(&expected, open, true));
        prop_assert_eq!(measured_columns(&silent), expected_columns(&expected, open, false));
        for (trace, own) in [(&reporting, &["controller_ns", "cell_ns"][..]), (&silent, &[])] {
            prop_assert_eq!(trace.check_plausible(false), Ok(()));
            let names: Vec<&str> = match (open, own) {
                (false, own) => own.to_vec(),
                (true, []) => vec!["submission_wait_ns", "device_ns"],
                (true, own) => [&["submission_wait_ns"], own].concat(),
            };
            prop_assert_eq!(&trace.causes, &names);
        }
    }
}

/// One server, 100 ns a read and 700 ns a write, first come first served: reads one after the other beside
/// a write every 1000 ns. I/Os of one instant are submitted in the order of their arrival.
///
/// ```text
///  write  0 ─ 800       1000 ─ 1700              2000 ─ 2700
///  read   0 100 ─── 900 1000 ─────── 1800 1900 2000 ─────── 2800 2900 3000
/// ```
#[test]
fn closed_loop_reads_queue_behind_open_loop_writes() {
    let reads = json!({"kind": "basic", "mode": "read", "location": "random", "io_count": 9});
    let writes = json!({"kind": "basic", "mode": "write", "location": "random", "io_count": 3,
        "time": "fixed", "interval": 1000, "queue_depth": 4});
    let both = [
        (reads.clone(), [100, 800, 100, 800, 100, 100, 800, 100, 100].to_vec()),
        (writes, [800, 700, 700].to_vec()),
    ];
    // The read comes first where both begin at 0.
    let spec = json!({"kind": "parallel", "patterns": [both[0].0, both[1].0]});
    let trace = trace_on(&mut OneServer::new(), spec);
    let expected = [both[0].1.as_slice(), &both[1].1].concat();
    assert_eq!(trace.columns.response_time_ns, expected);
    assert_eq!(trace.causes, ["submission_wait_ns", "device_ns"]);
    assert_eq!(trace.columns.cause_ns, [vec![0; 12], expected]);
    assert_eq!(trace.check_plausible(false), Ok(()));
    assert_eq!(trace.columns.submit_ns[..9], [0, 100, 900, 1000, 1800, 1900, 2000, 2800, 2900]);
}

/// The same server, overloaded by reads that arrive every 60 ns with at most one outstanding, beside writes in a
/// closed loop of depth 2: only the reads wait for their submission.
#[test]
fn only_open_loop_ios_have_submission_waits() {
    let open = json!({"kind": "basic", "mode": "read", "location": "random", "io_count": 3,
        "time": "fixed", "interval": 60});
    let closed = json!({"kind": "basic", "mode": "write", "location": "random", "io_count": 2,
        "queue_depth": 2});
    let spec = json!({"kind": "parallel", "patterns": [open, closed]});
    let trace = trace_on(&mut OneServer::new(), spec);
    // 0: a read, then two writes. The second read, due at 60, is submitted at 100 behind both writes and
    // ends at 1600; the third, due at 120, is submitted then and ends at 1700.
    assert_eq!(trace.columns.submit_ns, [0, 60, 120, 0, 0]);
    assert_eq!(trace.columns.response_time_ns, [100, 1540, 1580, 800, 1500]);
    assert_eq!(trace.columns.cause_ns[0], [0, 40, 1480, 0, 0]);
    assert_eq!(trace.columns.cause_ns[1], [100, 1500, 100, 800, 1500]);
    assert_eq!(trace.check_plausible(false), Ok(()));
}
