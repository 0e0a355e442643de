//! Clients come, ask, are answered and go.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::place::UnderWay;
use super::{LOOK_UP_NS, MOST_CLIENTS, STATISTICS, Server};
use crate::connection::{Connection, Standing};
use crate::session::{Command, Request, Step};
use crate::wire::{errno, put_error};

/// After an error of the system it is tried so much later to accept the next client [ns].
const LISTEN_AGAIN_NS: u64 = 100_000_000;
/// While others wait for room, a client that has taken nothing for so long is parted with.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server<'_> {
    pub(super) fn let_in(&mut self, listener: usize) {
        loop {
            match self.ways.clients[listener].accept() {
                Ok(Some(socket)) => self.welcome(socket),
                Ok(None) => return,
                // The system has no room for another one now.
                Err(_) => return self.pause_listening(),
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
        let client = Connection::new(socket, Rc::clone(&self.load));
        let added = epoll::add(&self.poll, &client, EventData::new_u64(key), client.interest);
        if added.is_ok() {
            self.clients.insert(key, client);
            self.busy.push(key);
        }
    }

    /// Do not listen for a while: what could not be accepted would be reported again at once.
    pub(super) fn pause_listening(&mut self) {
        self.listen_again = Some(self.now() + LISTEN_AGAIN_NS);
        self.watch_listeners(EventFlags::empty());
    }

    /// Listen again where it is time to, or `at_once`.
    pub(super) fn resume_listening(&mut self, at_once: bool) {
        if self.listen_again.is_some_and(|when| at_once || self.now() >= when) {
            self.listen_again = None;
            self.watch_listeners(EventFlags::IN);
        }
    }

    fn watch_listeners(&mut self, flags: EventFlags) {
        let clients = self.ways.clients.iter().enumerate();
        let clients = clients.map(|(place, listener)| (listener, place as u64));
        let statistics = self.ways.statistics.iter().map(|listener| (listener, STATISTICS));
        for (listener, key) in clients.chain(statistics) {
            let _ = epoll::modify(&self.poll, listener, EventData::new_u64(key), flags);
        }
    }

    /// Let the client that has waited longest for room go on, if there is room; whether one does.
    pub(super) fn wake_waiter(&mut self) -> bool {
        while let Some(key) = self.waiters.front() {
            let client = self.clients.get(key).filter(|client| client.parked.is_some());
            match client.map(Connection::can_go_on) {
                None => {
                    self.waiters.pop_front();
                }
                Some(true) => {
                    self.busy.extend(self.waiters.pop_front());
                    return true;
                }
                Some(false) => {
                    self.give_up_the_slowest();
                    return false;
                }
            }
        }
        false
    }

    /// While others wait for room: drop the client that holds most of it and reads nothing.
    fn give_up_the_slowest(&mut self) {
        let now = self.now();
        if now < self.look_for_slow_at {
            return;
        }
        self.look_for_slow_at = now + LOOK_UP_NS;
        let unread =
            |(key, client): (&u64, &Connection)| Some((client.left_unread(PATIENCE)?, *key));
        if let Some((_, key)) = self.clients.iter().filter_map(unread).max() {
            self.turned_away += 1;
            self.part_with(key);
        }
    }

    /// A client's socket has something, or takes something.
    pub(super) fn hear(&mut self, key: u64, flags: EventFlags, room: &mut [u8]) {
        self.busy.push(key);
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) && !flags.contains(EventFlags::IN) {
            return self.part_with(key);
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        if !flags.contains(EventFlags::IN) || client.leaving || client.is_blocked() {
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
            self.held_back |= self.is_settling();
            if !client.can_go_on() || self.held_back {
                client.unused = input.to_vec();
                break;
            }
            if let Some(request) = client.parked.take() {
                self.begin(key, request, &mut client);
                continue;
            }
            match client.session.step(&mut input, &self.exports, &mut client.out) {
                Step::Hungry => break,
                Step::Data { export, offset, bytes } => {
                    if let Err(error) = self.devices[export].data.write(offset, bytes) {
                        client.data_error.get_or_insert(number_of(&error));
                    }
                }
                Step::Request(request) if client.has_room_for(request.owed()) => {
                    self.begin(key, request, &mut client);
                }
                Step::Request(request) => {
                    client.parked = Some(request);
                    self.waiters.push_back(key);
                }
                Step::Leave => {
                    client.leaving = true;
                    break;
                }
            }
        }
        client.count();
        self.clients.insert(key, client);
    }

    /// Begin what a client asks for. The client is not among the others meanwhile.
    fn begin(&mut self, client: u64, request: Request, connection: &mut Connection) {
        let arrived = self.now();
        let device = &mut self.devices[request.export];
        if let Some(error) = connection.data_error.take() {
            put_error(&mut connection.out, request.structured, request.cookie, error);
            device.served.failed += 1;
            return;
        }
        let key = self.unused.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        let mut new = UnderWay::new(client, request, arrived);
        self.step(&mut new, key, arrived);
        if new.parts == 0 && new.is_begun() {
            self.devices[request.export].answer(&new, &mut connection.out, arrived);
            self.unused.push(key);
            return connection.count();
        }
        if new.parts == 0 {
            self.unfinished.push_back(key);
        }
        connection.begins(request.owed());
        connection.count();
        self.under_way[key] = Some(new);
    }

    /// Give the device the next step of a request; with the last one its data is synced where it is to be
    /// durable.
    fn step(&mut self, new: &mut UnderWay, key: usize, now: u64) {
        let Request { export, command, fua, .. } = new.request;
        let device = &mut self.devices[export];
        device.step(new, key, now);
        let to_sync = fua || command == Command::Flush;
        if device.durable && to_sync && new.is_begun() {
            new.parts += 1;
            self.syncer.wish(export, key);
        }
    }

    /// Go on with the long request that has waited longest, by one step.
    pub(super) fn go_on(&mut self) {
        if self.is_settling() {
            return;
        }
        let Some(key) = self.unfinished.pop_front() else { return };
        let Some(mut long) = self.under_way[key].take() else { return };
        // Of a client that is gone nobody waits for the rest.
        if self.clients.contains_key(&long.client) {
            let now = self.now();
            self.step(&mut long, key, now);
        } else {
            long.failed = true;
        }
        let (waits, is_begun) = (long.parts > 0, long.is_begun());
        self.under_way[key] = Some(long);
        match (waits, is_begun) {
            (true, _) => {}
            (false, true) => self.finish(key),
            (false, false) => self.unfinished.push_back(key),
        }
    }

    /// Send what a client is owed, use what of it had to wait, and wait for the right things.
    pub(super) fn tend(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.send() == Standing::Gone {
            return self.part_with(key);
        }
        client.count();
        if client.is_blocked() && client.can_go_on() && !self.held_back {
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
        self.resume_listening(true);
    }
}

/// What the protocol calls an error of the system.
fn number_of(error: &std::io::Error) -> u32 {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => errno::ENOSPC,
        _ => errno::EIO,
    }
}
