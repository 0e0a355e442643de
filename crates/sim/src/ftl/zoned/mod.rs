//! Zones: no translation. The host writes zones in order and resets them as a whole, at fixed places of the
//! flash.
//!
//! [`book`] has the states of zones, [`layout`] the places of their pages.

mod book;
mod layout;

pub(crate) use book::Book;
pub(crate) use layout::Layout;
pub use layout::{ZoneDies, ZonesPart};

/// Its name in the list of FTLs.
pub(crate) const ZONED: &str = "zoned";
