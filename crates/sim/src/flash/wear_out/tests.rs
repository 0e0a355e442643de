//! Counts over many pages against binomial laws, and results that do not depend on the order of requests.

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
    let outcomes: Vec<ReadOutcome> = pages().map(|page| wear_out.judge(page, 0, BEFORE)).collect();
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
    let differs =
        pages().filter(|page| wear_out.judge(*page, 3, BEFORE) != wear_out.judge(*page, 4, BEFORE));
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
