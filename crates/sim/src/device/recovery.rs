//! Recovery after a power loss: scan the flash, repeat interrupted erases, and rebuild the map.
//!
//! ```text
//! die 0   │▒│▒│▒│▒│▒│        ▒ the spare area of a page: cells, then a few bytes over the channel
//! die 1   │▒│▒│▒│            █ an interrupted erase, after the scan
//!                    │███│
//!         └─ reading ─┴─ erasing ─┴─▶ ready
//! ```
//!
//! The dies are scanned in parallel; each channel is FIFO. A written metadata page replaces the
//! other pages of its block. Otherwise the pages of the block are read in order up to the first
//! erased one. On flash that wears out, each die first reads its defect list; new defects are
//! programmed at the end.
//!
//! **Source**: uFLIP (2009) §2.2; the metadata page of OFC (2011) §IV.D.
//! **Faithful**: the reads of each die and their channel transfers; power may be cut again at any
//! moment.
//! **Simplified**: the processor takes no time; there is no checkpoint of the map, so every block
//! is scanned.
//! **Ambiguous**: nothing.

use uflip_core::{Error, Nanos, Result};

use super::SimDevice;
use super::any::{AnyBackend, dispatch};
use super::backend::Backend as _;
use super::scan::{RecoveryOpKind, Scan};
use crate::config::{CLOCK_END_NS, Profile};
use crate::flash::contents::{Contents, Origin};
use crate::flash::geometry::{BlockIdx, Lpn};
use crate::flash::media::CollectMedia as _;
use crate::flash::plan::FlashPlan;
use crate::ftl::BlockUse;
use crate::ftl::extent::PageExtent;

/// The result and the duration of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Recovery {
    /// When recovery began, and when the device was ready.
    #[serde(rename = "began_ns")]
    pub begin: Nanos,
    /// See `begin`.
    #[serde(rename = "ready_ns")]
    pub ready: Nanos,
    /// Durations of its phases: reading spare areas and metadata pages, repeating erases, merging,
    /// and restoring data saved by capacitors.
    #[serde(rename = "reading_ns")]
    pub reading: Nanos,
    /// See `reading`.
    #[serde(rename = "erasing_ns")]
    pub erasing: Nanos,
    /// See `reading`: finishing interrupted merges, and erasing blocks without needed data.
    #[serde(rename = "merging_ns")]
    pub merging: Nanos,
    /// See `reading`.
    #[serde(rename = "putting_back_ns")]
    pub putting_back: Nanos,
    /// Flash pages whose spare area was read.
    pub spare_areas_read: u64,
    /// Metadata pages that describe their block, and defect lists, that were read.
    pub metadata_pages_read: u64,
    /// Interrupted erases that were repeated.
    pub blocks_erased: u64,
    /// Pages copied, and blocks erased, to reach a consistent state of the FTL.
    pub pages_merged: u64,
    /// See `pages_merged`.
    pub blocks_dropped: u64,
    /// Host pages that capacitors saved and that were written to flash.
    pub pages_put_back: u64,
    /// Host pages that hold data.
    pub pages_found: u64,
}

impl SimDevice {
    /// Recover after [`SimDevice::cut_power`]: scan the flash, and be ready again after the time
    /// that this takes.
    ///
    /// # Errors
    /// The device has power.
    /// The device has power.
    pub fn recover(&mut self) -> Result<Recovery> {
        let profile = self.lost_power()?;
        let mut contents = self.events.contents.take().expect("flash contents are recorded");
        let mut scan = Scan::read_spare_areas(&self.flash, &contents, &profile, self.now);
        let (begin, read) = (self.now, scan.end);
        let erases = scan.repeat_erases();
        let erased = scan.end;
        let Scan { spare_areas, metadata_pages, .. } = scan;
        self.read_lists(&contents);
        self.flash.clock = erased;
        let erases = self.repeat_erases(erases.into_iter().map(|(block, _)| block), &mut contents);
        let (listed, plan) = match profile.merges() {
            false => (self.restore_map(&mut contents, &erases), FlashPlan::default()),
            true => {
                let listed = contents.list_all(&self.flash.nand, &[]);
                (listed, self.rebuild(&profile, &mut contents, false).0)
            }
        };
        let mut scan = Scan::clocks(&self.flash, &profile, erased);
        let steps = scan.execute(&plan);
        let merged = scan.end;
        scan.list(&listed);
        let listed = scan.end;
        let saved_pages = contents.take_saved();
        scan.rewrite_saved_pages(saved_pages.len());
        let ready = scan.end;
        self.events.set_contents(contents);
        self.flash.clock = ready;
        if !saved_pages.is_empty() {
            self.restore_saved_pages(&saved_pages);
        }
        self.events.advance_to(ready);
        (self.now, self.refuses_from) = (ready, CLOCK_END_NS);
        let of_host = (0..self.flash.geometry.shape().logical_pages).map(Lpn);
        let pages_found = of_host.filter(|page| self.place_of(*page).is_some()).count() as u64;
        Ok(Recovery {
            begin: Nanos(begin),
            ready: Nanos(ready),
            reading: Nanos(read - begin),
            erasing: Nanos(erased - read + listed - merged),
            merging: Nanos(merged - erased),
            putting_back: Nanos(ready - listed),
            spare_areas_read: spare_areas,
            metadata_pages_read: metadata_pages,
            blocks_erased: erases.len() as u64,
            pages_merged: steps.iter().filter(|step| step.kind == RecoveryOpKind::Copied).count()
                as u64,
            blocks_dropped: steps.iter().filter(|step| step.kind == RecoveryOpKind::Erased).count()
                as u64,
            pages_put_back: saved_pages.len() as u64,
            pages_found,
        })
    }

