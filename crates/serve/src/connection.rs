//! One client's socket: what came in and is not used yet, what is to go out, what is under way.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::session::{Request, Session};

/// Nothing more is taken from a client for whom so much waits [bytes]: a reply may be as long as
/// [`crate::LONGEST_DATA`], and who does not read does not get others.
const MOST_WAITING: u64 = 64 << 20;
/// ... nor from one that has so many requests under way.
const MOST_REQUESTS: u32 = 4096;
/// What waits for all clients together [bytes]: a request that would go beyond waits until there is room...
const MOST_WAITING_IN_ALL: u64 = 256 << 20;
/// ... unless less than so much waits for its client [bytes]: nobody is stopped by what others leave unread.
const SHARE: u64 = 128 << 10;
/// Requests under way of all clients together...
const MOST_REQUESTS_IN_ALL: u64 = 1 << 16;
/// ... beyond which a client may have this many.
const SHARE_REQUESTS: u32 = 16;
/// Room for replies that is kept from one to the next [bytes].
const KEPT_ROOM: usize = 1 << 20;

/// What all clients together make the server keep.
#[derive(Debug, Default)]
pub(crate) struct Load {
    bytes: Cell<u64>,
    requests: Cell<u64>,
}

/// A client that is connected.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) session: Session,
    /// What came in and waits until there is room for what it asks.
    pub(crate) unused: Vec<u8>,
    /// A request that waits for room among all clients.
    pub(crate) parked: Option<Request>,
    load: Rc<Load>,
    /// What of the load is this client's.
    counted: (u64, u64),
    /// Since when the client has taken nothing of what waits for it.
    stalled: Option<Instant>,
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
        let crowded = self.load.requests.get() >= MOST_REQUESTS_IN_ALL;
        let most = if crowded { SHARE_REQUESTS } else { MOST_REQUESTS };
        self.waiting() > MOST_WAITING || self.under_way >= most
    }

    /// What the client has not taken yet, and what its requests under way will add to that [bytes].
    fn waiting(&self) -> u64 {
        (self.out.len() - self.sent) as u64 + self.owed
    }

    /// Whether a request may begin whose reply has `bytes` of data.
    pub(crate) fn has_room_for(&self, bytes: u32) -> bool {
        let more = u64::from(bytes);
        self.waiting() + more <= SHARE || self.load.bytes.get() + more <= MOST_WAITING_IN_ALL
    }

    /// Whether something that came in waits.
    pub(crate) fn is_blocked(&self) -> bool {
        self.parked.is_some() || !self.unused.is_empty()
    }

    /// Whether what waits can be used now, as far as this depends on room.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.is_full() && self.parked.is_none_or(|request| self.has_room_for(request.owed()))
    }

    /// Count what this client makes the server keep among what all do.
    pub(crate) fn count(&mut self) {
        let kept = (self.out.len() + self.unused.len()) as u64 + self.owed;
        self.count_as((kept, u64::from(self.under_way)));
    }

    fn count_as(&mut self, now: (u64, u64)) {
        let (bytes, requests) = std::mem::replace(&mut self.counted, now);
        self.load.bytes.set(self.load.bytes.get() - bytes + now.0);
        self.load.requests.set(self.load.requests.get() - requests + now.1);
    }

    /// What the server keeps for a client that has taken nothing for longer than `patience` [bytes].
    pub(crate) fn left_unread(&self, patience: Duration) -> Option<u64> {
        self.stalled.filter(|since| since.elapsed() > patience).map(|_| self.counted.0)
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
        let before = self.sent;
        while self.sent < self.out.len() {
            match send(&self.socket, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => self.sent += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if self.sent > before || self.stalled.is_none() {
                        self.stalled = Some(Instant::now());
                    }
                    return self.still_here();
                }
                Err(_) => return Standing::Gone,
            }
        }
        self.stalled = None;
        self.out.clear();
        self.out.shrink_to(KEPT_ROOM);
        self.sent = 0;
        self.still_here()
    }

    fn still_here(&mut self) -> Standing {
        // Half of it at least, so that each byte is moved once on average.
        if self.sent > KEPT_ROOM && self.sent >= self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        let over = self.leaving && self.under_way == 0 && self.out.is_empty();
        if over { Standing::Gone } else { Standing::Here }
    }

    /// What is to be waited for: data where there is room for it, room where data waits.
    pub(crate) fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        if !self.leaving && !self.is_full() && !self.is_blocked() {
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
        self.count_as((0, 0));
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
