//! The server loop: sockets, devices and the clock.
//!
//! ```text
//! advance the devices: completed I/Os ─▶ replies ─▶ sockets
//! wait for a socket event or the next completion: sleep, and spin at the end
//! sockets ─▶ sessions ─▶ data to the data file, requests to the device
//! ```
//!
//! One thread does all of it: a device has one clock, so requests of several connections meet there
//! anyway, and no thread has to wake another between a request and its reply. A request enters the
//! device's clock when it has arrived completely. It is answered when the device has completed it
//! and, if it must be durable, the data file is synced. Any later time is lag, recorded for every
//! request.
//!
//! The spin policy: whether to poll for the next request before sleeping. Recent success decides.
//!
//! ```text
//! client on another CPU   reply ──▶ ┊ wakes, computes, sends ┊ ──▶ hit: no wake-up needed
//! client on the same CPU  reply ──▶ ┊ waits for the server to sleep ─────────▶ ┊ miss: sleep at once
//! ```
//!
//! Waking a sleeping CPU takes as long as many requests, above all on a virtual machine. On the
//! same CPU a client runs only while the server sleeps, so that spinning never succeeds; and a
//! client with a longer think time does not justify a spinning CPU. Recent misses therefore disable
//! spinning, with an occasional retry.

mod clients;
mod served_device;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use serde_json::{Value, json};
use uflip_core::{Error, Result};

use crate::connection::{Connection, ServerLoad};
use crate::data::{ExportData, Syncer};
use crate::listen::Listener;
use crate::paced::{CompletedIo, Model, Paced, Wake};
use crate::record::RequestRecorder;
use crate::server::served_device::{ActiveRequest, ServedDevice};
use crate::wire::Export;

/// A device, its data and its export.
#[derive(Debug)]
pub struct ExportedDevice {
    /// The properties that clients see.
    pub export: Export,
    /// The data.
    pub data: ExportData,
    /// The device on the wall clock.
    pub paced: Paced,
}

/// The sockets of the server, and its recording.
#[derive(Debug, Default)]
pub struct Endpoints {
    /// The sockets for clients.
    pub clients: Vec<Listener>,
    /// The statistics socket: each connection receives one document with the statistics so far.
    pub statistics: Option<Listener>,
    /// The recording of every read and write.
    pub recorder: Option<RequestRecorder>,
}

/// The limit of clients; further ones are rejected.
const MAX_CLIENTS: usize = 1000;
/// The size of one read from a socket [bytes].
const RECEIVE_BYTES: usize = 256 << 10;
/// The interval at which the server checks for its end [ns].
const STOP_CHECK_NS: u64 = 50_000_000;
/// The largest number of events per wait.
const EVENTS: usize = 64;

/// The epoll keys that do not belong to clients: listeners from 0 on, and these.
const SYNC_EVENT: u64 = u64::MAX;
const STATISTICS: u64 = u64::MAX - 1;
const FIRST_CLIENT: u64 = 1 << 32;

/// The running server.
struct Server<'a> {
    clock: Instant,
    poll: OwnedFd,
    endpoints: &'a Endpoints,
    exports: Vec<Export>,
    devices: Vec<ServedDevice>,
    syncer: Syncer,
    clients: HashMap<u64, Connection>,
    next_client: u64,
    active: Vec<Option<ActiveRequest>>,
    free_keys: Vec<usize>,
    /// Clients with output to send or input to process.
    ready_clients: Vec<u64>,
    /// The total load of all clients.
    load: Rc<ServerLoad>,
    /// Clients whose next request waits for the limits, in order.
    waiters: VecDeque<u64>,
    /// The time of the next search for stalled clients.
    next_stall_check: u64,
    /// Requests that are submitted in part.
    partly_submitted: VecDeque<usize>,
    rejected_clients: u64,
    /// Whether input waits until a failed I/O is identified.
    input_paused: bool,
    /// Listening is suspended until then, because the system was out of resources.
    resume_listening_at: Option<u64>,
    spin_policy: SpinPolicy,
}

