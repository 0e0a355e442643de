//! A phase of a plan: what its dies do from one barrier to the next.
//!
//! ```text
//! copy A → B, copy B → A, erase A          die A   read ──────────▶ program │ erase
//!                                                    ╲ data     ╱ data
//!                                          die B   │ program ◀─╳── read
//! ```
//!
//! Each die takes the steps of a phase in the order of the plan: one goes to the ring of its die when the
//! one before it has, and its data is there. Whoever else wants the die finds it free meanwhile.

use crate::device::jobs::site::Site;
use crate::flash::geometry::{DieIdx, Place};
use crate::flash::plan::Cmd;
use crate::timeline::Purpose;
use crate::timeline::cells::Kind;

/// What one die does once for a plan.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Step {
    pub(super) what: What,
    pub(super) purpose: Purpose,
    pub(super) die: DieIdx,
    /// What it is about on flash, where that is one page or block.
    pub(super) at: Option<Place>,
    pub(super) cell_ns: u64,
    /// What it changes on flash: a record of what is on it; 0: none.
    pub(super) record: u32,
    /// Where the rest of a page of the host is read before, and which of those that share cells that is.
    pub(super) rest: Option<(DieIdx, Kind)>,
    /// The step that waits for what this one reads, or [`NONE`].
    pub(super) feeds: u32,
    /// The step of the same die that follows, or [`NONE`].
    pub(super) next: u32,
    /// It waits for so many: the step before it, its data, the processor; [`BEGUN`] when it has begun.
    pub(super) waits: u8,
    /// The phase waits for its end.
    pub(super) counts: bool,
}

/// What keeps a die busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum What {
    Read,
    Program,
    /// No channel is needed.
    Inside,
}

pub(super) const NONE: u32 = u32::MAX;
const BEGUN: u8 = u8::MAX;

impl Step {
    /// What `command`, which is the host's, wants.
    #[inline(always)]
    pub(super) fn of_host(command: Cmd, site: Site<'_>) -> Step {
        let (what, purpose, place, cell_ns, rest) = match command {
            Cmd::Read(from) => (What::Read, Purpose::HostRead, from, site.read_ns(from), None),
            Cmd::Program { to, rest } => {
                (What::Program, Purpose::HostWrite, to, site.program_ns(to), rest)
            }
            other => unreachable!("{other:?} is the firmware's"),
        };
        let die = site.geometry.die_at(place);
        let rest = rest.map(|from| (site.geometry.die_at(from), site.kind(from)));
        let (feeds, next, waits, counts, record) = (NONE, NONE, 0, true, 0);
        let at = Some(place);
        Step { what, purpose, die, at, cell_ns, record, rest, feeds, next, waits, counts }
    }
}

/// The last step of each die, and the last that ends with the phase; over when a phase is laid out.
pub(super) type Tails = Vec<(u32, u32)>;

/// Steps, and which of them are under way.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Phase {
    pub(super) steps: Vec<Step>,
    /// The ends of so many are waited for.
    pub(super) open: u32,
    /// What the processor plans, in order, and how much of it is done.
    pub(super) planning: Vec<u32>,
    pub(super) planned: usize,
    /// So many records of the plan belong to steps by now, and which is the first before which all programs have ended:
    /// that of a block that is erased, or moves.
    pub(super) recorded: usize,
    pub(super) settles: Option<u32>,
    /// Something is programmed that has a record.
    pub(super) programs: bool,
    /// The first step of each page of a stream; kept, so that nothing is allocated.
    #[serde(skip)]
    pub(super) begins: Vec<u32>,
}

impl Phase {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn step(&self, index: u32) -> &Step {
        &self.steps[index as usize]
    }

    /// The record before which all programs have ended.
    pub(super) fn settles(&self) -> Option<u32> {
        self.settles
    }

    /// Whether it is what the host wants; the rest is the firmware's.
    pub(super) fn is_of_host(&self) -> bool {
        let of_host = |step: &Step| matches!(step.purpose, Purpose::HostRead | Purpose::HostWrite);
        self.steps.first().is_some_and(of_host)
    }

    /// The only step.
    pub(super) fn only(&self) -> Option<&Step> {
        if let [step] = self.steps.as_slice() { Some(step) } else { None }
    }

    /// The steps that wait for nothing, in order.
    pub(super) fn begin(&mut self, mut issue: impl FnMut(u32, &Step)) {
        for index in 0..self.steps.len() as u32 {
            if self.steps[index as usize].waits == 0 {
                self.take(index, &mut issue);
            }
        }
    }

    /// The step begins; returns the next on its die where that waited for nothing else.
    fn take(&mut self, index: u32, issue: &mut impl FnMut(u32, &Step)) -> Option<u32> {
        let step = &mut self.steps[index as usize];
        step.waits = BEGUN;
        issue(index, step);
        let next = step.next;
        let after = self.steps.get_mut(next as usize)?;
        after.waits -= 1;
        (after.waits == 0).then_some(next)
    }

    /// The step waits for one thing less.
    pub(super) fn release(&mut self, index: u32, mut issue: impl FnMut(u32, &Step)) {
        let step = &mut self.steps[index as usize];
        step.waits -= 1;
        let mut next = (step.waits == 0).then_some(index);
        while let Some(index) = next {
            next = self.take(index, &mut issue);
        }
    }

    /// Whether all that it waits for have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// What the processor plans next.
    pub(super) fn next_planned(&mut self) -> Option<u32> {
        let next = self.planning.get(self.planned).copied();
        self.planned += 1;
        next
    }
}
