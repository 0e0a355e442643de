//! The effects of wear on the blocks and pages of one device: reads that fail at first, programs and erases
//! that fail, worn pages.
//!
//! No random generator is used: a hash of the seed, the address and the erase count of its block decides every
//! chance. The same read of the same data therefore gives the same result, in whatever order operations come,
//! and no generator state is stored.
//!
//! ```text
//! first read fails ─▶ read again, with other reference voltages: RBER × retry_gain ─▶ … ─▶ corrected
//!                                                                                     └─▶ given up
//! ```
//!
//! **Source**: laws in `reliability.rs`; retirement OFC (2011) §IV.C and Figure 4; read retry as Cai et
//! al. (HPCA 2015) describe it.
//! **Faithful**: failures out of the binomial tail of the ECC; a retry reads the page again, cell and
//! transfer.
//! **Simplified**: all data has one age, unless blocks have a [`History`]; a retry gains the same factor each
//! time; programs and erases fail in proportion to erases; an uncorrectable page is counted but returns its
//! data, since data is not simulated.
//! **Ambiguous**: OFC retires a page by its RBER "when being read after having been aged": here after the age
//! that data has, judged when the block is erased.

mod history;

use serde::{Deserialize, Serialize};
use uflip_core::random::{GOLDEN_GAMMA, finalise, mix};

use super::geometry::{BlockIdx, Geometry, PageAddress, Ppn};
use super::reliability::{Rber, Reliability};
pub(crate) use history::ScrubLimits;
pub(crate) use history::{BEFORE, BlockHistory};

/// The wear parameters of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WearOutOptions {
    pub(crate) seed: u64,
    /// Erases of every block before the device was handed over.
    pub(crate) cycles_before: u32,
    pub(crate) rated_cycles: u32,
    /// If this many pages share cells, the last of them is the worst; 1: all pages are alike.
    pub(crate) pages_of_a_cell: u32,
    pub(crate) grain: Grain,
    pub(crate) data_age_ns: u64,
    pub(crate) read_retries: u32,
    pub(crate) retry_gain: f64,
    /// Probabilities that a program and an erase fail on a block at its rated erases.
    pub(crate) program_failures: f64,
    pub(crate) erase_failures: f64,
    /// A page with a higher RBER is worn.
    pub(crate) retire_rber: f64,
}

/// The number of neighbouring pages of the geometry that share a property.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Grain {
    /// Pages of the same quality: a page of a plane.
    pub(crate) quality: u32,
    /// Pages that are read and decoded together: either all of them fail, or none.
    pub(crate) read: u32,
}

impl Grain {
    /// Return the grain of flash pages that are read as a whole.
    pub(crate) fn flash_pages(geometry: &Geometry) -> Grain {
        Grain { quality: geometry.units(), read: geometry.units() }
    }
}

/// Return the number of the group of `many` pages that contains `page`.
#[inline]
fn group(page: Ppn, many: u32) -> u32 {
    if many == 1 { page.0 } else { page.0 / many }
}

/// The laws of wear, applied to the addresses of one device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WearOut {
    laws: Reliability,
    geometry: Geometry,
    seed: u64,
    cycles_before: u32,
    rated_cycles: u32,
    pages_of_a_cell: u32,
    grain: Grain,
    data_age_ns: u64,
    age: Rber,
    /// The history of every block, if that matters.
    history: Option<BlockHistory>,
    read_retries: u32,
    gain: Rber,
    program_failures: u64,
    erase_failures: u64,
    retire: Rber,
}

/// The outcome of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadOutcome {
    /// The number of read retries.
    pub(crate) retries: u32,
    /// Whether the errors could be corrected in the end.
    pub(crate) corrected: bool,
}

/// The purpose of a random number; keeps the sequences independent.
#[derive(Clone, Copy)]
enum RandomPurpose {
    Factory = 1,
    Quality = 2,
    Read = 3,
    Program = 4,
    Erase = 5,
}

