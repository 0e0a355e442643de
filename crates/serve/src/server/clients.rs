//! Clients of the server: accept, read, answer, disconnect.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::served_device::ActiveRequest;
use super::{MAX_CLIENTS, STATISTICS, STOP_CHECK_NS, Server};
use crate::connection::{Connection, ConnectionState};
use crate::session::{NbdCommand, Request, SessionEvent};
use crate::wire::{errno, put_error};

/// The delay before accepting again after a system error [ns].
const LISTEN_RETRY_NS: u64 = 100_000_000;
/// A client that has read nothing for this long is dropped while others wait for memory.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

impl Server<'_> {
    pub(super) fn accept_clients(&mut self, listener: usize) {
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
    pub(super) fn pause_listening(&mut self) {
        self.resume_listening_at = Some(self.now() + LISTEN_RETRY_NS);
        self.watch_listeners(EventFlags::empty());
    }

    /// Listen again when the delay has passed, or if `at_once`.
    pub(super) fn resume_listening(&mut self, at_once: bool) {
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
    pub(super) fn wake_waiter(&mut self) -> bool {
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
    pub(super) fn handle_event(&mut self, key: u64, flags: EventFlags, buffer: &mut [u8]) {
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
    pub(super) fn continue_request(&mut self) {
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
    pub(super) fn service_client(&mut self, key: u64) {
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
