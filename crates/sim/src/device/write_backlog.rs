//! Pages for which there was no room, and which of them are tried when something was collected.
//!
//! All are tried in the order in which they came. But thousands may wait, for a few planes, and almost no
//! step of a collection makes room: so they wait in a queue for each plane whose turn it was, and as long
//! as nothing changes one that still waits speaks for all that came behind it for the same plane.
//!
//! ```text
//! plane 0   1  4  5          a pass: 1 waits, so do 4 and 5; 2 finds a place, which changes something:
//! plane 1   2  3  7          3 is tried next, then 4 again for plane 0
//! plane 2   6
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::device::backend::Write;
use crate::flash::geometry::{Lpn, PlaneIdx};

/// The pages that wait.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Waiting")]
pub(crate) struct WriteBacklog {
    /// Per plane whose turn it was: who waits, in the order in which they came.
    queues: Vec<VecDeque<PendingWrite>>,
    /// So many came so far.
    came: u64,
    /// So many wait.
    length: usize,
    #[serde(skip)]
    pass: Pass,
}

/// A page that waits.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Waiter")]
pub(crate) struct PendingWrite {
    number: u64,
    pub(crate) write: Write,
    pub(crate) since: u64,
}

/// What a page meets that looks for room.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    /// This plane has some.
    FreePage(PlaneIdx),
    /// A collection has begun for it.
    CollectionBegun,
    /// It waits, and nothing has changed; who looks for the same comes to the same.
    NoRoom,
}

/// Where a pass through those that wait is; over when nobody looks.
#[derive(Clone, Default, Debug)]
struct Pass {
    /// Who is tried next for each plane that is not in the other list: number, and plane.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// The planes for which nobody is to be tried until something has changed.
    in_vain: Vec<u32>,
    /// Who is tried now.
    tried: (u64, u32),
    /// Who came before this number had their turn.
    from: u64,
}

impl WriteBacklog {
    pub(crate) fn new(planes: u32) -> WriteBacklog {
        let queues = vec![VecDeque::new(); planes as usize];
        WriteBacklog { queues, came: 0, length: 0, pass: Pass::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A page has come at `since`, and it was the turn of `plane`.
    pub(crate) fn add(&mut self, plane: PlaneIdx, write: Write, since: u64) {
        self.queues[plane.0 as usize].push_back(PendingWrite { number: self.came, write, since });
        self.came += 1;
        self.length += 1;
    }

    /// The plane behind whose pages `page` waits, where it does already; the last of several.
    pub(crate) fn plane_of(&self, page: Lpn) -> Option<PlaneIdx> {
        let waits = |queue: &VecDeque<PendingWrite>| queue.iter().any(|one| one.write.page == page);
        let plane = self.queues.iter().position(waits)?;
        Some(PlaneIdx(plane as u32))
    }

    /// Pages that have left the write cache, and wait, are not to be written where they are among `pages`: those,
    /// in the order in which they came.
    pub(crate) fn forget(&mut self, pages: &Range<u32>) -> Vec<PendingWrite> {
        let mut gone = Vec::new();
        for queue in &mut self.queues {
            queue.retain(|one| {
                let stays = !one.write.has_left_cache(pages);
                gone.extend((!stays).then_some(*one));
                stays
            });
        }
        self.length -= gone.len();
        gone.sort_unstable_by_key(|waiter| waiter.number);
        gone
    }

    /// Begin a pass; who is tried says [`WriteBacklog::go_on`].
    pub(crate) fn begin_pass(&mut self) {
        self.end_pass();
        self.pass.from = 0;
        self.pass.in_vain.extend(0..self.queues.len() as u32);
    }

    /// Nobody is tried any more.
    pub(crate) fn end_pass(&mut self) {
        self.pass.next.clear();
        self.pass.in_vain.clear();
    }

    /// Something has changed: who waits behind any plane is to be tried, but for the planes that `waits` says it
    /// would be in vain for.
    pub(crate) fn resume_pass(&mut self, waits: impl Fn(PlaneIdx) -> bool) {
        let Pass { next, in_vain, from, .. } = &mut self.pass;
        let mut stay = 0;
        for at in 0..in_vain.len() {
            let plane = in_vain[at];
            if waits(PlaneIdx(plane)) {
                in_vain[stay] = plane;
                stay += 1;
                continue;
            }
            let queue = &self.queues[plane as usize];
            if let Some(waiter) = queue.get(position_of(queue, *from)) {
                next.push(Reverse((waiter.number, plane)));
            }
        }
        in_vain.truncate(stay);
    }

    /// The plane whose turn it was for the page that is to be tried; it waits or is taken next.
    pub(crate) fn next(&mut self) -> Option<PlaneIdx> {
        let Reverse(tried) = self.pass.next.pop()?;
        (self.pass.tried, self.pass.from) = (tried, tried.0 + 1);
        Some(PlaneIdx(tried.1))
    }

    /// The stream of the page that is tried.
    pub(crate) fn stream(&self) -> u8 {
        let queue = &self.queues[self.pass.tried.1 as usize];
        queue.front().map_or(0, |first| first.write.extent.stream())
    }

    /// The page that was tried goes on waiting, and speaks for all behind it until something changes.
    pub(crate) fn keep(&mut self) {
        self.pass.in_vain.push(self.pass.tried.1);
    }

    /// The page that was tried has found a place, which changes something; `coming` is told which two of the same
    /// queue are next.
    pub(crate) fn take(&mut self, coming: impl FnOnce(Option<Lpn>, Option<Lpn>)) -> PendingWrite {
        let (number, plane) = self.pass.tried;
        let queue = &mut self.queues[plane as usize];
        let at = position_of(queue, number);
        let taken = queue.remove(at).expect("who is tried waits");
        let page = |at| queue.get(at).map(|waiter: &PendingWrite| waiter.write.page);
        coming(page(at), page(at + 1));
        self.length -= 1;
        self.pass.in_vain.push(plane);
        taken
    }

    /// A write may find room before older ones of the same page: the oldest goes first, and each of the others waits
    /// where the one before it did.
    pub(crate) fn swap_for_oldest(&mut self, mut taken: PendingWrite) -> PendingWrite {
        let queue = &mut self.queues[self.pass.tried.1 as usize];
        let PendingWrite { number, write: Write { page, .. }, .. } = taken;
        let before = queue.iter_mut().take_while(|one| one.number < number);
        let mut same: Vec<&mut PendingWrite> =
            before.filter(|one| one.write.page == page).collect();
        for one in same.iter_mut().rev() {
            std::mem::swap(&mut one.write, &mut taken.write);
            std::mem::swap(&mut one.since, &mut taken.since);
            // Room is looked for in the stream of the place.
            let stream = one.write.extent.stream();
            one.write.extent.set_stream(taken.write.extent.stream());
            taken.write.extent.set_stream(stream);
        }
        taken
    }

    /// All of them, in the order in which they came: nobody waits any more.
    pub(crate) fn drain(&mut self) -> Vec<PendingWrite> {
        let mut all: Vec<PendingWrite> = self.queues.iter_mut().flat_map(std::mem::take).collect();
        all.sort_unstable_by_key(|waiter| waiter.number);
        self.length = 0;
        all
    }
}

/// Where in `queue` who came as `number` is, or the first that came later. Near the beginning, mostly.
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
    use crate::device::event::Target;
    use crate::ftl::extent::Extent;
    use proptest::prelude::*;

    const DIES: u32 = 5;

    /// What a try may come to.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Try {
        Waits,
        Changes,
        Found,
    }

