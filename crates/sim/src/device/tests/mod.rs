//! Power cuts at arbitrary times, also repeated: acknowledged data must survive.

mod defects;
mod draw;
mod draw_merging;
mod host;
mod levelling;
mod phase_cache;
mod round_times;
mod times;
mod units;

use std::sync::atomic::{AtomicU64, Ordering};

use uflip_core::random::{Rng as _, SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Counters, Device, Nanos};

use super::backend::Backend as _;
use super::merging::MergingBackend;
use super::{AnyBackend, SimDevice};
use crate::Profile;
use crate::flash::contents::{BlockCondition, Contents};
use crate::flash::geometry::BlockIdx;
use draw::Endurance;
use host::TestHost;

/// Number of cuts in all, and per device.
const CUTS: u64 = 3_600;
const CUTS_OF_ONE: u64 = 24;

/// Events seen on all devices, to detect a swarm that misses a case.
#[derive(Default)]
struct EventCoverage {
    torn: AtomicU64,
    half_erased: AtomicU64,
    not_begun: AtomicU64,
    lost: AtomicU64,
    resurrected: AtomicU64,
    rewritten: AtomicU64,
    merged: AtomicU64,
    dropped: AtomicU64,
    /// Blocks without a successful erase and without a list entry at a power cut, and those listed
    /// after recovery.
    unlisted: AtomicU64,
    listed: AtomicU64,
    worn_out: AtomicU64,
    /// Pages buffered by an FTL behind a write cache, and buffered pages saved by capacitors.
    kept_in_memory: AtomicU64,
    saved: AtomicU64,
    /// Programmed blocks that replace no block at a power cut, and moves of wear levelling.
    interrupted_moves: AtomicU64,
    levelled: AtomicU64,
}

impl EventCoverage {
    fn add(&self, count: &AtomicU64, number: u64) {
        count.fetch_add(number, Ordering::Relaxed);
    }

    fn all(&self) -> [(&'static str, u64); 15] {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("torn", load(&self.torn)),
            ("half erased", load(&self.half_erased)),
            ("not begun", load(&self.not_begun)),
            ("lost", load(&self.lost)),
            ("come back", load(&self.resurrected)),
            ("put back", load(&self.rewritten)),
            ("merged", load(&self.merged)),
            ("dropped", load(&self.dropped)),
            ("unlisted", load(&self.unlisted)),
            ("listed", load(&self.listed)),
            ("ended", load(&self.worn_out)),
            ("kept", load(&self.kept_in_memory)),
            ("saved", load(&self.saved)),
            ("left", load(&self.interrupted_moves)),
            ("levelled", load(&self.levelled)),
        ]
    }
}

/// Check that tables agree with each other and with the flash.
fn audit(device: &SimDevice) {
    let paged = match &device.backend {
        AnyBackend::Paged(paged) => paged,
        AnyBackend::Merged(merged) => return audit_merged(device, merged),
        AnyBackend::Zoned(_) => panic!("the device has an FTL"),
    };
    let ftl = paged.ftl();
    ftl.check();
    let (geometry, nand) = (&device.flash.geometry, &device.flash.nand);
    for plane in (0..geometry.shape().planes).map(crate::flash::geometry::PlaneIdx) {
        let erased = geometry.blocks_of(plane).filter(|block| nand.is_erased(*block)).count();
        assert_eq!(ftl.blocks().free_in(plane), erased, "free blocks of {plane:?}");
    }
    for (page, at) in ftl.mapped() {
        let offset = geometry.page_in_block(at);
        assert!(nand.programmed(at.block).contains(&offset), "page {page} is mapped");
    }
    let contents = contents(device);
    for block in (0..geometry.blocks()).map(BlockIdx) {
        let bad = nand.is_bad(block);
        assert_eq!(contents.is_listed(block), bad, "the defect list has {block:?}");
        assert!(bad || !contents.is_broken(block), "{block:?} cannot be erased");
        let mut pages =
            (0..geometry.shape().pages_per_block).map(|page| geometry.address_at(block, page));
        if !bad && pages.any(|page| contents.is_readable(page.page)) {
            let erases = contents.label(block).erases;
            assert_eq!(ftl.blocks().wear(block), erases, "wear of {block:?}");
        }
    }
}

