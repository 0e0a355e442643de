//! Tables of flash that wears out and of power loss: error laws, and the controller's
//! countermeasures.

use uflip_core::{Error, Result};

use super::Profile;
use super::checks::InvalidKeys;
use crate::flash::geometry::BlockIdx;
use crate::flash::media::Flash;
use crate::flash::reliability::Reliability;
use crate::flash::replacement::ReplacementTable;
use crate::flash::wear_out::{BlockHistory, Grain, ScrubLimits, WearOut, WearOutOptions, chance};
use crate::ftl::{Retire, RetirementOptions};
use crate::keys::parameters;
use crate::pool::free::FreeOrder;

parameters! {
    /// The controller's handling of errors and failures; the laws are in `[reliability]`.
    #[derive(Clone, PartialEq, Debug)]
    pub struct RecoveryPart {
        cycles_before: u32 = "0 to 10000000" in "erases",
            "erases of every block in the initial state";
        data_age_s: f64 = "0 to 1e9" in "s",
            "age of all data at a read";
        read_retries: u32 = "0 to 100",
            "read retries before a page is given up; each uses the cells and the channel once \
             more";
        retry_gain: f64 = "above 0, up to 1",
            "RBER of a read retry, relative to that of the previous read";
        fail_uncorrectable: bool = "`true`, `false`",
            "an uncorrectable page fails the host's I/O; otherwise it is counted, and the \
             results have a warning";
        factory_bad_share: f64 = "0 up to, not including, 1",
            "share of blocks that are bad from the factory";
        program_failures: f64 = "0 up to, not including, 1",
            "probability that a program fails on a block at its rated erases; proportional to \
             erases";
        erase_failures: f64 = "0 up to, not including, 1",
            "the same for an erase";
        retire: Retire = "`nothing`, `blocks`, `pages`, `parity`, `halves`",
            "the part of a block with worn pages that is retired (OFC §IV.C): nothing, the whole \
             block, those pages, all pages of the same parity, all of the same half. Failed \
             blocks and pages are always retired";
        retire_rber: f64 = "above 0, below 0.5",
            "RBER from which a page counts as worn";
        partial_blocks_max: u32 = "0 or more" in "blocks",
            "with `pages`: blocks that may have a bitmap of retired pages; any other is retired \
             whole";
        usable_pages_min: u32 = "1 to a block's data pages" in "pages",
            "a block with fewer usable pages is retired";
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        error_aware_allocation: bool =
            "`true`, `false`; `true` for page maps, without `dynamic_wear_levelling`",
            "the block to fill next is the free one of its die whose worst page has the fewest \
             [bit errors](../explanation/reliability.md#blocks-that-are-chosen-by-their-errors); \
             for relocated pages (`separate_streams`), and for cold pages of `[hot_cold]`, the \
             one with the most (OFC §IV.C); `false` by default";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replacement_blocks: Option<u32> =
            "0 or more, a multiple of planes_per_die; FTLs that merge need it, page maps have \
             none" in "blocks",
            "blocks of a die that the FTL does not use: the first of them replaces the next \
             block that fails. Optional";
    }
}

impl Profile {
    /// Create the flash as from the factory.
    ///
    /// # Errors
    /// Numbers that make no error law.
    pub(crate) fn flash(&self) -> Result<Flash> {
        let geometry = self.geometry();
        let flash = Flash::new(geometry, self.page_order());
        let flash = match self.slc_cache {
            Some(part) => flash.with_slc(part.slc_read_ns, part.slc_program_ns),
            None => flash,
        };
        let in_order = self.uses_page_tables();
        let ordered =
            |replaced: ReplacementTable| if in_order { replaced.in_order() } else { replaced };
        let Some((laws, recovery)) = self.reliability.as_ref().zip(self.recovery.as_ref()) else {
            let has_table = in_order || self.levels_replacements();
            let identity = || self.levelled(ordered(ReplacementTable::identity(geometry)));
            return Ok(if has_table { flash.replacing(identity()) } else { flash });
        };
        let options = WearOutOptions {
            seed: self.state.seed,
            cycles_before: recovery.cycles_before,
            rated_cycles: laws.rated_cycles,
            pages_of_a_cell: if laws.high_page_factor == 1.0 { 1 } else { self.timing.bits() },
            grain: Grain::flash_pages(&geometry),
            data_age_ns: (recovery.data_age_s * 1e9) as u64,
            read_retries: recovery.read_retries,
            retry_gain: recovery.retry_gain,
            program_failures: recovery.program_failures,
            erase_failures: recovery.erase_failures,
            retire_rber: recovery.retire_rber,
        };
        let laws = Reliability::new(laws, self.geometry.page_bytes)?;
        let wear_out = WearOut::new(laws, geometry, options);
        let wear_out = match self.block_history() {
            Some(history) => wear_out.with_history(history),
            None => wear_out,
        };
        let flash = flash.with_wear(wear_out, &self.bad_blocks(), recovery.fail_uncorrectable);
        Ok(match self.replacement_table() {
            Some(replaced) => flash.replacing(self.levelled(ordered(replaced))),
            None => flash,
        })
    }

