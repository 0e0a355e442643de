//! The connection of one client: its unprocessed input, its output, and its outstanding requests.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::session::{Request, Session};

/// No further input is read from a client with more output than this [bytes]: a reply may be as
/// long as [`crate::LONGEST_DATA`], and a client that does not read its replies gets no more of
/// them.
const MOST_WAITING: u64 = 64 << 20;
/// The same for its outstanding requests.
const MOST_REQUESTS: u32 = 4096;
/// The limit of output for all clients [bytes]: a request beyond it waits...
const MOST_WAITING_IN_ALL: u64 = 256 << 20;
/// ... unless its client has less than this [bytes]: slow readers do not block other clients.
const SHARE: u64 = 128 << 10;
/// The limit of outstanding requests of all clients...
const MOST_REQUESTS_IN_ALL: u64 = 1 << 16;
/// ... beyond which each client may still have this many.
const SHARE_REQUESTS: u32 = 16;
/// The buffer size kept between replies [bytes].
const BUFFER_BYTES: usize = 1 << 20;

/// The total load of all clients on the server.
#[derive(Debug, Default)]
pub(crate) struct Load {
    bytes: Cell<u64>,
    requests: Cell<u64>,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) session: Session,
    /// Input that is not processed yet, because of the limits.
    pub(crate) unused: Vec<u8>,
    /// A request that waits for the common limit.
    pub(crate) parked: Option<Request>,
    load: Rc<Load>,
    /// The share of this client in the load.
    counted: (u64, u64),
    /// The time since which the client has read nothing of its output.
    stalled: Option<Instant>,
    /// Replies; the first `sent` bytes are sent.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Outstanding requests, and the bytes of their replies.
    outstanding: u32,
    reply_bytes: u64,
    /// Whether no more input is read; the connection closes when all output is sent.
    pub(crate) closing: bool,
    /// The error of storing a part of the present write's data.
    pub(crate) data_error: Option<u32>,
    /// The registered epoll events.
    pub(crate) interest: EventFlags,
}

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionState {
    Open,
    Closed,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, load: Rc<Load>) -> Connection {
        let mut out = Vec::new();
        let session = Session::new(&mut out);
        Connection {
            socket,
            session,
            unused: Vec::new(),
            parked: None,
            load,
            counted: (0, 0),
            stalled: None,
            out,
            sent: 0,
            outstanding: 0,
            reply_bytes: 0,
            closing: false,
            data_error: None,
            interest: EventFlags::IN,
        }
    }

    /// Count a request whose reply has `bytes` of data.
    pub(crate) fn begin_request(&mut self, bytes: u32) {
        self.outstanding += 1;
        self.reply_bytes += u64::from(bytes);
    }

    /// Count its reply.
    pub(crate) fn end_request(&mut self, bytes: u32) {
        self.outstanding -= 1;
        self.reply_bytes -= u64::from(bytes);
    }

    /// Return whether no more input may be read for now.
    pub(crate) fn is_full(&self) -> bool {
        let crowded = self.load.requests.get() >= MOST_REQUESTS_IN_ALL;
        let most = if crowded { SHARE_REQUESTS } else { MOST_REQUESTS };
        self.waiting() > MOST_WAITING || self.outstanding >= most
    }

    /// Return the unsent bytes, plus those that outstanding requests will add.
    fn waiting(&self) -> u64 {
        (self.out.len() - self.sent) as u64 + self.reply_bytes
    }

    /// Return whether a request may begin whose reply has `bytes` of data.
    pub(crate) fn has_room_for(&self, bytes: u32) -> bool {
        let more = u64::from(bytes);
        self.waiting() + more <= SHARE || self.load.bytes.get() + more <= MOST_WAITING_IN_ALL
    }

    /// Return whether input waits.
    pub(crate) fn is_blocked(&self) -> bool {
        self.parked.is_some() || !self.unused.is_empty()
    }

    /// Return whether waiting input can be processed, as far as the limits decide.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.is_full()
            && self.parked.is_none_or(|request| self.has_room_for(request.reply_bytes()))
    }

    /// Update the share of this client in the load.
    pub(crate) fn update_load(&mut self) {
        let kept = (self.out.len() + self.unused.len()) as u64 + self.reply_bytes;
        self.set_load((kept, u64::from(self.outstanding)));
    }

    fn set_load(&mut self, now: (u64, u64)) {
        let (bytes, requests) = std::mem::replace(&mut self.counted, now);
        self.load.bytes.set(self.load.bytes.get() - bytes + now.0);
        self.load.requests.set(self.load.requests.get() - requests + now.1);
    }

    /// Return the load of a client that has read nothing for longer than `patience` [bytes].
    pub(crate) fn stalled_bytes(&self, patience: Duration) -> Option<u64> {
        self.stalled.filter(|since| since.elapsed() > patience).map(|_| self.counted.0)
    }

    /// Read available input into `room`; `None` without input.
    pub(crate) fn receive(&self, room: &mut [u8]) -> Result<Option<usize>, ConnectionState> {
        match recv(&self.socket, room, RecvFlags::empty()) {
            Ok((_, 0)) => Err(ConnectionState::Closed),
            Ok((_, read)) => Ok(Some(read)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(_) => Err(ConnectionState::Closed),
        }
    }

    /// Send output as far as the socket accepts it.
    pub(crate) fn send(&mut self) -> ConnectionState {
        let before = self.sent;
        while self.sent < self.out.len() {
            match send(&self.socket, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if self.sent > before || self.stalled.is_none() {
                        self.stalled = Some(Instant::now());
                    }
                    return self.state();
                }
                Err(_) => return ConnectionState::Closed,
            }
        }
        self.stalled = None;
        self.out.clear();
        self.out.shrink_to(BUFFER_BYTES);
        self.sent = 0;
        self.state()
    }

    fn state(&mut self) -> ConnectionState {
        // Only if at least half is sent, so that each byte is moved once on average.
        if self.sent > BUFFER_BYTES && self.sent >= self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        let over = self.closing && self.outstanding == 0 && self.out.is_empty();
        if over { ConnectionState::Closed } else { ConnectionState::Open }
    }

    /// Return the events to wait for: input if it may be read, writability if output waits.
    pub(crate) fn desired_events(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        if !self.closing && !self.is_full() && !self.is_blocked() {
            wanted |= EventFlags::IN;
        }
        if self.sent < self.out.len() {
            wanted |= EventFlags::OUT;
        }
        wanted
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.set_load((0, 0));
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