impl WearOut {
    pub(crate) fn new(laws: Reliability, geometry: Geometry, options: WearOutOptions) -> WearOut {
        WearOut {
            data_age_ns: options.data_age_ns,
            age: laws.age(options.data_age_ns),
            history: None,
            laws,
            geometry,
            seed: options.seed,
            cycles_before: options.cycles_before,
            rated_cycles: options.rated_cycles,
            pages_of_a_cell: options.pages_of_a_cell,
            grain: options.grain,
            read_retries: options.read_retries,
            gain: Rber::from_rate(options.retry_gain),
            program_failures: chance(options.program_failures),
            erase_failures: chance(options.erase_failures),
            retire: Rber::from_rate(options.retire_rber),
        }
    }

    /// Return this state with a history of every block.
    pub(crate) fn with_history(self, history: BlockHistory) -> WearOut {
        WearOut { history: Some(history), ..self }
    }

    /// Return whether `block` is bad from the factory, with the probability `chance`.
    pub(crate) fn is_factory_bad(seed: u64, chance: u64, block: BlockIdx) -> bool {
        draw(seed, RandomPurpose::Factory, block.0, 0) < chance
    }

    /// Read `from` at `clock`, whose block was erased `erases` times in this simulation.
    pub(crate) fn read(&mut self, from: PageAddress, erases: u32, clock: u64) -> ReadOutcome {
        let outcome = self.judge(from, erases, clock);
        if let Some(history) = &mut self.history {
            history.read(from.block, 1 + outcome.retries);
        }
        outcome
    }

    fn judge(&self, from: PageAddress, erases: u32, clock: u64) -> ReadOutcome {
        let rate = self.rate(from, erases) + self.age_and_disturb(from.block, clock);
        self.outcome(from.page, erases, rate)
    }

    /// Return the outcome of a read of `page` whose first attempt has the error rate `rate`.
    fn outcome(&self, page: Ppn, erases: u32, mut rate: Rber) -> ReadOutcome {
        let drawn = draw(self.seed, RandomPurpose::Read, group(page, self.grain.read), erases);
        for retries in 0..=self.read_retries {
            if drawn >= self.laws.failing_below(rate) {
                return ReadOutcome { retries, corrected: true };
            }
            rate = rate + self.gain;
        }
        ReadOutcome { retries: self.read_retries, corrected: false }
    }

    /// Record that a page of `block` was programmed at `clock`.
    #[inline]
    pub(crate) fn programmed(&mut self, block: BlockIdx, clock: u64) {
        if let Some(history) = &mut self.history {
            history.programmed(block, clock);
        }
    }

    /// Record that `block` was erased.
    pub(crate) fn erased(&mut self, block: BlockIdx) {
        if let Some(history) = &mut self.history {
            history.erased(block);
        }
    }

    /// Reset after a power loss, with these erased blocks; the counts of the others are kept.
    pub(crate) fn reset_after_power_loss(&mut self, erased: impl Iterator<Item = BlockIdx>) {
        if let Some(history) = &mut self.history {
            history.reset_after_power_loss(erased);
        }
    }

    /// Return whether a block may be due for scrubbing at `clock`.
    pub(crate) fn has_due(&self, clock: u64) -> bool {
        self.history.as_ref().is_some_and(|history| history.has_due(clock, self.data_age_ns))
    }

    /// Return the next block that is due.
    pub(crate) fn next_due(&mut self, clock: u64) -> Option<BlockIdx> {
        self.history.as_mut()?.next_due(clock, self.data_age_ns)
    }

    /// Return the factor of errors that age and reads have added to `block`.
    fn age_and_disturb(&self, block: BlockIdx, clock: u64) -> Rber {
        let Some(history) = &self.history else { return self.age };
        let age_ns = history.age_ns(block, clock, self.data_age_ns);
        self.laws.age(age_ns) + history.disturbed(block)
    }

