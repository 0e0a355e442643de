//! The loop against a device whose every completion can be worked out by hand.

#[allow(dead_code)]
mod one_server;

use one_server::{OneServer, READ_NS, WRITE_NS, info, trace_of, trace_on};
use proptest::prelude::*;
use serde_json::{Value, json};
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Io, Mode, Nanos, Result, Ticket,
};
use uflip_engine::{Control, PatternSpec, Resolved, run, run_series};

#[test]
fn consecutive_ios_follow_without_a_gap() {
    let trace = trace_of(json!({"kind": "basic", "mode": "read", "location": "sequential",
        "io_count": 100}));
    let expected: Vec<u64> = (0..100).map(|i| i * READ_NS).collect();
    assert_eq!(trace.columns.submit_ns, expected, "times count from the start of the run");
    assert!(trace.columns.response_time_ns.iter().all(|ns| *ns == READ_NS));
    assert_eq!(trace.elapsed_ns(), 100 * READ_NS);
}

#[test]
fn pause_begins_at_the_previous_completion() {
    let trace = trace_of(json!({"kind": "basic", "mode": "write", "location": "sequential",
        "time": "burst", "burst": 2, "pause": 5_000, "io_count": 5}));
    assert_eq!(trace.columns.submit_ns, [0, 700, 6_400, 7_100, 12_800]);
}

#[test]
fn derived_columns_match_the_pattern() {
    let mix = json!({"kind": "mix", "ratio": 2, "io_count": 2, "io_ignore": 1,
        "first": {"mode": "read", "location": "sequential"},
        "second": {"mode": "write", "location": "sequential"}});
    let other = json!({"kind": "basic", "mode": "write", "location": "random", "io_count": 3,
        "io_ignore": 2});
    let trace = trace_of(json!({"kind": "parallel", "patterns": [mix, other]}));
    assert_eq!(trace.len(), 9);
    assert_eq!(trace.stream_of_each().collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(trace.component_of_each().collect::<Vec<_>>(), [0, 0, 1, 0, 0, 1, 0, 0, 0]);
    let ignored: Vec<u8> = trace.ignored_of_each().map(u8::from).collect();
    assert_eq!(ignored, [1, 1, 1, 0, 0, 0, 1, 1, 0]);
    let drawn = trace_of(json!({"kind": "mix", "first_percent": 30, "io_count": 500,
        "first": {"mode": "read", "location": "sequential"},
        "second": {"mode": "write", "location": "sequential"}}));
    let modes = drawn.ios().map(|io| u8::from(io.mode == Mode::Write));
    assert!(modes.eq(drawn.component_of_each()), "the pattern of each I/O");
    let writes: Vec<bool> = trace.ios().map(|io| io.mode == Mode::Write).collect();
    assert_eq!(writes, [false, false, true, false, false, true, true, true, true]);
}

#[test]
fn queued_trims_of_a_file_are_refused_before_any_io() {
    let pattern = r#"{"kind": "basic", "mode": "trim", "location": "random", "queue_depth": 4}"#;
    let pattern = PatternSpec::parse(pattern).unwrap().resolve(Bytes(1 << 30), Bytes(512)).unwrap();
    let mut device = OneServer { fail_after: 0, ..OneServer::new() };
    device.info.kind = DeviceKind::File;
    let error = run(&mut device, pattern, &Control::new(1)).unwrap_err();
    assert_eq!(error.kind(), uflip_core::ErrorKind::Usage);
    assert!(error.to_string().contains("queue_depth"), "{error}");
}

#[test]
fn device_error_ends_the_run() {
    let pattern = r#"{"kind": "basic", "mode": "read", "location": "random"}"#;
    let pattern = PatternSpec::parse(pattern).unwrap().resolve(Bytes(1 << 30), Bytes(512)).unwrap();
    let mut device = OneServer { fail_after: 10, ..OneServer::new() };
    let error = run(&mut device, pattern, &Control::new(1)).unwrap_err();
    assert_eq!(error.to_string(), "out of order");
}

#[test]
fn cancelled_run_returns_interrupted() {
    let pattern = r#"{"kind": "basic", "mode": "read", "location": "random"}"#;
    let pattern = PatternSpec::parse(pattern).unwrap().resolve(Bytes(1 << 30), Bytes(512)).unwrap();
    let control = Control::new(1);
    control.cancel();
    let error = run(&mut OneServer::new(), pattern, &control).unwrap_err();
    assert_eq!(error.kind(), uflip_core::ErrorKind::Interrupted);
    assert_eq!(control.progress().0, 0);
}

/// A device in real time whose third wait cancels the run.
struct Interrupted<'a> {
    device: OneServer,
    waits: usize,
    control: &'a Control,
}

