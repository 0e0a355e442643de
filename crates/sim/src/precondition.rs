//! Bringing a device into a well-defined state, in the untimed gear.
//!
//! **Source**: uFLIP (2009) §4.1: random writes of random size, from 0.5 KB to the flash block size
//! of 128 KB, over the whole device; or the sequential alternative.
//! **Faithful**: sizes uniform over whole sectors up to 128 KiB, positions uniform over sectors.
//! **Simplified**: the first fill is sequential, so that every logical page is written for certain;
//! the random writes then go over it as often as the profile says.
//! **Ambiguous**: the paper does not say how much is written at random; the profile does.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};

use crate::ftl::PageMap;
use crate::geometry::Lpn;
use crate::media::Flash;
use crate::profile::{Profile, State};

/// The largest random write: the flash block of uFLIP §4.1.
const LARGEST_BYTES: u64 = 128 << 10;

/// Write what the profile's state asks for.
pub(crate) fn enforce(profile: &Profile, ftl: &mut PageMap, flash: &mut Flash) {
    let state = &profile.state;
    if state.state == State::Empty {
        return;
    }
    let pages = flash.geometry.shape().logical_pages;
    for page in 0..pages {
        ftl.write(Lpn(page), true, flash);
    }
    if state.state == State::Sequential {
        return;
    }
    let page_bytes = u64::from(flash.geometry.shape().page_bytes);
    let sector = u64::from(profile.geometry.sector_bytes);
    let capacity = u64::from(pages) * page_bytes;
    let sizes = (LARGEST_BYTES.min(capacity) / sector).max(1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(state.seed);
    let mut remaining = (capacity as f64 * state.random_overwrites) as u64;
    while remaining > 0 {
        let size = (1 + uniform(&mut rng, sizes)) * sector;
        let offset = uniform(&mut rng, (capacity - size) / sector + 1) * sector;
        let end = offset + size;
        for page in offset / page_bytes..end.div_ceil(page_bytes) {
            let whole = offset <= page * page_bytes && (page + 1) * page_bytes <= end;
            ftl.write(Lpn(page as u32), whole, flash);
        }
        remaining = remaining.saturating_sub(size);
    }
}
