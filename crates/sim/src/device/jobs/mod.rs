//! Execution of the plans of merging FTLs.
//!
//! ```text
//! path     ┤ plan ├┤ plan ├┤ plan ├ …     for host writes: one merge at a time, or a few that share no
//!                                          block; a plan that only programs a page does not block the next
//! beside   ┤ plan ├┤ plan ├ …             for idle time, and for steps after reads: one at a time
//! no queue ┤ plan ├                        for a host read that has to read the map
//! ```
//!
//! A plan runs phase by phase (`phase.rs`); a barrier waits for the open steps. Every step is an
//! event on the timeline, so no die is reserved in advance. One processor handles host commands and
//! plans the page moves, one after the other.
//!
//! **Source**: as the timeline; the parallelism of real firmware is not published.
//! **Faithful**: dies, channels, buses, link and processor are shared with host I/Os.
//! **Simplified**: a plan's changes of the map take effect when it is made. A read of a page that
//! is being moved goes to its new address and does not wait for the program.
//! **Ambiguous**: nothing beyond the FTLs.

mod phase;

use std::collections::VecDeque;
use std::hint::cold_path;

use serde::{Deserialize, Serialize};

use super::backend::Hardware;
use super::event::{CompletionTarget, DeviceEvent, EventTag, JobIdx, StepIdx};
use crate::flash::plan::{Cmd, FlashPlan};
use crate::timeline::breakdown::Cause;
use crate::timeline::{AccountIdx, Op, Purpose, Report, Timeline, Timing};
use phase::{LayoutSite, NONE, PhaseCache, PhaseTime, PlanPhase, PlanStep, StepKind, Tails};

/// A plan in progress.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Job")]
struct PlanJob {
    plan: FlashPlan,
    #[serde(rename = "order")]
    request: PlanRequest,
    /// The class whose queue it blocks.
    #[serde(rename = "line")]
    class: Option<PlanClass>,
    /// The blocks it uses exclusively.
    #[serde(rename = "shared")]
    blocks: BlockSet,
    /// Index of the first command after the current phase.
    next: usize,
    phase: PlanPhase,
    /// End of the host time charged so far.
    charged: u64,
}

/// All plans in progress.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Jobs")]
pub(crate) struct PlanJobs {
    jobs: Vec<PlanJob>,
    unused: Vec<u32>,
    #[serde(rename = "path")]
    foreground: PlanQueue,
    #[serde(rename = "beside")]
    background: PlanQueue,
    tails: Tails,
    /// Durations of recurring phases.
    #[serde(skip)]
    phase_times: PhaseCache,
}

impl PlanJobs {
    /// Create an empty set of jobs for `planes` planes; on the path, `at_once` merges may run at
    /// once.
    pub(crate) fn new(planes: u32, at_once: u32) -> PlanJobs {
        PlanJobs {
            jobs: Vec::new(),
            unused: Vec::new(),
            foreground: PlanQueue::new(at_once),
            background: PlanQueue::new(1),
            tails: vec![(NONE, NONE); planes as usize],
            phase_times: PhaseCache::default(),
        }
    }

    /// Drop all plans.
    pub(crate) fn clear(&mut self) {
        *self = PlanJobs::new(self.tails.len() as u32, self.foreground.at_once());
    }

    /// Return whether the queue of `class` is empty.
    #[inline]
    pub(crate) fn is_free(&self, class: PlanClass) -> bool {
        self.queue_of(class).is_free()
    }

    #[inline]
    fn queue_of(&self, class: PlanClass) -> &PlanQueue {
        match class {
            PlanClass::Foreground => &self.foreground,
            PlanClass::Background => &self.background,
        }
    }

    /// Return whether any phase duration is cached.
    #[cfg(test)]
    pub(crate) fn has_cached_phase(&self) -> bool {
        self.phase_times.is_used()
    }

    fn queue_mut(&mut self, class: PlanClass) -> &mut PlanQueue {
        match class {
            PlanClass::Foreground => &mut self.foreground,
            PlanClass::Background => &mut self.background,
        }
    }

