//! The specification of a pattern, with its validation and defaults.
//!
//! **Source**: uFLIP (2009) §3.1, Table 1, §5.1.
//! **Faithful**: the parameters and their names; 3 × 1 × 4 × 2 basic patterns; mixes and parallel
//! patterns; io_count and io_ignore of a mix scale with the ratio.
//! **Simplified**: nothing.
//! **Ours**: locations zipf and hotcold ([`crate::location`]); times fixed and poisson, which are
//! open loops ([`crate::arrivals`]); replays of lists of I/Os ([`crate::list`]); queue_depth; run_time
//! and ramp_time, fio's runtime and ramp_time; write streams, as NVMe's streams directive and its
//! placement handles name them; the modes trim, append, reset, finish, open and close, the last five
//! for zoned devices; mixes of more than two patterns, by weights ([`mix_order`]); compress_percent
//! and duplicate_percent, as fio's buffer_compress_percentage and dedupe_percentage.
//! **Ambiguous**: (1) `io_count` includes the `io_ignore` first I/Os. (2) For a mix both count I/Os
//! of the *rarer* (second) pattern: the run issues (ratio + 1) times as many, so the rare pattern
//! runs as long as it would alone. For a drawn mix, where neither pattern has a fixed share, they
//! count I/Os of both. (3) For a parallel pattern they count I/Os of one process. (4) The paper's
//! I/O is synchronous; `queue_depth` is ours. A pause begins when all I/Os before it have
//! completed, which is the paper's pause at queue depth 1.
//!
//! Sizes are bytes, times are nanoseconds. A parameter that the chosen function does not use
//! (`incr` of a random pattern) is an error.

mod mix;
pub(crate) mod mix_order;
mod parallel;
mod resolve;
mod stop;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use uflip_core::{
    Bytes, ContentShares, DeviceInfo, DeviceKind, Error, Mode, Nanos, Result, SECTOR_BYTES_MIN,
};

use crate::drive::TimeLimit;
use crate::list::{IoList, ListSummary};
use crate::location::{LOCATIONS, LocationName};

pub use stop::{Stop, StopSpec};

/// A pattern as a user writes it, before validation.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PatternSpec {
    /// One function for each of time, size, location and mode; possibly replicated.
    Basic(#[serde(deserialize_with = "basic_spec")] BasicSpec),
    /// `ratio` I/Os of the first pattern, then one of the second, repeated; or drawn at random.
    Mix(Box<MixSpec>),
    /// Different patterns side by side.
    Parallel(ParallelSpec),
    /// I/Os of a list, which the specification identifies by its digest.
    Replay(ReplaySpec),
}

/// A basic pattern. Everything but `mode` and `location` has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // the paper's parameters, explained in docs/reference/patterns.md
pub struct BasicSpec {
    pub mode: Mode,
    pub location: LocationName,
    pub time: Option<TimeName>,
    pub io_size: Option<u64>,
    pub io_shift: Option<u64>,
    pub target_offset: Option<u64>,
    pub target_size: Option<u64>,
    /// The parameters of locations, by name.
    #[serde(skip)]
    pub location_values: BTreeMap<&'static str, i128>,
    pub write_stream: Option<u64>,
    pub hot_write_stream: Option<u64>,
    pub compress_percent: Option<u64>,
    pub duplicate_percent: Option<u64>,
    pub pause: Option<u64>,
    pub burst: Option<u64>,
    pub interval: Option<u64>,
    pub parallel_degree: Option<u64>,
    pub queue_depth: Option<u64>,
    pub io_count: Option<u64>,
    pub io_ignore: Option<u64>,
    pub run_time: Option<u64>,
    pub ramp_time: Option<u64>,
    pub stop: Option<Box<StopSpec>>,
    pub seed: Option<u64>,
}

/// Read a basic pattern; the parameters of locations are those of [`LOCATIONS`].
fn basic_spec<'de, D: Deserializer<'de>>(source: D) -> std::result::Result<BasicSpec, D::Error> {
    let mut fields = Map::deserialize(source)?;
    let mut location_values = BTreeMap::new();
    for parameter in LOCATIONS.iter().flat_map(|location| location.parameters) {
        let Some(value) = fields.remove(parameter.name).filter(|value| !value.is_null()) else {
            continue;
        };
        let value = if parameter.least < 0 {
            i64::deserialize(value).map(i128::from)
        } else {
            u64::deserialize(value).map(i128::from)
        };
        location_values.insert(parameter.name, value.map_err(D::Error::custom)?);
    }
    let spec = serde_json::from_value::<BasicSpec>(Value::Object(fields));
    let spec = spec.map_err(|error| match error.to_string() {
        unknown if unknown.starts_with("unknown field") => {
            let names = LOCATIONS.iter().flat_map(|location| location.parameters);
            let names = names.map(|parameter| format!(", `{}`", parameter.name));
            D::Error::custom(unknown + &names.collect::<String>())
        }
        message => D::Error::custom(message),
    })?;
    Ok(BasicSpec { location_values, ..spec })
}

