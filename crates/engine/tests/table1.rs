//! Patterns against a naive oracle written straight from uFLIP's Table 1 (formulas of i, wide
//! integers, no state), over random parameters.

use proptest::prelude::*;
use serde_json::{Value, json};
use uflip_core::{Bytes, Mode, Nanos};
use uflip_engine::{NextRequest, Pattern, PatternSpec, Resolved, When};

const SECTOR: u64 = 512;
const CAPACITY: u64 = 1 << 40;

fn resolve(spec: &Value) -> Resolved {
    let parsed = PatternSpec::parse(&spec.to_string()).expect("a valid specification");
    parsed.resolve(Bytes(CAPACITY), Bytes(SECTOR)).expect("the pattern fits the device")
}

fn first_ios(resolved: &Resolved, stream: usize, count: usize) -> Vec<NextRequest> {
    let mut pattern = Pattern::new(&resolved.streams[stream]);
    (0..count).map(|_| pattern.next_io()).collect()
}

/// Table 1's LBA(IOᵢ) in its readings (see `location/table1.rs`): wrapped inside the target space.
fn table1(spec: &Value, i: i128) -> i128 {
    let get = |name: &str| i128::from(spec[name].as_i64().expect("a number"));
    let (io_size, io_shift) = (get("io_size"), get("io_shift"));
    let (offset, size) = (get("target_offset"), get("target_size"));
    let slots = (size - io_shift) / io_size;
    let relative = match spec["location"].as_str().expect("a text") {
        "sequential" => (i % slots) * io_size,
        "ordered" => (get("incr") * i).rem_euclid(slots) * io_size,
        "partitioned" => {
            let partitions = get("partitions");
            let partition_size = slots / partitions * io_size;
            (i % partitions) * partition_size + (i / partitions * io_size) % partition_size
        }
        other => unreachable!("{other} is not a function of i alone"),
    };
    offset + io_shift + relative
}

prop_compose! {
    /// Parameters that make a pattern: at least as many slots as partitions.
    fn parameters()(
        io_sectors in 1u64..300, shift in 0u64..300, offset in 0u64..5_000, slots in 1u64..700,
        odd in 0u64..300, incr in -700i64..700, partitions in 1u64..40, location in 0usize..3,
        write in any::<bool>(),
    ) -> Value {
        let slots = slots.max(partitions);
        let name = ["sequential", "ordered", "partitioned"][location];
        let mut spec = json!({
            "kind": "basic", "mode": if write { "write" } else { "read" }, "location": name,
            "io_size": io_sectors * SECTOR, "io_shift": shift * SECTOR,
            "target_offset": offset * SECTOR,
            // A rest shorter than an I/O at the end must never be used.
            "target_size": (slots * io_sectors + shift + odd % io_sectors) * SECTOR,
            "io_count": 2_000,
        });
        match name {
            "ordered" => spec["incr"] = incr.into(),
            "partitioned" => spec["partitions"] = partitions.into(),
            _ => {}
        }
        spec
    }
}

