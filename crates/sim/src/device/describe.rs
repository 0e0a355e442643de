//! The description of a simulated device.

use serde_json::{Map, Value, json};
use uflip_core::{Bytes, DeviceInfo};

use crate::config::Profile;
use crate::flash::media::Flash;
use crate::snapshot::not_described;

/// Return the history that brought the device into its state.
pub(crate) fn history(flash: &Flash) -> Value {
    let (min_erases, mean, max_erases) = flash.nand.wear();
    json!({
        "pages_written": flash.counters.host_pages_written,
        "pages_programmed": flash.counters.pages_programmed,
        "blocks_erased": flash.counters.blocks_erased,
        "erases_of_a_block": {"least": min_erases, "mean": mean, "most": max_erases},
    })
}

pub(crate) fn describe(name: &str, profile: &Profile) -> DeviceInfo {
    let geometry = profile.geometry();
    let mut details = Map::new();
    details.insert("profile".into(), serde_json::to_value(profile).expect("serializable"));
    details.insert(
        "flash_bytes".into(),
        Value::from(u64::from(geometry.pages()) * u64::from(geometry.shape().page_bytes)),
    );
    if let Some(part) = profile.zones {
        let size = part.zone_bytes / u64::from(geometry.shape().page_bytes);
        let zones = json!({
            "zone_bytes": part.zone_bytes,
            "zone_capacity_bytes": profile.zone_capacity_bytes(),
            "zone_count": u64::from(geometry.shape().logical_pages) / size,
            "max_open_zones": part.max_open_zones,
            "max_active_zones": part.max_active_zones,
        });
        details.insert("zones".into(), zones);
        details.insert("deallocates".into(), false.into());
    }
    DeviceInfo {
        url: format!("sim:{name}"),
        model: name.into(),
        capacity_bytes: Bytes(
            u64::from(geometry.shape().logical_pages) * u64::from(geometry.shape().page_bytes),
        ),
        sector_bytes: Bytes(u64::from(profile.geometry.sector_bytes)),
        details,
        ..not_described()
    }
}
