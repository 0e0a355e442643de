//! Requests: invalid ones are answered here, and the data of a refused write is skipped; valid ones
//! go to the device. Only a request without the magic number ends the session, because the start of
//! the next one is unknown.

use super::{Command, Phase, Request, Session, Step, skip};
use crate::export::{Export, LONGEST_DATA};
use crate::wire::{
    REQUEST, REQUEST_BYTES, command, errno, flag, put_error, u16_at, u32_at, u64_at,
};

/// The header of a request.
struct Head {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl Head {
    fn read(bytes: &[u8]) -> Head {
        Head {
            flags: u16_at(bytes, 4),
            kind: u16_at(bytes, 6),
            cookie: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
        }
    }

    /// Return its command for `export`, or the error number.
    fn allowed(&self, export: &Export, structured: bool) -> Result<Command, u32> {
        let (asked, known) = match self.kind {
            command::READ if structured => (Command::Read, flag::FUA | flag::DF),
            command::READ => (Command::Read, flag::FUA),
            command::WRITE => (Command::Write, flag::FUA),
            command::FLUSH => (Command::Flush, flag::FUA),
            command::TRIM => (Command::Trim, flag::FUA),
            command::WRITE_ZEROES => {
                let keep = self.flags & flag::NO_HOLE != 0;
                (Command::WriteZeroes { keep }, flag::FUA | flag::NO_HOLE)
            }
            _ => return Err(errno::EINVAL),
        };
        if self.flags & !known != 0 {
            return Err(errno::EINVAL);
        }
        if asked == Command::Flush {
            let empty = self.offset == 0 && self.length == 0;
            return if empty { Ok(asked) } else { Err(errno::EINVAL) };
        }
        let writes = asked != Command::Read;
        if writes && export.read_only {
            return Err(errno::EPERM);
        }
        let (sector, length) = (u64::from(export.sector), u64::from(self.length));
        let whole = self.offset.is_multiple_of(sector) && length.is_multiple_of(sector);
        let carries = matches!(asked, Command::Read | Command::Write);
        if self.length == 0 || !whole || carries && self.length > LONGEST_DATA {
            return Err(errno::EINVAL);
        }
        match self.offset.checked_add(length) {
            Some(end) if end <= export.size.0 => Ok(asked),
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
    ) -> Option<Step<'a>> {
        self.with_bytes(REQUEST_BYTES, input, |session, bytes| {
            let head = Head::read(bytes);
            if u32_at(bytes, 0) != REQUEST || head.kind == command::DISC {
                return session.close();
            }
            let (export, structured) = (session.export, session.structured);
            match head.allowed(&exports[export], structured) {
                Ok(command) => session.accept(Request {
                    export,
                    cookie: head.cookie,
                    command,
                    offset: head.offset,
                    length: head.length,
                    fua: head.flags & flag::FUA != 0,
                    structured: structured && command == Command::Read,
                }),
                Err(error) if head.kind == command::WRITE && head.length > 0 => {
                    let (cookie, left) = (head.cookie, head.length);
                    session.phase = Phase::PassData { cookie, error, left };
                    None
                }
                Err(error) => {
                    let in_chunks = structured && head.kind == command::READ;
                    put_error(out, in_chunks, head.cookie, error);
                    None
                }
            }
        })
    }

    fn accept<'a>(&mut self, request: Request) -> Option<Step<'a>> {
        if request.command != Command::Write {
            return Some(Step::Request(request));
        }
        self.phase = Phase::Data { request, done: 0 };
        None
    }

    pub(super) fn data<'a>(
        &mut self,
        request: Request,
        done: u32,
        input: &mut &'a [u8],
    ) -> Option<Step<'a>> {
        if done == request.length {
            self.phase = Phase::Requests;
            return Some(Step::Request(request));
        }
        let now = input.len().min((request.length - done) as usize);
        if now == 0 {
            return Some(Step::NeedInput);
        }
        let (bytes, rest) = input.split_at(now);
        *input = rest;
        self.phase = Phase::Data { request, done: done + now as u32 };
        let offset = request.offset + u64::from(done);
        Some(Step::Data { export: request.export, offset, bytes })
    }

    pub(super) fn pass_data<'a>(
        &mut self,
        cookie: u64,
        error: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<Step<'a>> {
        let left = skip(left, input);
        if left > 0 {
            self.phase = Phase::PassData { cookie, error, left };
            return Some(Step::NeedInput);
        }
        put_error(out, false, cookie, error);
        self.phase = Phase::Requests;
        None
    }
}