/// Read the third and later patterns of a mix.
fn basic_specs<'de, D: Deserializer<'de>>(
    source: D,
) -> std::result::Result<Vec<BasicSpec>, D::Error> {
    let parts = Vec::<Value>::deserialize(source)?;
    parts.into_iter().map(|part| basic_spec(part).map_err(D::Error::custom)).collect()
}

/// A mix of two or more basic patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct MixSpec {
    #[serde(deserialize_with = "basic_spec")]
    pub first: BasicSpec,
    #[serde(deserialize_with = "basic_spec")]
    pub second: BasicSpec,
    pub ratio: Option<u64>,
    /// Instead of `ratio`: the probability of the first pattern, drawn for each I/O.
    pub first_percent: Option<u64>,
    /// The third and later patterns; these need `weights`.
    #[serde(default, deserialize_with = "basic_specs")]
    pub others: Vec<BasicSpec>,
    /// Instead of `ratio`: I/Os of each pattern per round.
    pub weights: Option<Vec<u64>>,
    /// Whether each I/O is drawn by the weights, instead of an exact order.
    pub drawn: Option<bool>,
    /// For an open loop: fixed or poisson.
    pub time: Option<TimeName>,
    pub interval: Option<u64>,
    pub queue_depth: Option<u64>,
    pub io_count: Option<u64>,
    pub io_ignore: Option<u64>,
    pub run_time: Option<u64>,
    pub ramp_time: Option<u64>,
    pub stop: Option<Box<StopSpec>>,
    pub seed: Option<u64>,
}

/// Different patterns side by side, each in its own process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ParallelSpec {
    pub patterns: Vec<PatternSpec>,
    pub stop: Option<Box<StopSpec>>,
    pub seed: Option<u64>,
}

/// The I/Os of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ReplaySpec {
    pub list: ListSummary,
    pub queue_depth: Option<u64>,
    /// The number of I/Os of the list.
    pub io_count: Option<u64>,
    pub io_ignore: Option<u64>,
}

/// The three time functions of the paper, and two for open loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TimeName {
    Consecutive,
    Pause,
    Burst,
    Fixed,
    Poisson,
}

/// A basic pattern with every parameter resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Basic {
    pub mode: Mode,
    pub location: LocationName,
    /// The values of its parameters.
    pub location_values: Vec<i128>,
    pub pause: Nanos,
    /// I/Os between two pauses; `None`: no pauses.
    pub burst: Option<u64>,
    pub io_size: Bytes,
    /// TargetOffset + IOShift.
    pub base: Bytes,
    /// Slots of `io_size` in the target space, or in one partition.
    pub slots: u64,
    /// The stream of its writes, and the stream of writes to a hot area.
    pub write_stream: u8,
    pub hot_write_stream: u8,
    /// The content of its writes, if the pattern determines it.
    pub content: Option<ContentShares>,
}

/// The source of I/Os of one process.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum StreamSource {
    Basic(Basic),
    Mix {
        parts: Vec<Basic>,
        order: MixRule,
    },
    /// `None` if only the summary of the list is available: the pattern can be planned but not run.
    List(Option<Arc<IoList>>),
}

/// The order in which a mix takes I/Os of its patterns.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum MixRule {
    /// This number of the first, then one of the second.
    Ratio(u64),
    /// Each I/O is drawn at random.
    Drawn { first_percent: u64 },
    /// This number of each pattern per round, evenly spread; or drawn with these odds.
    Weighted { weights: Vec<u64>, drawn: bool },
}

/// The arrival process of an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrivalRule {
    /// One I/O per interval.
    Fixed(Nanos),
    /// Poisson arrivals with this mean interval.
    Poisson(Nanos),
}

impl ArrivalRule {
    /// Return the mean interval between two I/Os.
    #[must_use]
    pub fn interval(self) -> Nanos {
        match self {
            ArrivalRule::Fixed(interval) | ArrivalRule::Poisson(interval) => interval,
        }
    }
}

/// One process: its source of I/Os, their number, and its random seed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct StreamSpec {
    pub source: StreamSource,
    /// For an open loop.
    pub arrivals: Option<ArrivalRule>,
    /// I/Os to issue, including ignored ones.
    pub total_ios: u64,
    /// The number of first I/Os that the statistics exclude.
    pub ignored_ios: u64,
    pub time_limit: TimeLimit,
    /// The largest number of outstanding I/Os.
    pub queue_depth: u64,
    pub seed: u64,
    /// The number of generator jumps: the index of the process.
    pub jumps: u64,
}

