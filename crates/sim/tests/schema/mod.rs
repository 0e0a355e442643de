//! The types of a snapshot. A changed type needs another [`uflip_sim::snapshot::SCHEMA`]; otherwise an old
//! file would be misread.
//!
//! The types are collected from devices of every kind, some with outstanding I/Os:
//! `data/schema.txt`. The folder also has a snapshot.

mod types;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, FlashIo, FlashOp, Io, Mode, Nanos, Ppa};
use uflip_sim::{OpenChannelDevice, OpenChannelProfile, Profile, SimDevice, Snapshot};

const IOS: u64 = 400;
/// Set this variable to rewrite the list of types.
const RENEW: &str = "UFLIP_RENEW_SCHEMA";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Return shipped devices that can be made small, with additional options.
fn devices() -> Vec<SimDevice> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/uflip/profiles");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.retain(|file| !file.ends_with("dfc.toml"));
    files.sort();
    let mut made = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        for more in changes(name) {
            // The smallest valid size.
            let smallest = [24, 40, 64, 128, 256, 512, 640].iter().find_map(|blocks| {
                let mut keys = json!({"blocks_per_die": blocks, "random_overwrites": 0.2});
                keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                device(&text, &keys)
            });
            made.extend(smallest);
        }
    }
    made
}

/// Return overrides of a device such that every policy, FTL and table occurs.
fn changes(name: &str) -> Vec<Value> {
    let mut changes = vec![json!({})];
    match name {
        "demo" => changes.extend([
            json!({"gc": "d_choices:4", "allocator": "most_free"}),
            json!({"gc": "cost_benefit", "die_queue": "reads_first"}),
            json!({"gc": "greedy_window:4", "separate_streams": true}),
            json!({"gc": "random", "write_cache_bytes": 1 << 20}),
            json!({"gc": "greedy", "allocator": "die_first"}),
            json!({"gc": "spare_shares"}),
            json!({"gc": "spare_shares", "write_streams": 2}),
            json!({"buses": 1, "bus_bytes_per_s": 400_000_000}),
            json!({"planes_per_die": 2}),
            json!({"planes_per_die": 2, "multi_plane": "same_page"}),
        ]),
        "fast-1gb" => {
            changes = vec![
                json!({"log_blocks": 16}),
                json!({"ftl": "bast", "log_blocks": 16}),
                json!({"ftl": "superblock", "log_blocks": 16}),
                json!({"log_blocks": 16, "power_loss_protection": false, "spare_read_bytes": 16}),
                json!({"log_blocks": 16, "power_loss_protection": false, "spare_read_bytes": 16,
                    "static_wear_threshold": 1}),
            ];
        }
        // The halves of the small sizes are whole units.
        "kingston-dti" => {
            changes.push(json!({"spare_factor": 0.5, "open_units": 8, "log_clusters": 128}))
        }
        "worn-mlc" => {
            // Their interrupted work depends on which reads fail.
            changes.extend((1..13).map(|seed| {
                json!({"power_loss_protection": false, "spare_read_bytes": 16, "seed": seed})
            }));
            // The end of a suspendable erase is unknown.
            changes.extend((1..5).map(|seed| {
                json!({"power_loss_protection": false, "spare_read_bytes": 16, "seed": seed,
                    "die_queue": "reads_first", "erase_suspend_ns": 50_000, "suspensions_max": 8,
                    "erase_ns": 50_000_000})
            }));
        }
        _ => {}
    }
    changes
}

fn device(text: &str, keys: &Value) -> Option<SimDevice> {
    let profile = Profile::parse(text, "profile.toml", &keys.to_string());
    SimDevice::new("small", profile.ok()?).ok()
}

