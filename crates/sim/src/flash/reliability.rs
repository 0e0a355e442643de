//! Reliability of flash: raw bit errors by erases, age and page; reads that fail after the ECC; erases that
//! take longer in steps. Pure laws, shared by all simulated devices: no clock, no state.
//!
//! ```text
//!  RBER(N, A, page) = wear(N) × (1 + (A / A₂)^g) × page                  N erases, A age of the data
//!  wear(N)          = fresh + (rated − fresh) × (N / N_rated)^k          law "power"
//!                   = fresh × (rated / fresh)^(N / N_rated)              law "exponential"
//!  page             = exp(σ Z), and once more a factor for the high page of a cell (MLC)
//!  P(read fails)    = 1 − (1 − P(more than t wrong bits of a codeword))^codewords
//! ```
//!
//! Everything that needs floating-point numbers is computed once, when a device is created. RBER is stored as
//! its logarithm to the base 2 in steps of 2⁻¹⁶ ([`Rber`]), so that the factors above are sums of integers,
//! and a probability is a threshold for a random number of 64 bits.
//!
//! **Source**: the law of P/E count and age as in Mielke et al. (IRPS 2008) and as fitted to MLC parts
//! by Hetzler (E = h·A^k·R^g + …); field data that grow slower than exponentially: Schroeder et al.
//! (FAST 2016); erase voltage and time in steps: uFLIP-OC (2017) §5.1.3; log-normal spread of pages:
//! OFC (2011) Figure 1.
//! **Faithful**: power or exponential law of erases, power law of age, exact binomial tail of the ECC.
//! **Simplified**: no temperature; age, reads (`wear_out/history.rs`) and wear multiply; a page keeps its quality for
//! life; erases, age and reads are tabulated at 64 points an octave, and their logarithms interpolated
//! linearly (RBER is at most 0.005 % too low, for an exponent of 1; the exponential law is exact); a
//! codeword's failure is drawn once per program, so that a read that failed fails again.
//! **Ambiguous**: which of the two laws holds: vendors' data and field data disagree, so both are here.

use crate::keys::parameters;
use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

/// The names of the laws of wear.
pub const WEAR_LAWS: [&str; 2] = ["power", "exponential"];

parameters! {
    /// The parameters of the laws: a table of a profile.
    #[derive(Clone, PartialEq, Debug)]
    pub struct ReliabilityPart {
        wear_law: String = "`power`, `exponential`",
            "how RBER grows with erases";
        rated_cycles: u32 = "1 to 10000000" in "erases",
            "erases that the data sheet guarantees";
        rber_fresh: f64 = "above 0, below 0.5",
            "RBER of a new block";
        rber_rated: f64 = "`rber_fresh` or more, below 0.5",
            "RBER after `rated_cycles`";
        wear_exponent: f64 = "above 0",
            "exponent of the power law; without effect on the exponential law";
        page_spread: f64 = "0 to 4",
            "standard deviation of ln RBER between pages";
        high_page_factor: f64 = "above 0",
            "RBER of a high page, the last of those that share their cells, relative to that of \
             the others";
        retention_doubling_s: f64 = "0 or more" in "s",
            "age at which data has twice as many errors; 0: data does not age";
        retention_exponent: f64 = "0 or more",
            "exponent of the age";
        ecc_codeword_bytes: u32 = "64 to 65536" in "bytes",
            "data of a codeword (BCH)";
        ecc_correctable_bits: u32 = "0 to 1024" in "bits",
            "wrong bits of a codeword that are corrected";
        erase_step_cycles: u32 = "0 or more" in "erases",
            "number of erases after which an erase takes a step longer; 0: never";
        erase_step_ns: u64 = "0 or more" in "ns",
            "length of that step";
        erase_steps_max: u32 = "0 or more",
            "an erase that needs more steps fails, and the block is retired";
    }
}

/// log₂ of a raw bit error rate, or of a factor of it, in steps of 2⁻¹⁶.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub struct Rber(pub i32);

impl std::ops::Add for Rber {
    type Output = Rber;
    #[inline]
    fn add(self, other: Rber) -> Rber {
        Rber(self.0.saturating_add(other.0))
    }
}

impl Rber {
    /// Return the value nearest to `rate`.
    pub(crate) fn from_rate(rate: f64) -> Rber {
        Rber((rate.log2() * f64::from(ONE)).round() as i32)
    }

    /// Return a number that grows with the rate.
    pub(crate) fn order(self) -> u32 {
        self.0.cast_unsigned() ^ (1 << 31)
    }
}

