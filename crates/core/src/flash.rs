//! Requests to open-channel devices, whose host places data itself: vectors of physical addresses,
//! and a status for each address.
//!
//! **Source**: the PPA interface of LightNVM (Bjørling et al., FAST 2017; Open-Channel SSD 1.2), as
//! uFLIP-OC (2017) §2.1 describes it.
//! **Faithful**: hierarchical addresses; erase by block, write by page (all planes), read by
//! sector; up to 64 addresses a command; a status for each address.
//! **Simplified**: an erase or write always takes all planes of a LUN together.
//! **Ambiguous**: the behaviour for the valid addresses of a vector with invalid ones. Here the
//! device executes them. A zoned device is represented by one LUN, with a zone as block and its
//! write unit as page.

use crate::{Error, Result};

/// The largest number of addresses in one command.
pub const VECTOR_MAX: usize = 64;

/// A physical page address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct Ppa {
    pub channel: u8,
    pub lun: u8,
    pub plane: u8,
    pub sector: u8,
    /// The number of the block within its plane: the same in all planes.
    pub block: u32,
    pub page: u32,
}

impl std::fmt::Display for Ppa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ppa { channel, lun, plane, sector, block, page } = self;
        write!(
            f,
            "channel {channel}, LUN {lun}, block {block}, plane {plane}, page {page}, \
             sector {sector}"
        )
    }
}

/// The geometry that an open-channel device reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub struct FlashGeometry {
    pub channels: u32,
    pub luns_per_channel: u32,
    pub planes: u32,
    pub blocks_per_plane: u32,
    pub pages_per_block: u32,
    pub sectors_per_page: u32,
    pub sector_bytes: u32,
    /// The largest number of addresses in one command.
    pub vector_max: u32,
}

impl FlashGeometry {
    /// Return the number of sectors written together: a page of every plane.
    #[must_use]
    #[inline]
    pub fn write_sectors(&self) -> u32 {
        self.planes * self.sectors_per_page
    }

    /// Return the size of a write [bytes].
    #[must_use]
    pub fn write_bytes(&self) -> u64 {
        u64::from(self.write_sectors()) * u64::from(self.sector_bytes)
    }

    /// Return the size of an erase [bytes].
    #[must_use]
    pub fn erase_bytes(&self) -> u64 {
        self.write_bytes() * u64::from(self.pages_per_block)
    }

    /// Return the number of LUNs of all channels.
    #[must_use]
    pub fn luns(&self) -> u32 {
        self.channels * self.luns_per_channel
    }

    /// Return the capacity [bytes].
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.luns()) * u64::from(self.blocks_per_plane) * self.erase_bytes()
    }

    /// Return whether `ppa` lies on the device.
    #[must_use]
    #[inline]
    pub fn contains(&self, ppa: Ppa) -> bool {
        u32::from(ppa.channel) < self.channels
            && u32::from(ppa.lun) < self.luns_per_channel
            && self.has_sector(ppa.plane, ppa.sector)
            && ppa.block < self.blocks_per_plane
            && ppa.page < self.pages_per_block
    }

    /// Return whether a page of all planes has this sector.
    #[must_use]
    #[inline]
    pub fn has_sector(&self, plane: u8, sector: u8) -> bool {
        u32::from(plane) < self.planes && u32::from(sector) < self.sectors_per_page
    }

    /// Return the index of a sector in a page of all planes, in the order of a write.
    #[must_use]
    #[inline]
    pub fn sector_of_page(&self, plane: u8, sector: u8) -> u32 {
        u32::from(plane) * self.sectors_per_page + u32::from(sector)
    }

    /// Check every field of `ppa`.
    ///
    /// # Errors
    /// The first field out of range, with its range.
    pub fn check(&self, ppa: Ppa) -> Result<()> {
        let fields = [
            ("channel", u32::from(ppa.channel), self.channels),
            ("lun", u32::from(ppa.lun), self.luns_per_channel),
            ("block", ppa.block, self.blocks_per_plane),
            ("plane", u32::from(ppa.plane), self.planes),
            ("page", ppa.page, self.pages_per_block),
            ("sector", u32::from(ppa.sector), self.sectors_per_page),
        ];
        match fields.into_iter().find(|(_, got, count)| got >= count) {
            None => Ok(()),
            Some((field, got, count)) => {
                Err(FlashGeometry::out_of_range(field, got.into(), count).at(ppa.to_string()))
            }
        }
    }

    /// Create the error for a field of an address that must be below `count`.
    #[must_use]
    pub fn out_of_range(field: &str, got: i64, count: u32) -> Error {
        Error::usage(format!("The {field} of an address is outside the device"))
            .got(format!("{field} {got}"))
            .allowed(format!("0 to {}", count - 1))
            .action("`uflip info DEVICE` shows the geometry")
    }
}

