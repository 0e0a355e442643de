//! What a client is told of a device that is served, and what it may ask of it.

use uflip_core::{Bytes, DeviceInfo};

use crate::wire::can;

/// The longest data of one request [bytes]: what clients keep to that never ask.
pub const LONGEST_DATA: u32 = 32 << 20;

/// What a client is told of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// How it is asked for; the first export is also meant by the empty name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Addressable size.
    pub size: Bytes,
    /// Offsets and lengths are multiples of it [bytes].
    pub sector: u32,
    /// What is best for the device: its flash pages [bytes].
    pub preferred: u32,
    /// Whether nothing may be written.
    pub read_only: bool,
}

/// Where nothing is said of pages [bytes].
const USUAL_PAGE: u64 = 4096;

impl Export {
    /// The export `name` of the device of which `info` tells.
    #[must_use]
    pub fn of(name: &str, info: &DeviceInfo, read_only: bool) -> Export {
        let page = info.details.get("profile").and_then(|profile| {
            profile.get("geometry").and_then(|geometry| geometry.get("page_bytes"))
        });
        let page = page.and_then(serde_json::Value::as_u64).unwrap_or(USUAL_PAGE);
        let sector = u32::try_from(info.sector_bytes.0).unwrap_or(LONGEST_DATA).min(LONGEST_DATA);
        let page = u32::try_from(page).unwrap_or(LONGEST_DATA).next_power_of_two();
        Export {
            name: name.to_owned(),
            description: format!("{}, served by uflip", info.url),
            size: info.capacity_bytes,
            sector,
            preferred: page.clamp(sector.max(512), LONGEST_DATA),
            read_only,
        }
    }

    /// What it can do, in the bits of the protocol. One flush is a flush for all connections, because
    /// there is one device behind them, and one place where the data is.
    #[must_use]
    pub fn flags(&self) -> u16 {
        let always = can::HAS_FLAGS | can::SEND_FLUSH | can::SEND_FUA | can::SEND_DF;
        let writable = can::SEND_TRIM | can::SEND_WRITE_ZEROES;
        let kind = if self.read_only { can::READ_ONLY } else { writable };
        always | kind | can::MULTI_CONN
    }
}