impl Device for Interrupted<'_> {
    type Request = Io;
    type Breakdown = ();
    type Status = ();

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }
    fn now(&self) -> Nanos {
        self.device.now()
    }
    fn wait_until(&mut self, t: Nanos) {
        self.device.wait_until(t);
        self.waits += 1;
        if self.waits == 3 {
            self.control.cancel();
        }
    }
    fn submit(&mut self, io: &Io) -> Result<Ticket> {
        self.device.submit(io)
    }
    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.device.next_completion(before)
    }
    fn complete(&mut self) -> Result<Completion<()>> {
        self.device.complete()
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn split(&self, _: usize) -> Result<Option<Vec<Self>>> {
        Ok(None)
    }
}

#[test]
fn cancelling_interrupts_pauses_and_further_ios() {
    const HOUR: u64 = 3_600_000_000_000;
    for depth in [1, 4] {
        for (time, length) in [("pause", "pause"), ("fixed", "interval")] {
            let spec = json!({"kind": "basic", "mode": "write", "location": "random", "io_count": 9,
                "queue_depth": depth, "time": time, length: HOUR});
            let control = Control::new(1);
            let mut device = OneServer::new();
            device.info.simulated = false;
            let mut device = Interrupted { device, waits: 0, control: &control };
            let error =
                run(&mut device, resolved(&spec), &control).expect_err("the run is cancelled");
            assert_eq!(error.kind(), uflip_core::ErrorKind::Interrupted, "{time} {depth}");
            assert_eq!(device.device.submitted, 1, "{time} {depth}");
            assert!(device.now() < Nanos(1_000_000_000), "{time} {depth}");
        }
    }
}

/// A server for every I/O, so that a later one may overtake: I/O number i takes `services[i]`.
struct ManyServers {
    info: DeviceInfo,
    now: u64,
    services: Vec<u64>,
    /// Outstanding, the earliest end first.
    queue: std::collections::BTreeSet<(u64, Ticket, u64)>,
    submitted: usize,
}

impl Device for ManyServers {
    type Request = Io;
    type Breakdown = ();
    type Status = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
    fn wait_until(&mut self, t: Nanos) {
        self.now = self.now.max(t.0);
    }
    fn submit(&mut self, _: &Io) -> Result<Ticket> {
        let ticket = Ticket(self.submitted as u64);
        self.queue.insert((self.now + self.services[self.submitted], ticket, self.now));
        self.submitted += 1;
        Ok(ticket)
    }
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.queue.first().map(|(end, _, _)| Nanos(*end))
    }
    fn complete(&mut self) -> Result<Completion<()>> {
        let (end, ticket, submitted) = self.queue.pop_first().expect("an I/O is outstanding");
        self.now = self.now.max(end);
        let (submitted, completed) = (Nanos(submitted), Nanos(end));
        Ok(Completion { ticket, submitted, completed, breakdown: (), status: () })
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
    fn split(&self, _: usize) -> Result<Option<Vec<ManyServers>>> {
        Ok(None)
    }
}

/// Return the submission of each I/O: the first instant at which fewer than `depth` earlier ones are
/// outstanding, and not before the previous submission. A pause begins when all earlier ones have ended.
fn expected_submissions(services: &[u64], depth: usize, burst: usize, pause: u64) -> Vec<u64> {
    let (mut expected_submissions, mut ends) = (Vec::<u64>::new(), Vec::<u64>::new());
    for (i, service) in services.iter().enumerate() {
        let mut time = expected_submissions.last().copied().unwrap_or(0);
        if i > 0 && i % burst == 0 {
            time = ends.iter().max().unwrap() + pause;
        }
        let outstanding = |time: u64| ends.iter().filter(|end| **end > time).count();
        while outstanding(time) >= depth {
            time = *ends.iter().filter(|end| **end > time).min().unwrap();
        }
        expected_submissions.push(time);
        ends.push(time + service);
    }
    expected_submissions
}

