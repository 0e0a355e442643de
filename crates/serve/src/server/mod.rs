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

mod clients;
mod served_device;
mod spin_policy;

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

use crate::connection::{Connection, Load};
use crate::data::ExportData;
use crate::export::Export;
use crate::listen::Listener;
use crate::paced::{CompletedIo, Model, Paced, Wake};
use crate::record::Recorder;
use crate::server::served_device::{ActiveRequest, ServedDevice};
use crate::server::spin_policy::{SPIN_NS, SpinPolicy};
use crate::sync::Syncer;

/// A device, its data and its export.
#[derive(Debug)]
pub struct Device {
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
    pub recorder: Option<Recorder>,
}

/// The limit of clients; further ones are turned away.
const MOST_CLIENTS: usize = 1000;
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
    ways: &'a Endpoints,
    exports: Vec<Export>,
    devices: Vec<ServedDevice>,
    syncer: Syncer,
    clients: HashMap<u64, Connection>,
    next_client: u64,
    under_way: Vec<Option<ActiveRequest>>,
    unused: Vec<usize>,
    /// Clients with output to send or input to process.
    busy: Vec<u64>,
    /// The total load of all clients.
    load: Rc<Load>,
    /// Clients whose next request waits for the limits, in order.
    waiters: VecDeque<u64>,
    /// The time of the next search for stalled clients.
    look_for_slow_at: u64,
    /// Requests that are submitted in part.
    unfinished: VecDeque<usize>,
    turned_away: u64,
    /// Whether input waits until a failed I/O is identified.
    held_back: bool,
    /// Listening is suspended until then, because the system was out of resources.
    listen_again: Option<u64>,
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
    ways: Endpoints,
    devices: Vec<Device>,
    is_stopped: impl Fn() -> bool,
) -> Result<ServeOutcome> {
    // Sets the timer slack of this thread: by default, sleeps end 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let served = run(&ways, devices, is_stopped);
    // Finish the recording in any case, before the outcome is returned.
    let recorded = ways.recorder.map_or(Ok(()), Recorder::finish);
    let (devices, document) = served?;
    Ok(ServeOutcome { devices, document, recorded })
}

fn run(
    ways: &Endpoints,
    devices: Vec<Device>,
    is_stopped: impl Fn() -> bool,
) -> Result<(Vec<Model>, Value)> {
    let mut server = Server::new(ways, devices)?;
    let mut room = vec![0; RECEIVE_BYTES];
    while !is_stopped() {
        server.round(&mut room)?;
    }
    let document = server.document();
    Ok((server.devices.into_iter().map(|place| place.paced.into_model()).collect(), document))
}

