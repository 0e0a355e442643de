//! The protocol state of one client: bytes in, bytes out, without socket, device or clock.
//!
//! ```text
//! greeting ─▶ flags ─▶ options … ─▶ requests …          any state ─▶ close
//!                         └ too long: skipped  └ data of a write: passed on as it comes
//! ```
//!
//! A peer may send anything. At most one header, or one option of [`LONGEST_OPTION`] bytes, is
//! buffered: no allocation depends on a length sent by a peer. The data of a write is never
//! buffered here.
//!
//! The handshake is fixed newstyle; unknown and oversized options are answered and skipped, and never
//! end the session. Invalid requests are answered here, and the data of a refused write is skipped;
//! valid ones go to the device. Only a request without the magic number ends the session, because the
//! start of the next one is unknown.

use crate::wire::{
    self, Export, FIXED_NEWSTYLE, LONGEST_DATA, NO_ZEROES, OPTION, OPTION_BYTES, OPTION_REPLY,
    REQUEST, REQUEST_BYTES, answer, command, errno, flag, info, option, put_error, u16_at, u32_at,
    u64_at,
};

/// The longest accepted option [bytes]: a name may have 4096, plus a few information requests.
/// Longer options are skipped.
pub const LONGEST_OPTION: u32 = 8192;

/// A valid request that has arrived completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The index of its export.
    pub export: usize,
    /// The client's identifier of the request.
    pub cookie: u64,
    /// The command.
    pub command: NbdCommand,
    /// The offset [bytes].
    pub offset: u64,
    /// The length [bytes].
    pub length: u32,
    /// Whether its data must be durable before the reply.
    pub fua: bool,
    /// Whether the reply is structured (in chunks).
    pub structured: bool,
}

impl Request {
    /// Return the bytes of data in its reply.
    #[must_use]
    pub fn reply_bytes(&self) -> u32 {
        if self.command == NbdCommand::Read { self.length } else { 0 }
    }
}

/// The command of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NbdCommand {
    /// Return data.
    Read,
    /// Write data, which came before as [`SessionEvent::Data`].
    Write,
    /// Make acknowledged data durable.
    Flush,
    /// Deallocate the range.
    Trim,
    /// Set the range to zeros; with `keep` it stays allocated.
    WriteZeroes {
        /// Whether the range must stay allocated.
        keep: bool,
    },
}

/// The next event of a session.
#[derive(PartialEq, Eq, Debug)]
pub enum SessionEvent<'a> {
    /// All input is consumed.
    NeedInput,
    /// A part of the data of a valid write.
    Data {
        /// The index of the export.
        export: usize,
        /// Its offset.
        offset: u64,
        /// The data.
        bytes: &'a [u8],
    },
    /// A request to execute and answer.
    Request(Request),
    /// The session ends after the remaining output is sent.
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SessionPhase {
    Flags,
    /// The header of an option, then its data.
    Option,
    OptionData {
        option: u32,
        length: u32,
    },
    /// An oversized option with `left` bytes to skip.
    SkipOption {
        option: u32,
        left: u32,
    },
    Requests,
    /// The data of a write, of which `passed` bytes were passed on.
    Data {
        request: Request,
        passed: u32,
    },
    /// The data of a write refused with `error`, with `left` bytes to skip.
    SkipData {
        cookie: u64,
        error: u32,
        left: u32,
    },
    Closed,
}

/// The session of one client.
#[derive(Debug)]
pub struct Session {
    phase: SessionPhase,
    /// The beginning of an incomplete header or option.
    buffer: Vec<u8>,
    export: usize,
    structured: bool,
    no_zeroes: bool,
}

impl Session {
    /// Create the session of a new client; `out` begins with the greeting.
    #[must_use]
    pub fn new(out: &mut Vec<u8>) -> Session {
        out.extend_from_slice(&wire::GREETING.to_be_bytes());
        out.extend_from_slice(&wire::OPTION.to_be_bytes());
        out.extend_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        Session {
            phase: SessionPhase::Flags,
            buffer: Vec::new(),
            export: 0,
            structured: false,
            no_zeroes: false,
        }
    }

