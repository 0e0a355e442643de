//! The validation of a pattern of any kind against a device; parallel patterns.
//!
//! **Source**: uFLIP (2009) §3.1, parallel patterns.
//! **Faithful**: every pattern of a parallel one behaves as it would alone.
//! **Simplified**: no nesting: a part is a basic pattern or a mix.
//! **Ambiguous**: the stop rule belongs to the whole, and never to one of the patterns: see `stop`.

use serde_json::json;
use uflip_core::{Bytes, Error, Nanos, Result};

use crate::drive::TimeLimit;
use crate::spec::mix::{mix_bytes_per_count, resolve_mix};
use crate::spec::resolve::{
    Length, PARALLEL_DEGREE_MAX, PAUSE_NS_MAX, SEED, Space, finish, resolve_basic, resolve_replay,
};
use crate::spec::stop::StopSpec;
use crate::spec::{
    Basic, ParallelSpec, PatternSpec, Resolved, StreamSource, StreamSpec, out_of_range,
};

/// The trace of more I/Os would need more than 96 GB.
const TOTAL_IOS_MAX: u64 = 1 << 32;
/// A century of pauses in total.
const TOTAL_PAUSE_NS_MAX: u64 = 36_525 * PAUSE_NS_MAX;

impl PatternSpec {
    /// Validate against a device of `capacity` and `sector` bytes, and fill in every default.
    ///
    /// # Errors
    /// Sizes that are zero or not whole sectors; a target space outside the device or smaller than
    /// an I/O; a ratio, burst, degree or number of partitions of 0; parameters that the chosen
    /// functions do not use; an `io_ignore` that leaves no I/O.
    pub fn resolve(&self, capacity: Bytes, sector: Bytes) -> Result<Resolved> {
        let space = Space { capacity: capacity.0, sector: sector.0 };
        let resolved = self.resolve_in(space, None)?;
        let total = resolved.totals.total_ios;
        let ends_in_time = |stream: &StreamSpec| stream.time_limit.end != TimeLimit::NONE.end;
        if total > TOTAL_IOS_MAX && !resolved.streams.iter().all(ends_in_time) {
            return Err(out_of_range(
                "io_count",
                total,
                &format!("at most {TOTAL_IOS_MAX} in all"),
            ));
        }
        if resolved.totals.pause_ns > TOTAL_PAUSE_NS_MAX {
            let allowed = format!("{} (a century) of pauses in all", Nanos(TOTAL_PAUSE_NS_MAX));
            return Err(out_of_range("pause", resolved.totals.pause_ns, &allowed));
        }
        resolved.check_content()?;
        Ok(resolved)
    }

    fn resolve_in(&self, space: Space, seed: Option<u64>) -> Result<Resolved> {
        match self {
            PatternSpec::Basic(basic) => resolve_basic(basic, space, seed),
            PatternSpec::Mix(mix) => resolve_mix(mix, space, seed),
            PatternSpec::Parallel(parallel) => resolve_parallel(parallel, space, seed),
            PatternSpec::Replay(replay) => resolve_replay(replay, space),
        }
    }
}

fn resolve_parallel(spec: &ParallelSpec, space: Space, seed: Option<u64>) -> Result<Resolved> {
    let degree = spec.patterns.len() as u64;
    if degree == 0 || degree > PARALLEL_DEGREE_MAX {
        return Err(out_of_range("patterns", degree, &format!("1 to {PARALLEL_DEGREE_MAX}")));
    }
    let seed = seed.or(spec.seed).unwrap_or(SEED);
    let processes = spec.patterns.iter().map(processes_of).sum();
    let mut resolved = Vec::new();
    for pattern in &spec.patterns {
        let rule = spec.stop.as_deref().map(|stop| (stop, processes));
        resolved.push(resolve_part(pattern, rule, space, seed)?);
    }
    let stop = match &spec.stop {
        None => None,
        Some(stop) => {
            let written = resolved.iter().map(bytes_per_count).sum();
            Some(stop.resolve(processes)?.within_bytes(written)?)
        }
    };
    let mut canonical = json!({"kind": "parallel", "seed": seed});
    let (mut streams, mut groups, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
    for mut part in resolved {
        if let Some(stop) = &stop {
            part.canonical.as_object_mut().expect("a pattern is an object").remove("stop");
            let round = part.groups[0].round;
            part.streams.iter_mut().for_each(|stream| stream.total_ios = stop.max_ios * round);
        }
        streams.extend(part.streams);
        groups.extend(part.groups);
        patterns.push(part.canonical);
    }
    for (process, stream) in streams.iter_mut().enumerate() {
        stream.jumps = process as u64;
    }
    canonical["patterns"] = patterns.into();
    let length = stop.map_or(Length::OfParts, Length::Judged);
    Ok(Resolved { groups, ..finish(canonical, streams, length) })
}

/// Resolve one of the patterns, with the common rule for `processes` processes.
fn resolve_part(
    pattern: &PatternSpec,
    rule: Option<(&StopSpec, u64)>,
    space: Space,
    seed: u64,
) -> Result<Resolved> {
    let mut pattern = pattern.clone();
    let part_stop = match &mut pattern {
        PatternSpec::Basic(basic) => &mut basic.stop,
        PatternSpec::Mix(mix) => &mut mix.stop,
        PatternSpec::Parallel(_) | PatternSpec::Replay(_) => {
            return Err(Error::usage(
                "A parallel pattern can contain only basic patterns and mixes",
            )
            .at("patterns")
            .action("list all patterns in one"));
        }
    };
    if part_stop.is_some() {
        return Err(Error::usage("The patterns of a parallel pattern end together")
            .at("stop")
            .got("'stop' in one of 'patterns'")
            .action("give 'stop' to the parallel pattern itself, beside 'patterns'"));
    }
    if let Some((stop, processes)) = rule {
        // The byte budget applies to all patterns together.
        let max_ios = Some(stop.resolve(processes)?.max_ios);
        *part_stop = Some(Box::new(StopSpec { max_ios, max_bytes_written: None, ..stop.clone() }));
    }
    pattern.resolve_in(space, Some(seed))
}

/// Return the number of processes of a part.
fn processes_of(pattern: &PatternSpec) -> u64 {
    match pattern {
        PatternSpec::Basic(basic) => basic.parallel_degree.unwrap_or(1),
        PatternSpec::Mix(_) | PatternSpec::Parallel(_) | PatternSpec::Replay(_) => 1,
    }
}

/// Return the bytes that all processes of a part write per counted I/O.
fn bytes_per_count(part: &Resolved) -> u64 {
    let bytes = |basic: &Basic| if basic.mode.is_write() { basic.io_size.0 } else { 0 };
    let stream_bytes = |stream: &StreamSpec| match &stream.source {
        StreamSource::Basic(basic) => bytes(basic),
        StreamSource::Mix { parts, order } => mix_bytes_per_count(parts, order),
        StreamSource::List(_) => 0,
    };
    part.streams.iter().map(stream_bytes).sum()
}
