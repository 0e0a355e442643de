//! Jobs over physical addresses against the sets and rules that they must obey, on random geometries:
//! every page that a job covers is written exactly once a repetition, in the order of its block, and
//! nothing is read that is not written.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;
use uflip_core::{FlashGeometry, FlashIo, FlashOp, Ppa};
use uflip_engine::Requests;
use uflip_engine::flash::{FlashJob, FlashSpec, ITERATIONS};

fn commands(job: &FlashJob, thread: u64) -> Vec<FlashIo> {
    let mut requests = job.requests(thread);
    (0..requests.total()).map(|_| requests.next_request().io).collect()
}

/// Return the block of an address.
fn block(ppa: &Ppa) -> (u8, u8, u32) {
    (ppa.channel, ppa.lun, ppa.block)
}

prop_compose! {
    fn geometries()(
        channels in 1u32..6, luns_per_channel in 1u32..4, planes in 1u32..3,
        blocks_per_plane in 1u32..7, pages_per_block in 1u32..10, sectors_per_page in 1u32..5,
    ) -> FlashGeometry {
        FlashGeometry {
            channels, luns_per_channel, planes, blocks_per_plane, pages_per_block,
            sectors_per_page, sector_bytes: 4096, vector_max: 64,
        }
    }
}

proptest! {
    // Most numbers of threads and vectors do not divide the pages, and are refused.
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn job_writes_every_page_once_in_order(
        geometry in geometries(), threads in 1u64..7, vector in 1u64..5, repeat in 1u64..4,
        iteration in 0usize..2,
    ) {
        let job = json!({
            "channels": geometry.channels, "luns": geometry.luns_per_channel,
            "blocks": geometry.blocks_per_plane, "pages": geometry.pages_per_block, "mix": "W",
            "threads": threads, "vector": vector, "repeat": repeat,
            "iteration": ITERATIONS[iteration],
        });
        let job = FlashSpec::parse(&job.to_string()).unwrap().resolve(geometry);
        prop_assume!(job.is_ok());
        let job = job.unwrap();
        let mut written: BTreeMap<(u8, u8, u32), u32> = BTreeMap::new();
        let (mut pages, mut erases) = (0u64, 0u64);
        for thread in 0..job.threads() {
            for io in commands(&job, thread) {
                prop_assert!(io.ppas().iter().all(|ppa| geometry.contains(*ppa)));
                if io.op() == FlashOp::Erase {
                    erases += 1;
                    let full = written.insert(block(&io.ppas()[0]), 0);
                    prop_assert_eq!(full, Some(geometry.pages_per_block), "a full block is erased");
                    continue;
                }
                for page in io.ppas().chunks(geometry.write_sectors() as usize) {
                    prop_assert_eq!(page.len(), geometry.write_sectors() as usize);
                    let next = written.entry(block(&page[0])).or_default();
                    prop_assert_eq!(page[0].page, *next, "pages of a block in order");
                    *next += 1;
                    pages += 1;
                }
            }
        }
        let blocks = u64::from(geometry.luns() * geometry.blocks_per_plane);
        prop_assert_eq!(written.len() as u64, blocks);
        prop_assert!(written.values().all(|next| *next == geometry.pages_per_block));
        let totals = job.totals();
        prop_assert_eq!((totals.pages_written, totals.blocks_erased), (pages, erases));
        prop_assert_eq!(erases, blocks * (repeat - 1));
    }

    #[test]
    fn job_reads_only_written_pages(
        geometry in geometries(), writes in 1usize..5, reads in 0usize..5, repeat in 1u64..3,
    ) {
        let mix = "W".repeat(writes) + &"R".repeat(reads);
        let job = json!({"channels": geometry.channels, "blocks": geometry.blocks_per_plane,
            "pages": geometry.pages_per_block, "mix": mix, "repeat": repeat,
            "iteration": "round_robin"});
        let job = FlashSpec::parse(&job.to_string()).unwrap().resolve(geometry).unwrap();
        let mut written: BTreeMap<(u8, u8, u32), u32> = BTreeMap::new();
        let (mut read, mut programmed) = (0, 0);
        for io in commands(&job, 0) {
            let first = io.ppas()[0];
            match io.op() {
                FlashOp::Erase => drop(written.insert(block(&first), 0)),
                FlashOp::Write => {
                    programmed += 1;
                    *written.entry(block(&first)).or_default() += 1;
                }
                FlashOp::Read => {
                    read += 1;
                    prop_assert!(written.get(&block(&first)).is_some_and(|next| first.page < *next));
                }
            }
        }
        let totals = job.totals();
        prop_assert_eq!((totals.pages_read, totals.pages_written), (read, programmed));
    }
}

#[test]
fn wear_job_cycles_erase_write_read() {
    let geometry = FlashGeometry {
        channels: 1,
        luns_per_channel: 1,
        planes: 2,
        blocks_per_plane: 4,
        pages_per_block: 3,
        sectors_per_page: 4,
        sector_bytes: 4096,
        vector_max: 64,
    };
    let spec = FlashSpec::parse(r#"{"kind": "wear", "first_block": 2, "repeat": 2}"#).unwrap();
    let job = spec.resolve(geometry).unwrap();
    let shown: Vec<(FlashOp, u32, u32)> = commands(&job, 0)
        .iter()
        .map(|io| (io.op(), io.ppas()[0].block, io.ppas()[0].page))
        .collect();
    let cycle = [
        (FlashOp::Erase, 0),
        (FlashOp::Write, 0),
        (FlashOp::Write, 1),
        (FlashOp::Write, 2),
        (FlashOp::Read, 0),
        (FlashOp::Read, 1),
        (FlashOp::Read, 2),
    ];
    let expected: Vec<_> = cycle.iter().chain(&cycle).map(|(op, page)| (*op, 2, *page)).collect();
    assert_eq!(shown, expected);
}
