//! The encoding of commands, in the layout in which Linux takes them.

use uflip_core::{Io, Mode};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;
const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
const ZONE_MANAGEMENT_SEND: u8 = 0x79;
const ZONE_MANAGEMENT_RECEIVE: u8 = 0x7A;
const ZONE_APPEND: u8 = 0x7D;
/// Admin commands (Base Specification 2.0, §5.16 and §5.17).
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;

/// A page of memory: the unit of the kernel's segments, of transfer limits and of pieces.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bit 30 of double word 12: the data is durable when the command completes.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// The type of directive in bits 23:20 of double word 12: data placement.
const DATA_PLACEMENT: u32 = 2 << 20;
/// Bit 2 of double word 11 of dataset management: deallocate.
const DEALLOCATE: u32 = 1 << 2;
/// The operation of I/O management receive that returns the placement handles.
const HANDLE_STATUS: u32 = 1;
/// The largest number of blocks in one command: NLB has 16 bits and counts from zero.
pub(crate) const BLOCKS_MAX: u64 = 1 << 16;
/// The size of a command in a submission entry of io_uring [bytes].
const ENTRY_BYTES: usize = 80;

/// The command set of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandSet {
    /// Blocks.
    Nvm = 0,
    /// Zones.
    Zoned = 2,
}

/// `struct nvme_passthru_cmd` and `struct nvme_uring_cmd` of `linux/nvme_ioctl.h`, which differ only
/// in their last field.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) opcode: u8,
    pub(crate) flags: u8,
    pub(crate) rsvd1: u16,
    pub(crate) nsid: u32,
    pub(crate) cdw2: u32,
    pub(crate) cdw3: u32,
    pub(crate) metadata: u64,
    pub(crate) addr: u64,
    pub(crate) metadata_len: u32,
    pub(crate) data_len: u32,
    pub(crate) cdw10: u32,
    pub(crate) cdw11: u32,
    pub(crate) cdw12: u32,
    pub(crate) cdw13: u32,
    pub(crate) cdw14: u32,
    pub(crate) cdw15: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) result: u32,
}

pub(crate) const COMMAND_BYTES: usize = size_of::<Command>();
const _: () = assert!(COMMAND_BYTES == 72, "the size of the kernel's structure");

/// A range of dataset management.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct DatasetRange {
    attributes: u32,
    blocks: u32,
    start: u64,
}

impl DatasetRange {
    pub(crate) fn new(start: u64, blocks: u64) -> DatasetRange {
        let blocks = u32::try_from(blocks).expect("the caller limits the range");
        DatasetRange { attributes: 0, blocks, start }
    }
}

/// The blocks of a command, and the placement of its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    /// The first block; for a zone append, the first one of the zone.
    pub(crate) start: u64,
    pub(crate) blocks: u64,
    /// Where the data is in memory, and its size.
    pub(crate) memory: u64,
    pub(crate) bytes: u64,
    pub(crate) durable: bool,
    /// The identifier of a placement handle.
    pub(crate) placement: Option<u16>,
}

impl Command {
    /// Return the command in a submission entry of io_uring.
    pub(crate) fn entry(&self) -> [u8; ENTRY_BYTES] {
        let mut entry = [0; ENTRY_BYTES];
        // SAFETY: the structure has integers only, without padding: 72 bytes, as asserted above.
        let bytes: [u8; COMMAND_BYTES] = unsafe { std::mem::transmute(*self) };
        entry[..COMMAND_BYTES].copy_from_slice(&bytes);
        entry
    }

    /// Return a read, write or zone append.
    pub(crate) fn transfer(nsid: u32, mode: Mode, transfer: &Transfer) -> Command {
        let opcode = match mode {
            Mode::Read => READ,
            Mode::Write => WRITE,
            Mode::Append => ZONE_APPEND,
            _ => unreachable!("only these move data"),
        };
        debug_assert!((1..=BLOCKS_MAX).contains(&transfer.blocks), "the caller limits the size");
        let mut command = Command::at(opcode, nsid, transfer.start);
        command.cdw12 = (transfer.blocks - 1) as u32;
        if mode.is_write() && transfer.durable {
            command.cdw12 |= FORCE_UNIT_ACCESS;
        }
        if let (true, Some(placement)) = (mode.is_write(), transfer.placement) {
            command.cdw12 |= DATA_PLACEMENT;
            command.cdw13 = u32::from(placement) << 16;
        }
        (command.addr, command.data_len) = (transfer.memory, transfer.bytes as u32);
        command
    }

    /// Return a command that makes all earlier writes durable.
    pub(crate) fn flush(nsid: u32) -> Command {
        Command { opcode: FLUSH, nsid, ..Command::default() }
    }

