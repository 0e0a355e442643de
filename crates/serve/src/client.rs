//! An export of any NBD server as a device: one request at a time over one connection, on the wall clock.
//!
//! ```text
//! unix:PATH[:exportname=NAME]        HOST:PORT[:exportname=NAME]
//! ```
//!
//! What is measured is the whole way: request, server, device, reply. A server of ours can so be compared
//! with the same device in virtual time. Whatever a server says that is not in the protocol is an error.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, fill};
use uflip_core::{
    Bytes, Completion, CompletionQueue, Counters, Device, DeviceInfo, DeviceKind, Durability,
    Error, ErrorKind, Io, Mode, Nanos, Result, SECTOR_BYTES_MIN, Ticket,
};

use crate::export::LONGEST_DATA;
use crate::wire::{
    self, FIXED_NEWSTYLE, NO_ZEROES, OPTION, OPTION_REPLY, REQUEST, REQUEST_BYTES, SIMPLE_REPLY,
    answer, can, command, flag, info, option, u16_at, u32_at, u64_at,
};

/// How long a server may take until it has told of its export.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so long without a byte the clock is looked at.
const LOOK_UP: Duration = Duration::from_millis(100);
/// The largest size of an export: offsets in the protocol are signed to most who use them [bytes].
const LARGEST: u64 = i64::MAX as u64;
/// The largest sector that the protocol allows [bytes].
const LARGEST_SECTOR: u64 = 65536;
/// What one request deallocates at most: whole sectors of any size, and less than 2³² [bytes].
const MOST_TRIMMED: u32 = 1 << 30;
/// The longest answer to an option that is read [bytes]: descriptions have up to 4096.
const LONGEST_ANSWER: u32 = 65536;
/// What comes before the name of an export.
const NAME: &str = ":exportname=";

/// An export of a server, connected.
#[derive(Debug)]
pub struct NbdDevice {
    info: DeviceInfo,
    socket: OwnedFd,
    flags: u16,
    /// How long the server may take for a request; `None` for ever.
    patience: Option<Duration>,
    /// Whether whoever opened it wanted to write.
    writable: bool,
    durability: Durability,
    /// Writes since that was asked for, by all handles.
    written: Arc<AtomicU64>,
    /// Room for the head of a request, and data behind it.
    request: Vec<u8>,
    sink: Vec<u8>,
    completions: CompletionQueue,
}

/// What a server says of an export.
#[derive(Default)]
struct Told {
    size: u64,
    flags: u16,
    sector: u32,
}

impl NbdDevice {
    /// Connect to the export that `address` names, to write to it where `writable`.
    ///
    /// # Errors
    /// Nobody answers, or not in this protocol; there is no such export; it may not be written.
    pub fn open(address: &str, writable: bool) -> Result<NbdDevice> {
        let (server, _) = address.split_once(NAME).unwrap_or((address, ""));
        let socket = connect(server).map_err(|error| unusable(address, &error))?;
        NbdDevice::over(socket, address, writable)
    }

