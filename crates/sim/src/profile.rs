//! A simulated device as plain data: TOML with every number named, checked before any work.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uflip_core::{Error, Result, SECTOR_BYTES_MIN, format_bytes};

use crate::geometry::Geometry;
use crate::timeline::Timing;

/// Everything that a simulated device is made of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // explained key by key in docs/reference/profiles.md
pub struct Profile {
    pub description: String,
    pub geometry: GeometryPart,
    pub timing: TimingPart,
    pub ftl: FtlPart,
    pub gc: GcPart,
    pub allocation: AllocationPart,
    pub state: StatePart,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GeometryPart {
    pub channels: u32,
    pub dies_per_channel: u32,
    pub blocks_per_die: u32,
    pub pages_per_block: u32,
    pub page_bytes: u32,
    pub sector_bytes: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TimingPart {
    pub read_ns: u64,
    pub program_ns: u64,
    pub erase_ns: u64,
    pub channel_bytes_per_s: u64,
    pub link_bytes_per_s: u64,
    pub command_ns: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct FtlPart {
    pub ftl: String,
    /// (S_P − S_L) / S_P (OFC §V.C): the share of the flash that the host cannot address.
    pub spare_factor: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct GcPart {
    pub gc: String,
    pub reserved_blocks: u32,
    /// Free blocks a die that collection in idle time works towards; 0: none in idle time.
    pub idle_free_blocks: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct AllocationPart {
    pub allocator: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct StatePart {
    pub state: State,
    /// Device sizes written at random after the first sequential fill.
    pub random_overwrites: f64,
    pub seed: u64,
}

/// In which state a device is handed to its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum State {
    /// As it comes from the factory.
    Empty,
    /// Every logical page written once, in order.
    Sequential,
    /// uFLIP §4.1: random writes of random size over the whole device.
    Random,
}

/// Pages are numbered in 32 bits, and one number means "nowhere".
const PAGES_MAX: u64 = u32::MAX as u64 - 1;
/// Valid pages of a block are counted in 16 bits.
const PAGES_PER_BLOCK_MAX: u32 = 1 << 15;

impl Profile {
    /// Read a profile from the text of `source` and change what `overrides` (a JSON object) says.
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key (with the line and the known keys), a value that makes no
    /// device, an override of an unknown key.
    pub fn parse(text: &str, source: &str, overrides: &str) -> Result<Profile> {
        let profile: Profile = toml::from_str(text).map_err(|error| {
            Error::usage("The profile is not valid")
                .at(source)
                .got(error.to_string().trim().to_owned())
                .action("correct the profile; docs/reference/profiles.md explains every key")
        })?;
        let profile = profile.with_overrides(overrides, source)?;
        profile.check(source)?;
        Ok(profile)
    }

    fn with_overrides(self, overrides: &str, source: &str) -> Result<Profile> {
        let changes = match serde_json::from_str(overrides) {
            Ok(Value::Object(changes)) => changes,
            _ => return Err(Error::usage("Overrides are not a JSON object").got(overrides)),
        };
        let mut whole = serde_json::to_value(&self).expect("a profile is plain data");
        for (key, value) in changes {
            let known = override_keys(&whole);
            let Some(place) = find(&mut whole, &key) else {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(Error::unknown("key of a profile", &key, &known).at(source));
            };
            // A device name carries texts; they are read as what stands there already.
            *place = match (&*place, value) {
                (Value::String(_), value) => value,
                (_, Value::String(text)) => {
                    serde_json::from_str(&text).unwrap_or(Value::String(text))
                }
                (_, value) => value,
            };
        }
        serde_json::from_value(whole).map_err(|error| {
            Error::usage("An override does not fit its key")
                .at(source)
                .got(error.to_string())
        })
    }

    /// The numbers of the geometry, checked to make a device.
    pub(crate) fn geometry(&self) -> Geometry {
        let part = &self.geometry;
        let dies = part.channels * part.dies_per_channel;
        let page = u64::from(part.page_bytes);
        let pages =
            u64::from(dies) * u64::from(part.blocks_per_die) * u64::from(part.pages_per_block);
        // Whole MiB where that leaves anything, as devices are sold.
        let unit = if pages * page >= 64 << 20 {
            1 << 20
        } else {
            page
        };
        let logical_bytes = (pages * page) as f64 * (1.0 - self.ftl.spare_factor);
        let logical_bytes = logical_bytes as u64 / unit * unit;
        Geometry {
            channels: part.channels,
            dies,
            blocks_per_die: part.blocks_per_die,
            pages_per_block: part.pages_per_block,
            page_bytes: part.page_bytes,
            logical_pages: (logical_bytes / page) as u32,
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        let part = &self.timing;
        let page = u64::from(self.geometry.page_bytes);
        Timing {
            read_ns: part.read_ns,
            program_ns: part.program_ns,
            erase_ns: part.erase_ns,
            transfer_ns: page * 1_000_000_000 / part.channel_bytes_per_s,
            command_ns: part.command_ns,
            link_bytes_per_s: part.link_bytes_per_s,
        }
    }

    fn check(&self, source: &str) -> Result<()> {
        let bad = |key: &str, got: String, allowed: String| {
            let what = format!("Profile key '{key}' makes no device");
            Err(Error::usage(what)
                .at(source)
                .got(got)
                .allowed(allowed)
                .action("change it"))
        };
        let part = &self.geometry;
        let counts = [
            ("channels", part.channels),
            ("dies_per_channel", part.dies_per_channel),
            ("blocks_per_die", part.blocks_per_die),
            ("pages_per_block", part.pages_per_block),
        ];
        if let Some((key, got)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return bad(key, got.to_string(), "1 or more".into());
        }
        if part.pages_per_block > PAGES_PER_BLOCK_MAX {
            let allowed = format!("at most {PAGES_PER_BLOCK_MAX}");
            return bad("pages_per_block", part.pages_per_block.to_string(), allowed);
        }
        let sector = u64::from(part.sector_bytes);
        if !sector.is_power_of_two() || sector < SECTOR_BYTES_MIN {
            return bad(
                "sector_bytes",
                sector.to_string(),
                "a power of two from 512".into(),
            );
        }
        let page = u64::from(part.page_bytes);
        if page < sector || !page.is_multiple_of(sector) {
            let allowed = format!("whole sectors of {sector} bytes");
            return bad("page_bytes", page.to_string(), allowed);
        }
        let rates = [
            ("channel_bytes_per_s", self.timing.channel_bytes_per_s),
            ("link_bytes_per_s", self.timing.link_bytes_per_s),
        ];
        if let Some((key, _)) = rates.into_iter().find(|(_, rate)| *rate == 0) {
            return bad(key, "0".into(), "1 or more".into());
        }
        let pages = [
            part.channels,
            part.dies_per_channel,
            part.blocks_per_die,
            part.pages_per_block,
        ]
        .into_iter()
        .try_fold(1u64, |product, count| product.checked_mul(u64::from(count)))
        .unwrap_or(u64::MAX);
        if pages > PAGES_MAX {
            return bad(
                "geometry",
                format!("{pages} pages"),
                format!("at most {PAGES_MAX}"),
            );
        }
        self.check_names(source)?;
        self.check_spare(source, pages)
    }

    fn check_names(&self, source: &str) -> Result<()> {
        if !crate::FTLS.contains(&self.ftl.ftl.as_str()) {
            return Err(Error::unknown("FTL", &self.ftl.ftl, &crate::FTLS).at(source));
        }
        crate::gc::by_name(&self.gc.gc).map_err(|error| error.at(source))?;
        let geometry = Geometry {
            channels: 1,
            dies: 1,
            blocks_per_die: 1,
            pages_per_block: 1,
            page_bytes: 1,
            logical_pages: 1,
        };
        crate::alloc::by_name(&self.allocation.allocator, geometry)
            .map_err(|error| error.at(source))?;
        Ok(())
    }

    /// The host must be able to fill the device while every die keeps its reserve and an open block.
    fn check_spare(&self, source: &str, pages: u64) -> Result<()> {
        let spare = self.ftl.spare_factor;
        let part = &self.geometry;
        let dies = u64::from(part.channels * part.dies_per_channel);
        // One open block, the reserve, and one more so that collection gains something.
        let held = u64::from(self.gc.reserved_blocks.max(1)) + 2;
        let needed = dies * held * u64::from(part.pages_per_block);
        let least = needed as f64 / pages as f64;
        if !(spare >= least && spare < 1.0) {
            return Err(
                Error::usage("The spare factor does not suit the reserved blocks")
                    .at(source)
                    .got(format!("spare_factor = {spare}"))
                    .allowed(format!("{least:.4} up to, not including, 1"))
                    .action("raise spare_factor, lower reserved_blocks, or make smaller blocks"),
            );
        }
        let logical = self.geometry().logical_pages;
        if logical == 0 {
            return Err(Error::usage("The device has no room for the host")
                .at(source)
                .got(format_bytes(pages * u64::from(part.page_bytes)))
                .action("lower spare_factor, or make the device larger"));
        }
        let idle = self.gc.idle_free_blocks;
        if idle > 0 && idle <= self.gc.reserved_blocks {
            return Err(Error::usage("Idle collection would never begin")
                .at(source)
                .got(format!("idle_free_blocks = {idle}"))
                .allowed(format!(
                    "0, or more than reserved_blocks = {}",
                    self.gc.reserved_blocks
                ))
                .action("change one of the two"));
        }
        if !(0.0..=100.0).contains(&self.state.random_overwrites) {
            return Err(
                Error::usage("Profile key 'random_overwrites' is out of range")
                    .at(source)
                    .got(self.state.random_overwrites.to_string())
                    .allowed("0 to 100 device sizes"),
            );
        }
        Ok(())
    }
}

/// The keys of all tables: each is unique, so an override needs no table name.
fn override_keys(whole: &Value) -> Vec<String> {
    let tables = whole.as_object().into_iter().flatten();
    let keys = tables
        .filter_map(|(_, table)| table.as_object())
        .flat_map(|table| table.keys());
    keys.cloned().collect()
}

fn find<'a>(whole: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let tables = whole
        .as_object_mut()?
        .values_mut()
        .filter_map(Value::as_object_mut);
    tables.into_iter().find_map(|table| table.get_mut(key))
}