    /// Return whether programming `to` fails.
    #[inline]
    pub(crate) fn program_fails(&self, to: PageAddress, erases: u32) -> bool {
        self.program_failures > 0 && self.draws_failure(to, erases)
    }

    #[inline(never)]
    fn draws_failure(&self, to: PageAddress, erases: u32) -> bool {
        let page = self.geometry.flash_page(to.page);
        draw(self.seed, RandomPurpose::Program, page, erases)
            < self.scaled(self.program_failures, erases)
    }

    /// Return whether the next erase of a block with `erases` erases fails: by chance, or because
    /// it would take too long. A block endures the cycles of its data sheet, so the one after these
    /// is judged first.
    pub(crate) fn erase_fails(&self, block: BlockIdx, erases: u32) -> bool {
        self.laws.erase_extra_ns(self.cycles_before.saturating_add(erases)).is_none()
            || draw(self.seed, RandomPurpose::Erase, block.0, erases)
                < self.scaled(self.erase_failures, erases)
    }

    /// Return how much longer than the first the next erase of a block takes [ns].
    pub(crate) fn erase_extra_ns(&self, erases: u32) -> u64 {
        let cycles = self.cycles_before.saturating_add(erases);
        // A failing erase takes as long as the longest successful one.
        self.laws.erase_extra_ns(cycles).unwrap_or_else(|| self.laws.max_erase_extra_ns())
    }

    /// Return whether `page` has too many errors to be programmed again.
    pub(crate) fn is_worn(&self, page: PageAddress, erases: u32) -> bool {
        self.rate(page, erases) + self.age > self.retire
    }

    /// Return a number that grows with the errors of `page` when it is read.
    pub(crate) fn errors(&self, page: PageAddress, erases: u32) -> u32 {
        (self.rate(page, erases) + self.age).order()
    }

    /// Return the RBER of `page` if it is read immediately.
    fn rate(&self, page: PageAddress, erases: u32) -> Rber {
        self.laws.wear(self.cycles_before.saturating_add(erases)) + self.quality(page)
    }

    /// Return the quality of `page` relative to others.
    fn quality(&self, page: PageAddress) -> Rber {
        let shared = self.pages_of_a_cell;
        let high = shared > 1 && self.geometry.flash_page_in_block(page) % shared == shared - 1;
        let number = group(page.page, self.grain.quality);
        self.laws.page(draw(self.seed, RandomPurpose::Quality, number, 0), high)
    }

    /// Scale a probability, given at the rated erases, in proportion to the erases.
    fn scaled(&self, at_rated: u64, erases: u32) -> u64 {
        let cycles = u128::from(self.cycles_before.saturating_add(erases));
        let scaled = u128::from(at_rated) * cycles / u128::from(self.rated_cycles);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Return the threshold of 64 bits below which a random number falls with probability `p`.
pub(crate) fn chance(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// Return the random number for `purpose` at an index (page or block) and a time: mixed twice, so that neighbours are
/// independent.
fn draw(seed: u64, purpose: RandomPurpose, index: u32, time: u32) -> u64 {
    let key = finalise(seed.wrapping_add((purpose as u64).wrapping_mul(GOLDEN_GAMMA)));
    finalise(key ^ mix(u64::from(index) << 32 | u64::from(time)))
}

// Reads of several sectors of a flash page at once, each of which may fail.
//
// Shared properties are determined once: for the flash page, whether its program failed; for sectors of the
// same quality, their error rate. Only the random number is drawn per sector.

/// A flash page that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    erases: u32,
    /// The errors that its block adds to each of its pages: wear, age, and reads.
    block: Rber,
    /// Its program failed.
    is_lost: bool,
}

/// Sectors of it with the same quality, some of which may need a read retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingSectors {
    page: Reading,
    rate: Rber,
    below: u64,
}

impl WearOut {
    /// Return whether the flash page of `from`, in a block with `erases` erases, may need a read
    /// retry at `clock`; `None` if even the worst page can be corrected at once.
    #[inline]
    pub(crate) fn reading(&self, from: PageAddress, erases: u32, clock: u64) -> Option<Reading> {
        let wear = self.laws.wear(self.cycles_before.saturating_add(erases));
        let block = wear + self.age_and_disturb(from.block, clock);
        let of_cell = |high| self.laws.page(u64::MAX, high);
        let worst = block + of_cell(false).max(of_cell(self.pages_of_a_cell > 1));
        let is_lost = self.program_fails(from, erases);
        let may_fail = is_lost || self.laws.failing_below(worst) > 0;
        may_fail.then_some(Reading { erases, block, is_lost })
    }