proptest! {
    #[test]
    fn addresses_follow_table_1(spec in parameters()) {
        for (i, next) in first_ios(&resolve(&spec), 0, 2_000).iter().enumerate() {
            prop_assert_eq!(i128::from(next.io.offset.0), table1(&spec, i as i128), "I/O {}", i);
            prop_assert_eq!(next.io.size.0, spec["io_size"].as_u64().unwrap());
            prop_assert_eq!(next.when, When::After(Nanos(0)));
        }
    }

    #[test]
    fn random_addresses_are_aligned_slots_inside_the_target(
        io_sectors in 1u64..300, shift in 0u64..300, slots in 1u64..700, seed in any::<u64>(),
    ) {
        let size = (slots * io_sectors + shift) * SECTOR;
        let spec = json!({
            "kind": "basic", "mode": "read", "location": "random", "io_size": io_sectors * SECTOR,
            "io_shift": shift * SECTOR, "target_offset": 4096, "target_size": size, "seed": seed,
        });
        let resolved = resolve(&spec);
        let ios = first_ios(&resolved, 0, 500);
        for next in &ios {
            let relative = next.io.offset.0 - 4096 - shift * SECTOR;
            prop_assert_eq!(relative % (io_sectors * SECTOR), 0);
            prop_assert!(next.io.offset.0 + next.io.size.0 <= 4096 + size);
        }
        prop_assert_eq!(ios, first_ios(&resolved, 0, 500), "a pure function of the specification");
    }

    #[test]
    fn pause_separates_bursts(burst in 1u64..50, pause in 1u64..1_000_000) {
        let spec = json!({"kind": "basic", "mode": "write", "location": "sequential",
            "time": "burst", "burst": burst, "pause": pause});
        for (i, next) in (0u64..).zip(first_ios(&resolve(&spec), 0, 300)) {
            let expected = if i > 0 && i % burst == 0 { pause } else { 0 };
            prop_assert_eq!(next.when, When::After(Nanos(expected)), "before I/O {}", i);
        }
    }

    /// Each part of a drawn mix is the sequence that its pattern makes alone, and how often each is
    /// drawn, and drawn twice in a row, is what independent draws give (five standard deviations).
    #[test]
    fn drawn_mix_interleaves_randomly(percent in 1u64..100, seed in any::<u64>()) {
        const IOS: usize = 10_000;
        let reads = json!({"mode": "read", "location": "random", "io_size": 4096});
        let writes = json!({"mode": "write", "location": "ordered", "incr": 3, "io_size": 8192});
        let resolved = resolve(&json!({"kind": "mix", "first_percent": percent, "seed": seed,
            "first": reads, "second": writes, "io_count": IOS, "io_ignore": 7}));
        prop_assert_eq!((resolved.streams[0].total_ios, resolved.streams[0].ignored_ios), (10_000, 7));
        let mixed = first_ios(&resolved, 0, IOS);
        for (mode, mut alone) in [(Mode::Read, reads), (Mode::Write, writes)] {
            alone["kind"] = "basic".into();
            alone["seed"] = seed.into();
            let of_mix: Vec<NextRequest> =
                mixed.iter().filter(|next| next.io.mode == mode).copied().collect();
            prop_assert_eq!(&of_mix, &first_ios(&resolve(&alone), 0, of_mix.len()));
            let bytes: u64 = of_mix.iter().map(|next| next.io.size.0).sum();
            let totals = resolved.totals;
            let expected = if mode == Mode::Read { totals.bytes_read } else { totals.bytes_written };
            prop_assert_eq!(bytes, expected, "the totals match the I/Os");
        }
        let is_first: Vec<bool> = mixed.iter().map(|next| next.io.mode == Mode::Read).collect();
        let share = percent as f64 / 100.0;
        let close = |count: usize, chance: f64| {
            let (mean, n) = (IOS as f64 * chance, IOS as f64);
            // Pairs overlap: their variance is at most three times that of independent ones.
            (count as f64 - mean).abs() <= 5.0 * (3.0 * n * chance * (1.0 - chance)).sqrt() + 5.0
        };
        prop_assert!(close(is_first.iter().filter(|first_ios| **first_ios).count(), share));
        let pairs = is_first.windows(2).filter(|pair| pair[0] && pair[1]).count();
        prop_assert!(close(pairs, share * share), "{} pairs at {} %", pairs, percent);
    }

    /// Of weights the next I/O is of the pattern that lags most behind its share, the first of
    /// several: with n I/Os issued after it, c of pattern k, that is the largest n·w − c·Σw.
    #[test]
    fn weighted_mix_follows_shares(
        weights in prop::collection::vec(1u64..20, 2..7), drawn in any::<bool>(), seed in any::<u64>(),
    ) {
        let part = |k: usize| json!({"mode": if k.is_multiple_of(2) { "read" } else { "write" },
            "location": "sequential", "io_size": (k + 1) * 4096, "target_offset": k << 30,
            "target_size": 1 << 30});
        let (ios, sum) = (2000, weights.iter().sum::<u64>());
        let others: Vec<Value> = (2..weights.len()).map(part).collect();
        let resolved = resolve(&json!({"kind": "mix", "first": part(0), "second": part(1),
            "others": others, "weights": weights, "drawn": drawn, "io_count": ios, "seed": seed}));
        prop_assert_eq!(resolved.streams[0].total_ios, ios);
        let mut issued = vec![0u64; weights.len()];
        let (mut read, mut written) = (0, 0);
        for (i, next) in first_ios(&resolved, 0, ios as usize).into_iter().enumerate() {
            let k = (next.io.size.0 / 4096 - 1) as usize;
            prop_assert_eq!(next.io.offset.0, (k as u64) * (1 << 30) + issued[k] * next.io.size.0);
            let lag = |k: usize| (i as i64 + 1) * weights[k] as i64 - (issued[k] * sum) as i64;
            let most = (0..weights.len()).rev().max_by_key(|k| lag(*k)).unwrap();
            prop_assert!(drawn || k == most, "I/O {}: {} instead of {}", i, k, most);
            issued[k] += 1;
            *(if k.is_multiple_of(2) { &mut read } else { &mut written }) += next.io.size.0;
        }
        prop_assert_eq!((read, written), (resolved.totals.bytes_read, resolved.totals.bytes_written));
        for (count, weight) in issued.iter().zip(&weights) {
            let share = *weight as f64 / sum as f64;
            let spread = 5.0 * (ios as f64 * share * (1.0 - share)).sqrt();
            prop_assert!((*count as f64 - ios as f64 * share).abs() <= spread, "{:?}", issued);
        }
    }

    #[test]
    fn mix_ratio_is_exact_and_in_order(ratio in 1usize..70) {
        let spec = json!({"kind": "mix", "ratio": ratio, "io_count": 10, "io_ignore": 3,
            "first": {"mode": "read", "location": "sequential", "io_size": 4096},
            "second": {"mode": "write", "location": "ordered", "incr": 2, "io_size": 8192}});
        let resolved = resolve(&spec);
        let round = ratio + 1;
        prop_assert_eq!(resolved.streams[0].total_ios, 10 * round as u64);
        prop_assert_eq!(resolved.streams[0].ignored_ios, 3 * round as u64);
        for (i, next) in first_ios(&resolved, 0, 10 * round).into_iter().enumerate() {
            let (of_round, number) = (i % round, (i / round) as u64);
            if of_round < ratio {
                let number = number * ratio as u64 + of_round as u64;
                prop_assert_eq!((next.io.mode, next.io.offset.0), (Mode::Read, number * 4096));
            } else {
                prop_assert_eq!((next.io.mode, next.io.offset.0), (Mode::Write, number * 16384));
            }
        }
    }

    #[test]
    fn processes_have_disjoint_equal_shares(degree in 1u64..20, slots in 20u64..500) {
        let spec = json!({"kind": "basic", "mode": "write", "location": "random",
            "io_size": 4096, "target_offset": 8192, "target_size": slots * 4096,
            "parallel_degree": degree});
        let resolved = resolve(&spec);
        prop_assert_eq!(resolved.streams.len() as u64, degree);
        let share = slots / degree * 4096;
        for process in 0..degree {
            let from = 8192 + process * share;
            for next in first_ios(&resolved, process as usize, 200) {
                let offset = next.io.offset.0;
                prop_assert!(offset >= from && offset + 4096 <= from + share);
            }
        }
    }
}