    /// Append `plan` to the queue of `class`; its vectors are recycled for the next plan.
    pub(crate) fn queue(
        &mut self,
        plan: &mut FlashPlan,
        request: PlanRequest,
        class: PlanClass,
        hardware: &mut Hardware<'_>,
    ) {
        let job = self.add(plan, request, Some(class), hardware.events);
        if self.queue_mut(class).push(job) {
            self.start_first(class, hardware.events.now(), 0, hardware);
        }
    }

    /// Start `plan` now.
    pub(crate) fn begin(
        &mut self,
        plan: &mut FlashPlan,
        request: PlanRequest,
        hardware: &mut Hardware<'_>,
    ) {
        let job = self.add(plan, request, None, hardware.events);
        self.jobs[job.0 as usize].charged = request.ready;
        self.run(job, request.ready, 0, hardware);
    }

    fn add(
        &mut self,
        plan: &mut FlashPlan,
        request: PlanRequest,
        class: Option<PlanClass>,
        events: &mut Timeline<EventTag>,
    ) -> JobIdx {
        let index = self.unused.pop().unwrap_or_else(|| {
            let (plan, phase) = (FlashPlan::default(), PlanPhase::default());
            let blocks = BlockSet::default();
            self.jobs.push(PlanJob { plan, request, class, blocks, next: 0, phase, charged: 0 });
            self.jobs.len() as u32 - 1
        });
        events.log_plan(index, request.account(), || plan.erases().map(|block| block.0));
        let job = &mut self.jobs[index as usize];
        std::mem::swap(&mut job.plan, plan);
        if class == Some(PlanClass::Foreground) && self.foreground.at_once() > 1 {
            job.blocks.fill(&job.plan);
        }
        (job.request, job.class, job.next) = (request, class, 0);
        JobIdx(index)
    }

    /// Handle an event of a plan, a planned move or a step. Until `until` the host submits nothing
    /// unless it is notified, and nothing else starts.
    #[inline]
    pub(crate) fn handle_event(
        &mut self,
        event: DeviceEvent,
        at: u64,
        until: u64,
        hardware: &mut Hardware<'_>,
    ) {
        match event {
            DeviceEvent::PlanStart(job) => {
                // With several plans at once it may have started already.
                if let Some(line) = self.jobs[job.0 as usize].class {
                    self.start_first(line, at, until, hardware);
                }
            }
            DeviceEvent::ProgramsDone(index) => {
                let PlanJob { phase, request, .. } = &mut self.jobs[index.0 as usize];
                phase.start(index, request.account(), at, hardware.events);
            }
            DeviceEvent::MovePlanned(index, step) => {
                let PlanJob { phase, request: order, .. } = &mut self.jobs[index.0 as usize];
                phase.step_planned(index, step, order.account(), at, hardware.events);
            }
            DeviceEvent::StepDone(job, step) => self.step_ended(job, step, at, until, hardware),
            other => unreachable!("{other:?} is not an event of a plan"),
        }
    }

    /// Return the plan that has waited longest in its class, if it may start.
    fn may_start_in(&self, class: PlanClass) -> Option<JobIdx> {
        let queue = self.queue_of(class);
        let shared = |job: JobIdx| &self.jobs[job.0 as usize].blocks;
        queue
            .first()
            .filter(|first| queue.may_start(|other| shared(*first).is_disjoint(shared(other))))
    }

    /// Start the first plans of `class`, up to one that blocks the others.
    fn start_first(
        &mut self,
        class: PlanClass,
        mut at: u64,
        until: u64,
        hardware: &mut Hardware<'_>,
    ) {
        while let Some(first) = self.may_start_in(class) {
            let job = &mut self.jobs[first.0 as usize];
            let ready = job.request.ready;
            if ready > at {
                return hardware.events.remind(ready, DeviceEvent::PlanStart(first).into());
            }
            job.charged = at;
            hardware.events.charge_account(job.account(), Cause::Merge, at - ready);
            self.queue_mut(class).begin();
            // With several plans at once the next may start concurrently.
            let until = if self.may_start_in(class).is_some() { 0 } else { until };
            if self.run(first, at, until, hardware).is_some() {
                self.queue_mut(class).end(first);
            }
            at = at.max(hardware.events.now());
        }
    }

