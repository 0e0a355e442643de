//! The validation of a basic pattern and of a replay against a device, and all defaults.

use std::sync::Arc;

use serde_json::{Value, json};
use uflip_core::{Bytes, ContentShares, Error, Mode, Nanos, Result, format_bytes};

use crate::drive::TimeLimit;
use crate::list::{IO_SIZE_MAX, IoList, ListSummary};
use crate::location::{LOCATIONS, LocationParameter};
use crate::spec::mix_order::MixOrder;
use crate::spec::stop::{Stop, StopSpec, contradiction};
use crate::spec::{
    ArrivalRule, Basic, BasicSpec, MixRule, ProcessGroup, ReplaySpec, Resolved, StreamSource,
    StreamSpec, TimeName, Totals, not_applicable, out_of_range,
};

/// uFLIP §5.1: "the remaining experiments were run with IO sizes of 32KB".
const IO_SIZE: u64 = 32 << 10;
/// uFLIP §5.1: 1,024 for SR, RR and SW.
const IO_COUNT: u64 = 1024;
/// The most I/Os of a run whose time is given: a trace of more than 6 GB.
pub(super) const TIMED_IOS: u64 = 1 << 28;
/// The year of uFLIP. It differs from the seed of the device states: otherwise random I/Os would
/// repeat the addresses of the state's random writes, in their order.
pub(super) const SEED: u64 = 2009;
/// uFLIP §3.2: "e.g. 100 ms" for Bursts; 0.1 ms is the smallest pause of Table 1.
const BURST_PAUSE_NS: u64 = 100_000_000;
const PAUSE_NS: u64 = 100_000;
const BURST: u64 = 10;
/// A write stream is one byte.
const WRITE_STREAM_MAX: u64 = 255;
/// A zone command is as long as the zone; sizes of I/Os are stored in 32 bits.
const ZONE_SIZE_MAX: u64 = u32::MAX as u64;
/// 1000 I/Os per second.
const INTERVAL_NS: u64 = 1_000_000;

/// A day: sums of pauses must fit the clock.
pub(super) const PAUSE_NS_MAX: u64 = 86_400_000_000_000;
/// A year.
const RUN_TIME_NS_MAX: u64 = 365 * PAUSE_NS_MAX;
/// More processes reveal nothing more about a device.
pub(super) const PARALLEL_DEGREE_MAX: u64 = 1024;
/// More outstanding I/Os only wait in a longer queue.
const QUEUE_DEPTH_MAX: u64 = 1024;

/// The part of a device that a pattern is checked against.
#[derive(Clone, Copy)]
pub(super) struct Space {
    pub(super) capacity: u64,
    pub(super) sector: u64,
}

pub(super) fn resolve_basic(spec: &BasicSpec, space: Space, seed: Option<u64>) -> Result<Resolved> {
    let degree = spec.parallel_degree.unwrap_or(1);
    if degree == 0 || degree > PARALLEL_DEGREE_MAX {
        return Err(out_of_range(
            "parallel_degree",
            degree,
            &format!("1 to {PARALLEL_DEGREE_MAX}"),
        ));
    }
    let queue_depth = queue_depth(spec.queue_depth)?;
    let (basic, mut canonical) = resolve_one(spec, space, 1, 0)?;
    let written = if basic.mode.is_write() { basic.io_size.0 * degree } else { 0 };
    let time_limit = time_limit_of(spec.run_time, spec.ramp_time, spec.stop.is_some())?;
    let io_count = spec.io_count.or(spec.run_time.map(|_| TIMED_IOS));
    let length = length(io_count, spec.io_ignore, spec.stop.as_deref(), degree, written)?;
    let (io_count, io_ignore) = length.counts();
    let seed = seed.or(spec.seed).unwrap_or(SEED);
    let arrivals = arrivals_of(spec.time, spec.interval)?;
    let mut streams = Vec::with_capacity(degree as usize);
    for process in 0..degree {
        let (basic, _) = resolve_one(spec, space, degree, process)?;
        streams.push(StreamSpec {
            source: StreamSource::Basic(basic),
            arrivals,
            total_ios: io_count,
            ignored_ios: io_ignore,
            time_limit,
            queue_depth,
            seed,
            jumps: process,
        });
    }
    insert_arrivals(&mut canonical, spec.time, arrivals);
    insert_times(&mut canonical, spec.run_time, spec.ramp_time);
    let map = canonical.as_object_mut().expect("a basic pattern is an object");
    map.insert("kind".into(), "basic".into());
    for (key, value) in [("parallel_degree", degree), ("queue_depth", queue_depth), ("seed", seed)]
    {
        map.insert(key.into(), value.into());
    }
    Ok(finish(canonical, streams, length))
}

