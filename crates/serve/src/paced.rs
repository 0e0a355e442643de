//! A simulated device whose clock is the wall clock, as fast as it or slower.
//!
//! ```text
//! wall        ──┬───────────────┬──▶ now
//! device's      └ submitted     │        ┌ horizon
//!               ├───────────────┼────────┤
//!                     over      │  known │  not looked at: what comes may still change it
//! ```
//!
//! A device that is asked when the next I/O ends looks ahead, and what it has looked at is settled. So
//! it is asked for [`LOOK_AHEAD`] at a time: a request that comes meanwhile begins where the look ended,
//! at most that much later than it came, which counts as lag like everything else that is late.
//!
//! ```text
//! wall        ──┬──────────┬──────────┬──────────┬──▶
//! device's      └ submitted └ over     ┆ (held)   │
//!                                     └ reply     └ submitted: it has been idle for as long as its
//!                                                   client let it, not for as long as the host was late
//! ```
//!
//! What a device does while it is idle depends on for how long. A device of its own has told the host
//! when it is done; this one has when the reply leaves. So one that has nothing to do waits with its
//! clock until then: how late a host is changes when a client hears, never what the device does.

use std::collections::VecDeque;

use uflip_core::{Bytes, Counters, Device, DeviceInfo, Durability, Io, Nanos, Result, Ticket};
use uflip_sim::SimDevice;

/// How far a device is asked to look ahead, in wall time [ns]: as little as lets a thread sleep
/// meanwhile, which costs about a third of it.
const LOOK_AHEAD_NS: u64 = 60_000;
/// Looked ahead again when so much of it is left [ns].
const LOOK_AGAIN_NS: u64 = 30_000;

/// What is behind an export.
#[derive(Debug)]
pub enum Model {
    /// A device that takes no time.
    Instant(DeviceInfo),
    /// A simulated device.
    Sim(Box<SimDevice>),
}

/// How many times slower than it should be a device is, in thousandths; 0: as fast as it can be
/// computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slowdown(pub u64);

/// Flash at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashNow {
    /// What counters count in [bytes].
    pub page_bytes: u32,
    /// Erase blocks of all dies.
    pub blocks: usize,
    /// Those that are erased.
    pub free_blocks: u32,
}

/// An I/O that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// Which.
    pub ticket: Ticket,
    /// When the client is to hear of it, on the wall clock [ns].
    pub due: u64,
    /// How long it took on the device's clock.
    pub response: Nanos,
    /// Whether the device failed.
    pub failed: bool,
}

/// A device in wall time, in nanoseconds since the server began.
#[derive(Debug)]
pub struct Paced {
    model: Model,
    slowdown: Slowdown,
    /// The device's clock when the wall clock was at zero.
    began: Nanos,
    /// For how long the clock was held, so far [ns], on the wall clock.
    held: u64,
    /// Since when nothing has been under way, on the wall clock [ns].
    idle_since: u64,
    /// How far the device has been asked to look.
    horizon: Nanos,
    outstanding: Vec<Ticket>,
    /// So many of them failed; the device does not say which, so all others end first.
    failed: usize,
    over: VecDeque<Over>,
    tickets: u64,
    wake: Option<Wake>,
}

/// When to look again, on the wall clock [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Something is over then; it is so near that a sleep would miss it.
    Due(u64),
    /// Nothing is over until then, and some time after.
    Asleep(u64),
}

impl Paced {
    /// `model` from where it stands.
    #[must_use]
    pub fn new(model: Model, slowdown: Slowdown) -> Paced {
        let began = match &model {
            Model::Instant(_) => Nanos(0),
            Model::Sim(device) => device.now(),
        };
        Paced {
            model,
            slowdown,
            began,
            held: 0,
            idle_since: 0,
            horizon: Nanos(0),
            outstanding: Vec::new(),
            failed: 0,
            over: VecDeque::new(),
            tickets: 0,
            wake: None,
        }
    }

