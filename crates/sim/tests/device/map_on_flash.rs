//! A map on flash: its page shows that a logical page was never written.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Device, Io, Mode};
use uflip_sim::{Profile, SimDevice};

use super::{READ, io, part, profile, run_alone};

/// Create a device with its map on flash, and memory for one page of it: 128 entries of 512 bytes.
fn map_on_flash() -> SimDevice {
    let text = include_str!("../../../../python/uflip/profiles/intel-x25m.toml");
    let overrides = format!(
        r#"{{"channels": 1, "dies_per_channel": 2, "blocks_per_die": 32, "pages_per_block": 16,
        "page_bytes": 512, "spare_bytes": 0, "stripe_dies": 1, "map_memory_bytes": 512,
        "map_changed_bytes": 512, "spare_factor": 0.5, "state": "empty", "read_ns": {READ},
        "channel_bytes_per_s": 100000000}}"#
    );
    let profile = Profile::parse(text, "intel-x25m", &overrides).unwrap();
    SimDevice::new("test", profile).unwrap()
}

#[test]
fn unwritten_page_read_costs_mapping_read() {
    const TRANSFER: u64 = 5_120;
    let mut device = map_on_flash();
    let page =
        |mode, page: u64| Io { offset: Bytes(page * 512), size: Bytes(512), mode, stream: 0 };
    let (written, unwritten) = (0, 1);
    run_alone(&mut device, page(Mode::Write, written));
    // Another page of the map is needed, and the first one is stored.
    run_alone(&mut device, page(Mode::Write, 128));
    // A page that was never stored takes its place; its entries are known to be empty.
    let (answer, parts) = run_alone(&mut device, page(Mode::Read, 128 + 1));
    assert_eq!(part(&parts, "mapping_ns"), 0, "the entry is in memory");
    run_alone(&mut device, page(Mode::Read, 256));
    let (loaded, parts) = run_alone(&mut device, page(Mode::Read, unwritten));
    assert_eq!(part(&parts, "mapping_ns"), READ + TRANSFER, "its mapping page is read");
    assert_eq!(loaded, answer + READ + TRANSFER, "before the I/O completes");
    let (read, parts) = run_alone(&mut device, page(Mode::Read, written));
    assert_eq!(part(&parts, "mapping_ns"), 0, "the entry is cached now");
    assert_eq!(read, answer + READ + TRANSFER, "the page itself is read");
}

/// After a sequential fill every cached entry is dirty, and without batch updates each eviction
/// writes one entry back. The pages reserved for the map are used up after 192 of them. Then older
/// ones are collected, and the cache continues as an LRU list.
#[test]
fn mapping_hits_match_list_model() {
    const CACHED: u64 = 1_000;
    let overrides = format!(
        r#"{{"ftl": "dftl", "mapping_cache_bytes": {}, "mapping_cache_policy": "lru",
            "mapping_batch_update": false, "idle_free_blocks": 0}}"#,
        8 * CACHED
    );
    let text = profile(2, 2, "sequential");
    let mut device =
        SimDevice::new("test", Profile::parse(&text, "test", &overrides).unwrap()).unwrap();
    let pages = device.info().capacity_bytes.0 / 4096;
    // The newest at the end.
    let mut list: Vec<u64> = (pages - CACHED..pages).collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let (mut hits, reads) = (0, 20_000);
    for _ in 0..reads {
        let range = if uniform(&mut rng, 4) == 0 { pages } else { 700 };
        let page = uniform(&mut rng, range);
        run_alone(&mut device, io(Mode::Read, page, 1));
        match list.iter().rposition(|other| *other == page) {
            Some(at) => {
                hits += 1;
                list.remove(at);
            }
            None => drop(list.remove(0)),
        }
        list.push(page);
    }
    let counted = device.counters().unwrap();
    let share = |hits: u64| hits as f64 / f64::from(reads);
    println!("{:.4} of a list, {:.4}: {counted:?}", share(hits), share(counted.mapping_hits));
    assert!((share(counted.mapping_hits) - share(hits)).abs() < 0.005);
    assert!(counted.mapping_pages_programmed > 500, "all changed entries were written back");
}
