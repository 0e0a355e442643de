//! Clients of the server: accept, read, answer, disconnect.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::served_device::ActiveRequest;
use super::{MOST_CLIENTS, STATISTICS, STOP_CHECK_NS, Server};
use crate::connection::{Connection, ConnectionState};
use crate::session::{Command, Request, Step};
use crate::wire::{errno, put_error};

/// The delay before accepting again after a system error [ns].
const LISTEN_AGAIN_NS: u64 = 100_000_000;
/// A client that has read nothing for this long is dropped while others wait for memory.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server<'_> {
    pub(super) fn accept_clients(&mut self, listener: usize) {
        loop {
            match self.ways.clients[listener].accept() {
                Ok(Some(socket)) => self.add_client(socket),
                Ok(None) => return,
                // The system is out of descriptors or memory.
                Err(_) => return self.pause_listening(),
            }
        }
    }

    fn add_client(&mut self, socket: OwnedFd) {
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

    /// Stop listening for a while: epoll would report the failed accept again at once.
    pub(super) fn pause_listening(&mut self) {
        self.listen_again = Some(self.now() + LISTEN_AGAIN_NS);
        self.watch_listeners(EventFlags::empty());
    }

    /// Listen again when the delay has passed, or if `at_once`.
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

    /// Resume the client that has waited longest, if the limits allow it; return whether one
    /// resumed.
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
        if now < self.look_for_slow_at {
            return;
        }
        self.look_for_slow_at = now + STOP_CHECK_NS;
        let unread =
            |(key, client): (&u64, &Connection)| Some((client.stalled_bytes(PATIENCE)?, *key));
        if let Some((_, key)) = self.clients.iter().filter_map(unread).max() {
            self.turned_away += 1;
            self.drop_client(key);
        }
    }

    /// Handle an event of a client's socket.
    pub(super) fn handle_event(&mut self, key: u64, flags: EventFlags, room: &mut [u8]) {
        self.busy.push(key);
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) && !flags.contains(EventFlags::IN) {
            return self.drop_client(key);
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        if !flags.contains(EventFlags::IN) || client.closing || client.is_blocked() {
            return;
        }
        match client.receive(room) {
            Ok(Some(read)) => self.use_input(key, &room[..read]),
            Ok(None) => {}
            Err(_) => self.drop_client(key),
        }
    }

    /// Process input, as far as the limits allow.
    fn use_input(&mut self, key: u64, mut input: &[u8]) {
        let Some(mut client) = self.clients.remove(&key) else { return };
        loop {
            self.held_back |= self.is_identifying_failure();
            if !client.can_go_on() || self.held_back {
                client.unused = input.to_vec();
                break;
            }
            if let Some(request) = client.parked.take() {
                self.begin(key, request, &mut client);
                continue;
            }
            match client.session.step(&mut input, &self.exports, &mut client.out) {
                Step::NeedInput => break,
                Step::Data { export, offset, bytes } => {
                    if let Err(error) = self.devices[export].data.write(offset, bytes) {
                        client.data_error.get_or_insert(number_of(&error));
                    }
                }
                Step::Request(request) if client.has_room_for(request.reply_bytes()) => {
                    self.begin(key, request, &mut client);
                }
                Step::Request(request) => {
                    client.parked = Some(request);
                    self.waiters.push_back(key);
                }
                Step::Close => {
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
            device.served.failed += 1;
            return;
        }
        let key = self.unused.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        let mut new = ActiveRequest::new(client, request, arrived);
        self.step(&mut new, key, arrived);
        if new.parts == 0 && new.is_begun() {
            self.devices[request.export].answer(&new, &mut connection.out, arrived);
            self.unused.push(key);
            return connection.update_load();
        }
        if new.parts == 0 {
            self.unfinished.push_back(key);
        }
        connection.begin_request(request.reply_bytes());
        connection.update_load();
        self.under_way[key] = Some(new);
    }

    /// Submit the next step of a request; after the last one, sync its data if required.
    fn step(&mut self, new: &mut ActiveRequest, key: usize, now: u64) {
        let Request { export, command, fua, .. } = new.request;
        let device = &mut self.devices[export];
        device.step(new, key, now);
        let to_sync = fua || command == Command::Flush;
        if device.durable && to_sync && new.is_begun() {
            new.parts += 1;
            self.syncer.request(export, key);
        }
    }

    /// Continue the oldest long request by one step.
    pub(super) fn continue_request(&mut self) {
        if self.is_identifying_failure() {
            return;
        }
        let Some(key) = self.unfinished.pop_front() else { return };
        let Some(mut long) = self.under_way[key].take() else { return };
        // The client has disconnected: skip the rest.
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

    /// Send a client's output, process its waiting input, and update its events.
    pub(super) fn service_client(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.send() == ConnectionState::Closed {
            return self.drop_client(key);
        }
        client.update_load();
        if client.is_blocked() && client.can_go_on() && !self.held_back {
            let unused = std::mem::take(&mut client.unused);
            self.use_input(key, &unused);
            self.busy.push(key);
            return;
        }
        let wanted = client.desired_events();
        if wanted != client.interest {
            client.interest = wanted;
            let _ = epoll::modify(&self.poll, &*client, EventData::new_u64(key), wanted);
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
