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

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};
use uflip_core::{Bytes, Error, Io, Mode, Result, Ticket};

use crate::connection::{Connection, Standing};
use crate::data::Data;
use crate::export::Export;
use crate::listen::Listener;
use crate::paced::{Model, Over, Paced, Wake};
use crate::session::{Command, Request, Step};
use crate::statistics::Served;
use crate::sync::Syncer;
use crate::wire::{errno, put_data_head, put_error, put_simple};

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
const FIRST_CLIENT: u64 = 1 << 32;

/// A request under way.
#[derive(Debug)]
struct UnderWay {
    client: u64,
    request: Request,
    /// When it was whole [ns].
    arrived: u64,
    /// How many I/Os and syncs it still waits for.
    parts: u32,
    /// How long the device took, on the wall clock [ns].
    simulated: u64,
    failed: bool,
}

/// The server, while it serves.
struct Server<'a> {
    clock: Instant,
    poll: OwnedFd,
    listeners: &'a [Listener],
    exports: Vec<Export>,
    devices: Vec<Place>,
    syncer: Syncer,
    clients: HashMap<u64, Connection>,
    next_client: u64,
    under_way: Vec<Option<UnderWay>>,
    unused: Vec<usize>,
    /// Clients that have something to be sent, or to be used.
    busy: Vec<u64>,
    turned_away: u64,
    /// Nobody is let in for now: the system has no room.
    full: bool,
}

/// A device, and what waits for it.
struct Place {
    data: Data,
    durable: bool,
    paced: Paced,
    tickets: BTreeMap<Ticket, usize>,
    served: Served,
}

/// Serve `devices` to whoever comes through `listeners`, until `is_stopped`; returns the devices, and
/// what was served as a document.
///
/// # Errors
/// What the system refuses at the beginning.
pub fn serve(
    listeners: &[Listener],
    devices: Vec<Device>,
    is_stopped: impl Fn() -> bool,
) -> Result<(Vec<Model>, Value)> {
    let mut server = Server::new(listeners, devices)?;
    // Only this thread's sleeps end when they are meant to: by default 50 µs later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut room = vec![0; ROOM];
    while !is_stopped() {
        server.round(&mut room)?;
    }
    let document = server.document();
    Ok((server.devices.into_iter().map(|place| place.paced.into_model()).collect(), document))
}

