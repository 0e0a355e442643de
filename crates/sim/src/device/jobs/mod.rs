//! Plans under way: the one executor of what FTLs that merge decide.
//!
//! ```text
//! path     ┤ plan ├┤ plan ├┤ plan ├ …     of host writes: one merges at a time, or a few that share no
//!                                          block, and what only programs a page does not hold up the next
//! beside   ┤ plan ├┤ plan ├ …             of idle time, and of steps after reads: one at a time
//! no line  ┤ plan ├                        of a host read that has to read the map
//! ```
//!
//! A plan goes phase by phase (`phase.rs`), and a barrier is a count of what has not ended. Everything
//! is an event on the timeline: nobody reserves a die for what cannot have begun. One processor takes in
//! the host's commands and plans the pages that move, one after the other.
//!
//! **Source**: as the timeline's; what a firmware does at once is not published.
//! **Faithful**: dies, channels, buses, link and processor are those of the host's I/Os.
//! **Simplified**: what a plan changes in the map counts from when it was made: a read of a page that
//! is being moved goes to its new place, and does not wait for it to be there.
//! **Ambiguous**: nothing that the FTLs leave open.

mod issue;
mod known;
mod layout;
mod lines;
mod order;
mod phase;
mod site;

use crate::device::backend::Hardware;
use crate::device::event::{DeviceEvent, EventTag, JobIdx, StepIdx};
use crate::flash::plan::{Cmd, Plan};
use crate::timeline::breakdown::Cause;
use crate::timeline::{AccountIdx, Purpose, Timeline};
pub(crate) use issue::serve;
use issue::serve_step;
use known::{Known, Took};
use lines::{Queue, Shared};
pub(crate) use order::{Line, Order};
use phase::{NONE, Phase, Tails};
use site::Site;

/// A plan under way.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Job {
    plan: Plan,
    order: Order,
    /// The line that it holds up.
    line: Option<Line>,
    /// What it has to itself.
    shared: Shared,
    /// The first command behind the phase.
    next: usize,
    phase: Phase,
    /// Until when the host's time is accounted for.
    charged: u64,
}

/// All of them.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Jobs {
    jobs: Vec<Job>,
    unused: Vec<u32>,
    path: Queue,
    beside: Queue,
    tails: Tails,
    /// How long phases take that come again and again.
    #[serde(skip)]
    known: Known,
}

impl Jobs {
    /// None, on so many dies; so many on the path merge at once.
    pub(crate) fn new(planes: u32, at_once: u32) -> Jobs {
        Jobs {
            jobs: Vec::new(),
            unused: Vec::new(),
            path: Queue::new(at_once),
            beside: Queue::new(1),
            tails: vec![(NONE, NONE); planes as usize],
            known: Known::default(),
        }
    }

    /// Nothing is under way any more.
    pub(crate) fn clear(&mut self) {
        *self = Jobs::new(self.tails.len() as u32, self.path.at_once());
    }

    /// Whether nobody is in `line`.
    #[inline]
    pub(crate) fn is_free(&self, line: Line) -> bool {
        self.at(line).is_free()
    }

    #[inline]
    fn at(&self, line: Line) -> &Queue {
        match line {
            Line::Path => &self.path,
            Line::Beside => &self.beside,
        }
    }

    /// Whether it was known of any phase how long it takes.
    #[cfg(test)]
    pub(crate) fn knows_some(&self) -> bool {
        self.known.is_used()
    }

    fn line(&mut self, line: Line) -> &mut Queue {
        match line {
            Line::Path => &mut self.path,
            Line::Beside => &mut self.beside,
        }
    }

    /// Let `plan` have its turn in `line`; what it held is left to whoever plans next.
    pub(crate) fn queue(
        &mut self,
        plan: &mut Plan,
        order: Order,
        line: Line,
        hardware: &mut Hardware<'_>,
    ) {
        let job = self.add(plan, order, Some(line), hardware.events);
        if self.line(line).come(job) {
            self.let_begin(line, hardware.events.now(), 0, hardware);
        }
    }

    /// Begin with `plan` now.
    pub(crate) fn begin(&mut self, plan: &mut Plan, order: Order, hardware: &mut Hardware<'_>) {
        let job = self.add(plan, order, None, hardware.events);
        self.jobs[job.0 as usize].charged = order.ready;
        self.run(job, order.ready, 0, hardware);
    }

    fn add(
        &mut self,
        plan: &mut Plan,
        order: Order,
        line: Option<Line>,
        events: &mut Timeline<EventTag>,
    ) -> JobIdx {
        let index = self.unused.pop().unwrap_or_else(|| {
            let (plan, phase) = (Plan::default(), Phase::default());
            let shared = Shared::default();
            self.jobs.push(Job { plan, order, line, shared, next: 0, phase, charged: 0 });
            self.jobs.len() as u32 - 1
        });
        events.plans(index, order.account(), || plan.erases().map(|block| block.0));
        let job = &mut self.jobs[index as usize];
        std::mem::swap(&mut job.plan, plan);
        if line == Some(Line::Path) && self.path.at_once() > 1 {
            job.shared.fill(&job.plan);
        }
        (job.order, job.line, job.next) = (order, line, 0);
        JobIdx(index)
    }

