//! Requests of a device that is synchronous: over as soon as they were submitted.

use std::collections::VecDeque;

use crate::{Completion, Nanos, Ticket};

/// Requests that are over, until they are handed out; the device gives them their tickets in order.
#[derive(Clone, Default, Debug)]
pub struct Finished {
    tickets: u64,
    over: VecDeque<Completion<()>>,
}

impl Finished {
    /// The ticket that the next request gets.
    #[inline]
    #[must_use]
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.tickets)
    }

    /// A request is over.
    #[inline]
    pub fn push(&mut self, submitted: Nanos, completed: Nanos) -> Ticket {
        let ticket = self.next_ticket();
        self.tickets += 1;
        self.over.push_back(Completion { ticket, submitted, completed, breakdown: (), status: () });
        ticket
    }

    /// Whether all were handed out.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// When the request was over that is handed out next.
    #[inline]
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.over.front().map(|completion| completion.completed)
    }

    /// Hand out the request that has been over longest.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[inline]
    pub fn complete(&mut self) -> Completion<()> {
        self.over.pop_front().expect("something is outstanding")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_handed_out_in_order_and_once() {
        let mut finished = Finished::default();
        assert!(finished.is_empty() && finished.next_completion().is_none());
        let first = finished.push(Nanos(10), Nanos(30));
        let second = finished.push(Nanos(20), Nanos(25));
        assert_ne!(first, second);
        assert_eq!(finished.next_completion(), Some(Nanos(30)));
        let done = finished.complete();
        assert_eq!((done.ticket, done.submitted, done.completed), (first, Nanos(10), Nanos(30)));
        assert_eq!(finished.complete().ticket, second);
        assert!(finished.is_empty());
    }
}