const ONE: i32 = 1 << 16;
/// Error rates below 2⁻⁴⁰ count as zero; failure probabilities are tabulated at 256 points an octave above.
const MIN_OCTAVES: i32 = -40;
const POINT_BITS: u32 = 8;
/// Upper limit of wear, at which no codeword is readable: an exponential law has no limit.
const MAX_WEAR: f64 = 1e9;
/// Bits of a page's quality: the number of different qualities is 2 to this power.
const QUALITY_BITS: u32 = 12;
/// Points an octave, as a power of two, in the tables of erases, ages and read disturb.
const STEP_BITS: u32 = 6;
const STEPS_AN_OCTAVE: u32 = 1 << STEP_BITS;

/// Tabulate `rate` for numbers from 1 on that have up to `bits` bits.
pub(crate) fn tabulate(bits: u32, rate: impl Fn(f64) -> f64) -> Vec<Rber> {
    let number = |step: u32| {
        let within = f64::from(step % STEPS_AN_OCTAVE) / f64::from(STEPS_AN_OCTAVE);
        f64::from(step / STEPS_AN_OCTAVE).exp2() * (1.0 + within)
    };
    (0..=bits * STEPS_AN_OCTAVE).map(|step| Rber::from_rate(rate(number(step)))).collect()
}

/// Return the linear interpolation of the table at `number`; 0 for 0.
#[inline]
pub(crate) fn interpolate(table: &[Rber], number: u64) -> Rber {
    let Some(octave) = number.checked_ilog2() else { return Rber(0) };
    // The bits after the first: a step of the octave, and the position within it.
    let after = (number << (63 - octave)) << 1;
    let step = octave * STEPS_AN_OCTAVE + (after >> (64 - STEP_BITS)) as u32;
    let (from, within) = (table[step as usize].0, ((after << STEP_BITS) >> 48) as i64);
    let to = table.get(step as usize + 1).map_or(from, |to| to.0);
    // 64 bits: an exponential law may end far above 1, so a step between two rates can exceed 32 bits.
    let rise = ((i64::from(to) - i64::from(from)) * within) >> 16;
    Rber(from + rise as i32)
}

/// The laws, prepared for use in every operation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reliability {
    /// Wear of a block that was never erased, and of others by their erases.
    fresh: Rber,
    wear: Vec<Rber>,
    quality: Vec<Rber>,
    high: Rber,
    age: Vec<Rber>,
    /// Per point of RBER: a read fails if its random number is below this.
    chance: Vec<u64>,
    erase_step_cycles: u32,
    erase_step_ns: u64,
    erase_steps_max: u32,
}

impl Reliability {
    /// Prepare the laws of `part` for reads of `unit_bytes` at a time.
    ///
    /// # Errors
    /// Invalid parameters; the message names the key.
    pub fn new(part: &ReliabilityPart, unit_bytes: u32) -> Result<Reliability> {
        part.check()?;
        let wear = tabulate(u32::BITS, |cycles| part.wear(cycles).min(MAX_WEAR));
        let qualities = 1u32 << QUALITY_BITS;
        let quality = (0..qualities)
            .map(|i| (f64::from(i) + 0.5) / f64::from(qualities))
            .map(|p| Rber::from_rate((part.page_spread * quantile(p)).exp()))
            .collect();
        let age = tabulate(64, |age_ns| part.ageing(age_ns / 1e9));
        let code = BchCode::bch(part.ecc_codeword_bytes, part.ecc_correctable_bits);
        let codewords = f64::from(unit_bytes.div_ceil(part.ecc_codeword_bytes));
        let points = -MIN_OCTAVES << POINT_BITS;
        let chance = (0..=points)
            .map(|point| f64::from(point - points) / f64::from(1 << POINT_BITS))
            .map(|octaves| code.failure(octaves.exp2()))
            .map(|fails| -(codewords * (-fails).ln_1p()).exp_m1())
            .map(|fails| (fails * 2f64.powi(64)) as u64)
            .collect();
        Ok(Reliability {
            fresh: Rber::from_rate(part.wear(0.0)),
            wear,
            quality,
            high: Rber::from_rate(part.high_page_factor),
            age,
            chance,
            erase_step_cycles: part.erase_step_cycles,
            erase_step_ns: part.erase_step_ns,
            erase_steps_max: part.erase_steps_max,
        })
    }

    /// Return the RBER of an average page of a block that was erased `cycles` times.
    #[inline]
    #[must_use]
    pub fn wear(&self, cycles: u32) -> Rber {
        if cycles == 0 { self.fresh } else { interpolate(&self.wear, u64::from(cycles)) }
    }