    /// Return the replacement blocks of a merging FTL; `None` if a die has too few good blocks.
    fn replacement_table(&self) -> Option<ReplacementTable> {
        let part = self.recovery.as_ref().filter(|_| self.merges())?;
        let retire_worn = part.retire == Retire::Blocks;
        ReplacementTable::new(
            self.ftl_geometry(),
            &self.geometry(),
            &self.bad_blocks(),
            retire_worn,
        )
    }

    /// Return whether wear levelling works below a merging FTL.
    fn levels_replacements(&self) -> bool {
        self.merges() && (self.wear.dynamic_wear_levelling || self.wear.static_wear_threshold > 0)
    }

    fn levelled(&self, replaced: ReplacementTable) -> ReplacementTable {
        match self.levels_replacements() {
            true => {
                replaced.levelled(self.wear.dynamic_wear_levelling, self.wear.static_wear_threshold)
            }
            false => replaced,
        }
    }

    /// Check the options of a merging FTL on flash that wears out, and options that only such an
    /// FTL has.
    fn check_replacement(&self, source: &str, recovery: &RecoveryPart) -> Result<()> {
        let wrong = |got: String, allowed: String, action: &str| {
            Err(Error::usage("The FTL does not support this replacement of failed blocks")
                .at(source)
                .got(got)
                .allowed(allowed)
                .action(action))
        };
        let name = &self.ftl.ftl;
        let Some(replacement_blocks) = recovery.replacement_blocks else {
            if self.merges() {
                return wrong(
                    format!("[recovery] without replacement_blocks, with ftl = \"{name}\""),
                    "blocks of a die that are reserved to replace failed ones".into(),
                    "add replacement_blocks, for example 2 % of blocks_per_die",
                );
            }
            return Ok(());
        };
        if !self.merges() {
            return wrong(
                format!("replacement_blocks = {replacement_blocks} with ftl = \"{name}\""),
                "an FTL that merges: other FTLs continue with fewer blocks".into(),
                "take replacement_blocks out",
            );
        }
        if !matches!(recovery.retire, Retire::Nothing | Retire::Blocks) {
            let retire = serde_json::to_value(recovery.retire).expect("serializable");
            return wrong(
                format!("retire = {retire} with ftl = \"{name}\""),
                "\"nothing\" or \"blocks\": a block with retired pages cannot hold all pages \
                 of its logical block"
                    .into(),
                "change retire, or choose a page map",
            );
        }
        let part = &self.geometry;
        if replacement_blocks >= part.blocks_per_die
            || !replacement_blocks.is_multiple_of(part.planes_per_die)
        {
            return wrong(
                format!("replacement_blocks = {replacement_blocks}"),
                format!(
                    "a multiple of planes_per_die = {}, less than blocks_per_die = {}",
                    part.planes_per_die, part.blocks_per_die
                ),
                "change it",
            );
        }
        if self.replacement_table().is_none() {
            return wrong(
                format!(
                    "replacement_blocks = {replacement_blocks}, with {} blocks that are bad from the factory",
                    self.bad_blocks().len()
                ),
                "as many blocks as any die has bad ones, and some for those that fail later".into(),
                "raise replacement_blocks, or lower factory_bad_share",
            );
        }
        Ok(())
    }

    /// Return the order in which a die fills its free blocks.
    pub(super) fn free_order(&self) -> FreeOrder {
        let by_errors = self.recovery.as_ref().is_some_and(|part| part.error_aware_allocation);
        match (by_errors, self.wear.dynamic_wear_levelling) {
            (true, _) => FreeOrder::FewestErrors,
            (false, true) => FreeOrder::LeastWorn,
            (false, false) => FreeOrder::Oldest,
        }
    }