/// The outcome of a server that has ended.
#[derive(Debug)]
pub struct ServeOutcome {
    /// The devices in their final state.
    pub devices: Vec<Model>,
    /// The statistics.
    pub document: Value,
    /// The result of the recording.
    pub recorded: Result<()>,
}

/// Serve `devices` at these endpoints until `is_stopped`.
///
/// # Errors
/// Any error of the system.
pub fn serve(
    endpoints: Endpoints,
    devices: Vec<ExportedDevice>,
    is_stopped: impl Fn() -> bool,
) -> Result<ServeOutcome> {
    // Sets the timer slack of this thread: by default, sleeps end 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let served = run(&endpoints, devices, is_stopped);
    // Finish the recording in any case, before the outcome is returned.
    let recorded = endpoints.recorder.map_or(Ok(()), RequestRecorder::finish);
    let (devices, document) = served?;
    Ok(ServeOutcome { devices, document, recorded })
}

fn run(
    endpoints: &Endpoints,
    devices: Vec<ExportedDevice>,
    is_stopped: impl Fn() -> bool,
) -> Result<(Vec<Model>, Value)> {
    let mut server = Server::new(endpoints, devices)?;
    let mut buffer = vec![0; RECEIVE_BYTES];
    while !is_stopped() {
        server.round(&mut buffer)?;
    }
    let document = server.document();
    Ok((server.devices.into_iter().map(|device| device.paced.into_model()).collect(), document))
}