/// Use a device, and stop in the middle.
fn run_ios(device: &mut SimDevice) {
    let (capacity, sector) = (device.info().capacity_bytes.0, device.info().sector_bytes.0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for number in 0..IOS {
        let size = sector * (1 + uniform(&mut rng, 16)).min(capacity / sector);
        let offset = sector * uniform(&mut rng, (capacity - size) / sector + 1);
        let mode = if uniform(&mut rng, 3) == 0 { Mode::Read } else { Mode::Write };
        let io = Io { offset: Bytes(offset), size: Bytes(size), mode, stream: 0 };
        // A zone accepts only sequential writes.
        if device.submit(&io).is_err() {
            return;
        }
        while number % 8 == 7
            && number + 1 < IOS
            && device.next_completion(Nanos(u64::MAX)).is_some()
        {
            if device.complete().is_err() {
                return;
            }
        }
    }
}

/// Create an open-channel device on flash that fails and ages.
fn open_channel() -> OpenChannelDevice {
    let text = include_str!("../../../../python/uflip/profiles/dfc.toml");
    let keys = json!({"blocks_per_plane": 4, "pages_per_block": 8, "erases": 3_000, "retry_gain": 0.7,
        "factory_bad_share": 0.1, "program_failures": 0.1, "erase_failures": 0.1, "read_disturb_doubling": 1_000});
    let profile = OpenChannelProfile::parse(text, "dfc.toml", &keys.to_string()).unwrap();
    OpenChannelDevice::new("small", &profile).unwrap()
}

/// Submit vectors of every kind to every LUN; some are outstanding at the end.
fn run_vectors(device: &mut OpenChannelDevice) {
    let geometry = *device.geometry();
    for number in 0..64 {
        let lun = number / 2 % geometry.luns();
        let at = |plane: u32, sector: u32| Ppa {
            channel: (lun % geometry.channels) as u8,
            lun: (lun / geometry.channels) as u8,
            block: 0,
            plane: plane as u8,
            page: number / 2 / geometry.luns(),
            sector: sector as u8,
        };
        let sectors = geometry.sectors_per_page;
        let page: Vec<Ppa> = (0..geometry.planes * sectors)
            .map(|index| at(index / sectors, index % sectors))
            .collect();
        let op = [FlashOp::Write, FlashOp::Read][number as usize % 2];
        device.submit(&FlashIo::new(op, &page).unwrap()).unwrap();
    }
    for _ in 0..20 {
        device.complete().unwrap();
    }
}

fn types() -> String {
    let mut lines = BTreeSet::new();
    let devices = devices();
    assert!(devices.len() > 20, "{} devices", devices.len());
    for mut device in devices {
        types::record_types(&device, &mut lines);
        run_ios(&mut device);
        types::record_types(&device, &mut lines);
    }
    let mut device = open_channel();
    types::record_types(&device, &mut lines);
    run_vectors(&mut device);
    types::record_types(&device, &mut lines);
    // Empty collections and options do not show their types.
    lines.retain(|line| !line.contains("<>") && !line.ends_with(": Option"));
    lines.into_iter().map(|line| line + "\n").collect()
}

#[test]
fn snapshot_types_match_schema() {
    let path = data("schema.txt");
    let now = types();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (written.lines().collect(), now.lines().collect());
    let list =
        |lines: Vec<&&str>| lines.iter().map(|line| format!("\n  {line}")).collect::<String>();
    assert!(
        old == new,
        "a device is made of other types than {} says:\nno more{}\nnew{}\nIf a release has the present schema, \
         raise SCHEMA in snapshot/mod.rs; write the types down with {RENEW}=1. Where no type has changed, and \
         devices only came to have what they did not have before, the number may stay.",
        path.display(),
        list(old.difference(&new).collect()),
        list(new.difference(&old).collect()),
    );
}

/// A stored snapshot of the present schema is read. Files of others: `snapshot.rs`.
#[test]
fn stored_snapshot_is_read() {
    let path = data("device.snapshot");
    if std::env::var_os(RENEW).is_some() {
        let text = include_str!("../../../../python/uflip/profiles/demo.toml");
        let mut small = device(text, &json!({"blocks_per_die": 24})).unwrap();
        run_ios(&mut small);
        let _ = std::fs::remove_file(&path);
        small.save(&path).unwrap();
    }
    let mut device = SimDevice::restore(&path).unwrap();
    let mut completed = 0;
    while device.next_completion(Nanos(u64::MAX)).is_some() {
        device.complete().unwrap();
        completed += 1;
    }
    assert_eq!(completed, 8, "I/Os outstanding at the time of saving");
    assert!(device.counters().unwrap().host_pages_written > 0);
}
