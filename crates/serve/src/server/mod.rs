//! The one loop that serves: sockets, devices and the clock.
//!
//! ```text
//! look at the devices: what is over by now ─▶ replies ─▶ sockets
//! wait until a socket has something, or the next I/O is over: sleep, and spin for the last of it
//! sockets ─▶ sessions ─▶ data to where it is kept, requests to the device
//! ```
//!
//! One thread does all of it: a device has one clock, so requests of several connections meet there
//! anyway, and nobody wakes anybody between a request and its reply. A request is on the device's clock
//! from when it is whole; it is answered when the device is done with it and, where it is to be durable,
//! the data file is synced. What is later than that is lag, counted for every request.

mod clients;
mod patience;
mod place;

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
use crate::data::Data;
use crate::export::Export;
use crate::listen::Listener;
use crate::paced::{Model, Over, Paced, Wake};
use crate::record::Recorder;
use crate::server::patience::{LOOK_ON_NS, Patience};
use crate::server::place::{Place, UnderWay};
use crate::sync::Syncer;

/// A device, its data, and what clients are told of it.
#[derive(Debug)]
pub struct Device {
    /// What clients are told.
    pub export: Export,
    /// What they wrote.
    pub data: Data,
    /// How long it takes.
    pub paced: Paced,
}

/// Who comes in where, and who is told what they did.
#[derive(Debug, Default)]
pub struct Ways {
    /// Where clients come in.
    pub clients: Vec<Listener>,
    /// Whoever comes here gets what was served so far as a document, and nothing else.
    pub statistics: Option<Listener>,
    /// Where every read and write is written down.
    pub recorder: Option<Recorder>,
}

/// At most so many clients at once; the next ones are turned away.
const MOST_CLIENTS: usize = 1000;
/// What is read from a socket at once [bytes].
const ROOM: usize = 256 << 10;
/// How often somebody may want the server to end [ns].
const LOOK_UP_NS: u64 = 50_000_000;
/// Events taken at once.
const EVENTS: usize = 64;

/// Keys of what is waited for that is no client: listeners from 0 on, and these.
const BELL: u64 = u64::MAX;
const STATISTICS: u64 = u64::MAX - 1;
const FIRST_CLIENT: u64 = 1 << 32;

/// The server, while it serves.
struct Server<'a> {
    clock: Instant,
    poll: OwnedFd,
    ways: &'a Ways,
    exports: Vec<Export>,
    devices: Vec<Place>,
    syncer: Syncer,
    clients: HashMap<u64, Connection>,
    next_client: u64,
    under_way: Vec<Option<UnderWay>>,
    unused: Vec<usize>,
    /// Clients that have something to be sent, or to be used.
    busy: Vec<u64>,
    /// What all clients make the server keep.
    load: Rc<Load>,
    /// Clients whose next request waits for room, in the order of their coming.
    waiters: VecDeque<u64>,
    /// When it is looked again for clients that take nothing.
    look_for_slow_at: u64,
    /// Requests of which the device has had a part.
    unfinished: VecDeque<usize>,
    turned_away: u64,
    /// What clients ask for waits until a device has told a failure apart from what else is under way.
    held_back: bool,
    /// Nobody is let in until then: the system had no room.
    listen_again: Option<u64>,
    patience: Patience,
}

/// What is left when nobody is served any more.
#[derive(Debug)]
pub struct Ended {
    /// The devices, as their clients left them.
    pub devices: Vec<Model>,
    /// What was served.
    pub document: Value,
    /// Whether the recording is whole, where there is one.
    pub recorded: Result<()>,
}

/// Serve `devices` to whoever comes through `ways`, until `is_stopped`.
///
/// # Errors
/// What the system refuses.
pub fn serve(ways: Ways, devices: Vec<Device>, is_stopped: impl Fn() -> bool) -> Result<Ended> {
    // Only this thread's sleeps end when they are meant to: by default 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let served = served(&ways, devices, is_stopped);
    // In any case: what was recorded is whole before anybody hears that it is over.
    let recorded = ways.recorder.map_or(Ok(()), Recorder::finish);
    let (devices, document) = served?;
    Ok(Ended { devices, document, recorded })
}

fn served(
    ways: &Ways,
    devices: Vec<Device>,
    is_stopped: impl Fn() -> bool,
) -> Result<(Vec<Model>, Value)> {
    let mut server = Server::new(ways, devices)?;
    let mut room = vec![0; ROOM];
    while !is_stopped() {
        server.round(&mut room)?;
    }
    let document = server.document();
    Ok((server.devices.into_iter().map(|place| place.paced.into_model()).collect(), document))
}