/// Return the arrival rule; `None` for the time functions of a closed loop.
pub(super) fn arrivals_of(
    time: Option<TimeName>,
    interval: Option<u64>,
) -> Result<Option<ArrivalRule>> {
    let rule = match time {
        Some(TimeName::Fixed) => ArrivalRule::Fixed,
        Some(TimeName::Poisson) => ArrivalRule::Poisson,
        _ if interval.is_some() => {
            return Err(not_applicable("interval", "time 'fixed' or 'poisson'"));
        }
        _ => return Ok(None),
    };
    let interval = interval.unwrap_or(INTERVAL_NS);
    if interval == 0 || interval > PAUSE_NS_MAX {
        let allowed = format!("1 ns to {} (a day)", Nanos(PAUSE_NS_MAX));
        return Err(out_of_range("interval", interval, &allowed));
    }
    Ok(Some(rule(Nanos(interval))))
}

pub(super) fn insert_arrivals(
    canonical: &mut Value,
    time: Option<TimeName>,
    arrivals: Option<ArrivalRule>,
) {
    if let Some(rule) = arrivals {
        canonical["time"] = json!(time);
        canonical["interval"] = rule.interval().0.into();
    }
}

/// Return the limit of `run_time` after `ramp_time` [ns].
pub(super) fn time_limit_of(
    run_time: Option<u64>,
    ramp_time: Option<u64>,
    has_stop: bool,
) -> Result<TimeLimit> {
    for (key, time) in [("run_time", run_time), ("ramp_time", ramp_time)] {
        match time {
            Some(_) if has_stop => return Err(contradiction(key)),
            Some(ns) if ns == 0 || ns > RUN_TIME_NS_MAX => {
                let allowed = format!("1 ns to {}", Nanos(RUN_TIME_NS_MAX));
                return Err(out_of_range(key, ns, &allowed));
            }
            _ => {}
        }
    }
    let ramp = ramp_time.unwrap_or(0);
    Ok(TimeLimit { ramp: Nanos(ramp), end: Nanos(run_time.map_or(u64::MAX, |time| ramp + time)) })
}

pub(super) fn insert_times(canonical: &mut Value, run_time: Option<u64>, ramp_time: Option<u64>) {
    for (key, time) in [("run_time", run_time), ("ramp_time", ramp_time)] {
        if let Some(ns) = time {
            canonical[key] = ns.into();
        }
    }
}

