//! LRU orders of slots: two numbers per slot, and no search.
//!
//! ```text
//! oldest ─▶ … ─▶ newest        a new slot enters as the newest; any slot may leave
//! ```

/// The links of slots. A slot is in at most one order; any number of orders share the links.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Link {
    older: u32,
    newer: u32,
}

/// The ends of an order of slots.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Order")]
pub(crate) struct LruEnds {
    oldest: u32,
    newest: u32,
    length: u32,
}

/// Marks an end; used inside the arrays only.
const NONE: u32 = u32::MAX;

#[inline]
fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}

impl Default for LruEnds {
    fn default() -> LruEnds {
        LruEnds { oldest: NONE, newest: NONE, length: 0 }
    }
}

impl LruEnds {
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    #[inline]
    pub(crate) fn newest(&self) -> Option<u32> {
        some(self.newest)
    }

    /// Return the number of slots.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.length
    }
}

impl Links {
    pub(crate) fn with_capacity(slots: usize) -> Links {
        Links(Vec::with_capacity(slots))
    }

    /// Add `slot`, which is in no order, to `order` as the newest.
    #[inline]
    pub(crate) fn push_newest(&mut self, order: &mut LruEnds, slot: u32) {
        if slot as usize >= self.0.len() {
            self.0.resize(slot as usize + 1, Link { older: NONE, newer: NONE });
        }
        let older = std::mem::replace(&mut order.newest, slot);
        order.length += 1;
        self.0[slot as usize] = Link { older, newer: NONE };
        match older {
            NONE => order.oldest = slot,
            older => self.0[older as usize].newer = slot,
        }
    }

    /// Remove `slot` from `order`.
    #[inline]
    pub(crate) fn remove(&mut self, order: &mut LruEnds, slot: u32) {
        let Link { older, newer } = self.0[slot as usize];
        order.length -= 1;
        match older {
            NONE => order.oldest = newer,
            older => self.0[older as usize].newer = newer,
        }
        match newer {
            NONE => order.newest = older,
            newer => self.0[newer as usize].older = older,
        }
    }
}

/// A single LRU order of slots.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Lru {
    links: Links,
    order: LruEnds,
}

impl Lru {
    pub(crate) fn with_capacity(slots: usize) -> Lru {
        Lru { links: Links::with_capacity(slots), order: LruEnds::default() }
    }

    /// Add `slot`, which is not in the order, as the newest.
    #[inline]
    pub(crate) fn push_newest(&mut self, slot: u32) {
        self.links.push_newest(&mut self.order, slot);
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        self.links.remove(&mut self.order, slot);
    }

    /// Make `slot`, which is in the order, the newest.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32) {
        self.remove(slot);
        self.push_newest(slot);
    }

    /// Return the least recently used slot.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.order.oldest()
    }

    /// Return the number of slots.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.order.len()
    }

    /// Return all slots, the least recently used first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.oldest(), |slot| some(self.links.0[*slot as usize].newer))
            .take(self.len() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compare with a list that is searched linearly.
        #[test]
        fn lru_orders_slots_by_use(uses in prop::collection::vec((0u32..12, 0u8..4), 0..200)) {
            let (mut lru, mut list) = (Lru::default(), Vec::new());
            for (slot, kind) in uses {
                match (list.contains(&slot), kind) {
                    (false, 0) => {}
                    (false, _) => lru.push_newest(slot),
                    (true, 0) => lru.remove(slot),
                    (true, _) => lru.touch(slot),
                }
                list.retain(|other| *other != slot);
                if kind > 0 {
                    list.push(slot);
                }
                prop_assert_eq!(lru.by_age().collect::<Vec<_>>(), list.clone());
                prop_assert_eq!((lru.len(), lru.oldest()), (list.len() as u32, list.first().copied()));
                prop_assert_eq!(lru.order.newest(), list.last().copied());
            }
        }
    }
}