/// The operation of a flash command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum FlashOp {
    Read,
    Write,
    Erase,
}

impl FlashOp {
    /// All operations, indexed by their number in a trace.
    pub const ALL: [FlashOp; 3] = [FlashOp::Read, FlashOp::Write, FlashOp::Erase];
}

/// One vector command: an operation and up to [`VECTOR_MAX`] addresses.
#[derive(Clone, Copy, Debug)]
pub struct FlashIo {
    op: FlashOp,
    length: u8,
    ppas: [Ppa; VECTOR_MAX],
}

impl FlashIo {
    /// Create a command without addresses.
    #[must_use]
    pub fn empty(op: FlashOp) -> FlashIo {
        FlashIo { op, length: 0, ppas: [Ppa::default(); VECTOR_MAX] }
    }

    /// Create a command for `ppas`.
    ///
    /// # Errors
    /// If `ppas` is empty or longer than [`VECTOR_MAX`].
    pub fn new(op: FlashOp, ppas: &[Ppa]) -> Result<FlashIo> {
        if ppas.is_empty() || ppas.len() > VECTOR_MAX {
            return Err(Error::usage("A command has too many or no addresses")
                .got(ppas.len().to_string())
                .allowed(format!("1 to {VECTOR_MAX}"))
                .action("cut the vector into several commands"));
        }
        let mut io = FlashIo::empty(op);
        ppas.iter().for_each(|ppa| io.push(*ppa));
        Ok(io)
    }

    /// Reset to a command without addresses, to reuse the memory.
    #[inline]
    pub fn begin(&mut self, op: FlashOp) {
        (self.op, self.length) = (op, 0);
    }

    /// Append an address.
    ///
    /// # Panics
    /// If the command has [`VECTOR_MAX`] addresses.
    #[inline]
    pub fn push(&mut self, ppa: Ppa) {
        self.ppas[self.length as usize] = ppa;
        self.length += 1;
    }

    /// Append every sector of page `page` of all planes, in the order of a write.
    #[inline]
    pub fn push_page(&mut self, geometry: &FlashGeometry, page: Ppa) {
        let (first, count) = (self.length as usize, geometry.write_sectors() as usize);
        let planes =
            self.ppas[first..first + count].chunks_exact_mut(geometry.sectors_per_page as usize);
        for (plane, sectors) in (0..).zip(planes) {
            for (sector, ppa) in (0..).zip(sectors) {
                *ppa = Ppa { plane, sector, ..page };
            }
        }
        self.length += count as u8;
    }

    /// Return the operation.
    #[must_use]
    #[inline]
    pub fn op(&self) -> FlashOp {
        self.op
    }

    /// Return the addresses.
    #[must_use]
    #[inline]
    pub fn ppas(&self) -> &[Ppa] {
        &self.ppas[..self.length as usize]
    }
}

impl PartialEq for FlashIo {
    fn eq(&self, other: &FlashIo) -> bool {
        self.op == other.op && self.ppas() == other.ppas()
    }
}

/// The status of one address of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum AddressStatus {
    /// Done.
    #[default]
    Done,
    /// A field is outside the geometry, or an erase names a page or sector of its block.
    OutOfRange,
    /// A write of less than a whole page of all planes, or of its sectors in another order.
    PartialPage,
    /// A write that is not to the next page of its block: out of order, or to an unerased page.
    OutOfOrder,
    /// A read of a page not written since its block was erased.
    Unwritten,
    /// A read with bit errors that the ECC cannot correct.
    Uncorrectable,
    /// A failed erase: the block is retired.
    EraseFailed,
    /// The block was retired earlier.
    Retired,
    /// A failed program: the page is used up and cannot be read.
    ProgramFailed,
    /// A read without an error whose data differs from what was written; only if it is compared.
    Mismatch,
}

