//! The same for devices without an FTL: random profiles and random command vectors, valid or not. A
//! rule violation is a status; nothing else may fail.

use serde_json::{Map, Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Breakdown as _, Device, ErrorKind, FlashIo, FlashOp, Nanos, Ppa};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile, Snapshot};

use super::live::catch_panic;

const BASE: &str = include_str!("../../../../python/uflip/profiles/dfc.toml");
/// Larger devices are only read and checked.
const BLOCKS_MAX: u64 = 1 << 12;
const COMMANDS: u64 = 250;

/// Try device number `index` of `seed`; return whether it was accepted.
///
/// # Panics
/// If it breaks; the message reproduces it.
pub fn run_case(seed: u64, index: u64) -> bool {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1 << 32) ^ index);
    let overrides = draw_overrides(&mut rng);
    let hosts = uniform(&mut rng, 1 << 32);
    let line = format!("sim:dfc with {} host seed={hosts}", Value::Object(overrides.clone()));
    let outcome = catch_panic(|| {
        let text = Value::Object(overrides).to_string();
        let profile = match OpenChannelProfile::parse(BASE, "dfc", &text) {
            Ok(profile) => profile,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
                return false;
            }
        };
        let part = &profile.geometry;
        let luns = u64::from(part.channels) * u64::from(part.luns_per_channel);
        if luns * u64::from(part.blocks_per_plane) > BLOCKS_MAX {
            return true;
        }
        let mut device = OpenChannelDevice::new("swarm", &profile).expect("create the device");
        let mut driver = VectorDriver::new(hosts);
        (0..COMMANDS / 2).for_each(|_| driver.step(&mut device));
        let copies = [device.clone(), save_and_restore(&device)];
        let survived = driver.clone().end(&mut device);
        for mut copy in copies {
            assert_eq!(driver.clone().end(&mut copy), survived, "the same state, the same bytes");
        }
        true
    });
    outcome.unwrap_or_else(|message| panic!("an open-channel device failed: {line}: {message}"))
}

/// Draw overrides, some of them implausible.
fn draw_overrides(rng: &mut Xoshiro256PlusPlus) -> Map<String, Value> {
    let mut choose = |values: &[u64]| values[uniform(rng, values.len() as u64) as usize];
    let mut overrides = Map::new();
    let mut set = |key: &str, value: u64| overrides.insert(key.to_owned(), json!(value));
    set("channels", choose(&[1, 2, 3, 8]));
    set("luns_per_channel", choose(&[1, 2, 4]));
    set("planes", choose(&[1, 2, 4]));
    set("blocks_per_plane", choose(&[1, 2, 7, 64]));
    set("pages_per_block", choose(&[1, 2, 3, 16, 64]));
    set("sectors_per_page", choose(&[1, 2, 4]));
    set("retry_permille", choose(&[0, 10, 500, 1000]));
    set("retries_max", choose(&[0, 1, 3, 100]));
    set("program_spread_permille", choose(&[0, 1, 100, 1000]));
    set("quick_low_pages", choose(&[0, 1, 2, 7]));
    set("erases", choose(&[0, 1, 3000, u64::from(u32::MAX)]));
    let odd =
        [0, 1, 2, 64, 65, 255, 256, 257, 1 << 20, 1 << 24, 1 << 31, u64::from(u32::MAX), u64::MAX];
    let keys = [
        "channels",
        "luns_per_channel",
        "planes",
        "blocks_per_plane",
        "pages_per_block",
        "sectors_per_page",
        "sector_bytes",
        "vector_max",
        "read_ns",
        "program_low_ns",
        "program_high_ns",
        "program_quick_ns",
        "erase_ns",
        "retries_max",
        "channel_bytes_per_s",
        "lun_switch_ns",
        "queue_thread_ns",
        "submission_thread_ns",
        "media_completion_thread_ns",
        "host_completion_thread_ns",
        "erases",
        "seed",
        "erase_step_cycles",
        "erase_step_ns",
        "erase_steps_max",
        "rated_cycles",
    ];
    for _ in 0..choose(&[0, 0, 1, 2]) {
        let key = keys[choose(&(0..keys.len() as u64).collect::<Vec<_>>()) as usize];
        set(key, choose(&odd));
    }
    overrides
}

