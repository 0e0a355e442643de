//! A trace that is in memory or, where it is long, in a file; to those who read it the same.

use std::borrow::Cow;

use uflip_core::{Error, ErrorKind, Result};
use uflip_engine::{HOST_CAUSES, Resolved, Sense, Trace};

use crate::ROWS_A_GROUP;
use crate::groups::Groups;

/// Every I/O of one run, wherever it is.
pub struct StoredTrace {
    /// Its columns are empty where it is in a file.
    trace: Trace,
    groups: Option<Groups>,
}

impl From<Trace> for StoredTrace {
    fn from(trace: Trace) -> StoredTrace {
        StoredTrace::in_memory(trace)
    }
}

impl StoredTrace {
    pub(crate) fn in_memory(trace: Trace) -> StoredTrace {
        StoredTrace { trace, groups: None }
    }

    pub(crate) fn in_file(trace: Trace, groups: Groups) -> StoredTrace {
        StoredTrace { trace, groups: Some(groups) }
    }

    /// The pattern that was run, complete.
    #[must_use]
    pub fn pattern(&self) -> &Resolved {
        &self.trace.pattern
    }

    /// Names of the causes; empty for a device that cannot know them.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.trace.causes
    }

    /// Whether a clock of the host was read: whoever simulates says more of a time than that.
    pub(crate) fn is_in_real_time(&self) -> bool {
        let causes = self.causes();
        causes.is_empty() || causes == HOST_CAUSES
    }

    /// How the run came to its length, where that was not given.
    #[must_use]
    pub fn ended(&self) -> Option<&serde_json::Value> {
        self.trace.ended.as_ref()
    }

    /// How many I/Os there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.as_ref().map_or(self.trace.len(), Groups::len)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What follows from the pattern alone.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    pub(crate) fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// I/Os `from` to `to` of a column that was measured, by its number in a file.
    pub(crate) fn measured(&self, number: usize, from: usize, to: usize) -> Result<Cow<'_, [u64]>> {
        if let Some(groups) = &self.groups {
            return groups.read(number, from, to).map(Cow::Owned).map_err(unreadable);
        }
        let columns = &self.trace.columns;
        let column = match number {
            1 => &columns.submit_ns,
            2 => &columns.response_time_ns,
            cause => &columns.cause_ns[cause - 3],
        };
        Ok(Cow::Borrowed(&column[from..to]))
    }

    /// From the first submission to the last completion [ns].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn elapsed_ns(&self) -> Result<u64> {
        let Some(groups) = &self.groups else { return Ok(self.trace.elapsed_ns()) };
        let (mut first, mut last) = (u64::MAX, 0);
        self.in_pieces(|from, to| {
            let columns = groups.columns(from, to, 0)?;
            let ends = columns.submit_ns.iter().zip(&columns.response_time_ns).map(|(s, r)| s + r);
            last = ends.max().unwrap_or(0).max(last);
            first = columns.submit_ns.iter().min().copied().unwrap_or(0).min(first);
            Ok(())
        })
        .map_err(unreadable)?;
        Ok(last.saturating_sub(first))
    }

    /// As [`Trace::check_sense`].
    pub(crate) fn check_sense(&self, at_once: bool) -> std::result::Result<(), String> {
        let Some(groups) = &self.groups else { return self.trace.check_sense(at_once) };
        let mut sense = Sense::of(&self.trace.pattern, at_once);
        self.in_pieces(|from, to| {
            sense.look(&groups.columns(from, to, self.trace.causes.len())?)
        })?;
        sense.end()
    }

    fn in_pieces(
        &self,
        mut look: impl FnMut(usize, usize) -> std::result::Result<(), String>,
    ) -> std::result::Result<(), String> {
        let starts = (0..self.len()).step_by(ROWS_A_GROUP);
        starts.into_iter().try_for_each(|from| look(from, self.len().min(from + ROWS_A_GROUP)))
    }
}

fn unreadable(message: String) -> Error {
    Error::new(ErrorKind::Results, "The file of a trace cannot be read any more")
        .got(message)
        .action("restore it from a copy, or measure again")
}