    /// Return the quality of a page relative to the average: `lot` is its fixed random number.
    #[inline]
    #[must_use]
    pub fn page(&self, lot: u64, high: bool) -> Rber {
        let quality = self.quality[(lot >> (64 - QUALITY_BITS)) as usize];
        if high { quality + self.high } else { quality }
    }

    /// Return the factor of errors for an age of `age_ns` nanoseconds since the program.
    #[inline]
    #[must_use]
    pub fn age(&self, age_ns: u64) -> Rber {
        interpolate(&self.age, age_ns)
    }

    /// Return the threshold below which a random number of 64 bits is a read that the ECC cannot correct; 0:
    /// no read fails.
    #[inline]
    #[must_use]
    pub fn failing_below(&self, rate: Rber) -> u64 {
        let steps = i64::from(rate.0) - i64::from(MIN_OCTAVES * ONE);
        if steps < 0 {
            return 0;
        }
        let point = (steps >> (16 - POINT_BITS)) as usize;
        let Some(&to) = self.chance.get(point + 1) else { return u64::MAX };
        let from = self.chance[point];
        let within = (steps & ((1 << (16 - POINT_BITS)) - 1)) as u64;
        from + ((to - from) >> (16 - POINT_BITS)) * within
    }

    /// Return how much longer than the first an erase takes after `cycles` of them [ns]; `None` if the block
    /// can no longer be erased.
    #[inline]
    #[must_use]
    pub fn erase_extra_ns(&self, cycles: u32) -> Option<u64> {
        let steps = cycles.checked_div(self.erase_step_cycles).unwrap_or(0);
        (steps <= self.erase_steps_max).then(|| u64::from(steps) * self.erase_step_ns)
    }

    /// Return how much longer than the first the longest successful erase takes [ns].
    #[must_use]
    pub fn max_erase_extra_ns(&self) -> u64 {
        u64::from(self.erase_steps_max) * self.erase_step_ns
    }
}

impl ReliabilityPart {
    /// Return the RBER of an average page after `cycles` erases.
    fn wear(&self, cycles: f64) -> f64 {
        let life = cycles / f64::from(self.rated_cycles);
        if self.wear_law == "power" {
            self.rber_fresh + (self.rber_rated - self.rber_fresh) * life.powf(self.wear_exponent)
        } else {
            self.rber_fresh * (self.rber_rated / self.rber_fresh).powf(life)
        }
    }

    /// Return the factor of errors after `age_s` seconds, relative to fresh data.
    fn ageing(&self, age_s: f64) -> f64 {
        if self.retention_doubling_s == 0.0 {
            return 1.0;
        }
        1.0 + (age_s / self.retention_doubling_s).powf(self.retention_exponent)
    }

    fn check(&self) -> Result<()> {
        if !WEAR_LAWS.contains(&self.wear_law.as_str()) {
            return Err(Error::unknown("law of wear", &self.wear_law, &WEAR_LAWS));
        }
        if self.rber_rated < self.rber_fresh {
            return Err(Error::usage("Profile key 'rber_rated' has an invalid value")
                .got(format!("{:e}", self.rber_rated))
                .allowed(format!("rber_fresh = {:e} or more", self.rber_fresh))
                .action("change it"));
        }
        Ok(())
    }
}

// Error correction: the probability that a codeword has more wrong bits than an ECC of a given strength
// corrects.
//
// **Source**: binomial law of independent bit errors, as in data sheets of BCH codes and in Mielke
// et al. (IRPS 2008).
// **Faithful**: exact sum of the binomial tail, no approximation by another law.
// **Simplified**: bits of a codeword fail independently; a code never miscorrects.
// **Ambiguous**: nothing.

/// A code that corrects up to `correctable_bits` wrong bits of `bits` (data and parity together).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BchCode {
    bits: u32,
    correctable_bits: u32,
}

impl BchCode {
    /// Return a binary BCH code over `data_bytes`: it needs m parity bits for each bit that it corrects, 2ᵐ
    /// being the first power of two that is longer than the codeword.
    fn bch(data_bytes: u32, correctable_bits: u32) -> BchCode {
        let data = 8 * data_bytes;
        let whole = |m: u32| data + m * correctable_bits;
        let m = (1..31).find(|m| whole(*m) < 1 << m).unwrap_or(31);
        BchCode { bits: whole(m), correctable_bits }
    }

