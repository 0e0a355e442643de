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

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use serde_json::{Value, json};
use uflip_core::{Error, Result};

use crate::connection::{Connection, ConnectionState, ServerLoad};
use crate::export_data::{ExportData, Syncer};
use crate::listener::Listener;
use crate::paced_device::{CompletedIo, Model, PacedDevice, Wake};
use crate::request_recorder::RequestRecorder;
use crate::served_device::{ActiveRequest, ServedDevice};
use crate::session::{NbdCommand, Request, SessionEvent};
use crate::wire::{Export, errno, put_error};

/// A device, its data and its export.
#[derive(Debug)]
pub struct ExportedDevice {
    /// The properties that clients see.
    pub export: Export,
    /// The data.
    pub data: ExportData,
    /// The device on the wall clock.
    pub paced: PacedDevice,
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

/// The delay before accepting again after a system error [ns].
const LISTEN_RETRY_NS: u64 = 100_000_000;
/// A client that has read nothing for this long is dropped while others wait for memory.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Clients: accept, read, answer, disconnect.
impl Server<'_> {
    fn accept_clients(&mut self, listener: usize) {
        loop {
            match self.endpoints.clients[listener].accept() {
                Ok(Some(socket)) => self.add_client(socket),
                Ok(None) => return,
                // The system is out of descriptors or memory.
                Err(_) => return self.pause_listening(),
            }
        }
    }

    fn add_client(&mut self, socket: OwnedFd) {
        if self.clients.len() >= MAX_CLIENTS {
            self.rejected_clients += 1;
            return;
        }
        let key = self.next_client;
        self.next_client += 1;
        let client = Connection::new(socket, Rc::clone(&self.load));
        let added = epoll::add(&self.poll, &client, EventData::new_u64(key), client.interest);
        if added.is_ok() {
            self.clients.insert(key, client);
            self.ready_clients.push(key);
        }
    }

    /// Stop listening for a while: epoll would report the failed accept again at once.
    fn pause_listening(&mut self) {
        self.resume_listening_at = Some(self.now() + LISTEN_RETRY_NS);
        self.watch_listeners(EventFlags::empty());
    }

    /// Listen again when the delay has passed, or if `at_once`.
    fn resume_listening(&mut self, at_once: bool) {
        if self.resume_listening_at.is_some_and(|resume_at| at_once || self.now() >= resume_at) {
            self.resume_listening_at = None;
            self.watch_listeners(EventFlags::IN);
        }
    }

    fn watch_listeners(&mut self, flags: EventFlags) {
        let clients = self.endpoints.clients.iter().enumerate();
        let clients = clients.map(|(index, listener)| (listener, index as u64));
        let statistics = self.endpoints.statistics.iter().map(|listener| (listener, STATISTICS));
        for (listener, key) in clients.chain(statistics) {
            let _ = epoll::modify(&self.poll, listener, EventData::new_u64(key), flags);
        }
    }

    /// Resume the client that has waited longest, if the limits allow it; return whether one
    /// resumed.
    fn wake_waiter(&mut self) -> bool {
        while let Some(key) = self.waiters.front() {
            let client = self.clients.get(key).filter(|client| client.waiting_request.is_some());
            match client.map(Connection::can_proceed) {
                None => {
                    self.waiters.pop_front();
                }
                Some(true) => {
                    self.ready_clients.extend(self.waiters.pop_front());
                    return true;
                }
                Some(false) => {
                    self.drop_slowest_client();
                    return false;
                }
            }
        }
        false
    }

    /// While others wait for memory, drop the client with the most unread output.
    fn drop_slowest_client(&mut self) {
        let now = self.now();
        if now < self.next_stall_check {
            return;
        }
        self.next_stall_check = now + STOP_CHECK_NS;
        let stalled =
            |(key, client): (&u64, &Connection)| Some((client.stalled_bytes(STALL_TIMEOUT)?, *key));
        if let Some((_, key)) = self.clients.iter().filter_map(stalled).max() {
            self.rejected_clients += 1;
            self.drop_client(key);
        }
    }

    /// Handle an event of a client's socket.
    fn handle_event(&mut self, key: u64, flags: EventFlags, buffer: &mut [u8]) {
        self.ready_clients.push(key);
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) && !flags.contains(EventFlags::IN) {
            return self.drop_client(key);
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        if !flags.contains(EventFlags::IN) || client.closing || client.is_blocked() {
            return;
        }
        match client.receive(buffer) {
            Ok(Some(read)) => self.use_input(key, &buffer[..read]),
            Ok(None) => {}
            Err(_) => self.drop_client(key),
        }
    }

