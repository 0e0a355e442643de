//! A block device as a snapshot file.

use std::path::Path;

use uflip_core::{DeviceInfo, Result};

use crate::config::Profile;
use crate::device::SimDevice;
use crate::device::any::AnyBackend;
use crate::snapshot::{self, Snapshot};

impl Snapshot for SimDevice {
    type Profile = Profile;
    const INTERFACE: &str = "block";

    fn check(profile: &Profile, location: &str) -> Result<()> {
        profile.check(location)
    }

    fn memory_bytes(profile: &Profile) -> u64 {
        profile.memory_bytes()
    }

    fn description(name: &str, profile: &Profile) -> DeviceInfo {
        SimDevice::inspect(name, profile)
    }

    fn matches_profile(&self, profile: &Profile) -> bool {
        let paged = matches!(self.backend, AnyBackend::Paged(_));
        self.flash.geometry == profile.geometry()
            && self.sector_bytes == u64::from(profile.geometry.sector_bytes)
            && self.cache.is_some() == profile.write_cache().is_some()
            && paged == profile.gc.is_some()
            && self.has_zones() == profile.zones.is_some()
    }

    fn with_description(mut self, info: DeviceInfo) -> SimDevice {
        self.info = info;
        self.minimal = self.is_built_minimal();
        self.event_budget = SimDevice::event_budget(&self.flash.geometry);
        self
    }

    fn save_unless(&self, path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        snapshot::save_unless(self, path, is_stopped)
    }

    fn restore(path: &Path) -> Result<SimDevice> {
        snapshot::restore(path)
    }
}