    /// Recover until power is cut again at `at`. Interrupted erases and merges may be partly done
    /// by then; nothing else has changed. Return whether the device was ready before `at`.
    ///
    /// # Errors
    /// The device has power; `at` is past.
    /// The device has power; `at` is past.
    pub fn recover_until(&mut self, at: Nanos) -> Result<bool> {
        let profile = self.lost_power()?;
        let mut contents = self.events.contents.take().expect("flash contents are recorded");
        let mut scan = Scan::read_spare_areas(&self.flash, &contents, &profile, self.now);
        let erases = scan.repeat_erases();
        let erased = scan.end;
        if erased <= at.0 && !contents.has_saved() {
            let mut ready = self.clone();
            ready.events.set_contents(contents.clone());
            ready.recover()?;
            // Merges and defect lists take time, too.
            if ready.now <= at.0 {
                *self = ready;
                self.cut_power(at)?;
                return Ok(true);
            }
        }
        self.read_lists(&contents);
        let in_time = erases.into_iter().filter(|(_, end)| *end <= at.0);
        self.repeat_erases(in_time.map(|(block, _)| block), &mut contents);
        if profile.merges() && erased <= at.0 {
            self.flash.clock = erased;
            let (plan, records) = self.rebuild(&profile, &mut contents, true);
            let steps = Scan::clocks(&self.flash, &profile, erased).execute(&plan);
            self.do_until((&records, &steps), at.0, &mut contents);
        }
        self.events.set_contents(contents);
        self.now = self.now.max(at.0);
        self.events.advance_to(self.now);
        Ok(false)
    }

    fn lost_power(&self) -> Result<Profile> {
        if self.refuses_from == CLOCK_END_NS {
            return Err(Error::usage("The device has power: there is nothing to recover")
                .at(&self.info.url)
                .action("cut its power first"));
        }
        Ok(self.profile())
    }

    /// Repeat the interrupted erases; return with each block whether its erase succeeded.
    fn repeat_erases(
        &mut self,
        blocks: impl Iterator<Item = BlockIdx>,
        contents: &mut Contents,
    ) -> Vec<(BlockIdx, bool)> {
        let erase = |block| {
            let erased = self.flash.erase(block) && !contents.is_broken(block);
            if contents.tracks_physical_blocks() {
                contents.erase_physical_again(block, erased);
                if !erased {
                    self.flash.retire_block(block);
                }
            } else if erased {
                contents.erased_again(block);
            } else {
                contents.half_erase(block);
                contents.cannot_be_erased(block);
            }
            (block, erased)
        };
        blocks.map(erase).collect()
    }

    /// Restore a page map from flash, given the result of the repeated erases. Return the blocks
    /// whose defects must be listed.
    fn restore_map(
        &mut self,
        contents: &mut Contents,
        erases: &[(BlockIdx, bool)],
    ) -> Vec<BlockIdx> {
        let AnyBackend::Paged(paged) = &mut self.backend else {
            unreachable!("the device has a page map")
        };
        let uses = paged.ftl.restore(contents, erases, &mut self.flash);
        let blocks = paged.ftl.blocks();
        contents.set_erases(|block| blocks.wear(block));
        let listed = contents.list_all(&self.flash.nand, paged.ftl.failed_programs());
        self.use_blocks(&uses);
        listed
    }

    /// Write the pages that capacitors saved.
    fn restore_saved_pages(&mut self, pages: &[u32]) {
        self.hand_over_contents(Origin::Newest);
        let mut unplaced = Vec::new();
        for page in pages {
            let (page, extent) = (Lpn(*page), PageExtent::single(Lpn(*page), true, 0));
            let (before, version) =
                (self.flash.counters.host_pages_written, self.version_of(page.0));
            let SimDevice { backend, flash, .. } = self;
            dispatch!(backend, backend => backend.write_untimed(page, &extent, flash));
            if self.flash.counters.host_pages_written == before {
                unplaced.push((page, version.unwrap_or(0)));
            }
        }
        self.settle_contents(false);
        for (page, version) in unplaced {
            // A merging FTL has recorded its own work.
            let at = self.place_of(page).filter(|_| matches!(self.backend, AnyBackend::Paged(_)));
            let contents = self.events.contents.as_mut().expect("flash contents are recorded");
            contents.mark_saved(page.0, at, version);
        }
    }

    /// Set the programmed pages of each block from its use, so that further operations are checked
    /// against it. Blocks that will not be continued count as full or erased.
    fn use_blocks(&mut self, uses: &[BlockUse]) {
        let geometry = self.flash.geometry;
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            let pages = match *used {
                BlockUse::Free | BlockUse::Erased | BlockUse::Bad => 0,
                BlockUse::Open { next, .. } => next.0 - geometry.first_page(block).0,
                BlockUse::Filled { .. } => geometry.shape().pages_per_block,
            };
            self.flash.restore_programmed(block, pages);
        }
    }
}
