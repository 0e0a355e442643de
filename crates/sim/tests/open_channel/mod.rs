//! The simulated open-channel SSD compared with a second implementation of the NAND rules, and with
//! the contract of the `Device` trait: random geometries, random vectors, one printed seed.

mod failing;
mod one_at_a_time;
mod queues;

use proptest::prelude::*;
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{
    AddressStatus, Breakdown, Device, FlashGeometry, FlashIo, FlashOp, Nanos, Ppa, Ticket,
};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile};

const DFC: &str = include_str!("../../../../python/uflip/profiles/dfc.toml");

fn device(overrides: &str) -> OpenChannelDevice {
    let profile = OpenChannelProfile::parse(DFC, "dfc.toml", overrides).unwrap();
    OpenChannelDevice::new("dfc", &profile).unwrap()
}

/// Create a very small device, where every case occurs soon; only the host makes errors.
fn small() -> OpenChannelDevice {
    device(
        r#"{"channels": 2, "luns_per_channel": 2, "blocks_per_plane": 2, "pages_per_block": 4,
            "rber_fresh": 1e-12, "rber_rated": 1e-12}"#,
    )
}

/// Do a single command; return its time and the status of each address.
fn command(device: &mut OpenChannelDevice, op: FlashOp, ppas: &[Ppa]) -> (u64, Vec<AddressStatus>) {
    device.submit(&FlashIo::new(op, ppas).unwrap()).unwrap();
    let completion = device.complete().unwrap();
    let statuses = (0..ppas.len()).map(|index| completion.status.address(index)).collect();
    (completion.completed.0 - completion.submitted.0, statuses)
}

fn page(device: &OpenChannelDevice, at: Ppa) -> Vec<Ppa> {
    let mut io = FlashIo::empty(FlashOp::Write);
    io.push_page(device.geometry(), at);
    io.ppas().to_vec()
}

fn at(block: u32, page: u32) -> Ppa {
    Ppa { block, page, ..Ppa::default() }
}

#[test]
fn host_errors_set_address_status() {
    let mut device = small();
    let first = page(&device, at(0, 0));
    let all = |status: AddressStatus| vec![status; 8];
    assert_eq!(command(&mut device, FlashOp::Read, &first).1, all(AddressStatus::Unwritten));
    assert_eq!(command(&mut device, FlashOp::Write, &first).1, all(AddressStatus::Done));
    assert_eq!(command(&mut device, FlashOp::Read, &first).1, all(AddressStatus::Done));
    assert_eq!(command(&mut device, FlashOp::Write, &first).1, all(AddressStatus::OutOfOrder));
    let third = page(&device, at(0, 2));
    assert_eq!(command(&mut device, FlashOp::Write, &third).1, all(AddressStatus::OutOfOrder));
    let second = page(&device, at(0, 1));
    let half = command(&mut device, FlashOp::Write, &second[..4]).1;
    assert_eq!(half, vec![AddressStatus::PartialPage; 4]);
    let outside = command(&mut device, FlashOp::Read, &[at(0, 0), at(9, 0), at(0, 3)]).1;
    assert_eq!(outside, [AddressStatus::Done, AddressStatus::OutOfRange, AddressStatus::Unwritten]);
    assert_eq!(command(&mut device, FlashOp::Erase, &[at(0, 1)]).1, [AddressStatus::OutOfRange]);
    assert_eq!(command(&mut device, FlashOp::Erase, &[at(0, 0)]).1, [AddressStatus::Done]);
    assert_eq!(command(&mut device, FlashOp::Write, &first).1, all(AddressStatus::Done));
}

#[test]
fn valid_addresses_of_failed_vector_are_executed() {
    let mut device = small();
    let mut vector = page(&device, at(0, 0));
    vector.extend(page(&device, at(1, 3)));
    vector.extend(page(&device, at(0, 1)));
    let statuses = command(&mut device, FlashOp::Write, &vector).1;
    assert_eq!(statuses[..8], [AddressStatus::Done; 8]);
    assert_eq!(statuses[8..16], [AddressStatus::OutOfOrder; 8]);
    assert_eq!(statuses[16..], [AddressStatus::Done; 8]);
}