    /// Return the sectors of `page` with the same quality as the one at `from`; `None` if each is corrected
    /// at once.
    #[inline]
    pub(crate) fn failing_sectors(
        &self,
        from: PageAddress,
        page: Reading,
    ) -> Option<FailingSectors> {
        let rate = page.block + self.quality(from);
        let below = self.laws.failing_below(rate);
        (page.is_lost || below > 0).then_some(FailingSectors { page, rate, below })
    }

    /// Read the sector at `from`, which is one of `failing`.
    #[inline]
    pub(crate) fn read_sector(&self, from: PageAddress, failing: FailingSectors) -> ReadOutcome {
        let FailingSectors { page: Reading { erases, is_lost, .. }, rate, below } = failing;
        if is_lost {
            return ReadOutcome { retries: self.read_retries, corrected: false };
        }
        let drawn = draw(self.seed, RandomPurpose::Read, group(from.page, self.grain.read), erases);
        if drawn >= below {
            return ReadOutcome { retries: 0, corrected: true };
        }
        self.outcome(from.page, erases, rate)
    }

    /// Record that pages of `block` were read `times` times.
    #[inline]
    pub(crate) fn was_read(&mut self, block: BlockIdx, times: u32) {
        if let Some(history) = &mut self.history {
            history.read(block, times);
        }
    }
}

/// Counts over many pages against binomial laws, and results that do not depend on the order of requests.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::geometry::{Ppn, Shape};
    use crate::flash::reliability::ReliabilityPart;

    fn geometry() -> Geometry {
        Geometry::from(Shape {
            channels: 1,
            planes: 1,
            blocks_per_plane: 2000,
            pages_per_block: 100,
            metadata_pages: 0,
            page_bytes: 4096,
            logical_pages: 1,
        })
    }

    /// Every page has this RBER at its rated 1000 erases, unless `page_spread` or ages specify otherwise; an ECC
    /// of 8 bits a KiB.
    fn part(rber: f64) -> ReliabilityPart {
        ReliabilityPart {
            wear_law: "power".into(),
            rated_cycles: 1000,
            rber_fresh: rber / 1000.0,
            rber_rated: rber,
            wear_exponent: 1.0,
            page_spread: 0.0,
            high_page_factor: 1.0,
            retention_doubling_s: 0.0,
            retention_exponent: 1.0,
            ecc_codeword_bytes: 1024,
            ecc_correctable_bits: 8,
            erase_step_cycles: 500,
            erase_step_ns: 100,
            erase_steps_max: 4,
        }
    }

    fn options() -> WearOutOptions {
        WearOutOptions {
            seed: 5,
            cycles_before: 1000,
            rated_cycles: 1000,
            pages_of_a_cell: 1,
            grain: Grain::flash_pages(&geometry()),
            data_age_ns: 0,
            read_retries: 0,
            retry_gain: 1.0,
            program_failures: 0.0,
            erase_failures: 0.0,
            retire_rber: 1e-3,
        }
    }

    fn wear_out(part: &ReliabilityPart, options: WearOutOptions) -> WearOut {
        WearOut::new(Reliability::new(part, 4096).expect("valid parameters"), geometry(), options)
    }

