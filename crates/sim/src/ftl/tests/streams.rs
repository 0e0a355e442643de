//! Streams of writes that are kept apart.

use super::*;

/// Which stream wrote each page last, and in which blocks it may lie with others.
fn streams_of_blocks(separate: bool) -> Vec<Vec<u8>> {
    let geometry = large(0.25, 16);
    let pages = u64::from(geometry.shape().logical_pages);
    let options =
        PageMapOptions { write_streams: 3, separate, ..plain(geometry, "greedy", "round_robin") };
    let mut ftl = PageMap::new(options);
    let mut flash = Flash::new(geometry, PageOrder::Ascending);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    // A page is always of the same stream.
    let stream = |page: u64| (page % 3) as u8;
    (0..pages).for_each(|page| ftl.write(Lpn(page as u32), true, stream(page), &mut flash));
    for _ in 0..4 * pages {
        let page = uniform(&mut rng, pages);
        ftl.write(Lpn(page as u32), true, stream(page), &mut flash);
    }
    ftl.check();
    let mut found = vec![Vec::new(); geometry.blocks() as usize];
    for page in 0..pages {
        let at = ftl.lookup(Lpn(page as u32)).expect("it was written");
        found[at.block.0 as usize].push(stream(page));
    }
    found.iter_mut().for_each(|streams| {
        streams.sort_unstable();
        streams.dedup();
    });
    found
}

#[test]
fn pages_of_two_streams_share_no_block_unless_what_is_relocated_does() {
    let isolated = streams_of_blocks(false);
    assert!(isolated.iter().all(|streams| streams.len() <= 1), "persistently isolated");
    let shared = streams_of_blocks(true).iter().filter(|streams| streams.len() > 1).count();
    assert!(shared > 10, "initially isolated: what was moved of all is together, {shared}");
}

/// Greedy with streams that are equally often written moves what greedy moves without.
#[test]
fn streams_that_are_alike_cost_what_one_costs() {
    let geometry = large(0.2, 64);
    let pages = u64::from(geometry.shape().logical_pages);
    let of = |write_streams: u8, victims: &str| {
        let options = PageMapOptions { write_streams, ..plain(geometry, victims, "round_robin") };
        let mut ftl = PageMap::new(options);
        let mut flash = Flash::new(geometry, PageOrder::Ascending);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let stream = |page: u64| (page % u64::from(write_streams)) as u8;
        (0..pages).for_each(|page| ftl.write(Lpn(page as u32), true, stream(page), &mut flash));
        for write in 0..6 * pages {
            if write == 4 * pages {
                flash.counters = Counters::default();
            }
            let page = uniform(&mut rng, pages);
            ftl.write(Lpn(page as u32), true, stream(page), &mut flash);
        }
        write_amplification(&flash.counters)
    };
    let one = of(1, "greedy");
    for victims in ["greedy", "spare_shares"] {
        let two = of(2, victims);
        println!("one stream {one:.3}, two with {victims} {two:.3}");
        assert!((two / one - 1.0).abs() < 0.02, "{victims}: {two} against {one}");
    }
    assert_eq!(of(1, "spare_shares"), one, "with one stream it is greedy");
}
