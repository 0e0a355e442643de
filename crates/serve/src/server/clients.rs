//! Clients come, ask, are answered and go.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::place::UnderWay;
use super::{MOST_CLIENTS, Server};
use crate::connection::{Connection, Standing};
use crate::session::{Command, Request, Step};
use crate::wire::{errno, put_error};

impl Server<'_> {
    pub(super) fn let_in(&mut self, listener: usize) {
        loop {
            match self.ways.clients[listener].accept() {
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
        for (place, listener) in self.ways.clients.iter().enumerate() {
            let _ = epoll::modify(&self.poll, listener, EventData::new_u64(place as u64), flags);
        }
    }

    /// A client's socket has something, or takes something.
    pub(super) fn hear(&mut self, key: u64, flags: EventFlags, room: &mut [u8]) {
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
            self.held_back |= self.is_settling();
            if client.is_full() || self.held_back {
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
        let (parts, simulated, failed) = (0, 0, false);
        let mut new = UnderWay { client, request, arrived, parts, simulated, failed };
        device.begin(&mut new, key);
        if device.durable && (request.fua || request.command == Command::Flush) {
            new.parts += 1;
            self.syncer.wish(request.export, key);
        }
        if new.parts == 0 {
            device.answer(&new, &mut connection.out, arrived);
            self.unused.push(key);
            return;
        }
        connection.begins(new.owed());
        self.under_way[key] = Some(new);
    }

    /// Send what a client is owed, use what of it had to wait, and wait for the right things.
    pub(super) fn tend(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.send() == Standing::Gone {
            return self.part_with(key);
        }
        if !client.unused.is_empty() && !client.is_full() && !self.held_back {
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
}

/// What the protocol calls an error of the system.
fn number_of(error: &std::io::Error) -> u32 {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => errno::ENOSPC,
        _ => errno::EIO,
    }
}