    /// Find options that exclude error-aware allocation.
    pub(super) fn find_invalid_errors(&self, invalid: &mut InvalidKeys) {
        let by_errors = self.recovery.as_ref().is_some_and(|part| part.error_aware_allocation);
        let bound = self.merges() || self.is_zoned();
        let allowed = "false where a page has no choice of blocks: those of an FTL that merges, and of zones, follow \
                       from the address";
        invalid.reject_if(by_errors && bound, "error_aware_allocation", &true, allowed);
        let levels = self.wear.dynamic_wear_levelling;
        let allowed = "false with error_aware_allocation: the next free block is that with the fewest errors, or the \
                       least worn one";
        invalid.reject_if(by_errors && !bound && levels, "dynamic_wear_levelling", &true, allowed);
    }

    /// Return the factory bad blocks, in order.
    pub(super) fn bad_blocks(&self) -> Vec<BlockIdx> {
        let share = self.recovery.as_ref().map_or(0, |part| chance(part.factory_bad_share));
        if share == 0 {
            return Vec::new();
        }
        let blocks = (0..self.geometry().blocks()).map(BlockIdx);
        blocks.filter(|block| WearOut::is_factory_bad(self.state.seed, share, *block)).collect()
    }

    /// Return the retirement options if flash wears out.
    pub(super) fn retirement_options(&self) -> Option<RetirementOptions> {
        self.recovery.as_ref().map(|part| RetirementOptions {
            retire: part.retire,
            partial_blocks_max: part.partial_blocks_max,
            usable_pages_min: part.usable_pages_min.saturating_mul(self.units()),
            bad: self.bad_blocks(),
            needed_pages: self.needed_pages() as u32,
        })
    }

    pub(super) fn check_recovery(&self, source: &str) -> Result<()> {
        let (laws, recovery) = match (&self.reliability, &self.recovery) {
            (None, None) => return Ok(()),
            (Some(laws), Some(recovery)) => (laws, recovery),
            (laws, _) => {
                let (present, missing) = if laws.is_some() {
                    ("[reliability]", "[recovery]")
                } else {
                    ("[recovery]", "[reliability]")
                };
                return Err(Error::usage("[reliability] and [recovery] require each other")
                    .at(source)
                    .got(format!("{present} without {missing}"))
                    .allowed("both tables, or neither")
                    .action("see docs/reference/profiles.md for their keys"));
            }
        };
        Reliability::new(laws, self.geometry.page_bytes).map_err(|error| error.at(source))?;
        self.check_replacement(source, recovery)
    }

    pub(super) fn find_invalid_recovery(&self, invalid: &mut InvalidKeys) {
        let Some(part) = &self.recovery else { return };
        let shape = &self.geometry;
        let max_pages = shape.pages_per_block.saturating_sub(shape.metadata_pages);
        let allowed = format!("1 to {max_pages}, the data pages of a block");
        let min_pages = part.usable_pages_min;
        invalid.reject_if(min_pages > max_pages, "usable_pages_min", &min_pages, allowed);
    }
}

// The state of a block between two erases.

parameters! {
    /// The table `[block_history]`, for flash that wears out.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct BlockHistoryPart {
        retention_by_block: bool = "`true`, `false`",
            "data ages with the device's clock, pauses included: a block is as old as its oldest \
             page, and data of the initial state was `data_age_s` old then. `false`: all data \
             has that age";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read_disturb_doubling: Option<u32> =
            "1 or more; without the key reads disturb nothing" in "reads",
            "page reads of a block after its erase, retries included, that double the errors of \
             its pages; proportional";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scrub_reads: Option<u32> =
            "1 or more, with `read_disturb_doubling`, not with `[zones]`; without the key no \
             number of reads matters" in "reads",
            "page reads of a block after its erase, retries included, after which it is \
             [moved](../explanation/reliability.md#scrubbing)";
        // Longer than data is stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scrub_age_s: Option<f64> =
            "above 0, up to 1e9, with `retention_by_block`, not with `[zones]`; without the key \
             no age matters" in "s",
            "age of a block's oldest page at which it is moved";
    }
}

impl BlockHistoryPart {
    fn scrubs(&self) -> bool {
        self.scrub_reads.is_some() || self.scrub_age_s.is_some()
    }
}

impl Profile {
    pub(super) fn block_history(&self) -> Option<BlockHistory> {
        let part = self.block_history?;
        let blocks = self.geometry().blocks();
        let history =
            BlockHistory::new(blocks, part.retention_by_block, part.read_disturb_doubling);
        let age_ns = part.scrub_age_s.map(|age_s| (age_s * 1e9) as u64);
        Some(history.scrubbed(ScrubLimits { reads: part.scrub_reads, age_ns }))
    }