/// A host with up to 16 outstanding commands.
#[derive(Clone)]
struct VectorDriver {
    rng: Xoshiro256PlusPlus,
    seen: Vec<String>,
    outstanding: u32,
    last: Nanos,
}

impl VectorDriver {
    fn new(seed: u64) -> VectorDriver {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        VectorDriver { rng, seen: Vec::new(), outstanding: 0, last: Nanos(0) }
    }

    /// Do one step: a command, a completion, or a pause.
    fn step(&mut self, device: &mut OpenChannelDevice) {
        if self.outstanding < 16 && uniform(&mut self.rng, 3) > 0 {
            let io = command(device, &mut self.rng);
            device.submit(&io).expect("the command is accepted");
            self.outstanding += 1;
        } else if self.outstanding > 0 {
            self.take(device);
        } else {
            let until = device.now() + Nanos(uniform(&mut self.rng, 1 << 24));
            device.wait_until(until);
        }
    }

    fn take(&mut self, device: &mut OpenChannelDevice) {
        let due = device.next_completion(Nanos(u64::MAX)).expect("a command is outstanding");
        let done = device.complete().expect("the command completes");
        self.outstanding -= 1;
        assert!(done.completed == due && due >= self.last, "in the order of time");
        self.last = due;
        let parts = done.breakdown.parts();
        assert_eq!(parts.iter().sum::<u64>(), (done.completed - done.submitted).0, "the parts sum");
        let statuses: Vec<_> = (0..4).map(|index| done.status.address(index).name()).collect();
        self.seen.push(format!("{due} {parts:?} {statuses:?}"));
    }

    /// Complete its commands; return all results.
    fn end(mut self, device: &mut OpenChannelDevice) -> String {
        (0..COMMANDS / 2).for_each(|_| self.step(device));
        while self.outstanding > 0 {
            self.take(device);
        }
        format!("{:?} {:?} {}", self.seen, device.counters(), device.now())
    }
}

/// Return the device, saved and restored.
fn save_and_restore(device: &OpenChannelDevice) -> OpenChannelDevice {
    let folder = tempfile::tempdir().expect("create a temporary folder");
    let path = folder.path().join("saved.snapshot");
    device.save(&path).expect("save the device");
    OpenChannelDevice::restore(&path).expect("restore the device")
}

/// Return a command on one block: its next page, or a random one.
fn command(device: &OpenChannelDevice, rng: &mut Xoshiro256PlusPlus) -> FlashIo {
    let geometry = *device.geometry();
    let mut below = |end: u32| uniform(rng, u64::from(end.max(1))) as u32;
    let astray = u32::from(below(10) == 0);
    let at = Ppa {
        channel: (below(geometry.channels) + astray) as u8,
        lun: below(geometry.luns_per_channel) as u8,
        block: below(geometry.blocks_per_plane.min(4)),
        plane: 0,
        page: 0,
        sector: 0,
    };
    let written = device.block_state(at).map_or(0, |state| state.pages_written);
    let (op, page) = match below(8) {
        0 => (FlashOp::Erase, 0),
        1..=4 => (FlashOp::Write, written),
        5 => (FlashOp::Write, below(geometry.pages_per_block)),
        _ => (FlashOp::Read, below(written + 1)),
    };
    let at = Ppa { page, ..at };
    if op == FlashOp::Erase {
        return FlashIo::new(op, &[at]).expect("one address");
    }
    let planes = 0..geometry.planes as u8;
    let sectors = geometry.sectors_per_page as u8;
    let ppas: Vec<Ppa> = planes
        .flat_map(|plane| (0..sectors).map(move |sector| Ppa { plane, sector, ..at }))
        .collect();
    let some = if below(6) == 0 { 1 } else { ppas.len() };
    FlashIo::new(op, &ppas[..some]).expect("at most 64 addresses")
}