/// Resolve one basic pattern for process `process` of `degree`, with its canonical form.
pub(super) fn resolve_one(
    spec: &BasicSpec,
    space: Space,
    degree: u64,
    process: u64,
) -> Result<(Basic, Value)> {
    let io_size = whole_sectors("io_size", spec.io_size.unwrap_or(IO_SIZE), space, 1)?;
    let max_size = if spec.mode.manages_zones() { ZONE_SIZE_MAX } else { IO_SIZE_MAX };
    if io_size > max_size {
        return Err(out_of_range("io_size", io_size, &format!("at most {max_size}")));
    }
    let io_shift = whole_sectors("io_shift", spec.io_shift.unwrap_or(0), space, 0)?;
    let (target_offset, target_size) = target_space(spec, space)?;
    let (location, location_values) = (spec.location, location_values(spec)?);
    let parts = location.parts(&location_values);
    let (time, pause, burst) = timing_of(spec)?;
    let (write_stream, hot_write_stream) = write_streams_of(spec)?;

    // A process gets its share of the target space, a partition its share of that. Both are rounded
    // down to whole I/Os, so that all stay aligned with the whole.
    let share = if degree == 1 { target_size } else { target_size / degree / io_size * io_size };
    let slots = share.saturating_sub(io_shift) / io_size / parts;
    if slots == 0 {
        return Err(Error::usage("The target space is too small for one I/O")
            .at(format!("parallel_degree {degree}, partitions {parts}, io_shift {io_shift}"))
            .got(format!("target_size {target_size}"))
            .allowed(format!(
                "at least {}",
                (u128::from(io_size) * u128::from(parts) + u128::from(io_shift))
                    * u128::from(degree)
            ))
            .action("enlarge target_size, or reduce io_size, io_shift or the number of parts"));
    }
    let basic = Basic {
        mode: spec.mode,
        location,
        location_values,
        pause: Nanos(pause),
        burst,
        io_size: Bytes(io_size),
        base: Bytes(target_offset + process * share + io_shift),
        slots,
        write_stream,
        hot_write_stream,
        content: content_of(spec)?,
    };
    let canonical = canonical_basic(spec, &basic, time, [io_shift, target_offset, target_size]);
    Ok((basic, canonical))
}

/// Return the offset and size of the target space, which must lie on the device.
fn target_space(spec: &BasicSpec, space: Space) -> Result<(u64, u64)> {
    let target_offset = whole_sectors("target_offset", spec.target_offset.unwrap_or(0), space, 0)?;
    let remaining_capacity = space.capacity.saturating_sub(target_offset);
    let target_size = spec.target_size.unwrap_or(remaining_capacity / space.sector * space.sector);
    if remaining_capacity == 0 {
        return Err(Error::usage("The target space begins beyond the device")
            .at("target_offset")
            .got(target_offset.to_string())
            .allowed(format!("below {} ({})", space.capacity, format_bytes(space.capacity)))
            .action("choose a smaller target_offset"));
    }
    if target_size > remaining_capacity {
        let end = u128::from(target_offset) + u128::from(target_size);
        return Err(Error::usage("The target space lies outside the device")
            .at(format!("target_offset {target_offset}, target_size {target_size}"))
            .got(format!("an end at byte {end}"))
            .allowed(format!("up to {} ({})", space.capacity, format_bytes(space.capacity)))
            .action("choose a smaller target_size or target_offset"));
    }
    Ok((target_offset, whole_sectors("target_size", target_size, space, 1)?))
}

/// Return the canonical form of a basic pattern: every parameter that its functions use.
fn canonical_basic(
    spec: &BasicSpec,
    basic: &Basic,
    time: TimeName,
    [io_shift, target_offset, target_size]: [u64; 3],
) -> Value {
    let mut canonical = json!({
        "mode": spec.mode, "location": spec.location, "time": time, "io_size": basic.io_size.0,
        "io_shift": io_shift, "target_offset": target_offset, "target_size": target_size,
    });
    let map = canonical.as_object_mut().expect("a resolved pattern is an object");
    // As it was before parameters with the default 0 existed.
    let values = basic.location.entry().parameters.iter().zip(&basic.location_values);
    for (parameter, value) in values.filter(|(each, value)| (each.default, **value) != (0, 0)) {
        map.insert(parameter.name.into(), whole_number(*value));
    }
    // Without a named stream the canonical form stays as before streams existed.
    if basic.write_stream > 0 {
        map.insert("write_stream".into(), basic.write_stream.into());
    }
    if basic.hot_write_stream != basic.write_stream {
        map.insert("hot_write_stream".into(), basic.hot_write_stream.into());
    }
    if let Some(content) = basic.content {
        map.insert("compress_percent".into(), content.compress_percent.into());
        map.insert("duplicate_percent".into(), content.duplicate_percent.into());
    }
    if matches!(time, TimeName::Pause | TimeName::Burst) {
        map.insert("pause".into(), basic.pause.0.into());
    }
    if let (TimeName::Burst, Some(burst)) = (time, basic.burst) {
        map.insert("burst".into(), burst.into());
    }
    canonical
}

