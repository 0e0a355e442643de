//! Runs that find their own length, on a device whose response times are known in advance.

use serde_json::{Value, json};
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Io, Mode, Nanos, Result, Ticket,
};
use uflip_engine::{Control, PatternSpec, Trace, run};

/// One server in virtual time; the n-th request of each mode takes the time that its function returns.
struct Scripted {
    info: DeviceInfo,
    now: u64,
    outstanding: Vec<Completion<(), ()>>,
    counts: [u64; 2],
    reads: fn(u64) -> u64,
    writes: fn(u64) -> u64,
    tickets: u64,
}

impl Scripted {
    fn new(reads: fn(u64) -> u64, writes: fn(u64) -> u64) -> Scripted {
        let info = DeviceInfo {
            url: "scripted".into(),
            kind: DeviceKind::Sim,
            simulated: true,
            model: String::new(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: Bytes(1 << 30),
            sector_bytes: Bytes(512),
            clock: "virtual",
            io: "virtual".into(),
            data: "none",
            details: serde_json::Map::new(),
        };
        let outstanding = Vec::new();
        Scripted { info, now: 0, outstanding, counts: [0, 0], reads, writes, tickets: 0 }
    }
}

impl Device for Scripted {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

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
        let mode = usize::from(io.mode == Mode::Write);
        let time = [self.reads, self.writes][mode](self.counts[mode]);
        self.counts[mode] += 1;
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.outstanding.push(Completion {
            ticket,
            submitted: Nanos(self.now),
            completed: Nanos(self.now + time),
            breakdown: (),
            status: (),
        });
        self.outstanding.sort_by_key(|completion| completion.completed);
        Ok(ticket)
    }
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.outstanding.first().map(|completion| completion.completed)
    }
    fn complete(&mut self) -> Result<Completion<()>> {
        let completion = self.outstanding.remove(0);
        self.now = self.now.max(completion.completed.0);
        Ok(completion)
    }
    fn split(&self, _: usize) -> Result<Option<Vec<Self>>> {
        Ok(None)
    }
    fn counters(&self) -> Option<Counters> {
        None
    }
}

fn measured(device: &mut Scripted, spec: &Value) -> Trace {
    let info = device.info.clone();
    let pattern = PatternSpec::parse(&spec.to_string())
        .and_then(|spec| spec.resolve(info.capacity_bytes, info.sector_bytes))
        .expect("a valid pattern");
    let control = Control::new(pattern.streams.len());
    run(device, pattern, &control).expect("the run succeeds")
}

fn stop_record(trace: &Trace) -> &Value {
    trace.stop_record.as_ref().expect("the run has a stopping record")
}

/// uFLIP figure 3: 125 cheap writes, then two of 0.4 ms and one of 27 ms in turn. (Were the expensive
/// one the first of three, the last two of the start-up could as well be of the running phase.)
fn mtron(index: u64) -> u64 {
    if index < 125 || index % 3 != 1 { 400_000 } else { 27_000_000 }
}

fn steady(_: u64) -> u64 {
    100_000
}

#[test]
fn stop_rule_ignores_start_up_and_averages_whole_periods() {
    let mut device = Scripted::new(steady, mtron);
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "stop": {}});
    let trace = measured(&mut device, &spec);
    assert_eq!(stop_record(&trace)["converged"], true);
    assert_eq!(stop_record(&trace)["ended_by"], "converged");
    assert_eq!(stop_record(&trace)["series"][0]["period_ios"], 3);
    assert_eq!(trace.pattern.canonical["io_ignore"], 125);
    assert_eq!(trace.pattern.canonical["io_count"], trace.len());
    let mean = stop_record(&trace)["series"][0]["mean_ns"].as_f64().expect("a number");
    assert!((mean - (2.0 * 400_000.0 + 27_000_000.0) / 3.0).abs() < 1.0, "{mean}");
    assert!(trace.len() < 1400, "{}", trace.len());
    assert_eq!(trace.columns.submit_ns.len(), trace.ignored_of_each().count());
}

#[test]
fn stored_pattern_repeats_the_run_without_stop_rule() {
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "stop": {}});
    let first = measured(&mut Scripted::new(steady, mtron), &spec);
    let repeated = measured(&mut Scripted::new(steady, mtron), &first.pattern.canonical);
    assert_eq!(repeated.columns.response_time_ns, first.columns.response_time_ns);
    assert_eq!(repeated.pattern, first.pattern);
    assert_eq!(repeated.stop_record, None);
}

