//! Issue of plan steps, and of host requests without a plan, to the dies.

use std::hint::cold_path;

use super::order::PlanRequest;
use super::phase::{NONE, PlanPhase, PlanStep, StepKind};
use super::site::LayoutSite;
use crate::device::backend::Hardware;
use crate::device::event::{CompletionTarget, DeviceEvent, EventTag, JobIdx, StepIdx};
use crate::flash::plan::Cmd;
use crate::timeline::breakdown::Cause;
use crate::timeline::{AccountIdx, Op, Purpose, Report, Timeline, Timing};

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
pub(super) fn serve_step(
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
    pub(super) fn start(
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
    pub(super) fn step_planned(
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
    pub(super) fn step_ended(
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