    fn advance_plan(&mut self, job: JobIdx, at: u64, until: u64, hardware: &mut Hardware<'_>) {
        if let Some(line) = self.run(job, at, until, hardware) {
            self.queue_mut(line).end(job);
            self.start_first(line, at.max(hardware.events.now()), until, hardware);
        }
    }

    /// Start the next phase of a plan, and further phases while their durations are cached. Return
    /// the queue that the plan no longer blocks.
    fn run(
        &mut self,
        index: JobIdx,
        mut at: u64,
        until: u64,
        hardware: &mut Hardware<'_>,
    ) -> Option<PlanClass> {
        let PlanJobs { jobs, tails, unused, phase_times, .. } = self;
        let job = &mut jobs[index.0 as usize];
        let path = job.class.filter(|line| *line == PlanClass::Foreground);
        loop {
            let only_host = job.next >= job.plan.merges_until();
            let Hardware { flash, events } = &mut *hardware;
            let site = LayoutSite { geometry: &flash.geometry, timing: &events.timing };
            job.next =
                job.phase.lay_out(&job.plan, job.next, site, tails, job.request.move_purpose());
            let remaining = &job.plan.commands()[job.next..];
            let last = remaining.iter().all(|other| matches!(other, Cmd::Count(_) | Cmd::Barrier));
            if last && (job.phase.is_empty() || job.ends_with_host()) {
                job.end(at, events);
                unused.push(index.0);
                return job.class.take();
            }
            if job.phase.is_empty() {
                continue;
            }
            let event = DeviceEvent::ProgramsDone(index).into();
            if job
                .phase
                .settle_step()
                .is_some_and(|record| events.wait_for_earlier_programs(record, event))
            {
                return None;
            }
            let ends_line = path.is_some() && only_host;
            if !ends_line && let Some(end) = job.complete_cached(at, until, phase_times, events) {
                at = end;
                flash.clock = at;
                continue;
            }
            job.phase.start(index, job.request.account(), at, events);
            return path.filter(|_| ends_line).inspect(|_| job.class = None);
        }
    }

    fn step_ended(
        &mut self,
        index: JobIdx,
        step: StepIdx,
        at: u64,
        until: u64,
        hardware: &mut Hardware<'_>,
    ) {
        let job = &mut self.jobs[index.0 as usize];
        let account = job.account();
        let events = &mut *hardware.events;
        let Some(purpose) = job.phase.step_ended(index, step, account, at, events) else { return };
        if purpose != Purpose::HostWrite {
            events.charge_account(account, purpose.cause(), at - job.charged);
        }
        job.charged = at;
        if job.phase.has_ended() {
            self.advance_plan(index, at, until, hardware);
        }
    }
}

impl PlanJob {
    fn account(&self) -> Option<AccountIdx> {
        self.request.account()
    }

    /// Return whether the phase consists of the host page of the plan.
    fn ends_with_host(&self) -> bool {
        self.request.target.is_some() && self.phase.only().is_some() && self.phase.is_of_host()
    }

    /// Complete the phase from `at` on if its duration is cached; return its end, at most `until`.
    fn complete_cached(
        &mut self,
        at: u64,
        until: u64,
        phase_times: &mut PhaseCache,
        events: &mut Timeline<EventTag>,
    ) -> Option<u64> {
        if until <= at || self.charged != at {
            return None;
        }
        let PhaseTime { ns, causes } = phase_times.lookup(&self.phase, events)?;
        let end = at.checked_add(*ns).filter(|end| *end <= until)?;
        causes.iter().for_each(|(cause, ns)| events.charge_account(self.account(), *cause, *ns));
        self.charged = end;
        events.advance_to(end);
        Some(end)
    }

    /// End the plan: at most its host page is left.
    fn end(&mut self, at: u64, events: &mut Timeline<EventTag>) {
        let PlanRequest { target, read_bytes, .. } = self.request;
        let Some(target) = target else { return };
        match (self.phase.only(), read_bytes) {
            (Some(step), _) => serve_step(step, target, read_bytes, at, at, events),
            (None, None) => events.end(at, at, target.op()),
            (None, Some(bytes)) => events.deliver(at, at, bytes, target.op()),
        }
    }
}

// The requester of a plan, and the queue it waits in.