/// The same for a merging FTL; it also checks the number of erased blocks that it needs.
fn audit_merged(device: &SimDevice, merged: &MergingBackend) {
    if merged.last_addresses.is_none() {
        merged.ftl.audit();
    }
    let (contents, nand) = (contents(device), &device.flash.nand);
    contents.audit_physical_blocks(Some(&|logical| device.flash.physical_block(logical)));
    if wears_out(device) {
        for block in (0..device.flash.geometry.blocks()).map(BlockIdx) {
            assert_eq!(
                contents.is_listed(block),
                nand.is_bad(block),
                "the defect list has {block:?}"
            );
        }
        let named = contents.named_blocks();
        assert!(
            !named.iter().flatten().any(|block| nand.is_bad(*block)),
            "a bad block replaces another"
        );
    }
    let geometry = &device.flash.geometry;
    for page in (0..geometry.shape().logical_pages).map(crate::flash::geometry::Lpn) {
        if let Some(at) = merged.lookup(page) {
            let at = device.flash.physical_address(at);
            let programmed = nand.programmed(at.block);
            assert!(programmed.contains(&geometry.page_in_block(at)), "{page:?} is somewhere");
        }
    }
}

/// Return the flash contents, including operations in progress.
fn contents(device: &SimDevice) -> &Contents {
    device.events.contents.as_ref().expect("flash contents are recorded")
}

/// Return whether blocks may fail until too few are left.
fn wears_out(device: &SimDevice) -> bool {
    device.profile().reliability.is_some()
}

/// Return the blocks that cannot be erased and are not listed.
fn count_unlisted_defects(device: &SimDevice) -> u64 {
    let contents = contents(device);
    let blocks = (0..device.flash.geometry.blocks()).map(BlockIdx);
    let lost = |block: &BlockIdx| contents.is_broken(*block) && !contents.is_listed(*block);
    blocks.filter(lost).count() as u64
}

/// Return whether no die has a free page, so that nothing is written.
fn is_read_only(device: &SimDevice) -> bool {
    match &device.backend {
        AnyBackend::Paged(paged) => paged.is_read_only(),
        AnyBackend::Merged(merged) => merged.is_read_only(),
        AnyBackend::Zoned(_) => false,
    }
}

/// No counter decreases.
fn assert_counted_on(before: &Counters, after: &Counters) {
    let counted = |counters: &Counters| serde_json::to_value(counters).expect("serializable");
    let (before, after) = (counted(before), counted(after));
    for (name, count) in before.as_object().expect("counters are an object") {
        assert!(count.as_u64() <= after[name].as_u64(), "{name}: {count}, {}", after[name]);
    }
}

/// Cut the power of a device under the load of `host`, recover, and check; sometimes cut again
/// during recovery.
fn cut(
    device: &mut SimDevice,
    host: &mut TestHost,
    rng: &mut Xoshiro256PlusPlus,
    coverage: &EventCoverage,
) {
    let in_memory = contents(device).in_memory();
    let before = device.counters().expect("a simulated device has counters");
    let cut = host.cut(device);
    let saved =
        |(page, version): &(u32, u64)| contents(device).saved_version(*page) == Some(*version);
    coverage.add(&coverage.saved, in_memory.iter().filter(|entry| saved(entry)).count() as u64);
    if wears_out(device) {
        coverage.add(&coverage.unlisted, count_unlisted_defects(device));
    }
    contents(device).audit_physical_blocks(None);
    let left = contents(device).block_states().into_iter();
    let left = left
        .filter(|(condition, _, used)| matches!(condition, BlockCondition::Programmed(_)) && !used);
    coverage.add(&coverage.interrupted_moves, left.count() as u64);
    assert!(device.submit(&host.any_io()).is_err(), "a device without power refuses I/Os");
    let mut again = device.clone();
    let recovery = device.recover().expect("the device has lost power");
    assert_counted_on(&before, &device.counters().expect("a simulated device has counters"));
    host.clone().check(device);
    audit(device);
    assert!(recovery.ready >= recovery.begin && recovery.begin == cut.at);
    coverage.add(&coverage.torn, u64::from(cut.pages_torn));
    coverage.add(&coverage.half_erased, u64::from(cut.blocks_half_erased));
    coverage.add(&coverage.not_begun, u64::from(cut.pages_not_begun));
    coverage.add(&coverage.lost, u64::from(cut.pages_lost));
    coverage.add(&coverage.resurrected, u64::from(cut.pages_resurrected));
    coverage.add(&coverage.rewritten, recovery.pages_put_back);
    coverage.add(&coverage.merged, recovery.pages_merged);
    coverage.add(&coverage.dropped, recovery.blocks_dropped);
    // A power cut during recovery must not change the result.
    let versions = |device: &SimDevice| -> Vec<Option<u64>> {
        (0..device.flash.geometry.shape().logical_pages)
            .map(|page| device.version_of(page))
            .collect()
    };
    let whole = (recovery.ready - recovery.begin).0;
    for _ in 0..2 {
        let at = again.now() + Nanos(uniform(rng, whole + 2));
        again.recover_until(at).expect("the device has lost power");
    }
    again.recover().expect("the device has lost power");
    assert_eq!(versions(&again), versions(device), "recovery can be interrupted");
    audit(&again);
    host.check(device);
    let contents = contents(device);
    let blocks = (0..device.flash.geometry.blocks()).map(BlockIdx);
    coverage
        .add(&coverage.listed, blocks.filter(|block| contents.is_listed(*block)).count() as u64);
    coverage.add(&coverage.worn_out, u64::from(is_read_only(device)));
}

