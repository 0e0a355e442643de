//! Untimed mode: no time passes, everything is counted.
//!
//! I/Os are split into pages in batches of 64, so that the data of each page is prefetched: first
//! its map entry, then the state of its old page. A trim may have any number of pages and is done
//! separately, as is a zone command.

use uflip_core::{Bytes, Io, Mode, Result, StateOptions};

use crate::config::{InitialState, Profile};
use crate::device::backend::{Backend, IoPage};
use crate::flash::geometry::Lpn;
use crate::flash::media::Flash;
use crate::ftl::extent::PageExtent;

/// Number of I/Os in a batch.
const BATCH: usize = 64;

/// Do `ios`.
///
/// # Errors
/// The device is or becomes read-only, and there is something to write; a zone does not accept an
/// I/O (earlier I/Os are done).
pub(crate) fn apply<B: Backend>(
    backend: &mut B,
    flash: &mut Flash,
    ios: impl Iterator<Item = Io>,
) -> Result<()> {
    let page_bytes = u64::from(flash.geometry.shape().page_bytes);
    let mut batch = Vec::with_capacity(BATCH);
    let mut ios = ios.fuse();
    let mut refused = None;
    loop {
        batch.clear();
        let mut command = None;
        for io in ios.by_ref().take(BATCH) {
            if !io.mode.moves_data() {
                command = Some(io);
                break;
            }
            let io = match backend.admit_untimed(&io, page_bytes) {
                Ok(io) => io,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            let (mode, extent) = (io.mode, PageExtent::of_io(&io, page_bytes));
            let pages = extent.touched().map(Lpn);
            batch.extend(pages.map(|page| IoPage { mode, page, extent }));
        }
        if batch.is_empty() && command.is_none() && refused.is_none() {
            return Ok(());
        }
        batch.iter().for_each(|piece| backend.prefetch(piece.page));
        batch.iter().for_each(|piece| backend.prefetch_old(piece.page));
        backend.apply(&batch, flash);
        if batch.iter().any(|piece| piece.mode == Mode::Write) && backend.is_read_only() {
            return Err(backend.read_only_error());
        }
        if let Some(error) = refused {
            return Err(error);
        }
        if let Some(io) = command {
            let io = backend.admit_untimed(&io, page_bytes)?;
            if io.mode == Mode::Trim {
                let covered = PageExtent::of_io(&io, page_bytes).covered();
                covered.for_each(|page| backend.trim(Lpn(page)));
            } else {
                backend.manage_untimed(&io, flash);
            }
        }
    }
}

// Preconditioning: the profile's initial state, written in untimed mode. The writes are
// [`uflip_core::StateWrites`], the same as for real devices; see there for source and
// interpretation.

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