/// uFLIP §4.2: of a mix with many reads 512 I/Os show only the cheap writes of the start-up.
#[test]
fn mix_runs_until_its_rare_pattern_converges() {
    let part = |mode: &str| json!({"mode": mode, "location": "random"});
    for ratio in [4, 16, 64] {
        let spec = json!({"kind": "mix", "first": part("read"), "second": part("write"),
            "ratio": ratio, "stop": {}});
        let trace = measured(&mut Scripted::new(steady, mtron), &spec);
        assert_eq!(stop_record(&trace)["converged"], true, "{ratio}");
        assert_eq!(stop_record(&trace)["startup_ios"], 125, "counted in writes, ratio {ratio}");
        let series = stop_record(&trace)["series"].as_array().expect("a list of series");
        assert!((series[0]["mean_ns"].as_f64().expect("a number") - 100_000.0).abs() < 1.0);
        let writes = series[1]["mean_ns"].as_f64().expect("a number");
        assert!((writes - 27_800_000.0 / 3.0).abs() < 1.0, "{writes}");
        assert_eq!(trace.len() as u64 % (ratio + 1), 0, "whole rounds");
    }
}

#[test]
fn processes_end_at_the_same_io_count() {
    let spec = json!({"kind": "basic", "mode": "write", "location": "random",
        "parallel_degree": 3, "stop": {}});
    let trace = measured(&mut Scripted::new(steady, steady), &spec);
    assert_eq!(stop_record(&trace)["converged"], true);
    assert_eq!(trace.len() as u64, 3 * trace.pattern.streams[0].total_ios);
    assert_eq!(trace.pattern.canonical["parallel_degree"], 3);
}

/// A cheap and an expensive pattern side by side: each has a series, and they end together.
#[test]
fn parallel_patterns_converge_separately_and_end_together() {
    let part = |mode: &str, degree: u64| json!({"kind": "basic", "mode": mode, "location": "random", "parallel_degree": degree});
    let mix = json!({"kind": "mix", "first": {"mode": "read", "location": "random"},
        "second": {"mode": "read", "location": "sequential"}, "ratio": 2});
    let spec = json!({"kind": "parallel", "stop": {"max_ios": 200_000},
        "patterns": [part("read", 2), part("write", 1), mix]});
    let trace = measured(&mut Scripted::new(steady, mtron), &spec);
    assert_eq!(stop_record(&trace)["converged"], true, "{}", stop_record(&trace));
    let series = stop_record(&trace)["series"].as_array().expect("a list of series");
    let means: Vec<f64> =
        series.iter().map(|verdict| verdict["mean_ns"].as_f64().expect("a number")).collect();
    for (mean, truth) in means.iter().zip([1e5, 27_800_000.0 / 3.0, 1e5, 1e5]) {
        assert!((mean / truth - 1.0).abs() < 1e-6, "{means:?}");
    }
    let parts = trace.pattern.canonical["patterns"].as_array().expect("a list of patterns");
    let count = |part: usize, key: &str| parts[part][key].as_u64().expect("a number");
    assert_eq!(count(1, "io_ignore"), 125);
    assert_eq!((count(0, "io_ignore"), count(2, "io_ignore")), (0, 0));
    // Reads take 0.1 ms and writes 9.3 ms; a round of the mix is three reads.
    assert!(count(0, "io_count") > 80 * count(1, "io_count"));
    assert!(count(0, "io_count").abs_diff(3 * count(2, "io_count")) <= 4);
    assert!((1024..1400).contains(&count(1, "io_count")), "{}", count(1, "io_count"));
    // No pattern continues after another has ended.
    let ends = |process: u16| {
        let own = trace.stream_of_each().enumerate().filter(|(_, stream)| *stream == process);
        own.map(|(io, _)| trace.columns.submit_ns[io] + trace.columns.response_time_ns[io])
            .max()
            .expect("the process has I/Os")
    };
    let last = (0..4).map(ends).max().expect("at least one process");
    assert!((0..4).all(|process| last - ends(process) <= 27_000_000));
    let repeated = measured(&mut Scripted::new(steady, mtron), &trace.pattern.canonical);
    assert_eq!(repeated.pattern, trace.pattern);
}

#[test]
fn budget_of_one_parallel_pattern_ends_all() {
    let part = |mode: &str| json!({"kind": "basic", "mode": mode, "location": "random"});
    let spec = |stop: Value| json!({"kind": "parallel", "stop": stop, "patterns": [part("read"), part("write")]});
    let io_counts = |trace: &Trace| {
        let parts =
            trace.pattern.canonical["patterns"].as_array().expect("a list of patterns").clone();
        [0, 1].map(|part: usize| parts[part]["io_count"].as_u64().expect("a number"))
    };
    let trace = measured(&mut Scripted::new(steady, mtron), &spec(json!({"max_ios": 5000})));
    assert_eq!(stop_record(&trace)["ended_by"], "max_ios");
    let [reads, writes] = io_counts(&trace);
    assert!(reads == 5000 && writes < 300, "{reads} reads and {writes} writes");
    let trace = measured(&mut Scripted::new(steady, mtron), &spec(json!({"max_time_ns": 1})));
    assert_eq!(stop_record(&trace)["ended_by"], "max_time_ns");
    assert_eq!(io_counts(&trace), [1, 1]);
    // 1,000 writes of 32 KiB, over all processes.
    let bytes = json!({"max_bytes_written": 1000 * (32 << 10)});
    let trace = measured(&mut Scripted::new(steady, steady), &spec(bytes));
    assert_eq!(stop_record(&trace)["ended_by"], "max_bytes_written");
    assert_eq!(io_counts(&trace)[1].max(io_counts(&trace)[0]), 1000);
}