proptest! {
    #[test]
    fn queue_is_kept_full(
        services in proptest::collection::vec(1u64..500, 2..120), depth in 1usize..20,
        burst in 1usize..40, pause in 1u64..2_000,
    ) {
        let mut device = ManyServers { info: info("many-servers"), now: 23,
            services: services.clone(), queue: Default::default(), submitted: 0 };
        let trace = trace_on(&mut device, json!({"kind": "basic", "mode": "write", "location": "sequential",
            "time": "burst", "burst": burst, "pause": pause, "queue_depth": depth,
            "io_size": 512, "io_count": services.len()}));
        prop_assert_eq!(&trace.columns.submit_ns, &expected_submissions(&services, depth, burst, pause));
        prop_assert_eq!(&trace.columns.response_time_ns, &services, "in the order of submission");
        let offsets: Vec<u64> = trace.ios().map(|io| io.offset.0).collect();
        let expected: Vec<u64> = (0..services.len() as u64).map(|i| i * 512).collect();
        prop_assert_eq!(offsets, expected);
    }

    /// On one server, a queue of n equals n submitters.
    #[test]
    fn queued_ios_wait_for_each_other_at_the_device(depth in 1u64..12, count in 1u64..60) {
        let trace = trace_of(json!({"kind": "mix", "ratio": 1, "io_count": count, "queue_depth": depth,
            "first": {"mode": "read", "location": "random"},
            "second": {"mode": "read", "location": "sequential"}}));
        prop_assert_eq!(trace.elapsed_ns(), 2 * count * READ_NS);
        for i in 0..2 * count {
            let expected = (i + 1).min(depth) * READ_NS;
            prop_assert_eq!(trace.columns.response_time_ns[i as usize], expected, "I/O {}", i);
        }
    }

    /// N closed-loop submitters on one first-come-first-served server: the server is never idle, so
    /// the run takes the sum of all service times, and after the first round each submitter waits for
    /// all others.
    #[test]
    fn processes_wait_for_each_other_at_the_device(degree in 1u64..12, count in 1u64..60) {
        let trace = trace_of(json!({"kind": "basic", "mode": "read", "location": "random",
            "io_size": 512, "io_count": count, "parallel_degree": degree}));
        prop_assert_eq!(trace.elapsed_ns(), degree * count * READ_NS);
        for process in 0..degree {
            for i in 0..count {
                let index = (process * count + i) as usize;
                let expected = if i == 0 { (process + 1) * READ_NS } else { degree * READ_NS };
                prop_assert_eq!(trace.columns.response_time_ns[index], expected, "I/O {} of {}", i, process);
            }
        }
    }
}

fn resolved(spec: &Value) -> Resolved {
    let spec = PatternSpec::parse(&spec.to_string()).expect("a valid pattern");
    spec.resolve(Bytes(1 << 30), Bytes(512)).expect("the pattern fits the device")
}

#[test]
fn series_parts_run_back_to_back() {
    let basic = |mode: &str, count: u64| json!({"kind": "basic", "mode": mode, "location": "random", "io_count": count});
    let specs = [basic("read", 5), basic("write", 3), basic("read", 7)];
    let mut device = OneServer::new();
    let control = Control::new(1);
    let parts = run_series(&mut device, specs.iter().map(resolved).collect(), &control);
    let parts = parts.expect("the series succeeds");
    let began: Vec<u64> = parts.iter().map(|part| part.began.0).collect();
    assert_eq!(began, [0, 5 * READ_NS, 5 * READ_NS + 3 * WRITE_NS]);
    assert_eq!(control.progress().0, 15, "I/Os are counted over all parts");
    for (part, spec) in parts.iter().zip(&specs) {
        assert_eq!(part.trace.columns.submit_ns[0], 0, "times count from the begin of the part");
        // As if it had been run alone.
        let alone =
            run(&mut OneServer::new(), resolved(spec), &Control::new(1)).expect("the run succeeds");
        assert_eq!(part.trace.columns.submit_ns, alone.columns.submit_ns);
        assert_eq!(part.trace.columns.response_time_ns, alone.columns.response_time_ns);
        assert_eq!(part.trace.pattern.canonical, alone.pattern.canonical);
    }
}

#[test]
fn series_stops_at_the_first_error_and_refuses_stop_rules() {
    let read = json!({"kind": "basic", "mode": "read", "location": "random", "io_count": 64});
    let mut device = OneServer::new();
    device.fail_after = 70;
    let series = |device: &mut OneServer, specs: &[&Value]| {
        let patterns = specs.iter().map(|spec| resolved(spec)).collect();
        run_series(device, patterns, &Control::new(1)).map(|parts| parts.len())
    };
    let failed = series(&mut device, &[&read, &read]).expect_err("the second part fails");
    assert_eq!(failed.parts().0, "out of order");
    let open = json!({"kind": "basic", "mode": "read", "location": "random", "stop": {}});
    let refused = series(&mut OneServer::new(), &[&read, &open])
        .expect_err("a pattern without a fixed length is refused");
    assert!(refused.to_string().contains("fixed length"), "{refused}");
}