    /// What is known about the device.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        match &self.model {
            Model::Instant(info) => info,
            Model::Sim(device) => device.info(),
        }
    }

    /// What the device counted.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        match &self.model {
            Model::Instant(_) => None,
            Model::Sim(device) => device.counters(),
        }
    }

    /// What its flash is like now; `None` of a device that has none.
    #[must_use]
    pub fn flash(&self) -> Option<FlashNow> {
        let Model::Sim(device) = &self.model else { return None };
        let [.., page_bytes] = device.shape();
        Some(FlashNow {
            page_bytes,
            blocks: device.erases().len(),
            free_blocks: device.erased_blocks().into_iter().sum(),
        })
    }

    /// The device, when nothing is served any more.
    #[must_use]
    pub fn into_model(self) -> Model {
        self.model
    }

    /// Whether no more may be submitted for now: a failure is being told apart from what else is under
    /// way.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        self.failed > 0
    }

    /// Submit `io` at `now`; a write with `fua` ends when its data is durable.
    ///
    /// # Errors
    /// The device takes no such I/O any more.
    pub fn submit(&mut self, now: u64, io: &Io, fua: bool) -> Result<Ticket> {
        self.look(now);
        let Some(device) = self.device_at(now) else { return Ok(self.over_at_once(now)) };
        if fua {
            device.set_durability(Durability::Fua);
        }
        let submitted = device.submit(io);
        if fua {
            device.set_durability(Durability::Cached);
        }
        Ok(self.has_begun(submitted?, now))
    }

    /// Submit a flush at `now`: it ends when everything is durable whose writes have ended.
    pub fn flush(&mut self, now: u64) -> Ticket {
        self.look(now);
        let Some(device) = self.device_at(now) else { return self.over_at_once(now) };
        let ticket = device.submit_flush();
        self.has_begun(ticket, now)
    }

    /// A client hears at `now` that what it asked for at `arrived` is over: where nothing else is under
    /// way the device is idle from now on, and not before.
    pub fn told(&mut self, arrived: u64, now: u64) {
        let kept = matches!(self.model, Model::Sim(_)) && self.slowdown.0 > 0;
        if kept && self.outstanding.is_empty() && self.over.is_empty() {
            self.held += now.saturating_sub(self.idle_since.max(arrived));
            self.idle_since = now;
        }
    }

    /// For how long the device's clock was held because replies left late [ns], on the wall clock.
    #[must_use]
    pub fn held_ns(&self) -> u64 {
        self.held
    }

    /// The simulated device, whose clock is where the wall clock is.
    fn device_at(&mut self, now: u64) -> Option<&mut SimDevice> {
        let present = self.device_time(now);
        let Model::Sim(device) = &mut self.model else { return None };
        if self.slowdown.0 > 0 {
            device.wait_until(present.max(self.horizon));
        }
        Some(device)
    }

    /// The device's clock at `wall`.
    fn device_time(&self, wall: u64) -> Nanos {
        let wall = wall.saturating_sub(self.held);
        let since = u128::from(wall) * 1000 / u128::from(self.slowdown.0.max(1));
        Nanos(self.began.0.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    /// When the device's clock is at `at`, on the wall clock.
    fn wall_time(&self, at: Nanos) -> u64 {
        self.wall_ns(at.saturating_sub(self.began)).saturating_add(self.held)
    }

    /// What a device does that takes no time.
    fn over_at_once(&mut self, now: u64) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.over.push_back(Over { ticket, due: now, response: Nanos(0), failed: false });
        ticket
    }

    fn has_begun(&mut self, ticket: Ticket, now: u64) -> Ticket {
        self.outstanding.push(ticket);
        self.wake = Some(Wake::Due(now));
        ticket
    }

    /// The range is not needed any more; takes no time.
    pub fn trim(&mut self, now: u64, offset: Bytes, size: Bytes) {
        self.look(now);
        if let Some(device) = self.device_at(now) {
            device.trim(offset, size);
        }
    }

    /// Nothing is under way, and everybody was told: the device has rested until `now`.
    pub fn rest(&mut self, now: u64) {
        self.device_at(now);
    }

    /// See what is over by `now`.
    pub fn look(&mut self, now: u64) {
        self.wake = None;
        // No clock is kept: whatever is under way is over.
        let times = (self.slowdown.0 > 0)
            .then(|| (self.device_time(now), self.device_time(now.saturating_add(LOOK_AHEAD_NS))));
        while self.outstanding.len() > self.failed {
            let Model::Sim(device) = &mut self.model else { return };
            let Some((present, ahead)) = times else {
                let due = device.next_completion(Nanos(u64::MAX));
                debug_assert!(due.is_some(), "something is outstanding");
                self.complete(now);
                continue;
            };
            let next = device.next_completion(ahead.max(self.horizon));
            self.horizon = self.horizon.max(next.unwrap_or(ahead));
            match next {
                Some(at) if at <= present => self.complete(self.wall_time(at)),
                Some(at) => {
                    self.wake = Some(Wake::Due(self.wall_time(at)));
                    return;
                }
                None => {
                    let until = self.wall_time(self.horizon);
                    self.wake = Some(Wake::Asleep(until.saturating_sub(LOOK_AGAIN_NS)));
                    return;
                }
            }
        }
        self.settle_failures(now);
    }

    /// Take the earliest completion, which is due at `due` on the wall clock.
    fn complete(&mut self, due: u64) {
        let Model::Sim(device) = &mut self.model else { return };
        match device.complete() {
            Ok(done) => {
                if let Some(place) = self.outstanding.iter().position(|it| *it == done.ticket) {
                    self.outstanding.swap_remove(place);
                }
                let response = done.completed.saturating_sub(done.submitted);
                self.over.push_back(Over { ticket: done.ticket, due, response, failed: false });
            }
            Err(_) => self.failed += 1,
        }
        self.idle_since = due;
    }

    /// All that is left has failed.
    fn settle_failures(&mut self, now: u64) {
        for ticket in self.outstanding.drain(..) {
            self.over.push_back(Over { ticket, due: now, response: Nanos(0), failed: true });
        }
        self.failed = 0;
    }

    /// When to look again; `None` where nothing is under way.
    #[must_use]
    pub fn wake(&self) -> Option<Wake> {
        self.wake
    }

    /// What `response` on the device's clock is on the wall clock [ns].
    #[must_use]
    pub fn wall_ns(&self, response: Nanos) -> u64 {
        let since = u128::from(response.0) * u128::from(self.slowdown.0);
        u64::try_from(since.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// The next I/O that is over.
    pub fn next_over(&mut self) -> Option<Over> {
        self.over.pop_front()
    }
}
