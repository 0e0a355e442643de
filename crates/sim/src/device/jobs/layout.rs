//! Layout of a plan's phase: steps in plan order, with the steps of each die chained.

use super::phase::{NONE, PlanPhase, PlanStep, StepKind, Tails};
use crate::collections::bits;
use crate::device::jobs::site::LayoutSite;
use crate::flash::geometry::{DieIdx, PageAddress};
use crate::flash::plan::{Cmd, FlashPlan, Move};
use crate::timeline::{DieQueue, MultiPlane, Purpose};

impl PlanPhase {
    /// Lay out the commands of `plan` that start together, from index `from` on; return the index
    /// of the first other command.
    pub(super) fn lay_out(
        &mut self,
        plan: &FlashPlan,
        from: usize,
        site: LayoutSite<'_>,
        tails: &mut Tails,
        moves: Purpose,
    ) -> usize {
        self.steps.clear();
        self.planning.clear();
        (self.open, self.planned) = (0, 0);
        (self.settles, self.programs) = (None, false);
        if from == 0 {
            self.recorded = 0;
        }
        let records = plan.records();
        let mut of_host = None;
        let mut next = from;
        for command in &plan.commands()[from..] {
            match command {
                Cmd::Count(_) => {}
                Cmd::Barrier if self.steps.is_empty() => {}
                Cmd::Settle if self.steps.is_empty() => {
                    self.settles = records.get(self.recorded).copied();
                }
                Cmd::Barrier | Cmd::Settle => break,
                // Host and firmware commands never start together.
                _ if of_host.is_some_and(|other| other != command.is_of_host()) => break,
                // An erase waits for earlier programs, which must start first.
                Cmd::Erase { .. } if self.programs => break,
                _ => {
                    of_host = Some(command.is_of_host());
                    PhaseLayout { phase: self, site, tails, records, moves }.add(command, plan);
                }
            }
            next += 1;
        }
        self.steps.iter().for_each(|step| tails[step.die.0 as usize] = (NONE, NONE));
        next
    }
}

/// A phase during its layout.
struct PhaseLayout<'a, 'b> {
    phase: &'a mut PlanPhase,
    site: LayoutSite<'b>,
    tails: &'a mut Tails,
    records: &'a [u32],
    /// Purpose of the dies' page moves.
    moves: Purpose,
}

impl PhaseLayout<'_, '_> {
    fn add(&mut self, command: &Cmd, plan: &FlashPlan) {
        let timing = self.site.timing;
        match *command {
            Cmd::Read(_) | Cmd::Program { .. } => {
                let PlanStep { kind, purpose, die, at, cell_ns, merge_read, .. } =
                    PlanStep::of_host(*command, self.site);
                let step = self.push(kind, purpose, die, cell_ns, true);
                self.phase.steps[step as usize].at = at;
                self.phase.steps[step as usize].merge_read = merge_read;
                if kind == StepKind::Program {
                    self.record(step);
                }
            }
            Cmd::Copy { from, to } => self.copy(from, to),
            Cmd::CopySet { from, to, set } => self.copy_set(from, to, plan.words(set)),
            Cmd::CopyRow(row) => plan.row(row).moves().for_each(|(from, to)| self.copy(from, to)),
            Cmd::CopyStream(pages) => self.stream(plan.moves(pages), self.moves),
            Cmd::Erase { block, extra_ns } => {
                let first = self.site.geometry.address_at(block, 0);
                let erase_ns = timing.erase_ns + extra_ns;
                let step = self.push_at(StepKind::Inside, Purpose::Erase, first, erase_ns, true);
                let record = self.record(step);
                self.phase.settles = self.phase.settles.or(record);
            }
            Cmd::FailedRead(from) => {
                let read_ns = self.site.read_ns(from);
                self.push_at(StepKind::Read, Purpose::Retry, from, read_ns, true);
            }
            Cmd::FailedProgram(to) => {
                let program_ns = self.site.program_ns(to);
                let step = self.push_at(StepKind::Program, Purpose::Retry, to, program_ns, true);
                self.record(step);
            }
            Cmd::List(at) => {
                self.program(at, Purpose::Metadata);
            }
            Cmd::ProgramMap(to) => {
                self.program(to, Purpose::Metadata);
            }
            Cmd::LoadMap(from) => {
                let read_ns = self.site.read_ns(from);
                self.push_at(StepKind::Read, Purpose::Mapping, from, read_ns, true);
            }
            Cmd::StoreMap(pages) => self.stream(plan.moves(pages), Purpose::Mapping),
            Cmd::Count(_) | Cmd::Barrier | Cmd::Settle => {}
        }
    }

    /// Like [`PhaseLayout::push`], for one page or block.
    fn push_at(
        &mut self,
        kind: StepKind,
        purpose: Purpose,
        at: PageAddress,
        ns: u64,
        ends: bool,
    ) -> u32 {
        let die = self.site.geometry.die_at(at);
        let step = self.push(kind, purpose, die, ns, ends);
        self.phase.steps[step as usize].at = Some(at);
        step
    }

