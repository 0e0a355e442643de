//! A device on the wall clock must behave as in virtual time. The wall clock is a number here.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode, Nanos};
use uflip_serve::{CompletedIo, Model, PacedDevice, Slowdown, Wake};
use uflip_sim::{Profile, SimDevice};

const DEMO: &str = include_str!("../../../python/uflip/profiles/demo.toml");
/// Reclaims blocks while the host is idle.
const MTRON: &str = include_str!("../../../python/uflip/profiles/mtron.toml");
const CLUSTER: u64 = 32_768;
const REQUESTS: usize = 400;
/// The largest delay of a request that comes while the device is simulated ahead [ns].
const LOOK_AHEAD_NS: u64 = 60_000;

fn device() -> SimDevice {
    let profile =
        Profile::parse(DEMO, "demo", r#"{"blocks_per_die": 64}"#).expect("a valid profile");
    SimDevice::new("demo", profile).expect("create the device")
}

fn device_with_idle_reclaim() -> SimDevice {
    let profile =
        Profile::parse(MTRON, "mtron", r#"{"blocks_per_die": 256}"#).expect("a valid profile");
    SimDevice::new("mtron", profile).expect("create the device")
}

/// Return a read or write of up to 64 KiB, and the idle time before it [ns].
fn next_request(random: &mut Xoshiro256PlusPlus, capacity: Bytes) -> (Io, u64) {
    let sectors = 1 + uniform(random, 128);
    let offset = uniform(random, capacity.0 / 512 - sectors) * 512;
    let mode = if uniform(random, 2) == 0 { Mode::Read } else { Mode::Write };
    let io = Io { offset: Bytes(offset), size: Bytes(sectors * 512), mode, stream: 0 };
    (io, [0, 1, 999, 70_000, 3_000_000][uniform(random, 5) as usize])
}

/// Advance the wall clock until an I/O completes.
fn wait(paced: &mut PacedDevice, now: &mut u64) -> CompletedIo {
    loop {
        paced.poll(*now);
        if let Some(completed) = paced.next_completed() {
            return completed;
        }
        let (Wake::Due(until) | Wake::Asleep(until)) = paced.wake().expect("an I/O is outstanding");
        *now = until.max(*now + 1);
    }
}

fn check_single_requests(mut virtual_time: SimDevice, times_slower: u64) {
    let began = virtual_time.now();
    let capacity = virtual_time.info().capacity_bytes;
    let slowdown = Slowdown(times_slower * 1000);
    let mut paced = PacedDevice::new(Model::Sim(Box::new(virtual_time.clone())), slowdown);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut now = 0;
    for request in 0..REQUESTS {
        let (io, pause) = next_request(&mut random, capacity);
        now += pause * times_slower;
        // The device's clock equals the wall clock, in whole nanoseconds.
        virtual_time.wait_until(Nanos(began.0 + now / times_slower));
        virtual_time.submit(&io).expect("the I/O is accepted");
        let expected = virtual_time.complete().expect("an I/O is outstanding");
        let ticket = paced.submit(now, &io, false).expect("an I/O is outstanding");
        let completed = wait(&mut paced, &mut now);
        let response = expected.completed - expected.submitted;
        assert_eq!(
            (completed.ticket, completed.response, completed.failed),
            (ticket, response, false),
            "{request}"
        );
        assert_eq!(completed.due, (expected.completed.0 - began.0) * times_slower, "{request}");
        assert!(completed.due <= now, "not reported before it is due");
    }
    assert_eq!(paced.counters(), virtual_time.counters());
}

#[test]
fn single_requests_match_virtual_time() {
    check_single_requests(device(), 1);
    check_single_requests(device_with_idle_reclaim(), 1);
}

#[test]
fn slower_clock_scales_all_times() {
    check_single_requests(device(), 10);
    check_single_requests(device_with_idle_reclaim(), 10);
}

/// The counters, or a trim, include the background work of the preceding idle time.
#[test]
fn idle_work_precedes_trim_and_inspection() {
    let mut virtual_time = device_with_idle_reclaim();
    let (began, capacity) = (virtual_time.now(), virtual_time.info().capacity_bytes);
    let mut paced = PacedDevice::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut now = 0;
    for request in 0..REQUESTS as u64 {
        // Sequential writes leave the log to the idle time, which empties it.
        let offset = Bytes(request * CLUSTER % capacity.0);
        let io = Io { offset, size: Bytes(CLUSTER), mode: Mode::Write, stream: 0 };
        virtual_time.wait_until(Nanos(began.0 + now));
        virtual_time.submit(&io).expect("the I/O is accepted");
        virtual_time.complete().expect("an I/O is outstanding");
        paced.submit(now, &io, false).expect("an I/O is outstanding");
        wait(&mut paced, &mut now);
        now += [0, 999, 3_000_000][request as usize % 3];
        virtual_time.wait_until(Nanos(began.0 + now));
        if request % 5 == 0 {
            virtual_time.trim(io.offset, io.size);
            paced.trim(now, io.offset, io.size);
        } else {
            paced.idle_until(now);
        }
        assert_eq!(paced.counters(), virtual_time.counters(), "{request}");
    }
    let idle = virtual_time.counters().expect("a simulated device has counters").merges_idle;
    assert!(idle > 10, "merges ran in idle time: {idle}");
}

/// The client receives each reply milliseconds after completion, and pauses before the next
/// request: in virtual time the device is idle only for the pause.
#[test]
fn host_delay_does_not_affect_the_device() {
    let mut virtual_time = device_with_idle_reclaim();
    let capacity = virtual_time.info().capacity_bytes;
    let mut paced = PacedDevice::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut now, mut late) = (0, 0);
    for request in 0..REQUESTS {
        // Sequential writes leave the log to the idle time, which empties it.
        let (_, pause) = next_request(&mut random, capacity);
        let offset = Bytes(request as u64 * CLUSTER);
        let io = Io { offset, size: Bytes(CLUSTER), mode: Mode::Write, stream: 0 };
        now += pause;
        let idle_until = virtual_time.now() + Nanos(pause);
        virtual_time.wait_until(idle_until);
        virtual_time.submit(&io).expect("the I/O is accepted");
        let expected = virtual_time.complete().expect("an I/O is outstanding");
        let arrival = now;
        paced.submit(now, &io, false).expect("the I/O is accepted");
        let completed = wait(&mut paced, &mut now);
        assert_eq!(completed.response, expected.completed - expected.submitted, "{request}");
        assert_eq!(completed.due, arrival + completed.response.0, "{request}");
        now = completed.due + [0, 999, 50_000, 5_000_000][uniform(&mut random, 4) as usize];
        late += now - completed.due;
        paced.record_reply(arrival, now);
    }
    assert_eq!(paced.held_ns(), late);
    assert!(
        virtual_time.counters().expect("a simulated device has counters").merges_idle > 10,
        "merges ran in idle time"
    );
    assert_eq!(paced.counters(), virtual_time.counters());
}

#[test]
fn concurrent_requests_complete_once_and_begin_on_arrival() {
    let device = device();
    let capacity = device.info().capacity_bytes;
    let mut paced = PacedDevice::new(Model::Sim(Box::new(device)), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let (mut now, mut last_due) = (0, 0);
    let mut outstanding = std::collections::BTreeMap::new();
    for _ in 0..REQUESTS {
        while outstanding.len() >= 8 {
            let completed = wait(&mut paced, &mut now);
            let arrival: u64 =
                outstanding.remove(&completed.ticket).expect("the ticket is outstanding");
            assert!(
                last_due <= completed.due && completed.due <= now,
                "in order, and not before they are due"
            );
            let began = completed.due - completed.response.0;
            assert!((arrival..=arrival + LOOK_AHEAD_NS).contains(&began), "{arrival} {began}");
            last_due = completed.due;
        }
        let (io, pause) = next_request(&mut random, capacity);
        now += pause.min(1000);
        let ticket = paced.submit(now, &io, false).expect("the I/O is accepted");
        assert!(outstanding.insert(ticket, now).is_none());
    }
}

#[test]
fn without_clock_requests_complete_at_once() {
    let device = device();
    let capacity = device.info().capacity_bytes;
    let mut paced = PacedDevice::new(Model::Sim(Box::new(device)), Slowdown(0));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    for now in 0..REQUESTS as u64 {
        let (io, _) = next_request(&mut random, capacity);
        let ticket = paced.submit(now, &io, now % 3 == 0).expect("the I/O is accepted");
        paced.poll(now);
        let completed = paced.next_completed().expect("an I/O is completed");
        assert_eq!((completed.ticket, completed.due, completed.failed), (ticket, now, false));
        assert!(completed.response.0 > 0, "the simulated response time is reported");
    }
}

/// A cached write, a durable one and a flush each take as long as in virtual time.
#[test]
fn flushes_and_durable_writes_match_virtual_time() {
    let cached = r#"{"blocks_per_die": 64, "write_cache_bytes": 262144}"#;
    let profile = Profile::parse(DEMO, "demo", cached).expect("a valid profile");
    let mut virtual_time = SimDevice::new("demo", profile).expect("create the device");
    let capacity = virtual_time.info().capacity_bytes;
    let began = virtual_time.now();
    let mut paced = PacedDevice::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(10);
    let (mut now, mut longest, durable) = (0, 0, ["cached", "fua"]);
    for request in 0..REQUESTS {
        let io = Io { mode: Mode::Write, ..next_request(&mut random, capacity).0 };
        let kind = uniform(&mut random, 8);
        virtual_time.wait_until(Nanos(began.0 + now));
        virtual_time
            .set_durability(durable[usize::from(kind == 1)].parse().expect("a valid durability"));
        let ticket = if kind == 0 {
            virtual_time.submit_flush();
            paced.flush(now)
        } else {
            virtual_time.submit(&io).expect("the I/O is accepted");
            paced.submit(now, &io, kind == 1).expect("the I/O is accepted")
        };
        let expected = virtual_time.complete().expect("an I/O is outstanding");
        let completed = wait(&mut paced, &mut now);
        let response = expected.completed - expected.submitted;
        assert_eq!((completed.ticket, completed.response), (ticket, response), "{request}");
        longest = if kind == 0 { response.0.max(longest) } else { longest };
    }
    assert!(longest > 200_000, "a flush waits for programs: {longest}");
    assert_eq!(paced.counters(), virtual_time.counters());
}
