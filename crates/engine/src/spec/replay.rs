//! A replay: the I/Os of a list in one process; an open loop if the list has arrivals.

use std::sync::Arc;

use serde_json::json;
use uflip_core::{Error, Result, format_bytes};

use super::resolve::{Length, Space, counts, finish, out_of_range, queue_depth};
use super::{ReplaySpec, Resolved, StreamSource, StreamSpec};
use crate::list::{IoList, ListSummary};

pub(super) fn resolve_replay(spec: &ReplaySpec, space: Space) -> Result<Resolved> {
    let list = &spec.list;
    list.check()?;
    if list.end > space.capacity {
        return Err(Error::usage("The I/Os of the list lie outside the device")
            .at("end")
            .got(format!("{} ({})", list.end, format_bytes(list.end)))
            .allowed(format!("up to {} ({})", space.capacity, format_bytes(space.capacity)))
            .action("replay the trace with --fit wrap or --fit scale"));
    }
    if !list.align.is_multiple_of(space.sector) {
        return Err(Error::usage("The I/Os of the list are not whole sectors of the device")
            .at("align")
            .got(format!("multiples of {} bytes", list.align))
            .allowed(format!("multiples of {} bytes", space.sector))
            .action("replay the trace itself: its I/Os are widened to whole sectors"));
    }
    if let Some(io_count) = spec.io_count.filter(|io_count| *io_count != list.io_count) {
        return Err(out_of_range(
            "io_count",
            io_count,
            &format!("{}, the length of the list", list.io_count),
        ));
    }
    let (io_count, io_ignore) = counts(Some(list.io_count), spec.io_ignore)?;
    let queue_depth = queue_depth(spec.queue_depth)?;
    let stream = StreamSpec {
        source: StreamSource::List(None),
        arrivals: None,
        total_ios: io_count,
        ignored_ios: io_ignore,
        queue_depth,
        seed: 0,
        jumps: 0,
    };
    let canonical = json!({"kind": "replay", "list": list, "queue_depth": queue_depth});
    let mut resolved = finish(canonical, vec![stream], Length::Fixed { io_count, io_ignore });
    resolved.totals.bytes_read = list.bytes_read;
    resolved.totals.bytes_written = list.bytes_written;
    resolved.totals.bytes_trimmed = list.bytes_trimmed;
    resolved.totals.pause_ns = list.span.unwrap_or(0);
    Ok(resolved)
}

impl Resolved {
    /// Add the I/Os of the list that the pattern names; other patterns stay unchanged.
    ///
    /// # Errors
    /// If it is another list.
    pub fn with_list(mut self, list: &Arc<IoList>) -> Result<Resolved> {
        for stream in &mut self.streams {
            if let StreamSource::List(slot) = &mut stream.source {
                let expected = &self.canonical["list"];
                if *expected != json!(list.summary()) {
                    return Err(Error::usage(
                        "The list does not match the one that the pattern names",
                    )
                    .at("list")
                    .got(json!(list.summary()).to_string())
                    .allowed(expected.to_string())
                    .action("give the list that the specification was created from"));
                }
                *slot = Some(Arc::clone(list));
            }
        }
        Ok(self)
    }

    /// Return the list of a replay, if it was provided.
    #[must_use]
    pub fn list(&self) -> Option<&Arc<IoList>> {
        self.streams.iter().find_map(|stream| match &stream.source {
            StreamSource::List(list) => list.as_ref(),
            _ => None,
        })
    }

    /// Return the summary of the list of a replay, if the list was not provided.
    #[must_use]
    pub fn missing_list(&self) -> Option<ListSummary> {
        self.check_complete().err()?;
        serde_json::from_value(self.canonical["list"].clone()).ok()
    }

    /// Refuse to run a replay without its list.
    ///
    /// # Errors
    /// If the list was not provided.
    pub fn check_complete(&self) -> Result<()> {
        if self.streams.iter().all(|stream| stream.source != StreamSource::List(None)) {
            return Ok(());
        }
        Err(Error::usage("The list of I/Os of this replay is missing")
            .at("list")
            .got(self.canonical["list"]["ios"].to_string())
            .action("replay the trace itself: `uflip replay TRACE DEVICE`"))
    }
}