    /// Return P(more than `correctable_bits` of the bits are wrong), each being wrong with probability
    /// `rate`.
    fn failure(self, rate: f64) -> f64 {
        let (bits, most) = (f64::from(self.bits), self.correctable_bits);
        if most >= self.bits || rate <= 0.0 {
            return 0.0;
        }
        if rate >= 1.0 {
            return 1.0;
        }
        let odds = rate / (1.0 - rate);
        // P(exactly k wrong); the next term follows by the ratio (n − k) / (k + 1) × odds.
        let exactly = |k: u32| {
            let choose: f64 = (0..k).map(|i| ((bits - f64::from(i)) / f64::from(i + 1)).ln()).sum();
            (choose + f64::from(k) * rate.ln() + (bits - f64::from(k)) * (-rate).ln_1p()).exp()
        };
        // Sum the shorter of the two tails, away from the edge, until the terms vanish.
        if f64::from(most) >= bits * rate {
            let (mut term, mut sum, mut k) = (exactly(most + 1), 0.0, most + 1);
            while k <= self.bits && sum + term > sum {
                sum += term;
                term *= (bits - f64::from(k)) / f64::from(k + 1) * odds;
                k += 1;
            }
            return sum;
        }
        let (mut term, mut sum, mut k) = (exactly(most), 0.0, most);
        while sum + term > sum {
            sum += term;
            if k == 0 {
                break;
            }
            term *= f64::from(k) / (bits - f64::from(k) + 1.0) / odds;
            k -= 1;
        }
        1.0 - sum
    }
}

// Quantiles of the normal distribution, for the quality of pages.
//
// **Source**: P. Acklam, "An algorithm for computing the inverse normal cumulative distribution
// function" (2003): two rational approximations with a relative error below 1.2 × 10⁻⁹.
// **Faithful**: coefficients and break points as published.
// **Simplified**: no refinement step.
// **Ambiguous**: nothing.

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
fn quantile(probability: f64) -> f64 {
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
    use proptest::prelude::*;

    use super::*;

    /// Values of `scipy.stats.binom.sf(t, n, p)`, SciPy 1.16.
    #[test]
    fn binomial_tail_matches_scipy() {
        let cases = [
            (8752, 40, 1e-3, 2.379_959_717_504_843_4e-15),
            (8752, 40, 1.15e-3, 2.061_790_532_138_865_4e-13),
            (8752, 40, 2.6e-3, 3.564_288_642_893_120_5e-4),
            (8752, 40, 4.5e-3, 0.419_280_910_577_182_75),
            (8752, 40, 1e-2, 0.999_999_990_797_731_8),
            (4291, 15, 3.35e-4, 4.025_662_430_616_461e-12),
            (4109, 1, 7e-10, 4.135_536_213_824_647_6e-12),
            (100, 0, 0.01, 0.633_967_658_726_770_5),
            (10, 10, 0.3, 0.0),
        ];
        for (bits, correctable_bits, rate, expected) in cases {
            let got = BchCode { bits, correctable_bits }.failure(rate);
            assert!((got - expected).abs() <= 1e-9 * expected, "{bits} {rate}: {got} {expected}");
        }
    }

    #[test]
    fn bch_parity_matches_textbooks() {
        // 40 bits over 1 KiB in GF(2¹⁴), 8 over 512 bytes in GF(2¹³).
        assert_eq!(BchCode::bch(1024, 40).bits, 8192 + 14 * 40);
        assert_eq!(BchCode::bch(512, 8).bits, 4096 + 13 * 8);
    }

    proptest! {
        /// With one correctable bit the tail has a closed form.
        #[test]
        fn bch_of_one_bit_matches_formula(bits in 2u32..5000, rate in 1e-4f64..0.5) {
            let n = f64::from(bits);
            let fine = (1.0 - rate).powf(n) + n * rate * (1.0 - rate).powf(n - 1.0);
            let got = BchCode { bits, correctable_bits: 1 }.failure(rate);
            prop_assert!((got - (1.0 - fine)).abs() < 1e-9, "{} {}", got, 1.0 - fine);
        }
    }

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
        let early = ReliabilityPart {
            rated_cycles: 100_000,
            rber_fresh: 1e-9,
            wear_exponent: 1.0,
            ..part()
        };
        let late = ReliabilityPart { wear_exponent: 2.0, ..part() };
        for part in [early, late, part()] {
            let laws = Reliability::new(&part, 16_384).unwrap();
            let (rated, most) =
                (f64::from(part.rated_cycles), 0.000_05 * part.wear_exponent.max(1.0));
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
        for (rber, codeword) in
            [(2.6e-3, 3.564_288_642_893_12e-4), (4.5e-3, 0.419_280_910_577_182_7)]
        {
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
}