#[test]
fn all_24_basic_patterns_exist() {
    let mut seen = std::collections::BTreeSet::new();
    for mode in ["read", "write"] {
        for location in ["sequential", "random", "ordered", "partitioned"] {
            for time in ["consecutive", "pause", "burst"] {
                let spec = json!({"kind": "basic", "mode": mode, "location": location, "time": time,
                    "target_size": 1 << 20});
                let resolved = resolve(&spec);
                assert_eq!(resolved.canonical["time"], time);
                seen.insert(resolved.canonical.to_string());
            }
        }
    }
    assert_eq!(seen.len(), 24);
}

#[test]
fn pause_is_burst_of_one() {
    let with = |extra: Value| {
        let mut spec = json!({"kind": "basic", "mode": "write", "location": "sequential"});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        first_ios(&resolve(&spec), 0, 100)
    };
    assert_eq!(
        with(json!({"time": "pause", "pause": 5_000})),
        with(json!({"time": "burst", "burst": 1, "pause": 5_000})),
    );
}

#[test]
fn reverse_decreases_and_in_place_repeats() {
    let offsets = |incr: i64| -> Vec<u64> {
        let spec = json!({"kind": "basic", "mode": "write", "location": "ordered", "incr": incr,
            "io_size": 4096, "target_size": 4 * 4096});
        first_ios(&resolve(&spec), 0, 6).iter().map(|next| next.io.offset.0 / 4096).collect()
    };
    assert_eq!(offsets(-1), [0, 3, 2, 1, 0, 3]);
    assert_eq!(offsets(0), [0; 6]);
    assert_eq!(offsets(256), [0; 6], "a step of 256 wraps around 4 slots");
    assert_eq!(offsets(3), [0, 3, 2, 1, 0, 3]);
}