    /// A plan may begin, the processor has planned a page, or a step has ended. The host asks for nothing
    /// before `until`, unless it is told something, and nobody else begins with anything.
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
                // Where several go on at once it may have begun.
                if let Some(line) = self.jobs[job.0 as usize].line {
                    self.let_begin(line, at, until, hardware);
                }
            }
            DeviceEvent::ProgramsDone(index) => {
                let Job { phase, order, .. } = &mut self.jobs[index.0 as usize];
                phase.start(index, order.account(), at, hardware.events);
            }
            DeviceEvent::MovePlanned(index, step) => {
                let Job { phase, order, .. } = &mut self.jobs[index.0 as usize];
                phase.planned(index, step, order.account(), at, hardware.events);
            }
            DeviceEvent::StepDone(job, step) => self.stepped(job, step, at, until, hardware),
            other => unreachable!("{other:?} is about no plan"),
        }
    }

    /// Who waits for the longest in `line`, where nobody holds that up.
    fn may_begin(&self, line: Line) -> Option<JobIdx> {
        let queue = self.at(line);
        let shared = |job: JobIdx| &self.jobs[job.0 as usize].shared;
        queue
            .first()
            .filter(|first| queue.lets_begin(|other| shared(*first).is_apart(shared(other))))
    }

    /// Whoever is first in `line` begins, and those behind until one holds them up.
    fn let_begin(&mut self, line: Line, mut at: u64, until: u64, hardware: &mut Hardware<'_>) {
        while let Some(first) = self.may_begin(line) {
            let job = &mut self.jobs[first.0 as usize];
            let ready = job.order.ready;
            if ready > at {
                return hardware.events.remind(ready, DeviceEvent::PlanStart(first).into());
            }
            job.charged = at;
            hardware.events.spent(job.account(), Cause::Merge, at - ready);
            self.line(line).begin();
            // Where several go on at once the next may begin beside it.
            let until = if self.may_begin(line).is_some() { 0 } else { until };
            if self.run(first, at, until, hardware).is_some() {
                self.line(line).end(first);
            }
            at = at.max(hardware.events.now());
        }
    }

    fn go_on(&mut self, job: JobIdx, at: u64, until: u64, hardware: &mut Hardware<'_>) {
        if let Some(line) = self.run(job, at, until, hardware) {
            self.line(line).end(job);
            self.let_begin(line, at.max(hardware.events.now()), until, hardware);
        }
    }

    /// The next phase of a plan begins, if there is one, and those after it as long as it is known how long they
    /// take. The line that it holds up no more.
    fn run(
        &mut self,
        index: JobIdx,
        mut at: u64,
        until: u64,
        hardware: &mut Hardware<'_>,
    ) -> Option<Line> {
        let Jobs { jobs, tails, unused, known, .. } = self;
        let job = &mut jobs[index.0 as usize];
        let path = job.line.filter(|line| *line == Line::Path);
        loop {
            let only_host = job.next >= job.plan.merges_until();
            let Hardware { flash, events } = &mut *hardware;
            let site = Site { geometry: &flash.geometry, timing: &events.timing };
            job.next = job.phase.lay_out(&job.plan, job.next, site, tails, job.order.moves());
            let rest = &job.plan.commands()[job.next..];
            let last = rest.iter().all(|other| matches!(other, Cmd::Count(_) | Cmd::Barrier));
            if last && (job.phase.is_empty() || job.ends_with_host()) {
                job.end(at, events);
                unused.push(index.0);
                return job.line.take();
            }
            if job.phase.is_empty() {
                continue;
            }
            let event = DeviceEvent::ProgramsDone(index).into();
            if job.phase.settles().is_some_and(|of| events.waits_before(of, event)) {
                return None;
            }
            let ends_line = path.is_some() && only_host;
            if !ends_line && let Some(end) = job.end_known(at, until, known, events) {
                at = end;
                flash.clock = at;
                continue;
            }
            job.phase.start(index, job.order.account(), at, events);
            return path.filter(|_| ends_line).inspect(|_| job.line = None);
        }
    }

    fn stepped(
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
        let Some(purpose) = job.phase.stepped(index, step, account, at, events) else { return };
        if purpose != Purpose::HostWrite {
            events.spent(account, purpose.cause(), at - job.charged);
        }
        job.charged = at;
        if job.phase.has_ended() {
            self.go_on(index, at, until, hardware);
        }
    }
}

impl Job {
    fn account(&self) -> Option<AccountIdx> {
        self.order.account()
    }

    /// Whether the phase is the page of the host that the plan is for.
    fn ends_with_host(&self) -> bool {
        self.order.target.is_some() && self.phase.only().is_some() && self.phase.is_of_host()
    }

    /// Carry out the phase from `at` on where it is known how long it takes; returns its end, which is not
    /// later than `until`.
    fn end_known(
        &mut self,
        at: u64,
        until: u64,
        known: &mut Known,
        events: &mut Timeline<EventTag>,
    ) -> Option<u64> {
        if until <= at || self.charged != at {
            return None;
        }
        let Took { ns, causes } = known.took(&self.phase, events)?;
        let end = at.checked_add(*ns).filter(|end| *end <= until)?;
        causes.iter().for_each(|(cause, ns)| events.spent(self.account(), *cause, *ns));
        self.charged = end;
        events.reach(end);
        Some(end)
    }

    /// Nothing but the host's page is left, or nothing at all.
    fn end(&mut self, at: u64, events: &mut Timeline<EventTag>) {
        let Order { target, read_bytes, .. } = self.order;
        let Some(target) = target else { return };
        match (self.phase.only(), read_bytes) {
            (Some(step), _) => serve_step(step, target, read_bytes, at, at, events),
            (None, None) => events.end(at, at, target.op()),
            (None, Some(bytes)) => events.deliver(at, at, bytes, target.op()),
        }
    }
}
