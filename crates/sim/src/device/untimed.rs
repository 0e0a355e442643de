//! Untimed mode: no time passes, everything is counted.
//!
//! I/Os are split into pages in batches of 64, so that the data of each page is prefetched: first
//! its map entry, then the state of its old page. A trim may have any number of pages and is done
//! separately, as is a zone command.

use uflip_core::{Io, Mode, Result};

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