    /// Process input, as far as the limits allow.
    fn use_input(&mut self, key: u64, mut input: &[u8]) {
        let Some(mut client) = self.clients.remove(&key) else { return };
        loop {
            self.input_paused |= self.is_identifying_failure();
            if !client.can_proceed() || self.input_paused {
                client.pending_input = input.to_vec();
                break;
            }
            if let Some(request) = client.waiting_request.take() {
                self.begin(key, request, &mut client);
                continue;
            }
            match client.session.step(&mut input, &self.exports, &mut client.out) {
                SessionEvent::NeedInput => break,
                SessionEvent::Data { export, offset, bytes } => {
                    if let Err(error) = self.devices[export].data.write(offset, bytes) {
                        client.data_error.get_or_insert(number_of(&error));
                    }
                }
                SessionEvent::Request(request)
                    if client.may_begin_request(request.reply_bytes()) =>
                {
                    self.begin(key, request, &mut client);
                }
                SessionEvent::Request(request) => {
                    client.waiting_request = Some(request);
                    self.waiters.push_back(key);
                }
                SessionEvent::Close => {
                    client.closing = true;
                    break;
                }
            }
        }
        client.update_load();
        self.clients.insert(key, client);
    }

    /// Begin a request. Its client is not in the map meanwhile.
    fn begin(&mut self, client: u64, request: Request, connection: &mut Connection) {
        let arrived = self.now();
        let device = &mut self.devices[request.export];
        if let Some(error) = connection.data_error.take() {
            put_error(&mut connection.out, request.structured, request.cookie, error);
            device.statistics.failed += 1;
            return;
        }
        let key = self.free_keys.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        let mut active = ActiveRequest::new(client, request, arrived);
        self.step(&mut active, key, arrived);
        if active.pending_parts == 0 && active.is_submitted() {
            self.devices[request.export].answer(&active, &mut connection.out, arrived);
            self.free_keys.push(key);
            return connection.update_load();
        }
        if active.pending_parts == 0 {
            self.partly_submitted.push_back(key);
        }
        connection.begin_request(request.reply_bytes());
        connection.update_load();
        self.active[key] = Some(active);
    }

    /// Submit the next step of a request; after the last one, sync its data if required.
    fn step(&mut self, active: &mut ActiveRequest, key: usize, now: u64) {
        let Request { export, command, fua, .. } = active.request;
        let device = &mut self.devices[export];
        device.step(active, key, now);
        let to_sync = fua || command == NbdCommand::Flush;
        if device.durable && to_sync && active.is_submitted() {
            active.pending_parts += 1;
            self.syncer.request(export, key);
        }
    }

    /// Continue the oldest long request by one step.
    fn continue_request(&mut self) {
        if self.is_identifying_failure() {
            return;
        }
        let Some(key) = self.partly_submitted.pop_front() else { return };
        let Some(mut active) = self.active[key].take() else { return };
        // The client has disconnected: skip the rest.
        if self.clients.contains_key(&active.client) {
            let now = self.now();
            self.step(&mut active, key, now);
        } else {
            active.failed = true;
        }
        let (has_pending, is_submitted) = (active.pending_parts > 0, active.is_submitted());
        self.active[key] = Some(active);
        match (has_pending, is_submitted) {
            (true, _) => {}
            (false, true) => self.finish(key),
            (false, false) => self.partly_submitted.push_back(key),
        }
    }

    /// Send a client's output, process its waiting input, and update its events.
    fn service_client(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.send() == ConnectionState::Closed {
            return self.drop_client(key);
        }
        client.update_load();
        if client.is_blocked() && client.can_proceed() && !self.input_paused {
            let pending_input = std::mem::take(&mut client.pending_input);
            self.use_input(key, &pending_input);
            self.ready_clients.push(key);
            return;
        }
        let events = client.desired_events();
        if events != client.interest {
            client.interest = events;
            let _ = epoll::modify(&self.poll, &*client, EventData::new_u64(key), events);
        }
    }

    /// Disconnect a client; its outstanding requests complete without it.
    fn drop_client(&mut self, key: u64) {
        if let Some(client) = self.clients.remove(&key) {
            let _ = epoll::delete(&self.poll, &client);
        }
        self.resume_listening(true);
    }
}

/// Return the protocol's error number for an error of the system.
fn number_of(error: &std::io::Error) -> u32 {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => errno::ENOSPC,
        _ => errno::EIO,
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
struct SpinPolicy {
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
    fn record(&mut self, found_work: bool) {
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
