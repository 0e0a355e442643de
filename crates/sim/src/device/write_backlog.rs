//! Writes that wait for a free page, and the choice of which to retry after a collection step.
//!
//! All are retried in FIFO order. But thousands may wait for a few planes, and few collection steps
//! free a page. So there is one queue per plane (the preferred plane of a write). While nothing
//! changes, one failed try stands for all later writes of the same plane.
//!
//! ```text
//! plane 0   1  4  5          a pass: 1 waits, so do 4 and 5; 2 gets a page, which is a change:
//! plane 1   2  3  7          3 is tried next, then 4 again for plane 0
//! plane 2   6
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::device::backend::Write;
use crate::flash::geometry::{Lpn, PlaneIdx};

/// The writes that wait for a free page.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Waiting")]
pub(crate) struct WriteBacklog {
    /// Per preferred plane: its waiting writes in FIFO order.
    queues: Vec<VecDeque<PendingWrite>>,
    /// Number of writes added so far.
    #[serde(rename = "came")]
    added: u64,
    /// Number of writes that wait.
    length: usize,
    #[serde(skip)]
    pass: BacklogPass,
}

/// A write that waits for a free page.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Waiter")]
pub(crate) struct PendingWrite {
    number: u64,
    pub(crate) write: Write,
    pub(crate) since: u64,
}

/// The supply of blocks for the host. While it is the same, a plane that lacks blocks does so, and
/// one that collects does so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockSupply {
    /// Number of times a block was freed or opened.
    pub(crate) changes: u64,
    /// Number of collections that ended.
    pub(crate) completed_collections: u64,
    /// Collections leave enough pages to open a block for the host.
    pub(crate) may_open: bool,
    /// Another collection may begin.
    pub(crate) may_collect: bool,
}

/// The outcome of an allocation attempt.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    /// This plane has a free page.
    FreePage(PlaneIdx),
    /// A collection has begun for it.
    CollectionBegun,
    /// The write waits and nothing has changed; another attempt on the same plane gives the same
    /// result.
    NoSpace,
}

/// Progress of a pass over the backlog; empty outside a pass.
#[derive(Clone, Default, Debug)]
struct BacklogPass {
    /// The next write to try, for each plane that is not in `blocked`: number and plane.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// Planes without a candidate until something changes.
    blocked: Vec<u32>,
    /// The write that is being tried.
    candidate: (u64, u32),
    /// All writes before this number have been tried.
    from: u64,
}

