//! Zones: no translation. The host writes zones in order and resets them as a whole, at fixed offsets of the
//! flash.
//!
//! [`zone_states`] has the states of zones, [`layout`] the addresses of their pages.

mod layout;
mod zone_states;

pub(crate) use layout::ZoneLayout;
pub use layout::{ZoneDies, ZonesPart};
pub(crate) use zone_states::ZoneStates;

/// Its name in the list of FTLs.
pub(crate) const ZONED: &str = "zoned";