    /// The export that `address` names, of the server at the other end of `socket`.
    ///
    /// # Errors
    /// It does not speak this protocol, has no such export, or does not let it be written.
    pub fn over(socket: OwnedFd, address: &str, writable: bool) -> Result<NbdDevice> {
        let url = format!("nbd:{address}");
        let (_, name) = address.split_once(NAME).unwrap_or((address, ""));
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(LOOK_UP))
                .map_err(|error| unusable(address, &error.into()))?;
        }
        let told = greet(&socket, name.as_bytes()).map_err(|error| unusable(address, &error))?;
        if writable && told.flags & can::READ_ONLY != 0 {
            return Err(Error::new(ErrorKind::Refused, "The export is read-only")
                .at(url)
                .action("serve it without --read-only, or read only"));
        }
        let sector = u64::from(told.sector).max(SECTOR_BYTES_MIN);
        let strange = !sector.is_power_of_two() || sector > LARGEST_SECTOR;
        if strange || told.size < sector || told.size > LARGEST {
            let said = format!("{} bytes in sectors of {sector}", told.size);
            return Err(unusable(address, &std::io::Error::other(said)));
        }
        let mut details = serde_json::Map::new();
        details.insert("deallocates".into(), (told.flags & can::SEND_TRIM != 0).into());
        let info = DeviceInfo {
            url,
            kind: DeviceKind::Nbd,
            simulated: false,
            model: "nbd".into(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: Bytes(told.size / sector * sector),
            sector_bytes: Bytes(sector),
            clock: "monotonic",
            io: "NBD over a socket".into(),
            data: "random",
            details,
        };
        let flags = told.flags;
        Ok(NbdDevice {
            info,
            socket,
            flags,
            patience: None,
            writable,
            durability: Durability::default(),
            written: Arc::default(),
            request: Vec::new(),
            sink: Vec::new(),
            completions: CompletionQueue::default(),
        })
    }

    /// How long the server may take for each request from now on; 0: for ever.
    pub fn set_timeout(&mut self, timeout: Nanos) {
        self.patience = (timeout.0 > 0).then(|| Duration::from_nanos(timeout.0));
    }

    /// What writes wait for from now on.
    ///
    /// # Errors
    /// The server has no command for that.
    pub fn set_durability(&mut self, durability: Durability) -> Result<()> {
        let has_it = match durability {
            Durability::Cached => true,
            Durability::Fua => self.flags & (can::SEND_FUA | can::SEND_FLUSH) != 0,
            Durability::Flush(_) => self.flags & can::SEND_FLUSH != 0,
        };
        if self.writable && !has_it {
            return Err(Error::usage("The server does not make writes durable")
                .at(&self.info.url)
                .got(format!("{durability}, of an export without the commands for it"))
                .allowed("cached")
                .action("ask for --durability cached, or let the server have FLUSH and FUA"));
        }
        (self.durability, self.written) = (durability, Arc::default());
        Ok(())
    }

    /// Make durable what was written, where the server has a command for that: of one that has none nobody
    /// can know more than that it took the data.
    ///
    /// # Errors
    /// The server cannot.
    pub fn sync(&mut self) -> Result<()> {
        if self.flags & can::SEND_FLUSH == 0 {
            return Ok(());
        }
        let flushed = self.exchange(command::FLUSH, 0, 0, 0);
        flushed.map_err(|error| self.failed("The export could not be flushed", &error))
    }

    /// Tell the server that `size` bytes at `offset` are not needed any more.
    ///
    /// # Errors
    /// The server cannot, or does not want to.
    pub fn trim(&mut self, offset: Bytes, size: Bytes) -> Result<()> {
        if !self.writable {
            return Err(Error::new(ErrorKind::Refused, "The export is open for reading only")
                .at(&self.info.url)
                .action("open it for writing"));
        }
        if self.flags & can::SEND_TRIM == 0 {
            return Err(Error::device("The server has no command to deallocate")
                .at(&self.info.url)
                .action("choose another device"));
        }
        self.deallocate(offset, size).map_err(|error| {
            self.failed(&format!("{size} at byte {} could not be deallocated", offset.0), &error)
        })
    }

    /// The error of what a server did not do, or not in time.
    fn failed(&self, what: &str, error: &std::io::Error) -> Error {
        let Some(limit) = self.patience.filter(|_| error.kind() == std::io::ErrorKind::TimedOut)
        else {
            return Error::os(what, &self.info.url, error).action("see what the server says");
        };
        let limit = format!("{:.1} s", limit.as_secs_f64());
        Error::device(what)
            .at(&self.info.url)
            .got(format!("no answer for {limit}"))
            .allowed(format!("{limit} (--io-timeout)"))
            .action("see what the server does; --io-timeout gives it longer, 0 for ever")
    }

    /// The commands alone, as many as it takes.
    fn deallocate(&mut self, offset: Bytes, size: Bytes) -> std::io::Result<()> {
        if self.flags & can::SEND_TRIM == 0 {
            return Err(std::io::Error::other("the server has no command to deallocate"));
        }
        let (mut at, end) = (offset.0, offset.0 + size.0);
        while at < end {
            let length = (end - at).min(u64::from(MOST_TRIMMED));
            self.exchange(command::TRIM, 0, at, length as u32)?;
            at += length;
        }
        Ok(())
    }

    /// Do what a request asks for, and receive its reply in time.
    fn exchange(&mut self, kind: u16, flags: u16, offset: u64, length: u32) -> std::io::Result<()> {
        let deadline = Deadline::after(self.patience);
        let done = self.exchange_until(deadline, kind, flags, offset, length);
        if done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::TimedOut) {
            // A later reply would be taken for the reply to another request.
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
        done
    }

    fn exchange_until(
        &mut self,
        deadline: Deadline,
        kind: u16,
        flags: u16,
        offset: u64,
        length: u32,
    ) -> std::io::Result<()> {
        let moves = matches!(kind, command::READ | command::WRITE);
        let ticket = self.completions.next_ticket().0;
        let size = if moves { length as usize } else { 0 };
        self.make_room(size);
        let head = &mut self.request[..REQUEST_BYTES];
        head[..4].copy_from_slice(&REQUEST.to_be_bytes());
        head[4..6].copy_from_slice(&flags.to_be_bytes());
        head[6..8].copy_from_slice(&kind.to_be_bytes());
        head[8..16].copy_from_slice(&ticket.to_be_bytes());
        head[16..24].copy_from_slice(&offset.to_be_bytes());
        head[24..28].copy_from_slice(&length.to_be_bytes());
        let data = if kind == command::WRITE { size } else { 0 };
        send_all(&self.socket, &self.request[..REQUEST_BYTES + data], deadline)?;
        let mut reply = [0; 16];
        receive(&self.socket, &mut reply, deadline)?;
        if u32_at(&reply, 0) != SIMPLE_REPLY || u64_at(&reply, 8) != ticket {
            return Err(std::io::Error::other("that is no reply to the request"));
        }
        match u32_at(&reply, 4) {
            0 if kind == command::READ => receive(&self.socket, &mut self.sink[..size], deadline),
            0 => Ok(()),
            number => Err(std::io::Error::from_raw_os_error(number as i32)),
        }
    }

    /// Room for `size` bytes of data, none of which is like another.
    fn make_room(&mut self, size: usize) {
        if self.sink.len() < size || self.request.is_empty() {
            self.sink.resize(size, 0);
            self.request.resize(REQUEST_BYTES + size, 0);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(size as u64);
            fill(&mut random, &mut self.request[REQUEST_BYTES..]);
        }
    }

    fn do_it(&mut self, io: &Io) -> std::io::Result<()> {
        if io.mode == Mode::Trim {
            return self.deallocate(io.offset, io.size);
        }
        if io.mode.requires_zones() {
            return Err(std::io::Error::other("NBD knows no zones"));
        }
        let length = u32::try_from(io.size.0).ok().filter(|length| *length <= LONGEST_DATA);
        let length = length.ok_or_else(|| std::io::Error::other("more than 32 MiB at once"))?;
        if io.mode == Mode::Read {
            return self.exchange(command::READ, 0, io.offset.0, length);
        }
        let durable = self.durability == Durability::Fua;
        let fua = if durable && self.flags & can::SEND_FUA != 0 { flag::FUA } else { 0 };
        self.exchange(command::WRITE, fua, io.offset.0, length)?;
        let before = self.written.fetch_add(1, Ordering::Relaxed);
        let flushes = self.durability.flushes_after(before) || durable && fua == 0;
        if flushes { self.exchange(command::FLUSH, 0, 0, 0) } else { Ok(()) }
    }
}