    /// Return whether the client has selected an export.
    #[must_use]
    pub fn is_transmitting(&self) -> bool {
        matches!(
            self.phase,
            SessionPhase::Requests | SessionPhase::Data { .. } | SessionPhase::SkipData { .. }
        )
    }

    /// Return the size of the buffered incomplete input [bytes].
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Process the next part of `input`; replies that need no device are appended to `out`.
    pub fn step<'a>(
        &mut self,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> SessionEvent<'a> {
        loop {
            let event = match self.phase {
                SessionPhase::Flags => self.flags(input),
                SessionPhase::Option => self.option(input),
                SessionPhase::OptionData { option, length } => {
                    self.option_data(option, length, input, exports, out)
                }
                SessionPhase::SkipOption { option, left } => {
                    self.skip_option(option, left, input, out)
                }
                SessionPhase::Requests => self.request(input, exports, out),
                SessionPhase::Data { request, passed } => self.data(request, passed, input),
                SessionPhase::SkipData { cookie, error, left } => {
                    self.skip_data(cookie, error, left, input, out)
                }
                SessionPhase::Closed => Some(SessionEvent::Close),
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// Collect `length` bytes, and pass them to `parse`; needs more input until they are
    /// complete.
    fn with_bytes<'a>(
        &mut self,
        length: usize,
        input: &mut &'a [u8],
        parse: impl FnOnce(&mut Session, &[u8]) -> Option<SessionEvent<'a>>,
    ) -> Option<SessionEvent<'a>> {
        if self.buffer.is_empty() && input.len() >= length {
            let (bytes, rest) = input.split_at(length);
            *input = rest;
            return parse(self, bytes);
        }
        let missing = length.saturating_sub(self.buffer.len()).min(input.len());
        let (more, rest) = input.split_at(missing);
        self.buffer.extend_from_slice(more);
        *input = rest;
        if self.buffer.len() < length {
            return Some(SessionEvent::NeedInput);
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        let event = parse(self, &bytes);
        // Reuse the buffer, without the size of a long option.
        bytes.clear();
        bytes.shrink_to(wire::REQUEST_BYTES);
        self.buffer = bytes;
        event
    }

    /// End the session.
    fn close<'a>(&mut self) -> Option<SessionEvent<'a>> {
        self.phase = SessionPhase::Closed;
        Some(SessionEvent::Close)
    }
}

/// Skip at most `left` bytes; return the remaining number.
fn skip(left: u32, input: &mut &[u8]) -> u32 {
    let now = input.len().min(left as usize);
    *input = &input[now..];
    left - now as u32
}

impl Session {
    pub(super) fn flags<'a>(&mut self, input: &mut &'a [u8]) -> Option<SessionEvent<'a>> {
        self.with_bytes(4, input, |session, bytes| {
            let flags = u32_at(bytes, 0);
            if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
                return session.close();
            }
            session.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
            session.phase = SessionPhase::Option;
            None
        })
    }

    pub(super) fn option<'a>(&mut self, input: &mut &'a [u8]) -> Option<SessionEvent<'a>> {
        self.with_bytes(OPTION_BYTES, input, |session, head| {
            if u64_at(head, 0) != OPTION {
                return session.close();
            }
            let (option, length) = (u32_at(head, 8), u32_at(head, 12));
            session.phase = if length > LONGEST_OPTION {
                SessionPhase::SkipOption { option, left: length }
            } else {
                SessionPhase::OptionData { option, length }
            };
            None
        })
    }

    fn skip_option<'a>(
        &mut self,
        option: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        // `EXPORT_NAME` has no error reply.
        if option == option::EXPORT_NAME {
            return self.close();
        }
        let left = skip(left, input);
        if left > 0 {
            self.phase = SessionPhase::SkipOption { option, left };
            return Some(SessionEvent::NeedInput);
        }
        put_answer(out, option, answer::ERR_TOO_BIG, &[]);
        self.phase = SessionPhase::Option;
        None
    }

    fn option_data<'a>(
        &mut self,
        option: u32,
        length: u32,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        self.with_bytes(length as usize, input, |session, data| {
            session.phase = SessionPhase::Option;
            match option {
                option::EXPORT_NAME => return session.select_export(data, exports, out),
                option::ABORT => {
                    put_answer(out, option, answer::ACK, &[]);
                    return session.close();
                }
                option::LIST => list(data, exports, out),
                option::INFO | option::GO => session.answer_info(option, data, exports, out),
                option::STRUCTURED_REPLY if data.is_empty() => {
                    session.structured = true;
                    put_answer(out, option, answer::ACK, &[]);
                }
                option::STRUCTURED_REPLY => put_answer(out, option, answer::ERR_INVALID, &[]),
                _ => put_answer(out, option, answer::ERR_UNSUP, &[]),
            }
            None
        })
    }

    fn select_export<'a>(
        &mut self,
        name: &[u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        let Some((index, export)) = find_export(name, exports) else { return self.close() };
        out.extend_from_slice(&export.size.0.to_be_bytes());
        out.extend_from_slice(&export.flags().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; 124]);
        }
        (self.export, self.phase) = (index, SessionPhase::Requests);
        None
    }

    /// Answer `INFO` and `GO`; a `GO` for a known export begins the transmission.
    fn answer_info(&mut self, option: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
        let Some((name, kinds)) = parse_info_request(data) else {
            return put_answer(out, option, answer::ERR_INVALID, &[]);
        };
        let Some((index, export)) = find_export(name, exports) else {
            return put_answer(out, option, answer::ERR_UNKNOWN, &[]);
        };
        let mut reply = info::EXPORT.to_be_bytes().to_vec();
        reply.extend_from_slice(&export.size.0.to_be_bytes());
        reply.extend_from_slice(&export.flags().to_be_bytes());
        put_answer(out, option, answer::INFO, &reply);
        for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            if !kinds.chunks_exact(2).any(|requested| u16_at(requested, 0) == kind) {
                continue;
            }
            let mut reply = kind.to_be_bytes().to_vec();
            match kind {
                info::NAME => reply.extend_from_slice(export.name.as_bytes()),
                info::DESCRIPTION => reply.extend_from_slice(export.description.as_bytes()),
                _ => {
                    let sizes = [export.sector, export.preferred, LONGEST_DATA];
                    sizes.iter().for_each(|size| reply.extend_from_slice(&size.to_be_bytes()));
                }
            }
            put_answer(out, option, answer::INFO, &reply);
        }
        put_answer(out, option, answer::ACK, &[]);
        if option == option::GO {
            (self.export, self.phase) = (index, SessionPhase::Requests);
        }
    }
}

