//! Arbitration between host queues, and completion notification, compared with a few lines of code
//! without a device.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Device, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{COMMAND, LINK, READ, TRANSFER, io, part, profile, run_alone};

/// Create eight dies on as many channels, full of data.
fn device(changes: &str) -> SimDevice {
    let text = profile(8, 1, "sequential");
    SimDevice::new("test", Profile::parse(&text, "test", changes).unwrap()).unwrap()
}

/// Return the order in which reads and writes of single pages end that arrive at once and run one
/// at a time.
fn order(changes: &str, commands: &str) -> String {
    let mut device = device(&format!(r#"{{"commands_at_once": 1{changes}}}"#));
    let mut tickets = Vec::new();
    for (number, command) in (0..).zip(commands.chars()) {
        let mode = if command == 'r' { Mode::Read } else { Mode::Write };
        tickets.push((device.submit(&io(mode, number, 1)).unwrap(), command));
    }
    let completed = tickets.iter().map(|_| device.complete().unwrap().ticket).collect::<Vec<_>>();
    let named = |ticket| tickets.iter().find(|(other, _)| *other == ticket).unwrap().1;
    completed.into_iter().map(named).collect()
}

#[test]
fn queues_are_served_by_weight() {
    let commands = "rrrrrrrrwwwwwwww";
    assert_eq!(order("", commands), commands, "one queue: first come, first served");
    // The first command is admitted before any other waits, and uses no turn.
    let weights =
        |read: u32, write: u32| format!(r#", "read_weight": {read}, "write_weight": {write}"#);
    assert_eq!(order(&weights(1, 1), commands), "rrwrwrwrwrwrwrww");
    assert_eq!(order(&weights(3, 1), commands), "rrrrwrrrwrwwwwww");
    assert_eq!(order(&weights(1, 3), commands), "rrwwwrwwwrwwrrrr");
    assert_eq!(order(&weights(2, 2), "wwwwwwww"), "wwwwwwww", "an empty queue is passed over");
}

#[test]
fn interrupt_is_coalesced_up_to_timeout() {
    let alone_ns = COMMAND + READ + TRANSFER + LINK;
    let read = io(Mode::Read, 3, 1);
    let notified = |number: u32, wait: u64| {
        format!(
            r#"{{"host_completion": "interrupt", "host_completion_ns": 5000, "coalesced_completions": {number}, "coalescing_ns": {wait}}}"#
        )
    };
    for (number, wait) in [(1, 0), (8, 100_000), (256, 7)] {
        let (response, parts) = run_alone(&mut device(&notified(number, wait)), read);
        assert_eq!(response, alone_ns + wait + 5000);
        assert_eq!(part(&parts, "controller_ns"), COMMAND + wait + 5000);
    }
    let polled = r#"{"host_completion": "polling", "host_completion_ns": 70000, "coalesced_completions": 1, "coalescing_ns": 0}"#;
    assert_eq!(run_alone(&mut device(polled), read).0, alone_ns.next_multiple_of(70_000));
}

/// Return when the host is notified, computed without a device: an interrupt after `number` ends,
/// or when the first has waited for `wait`.
fn naive(ends: &[u64], number: usize, wait: u64, later: u64) -> Vec<u64> {
    let mut notified = Vec::new();
    let mut rest = ends;
    while let Some(first) = rest.first() {
        let in_time = rest.iter().take_while(|end| **end <= first + wait).count().min(number);
        let at = if in_time == number { rest[number - 1] } else { first + wait };
        notified.resize(notified.len() + in_time, at + later);
        rest = &rest[in_time..];
    }
    notified
}

/// Return the notification times of reads with random arrivals.
fn ends(changes: &str, seed: u64) -> Vec<u64> {
    let mut device = device(changes);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut at, mut ends, mut outstanding) = (0, Vec::new(), 0);
    for _ in 0..2000 {
        at += uniform(&mut rng, 60_000);
        while device.next_completion(Nanos(at)).is_some() {
            ends.push(device.complete().unwrap().completed.0);
            outstanding -= 1;
        }
        device.wait_until(Nanos(at));
        device.submit(&io(Mode::Read, uniform(&mut rng, 4000), 1)).unwrap();
        outstanding += 1;
    }
    ends.extend((0..outstanding).map(|_| device.complete().unwrap().completed.0));
    ends
}

#[test]
fn notifications_match_small_model() {
    for seed in 1..=5 {
        let without_interrupts = ends("{}", seed);
        assert!(without_interrupts.is_sorted());
        for (number, wait, later) in
            [(1, 0, 3000), (4, 50_000, 0), (8, 100_000, 700), (32, 400_000, 5)]
        {
            let changes = format!(
                r#"{{"host_completion": "interrupt", "host_completion_ns": {later}, "coalesced_completions": {number}, "coalescing_ns": {wait}}}"#
            );
            assert_eq!(
                ends(&changes, seed),
                naive(&without_interrupts, number, wait, later),
                "{changes}"
            );
        }
    }
}

/// With more outstanding commands than an interrupt covers, commands still end at the rate of the
/// dies, in groups. With one command at a time and long waits they do not.
#[test]
fn full_host_queue_hides_coalescing_time() {
    let changes = r#"{"host_completion": "interrupt", "host_completion_ns": 0, "coalesced_completions": 4, "coalescing_ns": 1000000}"#;
    let rate = |changes: &str, depth: u64| {
        let mut device = device(changes);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut read = || io(Mode::Read, uniform(&mut rng, 4000), 1);
        for _ in 0..depth {
            device.submit(&read()).unwrap();
        }
        let mut last = 0;
        for _ in 0..4000 {
            last = device.complete().unwrap().completed.0;
            device.submit(&read()).unwrap();
        }
        4000.0 * 1e9 / last as f64
    };
    let hidden = rate(changes, 64) / rate("{}", 64);
    assert!((0.97..=1.01).contains(&hidden), "{hidden}");
    let alone_ns = (COMMAND + READ + TRANSFER + LINK + 1_000_000) as f64;
    assert!((rate(changes, 1) * alone_ns / 1e9 - 1.0).abs() < 1e-3);
}

#[test]
fn invalid_host_queue_keys_are_refused() {
    for (changes, words) in [
        (r#"{"read_weight": 1, "write_weight": 1}"#, "commands_at_once"),
        (r#"{"commands_at_once": 4, "read_weight": 0, "write_weight": 1}"#, "1 or more"),
        (
            r#"{"host_completion": "polling", "host_completion_ns": 0, "coalesced_completions": 1, "coalescing_ns": 0}"#,
            "host_completion_ns",
        ),
        (
            r#"{"host_completion": "polling", "host_completion_ns": 5, "coalesced_completions": 2, "coalescing_ns": 0}"#,
            "coalesced_completions",
        ),
        (
            r#"{"host_completion": "interrupt", "host_completion_ns": 5, "coalesced_completions": 1, "coalescing_ns": 9}"#,
            "coalescing_ns",
        ),
    ] {
        let text =
            Profile::parse(&profile(8, 1, "empty"), "test", changes).unwrap_err().to_string();
        assert!(text.contains(words), "{changes}: {text}");
    }
}
