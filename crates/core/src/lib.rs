//! The words that every other crate speaks: units, I/Os, the `Device` trait, errors.
//!
//! Nothing in here does anything to a device; it only says what things are called, in which unit
//! they are counted and what a device promises. `core` imports no other crate of ours.

mod device;
mod durability;
mod error;
mod finished;
mod flash;
mod io;
mod memory;
mod quantity;
pub mod random;
mod state;
mod units;
mod zone;

pub use device::{Breakdown, Completion, Counters, Device, DeviceInfo, DeviceKind, Ticket};
pub use durability::Durability;
pub use error::{Error, ErrorKind, Result};
pub use finished::Finished;
pub use flash::{AddressStatus, FlashGeometry, FlashIo, FlashOp, FlashStatus, Ppa, VECTOR_MAX};
pub use io::{Io, Mode};
pub use memory::available_bytes;
pub use quantity::Quantity;
pub use state::{StateOptions, StateWrites};
pub use units::{Bytes, Nanos, SECTOR_BYTES_MIN, format_bytes, format_nanos};
pub use zone::{Zone, ZoneLimits, ZoneReport, ZoneState, ZoneStatus};