impl<'a> Server<'a> {
    fn new(ways: &'a Ways, devices: Vec<Device>) -> Result<Server<'a>> {
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
        watch(&syncer.bell(), BELL)?;
        for (place, listener) in ways.clients.iter().enumerate() {
            watch(listener, place as u64)?;
        }
        if let Some(listener) = &ways.statistics {
            watch(listener, STATISTICS)?;
        }
        let exports = devices.iter().map(|device| device.export.clone()).collect();
        let places = devices.into_iter().zip(durable);
        let places = places.map(|(device, durable)| {
            Place::new(device.data, durable, device.paced, device.export.sector)
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
            patience: Patience::default(),
            poll,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Once around: what is over, what is to be sent, what comes in.
    fn round(&mut self, room: &mut [u8]) -> Result<()> {
        self.resume_listening(false);
        self.go_on();
        let mut wake = self.look();
        if self.held_back && !self.is_settling() {
            self.held_back = false;
            self.busy.extend(self.clients.keys());
        }
        loop {
            while let Some(client) = self.busy.pop() {
                self.tend(client);
                // Bytes that waited for room may be a request of its own.
                if self.busy.is_empty() {
                    wake = self.look();
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
                BELL => self.synced(),
                STATISTICS => self.tell(),
                key if key < FIRST_CLIENT => self.let_in(key as usize),
                key => self.hear(key, flags, room),
            }
        }
        Ok(())
    }

    /// Wait for events: not at all where an I/O is over so soon that a sleep would miss it.
    fn wait(
        &mut self,
        events: &mut [epoll::Event],
        wake: Option<Wake>,
    ) -> std::result::Result<usize, Errno> {
        let none = Timespec::default();
        let span = |ns: u64| Timespec { tv_sec: 0, tv_nsec: ns.min(LOOK_UP_NS) as i64 };
        match wake {
            Some(Wake::Due(_)) => epoll::wait(&self.poll, events, Some(&none)),
            Some(Wake::Asleep(until)) => {
                // Of `epoll_wait` the shortest sleep is a millisecond, before Linux 5.11.
                let mut waited = [PollFd::new(&self.poll, PollFlags::IN)];
                poll(&mut waited, Some(&span(until.saturating_sub(self.now()))))?;
                epoll::wait(&self.poll, events, Some(&none))
            }
            None if self.patience.is_worth_it() => match self.look_on(events)? {
                0 => epoll::wait(&self.poll, events, Some(&span(LOOK_UP_NS))),
                found => Ok(found),
            },
            None => epoll::wait(&self.poll, events, Some(&span(LOOK_UP_NS))),
        }
    }

    /// Look for events for a while, without sleeping.
    fn look_on(&mut self, events: &mut [epoll::Event]) -> std::result::Result<usize, Errno> {
        let until = self.now() + LOOK_ON_NS;
        loop {
            let found = epoll::wait(&self.poll, &mut *events, Some(&Timespec::default()))?;
            if found > 0 || self.now() >= until {
                self.patience.ended(found > 0);
                return Ok(found);
            }
            std::hint::spin_loop();
        }
    }

    fn is_settling(&self) -> bool {
        self.devices.iter().any(|device| device.paced.is_settling())
    }

    /// See which I/Os are over, and when the next one is.
    fn look(&mut self) -> Option<Wake> {
        let mut wake: Option<Wake> = None;
        for place in 0..self.devices.len() {
            let now = self.now();
            let paced = &mut self.devices[place].paced;
            paced.look(now);
            while let Some(over) = self.devices[place].paced.next_over() {
                self.over(place, over);
            }
            wake = sooner(wake, self.devices[place].paced.wake());
        }
        wake
    }

    fn over(&mut self, place: usize, over: Over) {
        let device = &mut self.devices[place];
        let Some(key) = device.tickets.remove(&over.ticket) else { return };
        let took = device.paced.wall_ns(over.response);
        let Some(under_way) = &mut self.under_way[key] else { return };
        under_way.failed |= over.failed;
        under_way.simulated += took;
        self.part_over(key);
    }

    /// The data file is durable, or not, for those who asked.
    fn synced(&mut self) {
        self.syncer.hush();
        while let Some((key, durable)) = self.syncer.answer() {
            if let Some(under_way) = &mut self.under_way[key] {
                under_way.failed |= !durable;
            }
            self.part_over(key);
        }
    }

    /// A part of a request is over; with the last one it is answered.
    fn part_over(&mut self, key: usize) {
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
        device.paced.told(done.arrived, now);
        if let (Some(recorder), Some(line)) = (&self.ways.recorder, done.line(now)) {
            recorder.add(line);
        }
        let Some(client) = self.clients.get_mut(&done.client) else { return };
        client.ends(done.request.owed());
        device.answer(&done, &mut client.out, now);
        client.count();
        self.busy.push(done.client);
    }

    /// Tell whoever came for it what was served so far.
    fn tell(&mut self) {
        let ways = self.ways;
        let Some(listener) = &ways.statistics else { return };
        loop {
            let socket = match listener.accept() {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                Err(_) => return self.pause_listening(),
            };
            // It fits into any socket's room; who does not take it does not get it.
            let text = format!("{}\n", self.document());
            let _ = rustix::net::send(&socket, text.as_bytes(), SendFlags::NOSIGNAL);
        }
    }

    /// What was served so far.
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

/// The sooner of two; what is due soon is before every sleep.
fn sooner(one: Option<Wake>, other: Option<Wake>) -> Option<Wake> {
    match (one, other) {
        (None, wake) | (wake, None) => wake,
        (Some(Wake::Due(a)), Some(Wake::Due(b))) => Some(Wake::Due(a.min(b))),
        (Some(Wake::Asleep(a)), Some(Wake::Asleep(b))) => Some(Wake::Asleep(a.min(b))),
        (Some(due @ Wake::Due(_)), _) | (_, Some(due @ Wake::Due(_))) => Some(due),
    }
}