#[test]
fn stop_rule_inside_parallel_patterns_is_refused() {
    let message = |spec: Value| {
        PatternSpec::parse(&spec.to_string())
            .and_then(|spec| spec.resolve(Bytes(1 << 30), Bytes(512)))
            .expect_err("the rule contradicts the pattern")
            .to_string()
    };
    let part = json!({"kind": "basic", "mode": "read", "location": "random"});
    let with = |key: &str, value: Value| {
        let mut part = part.clone();
        part[key] = value;
        part
    };
    let inside = json!({"kind": "parallel", "patterns": [with("stop", json!({})), part]});
    assert!(message(inside).contains("beside 'patterns'"));
    let long =
        json!({"kind": "parallel", "stop": {}, "patterns": [part, with("io_count", json!(9))]});
    assert!(message(long).contains("'io_count' and 'stop'"));
}

#[test]
fn exhausted_budget_ends_the_run_and_is_recorded() {
    // Never converges: every I/O takes a little longer than the one before.
    fn rising(index: u64) -> u64 {
        100_000 + 100 * index
    }
    let rule = |stop: Value| json!({"kind": "basic", "mode": "write", "location": "sequential", "io_size": 4096, "stop": stop});
    let cases = [
        (json!({"max_ios": 3000}), "max_ios", 3000),
        (json!({"max_bytes_written": 8_192_000}), "max_bytes_written", 2000),
    ];
    for (stop, budget, ios) in cases {
        let trace = measured(&mut Scripted::new(steady, rising), &rule(stop));
        assert_eq!(stop_record(&trace)["converged"], false);
        assert_eq!(stop_record(&trace)["ended_by"], budget);
        assert_eq!(trace.len(), ios);
        assert!(stop_record(&trace)["series"][0]["half_width_ns"].is_number());
        assert_ne!(stop_record(&trace)["series"][0]["reasons"], json!([]));
    }
    let limit = 50_000_000;
    let trace = measured(&mut Scripted::new(steady, rising), &rule(json!({"max_time_ns": limit})));
    assert_eq!(stop_record(&trace)["ended_by"], "max_time_ns");
    let ends =
        |index: usize| trace.columns.submit_ns[index] + trace.columns.response_time_ns[index];
    assert!(ends(trace.len() - 1) >= limit && ends(trace.len() - 2) < limit);
    // Too short to evaluate.
    let trace = measured(&mut Scripted::new(steady, rising), &rule(json!({"max_time_ns": 1})));
    assert_eq!((trace.len(), &stop_record(&trace)["converged"]), (1, &json!(false)));
}

#[test]
fn outstanding_ios_are_judged_in_order() {
    // With four outstanding the cheap ones overtake the expensive one.
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "queue_depth": 4,
        "stop": {}});
    let trace = measured(&mut Scripted::new(steady, mtron), &spec);
    assert_eq!(stop_record(&trace)["converged"], true);
    assert_eq!(stop_record(&trace)["startup_ios"], 125);
    assert!(trace.columns.response_time_ns.iter().all(|time| *time != u64::MAX));
}

#[test]
fn stop_rule_with_io_count_is_refused() {
    let resolved = |stop: Value, key: &str| {
        let mut spec =
            json!({"kind": "basic", "mode": "write", "location": "random", "stop": stop});
        if !key.is_empty() {
            spec[key] = json!(100);
        }
        PatternSpec::parse(&spec.to_string())
            .and_then(|spec| spec.resolve(Bytes(1 << 30), Bytes(512)))
            .expect_err("the rule contradicts the pattern")
            .to_string()
    };
    assert!(resolved(json!({}), "io_count").contains("'io_count' and 'stop'"));
    assert!(resolved(json!({}), "io_ignore").contains("'io_ignore' and 'stop'"));
    assert!(resolved(json!({"confidence": 1.5}), "").contains("confidence"));
    assert!(resolved(json!({"half_width": -1}), "").contains("half_width"));
    assert!(resolved(json!({"max_ios": 8}), "").contains("max_ios"));
    assert!(resolved(json!({"min_ios": 64, "max_ios": 50}), "").contains("min_ios"));
    assert!(resolved(json!({"max_bytes_written": 512}), "").contains("max_bytes_written"));
    assert!(resolved(json!({"max_iops": 512}), "").contains("max_iops"));
}
