//! The validation of a mix, and its defaults.
//!
//! **Source**: uFLIP (2009) §3.1, mixed patterns.
//! **Faithful**: two patterns by a ratio; every part behaves as it would alone.
//! **Simplified**: a part is a basic pattern, and pauses, counts and queues belong to the mix.
//! **Ambiguous**: nothing; the counts are those of [`crate::spec`].

use serde_json::{Value, json};
use uflip_core::{Error, Result};

use crate::spec::resolve::{
    SEED, Space, TIMED_IOS, arrivals_of, finish, insert_arrivals, insert_times, length,
    queue_depth, resolve_one, time_limit_of,
};
use crate::spec::{
    ArrivalRule, Basic, BasicSpec, MixRule, MixSpec, Resolved, StreamSource, StreamSpec, TimeName,
    not_applicable, out_of_range,
};

/// The I/Os of a drawn mix are drawn a second time for counting, at some hundred million per second.
const DRAWN_IOS_MAX: u64 = 1 << 28;
/// A component of a mix is one byte, and is drawn or counted in a loop over all of them.
const MIX_PARTS_MAX: usize = 64;
const WEIGHT_MAX: u64 = 1_000_000;

pub(super) fn resolve_mix(spec: &MixSpec, space: Space, seed: Option<u64>) -> Result<Resolved> {
    let order = order_of(spec)?;
    for (name, component) in named_parts(spec) {
        let forbidden = [
            ("io_count", component.io_count.is_some()),
            ("io_ignore", component.io_ignore.is_some()),
            ("seed", component.seed.is_some()),
            ("parallel_degree", component.parallel_degree.is_some()),
            ("queue_depth", component.queue_depth.is_some()),
            ("stop", component.stop.is_some()),
            ("run_time", component.run_time.is_some()),
            ("ramp_time", component.ramp_time.is_some()),
            ("interval", component.interval.is_some()),
            ("time", matches!(component.time, Some(TimeName::Fixed | TimeName::Poisson))),
        ];
        if let Some((key, _)) = forbidden.into_iter().find(|(_, is_set)| *is_set) {
            return Err(Error::usage(format!("'{key}' does not apply to one part of a mix"))
                .at(format!("pattern '{name}' of the mix"))
                .action(format!("give '{key}' to the mix itself")));
        }
    }
    let queue_depth = queue_depth(spec.queue_depth)?;
    let seed = seed.or(spec.seed).unwrap_or(SEED);
    let mut parts = Vec::new();
    let mut parts_json = Vec::new();
    for (_, component) in named_parts(spec) {
        let (part, part_json) = resolve_one(component, space, 1, 0)?;
        parts.push(part);
        parts_json.push(part_json);
    }
    let written = mix_bytes_per_count(&parts, &order);
    let time_limit = time_limit_of(spec.run_time, spec.ramp_time, spec.stop.is_some())?;
    let io_count = spec.io_count.or(spec.run_time.map(|_| TIMED_IOS));
    let length = length(io_count, spec.io_ignore, spec.stop.as_deref(), 1, written)?;
    let (io_count, io_ignore) = length.counts();
    let scale = |count: u64| match &order {
        MixRule::Ratio(ratio) => count.checked_mul(ratio.saturating_add(1)).ok_or_else(|| {
            out_of_range("ratio", ratio, "io_count × (ratio + 1) must fit a counter")
        }),
        // They are counted one by one below; too many are refused here.
        MixRule::Drawn { .. } | MixRule::Weighted { .. } if count > DRAWN_IOS_MAX => {
            let allowed = format!("at most {DRAWN_IOS_MAX}, drawn or by weights");
            Err(out_of_range("io_count", count, &allowed))
        }
        MixRule::Drawn { .. } | MixRule::Weighted { .. } => Ok(count),
    };
    let (total_ios, ignored_ios) = (scale(io_count)?, scale(io_ignore)?);
    let arrivals = mixed_arrivals(spec)?;
    let mut canonical = json!({"kind": "mix", "queue_depth": queue_depth, "seed": seed});
    insert_mix(&mut canonical, parts_json, &order);
    let stream = StreamSpec {
        source: StreamSource::Mix { parts, order },
        arrivals,
        total_ios,
        ignored_ios,
        time_limit,
        queue_depth,
        seed,
        jumps: 0,
    };
    insert_arrivals(&mut canonical, spec.time, arrivals);
    insert_times(&mut canonical, spec.run_time, spec.ramp_time);
    Ok(finish(canonical, vec![stream], length))
}

/// Return the patterns of a mix with their names in the specification.
fn named_parts(spec: &MixSpec) -> impl Iterator<Item = (&'static str, &BasicSpec)> {
    let first_two = [("first", &spec.first), ("second", &spec.second)];
    first_two.into_iter().chain(spec.others.iter().map(|part| ("others", part)))
}