/// Return the values of the parameters of the location, in the order of its entry.
fn location_values(spec: &BasicSpec) -> Result<Vec<i128>> {
    for location in LOCATIONS {
        let given =
            |parameter: &&LocationParameter| spec.location_values.contains_key(parameter.name);
        if let Some(parameter) = location.parameters.iter().find(given)
            && location.name != spec.location.entry().name
        {
            let owner = format!("location '{}'", location.name);
            return Err(not_applicable(parameter.name, &owner));
        }
    }
    let value = |parameter: &LocationParameter| {
        let LocationParameter { name, default, least, most, .. } = *parameter;
        let value = spec.location_values.get(name).copied().unwrap_or(default);
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        let is_open = most == u64::MAX.into();
        let upper = if is_open { "or more".to_owned() } else { format!("to {most}") };
        Err(out_of_range(name, value, &format!("{least} {upper}")))
    };
    spec.location.entry().parameters.iter().map(value).collect()
}

/// Return a value of a location as JSON.
fn whole_number(value: i128) -> Value {
    u64::try_from(value).map_or_else(|_| Value::from(value as i64), Value::from)
}

/// Return the stream of writes, and that of writes to the hot area, which defaults to the former.
fn write_streams_of(spec: &BasicSpec) -> Result<(u8, u8)> {
    let (all, hot) = (spec.write_stream, spec.hot_write_stream);
    for (key, stream) in [("write_stream", all), ("hot_write_stream", hot)] {
        match stream {
            Some(_) if spec.mode != Mode::Write => return Err(not_applicable(key, "mode 'write'")),
            Some(got) if got > WRITE_STREAM_MAX => {
                return Err(out_of_range(key, got, &format!("0 to {WRITE_STREAM_MAX}")));
            }
            _ => {}
        }
    }
    if hot.is_some() && !spec.location.entry().has_hot_area {
        return Err(not_applicable("hot_write_stream", "location 'hotcold'"));
    }
    let all = all.unwrap_or(0);
    Ok((all as u8, hot.unwrap_or(all) as u8))
}

/// Return the content of the writes; `None` if the specification leaves it to the device.
fn content_of(spec: &BasicSpec) -> Result<Option<ContentShares>> {
    let shares = [
        ("compress_percent", spec.compress_percent),
        ("duplicate_percent", spec.duplicate_percent),
    ];
    for (key, percent) in shares {
        match percent {
            Some(_) if spec.mode != Mode::Write => return Err(not_applicable(key, "mode 'write'")),
            Some(got) if got > 100 => return Err(out_of_range(key, got, "0 to 100")),
            _ => {}
        }
    }
    let [compress_percent, duplicate_percent] = shares.map(|(_, percent)| percent);
    let is_given = compress_percent.is_some() || duplicate_percent.is_some();
    Ok(is_given.then(|| ContentShares {
        compress_percent: compress_percent.unwrap_or(0) as u8,
        duplicate_percent: duplicate_percent.unwrap_or(0) as u8,
    }))
}