impl StreamSpec {
    /// Return whether it is an open loop.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let has_arrivals = |list: &Arc<IoList>| !list.instants().is_empty();
        self.arrivals.is_some()
            || matches!(&self.source, StreamSource::List(Some(list)) if has_arrivals(list))
    }
}

impl StreamSpec {
    /// Return whether any of its I/Os moves no data, and thus is a blocking call: a trim, or a zone
    /// command.
    fn trims(&self) -> bool {
        match &self.source {
            StreamSource::Basic(basic) => !basic.mode.moves_data(),
            StreamSource::Mix { parts, .. } => parts.iter().any(|part| !part.mode.moves_data()),
            StreamSource::List(list) => {
                list.as_ref().is_some_and(|list| list.summary().bytes_trimmed > 0)
            }
        }
    }
}

/// Processes of one pattern, which run in step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProcessGroup {
    pub(crate) processes: usize,
    /// I/Os of a process per `io_count`.
    pub(crate) round: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // required by serde
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The total work of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[allow(missing_docs)]
pub struct Totals {
    pub total_ios: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_trimmed: u64,
    /// The largest sum of pauses of any process [ns].
    pub pause_ns: u64,
}

/// A validated pattern with all defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// The complete pattern as JSON, stored with a result.
    pub canonical: Value,
    /// One per process, at least one.
    pub streams: Vec<StreamSpec>,
    /// The total work; with a stop rule, the upper bound.
    pub totals: Totals,
    /// The stop rule, if the length is not fixed.
    pub stop: Option<Stop>,
    /// Whether the data of its writes can be verified afterwards.
    pub verified: bool,
    /// The processes of each pattern, in the order of `streams`.
    pub(crate) groups: Vec<ProcessGroup>,
}

