//! A simulated device on the wall clock, at its own speed or slowed down.
//!
//! ```text
//! wall        ──┬───────────────┬──▶ now
//! device's      └ submitted     │        ┌ horizon
//!               ├───────────────┼────────┤
//!                  completed    │  known │  not simulated yet: later requests may change it
//! ```
//!
//! Querying the next completion of a device settles its state up to that time. It is therefore
//! queried only [`LOOK_AHEAD`] ahead: a request that comes meanwhile begins at the end of that
//! interval, at most that much later, which counts as lag.
//!
//! ```text
//! wall        ──┬──────────┬──────────┬──────────┬──▶
//! device's      └ submitted └ completed ┆ (held)  │
//!                                     └ reply     └ submitted: it has been idle for as long as its
//!                                                   client let it, not for as long as the host was late
//! ```
//!
//! A device's background work depends on its idle time. A real device is idle from its completion
//! on; this one from the moment the reply leaves. Its clock is therefore held from the last
//! completion until the reply: the delay of the host changes when a client receives a reply, but
//! never the behaviour of the device.

use std::collections::VecDeque;

use uflip_core::{Bytes, Counters, Device, DeviceInfo, Durability, Io, Nanos, Result, Ticket};
use uflip_sim::SimDevice;

/// The interval that a device is simulated ahead, in wall time [ns]: just enough for the thread to
/// sleep meanwhile, which takes about a third of it.
const LOOK_AHEAD_NS: u64 = 60_000;
/// The remaining interval at which it is simulated ahead again [ns].
const LOOK_AHEAD_MARGIN_NS: u64 = 30_000;

/// The device of an export.
#[derive(Debug)]
pub enum Model {
    /// A device with zero response times.
    Instant(DeviceInfo),
    /// A simulated device.
    Sim(Box<SimDevice>),
}

/// The factor by which a device is slowed down, in thousandths; 0: as fast as it can be simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slowdown(pub u64);

/// The state of the flash at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashState {
    /// The page size of the counters [bytes].
    pub page_bytes: u32,
    /// The erase blocks of all dies.
    pub blocks: usize,
    /// The erased blocks.
    pub free_blocks: u32,
}

/// A completed I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedIo {
    /// The ticket.
    pub ticket: Ticket,
    /// The time of its reply, on the wall clock [ns].
    pub due: u64,
    /// The response time on the device's clock.
    pub response: Nanos,
    /// Whether it failed.
    pub failed: bool,
}

/// A device in wall time, in nanoseconds since the start of the server.
#[derive(Debug)]
pub struct PacedDevice {
    model: Model,
    slowdown: Slowdown,
    /// The device's clock at wall-clock time zero.
    began: Nanos,
    /// The total time for which the clock was held, on the wall clock [ns].
    held: u64,
    /// The time since which nothing is outstanding, on the wall clock [ns].
    idle_since: u64,
    /// The time up to which the device is simulated.
    horizon: Nanos,
    outstanding: Vec<Ticket>,
    /// The number of failed I/Os. The device does not identify them, so all others complete first.
    failed: usize,
    completed: VecDeque<CompletedIo>,
    tickets: u64,
    wake: Option<Wake>,
}

/// The time of the next check, on the wall clock [ns].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// A completion is due then, too soon for a sleep.
    Due(u64),
    /// No completion is due until then, and for some time after.
    Asleep(u64),
}

impl PacedDevice {
    /// Start to serve `model` from its present state.
    #[must_use]
    pub fn new(model: Model, slowdown: Slowdown) -> PacedDevice {
        let began = match &model {
            Model::Instant(_) => Nanos(0),
            Model::Sim(device) => device.now(),
        };
        PacedDevice {
            model,
            slowdown,
            began,
            held: 0,
            idle_since: 0,
            horizon: Nanos(0),
            outstanding: Vec::new(),
            failed: 0,
            completed: VecDeque::new(),
            tickets: 0,
            wake: None,
        }
    }

