//! The properties of an export, as clients see them.

use uflip_core::{Bytes, DeviceInfo};

use crate::wire::can;

/// The longest data of one request [bytes]. Clients respect this limit.
pub const LONGEST_DATA: u32 = 32 << 20;

/// The properties of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name; an empty name selects the first export.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// The addressable size.
    pub size: Bytes,
    /// The smallest unit of offsets and lengths [bytes].
    pub sector: u32,
    /// The preferred unit: the flash page [bytes].
    pub preferred: u32,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// The default page size [bytes].
const USUAL_PAGE: u64 = 4096;

impl Export {
    /// Create the export `name` of the device with these properties.
    #[must_use]
    pub fn for_device(name: &str, info: &DeviceInfo, read_only: bool) -> Export {
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

    /// Return its capabilities, as protocol bits. A flush covers all connections, because they
    /// share one device and one data file.
    #[must_use]
    pub fn flags(&self) -> u16 {
        let always = can::HAS_FLAGS | can::SEND_FLUSH | can::SEND_FUA | can::SEND_DF;
        let writable = can::SEND_TRIM | can::SEND_WRITE_ZEROES;
        let kind = if self.read_only { can::READ_ONLY } else { writable };
        always | kind | can::MULTI_CONN
    }
}
