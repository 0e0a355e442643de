//! Quantiles of the normal distribution, for the quality of pages.
//!
//! **Source**: P. Acklam, "An algorithm for computing the inverse normal cumulative distribution
//! function" (2003): two rational approximations with a relative error below 1.2 × 10⁻⁹.
//! **Faithful**: coefficients and break points as published.
//! **Simplified**: no refinement step.
//! **Ambiguous**: nothing.

const A: [f64; 6] = [
    -3.969_683_028_665_376e1,
    2.209_460_984_245_205e2,
    -2.759_285_104_469_687e2,
    1.383_577_518_672_69e2,
    -3.066_479_806_614_716e1,
    2.506_628_277_459_239,
];
const B: [f64; 6] = [
    -5.447_609_879_822_406e1,
    1.615_858_368_580_409e2,
    -1.556_989_798_598_866e2,
    6.680_131_188_771_972e1,
    -1.328_068_155_288_572e1,
    1.0,
];
const C: [f64; 6] = [
    -7.784_894_002_430_293e-3,
    -3.223_964_580_411_365e-1,
    -2.400_758_277_161_838,
    -2.549_732_539_343_734,
    4.374_664_141_464_968,
    2.938_163_982_698_783,
];
const D: [f64; 5] = [
    7.784_695_709_041_462e-3,
    3.224_671_290_700_398e-1,
    2.445_134_137_142_996,
    3.754_408_661_907_416,
    1.0,
];
/// Below it, and above one minus it, the tail's approximation holds.
const TAIL: f64 = 0.024_25;

fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Return the x below which a standard normal variable falls with `probability`, between 0 and 1.
pub(crate) fn quantile(probability: f64) -> f64 {
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    if probability < TAIL {
        tail(probability)
    } else if probability > 1.0 - TAIL {
        -tail(1.0 - probability)
    } else {
        let q = probability - 0.5;
        q * horner(&A, q * q) / horner(&B, q * q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `scipy.stats.norm.ppf`, SciPy 1.16.
    #[test]
    fn normal_quantiles_match_scipy() {
        let cases = [
            (0.5, 0.0),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.9999, 3.719_016_485_455_709),
            (1.0 / 8192.0, -3.668_329_285_121_323_4),
        ];
        for (probability, expected) in cases {
            let got = quantile(probability);
            assert!((got - expected).abs() < 1e-7, "{probability}: {got} {expected}");
        }
    }
}