    /// Return whether blocks are scrubbed.
    pub(super) fn scrubs(&self) -> bool {
        self.block_history.is_some_and(|part| part.scrubs())
    }

    pub(super) fn find_invalid_history(&self, invalid: &mut InvalidKeys) {
        let Some(part) = self.block_history else { return };
        let nothing = self.reliability.is_none();
        let allowed = "[reliability] and [recovery] beside [block_history]";
        invalid.reject_if(nothing, "retention_by_block", &part.retention_by_block, allowed);
        let reads = part.scrub_reads.unwrap_or(1);
        let undisturbed = part.scrub_reads.is_some() && part.read_disturb_doubling.is_none();
        let allowed = "no such key without read_disturb_doubling: reads disturb nothing";
        invalid.reject_if(undisturbed, "scrub_reads", &reads, allowed);
        let age = part.scrub_age_s.unwrap_or(1.0);
        let ageless = part.scrub_age_s.is_some() && !part.retention_by_block;
        let allowed = "no such key without retention_by_block: all data has one age";
        invalid.reject_if(ageless, "scrub_age_s", &age, allowed);
        let allowed = "no such key with [zones], which keep their blocks until the host resets them: it moves its data";
        invalid.reject_if(
            self.is_zoned() && part.scrub_reads.is_some(),
            "scrub_reads",
            &reads,
            allowed,
        );
        invalid.reject_if(
            self.is_zoned() && part.scrub_age_s.is_some(),
            "scrub_age_s",
            &age,
            allowed,
        );
        let spares = self.recovery.as_ref().and_then(|part| part.replacement_blocks);
        let nowhere = part.scrubs() && self.merges() && spares == Some(0);
        let allowed = "1 or more a plane with scrub_reads or scrub_age_s: blocks are moved there";
        invalid.reject_if(nowhere, "replacement_blocks", &0, allowed);
    }
}

// Power-loss options.

parameters! {
    /// The table `[power_loss]`: the device records its flash contents and can lose power.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct PowerLossPart {
        power_loss_protection: bool = "`true`, `false`",
            "after a power loss, capacitors supply the device until all accepted data is on \
             flash; without them the write cache is lost, and pages that are being programmed \
             are torn. Needed with `cache_program` and with mapping units smaller than a flash \
             page";
        spare_read_bytes: u32 = "1 to `page_bytes` + `spare_bytes`" in "bytes",
            "bytes that the channel transfers when only the spare area of a page is read, to \
             identify its content";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silent_errors_per_million: Option<u32> = "0 to 1000000; 0 without the key",
            "host pages whose data is stored wrong without any error, of a million that are \
             written: a fault for tests of `uflip pattern --verify`";
    }
}

impl Profile {
    pub(super) fn find_invalid_power_loss(&self, invalid: &mut InvalidKeys) {
        // Another check reports that zones exclude this table.
        let Some(part) = self.power_loss.filter(|_| !self.is_zoned()) else { return };
        let max_bytes = self.geometry.page_bytes.saturating_add(self.geometry.spare_bytes);
        let bytes = part.spare_read_bytes;
        let allowed = format!("1 to {max_bytes}, a page with its spare area");
        invalid.reject_if(!(1..=max_bytes).contains(&bytes), "spare_read_bytes", &bytes, allowed);
        let exactly = self.gc.as_ref().and_then(|gc| gc.relocate_exactly);
        let got = exactly.unwrap_or(0);
        let allowed = "no such key with [power_loss]: a fixed number of moved pages discards data";
        invalid.reject_if(exactly.is_some(), "relocate_exactly", &got, allowed);
        let min_blocks = self.gc.as_ref().map_or(0, |gc| gc.relocate_at_least);
        let allowed = "0 with [power_loss]: additional moved pages take the space that an interrupted \
                       collection needs";
        invalid.reject_if(min_blocks > 0, "relocate_at_least", &min_blocks, allowed);
        let volatile = !part.power_loss_protection;
        let register = volatile && self.timing.cache_program;
        let allowed =
            "false with [power_loss], unless power_loss_protection: no command waits for the cells";
        invalid.reject_if(register, "cache_program", &self.timing.cache_program, allowed);
        let units = self.ftl.mapping_unit_bytes.unwrap_or(0);
        let allowed = "a flash page with [power_loss], unless power_loss_protection: units that are moved \
                       wait in memory for their flash page";
        invalid.reject_if(volatile && self.units() > 1, "mapping_unit_bytes", &units, allowed);
    }
}