impl<'a> Server<'a> {
    fn new(endpoints: &'a Endpoints, devices: Vec<ExportedDevice>) -> Result<Server<'a>> {
        let refused = |error: std::io::Error| Error::os("The server cannot start", "serve", &error);
        let files = devices.iter().map(|device| device.data.to_sync());
        let files = files.collect::<std::io::Result<Vec<_>>>().map_err(refused)?;
        let durable: Vec<bool> = files.iter().map(Option::is_some).collect();
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let poll = poll.map_err(|error| refused(error.into()))?;
        let syncer = Syncer::start(files)?;
        let watch = |source: &dyn AsFd, key: u64| {
            epoll::add(&poll, source.as_fd(), EventData::new_u64(key), EventFlags::IN)
                .map_err(|error| refused(error.into()))
        };
        watch(&syncer.event(), SYNC_EVENT)?;
        for (index, listener) in endpoints.clients.iter().enumerate() {
            watch(listener, index as u64)?;
        }
        if let Some(listener) = &endpoints.statistics {
            watch(listener, STATISTICS)?;
        }
        let exports = devices.iter().map(|device| device.export.clone()).collect();
        let served = devices.into_iter().zip(durable);
        let served = served.map(|(device, durable)| {
            ServedDevice::new(device.data, durable, device.paced, device.export.sector)
        });
        Ok(Server {
            clock: Instant::now(),
            endpoints,
            exports,
            devices: served.collect(),
            syncer,
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            active: Vec::new(),
            free_keys: Vec::new(),
            ready_clients: Vec::new(),
            load: Rc::default(),
            waiters: VecDeque::new(),
            next_stall_check: 0,
            partly_submitted: VecDeque::new(),
            rejected_clients: 0,
            input_paused: false,
            resume_listening_at: None,
            spin_policy: SpinPolicy::default(),
            poll,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Execute one iteration of the loop: completions, output, events.
    fn round(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.resume_listening(false);
        self.continue_request();
        let mut wake = self.poll_devices();
        if self.input_paused && !self.is_identifying_failure() {
            self.input_paused = false;
            self.ready_clients.extend(self.clients.keys());
        }
        loop {
            while let Some(client) = self.ready_clients.pop() {
                self.service_client(client);
                // Waiting input may contain further requests.
                if self.ready_clients.is_empty() {
                    wake = self.poll_devices();
                }
            }
            if !self.wake_waiter() {
                break;
            }
        }
        if !self.partly_submitted.is_empty() {
            wake = Some(Wake::Due(0));
        }
        let mut events =
            [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let count = match self.wait(&mut events, wake) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Error::os("Waiting failed", "serve", &error.into())),
        };
        for event in &events[..count] {
            let (key, flags) = (event.data.u64(), event.flags);
            match key {
                SYNC_EVENT => self.synced(),
                STATISTICS => self.send_statistics(),
                key if key < FIRST_CLIENT => self.accept_clients(key as usize),
                key => self.handle_event(key, flags, buffer),
            }
        }
        Ok(())
    }

    /// Wait for events; return at once if a completion is due too soon for a sleep.
    fn wait(
        &mut self,
        events: &mut [epoll::Event],
        wake: Option<Wake>,
    ) -> std::result::Result<usize, Errno> {
        let none = Timespec::default();
        let span = |ns: u64| Timespec { tv_sec: 0, tv_nsec: ns.min(STOP_CHECK_NS) as i64 };
        match wake {
            Some(Wake::Due(_)) => epoll::wait(&self.poll, events, Some(&none)),
            Some(Wake::Asleep(until)) => {
                // Before Linux 5.11 the shortest sleep of `epoll_wait` is a millisecond.
                let mut waited = [PollFd::new(&self.poll, PollFlags::IN)];
                poll(&mut waited, Some(&span(until.saturating_sub(self.now()))))?;
                epoll::wait(&self.poll, events, Some(&none))
            }
            None if self.spin_policy.should_spin() => match self.spin(events)? {
                0 => epoll::wait(&self.poll, events, Some(&span(STOP_CHECK_NS))),
                count => Ok(count),
            },
            None => epoll::wait(&self.poll, events, Some(&span(STOP_CHECK_NS))),
        }
    }

    /// Poll for events for a while, without sleeping.
    fn spin(&mut self, events: &mut [epoll::Event]) -> std::result::Result<usize, Errno> {
        let until = self.now() + SPIN_NS;
        loop {
            let count = epoll::wait(&self.poll, &mut *events, Some(&Timespec::default()))?;
            if count > 0 || self.now() >= until {
                self.spin_policy.record(count > 0);
                return Ok(count);
            }
            std::hint::spin_loop();
        }
    }

    fn is_identifying_failure(&self) -> bool {
        self.devices.iter().any(|device| device.paced.is_identifying_failure())
    }

    /// Process completed I/Os, and return the time of the next check.
    fn poll_devices(&mut self) -> Option<Wake> {
        let mut wake: Option<Wake> = None;
        for index in 0..self.devices.len() {
            let now = self.now();
            let paced = &mut self.devices[index].paced;
            paced.poll(now);
            while let Some(completed) = self.devices[index].paced.next_completed() {
                self.complete_io(index, completed);
            }
            wake = earlier_wake(wake, self.devices[index].paced.wake());
        }
        wake
    }

    fn complete_io(&mut self, index: usize, completed: CompletedIo) {
        let device = &mut self.devices[index];
        let Some(key) = device.tickets.remove(&completed.ticket) else { return };
        let response_ns = device.paced.wall_ns(completed.response);
        let Some(active) = &mut self.active[key] else { return };
        active.failed |= completed.failed;
        active.simulated += response_ns;
        self.complete_part(key);
    }

    /// Process the answers of the sync thread.
    fn synced(&mut self) {
        self.syncer.clear_event();
        while let Some((key, durable)) = self.syncer.answer() {
            if let Some(active) = &mut self.active[key] {
                active.failed |= !durable;
            }
            self.complete_part(key);
        }
    }

    /// Complete a part of a request; after the last one, answer it.
    fn complete_part(&mut self, key: usize) {
        let Some(active) = &mut self.active[key] else { return };
        active.pending_parts -= 1;
        if active.pending_parts > 0 {
            return;
        }
        if active.is_submitted() {
            self.finish(key);
        } else {
            self.partly_submitted.push_back(key);
        }
    }

    /// Answer a request.
    fn finish(&mut self, key: usize) {
        let Some(active) = self.active[key].take() else { return };
        self.free_keys.push(key);
        let now = self.now();
        let device = &mut self.devices[active.request.export];
        device.paced.record_reply(active.arrived, now);
        if let (Some(recorder), Some(record)) = (&self.endpoints.recorder, active.record(now)) {
            recorder.add(record);
        }
        let Some(client) = self.clients.get_mut(&active.client) else { return };
        client.end_request(active.request.reply_bytes());
        device.answer(&active, &mut client.out, now);
        client.update_load();
        self.ready_clients.push(active.client);
    }

    /// Send the statistics to each new connection of the statistics socket.
    fn send_statistics(&mut self) {
        let endpoints = self.endpoints;
        let Some(listener) = &endpoints.statistics else { return };
        loop {
            let socket = match listener.accept() {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                Err(_) => return self.pause_listening(),
            };
            // The text fits into any socket buffer; a client that does not accept it gets nothing.
            let text = format!("{}\n", self.document());
            let _ = rustix::net::send(&socket, text.as_bytes(), SendFlags::NOSIGNAL);
        }
    }

    /// Return the statistics.
    fn document(&mut self) -> Value {
        let now = self.now();
        let exports = self.exports.iter().zip(&mut self.devices).enumerate();
        let exports = exports.map(|(index, (export, device))| {
            let mut waiting = self.active.iter().flatten();
            if waiting.all(|active| active.request.export != index) {
                device.paced.idle_until(now);
            }
            device.document(export, now)
        });
        json!({
            "elapsed_ns": now,
            "clients": {
                "now": self.clients.len(),
                "in_all": self.next_client - FIRST_CLIENT,
                "turned_away": self.rejected_clients,
            },
            "exports": exports.collect::<Vec<_>>(),
        })
    }
}

/// Return the earlier of two checks; a due completion comes before every sleep.
fn earlier_wake(first: Option<Wake>, second: Option<Wake>) -> Option<Wake> {
    match (first, second) {
        (None, wake) | (wake, None) => wake,
        (Some(Wake::Due(a)), Some(Wake::Due(b))) => Some(Wake::Due(a.min(b))),
        (Some(Wake::Asleep(a)), Some(Wake::Asleep(b))) => Some(Wake::Asleep(a.min(b))),
        (Some(due @ Wake::Due(_)), _) | (_, Some(due @ Wake::Due(_))) => Some(due),
    }
}

/// The duration of a spin [ns]: enough to wake a CPU and receive the client's next request.
const SPIN_NS: u64 = 100_000;
/// After this number of consecutive misses spinning stops...
const MISSES: u32 = 3;
/// ... for this number of waits: 0.01 % of the time of a client with 10,000 requests per second.
const SKIPPED_WAITS: u32 = 10_000;

/// The results of recent spins.
#[derive(Debug, Default)]
pub(super) struct SpinPolicy {
    missed: u32,
    skipped: u32,
}

impl SpinPolicy {
    /// Return whether to spin before this sleep.
    fn should_spin(&mut self) -> bool {
        if self.missed < MISSES {
            return true;
        }
        self.skipped += 1;
        if self.skipped < SKIPPED_WAITS {
            return false;
        }
        // One retry.
        (self.missed, self.skipped) = (MISSES - 1, 0);
        true
    }

    /// Store the result of a spin.
    pub(super) fn record(&mut self, found_work: bool) {
        self.missed = if found_work { 0 } else { self.missed + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futile_spinning_is_skipped_and_retried() {
        let mut policy = SpinPolicy::default();
        let mut tries = 0;
        for _ in 0..MISSES + 3 * SKIPPED_WAITS {
            if policy.should_spin() {
                tries += 1;
                policy.record(false);
            }
        }
        assert_eq!(tries, MISSES + 3);
    }

    #[test]
    fn useful_spinning_continues_until_repeated_misses() {
        let mut policy = SpinPolicy::default();
        for wait in 0..=100 {
            assert!(policy.should_spin(), "{wait}");
            policy.record(wait % MISSES != 0);
        }
        for _ in 0..MISSES {
            assert!(policy.should_spin());
            policy.record(false);
        }
        assert!(!policy.should_spin());
        // One success re-enables spinning.
        while !policy.should_spin() {}
        policy.record(true);
        assert!(policy.should_spin());
    }
}