fn unusable(address: &str, error: &std::io::Error) -> Error {
    Error::os("The server cannot be used", format!("nbd:{address}"), error)
        .action("check that it serves, at this address and under this name")
}

fn connect(server: &str) -> std::io::Result<OwnedFd> {
    let socket: OwnedFd = if let Some(path) = server.strip_prefix("unix:") {
        UnixStream::connect(path)?.into()
    } else {
        let socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.into()
    };
    Ok(socket)
}

/// From the greeting to the export `name`.
fn greet(socket: &OwnedFd, name: &[u8]) -> std::io::Result<Told> {
    let strange = || std::io::Error::other("that is no NBD server of the newer kind");
    let deadline = Deadline::after(Some(PATIENCE));
    let mut greeting = [0; 18];
    receive(socket, &mut greeting, deadline)?;
    let known = u64_at(&greeting, 0) == wire::GREETING && u64_at(&greeting, 8) == OPTION;
    if !known || u16_at(&greeting, 16) & FIXED_NEWSTYLE == 0 {
        return Err(strange());
    }
    let flags = u16_at(&greeting, 16) & (FIXED_NEWSTYLE | NO_ZEROES);
    let mut asked = u32::from(flags).to_be_bytes().to_vec();
    asked.extend_from_slice(&OPTION.to_be_bytes());
    asked.extend_from_slice(&option::GO.to_be_bytes());
    asked.extend_from_slice(&(name.len() as u32 + 8).to_be_bytes());
    asked.extend_from_slice(&(name.len() as u32).to_be_bytes());
    asked.extend_from_slice(name);
    asked.extend_from_slice(&1_u16.to_be_bytes());
    asked.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
    send_all(socket, &asked, deadline)?;
    let mut told = Told::default();
    loop {
        let mut head = [0; 20];
        receive(socket, &mut head, deadline)?;
        let (kind, length) = (u32_at(&head, 12), u32_at(&head, 16));
        if u64_at(&head, 0) != OPTION_REPLY || length > LONGEST_ANSWER {
            return Err(strange());
        }
        let mut data = vec![0; length as usize];
        receive(socket, &mut data, deadline)?;
        match kind {
            answer::ACK if told.size > 0 => return Ok(told),
            answer::INFO if data.len() >= 2 => told.take(&data),
            answer::ERR_UNKNOWN => {
                let said = "there is no export of this name";
                return Err(std::io::Error::new(std::io::ErrorKind::NotFound, said));
            }
            _ => return Err(std::io::Error::other(format!("the server says no ({kind:#x})"))),
        }
    }
}

