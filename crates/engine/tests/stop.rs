//! Runs that find their own length, on a device whose response times are known in advance.

use serde_json::{Value, json};
use uflip_core::{
    Bytes, Completion, Counters, Device, DeviceInfo, DeviceKind, Io, Mode, Nanos, Result, Ticket,
};
use uflip_engine::{Control, PatternSpec, Trace, run};

/// One server in virtual time; the n-th request of each mode takes what its function says.
struct Scripted {
    info: DeviceInfo,
    now: u64,
    under_way: Vec<Completion<(), ()>>,
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
        let under_way = Vec::new();
        Scripted { info, now: 0, under_way, counts: [0, 0], reads, writes, tickets: 0 }
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
        self.under_way.push(Completion {
            ticket,
            submitted: Nanos(self.now),
            completed: Nanos(self.now + time),
            breakdown: (),
            status: (),
        });
        self.under_way.sort_by_key(|completion| completion.completed);
        Ok(ticket)
    }
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.under_way.first().map(|completion| completion.completed)
    }
    fn complete(&mut self) -> Result<Completion<()>> {
        let completion = self.under_way.remove(0);
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
    run(device, pattern, &control).expect("it runs")
}

fn ended(trace: &Trace) -> &Value {
    trace.ended.as_ref().expect("a run with a rule says how it ended")
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
fn the_start_up_is_ignored_and_the_mean_is_that_of_whole_periods() {
    let mut device = Scripted::new(steady, mtron);
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "stop": {}});
    let trace = measured(&mut device, &spec);
    assert_eq!(ended(&trace)["converged"], true);
    assert_eq!(ended(&trace)["ended_by"], "converged");
    assert_eq!(ended(&trace)["series"][0]["period_ios"], 3);
    assert_eq!(trace.pattern.canonical["io_ignore"], 125);
    assert_eq!(trace.pattern.canonical["io_count"], trace.len());
    let mean = ended(&trace)["series"][0]["mean_ns"].as_f64().expect("a number");
    assert!((mean - (2.0 * 400_000.0 + 27_000_000.0) / 3.0).abs() < 1.0, "{mean}");
    assert!(trace.len() < 1400, "{}", trace.len());
    assert_eq!(trace.submit_ns.len(), trace.ignored_of_each().count());
}

#[test]
fn a_stored_pattern_repeats_the_run_without_the_rule() {
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "stop": {}});
    let first = measured(&mut Scripted::new(steady, mtron), &spec);
    let again = measured(&mut Scripted::new(steady, mtron), &first.pattern.canonical);
    assert_eq!(again.response_time_ns, first.response_time_ns);
    assert_eq!(again.pattern, first.pattern);
    assert_eq!(again.ended, None);
}

/// uFLIP §4.2: of a mix with many reads 512 I/Os show only the cheap writes of the start-up.
#[test]
fn a_mix_runs_until_its_rare_pattern_is_known() {
    let part = |mode: &str| json!({"mode": mode, "location": "random"});
    for ratio in [4, 16, 64] {
        let spec = json!({"kind": "mix", "first": part("read"), "second": part("write"),
            "ratio": ratio, "stop": {}});
        let trace = measured(&mut Scripted::new(steady, mtron), &spec);
        assert_eq!(ended(&trace)["converged"], true, "{ratio}");
        assert_eq!(ended(&trace)["startup_ios"], 125, "counted in writes, ratio {ratio}");
        let series = ended(&trace)["series"].as_array().expect("a series for each pattern");
        assert!((series[0]["mean_ns"].as_f64().expect("reads") - 100_000.0).abs() < 1.0);
        let writes = series[1]["mean_ns"].as_f64().expect("writes");
        assert!((writes - 27_800_000.0 / 3.0).abs() < 1.0, "{writes}");
        assert_eq!(trace.len() as u64 % (ratio + 1), 0, "whole rounds");
    }
}

