//! An NBD client: an export of any NBD server as a device, with up to a queue of requests over one
//! connection, on the wall clock.
//!
//! ```text
//! unix:PATH[:exportname=NAME]        HOST:PORT[:exportname=NAME]
//! ```
//!
//! The measured time covers the whole path: request, server, device, reply. A server of uflip can
//! thus be compared with the same device in virtual time. Any response outside the protocol is an
//! error. Replies arrive in any order. While a request does not fit into the socket, replies are
//! received: a server that waits for space for them would read no request.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use uflip_core::content::{Content, ContentWriter};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, fill};
use uflip_core::{
    Bytes, Completion, ContentShares, Counters, Device, DeviceInfo, DeviceKind, Durability, Error,
    ErrorKind, Io, Mode, Nanos, Result, SECTOR_BYTES_MIN, Ticket,
};

use crate::wire::{
    self, FIXED_NEWSTYLE, LONGEST_DATA, NO_ZEROES, OPTION, OPTION_REPLY, REQUEST, REQUEST_BYTES,
    SIMPLE_REPLY, answer, can, command, flag, info, option, u16_at, u32_at, u64_at,
};

/// The time limit of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which a blocked call checks its deadline.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Shorter waits spin on the CPU: the kernel would wake the process too late.
const SPIN: Duration = Duration::from_micros(100);
/// The largest export [bytes]: most implementations use signed offsets.
const MAX_EXPORT_BYTES: u64 = i64::MAX as u64;
/// The largest sector that the protocol allows [bytes].
const MAX_SECTOR_BYTES: u64 = 65536;
/// The largest trim of one request [bytes]: whole sectors of any size, and less than 2³².
const MAX_TRIM_BYTES: u32 = 1 << 30;
/// The longest accepted reply to an option [bytes]: descriptions have up to 4096.
const MAX_REPLY_BYTES: u32 = 65536;
/// The separator before the name of an export.
const NAME_SEPARATOR: &str = ":exportname=";

/// A connected export of a server.
#[derive(Debug)]
pub struct NbdDevice {
    info: DeviceInfo,
    socket: OwnedFd,
    flags: u16,
    /// The time limit of a request; `None`: no limit.
    timeout: Option<Duration>,
    /// Whether it was opened for writing.
    writable: bool,
    durability: Durability,
    /// Writes since the durability was set, over all handles.
    writes: Arc<AtomicU64>,
    /// A buffer for the head of a request, followed by its data.
    request: Vec<u8>,
    sink: Vec<u8>,
    tickets: u64,
    /// The outstanding requests by ticket, which is also the handle of their commands.
    outstanding: HashMap<u64, Outstanding>,
    /// Later commands of outstanding requests, not sent yet.
    unsent: VecDeque<(u64, Command)>,
    completions: VecDeque<Result<Completion<()>>>,
    /// The content of writes, if the pattern determines it; and the process of this handle.
    writer: Option<ContentWriter>,
    process: u64,
}

/// A request whose last reply has not arrived.
#[derive(Debug)]
struct Outstanding {
    submitted: Nanos,
    /// The deadline of the command.
    deadline: Deadline,
    /// The command that the server executes for it; a request may take several.
    command: Command,
    /// The description of the request in an error.
    problem: Problem,
}

/// A command of the protocol.
#[derive(Clone, Copy, Debug)]
struct Command {
    kind: u16,
    flags: u16,
    offset: u64,
    /// Bytes that the command and its successors concern.
    bytes: u64,
    /// Whether a flush follows.
    flush: bool,
}

impl Command {
    fn new(kind: u16, offset: u64, bytes: u64) -> Command {
        Command { kind, flags: 0, offset, bytes, flush: false }
    }

    /// Return the bytes of this command alone.
    fn length(&self) -> u32 {
        let limit = if self.kind == command::TRIM { MAX_TRIM_BYTES } else { u32::MAX };
        self.bytes.min(u64::from(limit)) as u32
    }

    /// Return the command that follows this one, if the request needs another.
    fn successor(&self) -> Option<Command> {
        let length = u64::from(self.length());
        if self.bytes > length {
            return Some(Command {
                offset: self.offset + length,
                bytes: self.bytes - length,
                ..*self
            });
        }
        self.flush.then_some(Command::new(command::FLUSH, 0, 0))
    }
}

/// The request that failed, for its error.
#[derive(Clone, Copy, Debug)]
enum Problem {
    Flush,
    Trim(Bytes, Bytes),
    Io(Io),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Flush => f.write_str("The export could not be flushed"),
            Problem::Trim(offset, size) => {
                write!(f, "{size} at byte {} could not be deallocated", offset.0)
            }
            Problem::Io(io) => write!(f, "{io} failed"),
        }
    }
}