impl Told {
    /// Take one piece of information.
    fn take(&mut self, data: &[u8]) {
        match (u16_at(data, 0), data.len()) {
            (info::EXPORT, 12) => (self.size, self.flags) = (u64_at(data, 2), u16_at(data, 10)),
            (info::BLOCK_SIZE, 14) => self.sector = u32_at(data, 2),
            _ => {}
        }
    }
}

/// When a server is waited for no longer.
#[derive(Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(patience: Option<Duration>) -> Deadline {
        Deadline(patience.and_then(|patience| Instant::now().checked_add(patience)))
    }

    fn check(self) -> std::io::Result<()> {
        match self.0 {
            Some(end) if Instant::now() >= end => Err(std::io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

fn send_all(socket: &OwnedFd, mut data: &[u8], deadline: Deadline) -> std::io::Result<()> {
    loop {
        match send(socket, data, SendFlags::NOSIGNAL) {
            Ok(sent) => data = &data[sent..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if data.is_empty() {
            return Ok(());
        }
        deadline.check()?;
    }
}

/// Receive until `room` is full: a server that sends a byte now and then is not waited for longer.
fn receive(socket: &OwnedFd, mut room: &mut [u8], deadline: Deadline) -> std::io::Result<()> {
    while !room.is_empty() {
        match recv(socket, &mut *room, RecvFlags::empty()) {
            Ok((_, 0)) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok((_, read)) => room = &mut room[read..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if !room.is_empty() {
            deadline.check()?;
        }
    }
    Ok(())
}

impl Device for NbdDevice {
    type Request = Io;
    type Status = ();
    type Breakdown = ();

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    #[inline]
    fn now(&self) -> Nanos {
        uflip_host::now()
    }

    fn wait_until(&mut self, t: Nanos) {
        uflip_host::wait_until(t);
    }

    fn submit(&mut self, request: &Io) -> Result<Ticket> {
        assert!(self.completions.is_empty(), "one request at a time");
        if request.mode.moves_data() {
            self.make_room(request.size.0 as usize);
        }
        let submitted = uflip_host::now();
        let done = self.do_it(request);
        let completed = uflip_host::now();
        done.map_err(|error| self.failed(&format!("{request} failed"), &error))?;
        Ok(self.completions.push(submitted, completed))
    }

    #[inline]
    fn next_completion(&mut self, _: Nanos) -> Option<Nanos> {
        self.completions.next_completion()
    }

    #[inline]
    fn complete(&mut self) -> Result<Completion<()>> {
        Ok(self.completions.complete())
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<NbdDevice>>> {
        if submitters > 1 && self.flags & can::MULTI_CONN == 0 {
            return Err(Error::usage(
                "The server does not promise one device to several connections",
            )
            .at(&self.info.url)
            .action("run patterns of one process on it"));
        }
        let address = self.info.url.strip_prefix("nbd:").unwrap_or(&self.info.url);
        let handle = |_| {
            let other = NbdDevice::open(address, false)?;
            let written = Arc::clone(&self.written);
            let NbdDevice { writable, durability, patience, .. } = *self;
            Ok(NbdDevice { writable, durability, patience, written, ..other })
        };
        (0..submitters).map(handle).collect::<Result<Vec<_>>>().map(Some)
    }
}