#[test]
fn random_slots_are_uniform() {
    let spec = json!({"kind": "basic", "mode": "read", "location": "random", "io_size": 4096,
        "target_size": 64 * 4096, "seed": 3});
    let mut counts = [0u32; 64];
    for next in first_ios(&resolve(&spec), 0, 64_000) {
        counts[(next.io.offset.0 / 4096) as usize] += 1;
    }
    // Chi-square with 63 degrees of freedom: 103.4 is exceeded once in a thousand.
    let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 1e3).powi(2) / 1e3).sum();
    assert!(chi < 103.4, "chi-square {chi}");
}

#[test]
fn parallel_patterns_have_their_own_streams() {
    let random = json!({"kind": "basic", "mode": "read", "location": "random", "io_count": 5});
    let spec = json!({"kind": "parallel", "seed": 9, "patterns": [random, random]});
    let resolved = resolve(&spec);
    assert_eq!(resolved.totals.total_ios, 10);
    assert_ne!(
        first_ios(&resolved, 0, 5),
        first_ios(&resolved, 1, 5),
        "processes draw different numbers"
    );
}

#[test]
fn invalid_patterns_are_refused_before_running() {
    let message = |spec: Value| {
        let parsed = PatternSpec::parse(&spec.to_string());
        let resolved = parsed.and_then(|p| p.resolve(Bytes(1 << 30), Bytes(SECTOR)));
        resolved.expect_err("the pattern is refused").to_string()
    };
    let basic = |key: &str, value: Value| {
        let mut spec = json!({"kind": "basic", "mode": "write", "location": "sequential"});
        spec[key] = value;
        message(spec)
    };
    assert!(basic("io_size", json!(0)).contains("'io_size' is out of range"));
    assert!(basic("io_size", json!(-4096)).contains("expected u64"));
    assert!(basic("io_size", json!(1000)).contains("multiples of the sector of 512 bytes"));
    assert!(basic("io_shift", json!(100)).contains("'io_shift' is out of range"));
    assert!(basic("target_size", json!(2u64 << 30)).contains("outside the device"));
    // The device is of 1 GiB: what begins at its end is not within it.
    for offset in [1u64 << 30, 2 << 30] {
        let error = basic("target_offset", json!(offset));
        assert!(error.contains(&format!("got: {offset}; allowed: below 1073741824")), "{error}");
    }
    assert!(basic("target_size", json!(4096)).contains("too small for one I/O"));
    assert!(basic("io_count", json!(0)).contains("'io_count' is out of range"));
    assert!(basic("io_ignore", json!(1024)).contains("0 to 1023"));
    assert!(basic("parallel_degree", json!(0)).contains("'parallel_degree' is out of range"));
    assert!(basic("incr", json!(2)).contains("belongs to location 'ordered'"));
    assert!(basic("partitions", json!(2)).contains("belongs to location 'partitioned'"));
    assert!(basic("pause", json!(2)).contains("belongs to time 'pause' or 'burst'"));
    assert!(basic("location", json!("randon")).contains("unknown variant `randon`"));
    assert!(basic("io_siez", json!(1)).contains("mode, location"));
    assert!(message(json!({"kind": "basik"})).contains("basic, mix, parallel, replay"));
    assert!(basic("interval", json!(5)).contains("belongs to time 'fixed' or 'poisson'"));
    let open = |interval: u64| json!({"kind": "basic", "mode": "read", "location": "random", "time": "fixed", "interval": interval});
    assert!(message(open(0)).contains("'interval' is out of range"));
    assert!(message(json!({"kind": "parallel", "patterns": []})).contains("'patterns'"));
    let one = json!({"mode": "read", "location": "random"});
    let mix = |ratio: u64| json!({"kind": "mix", "first": one, "second": one, "ratio": ratio});
    assert!(message(mix(0)).contains("'ratio' is out of range"));
    let drawn = |percent: u64| json!({"kind": "mix", "first": one, "second": one, "first_percent": percent});
    assert!(message(drawn(0)).contains("'first_percent' is out of range"));
    assert!(message(drawn(100)).contains("'first_percent' is out of range"));
    let mut both = drawn(50);
    both["ratio"] = 1.into();
    assert!(message(both).contains("got: both"));
    assert!(message(json!({"kind": "mix", "first": one, "second": one})).contains("got: neither"));
    let mut many = drawn(50);
    many["io_count"] = u64::MAX.into();
    assert!(message(many).contains("'io_count' is out of range"), "at once");
    let burst = json!({"kind": "basic", "mode": "read", "location": "random", "time": "burst",
        "burst": 0, "pause": 1});
    assert!(message(burst).contains("belongs to a burst of 1 or more"));
    let weighted = |weights: Value| {
        json!({"kind": "mix", "first": one, "second": one,
        "others": [one], "weights": weights})
    };
    assert!(message(weighted(json!([1, 2]))).contains("3: one for each pattern"));
    assert!(message(weighted(json!([1, 2, 0]))).contains("'weights' is out of range"));
    assert!(message(weighted(Value::Null)).contains("belongs to a mix with weights"));
    let mut twice = weighted(json!([1, 2, 3]));
    twice["ratio"] = 1.into();
    assert!(message(twice).contains("given twice"));
    let mut nested = weighted(json!([1, 2, 3]));
    nested["others"][0]["seed"] = 1.into();
    assert!(message(nested).contains("'seed' does not apply to one part of a mix"));
    let partitioned = json!({"kind": "basic", "mode": "read", "location": "partitioned",
        "partitions": 0});
    assert!(message(partitioned).contains("'partitions' is out of range"));
}

