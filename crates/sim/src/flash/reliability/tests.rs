//! The laws against values computed independently.

use proptest::prelude::*;

use super::*;

fn part() -> ReliabilityPart {
    ReliabilityPart {
        wear_law: "power".into(),
        rated_cycles: 3000,
        rber_fresh: 1e-5,
        rber_rated: 1e-3,
        wear_exponent: 0.76,
        page_spread: 0.25,
        high_page_factor: 2.0,
        retention_doubling_s: 1e6,
        retention_exponent: 0.5,
        ecc_codeword_bytes: 1024,
        ecc_correctable_bits: 40,
        erase_step_cycles: 1000,
        erase_step_ns: 500_000,
        erase_steps_max: 20,
    }
}

fn laws() -> Reliability {
    Reliability::new(&part(), 16_384).unwrap()
}

fn rate(level: Rber) -> f64 {
    (f64::from(level.0) / f64::from(ONE)).exp2()
}

fn close(got: f64, expected: f64, within: f64) {
    assert!((got / expected - 1.0).abs() < within, "{got} instead of {expected}");
}

#[test]
fn wear_is_interpolated_between_points() {
    let laws = laws();
    close(rate(laws.wear(0)), 1e-5, 1e-4);
    close(rate(laws.wear(3000)), 1e-3, 1e-4);
    // 1e-5 + 0.99e-3 × 2^0.76 and × (1234 / 3000)^0.76
    close(rate(laws.wear(6000)), 1.686_556e-3, 1e-4);
    close(rate(laws.wear(1234)), 5.139_909e-4, 1e-4);
    let exponential = ReliabilityPart { wear_law: "exponential".into(), ..part() };
    let laws = Reliability::new(&exponential, 16_384).unwrap();
    close(rate(laws.wear(1500)), 1e-4, 1e-4);
    close(rate(laws.wear(4500)), 1e-2, 1e-4);
}

/// The power law is tabulated at 64 points an octave. Between two of them the linear interpolation deviates
/// by at most 0.003 % of the rate for an exponent of 1, and in proportion more for a greater one. That holds
/// from the first erase on. Rates are rounded by 0.0016 %.
#[test]
fn any_wear_matches_law() {
    let early =
        ReliabilityPart { rated_cycles: 100_000, rber_fresh: 1e-9, wear_exponent: 1.0, ..part() };
    let late = ReliabilityPart { wear_exponent: 2.0, ..part() };
    for part in [early, late, part()] {
        let laws = Reliability::new(&part, 16_384).unwrap();
        let (rated, most) = (f64::from(part.rated_cycles), 0.000_05 * part.wear_exponent.max(1.0));
        for cycles in (0..3000_u32).map(|step| step * step / 40) {
            let life = f64::from(cycles) / rated;
            let law = part.rber_fresh
                + (part.rber_rated - part.rber_fresh) * life.powf(part.wear_exponent);
            let ratio = rate(laws.wear(cycles)) / law;
            assert!((ratio - 1.0).abs() < most, "{ratio} after {cycles} erases of {rated}");
        }
    }
    let endless = ReliabilityPart { wear_law: "exponential".into(), ..part() };
    let laws = Reliability::new(&endless, 16_384).unwrap();
    assert_eq!(laws.failing_below(laws.wear(u32::MAX)), u64::MAX);
    assert!(laws.wear(u32::MAX) >= laws.wear(u32::MAX / 2));
}

#[test]
fn retention_follows_power_law() {
    let laws = laws();
    assert_eq!(laws.age(0), Rber(0));
    close(rate(laws.age(1_000_000_000_000_000)), 2.0, 5e-5);
    close(rate(laws.age(4_000_000_000_000_000)), 3.0, 5e-5);
    assert!(laws.age(1_000) < Rber(10));
}

