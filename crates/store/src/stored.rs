//! A trace that is in memory or, where it is long, in a file; to those who read it the same.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use uflip_core::{Error, ErrorKind, Io, Result};
use uflip_engine::{HOST_CAUSES, PatternWalk, PlausibilityCheck, Resolved, Trace, TraceRow};

use crate::ROWS_A_GROUP;
use crate::groups::Groups;

/// So many I/Os lie between walks over the pattern that are kept.
const STEP: usize = if cfg!(test) { 100 } else { 1 << 21 };

/// Every I/O of one run, wherever it is.
pub struct StoredTrace {
    /// Its columns are empty where it is in a file.
    trace: Trace,
    groups: Option<Groups>,
    /// Walks that stand before the I/Os of these numbers: whoever looks at the end of a long run goes all the
    /// way to it once.
    walks: Mutex<BTreeMap<usize, PatternWalk>>,
    /// It is known to make physical sense.
    makes_sense: bool,
}

impl From<Trace> for StoredTrace {
    fn from(trace: Trace) -> StoredTrace {
        StoredTrace::in_memory(trace)
    }
}

impl StoredTrace {
    pub(crate) fn in_memory(trace: Trace) -> StoredTrace {
        StoredTrace { trace, groups: None, walks: Mutex::default(), makes_sense: false }
    }

    pub(crate) fn in_file(trace: Trace, groups: Groups) -> StoredTrace {
        StoredTrace { trace, groups: Some(groups), walks: Mutex::default(), makes_sense: false }
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

    /// I/Os `from` to `to`.
    pub(crate) fn ios(&self, from: usize, to: usize) -> impl Iterator<Item = Io> + '_ {
        self.rows(from, to).map(|row| row.io)
    }

    /// Return the columns that follow from the pattern for I/Os `from` to `to`.
    pub(crate) fn rows(&self, from: usize, to: usize) -> impl Iterator<Item = TraceRow> + '_ {
        let mut walk = self.walk_at(from);
        (from..to).map_while(move |_| walk.next(self.pattern()))
    }

    /// A walk that stands before I/O number `place`.
    fn walk_at(&self, place: usize) -> PatternWalk {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = walks.range(..=place).next_back();
        let (begin, mut walk) = match kept {
            Some((number, walk)) => (*number, walk.clone()),
            None => (0, PatternWalk::new(self.pattern())),
        };
        for number in begin..place {
            if number % STEP == 0 {
                walks.entry(number).or_insert_with(|| walk.clone());
            }
            walk.next(self.pattern());
        }
        if place.is_multiple_of(STEP) {
            walks.entry(place).or_insert_with(|| walk.clone());
        }
        walk
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

    /// Return it if it makes physical sense, see [`Trace::check_plausible`]; that is not asked again when it is
    /// written.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`]: it cannot have been measured.
    pub fn checked(mut self, at_once: bool) -> Result<StoredTrace> {
        self.check_plausible(at_once).map_err(|message| senseless("dropped", message))?;
        self.makes_sense = true;
        Ok(self)
    }

    /// Whether it is known to make physical sense.
    pub(crate) fn makes_sense(&self) -> bool {
        self.makes_sense
    }

    /// As [`Trace::check_plausible`].
    pub(crate) fn check_plausible(&self, at_once: bool) -> std::result::Result<(), String> {
        let Some(groups) = &self.groups else { return self.trace.check_plausible(at_once) };
        let mut check = PlausibilityCheck::new(&self.trace.pattern, &self.trace.causes, at_once);
        self.in_pieces(|from, to| {
            check.check(&groups.columns(from, to, self.trace.causes.len())?)
        })?;
        check.finish()
    }

    fn in_pieces(
        &self,
        mut look: impl FnMut(usize, usize) -> std::result::Result<(), String>,
    ) -> std::result::Result<(), String> {
        let starts = (0..self.len()).step_by(ROWS_A_GROUP);
        starts.into_iter().try_for_each(|from| look(from, self.len().min(from + ROWS_A_GROUP)))
    }
}

/// The error of a run that cannot have been measured, and of what became of it.
pub(crate) fn senseless(fate: &str, message: String) -> Error {
    Error::new(ErrorKind::Internal, format!("The run makes no physical sense, and was {fate}"))
        .got(message)
        .action("measure it again; if the error stays, report it as a bug in uflip")
}

fn unreadable(message: String) -> Error {
    Error::new(ErrorKind::Results, "The file of a trace cannot be read any more")
        .got(message)
        .action("restore it from a copy, or measure again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uflip_core::Bytes;
    use uflip_engine::{Columns, PatternSpec};

    /// Against the pattern itself, gone over from its beginning; places are looked at out of order, and twice.
    #[test]
    fn whatever_was_looked_at_before_ios_are_those_of_the_pattern() {
        let basic = |mode: &str, count: &str| {
            format!(r#""mode": "{mode}", "location": "random", "io_size": 4096{count}"#)
        };
        let of = |mode: &str, count: u64| {
            let parts = basic(mode, &format!(r#", "io_count": {count}"#));
            format!(r#"{{"kind": "basic", {parts}}}"#)
        };
        let mix = format!(
            r#"{{"kind": "mix", "first": {{{}}}, "second": {{{}}}, "ratio": 3, "io_count": 250}}"#,
            basic("read", ""),
            basic("write", "")
        );
        let parallel = format!(
            r#"{{"kind": "parallel", "patterns": [{}, {}]}}"#,
            of("read", 700),
            of("write", 500)
        );
        for spec in [of("write", 1000), mix, parallel] {
            let pattern = PatternSpec::parse(&spec).expect("a pattern");
            let pattern = pattern.resolve(Bytes(1 << 30), Bytes(512)).expect("it fits");
            let all: Vec<Io> = pattern.issued().collect();
            let trace =
                Trace { pattern, columns: Columns::default(), causes: Vec::new(), ended: None };
            let stored = StoredTrace::in_memory(trace);
            for (from, to) in
                [(950, 1000), (0, 10), (650, 800), (399, 401), (650, 800), (0, all.len())]
            {
                assert_eq!(
                    stored.ios(from, to).collect::<Vec<_>>(),
                    all[from..to],
                    "{spec}: {from} to {to}"
                );
            }
            let kept = stored.walks.lock().expect("nobody else").len();
            assert!((2..=all.len() / STEP).contains(&kept), "{kept} walks of {} I/Os", all.len());
        }
    }
}
