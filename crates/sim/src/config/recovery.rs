//! The tables of flash that wears out: the laws, and what the controller does about them.

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

use super::Profile;
use crate::flash::geometry::BlockIdx;
use crate::flash::media::Flash;
use crate::flash::reliability::{Reliability, ReliabilityPart};
use crate::flash::wear_out::{WearOut, WearOutOptions, chance};
use crate::ftl::{Retire, RetirementOptions};

/// What the controller does about errors and failures; the laws are in [`ReliabilityPart`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct RecoveryPart {
    /// Erases of every block before the device is handed over.
    pub cycles_before: u32,
    /// How long ago whatever is read was written.
    pub data_age_s: f64,
    /// Reads that are repeated before a page is given up, and the RBER of each, times the one before.
    pub read_retries: u32,
    pub retry_gain: f64,
    /// A page that cannot be read fails the I/O; otherwise it is counted only.
    pub fail_uncorrectable: bool,
    /// Share of blocks that are bad from the factory.
    pub factory_bad_share: f64,
    /// Chances on a block at its rated erases; they grow in proportion to erases.
    pub program_failures: f64,
    pub erase_failures: f64,
    pub retire: Retire,
    /// RBER from which on a page is worn.
    pub retire_rber: f64,
    /// Blocks that may have pages retired one by one.
    pub partial_blocks_max: u32,
    /// A block with fewer usable pages is retired.
    pub usable_pages_min: u32,
}

/// The keys of the two tables.
pub(super) const LAWS: &[&str] = &[
    "wear_law",
    "rated_cycles",
    "rber_fresh",
    "rber_rated",
    "wear_exponent",
    "page_spread",
    "high_page_factor",
    "retention_doubling_s",
    "retention_exponent",
    "ecc_codeword_bytes",
    "ecc_correctable_bits",
    "erase_step_cycles",
    "erase_step_ns",
    "erase_steps_max",
];
pub(super) const RECOVERY: &[&str] = &[
    "cycles_before",
    "data_age_s",
    "read_retries",
    "retry_gain",
    "fail_uncorrectable",
    "factory_bad_share",
    "program_failures",
    "erase_failures",
    "retire",
    "retire_rber",
    "partial_blocks_max",
    "usable_pages_min",
];

impl Profile {
    /// Both tables, where flash wears out.
    fn wear_tables(&self) -> Option<(&ReliabilityPart, &RecoveryPart)> {
        self.reliability.as_ref().zip(self.recovery.as_ref())
    }

    /// The flash, as it comes from the factory.
    ///
    /// # Errors
    /// Numbers that make no law.
    pub(crate) fn flash(&self) -> Result<Flash> {
        let geometry = self.geometry();
        let flash = Flash::new(geometry, self.page_order());
        let Some((laws, recovery)) = self.wear_tables() else {
            return Ok(flash);
        };
        let options = WearOutOptions {
            seed: self.state.seed,
            cycles_before: recovery.cycles_before,
            rated_cycles: laws.rated_cycles,
            pages_of_a_cell: if laws.high_page_factor == 1.0 { 1 } else { self.timing.bits() },
            data_age_ns: (recovery.data_age_s * 1e9) as u64,
            read_retries: recovery.read_retries,
            retry_gain: recovery.retry_gain,
            program_failures: recovery.program_failures,
            erase_failures: recovery.erase_failures,
            retire_rber: recovery.retire_rber,
        };
        let laws = Reliability::new(laws, self.geometry.page_bytes)?;
        let wear_out = WearOut::new(laws, geometry, options);
        Ok(flash.wearing_out(wear_out, &self.bad_blocks(), recovery.fail_uncorrectable))
    }

    /// The blocks that are bad from the factory, in order.
    pub(super) fn bad_blocks(&self) -> Vec<BlockIdx> {
        let share = self.recovery.as_ref().map_or(0, |part| chance(part.factory_bad_share));
        if share == 0 {
            return Vec::new();
        }
        let blocks = (0..self.geometry().blocks()).map(BlockIdx);
        blocks.filter(|block| WearOut::is_factory_bad(self.state.seed, share, *block)).collect()
    }

    /// How blocks and pages are retired, where they wear out.
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
                let (one, other) = if laws.is_some() {
                    ("[reliability]", "[recovery]")
                } else {
                    ("[recovery]", "[reliability]")
                };
                return Err(Error::usage("Laws of wear and what is done about them go together")
                    .at(source)
                    .got(format!("{one} without {other}"))
                    .allowed("both tables, or neither")
                    .action("see docs/reference/profiles.md for their keys"));
            }
        };
        Reliability::new(laws, self.geometry.page_bytes).map_err(|error| error.at(source))?;
        let share = |value: f64| (0.0..1.0).contains(&value);
        let data_pages = self.geometry().data_pages();
        let checks = [
            ("cycles_before", recovery.cycles_before <= 10_000_000, "0 to 10000000"),
            ("data_age_s", (0.0..=1e9).contains(&recovery.data_age_s), "0 to 1e9 seconds"),
            ("read_retries", recovery.read_retries <= 100, "0 to 100"),
            (
                "retry_gain",
                recovery.retry_gain > 0.0 && recovery.retry_gain <= 1.0,
                "above 0, up to 1",
            ),
            ("factory_bad_share", share(recovery.factory_bad_share), "0 up to, not including, 1"),
            ("program_failures", share(recovery.program_failures), "0 up to, not including, 1"),
            ("erase_failures", share(recovery.erase_failures), "0 up to, not including, 1"),
            (
                "retire_rber",
                recovery.retire_rber > 0.0 && recovery.retire_rber < 0.5,
                "between 0 and 0.5",
            ),
            (
                "usable_pages_min",
                (1..=data_pages).contains(&recovery.usable_pages_min),
                "1 to the data pages of a block",
            ),
        ];
        match checks.into_iter().find(|(_, fine, _)| !fine) {
            None => Ok(()),
            Some((key, _, allowed)) => {
                let value = serde_json::to_value(recovery).expect("plain data");
                Err(Error::usage(format!("Profile key '{key}' makes no device"))
                    .at(source)
                    .got(value[key].to_string())
                    .allowed(allowed)
                    .action("change it; docs/reference/profiles.md explains every key"))
            }
        }
    }
}
