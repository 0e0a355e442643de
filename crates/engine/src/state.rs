//! Preconditioning: the specification of a device state, its defaults, and the loop that enforces
//! it.
//!
//! The writes are [`uflip_core::StateWrites`]. No trace is recorded: filling a device of a terabyte
//! takes some fifteen million writes, whose response times are not needed.

use serde::{Deserialize, Serialize};
use uflip_core::{Bytes, Device, Error, Io, Mode, Result, StateOptions, format_bytes};

use crate::drive::{Control, cancelled};
use crate::list;

/// uFLIP §4.1: "the flash block size, 128 KB".
const IO_SIZE_MAX: u64 = 128 << 10;
const SEED: u64 = 1;

/// The two states of uFLIP §4.1, and that of a device without data: all of it is deallocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum StateName {
    Random,
    Sequential,
    Empty,
}

/// The specification that a user writes. Every key but `state` has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained in docs/how-to/prepare-a-device.md
pub struct StateSpec {
    pub state: StateName,
    pub target_offset: Option<u64>,
    pub target_size: Option<u64>,
    pub io_size_max: Option<u64>,
    /// The volume of random writes after the sequential pass; the target size by default.
    pub random_bytes: Option<u64>,
    pub seed: Option<u64>,
}

/// A validated state with all defaults filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ResolvedState {
    pub state: StateName,
    pub target_offset: u64,
    pub target_size: u64,
    pub io_size_max: u64,
    pub random_bytes: u64,
    pub seed: u64,
    #[serde(skip)]
    sector: u64,
}

/// The limit of random writes of a state, counted with their average size: at 100,000 per second
/// they take two days, and counting them takes a minute.
pub const MAX_WRITES: u64 = 1 << 34;

/// The total work of enforcing a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct StateTotals {
    pub total_ios: u64,
    pub bytes_written: u64,
}

impl StateSpec {
    /// Parse a specification.
    ///
    /// # Errors
    /// Invalid JSON, an unknown key or name, a number out of range.
    pub fn parse(json: &str) -> Result<StateSpec> {
        serde_json::from_str(json).map_err(|error| {
            Error::usage("The state is not valid")
                .at("state")
                .with_serde_message(&error.to_string())
                .action("see `uflip prepare --help`")
        })
    }

    /// Validate against a device of `capacity` and `sector` bytes, and fill in every default.
    ///
    /// # Errors
    /// Sizes that are not whole sectors, a target space outside the device or smaller than the
    /// largest write, more than [`MAX_WRITES`] random writes.
    pub fn resolve(&self, capacity: Bytes, sector: Bytes) -> Result<ResolvedState> {
        let (capacity, sector) = (capacity.0, sector.0);
        let target_offset = self.target_offset.unwrap_or(0);
        let remaining_capacity = capacity.saturating_sub(target_offset) / sector * sector;
        let target_size = self.target_size.unwrap_or(remaining_capacity);
        let io_size_max = self.io_size_max.unwrap_or(match self.state {
            StateName::Random | StateName::Sequential => IO_SIZE_MAX,
            StateName::Empty => list::IO_SIZE_MAX.min(target_size),
        });
        for (name, value) in [
            ("target_offset", target_offset),
            ("target_size", target_size),
            ("io_size_max", io_size_max),
        ] {
            if !value.is_multiple_of(sector) || (value == 0 && name != "target_offset") {
                return Err(Error::usage(format!("'{name}' is not a whole number of sectors"))
                    .at(name)
                    .got(value.to_string())
                    .allowed(format!("multiples of {sector} bytes"))
                    .action(format!("change '{name}'")));
            }
        }
        if target_size > remaining_capacity {
            return Err(Error::usage("The target space lies outside the device")
                .at(format!("target_offset {target_offset}, target_size {target_size}"))
                .got(format!("{} beyond the offset", format_bytes(target_size)))
                .allowed(format!(
                    "up to {} ({remaining_capacity} bytes)",
                    format_bytes(remaining_capacity)
                ))
                .action("choose a smaller target_size or target_offset"));
        }
        if target_size < io_size_max {
            return Err(Error::usage(
                "The target space is smaller than the largest write of the state",
            )
            .at(format!("target_size {target_size}"))
            .got(format!("writes of up to {}", format_bytes(io_size_max)))
            .allowed(format!("targets of {} or more", format_bytes(io_size_max)))
            .action("enlarge the target; a plan file may also give a smaller io_size_max"));
        }
        let random_bytes = match self.state {
            StateName::Random => self.random_bytes.unwrap_or(target_size),
            StateName::Sequential | StateName::Empty => 0,
        };
        let mean_size = (io_size_max / sector + 1) * sector / 2;
        if random_bytes / mean_size > MAX_WRITES {
            return Err(Error::usage("The state needs too many random writes")
                .at("random_bytes")
                .got(format!("{random_bytes}, in writes of {mean_size} bytes on average"))
                .allowed(format!("up to {}", mean_size * MAX_WRITES))
                .action("reduce random_bytes, or raise io_size_max"));
        }
        let seed = self.seed.unwrap_or(SEED);
        let state = self.state;
        Ok(ResolvedState {
            state,
            target_offset,
            target_size,
            io_size_max,
            random_bytes,
            seed,
            sector,
        })
    }
}

