//! Durability of writes, and the I/Os that wait for a flush.
//!
//! ```text
//! fua       data ── past the write cache ──▶ flash ──▶ the write ends
//! flush:3   data ──▶ cache, the write ends │ data ──▶ cache, the write ends │ data ──▶ cache ─┐
//!                                                          all of the cache ──▶ flash ──▶ ◀──┘ it ends
//! ```
//!
//! **Source**: [`Durability`].
//! **Faithful**: no volatile data of a profile outlives the write that waits for it. This covers
//! pages in the write cache and in the `rewrite_buffer`. With `power_loss_protection` nothing is
//! volatile, and no write waits.
//! **Simplified**: the flush command takes no time of its own. The map of an FTL needs no flush, as
//! in drives that rebuild it from flash. A page whose program fails at the end of the device's life
//! is not reported.
//! **Ambiguous**: how drives implement FUA. Here a write bypasses the cache; cached pages of its
//! range are written before it.

use std::collections::VecDeque;

use uflip_core::Durability;

use crate::config::Profile;
use crate::device::event::Epoch;
use crate::device::event::PageIdx;

/// The condition for the completion of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Promise")]
pub(crate) enum CompletionRule {
    /// The controller has accepted its data.
    #[serde(rename = "Taken")]
    Accepted,
    /// Its data is on flash: it bypasses the cache.
    Durable,
    /// All data accepted before is on flash; also the condition of a flush command.
    Flushed,
}

/// The configured durability, and the I/Os that wait for it.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Durable {
    durability: Durability,
    /// Number of writes since the durability was set.
    written: u64,
    /// The last pages of I/Os that wait for a flush, oldest first.
    held: VecDeque<HeldCompletion>,
    /// Capacitors protect all accepted data from a power loss.
    protected: bool,
}

/// The last page of an I/O that completes when a flush does.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Held")]
pub(crate) struct HeldCompletion {
    pub(crate) page: PageIdx,
    pub(crate) since: u64,
    pub(crate) until: Epoch,
}

impl Durable {
    /// Create the default state for `profile`.
    pub(crate) fn for_profile(profile: &Profile) -> Durable {
        let protected = profile.power_loss.is_some_and(|part| part.power_loss_protection);
        Durable { protected, ..Durable::default() }
    }

    /// Return the completion rule of a flush command.
    pub(crate) fn flush(&self) -> CompletionRule {
        if self.protected { CompletionRule::Accepted } else { CompletionRule::Flushed }
    }

    /// Drop all waiting I/Os.
    pub(crate) fn drop_waiting(&mut self) {
        self.held.clear();
    }

    /// Set the durability of the writes from now on.
    pub(crate) fn set(&mut self, durability: Durability) {
        (self.durability, self.written) = (durability, 0);
    }

    /// Return the completion rule of the next write.
    #[inline]
    pub(crate) fn completion_rule(&mut self) -> CompletionRule {
        self.written += 1;
        match self.durability {
            _ if self.protected => CompletionRule::Accepted,
            Durability::Fua => CompletionRule::Durable,
            other if other.flushes_after(self.written - 1) => CompletionRule::Flushed,
            _ => CompletionRule::Accepted,
        }
    }

    pub(crate) fn hold(&mut self, held: HeldCompletion) {
        self.held.push_back(held);
    }

    /// Return since when the oldest I/O has waited.
    pub(crate) fn held_since(&self) -> Option<u64> {
        self.held.front().map(|held| held.since)
    }

    /// Remove and return the oldest waiting I/O if `is_flushed` holds for its epoch.
    pub(crate) fn release(&mut self, is_flushed: impl Fn(Epoch) -> bool) -> Option<HeldCompletion> {
        let over = is_flushed(self.held.front()?.until);
        if over { self.held.pop_front() } else { None }
    }
}
