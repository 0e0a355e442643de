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

use crate::collections::bits;
use crate::device::jobs::site::Site;
use crate::flash::geometry::{DieIdx, Place};
use crate::flash::plan::{Cmd, Move, Plan};
use crate::timeline::cells::Kind;
use crate::timeline::{DieQueue, Purpose};

/// What one die does once for a plan.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Step {
    pub(super) what: What,
    pub(super) purpose: Purpose,
    pub(super) die: DieIdx,
    pub(super) cell_ns: u64,
    /// Where the rest of a page of the host is read before, and which of those that share cells that is.
    pub(super) rest: Option<(DieIdx, Kind)>,
    /// The step that waits for what this one reads, or [`NONE`].
    pub(super) feeds: u32,
    /// The step of the same die that follows, or [`NONE`].
    next: u32,
    /// It waits for so many: the step before it, its data, the processor; [`BEGUN`] when it has begun.
    waits: u8,
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
    #[inline]
    pub(super) fn of_host(command: Cmd, site: Site<'_>) -> Step {
        let (what, purpose, place, cell_ns, rest) = match command {
            Cmd::Read(from) => (What::Read, Purpose::HostRead, from, site.read_ns(from), None),
            Cmd::Program { to, rest } => {
                (What::Program, Purpose::HostWrite, to, site.program_ns(to), rest)
            }
            other => unreachable!("{other:?} is the firmware's"),
        };
        let (rest, die) = (rest.map(|from| (from.die, site.kind(from))), place.die);
        let (feeds, next, waits, counts) = (NONE, NONE, 0, true);
        Step { what, purpose, die, cell_ns, rest, feeds, next, waits, counts }
    }
}

/// The last step of each die, and the last that ends with the phase; over when a phase is laid out.
pub(super) type Tails = Vec<(u32, u32)>;

/// Steps, and which of them are under way.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Phase {
    steps: Vec<Step>,
    /// The ends of so many are waited for.
    open: u32,
    /// What the processor plans, in order, and how much of it is done.
    planning: Vec<u32>,
    planned: usize,
    /// The first step of each page of a stream; kept, so that nothing is allocated.
    #[serde(skip)]
    begins: Vec<u32>,
}

impl Phase {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn step(&self, index: u32) -> &Step {
        &self.steps[index as usize]
    }

    /// The only step.
    pub(super) fn only(&self) -> Option<&Step> {
        if let [step] = self.steps.as_slice() { Some(step) } else { None }
    }

    /// Lay out what begins together of `plan`, from the command `from` on; returns the first that does not.
    pub(super) fn lay_out(
        &mut self,
        plan: &Plan,
        from: usize,
        site: Site<'_>,
        tails: &mut Tails,
    ) -> usize {
        self.steps.clear();
        self.planning.clear();
        (self.open, self.planned) = (0, 0);
        let mut of_host = None;
        let mut next = from;
        for command in &plan.commands()[from..] {
            match command {
                Cmd::Count(_) => {}
                Cmd::Barrier if self.steps.is_empty() => {}
                Cmd::Barrier => break,
                // What the host and what the firmware wants never begin together.
                _ if of_host.is_some_and(|other| other != command.is_of_host()) => break,
                _ => {
                    of_host = Some(command.is_of_host());
                    Layout { phase: self, site, tails }.add(command, plan);
                }
            }
            next += 1;
        }
        self.steps.iter().for_each(|step| tails[step.die.0 as usize] = (NONE, NONE));
        next
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

    /// A step that counts has ended; whether it was the last.
    pub(super) fn ended(&mut self) -> bool {
        self.open -= 1;
        self.open == 0
    }

    /// What the processor plans next.
    pub(super) fn plan_next(&mut self) -> Option<u32> {
        let next = self.planning.get(self.planned).copied();
        self.planned += 1;
        next
    }
}

/// A phase that is laid out.
struct Layout<'a, 'b> {
    phase: &'a mut Phase,
    site: Site<'b>,
    tails: &'a mut Tails,
}

impl Layout<'_, '_> {
    fn add(&mut self, command: &Cmd, plan: &Plan) {
        let timing = self.site.timing;
        match *command {
            Cmd::Read(_) | Cmd::Program { .. } => {
                let Step { what, purpose, die, cell_ns, rest, .. } =
                    Step::of_host(*command, self.site);
                let step = self.push(what, purpose, die, cell_ns, true);
                self.phase.steps[step as usize].rest = rest;
            }
            Cmd::Copy { from, to } => self.copy(from, to),
            Cmd::CopySet { from, to, set } => self.copy_set(from, to, plan.words(set)),
            Cmd::CopyStream(pages) => self.stream(plan.moves(pages), Purpose::Merge),
            Cmd::Erase { block, extra_ns } => {
                let die = self.site.geometry.die_of(block);
                let erase_ns = timing.erase_ns + extra_ns;
                self.push(What::Inside, Purpose::Erase, die, erase_ns, true);
            }
            Cmd::FailedRead(from) => {
                let read_ns = self.site.read_ns(from);
                self.push(What::Read, Purpose::Retry, from.die, read_ns, true);
            }
            Cmd::FailedProgram(to) => {
                self.program(to, Purpose::Retry);
            }
            Cmd::ProgramMap(to) => {
                self.program(to, Purpose::Metadata);
            }
            Cmd::LoadMap(from) => {
                let read_ns = self.site.read_ns(from);
                self.push(What::Read, Purpose::Mapping, from.die, read_ns, true);
            }
            Cmd::StoreMap(pages) => self.stream(plan.moves(pages), Purpose::Mapping),
            Cmd::Count(_) | Cmd::Barrier => {}
        }
    }

