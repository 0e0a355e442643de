//! I/O patterns (uFLIP §3.1, Table 1) and the one loop that drives a device with them.
//!
//! A *specification* (JSON, [`PatternSpec`]) is validated against a device and becomes
//! [`Resolved`]: every default is filled in, with one [`StreamSpec`](spec::StreamSpec) per process.
//! [`run`] drives the device and returns a [`Trace`]: every I/O of the run.

#![forbid(unsafe_code)]

mod arrivals;
mod causes;
mod drive;
pub mod flash;
mod host_gap;
mod judge;
mod list;
mod location;
mod logarithm;
mod mix_order;
mod pattern;
mod plausibility;
mod recorder;
mod run;
mod series;
pub mod spec;
mod state;
mod threads;
mod trace;
pub mod zones;

pub use arrivals::ArrivalRule;
pub use causes::{Causes, HOST_CAUSES, wait_column};
pub use drive::{AHEAD, Control, RecordCompletion, Requests};
pub use host_gap::HostGaps;
pub use list::{IO_SIZE_MAX, IoList, LIST_IOS_MAX, ListSummary};
pub use location::{LOCATIONS, LocationEntry, LocationName, LocationParameter};
pub use pattern::{NextRequest, Pattern, When};
pub use plausibility::PlausibilityCheck;
pub use recorder::Sink;
pub use run::{RunOutcome, run, run_into};
pub use series::{SeriesPart, run_series};
pub use spec::{PatternSpec, Resolved};
pub use state::{ResolvedState, StateName, StateSpec, StateTotals, enforce};
pub use trace::{Columns, PatternWalk, Trace, TraceRow};
