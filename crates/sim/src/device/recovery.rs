//! After power was lost: what is on flash is read, what was half erased is erased again, and the map is made.
//!
//! ```text
//! die 0   │▒│▒│▒│▒│▒│        ▒ the spare area of a page: cells, then a few bytes over the channel
//! die 1   │▒│▒│▒│            █ an erase that was interrupted, once it is known which
//!                    │███│
//!         └─ reading ─┴─ erasing ─┴─▶ ready
//! ```
//!
//! Every die reads what it holds, beside the others and first come first served on its channel. Of a block with
//! a metadata page that page says what is in all others, where it was written; otherwise its pages are
//! read one after the other, up to the first that is erased.
//!
//! **Source**: uFLIP (2009) §2.2; the metadata page of OFC (2011) §IV.D.
//! **Faithful**: what is read of which die, over which channel; power may be cut again at any moment.
//! **Simplified**: the processor takes no time for what was read; there is no checkpoint of the map, so that
//! all blocks are looked at.
//! **Ambiguous**: nothing.

use uflip_core::{Error, Nanos, Result};

use super::SimDevice;
use super::any::AnyBackend;
use super::backend::Backend as _;
use super::scan::Scan;
use crate::config::{CLOCK_END_NS, Profile};
use crate::flash::geometry::{BlockIdx, Lpn};
use crate::flash::media::CollectMedia as _;
use crate::ftl::Use;
use crate::ftl::extent::Extent;

/// How a device found its data again, and how long that took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Recovery {
    /// When it began, and when the device was ready.
    #[serde(rename = "began_ns")]
    pub began: Nanos,
    /// See `began`.
    #[serde(rename = "ready_ns")]
    pub ready: Nanos,
    /// How much of that spare areas and metadata pages were read, erases made up for, and data put back.
    #[serde(rename = "reading_ns")]
    pub reading: Nanos,
    /// See `reading`.
    #[serde(rename = "erasing_ns")]
    pub erasing: Nanos,
    /// See `reading`.
    #[serde(rename = "putting_back_ns")]
    pub putting_back: Nanos,
    /// Flash pages of which the spare area was read.
    pub spare_areas_read: u64,
    /// Metadata pages that said what their block holds.
    pub metadata_pages_read: u64,
    /// Blocks that had to be erased again.
    pub blocks_erased: u64,
    /// Pages of the host that were saved by capacitors and are put back.
    pub pages_put_back: u64,
    /// Pages of the host that hold something now.
    pub pages_found: u64,
}

impl SimDevice {
    /// Find out what is on flash after [`SimDevice::cut_power`], and be ready again when that has taken its
    /// time.
    ///
    /// # Errors
    /// The device has power.
    pub fn recover(&mut self) -> Result<Recovery> {
        let profile = self.lost_power()?;
        let mut contents = self.events.contents.take().expect("it lost power");
        let mut scan = Scan::of(&self.flash, &contents, &profile, self.now);
        let (began, read) = (self.now, scan.end);
        let erases = scan.erase_again();
        let erased = scan.end;
        let put_back = contents.take_saved();
        scan.put_back(put_back.len());
        let Scan { end: ready, spare_areas, metadata_pages, .. } = scan;
        for (block, ..) in &erases {
            contents.erased_again(*block);
            self.flash.erase(*block);
        }
        let AnyBackend::Paged(paged) = &mut self.backend else { unreachable!("it lost power") };
        let nand = &self.flash.nand;
        let uses = paged.ftl.restore(&contents.read(), |block| nand.erases(block));
        self.use_blocks(&uses);
        let AnyBackend::Paged(paged) = &mut self.backend else { unreachable!("it lost power") };
        for page in &put_back {
            let extent = Extent::single(Lpn(*page), true, 0);
            paged.write_untimed(Lpn(*page), &extent, &mut self.flash);
        }
        self.events.keep_contents(contents);
        if !put_back.is_empty() {
            self.settle_contents(false);
        }
        self.events.reach(ready);
        (self.now, self.refuses_from) = (ready, CLOCK_END_NS);
        let AnyBackend::Paged(paged) = &self.backend else { unreachable!("it lost power") };
        let of_host = self.flash.geometry.shape().logical_pages;
        let pages_found = paged.ftl().mapped().filter(|(page, _)| *page < of_host).count() as u64;
        Ok(Recovery {
            began: Nanos(began),
            ready: Nanos(ready),
            reading: Nanos(read - began),
            erasing: Nanos(erased - read),
            putting_back: Nanos(ready - erased),
            spare_areas_read: spare_areas,
            metadata_pages_read: metadata_pages,
            blocks_erased: erases.len() as u64,
            pages_put_back: put_back.len() as u64,
            pages_found,
        })
    }

    /// Begin to recover, until power is cut again at `at`: of what was half erased a part may be erased by
    /// then, and nothing else has changed. Returns whether the device was ready before.
    ///
    /// # Errors
    /// The device has power; `at` is past.
    pub fn recover_until(&mut self, at: Nanos) -> Result<bool> {
        let profile = self.lost_power()?;
        let contents = self.events.contents.as_ref().expect("it lost power");
        let mut scan = Scan::of(&self.flash, contents, &profile, self.now);
        let erases = scan.erase_again();
        if scan.end <= at.0 && !contents.has_saved() {
            self.recover()?;
            self.cut_power(at)?;
            return Ok(true);
        }
        let over: Vec<BlockIdx> =
            erases.iter().filter(|(_, end)| *end <= at.0).map(|(block, _)| *block).collect();
        let contents = self.events.contents.as_mut().expect("it lost power");
        for block in over {
            contents.erased_again(block);
            self.flash.erase(block);
        }
        self.now = self.now.max(at.0);
        self.events.reach(self.now);
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

    /// What flash may be asked for next follows from what its blocks are used for: nothing more is programmed
    /// where that is not gone on with.
    fn use_blocks(&mut self, uses: &[Use]) {
        let geometry = self.flash.geometry;
        for (block, used) in (0..).map(BlockIdx).zip(uses) {
            let pages = match *used {
                Use::Free => 0,
                Use::Open { next, .. } => next.0 - geometry.first_page(block).0,
                Use::Filled { .. } => geometry.shape().pages_per_block,
            };
            self.flash.found_programmed(block, pages);
        }
    }
}
