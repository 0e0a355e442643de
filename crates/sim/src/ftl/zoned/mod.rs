//! No translation: zones that the host writes in order and resets as a whole, at fixed places of the flash.
//!
//! What suits which state of a zone is in [`book`], where its pages are in [`layout`].

mod book;
mod layout;

pub(crate) use book::Book;
pub(crate) use layout::Layout;
pub use layout::{ZoneDies, ZonesPart};

/// The name of it among the FTLs.
pub(crate) const ZONED: &str = "zoned";