    /// Append a step to those of its die. `ends`: no other step waits for its result.
    fn push(
        &mut self,
        kind: StepKind,
        purpose: Purpose,
        die: DieIdx,
        cell_ns: u64,
        ends: bool,
    ) -> u32 {
        let PlanPhase { steps, open, .. } = self.phase;
        let index = steps.len() as u32;
        let (last, ending) = &mut self.tails[die.0 as usize];
        let before = steps.get_mut(std::mem::replace(last, index) as usize);
        let waits = u8::from(before.is_some());
        before.into_iter().for_each(|before| before.next = index);
        if ends {
            // An earlier step of the same kind on the same die ends earlier, unless its planes are
            // independent.
            let earlier = steps.get_mut(std::mem::replace(ending, index) as usize);
            let in_order = self.site.timing.multi_plane == MultiPlane::None;
            let alike = earlier.filter(|other| (other.kind, other.purpose) == (kind, purpose));
            let alike = alike.filter(|_| in_order);
            if let Some(alike) = alike.filter(|_| purpose != Purpose::HostWrite) {
                alike.counts = false;
                *open -= 1;
            }
            *open += 1;
        }
        let (record, merge_read, dependent, next, counts, at) = (0, None, NONE, NONE, ends, None);
        steps.push(PlanStep {
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
        });
        index
    }

    /// Assign the plan's next record to `step`, which programs or erases.
    fn record(&mut self, step: u32) -> Option<u32> {
        let record = *self.records.get(self.phase.recorded)?;
        self.phase.recorded += 1;
        self.phase.programs |= self.phase.steps[step as usize].purpose != Purpose::Erase;
        self.phase.steps[step as usize].record = record;
        Some(record)
    }

    fn program(&mut self, to: PageAddress, purpose: Purpose) -> u32 {
        let step = self.push_at(StepKind::Program, purpose, to, self.site.program_ns(to), true);
        self.record(step);
        step
    }

    /// Add the read of a page to be moved; [`PhaseLayout::feed`] connects it.
    fn read_to_move(&mut self, from: PageAddress, purpose: Purpose) -> u32 {
        self.push_at(StepKind::Read, purpose, from, self.site.read_ns(from), false)
    }

    /// Let `program` wait for the data of `read`; with [`NONE`] it has its data.
    fn set_dependent(&mut self, read: u32, program: u32) {
        if let Some(step) = self.phase.steps.get_mut(read as usize) {
            step.dependent = program;
            self.phase.steps[program as usize].waits += 1;
        }
    }

    /// Let the processor plan `step` first, if that takes time.
    fn plan(&mut self, step: u32) {
        if self.site.timing.relocate_ns > 0 {
            self.phase.steps[step as usize].waits += 1;
            self.phase.planning.push(step);
        }
    }

    /// Return whether moving a page from `from` to `to` needs only their die (copy-back).
    fn stays_inside(&self, from: PageAddress, to: PageAddress) -> bool {
        let LayoutSite { geometry, timing } = self.site;
        let is_free = timing.transfer_ns == 0 && timing.buses == 0 && timing.relocate_ns == 0;
        is_free && geometry.die_at(from) == geometry.die_at(to)
    }

    /// Move a page inside the die of `to`. Moves without another step between them become one long
    /// step.
    fn move_inside(&mut self, to: PageAddress, ns: u64) {
        let die = self.site.geometry.die_at(to);
        let (_, last) = self.tails[die.0 as usize];
        let last_step = self.phase.steps.get_mut(last as usize).filter(|_| self.records.is_empty());
        let moves = self.moves;
        let alike = last_step.filter(|step| step.next == NONE && step.purpose == moves);
        match alike.filter(|step| step.kind == StepKind::Inside) {
            Some(step) if self.site.timing.die_queue == DieQueue::Fifo => step.cell_ns += ns,
            _ => {
                let step = self.push(StepKind::Inside, self.moves, die, ns, true);
                self.record(step);
            }
        }
    }

    fn copy(&mut self, from: PageAddress, to: PageAddress) {
        if self.stays_inside(from, to) {
            let ns = self.site.read_ns(from) + self.site.program_ns(to);
            return self.move_inside(to, ns);
        }
        let read = self.read_to_move(from, self.moves);
        let program = self.program(to, self.moves);
        self.set_dependent(read, program);
        self.plan(read);
    }

    fn copy_set(&mut self, from: PageAddress, to: PageAddress, set: &[u64]) {
        let timing = self.site.timing;
        let cells = &timing.cells;
        let pages = bits::members(set, 0, 64 * set.len()).map(|page| page as u32);
        if !self.stays_inside(from, to) {
            pages.for_each(|page| self.copy(from.plus_pages(page), to.plus_pages(page)));
        } else if timing.die_queue != DieQueue::Fifo || !self.records.is_empty() {
            // Pages keep their offset in the block.
            pages.for_each(|page| self.move_inside(to, cells.moved(page)));
        } else if set.iter().any(|word| *word != 0) {
            self.move_inside(to, cells.all_moved(set));
        }
    }

    /// Move `pages` in order. Read ahead one page per die, so that no die waits for data while
    /// another programs.
    fn stream(&mut self, pages: &[Move], purpose: Purpose) {
        let lookahead = self.site.geometry.shape().planes as usize;
        let mut begins = std::mem::take(&mut self.phase.begins);
        begins.clear();
        for step in 0..pages.len() + lookahead {
            if let Some(Move { from, .. }) = pages.get(step) {
                begins.push(from.map_or(NONE, |from| self.read_to_move(from, purpose)));
            }
            let program =
                step.checked_sub(lookahead).and_then(|index| Some((index, pages.get(index)?)));
            if let Some((index, Move { to, .. })) = program {
                let program = self.program(*to, purpose);
                self.set_dependent(begins[index], program);
                if begins[index] == NONE {
                    begins[index] = program;
                }
            }
        }
        begins.iter().for_each(|step| self.plan(*step));
        self.phase.begins = begins;
    }
}