    /// A step behind those of its die. `ends`: no other step waits for what it does.
    fn push(&mut self, what: What, purpose: Purpose, die: DieIdx, cell_ns: u64, ends: bool) -> u32 {
        let die = self.site.geometry.clock_of(die);
        let Phase { steps, open, .. } = self.phase;
        let index = steps.len() as u32;
        let (last, ending) = &mut self.tails[die.0 as usize];
        let before = steps.get_mut(std::mem::replace(last, index) as usize);
        let waits = u8::from(before.is_some());
        before.into_iter().for_each(|before| before.next = index);
        if ends {
            // One like it on the same die ends earlier.
            let alike = steps.get_mut(std::mem::replace(ending, index) as usize);
            let alike = alike.filter(|other| (other.what, other.purpose) == (what, purpose));
            if let Some(alike) = alike.filter(|_| purpose != Purpose::HostWrite) {
                alike.counts = false;
                *open -= 1;
            }
            *open += 1;
        }
        let (rest, feeds, next) = (None, NONE, NONE);
        steps.push(Step { what, purpose, die, cell_ns, rest, feeds, next, waits, counts: ends });
        index
    }

    fn program(&mut self, to: Place, purpose: Purpose) -> u32 {
        self.push(What::Program, purpose, to.die, self.site.program_ns(to), true)
    }

    /// Read a page that `feeds` will wait for.
    fn read_to_move(&mut self, from: Place, purpose: Purpose) -> u32 {
        self.push(What::Read, purpose, from.die, self.site.read_ns(from), false)
    }

    /// `program` waits for the data of `read`, or where that is [`NONE`], has it.
    fn feed(&mut self, read: u32, program: u32) {
        if let Some(step) = self.phase.steps.get_mut(read as usize) {
            step.feeds = program;
            self.phase.steps[program as usize].waits += 1;
        }
    }

    /// The processor plans `step` before it begins, where that takes time.
    fn plan(&mut self, step: u32) {
        if self.site.timing.relocate_ns > 0 {
            self.phase.steps[step as usize].waits += 1;
            self.phase.planning.push(step);
        }
    }

    /// Whether a page that moves from `from` to `to` needs nothing but their die.
    fn stays_inside(&self, from: Place, to: Place) -> bool {
        let Site { geometry, timing } = self.site;
        let alone = timing.transfer_ns == 0 && timing.buses == 0 && timing.relocate_ns == 0;
        alone && geometry.clock_of(from.die) == geometry.clock_of(to.die)
    }

    /// The die of `to` moves a page inside. Where nobody comes between two pages, they are one long piece.
    fn move_inside(&mut self, to: Place, ns: u64) {
        let die = self.site.geometry.clock_of(to.die);
        let (_, last) = self.tails[die.0 as usize];
        let alike = self.phase.steps.get_mut(last as usize);
        let alike = alike.filter(|step| step.next == NONE && step.purpose == Purpose::Merge);
        match alike.filter(|step| step.what == What::Inside) {
            Some(step) if self.site.timing.die_queue == DieQueue::Fifo => step.cell_ns += ns,
            _ => {
                self.push(What::Inside, Purpose::Merge, to.die, ns, true);
            }
        }
    }

    fn copy(&mut self, from: Place, to: Place) {
        if self.stays_inside(from, to) {
            let ns = self.site.read_ns(from) + self.site.program_ns(to);
            return self.move_inside(to, ns);
        }
        let read = self.read_to_move(from, Purpose::Merge);
        let program = self.program(to, Purpose::Merge);
        self.feed(read, program);
        self.plan(read);
    }

    fn copy_set(&mut self, from: Place, to: Place, set: &[u64]) {
        let timing = self.site.timing;
        let mut pages = bits::members(set, 0, 64 * set.len()).map(|page| page as u32);
        if !self.stays_inside(from, to) {
            return pages.for_each(|page| self.copy(from.behind(page), to.behind(page)));
        }
        // Pages keep their place in the block.
        let cells = &timing.cells;
        let inside = |page| cells.read_page(|| page) + cells.program_page(page);
        if timing.die_queue != DieQueue::Fifo {
            pages.for_each(|page| self.move_inside(to, inside(page)));
        } else if let Some(first) = pages.next() {
            self.move_inside(to, inside(first) + pages.map(inside).sum::<u64>());
        }
    }

    /// Move `pages` in order, reading ahead by as many as there are dies, so that no die waits for data
    /// while another programs.
    fn stream(&mut self, pages: &[Move], purpose: Purpose) {
        let ahead = self.site.geometry.shape().dies as usize;
        let mut begins = std::mem::take(&mut self.phase.begins);
        begins.clear();
        for step in 0..pages.len() + ahead {
            if let Some(Move { from, .. }) = pages.get(step) {
                begins.push(from.map_or(NONE, |from| self.read_to_move(from, purpose)));
            }
            let behind = step.checked_sub(ahead).and_then(|index| Some((index, pages.get(index)?)));
            if let Some((index, Move { to, .. })) = behind {
                let program = self.program(*to, purpose);
                self.feed(begins[index], program);
                if begins[index] == NONE {
                    begins[index] = program;
                }
            }
        }
        begins.iter().for_each(|step| self.plan(*step));
        self.phase.begins = begins;
    }
}
