//! How long a phase takes that has the device to itself: as long as the last one with the same steps.
//!
//! Merges move the same few patterns of pages again and again. While nothing else goes on and every resource
//! is free, when the steps of a phase end follows from what they are, so a phase that was gone through once
//! need not be again. It is gone through on clocks of its own, which are the device's in all but what goes on there.
//!
//! **Source**, **Ambiguous**: as the timeline's.
//! **Faithful**: every time is the one that the timeline gives.
//! **Simplified**: nothing; where anything else goes on, a phase goes the common way.

use super::phase::Phase;
use crate::device::event::{DeviceEvent, EventTag, JobIdx};
use crate::timeline::Timeline;
use crate::timeline::breakdown::Cause;

/// What a phase takes.
#[derive(Debug, Default)]
pub(super) struct Took {
    /// From its beginning to its end.
    pub(super) ns: u64,
    /// What that is accounted as.
    pub(super) causes: Vec<(Cause, u64)>,
}

/// So many are remembered, of so many words at most: a few megabytes.
const SLOTS: usize = 1024;
const LONGEST: usize = 512;

/// To go through fewer steps takes no longer than to look for them.
const FEWEST: usize = 4;

/// What is remembered; each in the place that its steps lead to, until another comes there.
#[derive(Debug, Default)]
pub(super) struct Known {
    slots: Vec<(Vec<u64>, Took)>,
    /// The steps that are looked for; kept, so that nothing is allocated.
    key: Vec<u64>,
}

/// What one device remembers is no part of what it is.
impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
    }
}

impl Known {
    /// What `phase` takes when it begins now; `None` where that depends on what else goes on, or is not worth to be
    /// looked for.
    pub(super) fn took(&mut self, phase: &Phase, events: &Timeline<EventTag>) -> Option<&Took> {
        let words = phase.steps.len() * 2 + phase.planning.len();
        if phase.steps.len() < FEWEST
            || words > LONGEST
            || phase.is_of_host()
            || !events.is_quiet(phase.steps.iter().map(|step| step.die))
        {
            return None;
        }
        let place = self.look_for(phase);
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Default::default);
        }
        if self.slots[place].0 != self.key {
            let took = Known::go_through(phase, events);
            let (key, slot) = &mut self.slots[place];
            key.clone_from(&self.key);
            *slot = took;
        }
        Some(&self.slots[place].1)
    }

    /// Whether there is any.
    #[cfg(test)]
    pub(super) fn is_used(&self) -> bool {
        self.slots.iter().any(|(key, _)| !key.is_empty())
    }

    /// Write down what the times of `phase` follow from; returns its place.
    fn look_for(&mut self, phase: &Phase) -> usize {
        let key = &mut self.key;
        key.clear();
        for step in &phase.steps {
            let what =
                (step.what as u64) << 5 | (step.purpose as u64) << 1 | u64::from(step.counts);
            let of_phase = u64::from(step.waits) << 16 | u64::from(step.feeds) & 0xffff;
            key.push(what << 56 | of_phase << 32 | u64::from(step.die.0));
            key.push(step.cell_ns);
        }
        key.extend(phase.planning.iter().map(|step| u64::from(*step)));
        let mixed = key.iter().fold(0u64, |mixed, word| {
            (mixed.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        (mixed >> 32) as usize % SLOTS
    }

    /// Go through `phase` on clocks on which nothing else goes on.
    fn go_through(phase: &Phase, events: &Timeline<EventTag>) -> Took {
        let (mut phase, clocks) = (phase.clone(), &mut events.at_rest());
        clocks.allow(u64::MAX);
        let (mut took, mut charged) = (Took::default(), 0);
        phase.start(JobIdx(0), None, 0, clocks);
        while let Some((at, token)) = clocks.next(u64::MAX) {
            match token.event() {
                DeviceEvent::MovePlanned(job, step) => phase.planned(job, step, None, at, clocks),
                DeviceEvent::StepDone(job, step) => {
                    if let Some(purpose) = phase.stepped(job, step, None, at, clocks) {
                        took.add(purpose.cause(), at - charged);
                        charged = at;
                    }
                }
                other => unreachable!("{other:?} is of no phase"),
            }
        }
        took.ns = charged;
        took
    }
}

impl Took {
    fn add(&mut self, cause: Cause, ns: u64) {
        match self.causes.iter_mut().find(|(other, _)| *other == cause) {
            Some((_, sum)) => *sum += ns,
            None => self.causes.push((cause, ns)),
        }
    }
}
