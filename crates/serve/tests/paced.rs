//! A device on the wall clock must behave as in virtual time. The wall clock is a number here.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode, Nanos};
use uflip_serve::{CompletedIo, Model, Paced, Slowdown, Wake};
use uflip_sim::{Profile, SimDevice};

const DEMO: &str = include_str!("../../../python/uflip/profiles/demo.toml");
/// Reclaims blocks while the host is idle.
const MTRON: &str = include_str!("../../../python/uflip/profiles/mtron.toml");
const CLUSTER: u64 = 32_768;
const REQUESTS: usize = 400;
/// The largest delay of a request that comes while the device is simulated ahead [ns].
const LOOK_AHEAD_NS: u64 = 60_000;

fn device() -> SimDevice {
    let profile = Profile::parse(DEMO, "demo", r#"{"blocks_per_die": 64}"#).expect("a profile");
    SimDevice::new("demo", profile).expect("a device")
}

fn reclaiming() -> SimDevice {
    let profile = Profile::parse(MTRON, "mtron", r#"{"blocks_per_die": 256}"#).expect("a profile");
    SimDevice::new("mtron", profile).expect("a device")
}

/// Return a read or write of up to 64 KiB, and the idle time before it [ns].
fn next(random: &mut Xoshiro256PlusPlus, capacity: Bytes) -> (Io, u64) {
    let sectors = 1 + uniform(random, 128);
    let offset = uniform(random, capacity.0 / 512 - sectors) * 512;
    let mode = if uniform(random, 2) == 0 { Mode::Read } else { Mode::Write };
    let io = Io { offset: Bytes(offset), size: Bytes(sectors * 512), mode, stream: 0 };
    (io, [0, 1, 999, 70_000, 3_000_000][uniform(random, 5) as usize])
}

/// Advance the wall clock until an I/O completes.
fn wait(paced: &mut Paced, now: &mut u64) -> CompletedIo {
    loop {
        paced.poll(*now);
        if let Some(over) = paced.next_completed() {
            return over;
        }
        let (Wake::Due(until) | Wake::Asleep(until)) =
            paced.wake().expect("something is under way");
        *now = until.max(*now + 1);
    }
}

fn one_at_a_time(mut virtual_time: SimDevice, times_slower: u64) {
    let began = virtual_time.now();
    let capacity = virtual_time.info().capacity_bytes;
    let slowdown = Slowdown(times_slower * 1000);
    let mut paced = Paced::new(Model::Sim(Box::new(virtual_time.clone())), slowdown);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut now = 0;
    for request in 0..REQUESTS {
        let (io, pause) = next(&mut random, capacity);
        now += pause * times_slower;
        // The device's clock equals the wall clock, in whole nanoseconds.
        virtual_time.wait_until(Nanos(began.0 + now / times_slower));
        virtual_time.submit(&io).expect("it works");
        let expected = virtual_time.complete().expect("it works");
        let ticket = paced.submit(now, &io, false).expect("it works");
        let over = wait(&mut paced, &mut now);
        let response = expected.completed - expected.submitted;
        assert_eq!(
            (over.ticket, over.response, over.failed),
            (ticket, response, false),
            "{request}"
        );
        assert_eq!(over.due, (expected.completed.0 - began.0) * times_slower, "{request}");
        assert!(over.due <= now, "nobody hears of it before");
    }
    assert_eq!(paced.counters(), virtual_time.counters());
}

#[test]
fn one_request_at_a_time_takes_what_it_takes_in_virtual_time() {
    one_at_a_time(device(), 1);
    one_at_a_time(reclaiming(), 1);
}

#[test]
fn a_slower_clock_makes_everything_as_much_slower() {
    one_at_a_time(device(), 10);
    one_at_a_time(reclaiming(), 10);
}

/// A look at a device, or a trim, sees the background work of the preceding idle time.
#[test]
fn a_rest_is_over_before_a_trim_and_before_a_look() {
    let mut virtual_time = reclaiming();
    let (began, capacity) = (virtual_time.now(), virtual_time.info().capacity_bytes);
    let mut paced = Paced::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut now = 0;
    for request in 0..REQUESTS as u64 {
        // Sequential writes leave the log to the idle time, which empties it.
        let offset = Bytes(request * CLUSTER % capacity.0);
        let io = Io { offset, size: Bytes(CLUSTER), mode: Mode::Write, stream: 0 };
        virtual_time.wait_until(Nanos(began.0 + now));
        virtual_time.submit(&io).expect("it works");
        virtual_time.complete().expect("it works");
        paced.submit(now, &io, false).expect("it works");
        wait(&mut paced, &mut now);
        now += [0, 999, 3_000_000][request as usize % 3];
        virtual_time.wait_until(Nanos(began.0 + now));
        if request % 5 == 0 {
            virtual_time.trim(io.offset, io.size);
            paced.trim(now, io.offset, io.size);
        } else {
            paced.rest(now);
        }
        assert_eq!(paced.counters(), virtual_time.counters(), "{request}");
    }
    let idle = virtual_time.counters().expect("it counts").merges_idle;
    assert!(idle > 10, "it did use its idle time: {idle}");
}

/// The client receives each reply milliseconds after completion, and pauses before the next
/// request: in virtual time the device is idle only for the pause.
#[test]
fn how_late_a_host_is_changes_nothing_of_what_a_device_does() {
    let mut virtual_time = reclaiming();
    let capacity = virtual_time.info().capacity_bytes;
    let mut paced = Paced::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut now, mut late) = (0, 0);
    for request in 0..REQUESTS {
        // Sequential writes leave the log to the idle time, which empties it.
        let (_, pause) = next(&mut random, capacity);
        let offset = Bytes(request as u64 * CLUSTER);
        let io = Io { offset, size: Bytes(CLUSTER), mode: Mode::Write, stream: 0 };
        now += pause;
        let idle_until = virtual_time.now() + Nanos(pause);
        virtual_time.wait_until(idle_until);
        virtual_time.submit(&io).expect("it works");
        let expected = virtual_time.complete().expect("it works");
        let came = now;
        paced.submit(now, &io, false).expect("it works");
        let over = wait(&mut paced, &mut now);
        assert_eq!(over.response, expected.completed - expected.submitted, "{request}");
        assert_eq!(over.due, came + over.response.0, "{request}");
        now = over.due + [0, 999, 50_000, 5_000_000][uniform(&mut random, 4) as usize];
        late += now - over.due;
        paced.record_reply(came, now);
    }
    assert_eq!(paced.held_ns(), late);
    assert!(
        virtual_time.counters().expect("it counts").merges_idle > 10,
        "it did use its idle time"
    );
    assert_eq!(paced.counters(), virtual_time.counters());
}

#[test]
fn of_many_requests_each_is_over_once_and_begins_when_it_came() {
    let device = device();
    let capacity = device.info().capacity_bytes;
    let mut paced = Paced::new(Model::Sim(Box::new(device)), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let (mut now, mut last_due) = (0, 0);
    let mut under_way = std::collections::BTreeMap::new();
    for _ in 0..REQUESTS {
        while under_way.len() >= 8 {
            let over = wait(&mut paced, &mut now);
            let came: u64 = under_way.remove(&over.ticket).expect("it was under way, and once");
            assert!(last_due <= over.due && over.due <= now, "in order, and not before");
            let began = over.due - over.response.0;
            assert!((came..=came + LOOK_AHEAD_NS).contains(&began), "{came} {began}");
            last_due = over.due;
        }
        let (io, pause) = next(&mut random, capacity);
        now += pause.min(1000);
        let ticket = paced.submit(now, &io, false).expect("it works");
        assert!(under_way.insert(ticket, now).is_none());
    }
}

#[test]
fn without_a_clock_everything_is_over_at_once() {
    let device = device();
    let capacity = device.info().capacity_bytes;
    let mut paced = Paced::new(Model::Sim(Box::new(device)), Slowdown(0));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    for now in 0..REQUESTS as u64 {
        let (io, _) = next(&mut random, capacity);
        let ticket = paced.submit(now, &io, now % 3 == 0).expect("it works");
        paced.poll(now);
        let over = paced.next_completed().expect("it is over");
        assert_eq!((over.ticket, over.due, over.failed), (ticket, now, false));
        assert!(over.response.0 > 0, "the device says how long it would have taken");
    }
}

/// A cached write, a durable one and a flush each take as long as in virtual time.
#[test]
fn flushes_and_durable_writes_take_what_they_take_in_virtual_time() {
    let cached = r#"{"blocks_per_die": 64, "write_cache_bytes": 262144}"#;
    let profile = Profile::parse(DEMO, "demo", cached).expect("a profile");
    let mut virtual_time = SimDevice::new("demo", profile).expect("a device");
    let capacity = virtual_time.info().capacity_bytes;
    let began = virtual_time.now();
    let mut paced = Paced::new(Model::Sim(Box::new(virtual_time.clone())), Slowdown(1000));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(10);
    let (mut now, mut longest, durable) = (0, 0, ["cached", "fua"]);
    for request in 0..REQUESTS {
        let io = Io { mode: Mode::Write, ..next(&mut random, capacity).0 };
        let kind = uniform(&mut random, 8);
        virtual_time.wait_until(Nanos(began.0 + now));
        virtual_time.set_durability(durable[usize::from(kind == 1)].parse().expect("a form"));
        let ticket = if kind == 0 {
            virtual_time.submit_flush();
            paced.flush(now)
        } else {
            virtual_time.submit(&io).expect("it works");
            paced.submit(now, &io, kind == 1).expect("it works")
        };
        let expected = virtual_time.complete().expect("it works");
        let over = wait(&mut paced, &mut now);
        let response = expected.completed - expected.submitted;
        assert_eq!((over.ticket, over.response), (ticket, response), "{request}");
        longest = if kind == 0 { response.0.max(longest) } else { longest };
    }
    assert!(longest > 200_000, "a flush waits for programs: {longest}");
    assert_eq!(paced.counters(), virtual_time.counters());
}