fn insert_mix(canonical: &mut Value, parts: Vec<Value>, order: &MixRule) {
    let mut parts = parts.into_iter();
    for name in ["first", "second"] {
        canonical[name] = parts.next().expect("a mix has two patterns or more");
    }
    match order {
        MixRule::Ratio(ratio) => canonical["ratio"] = (*ratio).into(),
        MixRule::Drawn { first_percent } => canonical["first_percent"] = (*first_percent).into(),
        MixRule::Weighted { weights, drawn } => {
            canonical["others"] = parts.collect();
            canonical["weights"] = weights.clone().into();
            canonical["drawn"] = (*drawn).into();
        }
    }
}

/// Return the arrival rule of a mix, which has no other time functions and then no pauses in its
/// parts.
fn mixed_arrivals(spec: &MixSpec) -> Result<Option<ArrivalRule>> {
    let arrivals = arrivals_of(spec.time, spec.interval)?;
    if spec.time.is_some() && arrivals.is_none() {
        return Err(Error::usage("A mix as a whole has no such time function")
            .at("time")
            .allowed("fixed, poisson")
            .action("give pause or burst to one of its patterns"));
    }
    let has_pauses = |part: &BasicSpec| part.time.is_some_and(|time| time != TimeName::Consecutive);
    if arrivals.is_some() && named_parts(spec).any(|(_, part)| has_pauses(part)) {
        return Err(not_applicable("pause", "a closed loop"));
    }
    Ok(arrivals)
}

/// Return the most bytes that a mix writes per counted I/O.
pub(super) fn mix_bytes_per_count(parts: &[Basic], order: &MixRule) -> u64 {
    let bytes = |basic: &Basic| if basic.mode.is_write() { basic.io_size.0 } else { 0 };
    match order {
        MixRule::Ratio(ratio) => {
            bytes(&parts[0]).saturating_mul(*ratio).saturating_add(bytes(&parts[1]))
        }
        MixRule::Drawn { .. } | MixRule::Weighted { .. } => {
            parts.iter().map(bytes).max().unwrap_or(0)
        }
    }
}

/// Return the order of a mix of weights.
fn weighted_order(spec: &MixSpec, weights: &[u64]) -> Result<MixRule> {
    let parts = 2 + spec.others.len();
    if spec.ratio.is_some() || spec.first_percent.is_some() {
        return Err(Error::usage("The order of the mix is given twice")
            .at("ratio, first_percent, weights")
            .got("weights and another one")
            .allowed("one of the three")
            .action("omit the others"));
    }
    if parts > MIX_PARTS_MAX {
        return Err(out_of_range("others", spec.others.len() as u64, "at most 62"));
    }
    if weights.len() != parts {
        return Err(Error::usage("Each pattern of the mix needs a weight")
            .at("weights")
            .got(format!("{} weights", weights.len()))
            .allowed(format!("{parts}: one for each pattern, in order"))
            .action("give a weight for first, second and each of others"));
    }
    if let Some(weight) = weights.iter().find(|weight| !(1..=WEIGHT_MAX).contains(*weight)) {
        return Err(out_of_range("weights", *weight, &format!("1 to {WEIGHT_MAX} each")));
    }
    Ok(MixRule::Weighted { weights: weights.to_vec(), drawn: spec.drawn.unwrap_or(false) })
}

/// Return the order of a mix: exactly one of three keys must be given.
fn order_of(spec: &MixSpec) -> Result<MixRule> {
    if let Some(weights) = &spec.weights {
        return weighted_order(spec, weights);
    }
    if !spec.others.is_empty() || spec.drawn.is_some() {
        let key = if spec.others.is_empty() { "drawn" } else { "others" };
        return Err(not_applicable(key, "a mix with weights"));
    }
    match (spec.ratio, spec.first_percent) {
        (Some(0), None) => {
            Err(out_of_range("ratio", 0, "1 or more (n of the first, then 1 of the second)"))
        }
        (Some(ratio), None) => Ok(MixRule::Ratio(ratio)),
        (None, Some(first_percent @ 1..=99)) => Ok(MixRule::Drawn { first_percent }),
        (None, Some(other)) => Err(out_of_range("first_percent", other, "1 to 99")),
        (ratio, _) => {
            let got = if ratio.is_some() { "both" } else { "neither" };
            Err(Error::usage("A mix needs a ratio, a share of its first pattern, or weights")
                .at("ratio, first_percent, weights")
                .got(got)
                .allowed(
                    "ratio: n of the first, then 1 of the second; first_percent: drawn at random; \
                     weights: one for each pattern",
                )
                .action("give one of the three"))
        }
    }
}
