//! One client's socket: what came in and is not used yet, what is to go out, what is under way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::session::Session;

/// Nothing more is taken from a client for whom so much waits [bytes]: a reply may be as long as
/// [`crate::LONGEST_DATA`], and who does not read does not get others.
const MOST_WAITING: u64 = 64 << 20;
/// ... nor from one that has so many requests under way.
const MOST_REQUESTS: u32 = 4096;
/// Room for replies that is kept from one to the next [bytes].
const KEPT_ROOM: usize = 1 << 20;

/// A client that is connected.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) session: Session,
    /// What came in and waits until there is room for what it asks.
    pub(crate) unused: Vec<u8>,
    /// Replies; `sent` of them are.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// Requests under way, and how many bytes their replies will have.
    under_way: u32,
    owed: u64,
    /// Nothing more is read; it is over when everything is sent.
    pub(crate) leaving: bool,
    /// Why a part of the data that comes now could not be kept.
    pub(crate) data_error: Option<u32>,
    /// What is waited for.
    pub(crate) interest: EventFlags,
}

/// What became of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Here,
    Gone,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Connection {
        let mut out = Vec::new();
        let session = Session::new(&mut out);
        Connection {
            socket,
            session,
            unused: Vec::new(),
            out,
            sent: 0,
            under_way: 0,
            owed: 0,
            leaving: false,
            data_error: None,
            interest: EventFlags::IN,
        }
    }

    /// A request is under way, whose reply will have `bytes` of data.
    pub(crate) fn begins(&mut self, bytes: u32) {
        self.under_way += 1;
        self.owed += u64::from(bytes);
    }

    /// It is answered.
    pub(crate) fn ends(&mut self, bytes: u32) {
        self.under_way -= 1;
        self.owed -= u64::from(bytes);
    }

    /// Whether nothing more may be taken from the client for now.
    pub(crate) fn is_full(&self) -> bool {
        let waiting = (self.out.len() - self.sent) as u64 + self.owed;
        waiting > MOST_WAITING || self.under_way >= MOST_REQUESTS
    }

    /// Read what is there, at most as much as `room` takes; `None` where nothing is.
    pub(crate) fn receive(&self, room: &mut [u8]) -> Result<Option<usize>, Standing> {
        match recv(&self.socket, room, RecvFlags::empty()) {
            Ok((_, 0)) => Err(Standing::Gone),
            Ok((_, read)) => Ok(Some(read)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(_) => Err(Standing::Gone),
        }
    }

    /// Send what waits, as far as the client takes it.
    pub(crate) fn send(&mut self) -> Standing {
        while self.sent < self.out.len() {
            match send(&self.socket, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.still_here(),
                Err(_) => return Standing::Gone,
            }
        }
        self.out.clear();
        self.out.shrink_to(KEPT_ROOM);
        self.sent = 0;
        self.still_here()
    }

    fn still_here(&mut self) -> Standing {
        if self.sent > KEPT_ROOM {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        let over = self.leaving && self.under_way == 0 && self.out.is_empty();
        if over { Standing::Gone } else { Standing::Here }
    }

    /// What is to be waited for: data where there is room for it, room where data waits.
    pub(crate) fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        if !self.leaving && !self.is_full() && self.unused.is_empty() {
            wanted |= EventFlags::IN;
        }
        if self.sent < self.out.len() {
            wanted |= EventFlags::OUT;
        }
        wanted
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
