//! Outstanding commands: their unfinished pages, and the page that ended last.
//!
//! A command ends with its last page, whose account becomes that of the command.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uflip_core::{Completion, FlashStatus, Nanos, Ticket, VECTOR_MAX};

use crate::timeline::AccountIdx;
use crate::timeline::breakdown::{Account as _, Cause, FlashBreakdown};

pub(super) type FlashCompletion = Completion<FlashBreakdown, FlashStatus>;

/// A page, or a block, of an outstanding command; its account has the same number.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "PageIdx")]
pub(super) struct CommandPageIdx(u32);

impl CommandPageIdx {
    pub(super) fn account(self) -> AccountIdx {
        AccountIdx::new(self.0)
    }
}

impl From<CommandPageIdx> for u64 {
    fn from(page: CommandPageIdx) -> u64 {
        page.0.into()
    }
}

impl From<u64> for CommandPageIdx {
    fn from(word: u64) -> CommandPageIdx {
        CommandPageIdx(word as u32)
    }
}

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Command")]
struct OutstandingCommand {
    completion: FlashCompletion,
    /// Number of unfinished pages, plus 1 until all have been submitted.
    #[serde(rename = "left")]
    pages_left: u32,
    /// The latest end of a page, and that page.
    last: (u64, u32),
}

/// All outstanding commands.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename = "UnderWay")]
pub(super) struct OutstandingCommands {
    commands: Vec<OutstandingCommand>,
    unused: Vec<u32>,
    /// Number of commands whose end is unknown.
    open: u32,
    /// Commands whose end is known, by completion time, then by ticket.
    #[serde(rename = "ended")]
    completed: BinaryHeap<Reverse<(u64, Ticket, u32)>>,
    tickets: u64,
    /// Number of the first command that is numbered for a recording.
    #[serde(skip)]
    first_numbered: u64,
}

impl OutstandingCommands {
    /// Begin a command at `now`; return its index.
    pub(super) fn begin(&mut self, now: u64) -> u32 {
        let completion = Completion {
            ticket: Ticket(self.tickets),
            submitted: Nanos(now),
            completed: Nanos(now),
            breakdown: FlashBreakdown::default(),
            status: FlashStatus::default(),
        };
        self.tickets += 1;
        self.open += 1;
        let command = OutstandingCommand { completion, pages_left: 1, last: (0, 0) };
        match self.unused.pop() {
            Some(slot) => {
                self.commands[slot as usize] = command;
                slot
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        }
    }

    /// Number the commands that are submitted from now on from 0.
    pub(super) fn number_from_here(&mut self) {
        self.first_numbered = self.tickets;
    }

    /// Return the number of the command in `slot` since then.
    pub(super) fn number_of(&self, slot: u32) -> u32 {
        (self.commands[slot as usize].completion.ticket.0 - self.first_numbered) as u32
    }

    /// Add page number `number` of the command in `slot`, and start its account.
    #[inline]
    pub(super) fn page(
        &mut self,
        slot: u32,
        number: usize,
        accounts: &mut Vec<FlashBreakdown>,
    ) -> CommandPageIdx {
        self.commands[slot as usize].pages_left += 1;
        let index = slot as usize * VECTOR_MAX + number;
        if accounts.len() <= index {
            accounts.resize(index + 1, FlashBreakdown::default());
        }
        accounts[index] = FlashBreakdown::default();
        CommandPageIdx(index as u32)
    }

    /// Record that all pages of the command in `slot` have been submitted, with the `status` of
    /// its addresses; return its ticket.
    #[inline]
    pub(super) fn submitted(
        &mut self,
        slot: u32,
        status: FlashStatus,
        answer_ns: u64,
        accounts: &mut [FlashBreakdown],
    ) -> Ticket {
        let command = &mut self.commands[slot as usize];
        command.completion.status = status;
        command.pages_left -= 1;
        let (ticket, complete) = (command.completion.ticket, command.pages_left == 0);
        if complete {
            self.complete(slot, answer_ns, accounts);
        }
        ticket
    }

    /// End `page` at `end`; after its last page the command ends `answer_ns` later.
    #[inline]
    pub(super) fn page_ended(
        &mut self,
        page: CommandPageIdx,
        end: u64,
        answer_ns: u64,
        accounts: &mut [FlashBreakdown],
    ) {
        let (slot, number) = (page.0 / VECTOR_MAX as u32, page.0 % VECTOR_MAX as u32);
        let command = &mut self.commands[slot as usize];
        command.last = command.last.max((end, number));
        command.pages_left -= 1;
        if command.pages_left == 0 {
            self.complete(slot, answer_ns, accounts);
        }
    }

    /// Complete the command in `slot`, which is answered `answer_ns` later.
    #[inline]
    fn complete(&mut self, slot: u32, answer_ns: u64, accounts: &mut [FlashBreakdown]) {
        let command = &mut self.commands[slot as usize];
        let (end, number) = command.last;
        let account = &mut accounts[slot as usize * VECTOR_MAX + number as usize];
        account.add(Cause::Completion, answer_ns);
        let completion = &mut command.completion;
        completion.breakdown = *account;
        completion.completed = Nanos(end + answer_ns);
        self.completed.push(Reverse((end + answer_ns, completion.ticket, slot)));
        self.open -= 1;
    }

    /// Return whether no command is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0 && self.completed.is_empty()
    }

    /// Return whether the end of some command is unknown.
    #[inline]
    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// Return the earliest known completion time.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.completed.peek().map(|Reverse((completed, ..))| *completed)
    }

    /// Remove it.
    pub(super) fn take(&mut self) -> Option<FlashCompletion> {
        let Reverse((_, _, slot)) = self.completed.pop()?;
        self.unused.push(slot);
        Some(self.commands[slot as usize].completion)
    }
}