/// Zipf's law gives each seed a most popular slot of its own: one in 64 seeds has the first one.
#[test]
fn seed_selects_the_most_popular_zipf_slot() {
    let most_popular = |seed: u64| {
        let spec = json!({"kind": "basic", "mode": "write", "location": "zipf", "skew_percent": 130,
            "io_size": 4096, "target_size": 64 * 4096, "seed": seed});
        let mut counts = [0u32; 64];
        for next in first_ios(&resolve(&spec), 0, 400) {
            counts[(next.io.offset.0 / 4096) as usize] += 1;
        }
        (0..64).max_by_key(|slot| counts[*slot]).expect("at least one slot")
    };
    let chosen: std::collections::BTreeSet<usize> = (0..100).map(most_popular).collect();
    // 64 × (1 − (63/64)^100) = 50.7 different ones are expected, with a standard deviation of 2.9.
    assert!((41..=60).contains(&chosen.len()), "{chosen:?}");
}

/// uFLIP §3.1: consecutive = burst(0, -).
#[test]
fn burst_of_zero_is_consecutive() {
    let spec = |time: Value| {
        let mut spec =
            json!({"kind": "basic", "mode": "write", "location": "random", "io_count": 50});
        spec.as_object_mut().unwrap().extend(time.as_object().unwrap().clone());
        resolve(&spec)
    };
    let zero = spec(json!({"time": "burst", "burst": 0}));
    assert_eq!(zero, spec(json!({"time": "consecutive"})));
}
