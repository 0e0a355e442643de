//! Open loops and lists, on a device whose every completion can be worked out by hand.

#[allow(dead_code)]
mod one_server;

use std::sync::Arc;

use one_server::{OneServer, READ_NS, WRITE_NS, trace_of};
use proptest::prelude::*;
use serde_json::json;
use uflip_core::{Bytes, Io, Mode};
use uflip_engine::{Control, IoList, PatternSpec, Trace, run};

fn open(time: &str, interval: u64, depth: u64, io_count: u64) -> Trace {
    trace_of(json!({"kind": "basic", "mode": "write", "location": "random", "time": time,
        "interval": interval, "queue_depth": depth, "io_count": io_count}))
}

fn mean(times: &[u64]) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

/// Arrivals every I, service S > I: number i waits for the i before it, i × (S − I), whether it does so
/// in the queue of the device or before it.
#[test]
fn overload_makes_waits_grow() {
    for depth in [1, 2, 7, 1024] {
        let trace = open("fixed", WRITE_NS - 10, depth, 500);
        let expected: Vec<u64> = (0..500).map(|i| WRITE_NS + i * 10).collect();
        assert_eq!(trace.columns.response_time_ns, expected, "depth {depth}");
        let arrivals: Vec<u64> = (0..500).map(|i| i * (WRITE_NS - 10)).collect();
        assert_eq!(trace.columns.submit_ns, arrivals, "the I/Os arrive at their given times");
        assert_eq!(trace.causes, ["submission_wait_ns", "device_ns"]);
        let device = if depth == 1 { WRITE_NS } else { trace.columns.cause_ns[1][499] };
        assert_eq!(
            trace.columns.cause_ns[1][499], device,
            "no other I/O is outstanding at queue depth 1"
        );
        assert_eq!(trace.check_plausible(false), Ok(()));
    }
}

#[test]
fn arrivals_below_capacity_do_not_wait() {
    let trace = open("fixed", WRITE_NS + 1, 1, 100);
    assert!(trace.columns.response_time_ns.iter().all(|time| *time == WRITE_NS));
    assert!(trace.columns.cause_ns[0].iter().all(|wait| *wait == 0));
}

/// Pollaczek and Khinchine: with service S and load ρ the mean response time of M/D/1 is
/// S + ρ S / (2 (1 − ρ)).
#[test]
fn random_arrival_waits_match_queueing_theory() {
    for (load, interval) in [(0.5, 2 * WRITE_NS), (0.7, WRITE_NS * 10 / 7), (0.2, 5 * WRITE_NS)] {
        let expected = WRITE_NS as f64 * (1.0 + load / (2.0 * (1.0 - load)));
        let trace = open("poisson", interval, 1024, 1_000_000);
        let got = mean(&trace.columns.response_time_ns);
        assert!((got / expected - 1.0).abs() < 0.01, "load {load}: {got} ns, not {expected}");
        let rate = trace.columns.submit_ns[999_999] as f64 / 1e6;
        assert!((rate / interval as f64 - 1.0).abs() < 0.004, "one every {rate} ns");
    }
}

/// One FIFO server gives the same response times whether requests wait in the device or in the host.
#[test]
fn queue_depth_does_not_change_open_loop_response_times() {
    let deep = open("poisson", WRITE_NS * 11 / 10, 1024, 20_000);
    for depth in [1, 3] {
        let short = open("poisson", WRITE_NS * 11 / 10, depth, 20_000);
        assert_eq!(short.columns.response_time_ns, deep.columns.response_time_ns);
        assert_eq!(short.columns.submit_ns, deep.columns.submit_ns);
        assert!(short.columns.cause_ns[0].iter().sum::<u64>() > 0);
    }
    assert_eq!(deep.columns.cause_ns[0].iter().sum::<u64>(), 0);
}

#[test]
fn mix_supports_arrivals() {
    let trace = trace_of(json!({"kind": "mix", "first_percent": 70, "io_count": 1000,
        "time": "fixed", "interval": 1000, "queue_depth": 4,
        "first": {"mode": "read", "location": "random"},
        "second": {"mode": "write", "location": "random"}}));
    let arrivals: Vec<u64> = (0..1000).map(|i| i * 1000).collect();
    assert_eq!(trace.columns.submit_ns, arrivals);
    let expected: Vec<u64> =
        trace.ios().map(|io| if io.mode == Mode::Read { READ_NS } else { WRITE_NS }).collect();
    assert_eq!(trace.columns.response_time_ns, expected);
}

