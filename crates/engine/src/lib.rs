//! I/O patterns (uFLIP §3.1, Table 1) and the one loop that drives a device with them.
//!
//! A *specification* (JSON, [`PatternSpec`]) is validated against a device and becomes
//! [`Resolved`]: every default is filled in, with one [`StreamSpec`](spec::StreamSpec) per process.
//! [`run`] drives the device and returns a [`Trace`]: every I/O of the run.

#![forbid(unsafe_code)]

mod arrivals;
mod drive;
pub mod flash;
mod judge;
mod list;
mod live;
mod location;
mod logarithm;
mod pattern;
mod plausibility;
mod recorder;
mod run;
pub mod spec;
mod state;
mod trace;
pub mod verify;
pub mod zones;

pub use drive::{AHEAD, Control, NextRequest, RecordCompletion, Requests, TimeLimit, When};
pub use list::{IO_SIZE_MAX, IoList, LIST_IOS_MAX, ListSummary};
pub use live::{Live, LiveRow};
pub use location::{LOCATIONS, LocationEntry, LocationName, LocationParameter};
pub use pattern::Pattern;
pub use plausibility::PlausibilityCheck;
pub use recorder::Sink;
pub use run::{RunOutcome, SeriesPart, run, run_into, run_series};
pub use spec::{ArrivalRule, PatternSpec, Resolved};
pub use state::{ResolvedState, StateName, StateSpec, StateTotals, enforce};
pub use trace::{
    Causes, Columns, HOST_CAUSES, HOST_COLUMNS, HostGaps, PatternWalk, Trace, TraceRow, wait_column,
};