/// Parse an `INFO` or `GO` request into the name and the requested kinds of information; `None` if
/// they do not fill `data` exactly.
fn parse_info_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    let (name, rest) = rest.split_at_checked(u32_at(length, 0) as usize)?;
    let (count, kinds) = rest.split_at_checked(2)?;
    (kinds.len() == usize::from(u16_at(count, 0)) * 2).then_some((name, kinds))
}

fn find_export<'a>(name: &[u8], exports: &'a [Export]) -> Option<(usize, &'a Export)> {
    let index = exports.iter().position(|export| export.name.as_bytes() == name);
    let index = index.or((name.is_empty() && !exports.is_empty()).then_some(0))?;
    Some((index, &exports[index]))
}

fn list(data: &[u8], exports: &[Export], out: &mut Vec<u8>) {
    if !data.is_empty() {
        return put_answer(out, option::LIST, answer::ERR_INVALID, &[]);
    }
    for export in exports {
        let mut reply = (export.name.len() as u32).to_be_bytes().to_vec();
        reply.extend_from_slice(export.name.as_bytes());
        reply.extend_from_slice(export.description.as_bytes());
        put_answer(out, option::LIST, answer::SERVER, &reply);
    }
    put_answer(out, option::LIST, answer::ACK, &[]);
}