    fn pages() -> impl Iterator<Item = PageAddress> {
        let geometry = geometry();
        (0..geometry.pages()).map(move |page| geometry.address_of(Ppn(page)))
    }

    /// Within four standard deviations of a binomial count: one run in 16,000 is outside.
    fn binomial(count: usize, trials: u32, p: f64) {
        let (n, count) = (f64::from(trials), count as f64);
        let deviation = (count - n * p) / (n * p * (1.0 - p)).sqrt();
        assert!(deviation.abs() < 4.0, "{count} of {n}, {p} expected: {deviation:.1} deviations");
    }

    /// Four codewords a page, `scipy.stats.binom.sf(8, 8304, rber)` each.
    const PAGE_FAILS: [(f64, f64); 3] = [
        (4e-4, 0.028_418_412_551_706_185),
        (6e-4, 0.241_899_019_355_073_96),
        (8e-4, 0.640_454_330_580_002),
    ];

    #[test]
    fn read_failures_match_binomial_law() {
        for (rber, fails) in PAGE_FAILS {
            let wear_out = wear_out(&part(rber), options());
            let failed = pages().filter(|page| !wear_out.judge(*page, 0, BEFORE).corrected).count();
            binomial(failed, geometry().pages(), fails);
        }
    }

    /// A retry that halves the errors: of the pages that fail at 8e-4 at first, those remain that fail at 4e-4.
    #[test]
    fn read_retries_reduce_errors() {
        let retrying = WearOutOptions { read_retries: 1, retry_gain: 0.5, ..options() };
        let wear_out = wear_out(&part(8e-4), retrying);
        let outcomes: Vec<ReadOutcome> =
            pages().map(|page| wear_out.judge(page, 0, BEFORE)).collect();
        let again = outcomes.iter().filter(|outcome| outcome.retries == 1).count();
        let lost = outcomes.iter().filter(|outcome| !outcome.corrected).count();
        binomial(again, geometry().pages(), PAGE_FAILS[2].1);
        binomial(lost, geometry().pages(), PAGE_FAILS[0].1);
    }

    #[test]
    fn failures_are_proportional_to_erases() {
        let failing = WearOutOptions { program_failures: 0.02, erase_failures: 0.1, ..options() };
        let wear_out = wear_out(&part(1e-5), failing);
        // 500 more erases: one and a half times the rate at the rated ones.
        let failed = pages().filter(|page| wear_out.program_fails(*page, 500)).count();
        binomial(failed, geometry().pages(), 0.03);
        let blocks = (0..geometry().blocks()).map(BlockIdx);
        let failed = blocks.filter(|block| wear_out.erase_fails(*block, 500)).count();
        binomial(failed, geometry().blocks(), 0.15);
    }

    #[test]
    fn factory_bad_share_is_met() {
        let bad = |seed| {
            let blocks = (0..100_000).map(BlockIdx);
            blocks.filter(|block| WearOut::is_factory_bad(seed, chance(0.02), *block)).count()
        };
        binomial(bad(1), 100_000, 0.02);
        binomial(bad(2), 100_000, 0.02);
        assert_ne!(bad(1), bad(2));
    }

    /// OFC Figure 4 with a log-normal spread of σ = 0.8 around 5e-4: the share of pages below 1e-3 is
    /// Φ(ln 2 / 0.8) = `scipy.stats.norm.cdf(log(2) / 0.8)`.
    #[test]
    fn pages_wear_individually() {
        let spread = ReliabilityPart { page_spread: 0.8, ..part(5e-4) };
        let wear_out = wear_out(&spread, options());
        let good = pages().filter(|page| !wear_out.is_worn(*page, 0)).count();
        binomial(good, geometry().pages(), 0.806_873_890_618_034_8);
        // With twice the errors from age alone, half of the pages are worn.
        let ageing = ReliabilityPart { retention_doubling_s: 1e6, ..spread };
        let aged = WearOutOptions { data_age_ns: 1 << 50, ..options() };
        let doubled = ReliabilityPart { retention_doubling_s: (1u64 << 50) as f64 / 1e9, ..ageing };
        let wear_out = self::wear_out(&doubled, aged);
        let good = pages().filter(|page| !wear_out.is_worn(*page, 0)).count();
        binomial(good, geometry().pages(), 0.5);
    }

