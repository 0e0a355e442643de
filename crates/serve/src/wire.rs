//! The NBD protocol: properties of an export, constants and reply layouts. All of it is big-endian.
//!
//! **Source**: the protocol specification (`doc/proto.md` of the NBD project); names as there,
//! without the prefix `NBD_`.

use uflip_core::{Bytes, DeviceInfo};

/// The first bytes from a server.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Before every option, from either side.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// Before every reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Before every request.
pub const REQUEST: u32 = 0x2560_9513;
/// Before every simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Before every chunk of a structured reply.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Fixed newstyle, as a flag of either side.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
/// Both sides omit the 124 zeros after `EXPORT_NAME`.
pub const NO_ZEROES: u16 = 1 << 1;

/// Options of a client.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
}

/// Replies to options.
pub mod answer {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Kinds of information in replies to `INFO` and `GO`.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Capabilities of an export.
pub mod can {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const MULTI_CONN: u16 = 1 << 8;
}

/// Commands of a client.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
}

/// Flags of a command.
pub mod flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
}

/// Error numbers of the protocol.
pub mod errno {
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const EINVAL: u32 = 22;
    pub const ENOSPC: u32 = 28;
}

/// Kinds of chunks of a structured reply.
mod chunk {
    pub const OFFSET_DATA: u16 = 1;
    pub const ERROR: u16 = 1 << 15 | 1;
    /// This chunk is the last.
    pub const DONE: u16 = 1 << 0;
}

/// The size of a request header.
pub const REQUEST_BYTES: usize = 28;
/// The size of an option header.
pub const OPTION_BYTES: usize = 16;

/// Read a big-endian number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// As [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// As [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Append a simple reply: to anything but a read, and to a read without structured replies.
pub fn put_simple(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE_REPLY.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Append the header of the data of a read, in one chunk; `length` bytes follow.
pub fn put_data_head(out: &mut Vec<u8>, structured: bool, cookie: u64, offset: u64, length: u32) {
    if !structured {
        return put_simple(out, cookie, 0);
    }
    put_chunk_head(out, chunk::OFFSET_DATA, cookie, length.saturating_add(8));
    out.extend_from_slice(&offset.to_be_bytes());
}

/// Append the reply to a failed request.
pub fn put_error(out: &mut Vec<u8>, structured: bool, cookie: u64, error: u32) {
    if !structured {
        return put_simple(out, cookie, error);
    }
    put_chunk_head(out, chunk::ERROR, cookie, 6);
    out.extend_from_slice(&error.to_be_bytes());
    // An empty message.
    out.extend_from_slice(&0_u16.to_be_bytes());
}

fn put_chunk_head(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    out.extend_from_slice(&STRUCTURED_REPLY.to_be_bytes());
    out.extend_from_slice(&chunk::DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

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