fn replayed(list: IoList, depth: u64) -> Trace {
    let spec = json!({"kind": "replay", "list": list.summary(), "queue_depth": depth});
    let pattern = PatternSpec::parse(&spec.to_string()).unwrap();
    let pattern = pattern.resolve(Bytes(1 << 30), Bytes(512)).unwrap();
    let control = Control::new(1);
    let error = run(&mut OneServer::new(), pattern.clone(), &control).unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    assert_eq!(pattern.issued().count(), 0);
    let pattern = pattern.with_list(&Arc::new(list)).unwrap();
    let trace = run(&mut OneServer::new(), pattern, &control).unwrap();
    assert_eq!(trace.check_plausible(false), Ok(()));
    trace
}

proptest! {
    /// A list against the same I/Os worked out by hand: closed, one after the other; open, at its
    /// instants or when the one before is over.
    #[test]
    fn list_is_issued_unchanged(
        ios in prop::collection::vec((0u64..1000, 1u64..64, any::<bool>(), 0u64..2000), 1..200),
        depth in 1u64..5,
        timed in any::<bool>(),
    ) {
        let made: Vec<Io> = ios.iter().map(|(sector, sectors, write, _)| Io {
            offset: Bytes(sector * 512),
            size: Bytes(sectors * 512),
            mode: if *write { Mode::Write } else { Mode::Read },
            stream: 0,
        }).collect();
        let mut now = 0;
        let instants: Vec<u64> = ios.iter().map(|(.., gap)| { now += gap; now }).collect();
        let list = IoList::new(made.iter().copied(), if timed { instants.clone() } else { vec![] });
        let list = list.unwrap();
        let summary = list.summary().clone();
        prop_assert_eq!(summary.end, made.iter().map(|io| io.offset.0 + io.size.0).max().unwrap());
        let bytes = made.iter().map(|io| io.size.0).sum::<u64>();
        prop_assert_eq!(summary.bytes_read + summary.bytes_written, bytes);
        let trace = replayed(list, depth);
        prop_assert_eq!(trace.ios().collect::<Vec<_>>(), made.clone());
        let mut free = 0;
        for (index, io) in made.iter().enumerate() {
            let service = if io.mode == Mode::Read { READ_NS } else { WRITE_NS };
            let response = trace.columns.response_time_ns[index];
            let submit = trace.columns.submit_ns[index];
            if timed {
                prop_assert_eq!(submit, instants[index]);
            }
            free = free.max(submit) + service;
            prop_assert_eq!(submit + response, free, "I/O {}", index);
        }
    }
}

#[test]
fn invalid_lists_are_refused() {
    let io =
        |offset, size| Io { offset: Bytes(offset), size: Bytes(size), mode: Mode::Read, stream: 0 };
    let list_error = |ios: &[Io], instants: &[u64]| {
        IoList::new(ios.iter().copied(), instants.to_vec()).unwrap_err()
    };
    assert_eq!(list_error(&[], &[]), "no I/O");
    assert!(list_error(&[io(0, 0)], &[]).contains("0 bytes"));
    assert!(list_error(&[io(0, 1 << 40)], &[]).contains("I/O 0"));
    assert!(list_error(&[io(u64::MAX, 512)], &[]).contains("I/O 0"));
    assert!(list_error(&[io(0, 512)], &[1, 2]).contains("2 instants"));
    assert_eq!(list_error(&[io(0, 512), io(0, 512)], &[2, 1]), "I/O 1 arrives before I/O 0");
    let list = IoList::new([io(0, 512), io(4096, 1024)].into_iter(), vec![]).unwrap();
    let other = IoList::new([io(0, 512), io(4096, 512)].into_iter(), vec![]).unwrap();
    assert_ne!(list.summary().ios, other.summary().ios);
    let spec = json!({"kind": "replay", "list": list.summary()});
    let resolve = |capacity| {
        PatternSpec::parse(&spec.to_string()).unwrap().resolve(Bytes(capacity), Bytes(512))
    };
    assert!(resolve(4096).unwrap_err().to_string().contains("--fit wrap"));
    let error = resolve(8192).unwrap().with_list(&Arc::new(other)).unwrap_err();
    assert!(error.to_string().contains("does not match"), "{error}");
}
