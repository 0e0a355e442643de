//! What the host wants of its writes, and the I/Os that wait for it.
//!
//! ```text
//! fua       data ── past the write cache ──▶ flash ──▶ the write ends
//! flush:3   data ──▶ cache, the write ends │ data ──▶ cache, the write ends │ data ──▶ cache ─┐
//!                                                          all of the cache ──▶ flash ──▶ ◀──┘ it ends
//! ```
//!
//! **Source**: [`Durability`].
//! **Faithful**: nothing that is volatile in a profile outlives the write that waits for it: pages in the
//! write cache, and what `rewrite_buffer` keeps. With `power_loss_protection` nothing is volatile, and nobody waits.
//! **Simplified**: the command that asks for a flush takes no time of its own; the map of an FTL needs no
//! flush, as in drives that can put it together again from the flash; a page whose program fails because
//! the device is at its end is not told of.
//! **Ambiguous**: how drives carry out FUA. Here a write goes past the cache; pages of it that are in the
//! cache are written before it.

use std::collections::VecDeque;

use uflip_core::Durability;

use crate::config::Profile;
use crate::device::event::Epoch;
use crate::device::event::PageIdx;

/// What one write waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Promise")]
pub(crate) enum CompletionRule {
    /// Its data has been taken.
    #[serde(rename = "Taken")]
    Accepted,
    /// Its data is on flash: it goes past the cache.
    Durable,
    /// Everything is on flash that was taken before it was; all that a flush waits for.
    Flushed,
}

/// What is promised, and who waits for it to be kept.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Durable {
    durability: Durability,
    /// Writes since that was asked for.
    written: u64,
    /// Last pages of I/Os that wait for a flush, in the order in which they began to.
    held: VecDeque<Held>,
    /// Capacitors bring everything to flash that was taken.
    protected: bool,
}

/// The last page of an I/O that ends when a flush is over.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Held {
    pub(crate) page: PageIdx,
    pub(crate) since: u64,
    pub(crate) until: Epoch,
}

impl Durable {
    /// Nobody has asked for anything.
    pub(crate) fn of(profile: &Profile) -> Durable {
        let protected = profile.power_loss.is_some_and(|part| part.power_loss_protection);
        Durable { protected, ..Durable::default() }
    }

    /// What a flush by itself waits for.
    pub(crate) fn flush(&self) -> CompletionRule {
        if self.protected { CompletionRule::Accepted } else { CompletionRule::Flushed }
    }

    /// Nobody waits any more.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }

    /// What writes wait for from now on.
    pub(crate) fn ask_for(&mut self, durability: Durability) {
        (self.durability, self.written) = (durability, 0);
    }

    /// What the next write waits for.
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

    pub(crate) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Since when who waits longest does.
    pub(crate) fn held_since(&self) -> Option<u64> {
        self.held.front().map(|held| held.since)
    }

    /// Who waited longest, where `is_over` says so of what it waited for.
    pub(crate) fn release(&mut self, is_over: impl Fn(Epoch) -> bool) -> Option<Held> {
        let over = is_over(self.held.front()?.until);
        if over { self.held.pop_front() } else { None }
    }
}