/// The properties of an export, from the server.
#[derive(Default)]
struct ExportInfo {
    size: u64,
    flags: u16,
    sector: u32,
}

impl NbdDevice {
    /// Connect to the export at `address`.
    ///
    /// # Errors
    /// If there is no NBD server or no such export, or if it is read-only and `writable` is set.
    pub fn open(address: &str, writable: bool) -> Result<NbdDevice> {
        let (server, _) = address.split_once(NAME_SEPARATOR).unwrap_or((address, ""));
        let socket = connect(server).map_err(|error| unusable(address, &error))?;
        NbdDevice::from_socket(socket, address, writable)
    }

    /// Open the export at `address` over a connected `socket`.
    ///
    /// # Errors
    /// If the server does not use NBD, has no such export, or the export is read-only and
    /// `writable` is set.
    pub fn from_socket(socket: OwnedFd, address: &str, writable: bool) -> Result<NbdDevice> {
        let url = format!("nbd:{address}");
        let (_, name) = address.split_once(NAME_SEPARATOR).unwrap_or((address, ""));
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, direction, Some(POLL_INTERVAL))
                .map_err(|error| unusable(address, &error.into()))?;
        }
        let export =
            negotiate(&socket, name.as_bytes()).map_err(|error| unusable(address, &error))?;
        if writable && export.flags & can::READ_ONLY != 0 {
            return Err(Error::new(ErrorKind::Refused, "The export is read-only")
                .at(url)
                .action("serve it without --read-only, or read only"));
        }
        let sector = u64::from(export.sector).max(SECTOR_BYTES_MIN);
        let unsupported = !sector.is_power_of_two() || sector > MAX_SECTOR_BYTES;
        if unsupported || export.size < sector || export.size > MAX_EXPORT_BYTES {
            let reason = format!("{} bytes in sectors of {sector}", export.size);
            return Err(unusable(address, &std::io::Error::other(reason)));
        }
        let mut details = serde_json::Map::new();
        details.insert("deallocates".into(), (export.flags & can::SEND_TRIM != 0).into());
        let info = DeviceInfo {
            url,
            kind: DeviceKind::Nbd,
            simulated: false,
            model: "nbd".into(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: Bytes(export.size / sector * sector),
            sector_bytes: Bytes(sector),
            clock: "monotonic",
            io: "NBD over a socket".into(),
            data: "random",
            details,
        };
        let flags = export.flags;
        Ok(NbdDevice {
            info,
            socket,
            flags,
            timeout: None,
            writable,
            durability: Durability::default(),
            writes: Arc::default(),
            request: Vec::new(),
            sink: Vec::new(),
            tickets: 0,
            outstanding: HashMap::new(),
            unsent: VecDeque::new(),
            completions: VecDeque::new(),
            writer: None,
            process: 0,
        })
    }

    /// Return the content of the last run, if its pattern determined it.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        self.writer.map(|writer| writer.content())
    }

    /// Return the data of a read, and execute it now.
    ///
    /// # Errors
    /// Any error of the server.
    pub fn read_back(&mut self, io: &Io) -> Result<&[u8]> {
        self.submit(io)?;
        self.complete()?;
        Ok(&self.sink[..io.size.0 as usize])
    }

    /// Set the time limit of each request; 0: no limit.
    pub fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout = (timeout.0 > 0).then(|| Duration::from_nanos(timeout.0));
    }

    /// Set the durability of all following writes.
    ///
    /// # Errors
    /// If the server does not support the commands.
    pub fn set_durability(&mut self, durability: Durability) -> Result<()> {
        let supported = match durability {
            Durability::Cached => true,
            Durability::Fua => self.flags & (can::SEND_FUA | can::SEND_FLUSH) != 0,
            Durability::Flush(_) => self.flags & can::SEND_FLUSH != 0,
        };
        if self.writable && !supported {
            return Err(Error::usage("The server does not make writes durable")
                .at(&self.info.url)
                .got(format!("{durability}, of an export without the commands for it"))
                .allowed("cached")
                .action("use --durability cached, or a server with FLUSH and FUA"));
        }
        (self.durability, self.writes) = (durability, Arc::default());
        Ok(())
    }

    /// Flush all writes, if the server supports the command; otherwise no durability can be
    /// guaranteed.
    ///
    /// # Errors
    /// If the flush fails.
    pub fn sync(&mut self) -> Result<()> {
        if self.flags & can::SEND_FLUSH == 0 {
            return Ok(());
        }
        self.call(Command::new(command::FLUSH, 0, 0), Problem::Flush)
    }

    /// Deallocate `size` bytes at `offset`.
    ///
    /// # Errors
    /// If the server does not support it, or refuses.
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
        let trim = Command::new(command::TRIM, offset.0, size.0);
        self.call(trim, Problem::Trim(offset, size))
    }

    /// Execute a command while nothing else is outstanding.
    fn call(&mut self, command: Command, problem: Problem) -> Result<()> {
        self.begin(command, problem)?;
        self.complete().map(|_| ())
    }

    /// Create the error of a failed or late request.
    fn failed(&self, problem: Problem, error: &std::io::Error) -> Error {
        let problem = problem.to_string();
        let Some(limit) = self.timeout.filter(|_| error.kind() == std::io::ErrorKind::TimedOut)
        else {
            return Error::os(problem, &self.info.url, error).action("check the log of the server");
        };
        let limit = format!("{:.1} s", limit.as_secs_f64());
        Error::device(problem)
            .at(&self.info.url)
            .got(format!("no answer for {limit}"))
            .allowed(format!("{limit} (--io-timeout)"))
            .action("check the server; --io-timeout sets a longer limit, 0 none")
    }

    /// Give up all outstanding requests after an error of the connection; return the error of the
    /// oldest one.
    fn give_up(&mut self, error: &std::io::Error) -> Error {
        // A late reply would be taken for the reply to a later request.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let oldest = self.outstanding.iter().min_by_key(|(ticket, _)| **ticket);
        let problem = oldest.map_or(Problem::Flush, |(_, request)| request.problem);
        self.outstanding.clear();
        self.unsent.clear();
        self.failed(problem, error)
    }

    /// Send the first command of a request.
    fn begin(&mut self, command: Command, problem: Problem) -> Result<Ticket> {
        self.reserve(0);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let deadline = Deadline::after(self.timeout);
        let submitted = uflip_host::now();
        let request = Outstanding { submitted, deadline, command, problem };
        self.outstanding.insert(ticket.0, request);
        let sent = self.send(ticket.0, command).and_then(|()| self.send_unsent());
        sent.map_err(|error| self.give_up(&error))?;
        Ok(ticket)
    }

    /// Send a command; receive replies while it does not fit into the socket.
    fn send(&mut self, handle: u64, command: Command) -> std::io::Result<()> {
        let header = &mut self.request[..REQUEST_BYTES];
        header[..4].copy_from_slice(&REQUEST.to_be_bytes());
        header[4..6].copy_from_slice(&command.flags.to_be_bytes());
        header[6..8].copy_from_slice(&command.kind.to_be_bytes());
        header[8..16].copy_from_slice(&handle.to_be_bytes());
        header[16..24].copy_from_slice(&command.offset.to_be_bytes());
        header[24..28].copy_from_slice(&command.length().to_be_bytes());
        let data = if command.kind == command::WRITE { command.bytes as usize } else { 0 };
        let (mut sent, end) = (0, REQUEST_BYTES + data);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while sent < end {
            match send(&self.socket, &self.request[sent..end], flags) {
                Ok(more) => sent += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    self.poll(PollFlags::IN | PollFlags::OUT, POLL_INTERVAL)?;
                    while self.receive_reply(Wait::No)? {}
                    self.earliest_deadline().check()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Send the later commands of requests.
    fn send_unsent(&mut self) -> std::io::Result<()> {
        while let Some((handle, command)) = self.unsent.pop_front() {
            self.send(handle, command)?;
        }
        Ok(())
    }

    /// Receive one reply, and complete its request or queue its next command. Return whether there
    /// was a reply.
    fn receive_reply(&mut self, wait: Wait) -> std::io::Result<bool> {
        let (mut reply, mut received) = ([0; 16], 0);
        if matches!(wait, Wait::No) {
            match recv(&self.socket, &mut reply, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok((_, bytes)) => received = bytes,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        let deadline = self.earliest_deadline();
        receive(&self.socket, &mut reply[received..], deadline)?;
        let handle = u64_at(&reply, 8);
        let request = self.outstanding.get_mut(&handle);
        let Some(request) = request.filter(|_| u32_at(&reply, 0) == SIMPLE_REPLY) else {
            return Err(std::io::Error::other("the reply does not match a request"));
        };
        let Outstanding { submitted, command, problem, .. } = *request;
        let number = u32_at(&reply, 4);
        if number == 0 {
            if command.kind == command::READ {
                receive(&self.socket, &mut self.sink[..command.bytes as usize], deadline)?;
            }
            if let Some(next) = command.successor() {
                (request.command, request.deadline) = (next, Deadline::after(self.timeout));
                self.unsent.push_back((handle, next));
                return Ok(true);
            }
        }
        self.outstanding.remove(&handle);
        self.completions.push_back(if number == 0 {
            let (ticket, completed) = (Ticket(handle), uflip_host::now());
            Ok(Completion { ticket, submitted, completed, breakdown: (), status: () })
        } else {
            Err(self.failed(problem, &std::io::Error::from_raw_os_error(number as i32)))
        });
        Ok(true)
    }

    /// Wait until `before` for a completion; take all that are present, errors included.
    fn wait(&mut self, before: Nanos) {
        if let Err(error) = self.receive_until(before) {
            let error = self.give_up(&error);
            self.completions.push_back(Err(error));
        }
    }

    fn receive_until(&mut self, before: Nanos) -> std::io::Result<()> {
        loop {
            while !self.outstanding.is_empty() && self.receive_reply(Wait::No)? {}
            self.send_unsent()?;
            if !self.completions.is_empty() || self.outstanding.is_empty() {
                return Ok(());
            }
            if before == Nanos(u64::MAX) {
                self.receive_reply(Wait::Yes)?;
                continue;
            }
            let left = Duration::from_nanos(before.0.saturating_sub(uflip_host::now().0));
            if left.is_zero() {
                return Ok(());
            } else if left > SPIN {
                self.poll(PollFlags::IN, POLL_INTERVAL.min(left - SPIN))?;
            } else {
                std::hint::spin_loop();
            }
            self.earliest_deadline().check()?;
        }
    }

    fn poll(&self, events: PollFlags, limit: Duration) -> std::io::Result<()> {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.socket, events)], Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn earliest_deadline(&self) -> Deadline {
        let oldest = || self.outstanding.values().filter_map(|request| request.deadline.0).min();
        Deadline(self.timeout.and_then(|_| oldest()))
    }

    /// Grow the buffers to `size` bytes of random data.
    fn reserve(&mut self, size: usize) {
        if self.sink.len() < size || self.request.is_empty() {
            self.sink.resize(size, 0);
            self.request.resize(REQUEST_BYTES + size, 0);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(size as u64);
            fill(&mut random, &mut self.request[REQUEST_BYTES..]);
        }
    }

    /// Return the first command of an I/O.
    fn command_of(&self, io: &Io) -> std::io::Result<Command> {
        let Io { offset, size, mode, .. } = *io;
        if mode == Mode::Trim {
            return if self.flags & can::SEND_TRIM == 0 {
                Err(std::io::Error::other("the server has no command to deallocate"))
            } else {
                Ok(Command::new(command::TRIM, offset.0, size.0))
            };
        }
        if mode.requires_zones() {
            return Err(std::io::Error::other("NBD does not support zones"));
        }
        if size.0 > u64::from(LONGEST_DATA) {
            return Err(std::io::Error::other("more than 32 MiB at once"));
        }
        if mode == Mode::Read {
            return Ok(Command::new(command::READ, offset.0, size.0));
        }
        let durable = self.durability == Durability::Fua;
        let flags = if durable && self.flags & can::SEND_FUA != 0 { flag::FUA } else { 0 };
        let before = self.writes.fetch_add(1, Ordering::Relaxed);
        let flush = self.durability.flushes_after(before) || durable && flags == 0;
        Ok(Command { flags, flush, ..Command::new(command::WRITE, offset.0, size.0) })
    }
}

/// Whether to wait for a reply.
enum Wait {
    Yes,
    No,
}

fn unusable(address: &str, error: &std::io::Error) -> Error {
    Error::os("The server cannot be used", format!("nbd:{address}"), error)
        .action("check the address and the name of the export")
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

/// Negotiate with the server, from the greeting to the export `name`.
fn negotiate(socket: &OwnedFd, name: &[u8]) -> std::io::Result<ExportInfo> {
    let unsupported =
        || std::io::Error::other("not an NBD server with the fixed newstyle handshake");
    let deadline = Deadline::after(Some(HANDSHAKE_TIMEOUT));
    let mut greeting = [0; 18];
    receive(socket, &mut greeting, deadline)?;
    let is_nbd = u64_at(&greeting, 0) == wire::GREETING && u64_at(&greeting, 8) == OPTION;
    if !is_nbd || u16_at(&greeting, 16) & FIXED_NEWSTYLE == 0 {
        return Err(unsupported());
    }
    let flags = u16_at(&greeting, 16) & (FIXED_NEWSTYLE | NO_ZEROES);
    let mut request = u32::from(flags).to_be_bytes().to_vec();
    request.extend_from_slice(&OPTION.to_be_bytes());
    request.extend_from_slice(&option::GO.to_be_bytes());
    request.extend_from_slice(&(name.len() as u32 + 8).to_be_bytes());
    request.extend_from_slice(&(name.len() as u32).to_be_bytes());
    request.extend_from_slice(name);
    request.extend_from_slice(&1_u16.to_be_bytes());
    request.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
    send_all(socket, &request, deadline)?;
    let mut export = ExportInfo::default();
    loop {
        let mut header = [0; 20];
        receive(socket, &mut header, deadline)?;
        let (kind, length) = (u32_at(&header, 12), u32_at(&header, 16));
        if u64_at(&header, 0) != OPTION_REPLY || length > MAX_REPLY_BYTES {
            return Err(unsupported());
        }
        let mut data = vec![0; length as usize];
        receive(socket, &mut data, deadline)?;
        match kind {
            answer::ACK if export.size > 0 => return Ok(export),
            answer::INFO if data.len() >= 2 => export.parse(&data),
            answer::ERR_UNKNOWN => {
                let reason = "the server has no export of this name";
                return Err(std::io::Error::new(std::io::ErrorKind::NotFound, reason));
            }
            _ => {
                return Err(std::io::Error::other(format!(
                    "the server refused the export ({kind:#x})"
                )));
            }
        }
    }
}

impl ExportInfo {
    /// Store one piece of information.
    fn parse(&mut self, data: &[u8]) {
        match (u16_at(data, 0), data.len()) {
            (info::EXPORT, 12) => (self.size, self.flags) = (u64_at(data, 2), u16_at(data, 10)),
            (info::BLOCK_SIZE, 14) => self.sector = u32_at(data, 2),
            _ => {}
        }
    }
}

/// The deadline of an exchange.
#[derive(Clone, Copy, Debug)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(timeout: Option<Duration>) -> Deadline {
        Deadline(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
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

/// Receive until `buffer` is full, or the deadline has passed, even if bytes trickle in.
fn receive(socket: &OwnedFd, mut buffer: &mut [u8], deadline: Deadline) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok((_, read)) => buffer = &mut buffer[read..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        if !buffer.is_empty() {
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
        let problem = Problem::Io(*request);
        let command = self.command_of(request).map_err(|error| self.failed(problem, &error))?;
        if request.mode.moves_data() {
            self.reserve(request.size.0 as usize);
        }
        if let (Mode::Write, Some(writer)) = (request.mode, &mut self.writer) {
            let data = &mut self.request[REQUEST_BYTES..][..request.size.0 as usize];
            writer.fill_next(request.offset.0, data);
        }
        self.begin(command, problem)
    }

    fn next_completion(&mut self, before: Nanos) -> Option<Nanos> {
        self.wait(before);
        match self.completions.front()? {
            Ok(completion) => Some(completion.completed).filter(|time| *time <= before),
            // `complete` reports the error.
            Err(_) => Some(uflip_host::now()),
        }
    }

    fn complete(&mut self) -> Result<Completion<()>> {
        if self.completions.is_empty() {
            self.wait(Nanos(u64::MAX));
        }
        self.completions.pop_front().expect("an I/O is outstanding")
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    fn set_content(&mut self, content: Option<ContentShares>) -> Result<()> {
        if content.is_none() && self.writer.is_some() {
            // Filled again with random data.
            self.request.clear();
        }
        self.writer = content.map(|shares| {
            let content = Content { shares, run: uflip_host::unique_number() };
            ContentWriter::new(content, self.process)
        });
        Ok(())
    }

    fn split(&self, submitters: usize) -> Result<Option<Vec<NbdDevice>>> {
        if submitters > 1 && self.flags & can::MULTI_CONN == 0 {
            return Err(Error::usage(
                "The server does not support several connections to one device",
            )
            .at(&self.info.url)
            .action("run patterns of one process on it"));
        }
        let address = self.info.url.strip_prefix("nbd:").unwrap_or(&self.info.url);
        let handle = |process: usize| {
            let other = NbdDevice::open(address, false)?;
            let writes = Arc::clone(&self.writes);
            let NbdDevice { writable, durability, timeout, .. } = *self;
            let process = process as u64;
            let writer = self.content().map(|content| ContentWriter::new(content, process));
            Ok(NbdDevice { writable, durability, timeout, writes, writer, process, ..other })
        };
        (0..submitters).map(handle).collect::<Result<Vec<_>>>().map(Some)
    }
}