fn put_answer(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// The header of a request.
struct RequestHeader {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl RequestHeader {
    fn read(bytes: &[u8]) -> RequestHeader {
        RequestHeader {
            flags: u16_at(bytes, 4),
            kind: u16_at(bytes, 6),
            cookie: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
        }
    }

    /// Return its command for `export`, or the error number.
    fn check(&self, export: &Export, structured: bool) -> Result<NbdCommand, u32> {
        let (command, flags) = match self.kind {
            command::READ if structured => (NbdCommand::Read, flag::FUA | flag::DF),
            command::READ => (NbdCommand::Read, flag::FUA),
            command::WRITE => (NbdCommand::Write, flag::FUA),
            command::FLUSH => (NbdCommand::Flush, flag::FUA),
            command::TRIM => (NbdCommand::Trim, flag::FUA),
            command::WRITE_ZEROES => {
                let keep = self.flags & flag::NO_HOLE != 0;
                (NbdCommand::WriteZeroes { keep }, flag::FUA | flag::NO_HOLE)
            }
            _ => return Err(errno::EINVAL),
        };
        if self.flags & !flags != 0 {
            return Err(errno::EINVAL);
        }
        if command == NbdCommand::Flush {
            let empty = self.offset == 0 && self.length == 0;
            return if empty { Ok(command) } else { Err(errno::EINVAL) };
        }
        let writes = command != NbdCommand::Read;
        if writes && export.read_only {
            return Err(errno::EPERM);
        }
        let (sector, length) = (u64::from(export.sector), u64::from(self.length));
        let aligned = self.offset.is_multiple_of(sector) && length.is_multiple_of(sector);
        let has_data = matches!(command, NbdCommand::Read | NbdCommand::Write);
        if self.length == 0 || !aligned || has_data && self.length > LONGEST_DATA {
            return Err(errno::EINVAL);
        }
        match self.offset.checked_add(length) {
            Some(end) if end <= export.size.0 => Ok(command),
            _ if writes => Err(errno::ENOSPC),
            _ => Err(errno::EINVAL),
        }
    }
}

impl Session {
    pub(super) fn request<'a>(
        &mut self,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        self.with_bytes(REQUEST_BYTES, input, |session, bytes| {
            let header = RequestHeader::read(bytes);
            if u32_at(bytes, 0) != REQUEST || header.kind == command::DISC {
                return session.close();
            }
            let (export, structured) = (session.export, session.structured);
            match header.check(&exports[export], structured) {
                Ok(command) => session.accept(Request {
                    export,
                    cookie: header.cookie,
                    command,
                    offset: header.offset,
                    length: header.length,
                    fua: header.flags & flag::FUA != 0,
                    structured: structured && command == NbdCommand::Read,
                }),
                Err(error) if header.kind == command::WRITE && header.length > 0 => {
                    let (cookie, left) = (header.cookie, header.length);
                    session.phase = SessionPhase::SkipData { cookie, error, left };
                    None
                }
                Err(error) => {
                    let in_chunks = structured && header.kind == command::READ;
                    put_error(out, in_chunks, header.cookie, error);
                    None
                }
            }
        })
    }

    fn accept<'a>(&mut self, request: Request) -> Option<SessionEvent<'a>> {
        if request.command != NbdCommand::Write {
            return Some(SessionEvent::Request(request));
        }
        self.phase = SessionPhase::Data { request, passed: 0 };
        None
    }

    pub(super) fn data<'a>(
        &mut self,
        request: Request,
        passed: u32,
        input: &mut &'a [u8],
    ) -> Option<SessionEvent<'a>> {
        if passed == request.length {
            self.phase = SessionPhase::Requests;
            return Some(SessionEvent::Request(request));
        }
        let size = input.len().min((request.length - passed) as usize);
        if size == 0 {
            return Some(SessionEvent::NeedInput);
        }
        let (bytes, rest) = input.split_at(size);
        *input = rest;
        self.phase = SessionPhase::Data { request, passed: passed + size as u32 };
        let offset = request.offset + u64::from(passed);
        Some(SessionEvent::Data { export: request.export, offset, bytes })
    }

    fn skip_data<'a>(
        &mut self,
        cookie: u64,
        error: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        let left = skip(left, input);
        if left > 0 {
            self.phase = SessionPhase::SkipData { cookie, error, left };
            return Some(SessionEvent::NeedInput);
        }
        put_error(out, false, cookie, error);
        self.phase = SessionPhase::Requests;
        None
    }
}