    /// Return a command that deallocates the range at `range`, which outlives it.
    pub(crate) fn deallocate(nsid: u32, range: &DatasetRange) -> Command {
        Command {
            opcode: DATASET_MANAGEMENT,
            nsid,
            cdw10: 0, // one range
            cdw11: DEALLOCATE,
            addr: std::ptr::from_ref(range) as u64,
            data_len: size_of::<DatasetRange>() as u32,
            ..Command::default()
        }
    }

    /// Return a command for the zone that begins at `start`.
    pub(crate) fn manage_zone(nsid: u32, mode: Mode, start: u64) -> Command {
        let action = match mode {
            Mode::Close => 1,
            Mode::Finish => 2,
            Mode::Open => 3,
            Mode::Reset => 4,
            _ => unreachable!("only these manage zones"),
        };
        Command { cdw13: action, ..Command::at(ZONE_MANAGEMENT_SEND, nsid, start) }
    }

    /// Return a command that reads the states of the zones from block `start` on.
    pub(crate) fn report_zones(nsid: u32, start: u64, bytes: usize) -> Command {
        let cdw12 = (bytes / 4 - 1) as u32;
        Command { cdw12, ..Command::at(ZONE_MANAGEMENT_RECEIVE, nsid, start) }
    }

    /// Return a command that reads the placement handles of a namespace.
    pub(crate) fn placement_handles(nsid: u32, bytes: usize) -> Command {
        let cdw11 = (bytes / 4 - 1) as u32;
        let opcode = IO_MANAGEMENT_RECEIVE;
        Command { opcode, nsid, cdw10: HANDLE_STATUS, cdw11, ..Command::default() }
    }

    /// Return an admin command that reads an Identify structure, selected by `cns` and namespace, in
    /// a command set.
    pub(crate) fn identify(cns: u8, nsid: u32, command_set: CommandSet) -> Command {
        let (cdw10, cdw11) = (cns.into(), (command_set as u32) << 24);
        Command { opcode: IDENTIFY, nsid, cdw10, cdw11, ..Command::default() }
    }

    /// Return an admin command that reads a log page from its begin. `specific` is the log specific
    /// identifier, such as an endurance group.
    pub(crate) fn log_page(page: u8, nsid: u32, specific: u16, bytes: usize) -> Command {
        // The number of double words minus one, in two halves.
        let dwords = (bytes / 4 - 1) as u32;
        let cdw10 = (dwords & 0xFFFF) << 16 | u32::from(page);
        let cdw11 = u32::from(specific) << 16 | dwords >> 16;
        Command { opcode: GET_LOG_PAGE, nsid, cdw10, cdw11, ..Command::default() }
    }

    fn at(opcode: u8, nsid: u32, start: u64) -> Command {
        let (cdw10, cdw11) = (start as u32, (start >> 32) as u32);
        Command { opcode, nsid, cdw10, cdw11, ..Command::default() }
    }
}