impl AddressStatus {
    /// All names, in the order of the enum's numbers.
    pub const NAMES: [&'static str; 10] = [
        "done",
        "out_of_range",
        "partial_page",
        "out_of_order",
        "unwritten",
        "uncorrectable",
        "erase_failed",
        "retired",
        "program_failed",
        "mismatch",
    ];

    /// Return the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        AddressStatus::NAMES[self as usize]
    }
}

/// The status of every address of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(into = "Vec<(u8, AddressStatus)>", try_from = "Vec<(u8, AddressStatus)>")]
pub struct FlashStatus {
    /// One bit for each failed address, the first address in the lowest bit.
    failed: u64,
    each: [AddressStatus; VECTOR_MAX],
}

impl Default for FlashStatus {
    fn default() -> FlashStatus {
        FlashStatus { failed: 0, each: [AddressStatus::Done; VECTOR_MAX] }
    }
}

/// The failed addresses by index.
impl From<FlashStatus> for Vec<(u8, AddressStatus)> {
    fn from(status: FlashStatus) -> Vec<(u8, AddressStatus)> {
        let all = (0..).zip(status.each);
        all.filter(|(_, status)| *status != AddressStatus::Done).collect()
    }
}

impl TryFrom<Vec<(u8, AddressStatus)>> for FlashStatus {
    type Error = &'static str;

    fn try_from(
        failed: Vec<(u8, AddressStatus)>,
    ) -> std::result::Result<FlashStatus, &'static str> {
        let mut status = FlashStatus::default();
        for (index, each) in failed {
            if usize::from(index) >= VECTOR_MAX {
                return Err("an address that no vector has");
            }
            status.set(index.into(), each);
        }
        Ok(status)
    }
}

impl FlashStatus {
    /// Set the status of address `index`.
    #[inline]
    pub fn set(&mut self, index: usize, status: AddressStatus) {
        self.each[index] = status;
        if status != AddressStatus::Done {
            self.failed |= 1 << index;
        }
    }

    /// Return the status of address `index`.
    #[must_use]
    pub fn address(&self, index: usize) -> AddressStatus {
        self.each[index]
    }

    /// Return a bit mask of the failed addresses.
    #[must_use]
    #[inline]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Return the status of the first failed address, or `Done`.
    #[must_use]
    #[inline]
    pub fn first_failure(&self) -> AddressStatus {
        match self.failed {
            0 => AddressStatus::Done,
            failed => self.each[failed.trailing_zeros() as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DFC: FlashGeometry = FlashGeometry {
        channels: 8,
        luns_per_channel: 4,
        planes: 2,
        blocks_per_plane: 1024,
        pages_per_block: 512,
        sectors_per_page: 4,
        sector_bytes: 4096,
        vector_max: 64,
    };

    #[test]
    fn dragonfire_card_has_512_gigabytes() {
        assert_eq!(DFC.capacity_bytes(), 512 << 30);
        assert_eq!((DFC.write_sectors(), DFC.write_bytes()), (8, 32 << 10));
    }

    #[test]
    fn out_of_range_address_reports_field_and_range() {
        let error = DFC.check(Ppa { lun: 4, ..Ppa::default() }).unwrap_err().to_string();
        assert!(error.contains("The lun") && error.contains("allowed: 0 to 3"), "{error}");
        assert!(DFC.check(Ppa { channel: 7, lun: 3, block: 1023, ..Ppa::default() }).is_ok());
    }

    #[test]
    fn vector_has_1_to_64_addresses() {
        let ppas = [Ppa::default(); 65];
        assert!(FlashIo::new(FlashOp::Read, &ppas[..64]).is_ok());
        let error = FlashIo::new(FlashOp::Read, &ppas).unwrap_err().to_string();
        assert!(error.contains("got: 65; allowed: 1 to 64"), "{error}");
        assert!(FlashIo::new(FlashOp::Read, &[]).is_err());
    }
}