/// A queue of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Line")]
pub(crate) enum PlanClass {
    #[serde(rename = "Path")]
    Foreground,
    #[serde(rename = "Beside")]
    Background,
}

/// The requester of a plan, and its earliest start.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Order")]
pub(crate) struct PlanRequest {
    pub(crate) ready: u64,
    /// The target of its end.
    pub(crate) target: Option<CompletionTarget>,
    /// Number of bytes of a host read.
    pub(crate) read_bytes: Option<u64>,
    /// The plan is a scrub.
    pub(crate) scrubs: bool,
}

impl PlanRequest {
    /// Return the order of a scrub, which has no requester.
    pub(crate) fn of_scrub(ready: u64) -> PlanRequest {
        PlanRequest { ready, target: None, read_bytes: None, scrubs: true }
    }

    /// Return the purpose of page moves.
    fn move_purpose(&self) -> Purpose {
        if self.scrubs { Purpose::Scrub } else { Purpose::Merge }
    }

    fn account(&self) -> Option<AccountIdx> {
        self.target.and_then(|target| target.account)
    }
}

// Queues of plans: which plans run, and which blocks they use exclusively.

/// A queue of plans: those that run, and those that wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Queue")]
struct PlanQueue {
    /// Maximum number of plans that run at once if they share no block.
    at_once: u32,
    #[serde(rename = "begun")]
    running: Vec<JobIdx>,
    waiting: VecDeque<JobIdx>,
}

impl PlanQueue {
    fn new(at_once: u32) -> PlanQueue {
        PlanQueue { at_once, running: Vec::new(), waiting: VecDeque::new() }
    }

    fn at_once(&self) -> u32 {
        self.at_once
    }

    /// Return whether the queue is empty.
    #[inline]
    fn is_free(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Add `job`; return whether it is first in the queue.
    fn push(&mut self, job: JobIdx) -> bool {
        self.waiting.push_back(job);
        self.waiting.len() == 1
    }

    /// Return the job that has waited longest.
    fn first(&self) -> Option<JobIdx> {
        self.waiting.front().copied()
    }

    /// Return whether the first job may start; `is_disjoint` checks it against each running job.
    fn may_start(&self, is_disjoint: impl Fn(JobIdx) -> bool) -> bool {
        self.running.is_empty()
            || self.running.len() < self.at_once as usize
                && self.running.iter().all(|job| is_disjoint(*job))
    }

    /// Start the first job.
    fn begin(&mut self) {
        self.running.extend(self.waiting.pop_front());
    }

    /// Remove `job` from the running jobs.
    fn end(&mut self, job: JobIdx) {
        self.running.retain(|other| *other != job);
    }
}

/// The blocks that a plan reads, programs or erases, sorted; empty unless several plans run at
/// once.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(rename = "Shared")]
struct BlockSet(Vec<u32>);

impl BlockSet {
    fn fill(&mut self, plan: &FlashPlan) {
        self.0.clear();
        plan.blocks(|block| self.0.push(block.0));
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// Return whether it shares no block with `other`.
    fn is_disjoint(&self, other: &BlockSet) -> bool {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => left.next(),
                std::cmp::Ordering::Greater => right.next(),
                std::cmp::Ordering::Equal => return false,
            };
        }
        true
    }
}

// Issue of plan steps, and of host requests without a plan, to the dies.

/// Serve the host with `command`, which needs no plan; `record` is its change of the flash
/// contents.
#[inline]
pub(crate) fn issue_host_command(
    command: Cmd,
    record: u32,
    request: PlanRequest,
    hardware: &mut Hardware<'_>,
) {
    let Hardware { flash, events } = hardware;
    let geometry = &flash.geometry;
    let PlanRequest { ready, target, read_bytes, .. } = request;
    let target = target.expect("a host request has a target");
    let mut step = PlanStep::of_host(command, LayoutSite { geometry, timing: &events.timing });
    step.record = record;
    serve_step(&step, target, read_bytes, ready, events.now(), events);
}