    /// Return the properties of the device.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        match &self.model {
            Model::Instant(info) => info,
            Model::Sim(device) => device.info(),
        }
    }

    /// Return the counters of the device.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        match &self.model {
            Model::Instant(_) => None,
            Model::Sim(device) => device.counters(),
        }
    }

    /// Return the state of its flash; `None` for a device without flash.
    #[must_use]
    pub fn flash(&self) -> Option<FlashState> {
        let Model::Sim(device) = &self.model else { return None };
        let [.., page_bytes] = device.shape();
        Some(FlashState {
            page_bytes,
            blocks: device.erases().len(),
            free_blocks: device.erased_blocks().into_iter().sum(),
        })
    }

    /// Return the device after the end of the server.
    #[must_use]
    pub fn into_model(self) -> Model {
        self.model
    }

    /// Return whether no I/O may be submitted for now, because a failed one is being identified.
    #[must_use]
    pub fn is_identifying_failure(&self) -> bool {
        self.failed > 0
    }

    /// Submit `io` at `now`; a write with `fua` completes when its data is durable.
    ///
    /// # Errors
    /// If the device accepts no more I/Os.
    pub fn submit(&mut self, now: u64, io: &Io, fua: bool) -> Result<Ticket> {
        self.poll(now);
        let Some(device) = self.device_at(now) else { return Ok(self.complete_at_once(now)) };
        if fua {
            device.set_durability(Durability::Fua);
        }
        let submitted = device.submit(io);
        if fua {
            device.set_durability(Durability::Cached);
        }
        Ok(self.register(submitted?, now))
    }

    /// Submit a flush at `now`; it completes when all completed writes are durable.
    pub fn flush(&mut self, now: u64) -> Ticket {
        self.poll(now);
        let Some(device) = self.device_at(now) else { return self.complete_at_once(now) };
        let ticket = device.submit_flush();
        self.register(ticket, now)
    }

    /// Note that the reply to a request that arrived at `arrived` leaves at `now`. If nothing else
    /// is outstanding, the device is idle from now on.
    pub fn record_reply(&mut self, arrived: u64, now: u64) {
        let is_clocked = matches!(self.model, Model::Sim(_)) && self.slowdown.0 > 0;
        if is_clocked && self.outstanding.is_empty() && self.completed.is_empty() {
            self.held += now.saturating_sub(self.idle_since.max(arrived));
            self.idle_since = now;
        }
    }

    /// Return the total time for which the device's clock was held because of late replies, on the
    /// wall clock [ns].
    #[must_use]
    pub fn held_ns(&self) -> u64 {
        self.held
    }

    /// Return the simulated device, with its clock advanced to the wall clock.
    fn device_at(&mut self, now: u64) -> Option<&mut SimDevice> {
        let present = self.device_time(now);
        let Model::Sim(device) = &mut self.model else { return None };
        if self.slowdown.0 > 0 {
            device.wait_until(present.max(self.horizon));
        }
        Some(device)
    }

    /// Return the device's clock at wall-clock time `wall`.
    fn device_time(&self, wall: u64) -> Nanos {
        let wall = wall.saturating_sub(self.held);
        let since = u128::from(wall) * 1000 / u128::from(self.slowdown.0.max(1));
        Nanos(self.began.0.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    /// Return the wall-clock time at which the device's clock is `at`.
    fn wall_time(&self, at: Nanos) -> u64 {
        self.wall_ns(at.saturating_sub(self.began)).saturating_add(self.held)
    }

    /// Complete an operation that takes no time.
    fn complete_at_once(&mut self, now: u64) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.completed.push_back(CompletedIo {
            ticket,
            due: now,
            response: Nanos(0),
            failed: false,
        });
        ticket
    }

    fn register(&mut self, ticket: Ticket, now: u64) -> Ticket {
        self.outstanding.push(ticket);
        self.wake = Some(Wake::Due(now));
        ticket
    }

    /// Deallocate a range; takes no time.
    pub fn trim(&mut self, now: u64, offset: Bytes, size: Bytes) {
        self.poll(now);
        if let Some(device) = self.device_at(now) {
            device.trim(offset, size);
        }
    }

    /// Let an idle device rest until `now`.
    pub fn idle_until(&mut self, now: u64) {
        self.device_at(now);
    }

    /// Find the I/Os that have completed by `now`.
    pub fn poll(&mut self, now: u64) {
        self.wake = None;
        // Without a clock, all outstanding I/Os complete now.
        let times = (self.slowdown.0 > 0)
            .then(|| (self.device_time(now), self.device_time(now.saturating_add(LOOK_AHEAD_NS))));
        while self.outstanding.len() > self.failed {
            let Model::Sim(device) = &mut self.model else { return };
            let Some((present, ahead)) = times else {
                let due = device.next_completion(Nanos(u64::MAX));
                debug_assert!(due.is_some(), "an I/O is outstanding");
                self.complete(now);
                continue;
            };
            let next = device.next_completion(ahead.max(self.horizon));
            self.horizon = self.horizon.max(next.unwrap_or(ahead));
            match next {
                Some(due) if due <= present => self.complete(self.wall_time(due)),
                Some(due) => {
                    self.wake = Some(Wake::Due(self.wall_time(due)));
                    return;
                }
                None => {
                    let until = self.wall_time(self.horizon);
                    self.wake = Some(Wake::Asleep(until.saturating_sub(LOOK_AHEAD_MARGIN_NS)));
                    return;
                }
            }
        }
        self.fail_remaining(now);
    }

    /// Take the earliest completion, which is due at `due` on the wall clock.
    fn complete(&mut self, due: u64) {
        let Model::Sim(device) = &mut self.model else { return };
        match device.complete() {
            Ok(completion) => {
                if let Some(index) =
                    self.outstanding.iter().position(|ticket| *ticket == completion.ticket)
                {
                    self.outstanding.swap_remove(index);
                }
                let response = completion.completed.saturating_sub(completion.submitted);
                self.completed.push_back(CompletedIo {
                    ticket: completion.ticket,
                    due,
                    response,
                    failed: false,
                });
            }
            Err(_) => self.failed += 1,
        }
        self.idle_since = due;
    }

    /// All remaining outstanding I/Os have failed.
    fn fail_remaining(&mut self, now: u64) {
        for ticket in self.outstanding.drain(..) {
            self.completed.push_back(CompletedIo {
                ticket,
                due: now,
                response: Nanos(0),
                failed: true,
            });
        }
        self.failed = 0;
    }

    /// Return the time of the next check; `None` if nothing is outstanding.
    #[must_use]
    pub fn wake(&self) -> Option<Wake> {
        self.wake
    }

    /// Convert a duration of the device's clock to the wall clock [ns].
    #[must_use]
    pub fn wall_ns(&self, response: Nanos) -> u64 {
        let since = u128::from(response.0) * u128::from(self.slowdown.0);
        u64::try_from(since.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// Return the next completed I/O.
    pub fn next_completed(&mut self) -> Option<CompletedIo> {
        self.completed.pop_front()
    }
}