/// The law is tabulated at 64 points an octave. Between two of them it is a little above their line: with an
/// exponent of 1 by at most 0.003 % of the rate, for data much older than A₂.
#[test]
fn any_age_matches_law() {
    for exponent in [0.5, 1.0] {
        let part = ReliabilityPart { retention_exponent: exponent, ..part() };
        let laws = Reliability::new(&part, 16_384).unwrap();
        let mut before = Rber(0);
        for step in 0..4000_u32 {
            let age_ns = (f64::from(step) / 64.0).exp2() as u64;
            let law = 1.0 + (age_ns as f64 / 1e15).powf(exponent);
            close(rate(laws.age(age_ns)), law, 5e-5);
            assert!(laws.age(age_ns) >= before, "error rates grow with age");
            before = laws.age(age_ns);
        }
        close(rate(laws.age(u64::MAX)), 1.0 + (2f64.powi(64) / 1e15).powf(exponent), 5e-5);
    }
}

#[test]
fn page_quality_is_log_normal() {
    let laws = laws();
    let lots = (0..100_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let logs: Vec<f64> = lots.map(|lot| rate(laws.page(lot, false)).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / logs.len() as f64;
    assert!(mean.abs() < 1e-3, "{mean}");
    close(variance.sqrt(), 0.25, 0.01);
    close(rate(laws.page(7, true)) / rate(laws.page(7, false)), 2.0, 1e-4);
}

/// 16 codewords of `scipy.stats.binom.sf(40, 8752, p)` each.
#[test]
fn failure_chances_match_binomial_law() {
    let laws = laws();
    let unit = 2f64.powi(64);
    for (rber, codeword) in [(2.6e-3, 3.564_288_642_893_12e-4), (4.5e-3, 0.419_280_910_577_182_7)] {
        let page = 1.0 - (1.0_f64 - codeword).powi(16);
        close(laws.failing_below(Rber::from_rate(rber)) as f64 / unit, page, 2e-3);
    }
    close(laws.failing_below(Rber::from_rate(1e-3)) as f64 / unit, 16.0 * 2.379_96e-15, 2e-2);
    assert_eq!(laws.failing_below(Rber::from_rate(1e-6)), 0);
    assert_eq!(laws.failing_below(Rber::from_rate(1.0)), u64::MAX);
}

#[test]
fn erase_time_grows_in_steps_until_failure() {
    let laws = laws();
    assert_eq!(laws.erase_extra_ns(999), Some(0));
    assert_eq!(laws.erase_extra_ns(1000), Some(500_000));
    assert_eq!(laws.erase_extra_ns(20_999), Some(10_000_000));
    assert_eq!(laws.erase_extra_ns(21_000), None);
    let never = ReliabilityPart { erase_step_cycles: 0, ..part() };
    let laws = Reliability::new(&never, 16_384).unwrap();
    assert_eq!(laws.erase_extra_ns(u32::MAX), Some(0));
}

#[test]
fn invalid_law_parameter_is_named() {
    let bad = ReliabilityPart { rber_rated: 1e-9, ..part() };
    let error = Reliability::new(&bad, 16_384).unwrap_err().to_string();
    assert!(error.contains("'rber_rated'"), "{error}");
    let bad = ReliabilityPart { wear_law: "weibull".into(), ..part() };
    let error = Reliability::new(&bad, 16_384).unwrap_err().to_string();
    assert!(error.contains("power, exponential"), "{error}");
}

#[test]
fn saturated_wear_law_only_fails_more() {
    let steep = ReliabilityPart {
        wear_law: "exponential".into(),
        rated_cycles: 1,
        rber_fresh: 1e-9,
        rber_rated: 1e-2,
        page_spread: 4.0,
        ..part()
    };
    let laws = Reliability::new(&steep, 16_384).unwrap();
    for lot in [0, u64::MAX / 2, u64::MAX] {
        let below = |cycles| laws.failing_below(laws.wear(cycles) + laws.page(lot, true));
        assert!((0..6000).all(|cycles| below(cycles) <= below(cycles + 1)));
        assert_eq!(below(6000), u64::MAX, "every read fails");
    }
}

proptest! {
    #[test]
    fn failures_grow_with_wear(a in 0u32..100_000, b in 0u32..100_000, lot in any::<u64>()) {
        let laws = laws();
        let page = laws.page(lot, false);
        let (less, more) = (a.min(b), a.max(b));
        let below = |cycles| laws.failing_below(laws.wear(cycles) + page);
        prop_assert!(below(less) <= below(more));
    }
}
