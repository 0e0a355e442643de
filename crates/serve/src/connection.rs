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
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// The same for its outstanding requests.
const MAX_REQUESTS: u32 = 4096;
/// The limit of output for all clients [bytes]: a request beyond it waits...
const MAX_TOTAL_OUTPUT_BYTES: u64 = 256 << 20;
/// ... unless its client has less than this [bytes]: slow readers do not block other clients.
const SHARE_OUTPUT_BYTES: u64 = 128 << 10;
/// The limit of outstanding requests of all clients...
const MAX_TOTAL_REQUESTS: u64 = 1 << 16;
/// ... beyond which each client may still have this many.
const SHARE_REQUESTS: u32 = 16;
/// The buffer size kept between replies [bytes].
const BUFFER_BYTES: usize = 1 << 20;

/// The total load of all clients on the server.
#[derive(Debug, Default)]
pub(crate) struct ServerLoad {
    bytes: Cell<u64>,
    requests: Cell<u64>,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) session: Session,
    /// Input that is not processed yet, because of the limits.
    pub(crate) pending_input: Vec<u8>,
    /// A request that waits for the common limit.
    pub(crate) waiting_request: Option<Request>,
    load: Rc<ServerLoad>,
    /// The share of this client in the load.
    reported_load: (u64, u64),
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
    pub(crate) fn new(socket: OwnedFd, load: Rc<ServerLoad>) -> Connection {
        let mut out = Vec::new();
        let session = Session::new(&mut out);
        Connection {
            socket,
            session,
            pending_input: Vec::new(),
            waiting_request: None,
            load,
            reported_load: (0, 0),
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
        let crowded = self.load.requests.get() >= MAX_TOTAL_REQUESTS;
        let limit = if crowded { SHARE_REQUESTS } else { MAX_REQUESTS };
        self.pending_output_bytes() > MAX_OUTPUT_BYTES || self.outstanding >= limit
    }

    /// Return the unsent bytes, plus those that outstanding requests will add.
    fn pending_output_bytes(&self) -> u64 {
        (self.out.len() - self.sent) as u64 + self.reply_bytes
    }

    /// Return whether a request may begin whose reply has `bytes` of data.
    pub(crate) fn may_begin_request(&self, bytes: u32) -> bool {
        let more = u64::from(bytes);
        self.pending_output_bytes() + more <= SHARE_OUTPUT_BYTES
            || self.load.bytes.get() + more <= MAX_TOTAL_OUTPUT_BYTES
    }

    /// Return whether input waits.
    pub(crate) fn is_blocked(&self) -> bool {
        self.waiting_request.is_some() || !self.pending_input.is_empty()
    }

    /// Return whether waiting input can be processed, as far as the limits decide.
    pub(crate) fn can_proceed(&self) -> bool {
        !self.is_full()
            && self
                .waiting_request
                .is_none_or(|request| self.may_begin_request(request.reply_bytes()))
    }

    /// Update the share of this client in the load.
    pub(crate) fn update_load(&mut self) {
        let bytes = (self.out.len() + self.pending_input.len()) as u64 + self.reply_bytes;
        self.set_load((bytes, u64::from(self.outstanding)));
    }

    fn set_load(&mut self, current: (u64, u64)) {
        let (bytes, requests) = std::mem::replace(&mut self.reported_load, current);
        self.load.bytes.set(self.load.bytes.get() - bytes + current.0);
        self.load.requests.set(self.load.requests.get() - requests + current.1);
    }

    /// Return the load of a client that has read nothing for longer than `patience` [bytes].
    pub(crate) fn stalled_bytes(&self, timeout: Duration) -> Option<u64> {
        self.stalled.filter(|since| since.elapsed() > timeout).map(|_| self.reported_load.0)
    }

    /// Read available input into `room`; `None` without input.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, ConnectionState> {
        match recv(&self.socket, buffer, RecvFlags::empty()) {
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
        let is_finished = self.closing && self.outstanding == 0 && self.out.is_empty();
        if is_finished { ConnectionState::Closed } else { ConnectionState::Open }
    }

    /// Return the events to wait for: input if it may be read, writability if output waits.
    pub(crate) fn desired_events(&self) -> EventFlags {
        let mut events = EventFlags::empty();
        if !self.closing && !self.is_full() && !self.is_blocked() {
            events |= EventFlags::IN;
        }
        if self.sent < self.out.len() {
            events |= EventFlags::OUT;
        }
        events
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
