//! The completion queue of a synchronous device, whose requests complete when they are submitted.

use std::collections::VecDeque;

use crate::{Completion, Nanos, Ticket};

/// Completed requests, in order, until the caller takes them; also numbers the tickets.
#[derive(Clone, Default, Debug)]
pub struct CompletionQueue {
    tickets: u64,
    completions: VecDeque<Completion<()>>,
}

impl CompletionQueue {
    /// Return the ticket of the next request.
    #[inline]
    #[must_use]
    pub fn next_ticket(&self) -> Ticket {
        Ticket(self.tickets)
    }

    /// Add a completed request and return its ticket.
    #[inline]
    pub fn push(&mut self, submitted: Nanos, completed: Nanos) -> Ticket {
        let ticket = self.next_ticket();
        self.tickets += 1;
        self.completions.push_back(Completion {
            ticket,
            submitted,
            completed,
            breakdown: (),
            status: (),
        });
        ticket
    }

    /// Return whether all completions were taken.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completions.is_empty()
    }

    /// Return the time of the oldest completion.
    #[inline]
    #[must_use]
    pub fn next_completion(&self) -> Option<Nanos> {
        self.completions.front().map(|completion| completion.completed)
    }

    /// Take the oldest completion.
    ///
    /// # Panics
    ///
    /// If the queue is empty.
    #[inline]
    pub fn complete(&mut self) -> Completion<()> {
        self.completions.pop_front().expect("an I/O is outstanding")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_returned_once_in_time_order() {
        let mut queue = CompletionQueue::default();
        assert!(queue.is_empty() && queue.next_completion().is_none());
        let first = queue.push(Nanos(10), Nanos(30));
        let second = queue.push(Nanos(20), Nanos(25));
        assert_ne!(first, second);
        assert_eq!(queue.next_completion(), Some(Nanos(30)));
        let done = queue.complete();
        assert_eq!((done.ticket, done.submitted, done.completed), (first, Nanos(10), Nanos(30)));
        assert_eq!(queue.complete().ticket, second);
        assert!(queue.is_empty());
    }
}
