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

mod ecc;
mod normal;

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use ecc::BchCode;

/// The names of the laws of wear.
pub const WEAR_LAWS: [&str; 2] = ["power", "exponential"];

/// The parameters of the laws: a table of a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct ReliabilityPart {
    pub wear_law: String,
    /// Erases that the data sheet guarantees.
    pub rated_cycles: u32,
    /// RBER of a new block, and of one at its rated erases.
    pub rber_fresh: f64,
    pub rber_rated: f64,
    /// k of the power law; the other law does not use it.
    pub wear_exponent: f64,
    /// σ: standard deviation of ln RBER between pages.
    pub page_spread: f64,
    /// RBER of the second page of a pair of cells, relative to the first.
    pub high_page_factor: f64,
    /// Age at which data has twice the errors of fresh data; 0: data does not age.
    pub retention_doubling_s: f64,
    pub retention_exponent: f64,
    /// A BCH code: data bytes of a codeword, and correctable wrong bits of it.
    pub ecc_codeword_bytes: u32,
    pub ecc_correctable_bits: u32,
    /// Erasing takes `erase_step_ns` longer after each `erase_step_cycles` erases (0: never), and fails
    /// permanently when more than `erase_steps_max` steps would be needed.
    pub erase_step_cycles: u32,
    pub erase_step_ns: u64,
    pub erase_steps_max: u32,
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
            .map(|p| Rber::from_rate((part.page_spread * normal::quantile(p)).exp()))
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

#[cfg(test)]
mod tests;
