//! A phase of a plan: the work of its dies between two barriers.
//!
//! ```text
//! copy A → B, copy B → A, erase A          die A   read ──────────▶ program │ erase
//!                                                    ╲ data     ╱ data
//!                                          die B   │ program ◀─╳── read
//! ```
//!
//! Each die executes its steps in plan order: a step joins the die queue when the step before it
//! has completed and its data is in memory. Meanwhile the die is free for other operations.

use crate::device::jobs::site::LayoutSite;
use crate::flash::geometry::{DieIdx, PageAddress};
use crate::flash::plan::Cmd;
use crate::timeline::Purpose;
use crate::timeline::cells::PageType;

/// One operation of a die for a plan.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Step")]
pub(super) struct PlanStep {
    #[serde(rename = "what")]
    pub(super) kind: StepKind,
    pub(super) purpose: Purpose,
    pub(super) die: DieIdx,
    /// Its page or block, if it has exactly one.
    pub(super) at: Option<PageAddress>,
    pub(super) cell_ns: u64,
    /// Record of its change of the flash contents; 0: none.
    pub(super) record: u32,
    /// The die of the rest of a partly written host page, read before the program, and its page
    /// type.
    #[serde(rename = "rest")]
    pub(super) merge_read: Option<(DieIdx, PageType)>,
    /// The step that waits for the data of this read, or [`NONE`].
    #[serde(rename = "feeds")]
    pub(super) dependent: u32,
    /// The next step of the same die, or [`NONE`].
    pub(super) next: u32,
    /// Number of dependencies: the previous step, its data, the processor; [`BEGUN`] once started.
    pub(super) waits: u8,
    /// The phase waits for its end.
    pub(super) counts: bool,
}

/// Kind of die work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "What")]
pub(super) enum StepKind {
    Read,
    Program,
    /// No channel is needed.
    Inside,
}

pub(super) const NONE: u32 = u32::MAX;
const BEGUN: u8 = u8::MAX;

impl PlanStep {
    /// Return the step of the host command `command`.
    #[inline(always)]
    pub(super) fn of_host(command: Cmd, site: LayoutSite<'_>) -> PlanStep {
        let (kind, purpose, address, cell_ns, merge_from) = match command {
            Cmd::Read(from) => (StepKind::Read, Purpose::HostRead, from, site.read_ns(from), None),
            Cmd::Program { to, merge_from } => {
                (StepKind::Program, Purpose::HostWrite, to, site.program_ns(to), merge_from)
            }
            other => unreachable!("the firmware executes {other:?}, not a die"),
        };
        let die = site.geometry.die_at(address);
        let merge_read = merge_from.map(|from| (site.geometry.die_at(from), site.kind(from)));
        let (dependent, next, waits, counts, record) = (NONE, NONE, 0, true, 0);
        let at = Some(address);
        PlanStep {
            kind,
            purpose,
            die,
            at,
            cell_ns,
            record,
            merge_read,
            dependent,
            next,
            waits,
            counts,
        }
    }
}

/// The last step of each die, and the last one that the phase waits for; used during layout only.
pub(super) type Tails = Vec<(u32, u32)>;

/// The steps of a phase, and their progress.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Phase")]
pub(super) struct PlanPhase {
    pub(super) steps: Vec<PlanStep>,
    /// Number of steps whose end the phase waits for.
    pub(super) open: u32,
    /// Steps to be planned by the processor, in order, and the number planned so far.
    pub(super) planning: Vec<u32>,
    pub(super) planned: usize,
    /// Number of the plan's records that have been assigned to steps, and the first record that
    /// requires the end of all earlier programs: an erased block, or its moves.
    pub(super) recorded: usize,
    pub(super) settles: Option<u32>,
    /// The phase programs something with a record.
    pub(super) programs: bool,
    /// The first step of each page of a stream; kept to avoid allocations.
    #[serde(skip)]
    pub(super) begins: Vec<u32>,
}

impl PlanPhase {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn step(&self, index: u32) -> &PlanStep {
        &self.steps[index as usize]
    }

    /// Return the record that requires the end of all earlier programs.
    pub(super) fn settle_step(&self) -> Option<u32> {
        self.settles
    }

    /// Return whether the phase is host work; otherwise it is firmware work.
    pub(super) fn is_of_host(&self) -> bool {
        let of_host =
            |step: &PlanStep| matches!(step.purpose, Purpose::HostRead | Purpose::HostWrite);
        self.steps.first().is_some_and(of_host)
    }

    /// Return the step of a phase with one step.
    pub(super) fn only(&self) -> Option<&PlanStep> {
        if let [step] = self.steps.as_slice() { Some(step) } else { None }
    }

    /// Start the steps without dependencies, in order.
    pub(super) fn begin(&mut self, mut issue: impl FnMut(u32, &PlanStep)) {
        for index in 0..self.steps.len() as u32 {
            if self.steps[index as usize].waits == 0 {
                self.take(index, &mut issue);
            }
        }
    }

    /// Start the step; return the next step of its die if that had no other dependency.
    fn take(&mut self, index: u32, issue: &mut impl FnMut(u32, &PlanStep)) -> Option<u32> {
        let step = &mut self.steps[index as usize];
        step.waits = BEGUN;
        issue(index, step);
        let next = step.next;
        let after = self.steps.get_mut(next as usize)?;
        after.waits -= 1;
        (after.waits == 0).then_some(next)
    }

    /// Remove one dependency of the step.
    pub(super) fn release(&mut self, index: u32, mut issue: impl FnMut(u32, &PlanStep)) {
        let step = &mut self.steps[index as usize];
        step.waits -= 1;
        let mut next = (step.waits == 0).then_some(index);
        while let Some(index) = next {
            next = self.take(index, &mut issue);
        }
    }

    /// Return whether every awaited step has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// Return the next step that the processor plans.
    pub(super) fn next_planned(&mut self) -> Option<u32> {
        let next = self.planning.get(self.planned).copied();
        self.planned += 1;
        next
    }
}
