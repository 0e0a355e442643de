//! Spare shares: each stream of writes receives spare space in proportion to √(its writes × its pages). The
//! victim is the emptiest block of the stream that exceeds its share most.
//!
//! **Source**: Stoica & Ailamaki, *Improving flash write performance by using update frequency* (VLDB 2013);
//! Desnoyers, *Analytic modeling of SSD write performance* (SYSTOR 2012) on hot and cold data.
//! **Faithful**: classes of pages that are written equally often share no block, and have the spare space that
//! amplifies least.
//! **Simplified**: that space follows from A ≈ U / 2S for a class of U pages and S spare ones, whose writes
//! then cost least at S in proportion to √(w U), and not from iteration; a test compares both.
//! **Ambiguous**: how often a stream is written: here by the pages that its blocks had lost when they were
//! collected, halved every time that all blocks of the plane have been.
//!
//! With one stream it is `greedy`.

use uflip_core::Result;

use super::{PolicyOptions, VictimPolicy};
use crate::flash::geometry::{BlockIdx, PlaneIdx};
use crate::pool::blocks::{Blocks, WRITE_STREAMS_MAX};

/// Streams of the host, and one of relocated pages of all streams.
const STREAMS: usize = WRITE_STREAMS_MAX as usize + 1;

/// Per stream of a plane: pages invalidated by writes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SpareShares {
    planes: Vec<Invalidations>,
    /// The sum at which the counts are halved.
    full: u64,
}

#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename = "Lost")]
struct Invalidations {
    pages: [u64; STREAMS],
}

/// The pages of a stream on a plane.
#[derive(Clone, Copy, Default)]
struct StreamPages {
    valid: u64,
    spare: u64,
    /// Its block with the fewest valid pages, among those with an invalid page.
    emptiest: Option<(u16, BlockIdx)>,
}

impl StreamPages {
    /// Return the square of its spare space, and the value that it should be proportional to.
    fn ratio(&self, lost: u64) -> (u128, u128) {
        let spare = u128::from(self.spare);
        (spare * spare, u128::from(lost + 1) * u128::from(self.valid + 1))
    }
}

impl VictimPolicy for SpareShares {
    fn new(options: &PolicyOptions) -> Result<SpareShares> {
        options.no_parameter("spare_shares")?;
        let shape = *options.geometry.shape();
        let full = u64::from(shape.blocks_per_plane) * u64::from(options.geometry.data_pages());
        Ok(SpareShares { planes: vec![Invalidations::default(); shape.planes as usize], full })
    }

    #[inline]
    fn closed(&mut self, _: PlaneIdx, _: BlockIdx, _: u16) {}

    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
        let mut by_stream = [StreamPages::default(); STREAMS];
        for block in blocks.geometry().blocks_of(plane).filter(|block| blocks.is_closed(*block)) {
            let pages = &mut by_stream[usize::from(blocks.stream_of(block))];
            let (valid, usable) = (blocks.valid_count(block), blocks.usable(block));
            pages.valid += u64::from(valid);
            pages.spare += u64::from(usable) - u64::from(valid);
            let emptier = pages.emptiest.is_none_or(|(fewest, _)| valid < fewest);
            if emptier && u32::from(valid) < usable {
                pages.emptiest = Some((valid, block));
            }
        }
        let Invalidations { pages: lost } = &mut self.planes[plane.0 as usize];
        let mut best: Option<(usize, (u128, u128))> = None;
        for (stream, pages) in
            by_stream.iter().enumerate().filter(|(_, pages)| pages.emptiest.is_some())
        {
            let (spare, share) = pages.ratio(lost[stream]);
            // a/b > c/d as a·d > c·b.
            if best
                .is_none_or(|(_, (best_spare, best_share))| spare * best_share > best_spare * share)
            {
                best = Some((stream, (spare, share)));
            }
        }
        let Some((stream, _)) = best else {
            // No block has an invalid page: return any closed block, as other policies do.
            return blocks.geometry().blocks_of(plane).find(|block| blocks.is_closed(*block));
        };
        let (valid, block) = by_stream[stream].emptiest?;
        lost[stream] += u64::from(blocks.usable(block)) - u64::from(valid);
        if lost.iter().sum::<u64>() > self.full {
            lost.iter_mut().for_each(|pages| *pages /= 2);
        }
        Some(block)
    }

    fn remove(&mut self, _: PlaneIdx, _: BlockIdx, _: &Blocks) {}
}