    /// A world in which it depends on the plane, and on all that has changed so far, what a try comes to.
    #[derive(Clone, Debug)]
    struct World(u64);

    impl World {
        fn would_wait(&self, plane: u32) -> bool {
            self.clone().try_for(plane) == Try::Waits
        }

        fn try_for(&mut self, plane: u32) -> Try {
            let drawn = (self.0 ^ u64::from(plane)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let outcome = match drawn % 8 {
                0..5 => return Try::Waits,
                5 => Try::Changes,
                _ => Try::Found,
            };
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(drawn | 1);
            outcome
        }
    }

    fn write(page: u32) -> Write {
        let (page, extent) = (Lpn(page), Extent::single(Lpn(page), true, 0));
        Write { page, extent, target: Target::collection(PlaneIdx(0)), through: false }
    }

    proptest! {
        /// Against one queue, all of which is tried at each pass; whether it is known who would wait or not.
        #[test]
        fn who_finds_a_place_is_who_would_if_all_were_tried(
            seed in any::<u64>(), known in any::<bool>(), steps in prop::collection::vec(0..=2 * DIES, 1..300),
        ) {
            let (mut waiting, mut world) = (WriteBacklog::new(DIES), World(seed));
            let (mut all, mut naive_world) = (VecDeque::new(), World(seed));
            for (number, step) in (0..).zip(steps) {
                if step < 2 * DIES {
                    all.push_back((number, step % DIES));
                    waiting.add(PlaneIdx(step % DIES), write(number), 0);
                    continue;
                }
                let mut expected = Vec::new();
                for _ in 0..all.len() {
                    let (page, plane) = all.pop_front().expect("so many wait");
                    match naive_world.try_for(plane) {
                        Try::Found => expected.push(page),
                        Try::Waits | Try::Changes => all.push_back((page, plane)),
                    }
                }
                let mut found = Vec::new();
                waiting.begin_pass();
                waiting.resume_pass(|plane| known && world.would_wait(plane.0));
                while let Some(plane) = waiting.next() {
                    match world.try_for(plane.0) {
                        Try::Waits => {
                            waiting.keep();
                            continue;
                        }
                        Try::Changes => waiting.keep(),
                        Try::Found => found.push(waiting.take(|_, _| ()).write.page.0),
                    }
                    waiting.resume_pass(|plane| known && world.would_wait(plane.0));
                }
                prop_assert_eq!(found, expected);
                prop_assert_eq!(world.0, naive_world.0);
                // Time changes the world, too.
                (world.0, naive_world.0) = (world.0 + 1, naive_world.0 + 1);
            }
            let left: Vec<u32> = waiting.drain().iter().map(|one| one.write.page.0).collect();
            prop_assert_eq!(left, all.iter().map(|(page, _)| *page).collect::<Vec<_>>());
            prop_assert!(waiting.is_empty());
        }
    }
}
