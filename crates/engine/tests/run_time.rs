//! Runs that end by time, on a device whose every completion can be worked out by hand.

#[allow(dead_code)]
mod one_server;

use one_server::{OneServer, READ_NS, trace_of};
use serde_json::{Value, json};
use uflip_core::Bytes;
use uflip_engine::{Control, PatternSpec, run};

fn reads(more: &Value) -> Value {
    let mut spec = json!({"kind": "basic", "mode": "read", "location": "sequential"});
    let fields = more.as_object().expect("fields").clone();
    spec.as_object_mut().expect("a pattern").extend(fields);
    spec
}

#[test]
fn no_io_begins_at_the_end_of_the_time_or_later() {
    for (run_time, ios) in [(1, 1), (READ_NS, 1), (READ_NS + 1, 2), (1000 * READ_NS, 1000)] {
        let trace = trace_of(reads(&json!({"run_time": run_time})));
        assert_eq!(trace.columns.submit_ns.len() as u64, ios, "{run_time} ns");
        assert_eq!(trace.pattern.canonical["io_count"], ios);
        assert_eq!(trace.pattern.canonical.get("run_time"), None, "its I/Os repeat it");
    }
}

#[test]
fn queue_is_full_until_the_end_and_completes() {
    // 4 I/Os at once, then one at each completion before the end.
    let trace = trace_of(reads(&json!({"run_time": 10 * READ_NS, "queue_depth": 4})));
    assert_eq!(trace.columns.submit_ns.len(), 4 + 9);
    assert_eq!(trace.elapsed_ns(), 13 * READ_NS);
}

#[test]
fn ramp_comes_before_the_time_and_is_ignored() {
    let trace = trace_of(reads(&json!({"ramp_time": 5 * READ_NS, "run_time": 7 * READ_NS})));
    let canonical = &trace.pattern.canonical;
    assert_eq!((&canonical["io_count"], &canonical["io_ignore"]), (&json!(12), &json!(5)));
    let trace = trace_of(reads(&json!({"ramp_time": 5 * READ_NS, "io_count": 8, "io_ignore": 6})));
    let canonical = &trace.pattern.canonical;
    assert_eq!((&canonical["io_count"], &canonical["io_ignore"]), (&json!(8), &json!(6)));
}

#[test]
fn arrivals_and_pauses_count_as_time() {
    let open = json!({"time": "fixed", "interval": 1000, "run_time": 5000});
    assert_eq!(trace_of(reads(&open)).columns.submit_ns, [0, 1000, 2000, 3000, 4000]);
    let pauses = json!({"time": "pause", "pause": 900, "run_time": 2500});
    assert_eq!(trace_of(reads(&pauses)).columns.submit_ns, [0, 1000, 2000]);
}

#[test]
fn patterns_side_by_side_end_at_their_own_times() {
    let part = |more: Value| {
        let mut part = reads(&more);
        part["time"] = json!("fixed");
        part["interval"] = json!(1000);
        part
    };
    let patterns = [json!({"run_time": 3000}), json!({"run_time": 9000}), json!({"io_count": 5})];
    let trace = trace_of(json!({"kind": "parallel", "patterns": patterns.map(part)}));
    let counts: Vec<_> = trace.pattern.canonical["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["io_count"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [3, 9, 5]);
}

#[test]
fn mix_for_a_time_is_the_beginning_of_a_longer_one() {
    let mix = |more: Value| {
        let mut spec = json!({"kind": "mix", "first_percent": 70,
            "first": {"mode": "read", "location": "random"},
            "second": {"mode": "write", "location": "random"}});
        spec.as_object_mut().expect("a mix").extend(more.as_object().expect("fields").clone());
        trace_of(spec)
    };
    let (timed, longer) = (mix(json!({"run_time": 100_000})), mix(json!({"io_count": 1000})));
    let ios = timed.columns.submit_ns.len();
    assert_eq!(timed.columns.submit_ns, longer.columns.submit_ns[..ios]);
    assert!(longer.columns.submit_ns[ios] >= 100_000, "the next one would begin too late");
    assert_eq!(timed.pattern.totals.total_ios, ios as u64);
}

#[test]
fn times_without_a_measured_io_and_contradictions_are_errors() {
    let refused = |spec: Value| {
        let pattern = PatternSpec::parse(&spec.to_string()).unwrap();
        let resolved = pattern.resolve(Bytes(1 << 30), Bytes(512));
        let outcome =
            resolved.and_then(|pattern| run(&mut OneServer::new(), pattern, &Control::new(1)));
        outcome.expect_err("it is refused").to_string()
    };
    assert!(refused(reads(&json!({"run_time": 0}))).contains("run_time"));
    assert!(refused(reads(&json!({"run_time": 5, "stop": {}}))).contains("contradict"));
    let in_ramp = json!({"ramp_time": 1000 * READ_NS, "io_count": 10});
    assert!(refused(reads(&in_ramp)).contains("before it measured"));
    let mix = json!({"kind": "mix", "ratio": 1,
        "first": {"mode": "read", "location": "random", "run_time": 5},
        "second": {"mode": "write", "location": "random"}});
    assert!(refused(mix).contains("does not apply to one part"));
}
