//! In which state a simulated device is handed to its user: what its profile says, written to it in
//! the untimed gear. The writes themselves are [`uflip_core::StateWrites`], which real devices get
//! as well; see there for source and readings.

use uflip_core::{Bytes, Io, StateOptions};

use crate::config::{Profile, State};

/// The largest random write: the flash block of uFLIP §4.1.
const LARGEST_BYTES: u64 = 128 << 10;

/// The writes that bring a new device into the profile's state, in order.
pub(crate) fn writes(profile: &Profile) -> impl Iterator<Item = Io> + use<> {
    let shape = *profile.geometry().shape();
    let capacity = u64::from(shape.logical_pages) * u64::from(shape.page_bytes);
    let random = match profile.state.state {
        State::Random | State::Scattered => {
            (capacity as f64 * profile.state.random_overwrites) as u64
        }
        State::Empty | State::Sequential => 0,
    };
    let (sector, largest) = match profile.state.state {
        State::Scattered => (shape.page_bytes, u64::from(shape.page_bytes)),
        _ => (profile.geometry.sector_bytes, LARGEST_BYTES),
    };
    let options = StateOptions {
        target_offset: Bytes(0),
        target_size: Bytes(capacity),
        sector: Bytes(u64::from(sector)),
        io_size_max: Bytes(largest),
        fill: matches!(profile.state.state, State::Sequential | State::Random),
        random_bytes: Bytes(random),
        seed: profile.state.seed,
    };
    options.writes()
}