#[test]
fn unerasable_block_is_retired() {
    let mut device = device(r#"{"erase_step_cycles": 1, "erase_steps_max": 1}"#);
    let mut times = Vec::new();
    for expected in [AddressStatus::Done, AddressStatus::Done, AddressStatus::EraseFailed] {
        let (time, status) = command(&mut device, FlashOp::Erase, &[at(5, 0)]);
        times.push(time);
        assert_eq!(status, [expected]);
    }
    assert_eq!(times[1] - times[0], 250_000, "the erase is one step longer");
    let retired = page(&device, at(5, 0));
    for op in [FlashOp::Write, FlashOp::Read] {
        assert_eq!(command(&mut device, op, &retired).1, [AddressStatus::Retired; 8]);
    }
    assert!(device.block_state(at(5, 0)).unwrap().retired);
    assert!(!device.block_state(at(6, 0)).unwrap().retired);
}

/// Times computed by hand from the numbers of the profile.
#[test]
fn command_times_match_profile() {
    let mut device = device(r#"{"program_spread_permille": 0, "quick_low_pages": 0}"#);
    let transfer = 32_768 * 1_000_000_000 / 50_400_000;
    let threads = 35_000 + 5_000 + 40_000;
    let (write, _) = command(&mut device, FlashOp::Write, &page(&small(), at(0, 0)));
    assert_eq!(write, threads + transfer, "acknowledged when the data is in the card");
    // The low page is still being programmed when the next write comes.
    let (next, _) = command(&mut device, FlashOp::Write, &page(&small(), at(0, 1)));
    assert_eq!(next, threads + transfer + 415_000 - (35_000 + 5_000 + 40_000));
    device.wait_until(Nanos(device.now().0 + 10_000_000));
    let (read, _) = command(&mut device, FlashOp::Read, &page(&small(), at(0, 0)));
    assert_eq!(read, threads + 150_000 + transfer);
    let (erase, _) = command(&mut device, FlashOp::Erase, &[at(7, 0)]);
    assert_eq!(erase, threads + 3_900_000);
}

#[test]
fn each_queue_thread_submits_one_command() {
    // Two vectors of two pages, on four channels, at once.
    let ends = |threads: u32| {
        let mut device = device(&format!(r#"{{"queue_threads": {threads}}}"#));
        for first in [0, 2] {
            let mut vector = page(&device, Ppa { channel: first, ..at(0, 0) });
            vector.extend(page(&device, Ppa { channel: first + 1, ..at(0, 0) }));
            device.submit(&FlashIo::new(FlashOp::Write, &vector).unwrap()).unwrap();
        }
        [0; 2].map(|_| device.complete().unwrap().completed.0)
    };
    let alone = 2 * 35_000 + 5_000 + 32_768 * 1_000_000_000 / 50_400_000 + 40_000;
    assert_eq!(ends(1), [alone, alone + 2 * 35_000]);
    assert_eq!(ends(2), [alone, alone]);
    assert_eq!(ends(8), [alone, alone], "the pages of a vector have one thread");
}

#[test]
fn lun_spread_draws_factor_for_each_lun() {
    let cells = |seed: u64, lun: u8| {
        let mut device = device(&format!(
            r#"{{"lun_spread_permille": 100, "program_spread_permille": 0, "quick_low_pages": 0,
                "write_back": false, "seed": {seed}}}"#
        ));
        let there = Ppa { lun, ..at(0, 0) };
        let ppas = page(&device, there);
        let (write, _) = command(&mut device, FlashOp::Write, &ppas);
        let (read, _) = command(&mut device, FlashOp::Read, &ppas);
        let (erase, _) = command(&mut device, FlashOp::Erase, &[there]);
        let transfer = 32_768 * 1_000_000_000 / 50_400_000;
        let threads = 35_000 + 5_000 + 40_000;
        let factor = |time: u64, of: u64| (time - threads) as f64 / of as f64;
        [
            factor(write - transfer, 415_000),
            factor(read - transfer, 150_000),
            factor(erase, 3_900_000),
        ]
    };
    let factors: Vec<f64> = (0..4).map(|lun| cells(1, lun)[0]).collect();
    for (lun, factor) in factors.iter().enumerate() {
        assert!((0.9..=1.1).contains(factor), "LUN {lun}: {factor}");
        for same in cells(1, lun as u8) {
            assert!((same - factor).abs() < 1e-4, "LUN {lun}: {same} and {factor}");
        }
        assert!((cells(2, lun as u8)[0] - factor).abs() > 1e-4, "another device differs");
    }
    let spread = factors.iter().fold(0.0f64, |most, factor| most.max((factor - factors[0]).abs()));
    assert!(spread > 0.01, "{factors:?}");
}

#[test]
fn failed_read_fails_until_erase() {
    let mut device = device(r#"{"erases": 20000, "erase_steps_max": 1000}"#);
    let mut failures = 0;
    for number in 0..200 {
        command(&mut device, FlashOp::Write, &page(&small(), at(0, number)));
    }
    for number in 0..200 {
        let ppas = page(&device, at(0, number));
        let once = command(&mut device, FlashOp::Read, &ppas).1;
        assert_eq!(once, command(&mut device, FlashOp::Read, &ppas).1);
        failures += usize::from(once.contains(&AddressStatus::Uncorrectable));
    }
    assert!((10..190).contains(&failures), "{failures} of 200 pages fail after 20,000 erases");
}

#[test]
fn worn_cells_read_slower_on_idle_device() {
    let transfer = 32_768 * 1_000_000_000 / 50_400_000;
    let threads = 35_000 + 5_000 + 40_000;
    for (erases, some_fail) in [(0, false), (20_000, true)] {
        let mut device = device(&format!(r#"{{"erases": {erases}, "erase_steps_max": 1000}}"#));
        for number in 0..200 {
            command(&mut device, FlashOp::Write, &page(&small(), at(0, number)));
        }
        device.wait_until(Nanos(device.now().0 + 1_000_000_000));
        let mut failed = 0;
        for number in 0..200 {
            let ppas = page(&device, at(0, number));
            let (time, statuses) = command(&mut device, FlashOp::Read, &ppas);
            let lost = statuses.contains(&AddressStatus::Uncorrectable);
            // Three more failed retries: `retries_max` of the profile.
            let reads = if lost { 4 } else { 1 };
            assert_eq!(time, threads + reads * (150_000 + transfer), "page {number}");
            failed += u64::from(lost);
        }
        assert_eq!(failed > 0, some_fail);
        assert_eq!(device.counters().unwrap().read_retries, 3 * failed);
    }
}

#[test]
fn erase_count_saturates() {
    let overrides = r#"{"erases": 4294967295, "erase_step_cycles": 0}"#;
    let mut device = device(overrides);
    let (_, statuses) = command(&mut device, FlashOp::Erase, &[at(0, 0)]);
    assert_eq!(statuses[0], AddressStatus::Done);
    assert_eq!(device.block_state(at(0, 0)).unwrap().erases, u32::MAX);
}

/// The rules of NAND flash, based on one remembered page per block.
struct Oracle {
    geometry: FlashGeometry,
    written: std::collections::BTreeMap<(u8, u8, u32), u32>,
}

impl Oracle {
    fn expected(&mut self, op: FlashOp, ppas: &[Ppa]) -> Vec<AddressStatus> {
        let inside = |ppa: &Ppa| self.geometry.check(*ppa).is_ok();
        let block = |ppa: &Ppa| (ppa.channel, ppa.lun, ppa.block);
        match op {
            FlashOp::Erase => ppas
                .iter()
                .map(|ppa| {
                    if !inside(ppa) || ppa.plane != 0 || ppa.page != 0 || ppa.sector != 0 {
                        return AddressStatus::OutOfRange;
                    }
                    self.written.remove(&block(ppa));
                    AddressStatus::Done
                })
                .collect(),
            FlashOp::Read => ppas
                .iter()
                .map(|ppa| match self.written.get(&block(ppa)) {
                    _ if !inside(ppa) => AddressStatus::OutOfRange,
                    Some(next) if ppa.page < *next => AddressStatus::Done,
                    _ => AddressStatus::Unwritten,
                })
                .collect(),
            // The swarm writes whole pages only: the tests above do other writes.
            FlashOp::Write => ppas
                .chunks(self.geometry.write_sectors() as usize)
                .flat_map(|page| {
                    let first = page[0];
                    let next = self.written.entry(block(&first)).or_default();
                    let done = *next == first.page;
                    *next += u32::from(done);
                    let status = if done { AddressStatus::Done } else { AddressStatus::OutOfOrder };
                    vec![status; page.len()]
                })
                .collect(),
        }
    }
}

/// Return a random command, valid in most cases.
fn random_command(g: &FlashGeometry, rng: &mut Xoshiro256PlusPlus) -> FlashIo {
    let mut any = |count: u32| uniform(rng, u64::from(count)) as u32;
    let op = FlashOp::ALL[any(3) as usize];
    let mut io = FlashIo::empty(op);
    let pages = 1 + any(64 / g.write_sectors());
    for _ in 0..pages {
        let at = Ppa {
            channel: any(g.channels) as u8,
            lun: any(g.luns_per_channel) as u8,
            block: any(g.blocks_per_plane),
            page: any(g.pages_per_block.min(4)),
            ..Ppa::default()
        };
        match op {
            FlashOp::Write => io.push_page(g, at),
            FlashOp::Erase => io.push(Ppa { page: any(8) / 7, ..at }),
            FlashOp::Read => {
                let beyond = any(10) / 9;
                io.push(Ppa { plane: any(g.planes) as u8, block: at.block + beyond, ..at });
            }
        }
    }
    io
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Statuses match the oracle; every ticket completes once, in time order; the clock never goes
    /// back; parts sum to the response time; the same seed gives the same run.
    #[test]
    fn random_commands_match_oracle(
        channels in 1u32..5, luns in 1u32..4, planes in 1u32..3, sectors in 1u32..5,
        blocks in 1u32..4, pages in 1u32..9, depth in 1usize..9, write_back: bool, seed: u64,
    ) {
        let overrides = format!(
            r#"{{"channels": {channels}, "luns_per_channel": {luns}, "planes": {planes},
                "sectors_per_page": {sectors}, "blocks_per_plane": {blocks},
                "pages_per_block": {pages}, "write_back": {write_back}, "rber_fresh": 1e-12,
                "rber_rated": 1e-12, "seed": {}}}"#,
            seed >> 1,
        );
        let (first, second) = (run(&overrides, depth, seed)?, run(&overrides, depth, seed)?);
        prop_assert_eq!(first, second);
    }
}

/// Return the response times of 300 random commands at queue depth `depth`.
fn run(overrides: &str, depth: usize, seed: u64) -> Result<Vec<(Ticket, u64)>, TestCaseError> {
    let mut device = device(overrides);
    let geometry = *device.geometry();
    let mut oracle = Oracle { geometry, written: Default::default() };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut expected = std::collections::BTreeMap::new();
    let (mut log, mut last) = (Vec::new(), Nanos(0));
    for number in 0..300 {
        let io = random_command(&geometry, &mut rng);
        let statuses = oracle.expected(io.op(), io.ppas());
        let ticket = device.submit(&io).unwrap();
        prop_assert!(expected.insert(ticket, statuses).is_none(), "a ticket is used once");
        while expected.len() >= depth || (number == 299 && !expected.is_empty()) {
            let due = device.next_completion(Nanos(u64::MAX));
            let completion = device.complete().unwrap();
            let Some(statuses) = expected.remove(&completion.ticket) else {
                return Err(TestCaseError::fail("completed twice, or never submitted"));
            };
            prop_assert_eq!(Some(completion.completed), due);
            prop_assert!(completion.completed >= last, "completions come in the order of time");
            prop_assert!(device.now() >= completion.completed);
            last = completion.completed;
            let got: Vec<AddressStatus> =
                (0..statuses.len()).map(|index| completion.status.address(index)).collect();
            prop_assert_eq!(got, statuses);
            let time = completion.completed.0 - completion.submitted.0;
            prop_assert_eq!(completion.breakdown.parts().iter().sum::<u64>(), time);
            log.push((completion.ticket, time));
        }
    }
    prop_assert_eq!(device.next_completion(Nanos(u64::MAX)), None);
    Ok(log)
}

#[test]
fn invalid_profile_names_fault() {
    let wrong = |overrides: &str| {
        OpenChannelProfile::parse(DFC, "dfc.toml", overrides).unwrap_err().to_string()
    };
    assert!(wrong(r#"{"vector_max": 7}"#).contains("8 or more"));
    assert!(wrong(r#"{"channels": 0}"#).contains("1 to 256"));
    assert!(wrong(r#"{"wear_law": "linear"}"#).contains("power, exponential"));
    assert!(wrong(r#"{"spare_factor": 0.1}"#).contains("Unknown key of a profile"));
    let block = include_str!("../../../../python/uflip/profiles/demo.toml");
    let error = OpenChannelProfile::parse(block, "demo.toml", "{}").unwrap_err().to_string();
    assert!(error.contains("block device"), "{error}");
    let error = uflip_sim::Profile::parse(DFC, "dfc.toml", "{}").unwrap_err().to_string();
    assert!(error.contains("uflip oc"), "{error}");
}
