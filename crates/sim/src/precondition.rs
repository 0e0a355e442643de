//! Bringing a device into a well-defined state, in the untimed gear.
//!
//! **Source**: uFLIP (2009) §4.1: random writes of random size, from 0.5 KB to the flash block size
//! of 128 KB, over the whole device; or the sequential alternative.
//! **Faithful**: sizes uniform over whole sectors up to 128 KiB, positions uniform over sectors.
//! **Simplified**: the first fill is sequential, so that every logical page is written for certain;
//! the random writes then go over it as often as the profile says.
//! **Ambiguous**: the paper does not say how much is written at random; the profile does.

use uflip_core::random::{SeedableRng, Xoshiro256PlusPlus, uniform};
use uflip_core::{Bytes, Io, Mode};

use crate::profile::{Profile, State};

/// The largest random write: the flash block of uFLIP §4.1.
const LARGEST_BYTES: u64 = 128 << 10;

/// The writes that bring a new device into the profile's state, in order.
pub(crate) fn writes(profile: &Profile) -> impl Iterator<Item = Io> {
    let shape = *profile.geometry().shape();
    let page_bytes = u64::from(shape.page_bytes);
    let capacity = u64::from(shape.logical_pages) * page_bytes;
    let filled = if profile.state.state == State::Empty { 0 } else { shape.logical_pages };
    let fill = (0..u64::from(filled)).map(move |page| write(page * page_bytes, page_bytes));
    fill.chain(random_writes(profile, capacity))
}

/// Random writes of random size, until as much is written as the profile says.
fn random_writes(profile: &Profile, capacity: u64) -> impl Iterator<Item = Io> + use<> {
    let sector = u64::from(profile.geometry.sector_bytes);
    let sizes = (LARGEST_BYTES.min(capacity) / sector).max(1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(profile.state.seed);
    let mut remaining = match profile.state.state {
        State::Random => (capacity as f64 * profile.state.random_overwrites) as u64,
        State::Empty | State::Sequential => 0,
    };
    std::iter::from_fn(move || {
        if remaining == 0 {
            return None;
        }
        let size = (1 + uniform(&mut rng, sizes)) * sector;
        let offset = uniform(&mut rng, (capacity - size) / sector + 1) * sector;
        remaining = remaining.saturating_sub(size);
        Some(write(offset, size))
    })
}

fn write(offset: u64, size: u64) -> Io {
    Io { offset: Bytes(offset), size: Bytes(size), mode: Mode::Write }
}