/// Return the pages that an FTL buffers and that came from a write cache.
fn pages_buffered_behind_cache(device: &SimDevice) -> u64 {
    let behind_cache = matches!(device.backend, AnyBackend::Merged(_)) && device.cache.is_some();
    if behind_cache { device.flash.counters.pages_absorbed } else { 0 }
}

/// A generator of random devices.
type ProfileGenerator = fn(&mut Xoshiro256PlusPlus, u64) -> (Profile, String);

fn check_device_with_cuts(
    seed: u64,
    draw: ProfileGenerator,
    coverage: &EventCoverage,
) -> Result<(), String> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (profile, name) = draw(&mut rng, seed);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let wears = profile.reliability.is_some();
        let mut device = match SimDevice::new("cut", profile) {
            Ok(device) => device,
            Err(error) => return assert!(wears, "the device does not wear out: {error:?}"),
        };
        let depth = [1, 2, 8, 24][uniform(&mut rng, 4) as usize];
        let mut host = TestHost::new(&device, rng.next_u64(), depth);
        for _ in 0..CUTS_OF_ONE / 3 {
            host.work(&mut device, 40);
            coverage.add(&coverage.kept_in_memory, pages_buffered_behind_cache(&device));
            // Cut the power of a clone twice, independently of the device.
            let (mut other, mut other_host) = (device.clone(), host.clone());
            cut(&mut other, &mut other_host, &mut rng, coverage);
            other_host.work(&mut other, 10);
            cut(&mut other, &mut other_host, &mut rng, coverage);
            cut(&mut device, &mut host, &mut rng, coverage);
        }
        coverage.add(&coverage.levelled, device.flash.counters.blocks_levelled);
    }));
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("seed {seed}: {}\n    {name}", text.unwrap_or_default())
    })
}

/// Cut the power of many devices many times; report the cases of `others` that never occur.
fn check_devices_with_cuts(draw: ProfileGenerator, others: &[&str]) {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"))
    };
    let (cuts, first) = (number("UFLIP_POWER_CUTS", CUTS), number("UFLIP_POWER_SEED", 0));
    let coverage = EventCoverage::default();
    let devices = cuts.div_ceil(CUTS_OF_ONE);
    let tried = (first..first + devices).map(|seed| check_device_with_cuts(seed, draw, &coverage));
    let broken = tried.filter_map(Result::err).inspect(|broken| eprintln!("{broken}"));
    let broken: Vec<String> = broken.collect();
    eprintln!("{} cuts of {devices} devices: {:?}", devices * CUTS_OF_ONE, coverage.all());
    assert!(broken.is_empty(), "{} devices failed:\n{}", broken.len(), broken.join("\n"));
    for (situation, count) in coverage.all() {
        let occurred = count > 0 || others.contains(&situation);
        assert!(devices < 100 || occurred, "no power cut covers: {situation}");
    }
}

#[test]
fn page_map_keeps_acknowledged_data_wherever_power_is_cut() {
    let others =
        ["merged", "dropped", "unlisted", "listed", "ended", "kept", "saved", "left", "levelled"];
    check_devices_with_cuts(|rng, _| draw::profile(rng, Endurance::Lasts), &others);
}

#[test]
fn page_map_keeps_data_on_wearing_flash_wherever_power_is_cut() {
    // One cut in a thousand finds a block that is not listed: `defects.rs` constructs it.
    check_devices_with_cuts(
        |rng, _| draw::profile(rng, Endurance::WearsOut),
        &["merged", "dropped", "unlisted", "kept", "saved", "left", "levelled"],
    );
}

#[test]
fn merging_ftl_keeps_data_wherever_power_is_cut() {
    check_devices_with_cuts(
        |rng, seed| draw_merging::profile(rng, seed, Endurance::Lasts),
        &["unlisted", "listed", "ended"],
    );
}

#[test]
fn merging_ftl_keeps_data_on_wearing_flash_wherever_power_is_cut() {
    check_devices_with_cuts(|rng, seed| draw_merging::profile(rng, seed, Endurance::WearsOut), &[]);
}