    #[test]
    fn paired_high_pages_have_more_errors() {
        let mlc = ReliabilityPart { high_page_factor: 3.0, ..part(5e-4) };
        let paired = WearOutOptions { pages_of_a_cell: 2, ..options() };
        let wear_out = wear_out(&mlc, paired);
        assert!(pages().all(|page| wear_out.is_worn(page, 0) == (page.page.0 % 2 == 1)));
    }

    #[test]
    fn erases_slow_down_until_failure() {
        let wear_out = wear_out(&part(1e-5), options());
        // 1000 erases before: two steps of 500; four steps are the maximum.
        assert_eq!(
            [0, 499, 500, 1499, 1500].map(|n| wear_out.erase_extra_ns(n)),
            [200, 200, 300, 400, 400]
        );
        assert!(!wear_out.erase_fails(BlockIdx(0), 1499));
        assert!(wear_out.erase_fails(BlockIdx(0), 1500));
    }

    #[test]
    fn reads_are_deterministic() {
        let wear_out = wear_out(&part(8e-4), options());
        for page in pages().take(1000) {
            assert_eq!(wear_out.judge(page, 3, BEFORE), wear_out.judge(page, 3, BEFORE));
        }
        let differs = pages()
            .filter(|page| wear_out.judge(*page, 3, BEFORE) != wear_out.judge(*page, 4, BEFORE));
        assert!(differs.count() > 1000, "data of a new program has new errors");
    }

    /// Return the factor of errors from the history of a block.
    fn factor(rate: Rber) -> f64 {
        (f64::from(rate.0) / 65_536.0).exp2()
    }

    #[test]
    fn read_disturb_grows_until_erase() {
        let mut history = BlockHistory::new(4, false, Some(1000));
        let (read, other) = (BlockIdx(2), BlockIdx(1));
        assert_eq!(history.disturbed(read), Rber(0));
        for (times, sum) in [(1, 1), (499, 500), (500, 1000), (6000, 7000), (93_000, 100_000)] {
            history.read(read, times);
            let (got, law) = (factor(history.disturbed(read)) - 1.0, f64::from(sum) / 1000.0);
            // A factor is rounded to 2⁻¹⁶ of an octave, and up to 0.003 % too small between points of its table.
            assert!((got - law).abs() < 2e-5 + 5e-5 * law, "{sum} reads: {got} instead of {law}");
        }
        assert_eq!(history.disturbed(other), Rber(0));
        history.erased(read);
        assert_eq!(history.disturbed(read), Rber(0));
        history.read(read, u32::MAX);
        history.read(read, u32::MAX);
        assert!(factor(history.disturbed(read)) > 3e6);
    }

    #[test]
    fn block_age_is_that_of_first_page() {
        let mut history = BlockHistory::new(4, true, None);
        let block = BlockIdx(3);
        history.programmed(block, BEFORE);
        assert_eq!(history.age_ns(block, BEFORE, 70), 70, "during preconditioning");
        assert_eq!(history.age_ns(block, 5, 70), 75);
        history.programmed(block, 9);
        assert_eq!(history.age_ns(block, 10, 70), 80, "the age of the first page counts");
        history.erased(block);
        history.programmed(block, 11);
        history.programmed(block, 40);
        assert_eq!(history.age_ns(block, 100, 70), 89);
        let without = BlockHistory::new(4, false, None);
        assert_eq!(without.age_ns(block, 100, 70), 70, "all data has one age");
    }
}
