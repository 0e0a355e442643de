//! A cache of phase durations: a phase that has the device to itself takes as long as an identical
//! earlier one.
//!
//! Merges repeat a few patterns of page moves. While nothing else is in progress and every resource
//! is free, the end times of a phase depend on its steps alone. So the phase is simulated only
//! once, on a separate timeline of the same device.
//!
//! **Source**, **Ambiguous**: as the timeline.
//! **Faithful**: every time equals that of the timeline.
//! **Simplified**: nothing; if anything else is in progress, the phase is simulated in full.

use super::phase::PlanPhase;
use crate::device::event::{DeviceEvent, EventTag, JobIdx};
use crate::timeline::Timeline;
use crate::timeline::breakdown::Cause;

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
