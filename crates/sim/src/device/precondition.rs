//! Preconditioning: the profile's initial state, written in untimed mode. The writes are
//! [`uflip_core::StateWrites`], the same as for real devices; see there for source and
//! interpretation.

use uflip_core::{Bytes, Io, Mode, StateOptions};

use crate::config::{InitialState, Profile};

/// The largest random write: the flash block of uFLIP §4.1.
const LARGEST_BYTES: u64 = 128 << 10;

/// Return the addressable bytes, and the number of bytes to write at random.
fn sizes(profile: &Profile) -> (u64, u64) {
    let shape = *profile.geometry().shape();
    let capacity = u64::from(shape.logical_pages) * u64::from(shape.page_bytes);
    let random = match profile.state.state {
        InitialState::Random | InitialState::Scattered => {
            (capacity as f64 * profile.state.random_overwrites) as u64
        }
        InitialState::Empty | InitialState::Sequential => 0,
    };
    (capacity, random)
}

/// Return roughly the number of bytes that [`writes`] writes.
pub(crate) fn bytes(profile: &Profile) -> Bytes {
    let (capacity, random) = sizes(profile);
    Bytes(match profile.state.state {
        InitialState::Empty => 0,
        _ if profile.zones.is_some() => capacity,
        InitialState::Scattered => random,
        InitialState::Sequential | InitialState::Random => capacity + random,
    })
}

/// Return the writes that bring a new device into the profile's state, in order.
pub(crate) fn writes(profile: &Profile) -> impl Iterator<Item = Io> + use<> {
    let shape = *profile.geometry().shape();
    let (capacity, random) = sizes(profile);
    let (sector, largest) = match profile.state.state {
        InitialState::Scattered => (shape.page_bytes, u64::from(shape.page_bytes)),
        _ => (profile.geometry.sector_bytes, LARGEST_BYTES),
    };
    let options = StateOptions {
        target_offset: Bytes(0),
        target_size: Bytes(capacity),
        sector: Bytes(u64::from(sector)),
        io_size_max: Bytes(largest),
        fill: matches!(profile.state.state, InitialState::Sequential | InitialState::Random),
        random_bytes: Bytes(random),
        seed: profile.state.seed,
    };
    let of_zones = profile.zones.map(|part| zone_writes(profile, part.zone_bytes));
    let of_all = of_zones.is_none().then(|| options.writes());
    of_zones.into_iter().flatten().chain(of_all.into_iter().flatten())
}

/// Return the writes that fill every zone, one after the other.
fn zone_writes(profile: &Profile, zone_bytes: u64) -> impl Iterator<Item = Io> + use<> {
    let shape = *profile.geometry().shape();
    let end = match profile.state.state {
        InitialState::Empty => 0,
        _ => u64::from(shape.logical_pages) * u64::from(shape.page_bytes),
    };
    let capacity = profile.zone_capacity_bytes().expect("the profile was checked");
    let longest = LARGEST_BYTES.next_multiple_of(u64::from(shape.page_bytes));
    (0..end).step_by(zone_bytes as usize).flat_map(move |zone| {
        (0..capacity).step_by(longest as usize).map(move |at| {
            let size = Bytes(longest.min(capacity - at));
            Io { offset: Bytes(zone + at), size, mode: Mode::Write, stream: 0 }
        })
    })
}