impl<'a> Server<'a> {
    fn new(listeners: &'a [Listener], devices: Vec<Device>) -> Result<Server<'a>> {
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
        for (place, listener) in listeners.iter().enumerate() {
            watch(listener, place as u64)?;
        }
        let exports = devices.iter().map(|device| device.export.clone()).collect();
        let places = devices.into_iter().zip(durable).map(|(device, durable)| Place {
            data: device.data,
            durable,
            paced: device.paced,
            tickets: BTreeMap::new(),
            served: Served::default(),
        });
        Ok(Server {
            clock: Instant::now(),
            listeners,
            exports,
            devices: places.collect(),
            syncer,
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            under_way: Vec::new(),
            unused: Vec::new(),
            busy: Vec::new(),
            turned_away: 0,
            full: false,
            poll,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Once around: what is over, what is to be sent, what comes in.
    fn round(&mut self, room: &mut [u8]) -> Result<()> {
        let mut wake = self.look();
        while let Some(client) = self.busy.pop() {
            self.tend(client);
            // What had waited for room may be a request of its own.
            if self.busy.is_empty() {
                wake = self.look();
            }
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
                key if key < FIRST_CLIENT => self.let_in(key as usize),
                key => self.hear(key, flags, room),
            }
        }
        Ok(())
    }

    /// Wait for events: not at all where an I/O is over so soon that a sleep would miss it.
    fn wait(
        &self,
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
            None => epoll::wait(&self.poll, events, Some(&span(LOOK_UP_NS))),
        }
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
        under_way.simulated = under_way.simulated.max(took);
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
        let Some(done) = self.under_way[key].take() else { return };
        self.unused.push(key);
        let device = &mut self.devices[done.request.export];
        let Some(client) = self.clients.get_mut(&done.client) else { return };
        client.ends(owed(&done.request));
        let failed = answer(&done, &device.data, &mut client.out);
        let now = u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        note(&mut device.served, &done, failed, now);
        self.busy.push(done.client);
    }

    fn let_in(&mut self, listener: usize) {
        loop {
            match self.listeners[listener].accept() {
                Ok(Some(socket)) => self.welcome(socket),
                Ok(None) => return,
                // No room for another one: those who are here come first.
                Err(_) => {
                    self.turned_away += 1;
                    self.watch_listeners(false);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        if self.clients.len() >= MOST_CLIENTS {
            self.turned_away += 1;
            return;
        }
        let key = self.next_client;
        self.next_client += 1;
        let client = Connection::new(socket);
        let added = epoll::add(&self.poll, &client, EventData::new_u64(key), client.interest);
        if added.is_ok() {
            self.clients.insert(key, client);
            self.busy.push(key);
        }
    }

    /// Listen, or do not while there is no room.
    fn watch_listeners(&mut self, listen: bool) {
        self.full = !listen;
        let flags = if listen { EventFlags::IN } else { EventFlags::empty() };
        for (place, listener) in self.listeners.iter().enumerate() {
            let _ = epoll::modify(&self.poll, listener, EventData::new_u64(place as u64), flags);
        }
    }

    /// A client's socket has something, or takes something.
    fn hear(&mut self, key: u64, flags: EventFlags, room: &mut [u8]) {
        self.busy.push(key);
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) && !flags.contains(EventFlags::IN) {
            return self.part_with(key);
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        if !flags.contains(EventFlags::IN) || client.leaving || !client.unused.is_empty() {
            return;
        }
        match client.receive(room) {
            Ok(Some(read)) => self.use_input(key, &room[..read]),
            Ok(None) => {}
            Err(_) => self.part_with(key),
        }
    }

    /// Take what came in apart, as long as there is room for what it asks for.
    fn use_input(&mut self, key: u64, mut input: &[u8]) {
        let Some(mut client) = self.clients.remove(&key) else { return };
        loop {
            let settling = self.devices.iter().any(|device| device.paced.is_settling());
            if client.is_full() || settling {
                client.unused = input.to_vec();
                break;
            }
            match client.session.step(&mut input, &self.exports, &mut client.out) {
                Step::Hungry => break,
                Step::Data { export, offset, bytes } => {
                    if let Err(error) = self.devices[export].data.write(offset, bytes) {
                        client.data_error.get_or_insert(number_of(&error));
                    }
                }
                Step::Request(request) => self.begin(key, request, &mut client),
                Step::Leave => {
                    client.leaving = true;
                    break;
                }
            }
        }
        self.clients.insert(key, client);
    }

    /// Begin what a client asks for.
    fn begin(&mut self, client: u64, request: Request, connection: &mut Connection) {
        let arrived = self.now();
        let key = self.unused.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        // One part is this call, so that nothing is answered before all have begun.
        let (parts, simulated) = (1, 0);
        let mut new = UnderWay { client, request, arrived, parts, simulated, failed: false };
        let device = &mut self.devices[request.export];
        if let Some(error) = connection.data_error.take() {
            put_error(&mut connection.out, request.structured, request.cookie, error);
            device.served.failed += 1;
            self.unused.push(key);
            return;
        }
        match begun(device, &request, arrived, key) {
            Ok(parts) => new.parts += parts,
            Err(()) => new.failed = true,
        }
        if device.durable && (request.fua || request.command == Command::Flush) {
            new.parts += 1;
            self.syncer.wish(request.export, key);
        }
        connection.begins(owed(&request));
        self.under_way[key] = Some(new);
        if self.under_way[key].as_ref().is_some_and(|new| new.parts > 1) {
            if let Some(new) = &mut self.under_way[key] {
                new.parts -= 1;
            }
            return;
        }
        // Nothing is waited for; the client is not among the others while its input is used.
        if let Some(done) = self.under_way[key].take() {
            self.unused.push(key);
            connection.ends(owed(&done.request));
            let device = &mut self.devices[done.request.export];
            let failed = answer(&done, &device.data, &mut connection.out);
            note(&mut device.served, &done, failed, arrived);
        }
    }

    /// Send what a client is owed, use what of it had to wait, and wait for the right things.
    fn tend(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.send() == Standing::Gone {
            return self.part_with(key);
        }
        let settling = self.devices.iter().any(|device| device.paced.is_settling());
        if !client.unused.is_empty() && !client.is_full() && !settling {
            let unused = std::mem::take(&mut client.unused);
            self.use_input(key, &unused);
            self.busy.push(key);
            return;
        }
        let wanted = client.wanted();
        if wanted != client.interest {
            client.interest = wanted;
            let _ = epoll::modify(&self.poll, &*client, EventData::new_u64(key), wanted);
        }
    }

    /// A client is gone; what it has under way ends without it.
    fn part_with(&mut self, key: u64) {
        if let Some(client) = self.clients.remove(&key) {
            let _ = epoll::delete(&self.poll, &client);
        }
        if self.full {
            self.watch_listeners(true);
        }
    }

    /// What was served so far.
    fn document(&self) -> Value {
        let exports = self.exports.iter().zip(&self.devices).map(|(export, device)| {
            let mut document = device.served.document();
            document["name"] = json!(export.name);
            document["counters"] = json!(device.paced.counters());
            document
        });
        json!({
            "elapsed_ns": self.now(),
            "clients": {
                "now": self.clients.len(),
                "in_all": self.next_client - FIRST_CLIENT,
                "turned_away": self.turned_away,
            },
            "exports": exports.collect::<Vec<_>>(),
        })
    }
}

/// Give a request to its device; returns how many I/Os it is made of.
fn begun(
    device: &mut Place,
    request: &Request,
    now: u64,
    key: usize,
) -> std::result::Result<u32, ()> {
    let (offset, size) = (Bytes(request.offset), Bytes(u64::from(request.length)));
    let mut submit =
        |mode: Mode| match device.paced.submit(now, &Io { offset, size, mode }, request.fua) {
            Ok(ticket) => {
                device.tickets.insert(ticket, key);
                Ok(1)
            }
            Err(_) => Err(()),
        };
    match request.command {
        Command::Read => submit(Mode::Read),
        Command::Write => submit(Mode::Write),
        Command::Flush => Ok(0),
        Command::Trim => {
            device.paced.trim(now, offset, size);
            device.data.zero(offset.0, size.0, false).map(|()| 0).map_err(|_| ())
        }
        Command::WriteZeroes { keep } => {
            device.data.zero(offset.0, size.0, keep).map_err(|_| ())?;
            submit(Mode::Write)
        }
    }
}

/// How many bytes of data a reply has.
fn owed(request: &Request) -> u32 {
    if request.command == Command::Read { request.length } else { 0 }
}

/// Put the reply of a request into `out`; returns whether it failed.
fn answer(done: &UnderWay, data: &Data, out: &mut Vec<u8>) -> bool {
    let Request { cookie, command, offset, length, structured, .. } = done.request;
    let before = out.len();
    if !done.failed && command == Command::Read {
        put_data_head(out, structured, cookie, offset, length);
        if data.read(out, offset, length).is_ok() {
            return false;
        }
        out.truncate(before);
    } else if !done.failed {
        put_simple(out, cookie, 0);
        return false;
    }
    put_error(out, structured, cookie, errno::EIO);
    true
}

/// Count a request that is answered at `now`.
fn note(served: &mut Served, done: &UnderWay, failed: bool, now: u64) {
    let Request { command, length, .. } = done.request;
    if failed {
        served.failed += 1;
        return;
    }
    match command {
        Command::Read => {
            (served.reads, served.bytes_read) =
                (served.reads + 1, served.bytes_read + u64::from(length))
        }
        Command::Write => {
            (served.writes, served.bytes_written) =
                (served.writes + 1, served.bytes_written + u64::from(length))
        }
        Command::Flush => served.flushes += 1,
        Command::Trim => served.trims += 1,
        Command::WriteZeroes { .. } => served.zeroes += 1,
    }
    let response = now.saturating_sub(done.arrived);
    served.response.add(response);
    served.simulated.add(done.simulated);
    served.lag.add(response.saturating_sub(done.simulated));
}

/// What the protocol calls an error of the system.
fn number_of(error: &std::io::Error) -> u32 {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => errno::ENOSPC,
        _ => errno::EIO,
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