/// Return the time function, its pause [ns] and its burst (`None`: no pauses).
fn timing_of(spec: &BasicSpec) -> Result<(TimeName, u64, Option<u64>)> {
    let name = spec.time.unwrap_or(TimeName::Consecutive);
    let has_pauses = matches!(name, TimeName::Pause | TimeName::Burst);
    if spec.pause.is_some() && !has_pauses {
        return Err(not_applicable("pause", "time 'pause' or 'burst'"));
    }
    if spec.burst.is_some() && name != TimeName::Burst {
        return Err(not_applicable("burst", "time 'burst'"));
    }
    Ok(match name {
        TimeName::Consecutive | TimeName::Fixed | TimeName::Poisson => (name, 0, None),
        // uFLIP §3.1: pause(p) = burst(1, p).
        TimeName::Pause => (name, checked_pause(spec.pause.unwrap_or(PAUSE_NS))?, Some(1)),
        TimeName::Burst => {
            // uFLIP §3.1: consecutive = burst(0, -).
            let burst = Some(spec.burst.unwrap_or(BURST)).filter(|burst| *burst > 0);
            if burst.is_none() && spec.pause.is_some() {
                return Err(not_applicable("pause", "a burst of 1 or more"));
            }
            let pause =
                burst.map_or(Ok(0), |_| checked_pause(spec.pause.unwrap_or(BURST_PAUSE_NS)))?;
            (if burst.is_some() { name } else { TimeName::Consecutive }, pause, burst)
        }
    })
}

fn checked_pause(pause_ns: u64) -> Result<u64> {
    if pause_ns > PAUSE_NS_MAX {
        let allowed = format!("at most {} (a day)", Nanos(PAUSE_NS_MAX));
        return Err(out_of_range("pause", pause_ns, &allowed));
    }
    Ok(pause_ns)
}

pub(super) fn queue_depth(depth: Option<u64>) -> Result<u64> {
    let depth = depth.unwrap_or(1);
    if depth == 0 || depth > QUEUE_DEPTH_MAX {
        return Err(out_of_range("queue_depth", depth, &format!("1 to {QUEUE_DEPTH_MAX}")));
    }
    Ok(depth)
}

/// The length of a run.
pub(super) enum Length {
    Fixed {
        io_count: u64,
        io_ignore: u64,
    },
    /// Determined by the stop rule.
    Judged(Stop),
    /// Each part of a parallel pattern has its own.
    OfParts,
}

impl Length {
    /// Return (io_count, io_ignore); for a stop rule, the upper bound.
    pub(super) fn counts(&self) -> (u64, u64) {
        match self {
            Length::Fixed { io_count, io_ignore } => (*io_count, *io_ignore),
            Length::Judged(stop) => (stop.max_ios, 0),
            Length::OfParts => (0, 0),
        }
    }
}

/// Resolve the length of a pattern that writes `written` bytes per counted I/O.
pub(super) fn length(
    io_count: Option<u64>,
    io_ignore: Option<u64>,
    stop: Option<&StopSpec>,
    processes: u64,
    written: u64,
) -> Result<Length> {
    let Some(stop) = stop else {
        let (io_count, io_ignore) = counts(io_count, io_ignore)?;
        return Ok(Length::Fixed { io_count, io_ignore });
    };
    match (io_count, io_ignore) {
        (Some(_), _) => Err(contradiction("io_count")),
        (None, Some(_)) => Err(contradiction("io_ignore")),
        (None, None) => Ok(Length::Judged(stop.resolve(processes)?.within_bytes(written)?)),
    }
}

pub(super) fn counts(io_count: Option<u64>, io_ignore: Option<u64>) -> Result<(u64, u64)> {
    let io_count = io_count.unwrap_or(IO_COUNT);
    let io_ignore = io_ignore.unwrap_or(0);
    if io_count == 0 {
        return Err(out_of_range("io_count", 0, "1 or more"));
    }
    if io_ignore >= io_count {
        return Err(out_of_range("io_ignore", io_ignore, &format!("0 to {}", io_count - 1)));
    }
    Ok((io_count, io_ignore))
}

