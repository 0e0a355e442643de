//! The vocabulary of all other crates: units, I/Os, the `Device` trait, errors.
//!
//! This crate defines names, units and contracts, and never accesses a device. `core` imports no
//! other crate of the workspace.

pub mod content;
mod device;
mod durability;
mod energy;
mod error;
mod flash;
mod io;
mod memory;
mod preconditioning;
mod quantity;
pub mod random;
mod spooled;
mod units;
mod zone;

pub use content::{Content, ContentShares};
pub use device::{
    Breakdown, CauseColumn, Completion, CompletionQueue, Counters, Device, DeviceInfo, DeviceKind,
    Ticket,
};
pub use durability::Durability;
pub use energy::{Energy, EnergyCause};
pub use error::{Error, ErrorKind, Result};
pub use flash::{AddressStatus, FlashGeometry, FlashIo, FlashOp, FlashStatus, Ppa, VECTOR_MAX};
pub use io::{Io, Mode};
pub use memory::available_bytes;
pub use preconditioning::{StateOptions, StateWrites};
pub use quantity::Quantity;
pub use spooled::{SpooledVec, spool_folder};
pub use units::{Bytes, Nanos, SECTOR_BYTES_MIN, format_bytes, format_nanos};
pub use zone::{Zone, ZoneLimits, ZoneReport, ZoneState, ZoneStatus};
