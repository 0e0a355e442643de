//! Energy by cause, compared with sums computed by hand.

use uflip_core::{Device, Energy, EnergyCause, Mode, Nanos};
use uflip_sim::{Profile, SimDevice};

use super::{io, profile, run_alone, with_ftl};

const READ_NJ: u64 = 1_237;
const PROGRAM_NJ: u64 = 9_901;
const ERASE_NJ: u64 = 74_253;
const TRANSFER_PJ: u64 = 751;
const COMMAND_NJ: u64 = 311;
const MEMORY_MW: u64 = 53;
const IDLE_MW: u64 = 407;
const PAGE_BYTES: u64 = 4096;

fn device(ftl: &str, state: &str, changes: &str) -> SimDevice {
    // One die: a page that is moved by copy-back has no other one to go to.
    let text = profile(1, 1, state);
    let text = if ftl == "page_map" { text } else { with_ftl(ftl, &text) };
    let energy = format!(
        "energy = {{ read_nj = {READ_NJ}, program_nj = {PROGRAM_NJ}, erase_nj = {ERASE_NJ}, \
         transfer_pj_per_byte = {TRANSFER_PJ}, command_nj = {COMMAND_NJ}, \
         memory_mw = {MEMORY_MW}, idle_mw = {IDLE_MW} }}\n        sources = {{"
    );
    let text = text.replace("sources = {", &energy);
    SimDevice::new("test", Profile::parse(&text, "test", changes).unwrap()).unwrap()
}

fn energy(device: &SimDevice) -> Energy {
    device.counters().unwrap().energy.expect("the profile has energies")
}

#[test]
fn device_without_energies_reports_none() {
    let device = super::device(1, 1, "empty");
    assert_eq!(device.counters().unwrap().energy, None);
    assert!(!device.counters().unwrap().to_json().contains("energy"));
}

#[test]
fn preconditioning_uses_no_energy() {
    assert_eq!(energy(&device("page_map", "random", "{}")), Energy::default());
}

/// N reads use N times the energy of a read, its transfer and its command, and power for the time.
#[test]
fn energy_of_reads_is_sum_of_parts() {
    const READS: u64 = 37;
    for ftl in ["page_map", "block_map"] {
        let mut device = device(ftl, "sequential", "{}");
        let mut elapsed_ns = 0;
        for page in 0..READS {
            elapsed_ns += run_alone(&mut device, io(Mode::Read, page, 1)).0;
        }
        device.wait_until(device.now() + Nanos(1_000_000));
        elapsed_ns += 1_000_000;
        let used = energy(&device);
        let expected = [
            (EnergyCause::CellRead, READS * READ_NJ),
            (EnergyCause::Transfer, READS * PAGE_BYTES * TRANSFER_PJ / 1000),
            (EnergyCause::Controller, READS * COMMAND_NJ),
            (EnergyCause::Memory, elapsed_ns * MEMORY_MW / 1000),
            (EnergyCause::Idle, elapsed_ns * IDLE_MW / 1000),
        ];
        for (cause, nanojoules) in expected {
            assert_eq!(used.nanojoules(cause), nanojoules, "{ftl}: {cause:?}");
        }
        let all: u64 = used.named().map(|(_, nanojoules)| nanojoules).sum();
        assert_eq!(all, expected.iter().map(|(_, nanojoules)| nanojoules).sum::<u64>(), "{ftl}");
    }
}

/// The energy of writes follows from the counters of pages and blocks, which count separately.
#[test]
fn energy_of_writes_agrees_with_counters() {
    for copy_back in [false, true] {
        let changes = format!(r#"{{"relocation": "same_die", "copy_back": {copy_back}}}"#);
        let mut device = device("page_map", "sequential", &changes);
        let pages = device.info().capacity_bytes.0 / PAGE_BYTES;
        for number in 0..4 * pages {
            run_alone(&mut device, io(Mode::Write, number * 7919 % pages, 1));
        }
        // Until all collection has ended.
        device.wait_until(device.now() + Nanos(1_000_000_000));
        let (used, counters) = (energy(&device), device.counters().unwrap());
        assert!(counters.pages_relocated > 100 && counters.blocks_erased > 100);
        let host = counters.pages_programmed - counters.pages_relocated;
        let moved = counters.pages_relocated * (READ_NJ + PROGRAM_NJ);
        // A page that the host replaces while it is read is not programmed again.
        let in_vain = used.nanojoules(EnergyCause::Relocation) - moved;
        assert!(in_vain <= moved / 100, "copy-back {copy_back}: {in_vain} nJ");
        let reads_in_vain = if copy_back { 0 } else { in_vain / READ_NJ };
        assert!(copy_back || in_vain.is_multiple_of(READ_NJ));
        let relocated = if copy_back { 0 } else { 2 * counters.pages_relocated };
        let transfers = host + relocated + reads_in_vain;
        for (cause, nanojoules) in [
            (EnergyCause::CellProgram, host * PROGRAM_NJ),
            (EnergyCause::Erase, counters.blocks_erased * ERASE_NJ),
            (EnergyCause::Transfer, transfers * PAGE_BYTES * TRANSFER_PJ / 1000),
            (EnergyCause::Controller, 4 * pages * COMMAND_NJ),
        ] {
            assert_eq!(used.nanojoules(cause), nanojoules, "copy-back {copy_back}: {cause:?}");
        }
    }
}

/// Collection in idle time uses energy although no I/O waits for it.
#[test]
fn idle_collection_uses_energy_without_response_time() {
    let mut device = device("page_map", "random", r#"{"idle_free_blocks": 12}"#);
    run_alone(&mut device, io(Mode::Write, 0, 1));
    let before = energy(&device);
    device.wait_until(device.now() + Nanos(2_000_000_000));
    let used = energy(&device).since(&before);
    assert!(
        used.nanojoules(EnergyCause::Relocation) > 0 && used.nanojoules(EnergyCause::Erase) > 0
    );
    assert_eq!(used.nanojoules(EnergyCause::CellProgram), 0);
}
