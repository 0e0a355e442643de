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

mod handshake;
mod requests;

use crate::export::Export;
use crate::wire::{self, FIXED_NEWSTYLE, NO_ZEROES};

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