fn whole_sectors(name: &str, value: u64, space: Space, minimum: u64) -> Result<u64> {
    if value < minimum || !value.is_multiple_of(space.sector) {
        let from = if minimum == 0 { 0 } else { space.sector };
        return Err(out_of_range(
            name,
            value,
            &format!("multiples of the sector of {} bytes, from {from}", space.sector),
        ));
    }
    Ok(value)
}

pub(super) fn finish(mut canonical: Value, streams: Vec<StreamSpec>, length: Length) -> Resolved {
    let mut totals = Totals::default();
    for stream in &streams {
        totals.total_ios = totals.total_ios.saturating_add(stream.total_ios);
        let mut pause_ns = 0;
        for (basic, ios) in ios_per_pattern(stream) {
            let bytes = ios.saturating_mul(basic.io_size.0);
            match basic.mode {
                Mode::Read => totals.bytes_read = totals.bytes_read.saturating_add(bytes),
                Mode::Write | Mode::Append => {
                    totals.bytes_written = totals.bytes_written.saturating_add(bytes);
                }
                Mode::Trim | Mode::Reset => {
                    totals.bytes_trimmed = totals.bytes_trimmed.saturating_add(bytes);
                }
                Mode::Finish | Mode::Open | Mode::Close => {}
            }
            let pauses = basic.burst.map_or(0, |burst| ios.saturating_sub(1) / burst);
            pause_ns = pauses.saturating_mul(basic.pause.0).saturating_add(pause_ns);
        }
        if let Some(rule) = stream.arrivals {
            pause_ns = rule.interval().0.saturating_mul(stream.total_ios);
        }
        pause_ns = pause_ns.min(stream.time_limit.end.0);
        totals.pause_ns = totals.pause_ns.max(pause_ns);
    }
    let stop = match length {
        Length::Fixed { io_count, io_ignore } => {
            canonical["io_count"] = io_count.into();
            canonical["io_ignore"] = io_ignore.into();
            None
        }
        Length::Judged(stop) => {
            canonical["stop"] = stop.canonical();
            Some(stop)
        }
        Length::OfParts => None,
    };
    let round = match &streams[0].source {
        StreamSource::Mix { order: MixRule::Ratio(ratio), .. } => ratio + 1,
        StreamSource::Mix { .. } | StreamSource::Basic(_) | StreamSource::List(_) => 1,
    };
    let groups = vec![ProcessGroup { processes: streams.len(), round }];
    Resolved { canonical, streams, totals, stop, verified: false, groups }
}

/// Return the number of I/Os of each basic pattern of a process.
fn ios_per_pattern(stream: &StreamSpec) -> Vec<(&Basic, u64)> {
    match &stream.source {
        StreamSource::Basic(basic) => vec![(basic, stream.total_ios)],
        StreamSource::List(_) => Vec::new(),
        StreamSource::Mix { parts, order } => {
            let mut ios = vec![0; parts.len()];
            if let MixRule::Ratio(ratio) = order {
                ios[1] = stream.total_ios / (ratio + 1);
                ios[0] = stream.total_ios - ios[1];
            } else if stream.time_limit.end != TimeLimit::NONE.end {
                // An upper bound: the expected shares suffice.
                let weights = match order {
                    MixRule::Weighted { weights, .. } => weights.clone(),
                    MixRule::Drawn { first_percent } => vec![*first_percent, 100 - first_percent],
                    MixRule::Ratio(_) => unreachable!("counted above"),
                };
                let whole = u128::from(weights.iter().sum::<u64>());
                let share = |weight: u64| u128::from(stream.total_ios) * u128::from(weight) / whole;
                ios = weights.into_iter().map(|weight| share(weight) as u64).collect();
            } else {
                let mut mix_order = MixOrder::new(stream);
                (0..stream.total_ios).for_each(|_| ios[usize::from(mix_order.next_part())] += 1);
            }
            parts.iter().zip(ios).collect()
        }
    }
}

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
        time_limit: TimeLimit::NONE,
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