impl WriteBacklog {
    pub(crate) fn new(planes: u32) -> WriteBacklog {
        let queues = vec![VecDeque::new(); planes as usize];
        WriteBacklog { queues, added: 0, length: 0, pass: BacklogPass::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Add a write at `since`; its preferred plane is `plane`.
    pub(crate) fn push(&mut self, plane: PlaneIdx, write: Write, since: u64) {
        self.queues[plane.0 as usize].push_back(PendingWrite { number: self.added, write, since });
        self.added += 1;
        self.length += 1;
    }

    /// Return the plane in whose queue a write of `page` waits, if one does; the last of several.
    pub(crate) fn plane_of(&self, page: Lpn) -> Option<PlaneIdx> {
        let waits =
            |queue: &VecDeque<PendingWrite>| queue.iter().any(|pending| pending.write.page == page);
        let plane = self.queues.iter().position(waits)?;
        Some(PlaneIdx(plane as u32))
    }

    /// Remove waiting writes to `pages` that have left the write cache; return them in FIFO order.
    pub(crate) fn remove_trimmed(&mut self, pages: &Range<u32>) -> Vec<PendingWrite> {
        let mut removed = Vec::new();
        for queue in &mut self.queues {
            queue.retain(|pending| {
                let remains = !pending.write.has_left_cache(pages);
                removed.extend((!remains).then_some(*pending));
                remains
            });
        }
        self.length -= removed.len();
        removed.sort_unstable_by_key(|waiter| waiter.number);
        removed
    }

    /// Return the planes for which writes wait.
    pub(crate) fn planes(&self) -> impl Iterator<Item = PlaneIdx> + '_ {
        let planes = (0..).zip(&self.queues).filter(|(_, queue)| !queue.is_empty());
        planes.map(|(plane, _)| PlaneIdx(plane))
    }

    /// Start a pass; [`WriteBacklog::resume_pass`] chooses the candidates.
    pub(crate) fn begin_pass(&mut self) {
        self.end_pass();
        self.pass.from = 0;
        self.pass.blocked.extend(0..self.queues.len() as u32);
    }

    /// End the pass.
    pub(crate) fn end_pass(&mut self) {
        self.pass.next.clear();
        self.pass.blocked.clear();
    }

    /// Resume after a change: the queue of each plane gets a candidate, except planes for which
    /// `waits` predicts failure.
    pub(crate) fn resume_pass(&mut self, waits: impl Fn(PlaneIdx) -> bool) {
        let BacklogPass { next, blocked, from, .. } = &mut self.pass;
        let mut still_blocked = 0;
        for at in 0..blocked.len() {
            let plane = blocked[at];
            if waits(PlaneIdx(plane)) {
                blocked[still_blocked] = plane;
                still_blocked += 1;
                continue;
            }
            let queue = &self.queues[plane as usize];
            if let Some(waiter) = queue.get(position_of(queue, *from)) {
                next.push(Reverse((waiter.number, plane)));
            }
        }
        blocked.truncate(still_blocked);
    }

    /// Return the preferred plane of the next candidate. Call `skip_candidate` or `take_candidate`
    /// afterwards.
    pub(crate) fn next(&mut self) -> Option<PlaneIdx> {
        let Reverse(candidate) = self.pass.next.pop()?;
        (self.pass.candidate, self.pass.from) = (candidate, candidate.0 + 1);
        Some(PlaneIdx(candidate.1))
    }

    /// Return the stream of the candidate.
    pub(crate) fn stream(&self) -> u8 {
        let queue = &self.queues[self.pass.candidate.1 as usize];
        queue.front().map_or(0, |first| first.write.extent.stream())
    }

    /// Leave the candidate in its queue; the queue is skipped until something changes.
    pub(crate) fn skip_candidate(&mut self) {
        self.pass.blocked.push(self.pass.candidate.1);
    }

    /// Remove the candidate, which gets a page: a change. Call `coming` with the next two pages of
    /// its queue.
    pub(crate) fn take_candidate(
        &mut self,
        coming: impl FnOnce(Option<Lpn>, Option<Lpn>),
    ) -> PendingWrite {
        let (number, plane) = self.pass.candidate;
        let queue = &mut self.queues[plane as usize];
        let at = position_of(queue, number);
        let pending = queue.remove(at).expect("the candidate is queued");
        let page = |at| queue.get(at).map(|waiter: &PendingWrite| waiter.write.page);
        coming(page(at), page(at + 1));
        self.length -= 1;
        self.pass.blocked.push(plane);
        pending
    }

    /// If older writes of the same logical page wait, return the oldest instead. Each of the others
    /// moves to the position of the one before it.
    pub(crate) fn swap_for_oldest(&mut self, mut candidate: PendingWrite) -> PendingWrite {
        let queue = &mut self.queues[self.pass.candidate.1 as usize];
        let PendingWrite { number, write: Write { page, .. }, .. } = candidate;
        let before = queue.iter_mut().take_while(|pending| pending.number < number);
        let mut same: Vec<&mut PendingWrite> =
            before.filter(|pending| pending.write.page == page).collect();
        for earlier in same.iter_mut().rev() {
            std::mem::swap(&mut earlier.write, &mut candidate.write);
            std::mem::swap(&mut earlier.since, &mut candidate.since);
            // The allocation uses the stream of the position in the queue.
            let stream = earlier.write.extent.stream();
            earlier.write.extent.set_stream(candidate.write.extent.stream());
            candidate.write.extent.set_stream(stream);
        }
        candidate
    }

    /// Remove all writes and return them in FIFO order.
    pub(crate) fn drain(&mut self) -> Vec<PendingWrite> {
        let mut all: Vec<PendingWrite> = self.queues.iter_mut().flat_map(std::mem::take).collect();
        all.sort_unstable_by_key(|waiter| waiter.number);
        self.length = 0;
        all
    }
}

/// Return the index in `queue` of write `number`, or of the first later one. Mostly near the front.
fn position_of(queue: &VecDeque<PendingWrite>, number: u64) -> usize {
    let came_before = |at: usize| queue.get(at).is_some_and(|waiter| waiter.number < number);
    let mut step = 1;
    while came_before(step - 1) {
        step *= 2;
    }
    let (mut begin, mut end) = (step / 2, queue.len().min(step - 1));
    while begin < end {
        let middle = begin.midpoint(end);
        (begin, end) = if came_before(middle) { (middle + 1, end) } else { (begin, middle) };
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::event::CompletionTarget;
    use crate::ftl::extent::PageExtent;
    use proptest::prelude::*;

    const DIES: u32 = 5;

    /// The outcome of a simulated attempt.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Try {
        Waits,
        Changes,
        FreePage,
    }

    /// A model whose outcome depends on the plane and on all changes so far.
    #[derive(Clone, Debug)]
    struct AttemptModel(u64);

    impl AttemptModel {
        fn would_wait(&self, plane: u32) -> bool {
            self.clone().try_for(plane) == Try::Waits
        }

        fn try_for(&mut self, plane: u32) -> Try {
            let drawn = (self.0 ^ u64::from(plane)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let outcome = match drawn % 8 {
                0..5 => return Try::Waits,
                5 => Try::Changes,
                _ => Try::FreePage,
            };
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(drawn | 1);
            outcome
        }
    }

    fn write(page: u32) -> Write {
        let (page, extent) = (Lpn(page), PageExtent::single(Lpn(page), true, 0));
        Write {
            page,
            extent,
            target: CompletionTarget::collection(PlaneIdx(0)),
            write_through: false,
        }
    }

    proptest! {
        /// Compare with a single queue that is tried completely in each pass, with and without
        /// predictions.
        #[test]
        fn backlog_pass_matches_trying_every_write(
            seed in any::<u64>(), with_predictions in any::<bool>(), steps in prop::collection::vec(0..=2 * DIES, 1..300),
        ) {
            let (mut waiting, mut model) = (WriteBacklog::new(DIES), AttemptModel(seed));
            let (mut all, mut naive_model) = (VecDeque::new(), AttemptModel(seed));
            for (number, step) in (0..).zip(steps) {
                if step < 2 * DIES {
                    all.push_back((number, step % DIES));
                    waiting.push(PlaneIdx(step % DIES), write(number), 0);
                    continue;
                }
                let mut expected = Vec::new();
                for _ in 0..all.len() {
                    let (page, plane) = all.pop_front().expect("the queue is not empty");
                    match naive_model.try_for(plane) {
                        Try::FreePage => expected.push(page),
                        Try::Waits | Try::Changes => all.push_back((page, plane)),
                    }
                }
                let mut placed = Vec::new();
                waiting.begin_pass();
                waiting.resume_pass(|plane| with_predictions && model.would_wait(plane.0));
                while let Some(plane) = waiting.next() {
                    match model.try_for(plane.0) {
                        Try::Waits => {
                            waiting.skip_candidate();
                            continue;
                        }
                        Try::Changes => waiting.skip_candidate(),
                        Try::FreePage => placed.push(waiting.take_candidate(|_, _| ()).write.page.0),
                    }
                    waiting.resume_pass(|plane| with_predictions && model.would_wait(plane.0));
                }
                prop_assert_eq!(placed, expected);
                prop_assert_eq!(model.0, naive_model.0);
                // Time changes the outcomes, too.
                (model.0, naive_model.0) = (model.0 + 1, naive_model.0 + 1);
            }
            let left: Vec<u32> = waiting.drain().iter().map(|pending| pending.write.page.0).collect();
            prop_assert_eq!(left, all.iter().map(|(page, _)| *page).collect::<Vec<_>>());
            prop_assert!(waiting.is_empty());
        }
    }
}