#[test]
fn processes_end_at_the_same_number_of_ios() {
    let spec = json!({"kind": "basic", "mode": "write", "location": "random",
        "parallel_degree": 3, "stop": {}});
    let trace = measured(&mut Scripted::new(steady, steady), &spec);
    assert_eq!(ended(&trace)["converged"], true);
    assert_eq!(trace.len() as u64, 3 * trace.pattern.streams[0].total_ios);
    assert_eq!(trace.pattern.canonical["parallel_degree"], 3);
}

#[test]
fn budgets_end_a_run_and_say_so() {
    // No end of it: every I/O takes a little longer than the one before.
    fn rising(index: u64) -> u64 {
        100_000 + 100 * index
    }
    let rule = |stop: Value| json!({"kind": "basic", "mode": "write", "location": "sequential", "io_size": 4096, "stop": stop});
    let cases = [
        (json!({"max_ios": 3000}), "max_ios", 3000),
        (json!({"max_bytes_written": 8_192_000}), "max_bytes_written", 2000),
    ];
    for (stop, by, ios) in cases {
        let trace = measured(&mut Scripted::new(steady, rising), &rule(stop));
        assert_eq!(ended(&trace)["converged"], false);
        assert_eq!(ended(&trace)["ended_by"], by);
        assert_eq!(trace.len(), ios);
        assert!(ended(&trace)["series"][0]["half_width_ns"].is_number());
        assert_ne!(ended(&trace)["series"][0]["reasons"], json!([]));
    }
    let limit = 50_000_000;
    let trace = measured(&mut Scripted::new(steady, rising), &rule(json!({"max_time_ns": limit})));
    assert_eq!(ended(&trace)["ended_by"], "max_time_ns");
    let ends = |index: usize| trace.submit_ns[index] + trace.response_time_ns[index];
    assert!(ends(trace.len() - 1) >= limit && ends(trace.len() - 2) < limit);
    // Too short to look at, and no more than what came back.
    let trace = measured(&mut Scripted::new(steady, rising), &rule(json!({"max_time_ns": 1})));
    assert_eq!((trace.len(), &ended(&trace)["converged"]), (1, &json!(false)));
}

#[test]
fn several_ios_under_way_are_judged_in_order() {
    // With four under way the cheap ones overtake the expensive one.
    let spec = json!({"kind": "basic", "mode": "write", "location": "random", "queue_depth": 4,
        "stop": {}});
    let trace = measured(&mut Scripted::new(steady, mtron), &spec);
    assert_eq!(ended(&trace)["converged"], true);
    assert_eq!(ended(&trace)["startup_ios"], 125);
    assert!(trace.response_time_ns.iter().all(|time| *time != u64::MAX));
}

#[test]
fn a_rule_and_a_length_contradict_each_other() {
    let resolved = |stop: Value, key: &str| {
        let mut spec =
            json!({"kind": "basic", "mode": "write", "location": "random", "stop": stop});
        if !key.is_empty() {
            spec[key] = json!(100);
        }
        PatternSpec::parse(&spec.to_string())
            .and_then(|spec| spec.resolve(Bytes(1 << 30), Bytes(512)))
            .expect_err("a contradiction")
            .to_string()
    };
    assert!(resolved(json!({}), "io_count").contains("'io_count' and 'stop'"));
    assert!(resolved(json!({}), "io_ignore").contains("'io_ignore' and 'stop'"));
    assert!(resolved(json!({"confidence": 1.5}), "").contains("confidence"));
    assert!(resolved(json!({"half_width": -1}), "").contains("half_width"));
    assert!(resolved(json!({"max_ios": 8}), "").contains("max_ios"));
    assert!(resolved(json!({"min_ios": 64, "max_ios": 50}), "").contains("min_ios"));
    assert!(resolved(json!({"max_bytes_written": 512}), "").contains("max_bytes_written"));
    assert!(resolved(json!({"max_iops": 512}), "").contains("unknown field"));
}