impl Resolved {
    /// Return whether anything is written or deallocated.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.totals.bytes_written > 0 || self.totals.bytes_trimmed > 0
    }

    /// Return whether the time of the run determines its number of I/Os, or of ignored ones.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.streams.iter().any(|stream| stream.time_limit != TimeLimit::NONE)
    }

    /// Return the pattern with fixed lengths, (`io_count`, `io_ignore`) of each part.
    pub(crate) fn with_lengths(&self, lengths: &[(u64, u64)]) -> Resolved {
        let mut canonical = self.canonical.clone();
        canonical.as_object_mut().expect("a pattern is an object").remove("stop");
        let set_length = |part: &mut Value, (io_count, io_ignore): (u64, u64)| {
            let fields = part.as_object_mut().expect("a pattern is an object");
            fields.retain(|name, _| name != "run_time" && name != "ramp_time");
            part["io_count"] = io_count.into();
            part["io_ignore"] = io_ignore.into();
        };
        match canonical.get_mut("patterns").and_then(Value::as_array_mut) {
            Some(parts) => {
                parts.iter_mut().zip(lengths).for_each(|(part, length)| set_length(part, *length))
            }
            None => set_length(&mut canonical, lengths[0]),
        }
        // The pattern was already checked against its device, and a shorter run also fits.
        PatternSpec::parse(&canonical.to_string())
            .and_then(|spec| spec.resolve(Bytes(u64::MAX >> 1), Bytes(SECTOR_BYTES_MIN)))
            .expect("a complete pattern is valid")
    }

    /// Return the content of its writes; `None` if the device may choose it.
    #[must_use]
    pub fn content(&self) -> Option<ContentShares> {
        let given = self.written_parts().find_map(|basic| basic.content);
        given.or_else(|| self.verified.then(ContentShares::default))
    }

    /// Return the basic patterns that write.
    fn written_parts(&self) -> impl Iterator<Item = &Basic> {
        let parts = self.streams.iter().flat_map(|stream| match &stream.source {
            StreamSource::Basic(basic) => std::slice::from_ref(basic),
            StreamSource::Mix { parts, .. } => parts.as_slice(),
            StreamSource::List(_) => &[],
        });
        parts.filter(|basic| basic.mode.is_write())
    }

    /// Refuse writes of different content in one run.
    fn check_content(&self) -> Result<()> {
        let mut contents = self.written_parts().map(|basic| basic.content);
        let first = contents.next().flatten();
        match contents.find(|content| *content != first) {
            None => Ok(()),
            Some(other) => {
                let text = |content: Option<ContentShares>| {
                    content.map_or("none".into(), |content| {
                        format!("{} and {}", content.compress_percent, content.duplicate_percent)
                    })
                };
                Err(Error::usage("The writes of a run have one content")
                    .at("compress_percent, duplicate_percent")
                    .got(format!("{}; {}", text(first), text(other)))
                    .allowed("the same two percentages in each pattern that writes")
                    .action("give both to every pattern that writes, or run the patterns in turn"))
            }
        }
    }

    /// Refuse a queue depth above 1 where the device does not support it.
    ///
    /// # Errors
    /// A queue depth above 1 in a process that trims a file or block device, where a trim is a
    /// blocking call.
    pub fn check_on(&self, kind: DeviceKind) -> Result<()> {
        let is_real = matches!(kind, DeviceKind::File | DeviceKind::Block);
        let trims_in_queue = |stream: &&StreamSpec| stream.queue_depth > 1 && stream.trims();
        if let Some(stream) = self.streams.iter().find(trims_in_queue).filter(|_| is_real) {
            return Err(Error::usage("Trims on a real device are synchronous")
                .at("queue_depth")
                .got(stream.queue_depth.to_string())
                .allowed("1 in a process that trims: its other I/Os would wait for each trim")
                .action("trim in a separate process: use a parallel pattern"));
        }
        Ok(())
    }

    /// Refuse writes to a stream that the device does not have.
    ///
    /// # Errors
    /// A stream number beyond those of the device.
    pub fn check_streams(&self, info: &DeviceInfo) -> Result<()> {
        let (highest, streams) = (self.write_stream_max(), info.write_streams());
        if u64::from(highest) < streams {
            return Ok(());
        }
        Err(Error::usage("The device has no such write stream")
            .at("write_stream")
            .got(format!("{highest} on {}", info.url))
            .allowed(match streams {
                1 => "0: it does not separate writes".into(),
                streams => format!("0 to {}", streams - 1),
            })
            .action("name a device with write_streams or placement handles, or omit write_stream"))
    }

    /// Return the highest stream of any write.
    fn write_stream_max(&self) -> u8 {
        let max_stream = |basic: &Basic| basic.write_stream.max(basic.hot_write_stream);
        let highest = |stream: &StreamSpec| match &stream.source {
            StreamSource::Basic(basic) => max_stream(basic),
            StreamSource::Mix { parts, .. } => parts.iter().map(max_stream).max().unwrap_or(0),
            StreamSource::List(_) => 0,
        };
        self.streams.iter().map(highest).max().unwrap_or(0)
    }

    /// Return the largest queue depth of any process.
    #[must_use]
    pub fn queue_depth_max(&self) -> u64 {
        self.streams.iter().map(|stream| stream.queue_depth).max().unwrap_or(1)
    }

    /// Return the largest I/O that moves data [bytes].
    #[must_use]
    pub fn io_size_max(&self) -> u64 {
        let data_size = |basic: &Basic| if basic.mode.moves_data() { basic.io_size.0 } else { 0 };
        let max_size = |stream: &StreamSpec| match &stream.source {
            StreamSource::Basic(basic) => data_size(basic),
            StreamSource::Mix { parts, .. } => parts.iter().map(data_size).max().unwrap_or(0),
            StreamSource::List(list) => list.as_ref().map_or(0, |list| list.summary().io_size_max),
        };
        self.streams.iter().map(max_size).max().unwrap_or(0)
    }

    /// Return whether any process is an open loop, so that its times count from arrivals.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.streams.iter().any(StreamSpec::is_open)
    }
}

impl PatternSpec {
    /// Parse a specification.
    ///
    /// # Errors
    /// Invalid JSON, an unknown key or name (the message lists the known ones), a number out of
    /// range.
    pub fn parse(json: &str) -> Result<PatternSpec> {
        let invalid = || {
            Error::usage("The pattern specification is not valid")
                .at("pattern specification")
                .action("see `uflip pattern --help` for the parameters of each pattern")
        };
        let value: Value = serde_json::from_str(json)
            .map_err(|error| invalid().got(format!("not JSON: {error}")))?;
        let kinds = ["basic", "mix", "parallel", "replay"];
        match value.get("kind").and_then(Value::as_str) {
            None => Err(invalid().got("no key 'kind'").allowed(kinds.join(", "))),
            Some(kind) if !kinds.contains(&kind) => {
                Err(Error::unknown("kind of pattern", kind, &kinds).at("kind"))
            }
            Some(_) => serde_json::from_value(value)
                .map_err(|error| invalid().with_serde_message(&error.to_string())),
        }
    }
}

fn out_of_range(name: &str, got: impl std::fmt::Display, allowed: &str) -> Error {
    Error::usage(format!("Parameter '{name}' is out of range"))
        .at(name)
        .got(got.to_string())
        .allowed(allowed)
        .action(format!("change '{name}'"))
}

fn not_applicable(name: &str, owner: &str) -> Error {
    Error::usage(format!("Parameter '{name}' has no meaning in this pattern"))
        .at(name)
        .allowed(format!("'{name}' belongs to {owner}"))
        .action(format!("omit '{name}', or choose {owner}"))
}