impl ResolvedState {
    /// Return the writes that enforce the state, from the first; trims for the empty one.
    pub fn writes(&self) -> impl Iterator<Item = Io> + use<> {
        let mode = if self.state == StateName::Empty { Mode::Trim } else { Mode::Write };
        self.options().writes().map(move |io| Io { mode, ..io })
    }

    /// Count the writes and their bytes exactly.
    ///
    /// # Errors
    /// [`uflip_core::ErrorKind::Interrupted`] if `stop` returns true: counting takes seconds for
    /// tens of TiB.
    pub fn totals(&self, stop: impl Fn() -> bool) -> Result<StateTotals> {
        let (total_ios, bytes) = self.options().totals(stop).ok_or_else(cancelled)?;
        let bytes_written = if self.state == StateName::Empty { 0 } else { bytes };
        Ok(StateTotals { total_ios, bytes_written })
    }

    fn options(&self) -> StateOptions {
        StateOptions {
            target_offset: Bytes(self.target_offset),
            target_size: Bytes(self.target_size),
            sector: Bytes(self.sector),
            io_size_max: Bytes(self.io_size_max),
            fill: true,
            random_bytes: Bytes(self.random_bytes),
            seed: self.seed,
        }
    }
}

/// Submit `writes` to `device`, one after another.
///
/// # Errors
/// The first error of the device, or [`uflip_core::ErrorKind::Interrupted`] after
/// [`Control::cancel`]; [`Control::progress`] returns the number of completed writes.
pub fn enforce<D: Device<Request = Io>>(
    device: &mut D,
    writes: impl Iterator<Item = Io>,
    control: &Control,
) -> Result<()> {
    for io in writes {
        if control.is_cancelled() {
            return Err(cancelled());
        }
        device.submit(&io)?;
        let completion = device.complete()?;
        control.count_io((completion.completed - completion.submitted).0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_state_trims_every_byte_once_and_writes_nothing() {
        let capacity = Bytes((1 << 30) + (3 << 20) + 512);
        let state = StateSpec::parse(r#"{"state": "empty"}"#).unwrap();
        let resolved = state.resolve(capacity, Bytes(512)).unwrap();
        let mut end = 0;
        for io in resolved.writes() {
            assert_eq!((io.offset.0, io.mode), (end, Mode::Trim));
            assert!(io.size.0 <= list::IO_SIZE_MAX);
            end += io.size.0;
        }
        assert_eq!(end, capacity.0);
        assert_eq!(
            resolved.totals(|| false).unwrap(),
            StateTotals { total_ios: 9, bytes_written: 0 }
        );
    }

    #[test]
    fn small_device_is_emptied_by_one_trim() {
        let state = StateSpec::parse(r#"{"state": "empty"}"#).unwrap();
        let trims: Vec<Io> = state.resolve(Bytes(4096), Bytes(512)).unwrap().writes().collect();
        assert_eq!(trims.len(), 1);
        assert_eq!(trims[0].size, Bytes(4096));
    }
}
