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

use crate::collections::bits;
use crate::device::event::{DeviceEvent, EventTag, JobIdx};
use crate::flash::geometry::{DieIdx, Geometry, PageAddress};
use crate::flash::plan::{Cmd, FlashPlan, Move};
use crate::timeline::breakdown::Cause;
use crate::timeline::cells::PageType;
use crate::timeline::{DieQueue, MultiPlane, Purpose, Timeline, Timing};

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
    settles: Option<u32>,
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

    // Layout of a plan's phase: steps in plan order, with the steps of each die chained.

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
            Cmd::Parity(to) => {
                let (kind, program_ns) = (StepKind::Program, self.site.program_ns(to));
                let step = self.push_at(kind, Purpose::Metadata, to, program_ns, false);
                self.record(step);
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

// A cache of phase durations: a phase that has the device to itself takes as long as an identical
// earlier one.
//
// Merges repeat a few patterns of page moves. While nothing else is in progress and every resource
// is free, the end times of a phase depend on its steps alone. So the phase is simulated only
// once, on a separate timeline of the same device.
//
// **Source**, **Ambiguous**: as the timeline.
// **Faithful**: every time equals that of the timeline.
// **Simplified**: nothing; if anything else is in progress, the phase is simulated in full.

/// The duration of a phase.
#[derive(Debug, Default)]
pub(super) struct PhaseTime {
    /// Time from its beginning to its end.
    pub(super) ns: u64,
    /// The causes that this time is charged to.
    pub(super) causes: Vec<(Cause, u64)>,
}

/// Number of cache entries, and the maximum length of a key in words: a few megabytes in total.
const SLOTS: usize = 1024;
const MAX_KEY_WORDS: usize = 512;

/// Phases with fewer steps are simulated: the lookup would take as long.
const MIN_STEPS: usize = 4;

/// The cache; an entry is overwritten by the next phase with the same hash.
#[derive(Debug, Default)]
pub(super) struct PhaseCache {
    slots: Vec<(Vec<u64>, PhaseTime)>,
    /// The current key; kept to avoid allocations.
    key: Vec<u64>,
}

/// The cache is not part of the state of a device: a clone starts empty.
impl Clone for PhaseCache {
    fn clone(&self) -> PhaseCache {
        PhaseCache::default()
    }
}

impl PhaseCache {
    /// Return the duration of `phase` if it starts now; `None` if it depends on other work or a
    /// lookup does not pay.
    pub(super) fn lookup(
        &mut self,
        phase: &PlanPhase,
        events: &Timeline<EventTag>,
    ) -> Option<&PhaseTime> {
        let words = phase.steps.len() * 2 + phase.planning.len();
        if phase.steps.len() < MIN_STEPS
            || words > MAX_KEY_WORDS
            || phase.is_of_host()
            || !events.is_idle(phase.steps.iter().map(|step| step.die))
        {
            return None;
        }
        let bucket = self.slot_of(phase);
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Default::default);
        }
        if self.slots[bucket].0 != self.key {
            let time = PhaseCache::simulate(phase, events);
            let (key, slot) = &mut self.slots[bucket];
            key.clone_from(&self.key);
            *slot = time;
        }
        Some(&self.slots[bucket].1)
    }

    /// Return whether the cache has any entry.
    #[cfg(test)]
    pub(super) fn is_used(&self) -> bool {
        self.slots.iter().any(|(key, _)| !key.is_empty())
    }

    /// Build the key of `phase` from all that its times depend on; return its slot.
    fn slot_of(&mut self, phase: &PlanPhase) -> usize {
        let key = &mut self.key;
        key.clear();
        for step in &phase.steps {
            let kind =
                (step.kind as u64) << 5 | (step.purpose as u64) << 1 | u64::from(step.counts);
            let of_phase = u64::from(step.waits) << 16 | u64::from(step.dependent) & 0xffff;
            key.push(kind << 56 | of_phase << 32 | u64::from(step.die.0));
            key.push(step.cell_ns);
        }
        key.extend(phase.planning.iter().map(|step| u64::from(*step)));
        let mixed = key.iter().fold(0u64, |mixed, word| {
            (mixed.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        (mixed >> 32) as usize % SLOTS
    }

    /// Simulate `phase` on an idle timeline.
    fn simulate(phase: &PlanPhase, events: &Timeline<EventTag>) -> PhaseTime {
        let (mut phase, clocks) = (phase.clone(), &mut events.idle_copy());
        clocks.set_event_budget(u64::MAX);
        let (mut time, mut charged) = (PhaseTime::default(), 0);
        phase.start(JobIdx(0), None, 0, clocks);
        while let Some((at, token)) = clocks.next(u64::MAX) {
            match token.event() {
                DeviceEvent::MovePlanned(job, step) => {
                    phase.step_planned(job, step, None, at, clocks)
                }
                DeviceEvent::StepDone(job, step) => {
                    if let Some(purpose) = phase.step_ended(job, step, None, at, clocks) {
                        time.add(purpose.cause(), at - charged);
                        charged = at;
                    }
                }
                other => unreachable!("{other:?} is not an event of a phase"),
            }
        }
        time.ns = charged;
        time
    }
}

impl PhaseTime {
    fn add(&mut self, cause: Cause, ns: u64) {
        match self.causes.iter_mut().find(|(other, _)| *other == cause) {
            Some((_, sum)) => *sum += ns,
            None => self.causes.push((cause, ns)),
        }
    }
}

// Cell times and page types, as needed for a layout.

/// The device, as needed for a layout.
#[derive(Clone, Copy)]
pub(super) struct LayoutSite<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) timing: &'a Timing,
}

impl LayoutSite<'_> {
    /// Return the program time of the cells of `page`.
    #[inline]
    pub(super) fn program_ns(&self, page: PageAddress) -> u64 {
        self.timing.cells.program_page(self.geometry.page_in_block(page))
    }

    /// Return the read time of the cells of `page`.
    #[inline]
    pub(super) fn read_ns(&self, page: PageAddress) -> u64 {
        self.timing.cells.read_page(|| self.geometry.page_in_block(page))
    }

    /// Return the page type of `page`.
    #[inline]
    pub(super) fn kind(&self, page: PageAddress) -> PageType {
        self.timing.cells.kind(self.geometry.page_in_block(page))
    }
}