/// Return whether the pieces of an I/O must reach the drive one after another.
pub(crate) fn is_ordered(io: &Io, zoned: bool) -> bool {
    io.mode == Mode::Trim || (zoned && io.mode == Mode::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(start: u64, blocks: u64) -> Transfer {
        let memory = 0x7000_1122_3344_5000;
        Transfer { start, blocks, memory, bytes: blocks * 512, durable: false, placement: None }
    }

    /// NVM Command Set 1.1, Write: NLB counts from zero, FUA is bit 30 and the type of directive
    /// bits 23:20 of double word 12, the directive bits 31:16 of double word 13.
    #[test]
    fn write_has_the_double_words_of_the_specification() {
        let write = Transfer { durable: true, placement: Some(3), ..transfer(0x1_2345_6789, 8) };
        let command = Command::transfer(1, Mode::Write, &write);
        assert_eq!((command.opcode, command.nsid), (0x01, 1));
        assert_eq!((command.cdw10, command.cdw11), (0x2345_6789, 0x1));
        assert_eq!(command.cdw12, 0x4020_0007);
        assert_eq!(command.cdw13, 0x0003_0000);
        assert_eq!(command.data_len, 4096);
    }

    #[test]
    fn read_has_no_flags_of_writes() {
        let read = Transfer { durable: true, placement: Some(3), ..transfer(8, 65_536) };
        let command = Command::transfer(2, Mode::Read, &read);
        assert_eq!((command.opcode, command.cdw12, command.cdw13), (0x02, 0xFFFF, 0));
    }

    /// Zoned Namespace Command Set 1.2: figures of Zone Management Send (Send Action), Zone
    /// Management Receive and Zone Append.
    #[test]
    fn zone_commands_have_the_actions_of_the_specification() {
        for (mode, action) in
            [(Mode::Close, 1), (Mode::Finish, 2), (Mode::Open, 3), (Mode::Reset, 4)]
        {
            let command = Command::manage_zone(1, mode, 0x5_0000_0000);
            let dwords = (command.cdw10, command.cdw11, command.cdw12, command.cdw13);
            assert_eq!((command.opcode, dwords), (0x79, (0, 5, 0, action)));
        }
        let report = Command::report_zones(1, 4096, 64 << 10);
        assert_eq!(
            (report.opcode, report.cdw10, report.cdw12, report.cdw13),
            (0x7A, 4096, 16_383, 0)
        );
        let append = Command::transfer(1, Mode::Append, &transfer(4096, 1));
        assert_eq!((append.opcode, append.cdw10, append.cdw12), (0x7D, 4096, 0));
    }

    #[test]
    fn other_commands_have_the_fields_of_the_specification() {
        let flush = Command::flush(7);
        assert_eq!((flush.opcode, flush.nsid, flush.data_len), (0, 7, 0));
        let range = DatasetRange::new(0x1_0000_0001, 256);
        let command = Command::deallocate(1, &range);
        assert_eq!((command.opcode, command.cdw10, command.cdw11, command.data_len), (9, 0, 4, 16));
        let handles = Command::placement_handles(1, 4096);
        assert_eq!((handles.opcode, handles.cdw10, handles.cdw11), (0x12, 1, 1023));
        // SAFETY: two integers of 32 bits and one of 64.
        let bytes: [u8; 16] = unsafe { std::mem::transmute(range) };
        assert_eq!(bytes, [0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    }

    /// The offsets are those of `struct nvme_uring_cmd`, which a C compiler derives from the
    /// kernel's header.
    #[test]
    fn entry_has_the_layout_of_the_kernel() {
        let source = r#"
            #include <linux/nvme_ioctl.h>
            #include <stddef.h>
            #include <stdio.h>
            int main(void) {
                printf("%zu %zu %zu %zu %zu %zu %zu %#x %#x %#x %#x",
                       sizeof(struct nvme_uring_cmd), offsetof(struct nvme_uring_cmd, nsid),
                       offsetof(struct nvme_uring_cmd, addr),
                       offsetof(struct nvme_uring_cmd, data_len),
                       offsetof(struct nvme_uring_cmd, cdw10),
                       offsetof(struct nvme_uring_cmd, cdw15),
                       offsetof(struct nvme_passthru_cmd, result),
                       (unsigned)NVME_URING_CMD_IO, (unsigned)NVME_IOCTL_ADMIN_CMD,
                       (unsigned)NVME_IOCTL_IO_CMD, (unsigned)NVME_IOCTL_ID);
            }"#;
        let folder = tempfile::tempdir().unwrap();
        let (code, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
        std::fs::write(&code, source).unwrap();
        let compiled = std::process::Command::new("cc").arg(&code).arg("-o").arg(&program).output();
        if !compiled.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no C compiler, or no linux/nvme_ioctl.h with nvme_uring_cmd");
            return;
        }
        let output = std::process::Command::new(&program).output().unwrap();
        let expected = "72 4 24 36 40 60 68 0xc0484e80 0xc0484e41 0xc0484e43 0x4e40";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let command = Command {
            opcode: 0x7D,
            nsid: 0x0102_0304,
            addr: 0x1112_1314_1516_1718,
            data_len: 0x2122_2324,
            cdw10: 0x3132_3334,
            cdw15: 0x4142_4344,
            ..Command::default()
        };
        let entry = command.entry();
        assert_eq!(entry[0], 0x7D);
        assert_eq!(entry[4..8], [4, 3, 2, 1]);
        assert_eq!(entry[24..32], [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
        assert_eq!(entry[36..44], [0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31]);
        assert_eq!(entry[60..64], [0x44, 0x43, 0x42, 0x41]);
        assert_eq!(entry[64..], [0; 16]);
        assert_eq!(super::super::transport::NVME_URING_CMD_IO, 0xC048_4E80);
    }

    /// nvme-cli prints these double words for `nvme get-log /dev/nvme0 -i 0xc0 -l 512 -v`, and for
    /// `nvme fdp stats /dev/nvme0 -e 1 -v` (64 bytes).
    #[test]
    fn log_page_commands_match_nvme_cli() {
        let ocp = Command::log_page(0xC0, u32::MAX, 0, 512);
        assert_eq!((ocp.opcode, ocp.nsid, ocp.cdw10, ocp.cdw11), (2, u32::MAX, 0x007F_00C0, 0));
        let placement = Command::log_page(0x22, 0, 1, 64);
        assert_eq!((placement.cdw10, placement.cdw11), (0x000F_0022, 0x0001_0000));
    }

    /// NUMDL has 16 bits: a page of 512 KiB needs NUMDU as well (Base Specification, Figure 196).
    #[test]
    fn long_pages_use_both_halves_of_the_length() {
        let long = Command::log_page(0x0D, 0, 0, 512 << 10);
        assert_eq!((long.cdw10, long.cdw11), (0xFFFF_000D, 0x0001));
    }
}
