//! One client, as bytes that come in and bytes that go out: no socket, no device, no clock.
//!
//! ```text
//! greeting ─▶ flags ─▶ options … ─▶ requests …          any of them ─▶ leave
//!                         └ too long: passed over  └ data of a write: handed on as it comes
//! ```
//!
//! A peer may send anything. What is kept of it is at most one head, or one option of
//! [`LONGEST_OPTION`] bytes: nothing is allocated by a length that a peer wrote. The data of a write is
//! never kept here.

mod handshake;
mod requests;

use crate::export::Export;
use crate::wire::{self, FIXED_NEWSTYLE, NO_ZEROES};

/// The longest option that is read [bytes]: a name may have 4096, and a few questions come with it.
/// Others are passed over.
pub const LONGEST_OPTION: u32 = 8192;

/// What a client asks for, once it and its data are whole and allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Of which export, by its place.
    pub export: usize,
    /// How the client names the request.
    pub cookie: u64,
    /// What it is to do.
    pub command: Command,
    /// From where on.
    pub offset: u64,
    /// For how many bytes.
    pub length: u32,
    /// Whether what it writes is to survive a loss of power.
    pub fua: bool,
    /// Whether a read is answered in chunks.
    pub structured: bool,
}

impl Request {
    /// How many bytes of data its reply has.
    #[must_use]
    pub fn owed(&self) -> u32 {
        if self.command == Command::Read { self.length } else { 0 }
    }
}

/// What a request is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Hand out data.
    Read,
    /// Take data; it came before, as [`Step::Data`].
    Write,
    /// Make durable what was acknowledged.
    Flush,
    /// The range is not needed any more.
    Trim,
    /// The range is to read as zeroes, and with `keep` its room is to stay.
    WriteZeroes {
        /// Whether the client wants room that is sure to be there.
        keep: bool,
    },
}

/// What comes next of a session.
#[derive(PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// All that came in is used up.
    Hungry,
    /// A part of the data of a write that is allowed.
    Data {
        /// Of which export.
        export: usize,
        /// Where it belongs.
        offset: u64,
        /// The data.
        bytes: &'a [u8],
    },
    /// Something to be done and answered.
    Request(Request),
    /// Nothing more is read from the client; it is gone once it has what waits for it.
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Flags,
    /// The head of an option, then its data.
    Option,
    OptionData {
        option: u32,
        length: u32,
    },
    /// An option that is too long, `left` of it still to come.
    PassOption {
        option: u32,
        left: u32,
    },
    Requests,
    /// The data of a write, `done` of it handed on.
    Data {
        request: Request,
        done: u32,
    },
    /// The data of a write that is refused with `error`, `left` of it still to come.
    PassData {
        cookie: u64,
        error: u32,
        left: u32,
    },
    Left,
}

/// What is known of one client.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    /// The beginning of a head, or of an option, whose rest has not come yet.
    held: Vec<u8>,
    export: usize,
    structured: bool,
    no_zeroes: bool,
}

impl Session {
    /// A client that has just come; `out` begins with the greeting.
    #[must_use]
    pub fn new(out: &mut Vec<u8>) -> Session {
        out.extend_from_slice(&wire::GREETING.to_be_bytes());
        out.extend_from_slice(&wire::OPTION.to_be_bytes());
        out.extend_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        Session {
            phase: Phase::Flags,
            held: Vec::new(),
            export: 0,
            structured: false,
            no_zeroes: false,
        }
    }

    /// Whether the client has chosen an export.
    #[must_use]
    pub fn is_transmitting(&self) -> bool {
        matches!(self.phase, Phase::Requests | Phase::Data { .. } | Phase::PassData { .. })
    }

    /// How much of what came in is kept, because its rest has not come [bytes].
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.held.len()
    }

    /// Take what is next from `input`; what needs no device is answered in `out`.
    pub fn step<'a>(
        &mut self,
        input: &mut &'a [u8],
        exports: &[Export],
        out: &mut Vec<u8>,
    ) -> Step<'a> {
        loop {
            let step = match self.phase {
                Phase::Flags => self.flags(input),
                Phase::Option => self.option(input),
                Phase::OptionData { option, length } => {
                    self.option_data(option, length, input, exports, out)
                }
                Phase::PassOption { option, left } => self.pass_option(option, left, input, out),
                Phase::Requests => self.request(input, exports, out),
                Phase::Data { request, done } => self.data(request, done, input),
                Phase::PassData { cookie, error, left } => {
                    self.pass_data(cookie, error, left, input, out)
                }
                Phase::Left => Some(Step::Leave),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Gather `wanted` bytes, and let `use_them` say what follows; hungry while they are not there.
    fn gathered<'a>(
        &mut self,
        wanted: usize,
        input: &mut &'a [u8],
        use_them: impl FnOnce(&mut Session, &[u8]) -> Option<Step<'a>>,
    ) -> Option<Step<'a>> {
        if self.held.is_empty() && input.len() >= wanted {
            let (whole, rest) = input.split_at(wanted);
            *input = rest;
            return use_them(self, whole);
        }
        let missing = wanted.saturating_sub(self.held.len()).min(input.len());
        let (more, rest) = input.split_at(missing);
        self.held.extend_from_slice(more);
        *input = rest;
        if self.held.len() < wanted {
            return Some(Step::Hungry);
        }
        let mut whole = std::mem::take(&mut self.held);
        let step = use_them(self, &whole);
        // Its room is used again; that of a long option is not kept.
        whole.clear();
        whole.shrink_to(wire::REQUEST_BYTES);
        self.held = whole;
        step
    }

    /// Say that the client leaves.
    fn leave<'a>(&mut self) -> Option<Step<'a>> {
        self.phase = Phase::Left;
        Some(Step::Leave)
    }
}

/// Pass over at most `left` bytes; returns how many are left then.
fn passed(left: u32, input: &mut &[u8]) -> u32 {
    let now = input.len().min(left as usize);
    *input = &input[now..];
    left - now as u32
}