impl<'a> Server<'a> {
    fn new(ways: &'a Endpoints, devices: Vec<Device>) -> Result<Server<'a>> {
        let refused = |error: std::io::Error| Error::os("Nothing can be served", "serve", &error);
        let files = devices.iter().map(|device| device.data.to_sync());
        let files = files.collect::<std::io::Result<Vec<_>>>().map_err(refused)?;
        let durable: Vec<bool> = files.iter().map(Option::is_some).collect();
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let poll = poll.map_err(|error| refused(error.into()))?;
        let syncer = Syncer::start(files)?;
        let watch = |what: &dyn AsFd, key: u64| {
            epoll::add(&poll, what.as_fd(), EventData::new_u64(key), EventFlags::IN)
                .map_err(|error| refused(error.into()))
        };
        watch(&syncer.event(), SYNC_EVENT)?;
        for (place, listener) in ways.clients.iter().enumerate() {
            watch(listener, place as u64)?;
        }
        if let Some(listener) = &ways.statistics {
            watch(listener, STATISTICS)?;
        }
        let exports = devices.iter().map(|device| device.export.clone()).collect();
        let places = devices.into_iter().zip(durable);
        let places = places.map(|(device, durable)| {
            ServedDevice::new(device.data, durable, device.paced, device.export.sector)
        });
        Ok(Server {
            clock: Instant::now(),
            ways,
            exports,
            devices: places.collect(),
            syncer,
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            under_way: Vec::new(),
            unused: Vec::new(),
            busy: Vec::new(),
            load: Rc::default(),
            waiters: VecDeque::new(),
            look_for_slow_at: 0,
            unfinished: VecDeque::new(),
            turned_away: 0,
            held_back: false,
            listen_again: None,
            spin_policy: SpinPolicy::default(),
            poll,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Execute one iteration of the loop: completions, output, events.
    fn round(&mut self, room: &mut [u8]) -> Result<()> {
        self.resume_listening(false);
        self.continue_request();
        let mut wake = self.poll_devices();
        if self.held_back && !self.is_identifying_failure() {
            self.held_back = false;
            self.busy.extend(self.clients.keys());
        }
        loop {
            while let Some(client) = self.busy.pop() {
                self.service_client(client);
                // Waiting input may contain further requests.
                if self.busy.is_empty() {
                    wake = self.poll_devices();
                }
            }
            if !self.wake_waiter() {
                break;
            }
        }
        if !self.unfinished.is_empty() {
            wake = Some(Wake::Due(0));
        }
        let mut events =
            [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let found = match self.wait(&mut events, wake) {
            Ok(found) => found,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(Error::os("Waiting failed", "serve", &error.into())),
        };
        for event in &events[..found] {
            let (key, flags) = (event.data.u64(), event.flags);
            match key {
                SYNC_EVENT => self.synced(),
                STATISTICS => self.send_statistics(),
                key if key < FIRST_CLIENT => self.accept_clients(key as usize),
                key => self.handle_event(key, flags, room),
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
                found => Ok(found),
            },
            None => epoll::wait(&self.poll, events, Some(&span(STOP_CHECK_NS))),
        }
    }

    /// Poll for events for a while, without sleeping.
    fn spin(&mut self, events: &mut [epoll::Event]) -> std::result::Result<usize, Errno> {
        let until = self.now() + SPIN_NS;
        loop {
            let found = epoll::wait(&self.poll, &mut *events, Some(&Timespec::default()))?;
            if found > 0 || self.now() >= until {
                self.spin_policy.record(found > 0);
                return Ok(found);
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
        for place in 0..self.devices.len() {
            let now = self.now();
            let paced = &mut self.devices[place].paced;
            paced.poll(now);
            while let Some(over) = self.devices[place].paced.next_completed() {
                self.complete_io(place, over);
            }
            wake = sooner(wake, self.devices[place].paced.wake());
        }
        wake
    }

    fn complete_io(&mut self, place: usize, over: CompletedIo) {
        let device = &mut self.devices[place];
        let Some(key) = device.tickets.remove(&over.ticket) else { return };
        let took = device.paced.wall_ns(over.response);
        let Some(under_way) = &mut self.under_way[key] else { return };
        under_way.failed |= over.failed;
        under_way.simulated += took;
        self.complete_part(key);
    }

    /// Process the answers of the sync thread.
    fn synced(&mut self) {
        self.syncer.clear_event();
        while let Some((key, durable)) = self.syncer.answer() {
            if let Some(under_way) = &mut self.under_way[key] {
                under_way.failed |= !durable;
            }
            self.complete_part(key);
        }
    }

    /// Complete a part of a request; after the last one, answer it.
    fn complete_part(&mut self, key: usize) {
        let Some(under_way) = &mut self.under_way[key] else { return };
        under_way.parts -= 1;
        if under_way.parts > 0 {
            return;
        }
        if under_way.is_begun() {
            self.finish(key);
        } else {
            self.unfinished.push_back(key);
        }
    }

    /// Answer a request.
    fn finish(&mut self, key: usize) {
        let Some(done) = self.under_way[key].take() else { return };
        self.unused.push(key);
        let now = self.now();
        let device = &mut self.devices[done.request.export];
        device.paced.record_reply(done.arrived, now);
        if let (Some(recorder), Some(line)) = (&self.ways.recorder, done.line(now)) {
            recorder.add(line);
        }
        let Some(client) = self.clients.get_mut(&done.client) else { return };
        client.end_request(done.request.reply_bytes());
        device.answer(&done, &mut client.out, now);
        client.update_load();
        self.busy.push(done.client);
    }

    /// Send the statistics to each new connection of the statistics socket.
    fn send_statistics(&mut self) {
        let ways = self.ways;
        let Some(listener) = &ways.statistics else { return };
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
        let exports = exports.map(|(place, (export, device))| {
            let mut waiting = self.under_way.iter().flatten();
            if waiting.all(|one| one.request.export != place) {
                device.paced.rest(now);
            }
            device.document(export, now)
        });
        json!({
            "elapsed_ns": now,
            "clients": {
                "now": self.clients.len(),
                "in_all": self.next_client - FIRST_CLIENT,
                "turned_away": self.turned_away,
            },
            "exports": exports.collect::<Vec<_>>(),
        })
    }
}

/// Return the earlier of two checks; a due completion comes before every sleep.
fn sooner(one: Option<Wake>, other: Option<Wake>) -> Option<Wake> {
    match (one, other) {
        (None, wake) | (wake, None) => wake,
        (Some(Wake::Due(a)), Some(Wake::Due(b))) => Some(Wake::Due(a.min(b))),
        (Some(Wake::Asleep(a)), Some(Wake::Asleep(b))) => Some(Wake::Asleep(a.min(b))),
        (Some(due @ Wake::Due(_)), _) | (_, Some(due @ Wake::Due(_))) => Some(due),
    }
}
