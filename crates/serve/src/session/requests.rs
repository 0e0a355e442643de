//! Requests: invalid ones are answered here, and the data of a refused write is skipped; valid ones
//! go to the device. Only a request without the magic number ends the session, because the start of
//! the next one is unknown.

use super::{NbdCommand, Request, Session, SessionEvent, SessionPhase, skip};
use crate::export::{Export, LONGEST_DATA};
use crate::wire::{
    REQUEST, REQUEST_BYTES, command, errno, flag, put_error, u16_at, u32_at, u64_at,
};

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

    pub(super) fn skip_data<'a>(
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
