//! A plane chosen by an allocator has a page, whatever was collected meanwhile.

use super::*;

#[test]
fn fixed_allocator_keeps_plane_of_address() {
    let geometry = large(0.15, 64);
    let planes = geometry.shape().planes;
    for separate in [false, true] {
        let options = plain(geometry, "greedy", "static");
        let options = PageMapOptions { same_die: true, separate, ..options };
        let mut ftl = PageMap::new(options);
        let mut flash = Flash::new(geometry, PageOrder::Ascending);
        let pages = geometry.shape().logical_pages;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for page in (0..pages).map(Lpn) {
            ftl.write(page, true, 0, &mut flash);
        }
        for _ in 0..pages {
            let page = Lpn(uniform(&mut rng, u64::from(pages)) as u32);
            ftl.write(page, true, 0, &mut flash);
        }
        assert!(flash.counters.pages_relocated > u64::from(pages), "many pages were relocated");
        for page in (0..pages).map(Lpn) {
            let plane = ftl.lookup(page).map(|at| at.plane);
            assert_eq!(plane, Some(PlaneIdx(page.0 % planes)), "{page:?}");
        }
    }
}