/// Read or program the host page from `at` on, and report the end to `target`.
#[inline(always)]
fn serve_step(
    step: &PlanStep,
    target: CompletionTarget,
    read_bytes: Option<u64>,
    at: u64,
    now: u64,
    events: &mut Timeline<EventTag>,
) {
    let CompletionTarget { token, report, account } = target;
    let link_bytes = read_bytes.unwrap_or(0) as u32;
    let mut op = Op { report, account, link_bytes, ..step.op(token, &events.timing) };
    op.transfers = read_bytes.map_or(op.transfers, |bytes| events.transfers_of(bytes));
    match step.rest_read(account, token, &events.timing) {
        None => events.issue_when(at, now, op),
        Some(before) => {
            cold_path();
            events.issue_chain(at, now, &[before], op);
        }
    }
}

impl PlanPhase {
    /// Start all steps without dependencies.
    fn start(
        &mut self,
        index: JobIdx,
        account: Option<AccountIdx>,
        at: u64,
        events: &mut Timeline<EventTag>,
    ) {
        self.begin(|number, step| issue(index, number, step, account, at, events));
        self.plan_next(index, at, events);
    }

    /// Let the processor plan the next page move.
    fn plan_next(&mut self, index: JobIdx, at: u64, events: &mut Timeline<EventTag>) {
        if let Some(step) = self.next_planned() {
            let planned = events.process(at, events.timing.relocate_ns, 0);
            events.remind(planned, DeviceEvent::MovePlanned(index, StepIdx(step)).into());
        }
    }

    /// Handle a step that the processor has planned.
    fn step_planned(
        &mut self,
        index: JobIdx,
        step: StepIdx,
        account: Option<AccountIdx>,
        at: u64,
        events: &mut Timeline<EventTag>,
    ) {
        self.release(step.0, |number, step| issue(index, number, step, account, at, events));
        self.plan_next(index, at, events);
    }

    /// Handle the end of a step that the phase waited for.
    fn step_ended(
        &mut self,
        index: JobIdx,
        step: StepIdx,
        account: Option<AccountIdx>,
        at: u64,
        events: &mut Timeline<EventTag>,
    ) -> Option<Purpose> {
        let PlanStep { dependent, counts, purpose, .. } = *self.step(step.0);
        if dependent != NONE {
            self.release(dependent, |number, step| issue(index, number, step, account, at, events));
        }
        self.open -= u32::from(counts);
        counts.then_some(purpose)
    }
}

/// Issue a step to its die; its end raises an event if something waits for it.
#[inline]
fn issue(
    job: JobIdx,
    number: u32,
    step: &PlanStep,
    account: Option<AccountIdx>,
    at: u64,
    events: &mut Timeline<EventTag>,
) {
    let token = DeviceEvent::StepDone(job, StepIdx(number)).into();
    let waited_for = step.counts || step.dependent != NONE;
    let report = if waited_for { Report::AtEnd } else { Report::Never };
    // Firmware work is charged as a whole at its end.
    let account = account.filter(|_| step.purpose == Purpose::HostWrite);
    let has_plan_order = step.purpose != Purpose::HostWrite;
    let op = Op { report, account, has_plan_order, ..step.op(token, &events.timing) };
    match step.rest_read(account, token, &events.timing) {
        None => events.issue(at, op),
        Some(before) => {
            cold_path();
            events.issue_after(at, &[before], op);
        }
    }
}

impl PlanStep {
    #[inline]
    fn op(&self, token: EventTag, timing: &Timing) -> Op<EventTag> {
        let PlanStep { kind, die, at, cell_ns, purpose, record: writes, .. } = *self;
        let op = match kind {
            StepKind::Read => Op::read(die, cell_ns, purpose, token),
            StepKind::Program => Op::program(die, cell_ns, purpose, token),
            StepKind::Inside => Op::inside(die, cell_ns, purpose, token),
        };
        let op = Op { writes, transfers: timing.program_transfers, ..op };
        at.map_or(op, |at| op.on(at))
    }

    /// Read the rest of a partly written host page before its program.
    #[inline]
    fn rest_read(
        &self,
        account: Option<AccountIdx>,
        token: EventTag,
        timing: &Timing,
    ) -> Option<Op<EventTag>> {
        let (die, kind) = self.merge_read?;
        let read = Op::read(die, timing.cells.read(kind), Purpose::HostWrite, token);
        let transfers = timing.program_transfers;
        Some(Op { account, transfers, charge_as: Some(Cause::ReadToModify), ..read })
    }
}
