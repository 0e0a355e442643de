//! Admin commands of NVMe that only read: Identify and Get Log Page.
//!
//! **Source**: NVM Express Base Specification 2.0, §5.16 (Get Log Page) and §5.17 (Identify);
//! `struct nvme_passthru_cmd` of Linux.
//! **Faithful**: the fields of both commands that select a structure or a page.
//! **Simplified**: a page is read in one command, from its begin.

use std::fs::File;
use std::os::fd::AsRawFd;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
/// `_IO('N', 0x40)`: returns the number of the namespace.
const NVME_IOCTL_ID: u32 = 0x4E40;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const NVME_IOCTL_ADMIN_CMD: u32 = 0xC048_4E41;

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// The ioctl number contains the size.
const _: () = assert!(size_of::<AdminCommand>() as u32 == (NVME_IOCTL_ADMIN_CMD >> 16) & 0x3FFF);

/// Return the number of the namespace behind an open block or character device.
pub(crate) fn namespace_of(file: &File) -> std::io::Result<u32> {
    // SAFETY: an open descriptor; the call has no argument.
    let number = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID as _) };
    u32::try_from(number).map_err(|_| std::io::Error::last_os_error())
}

/// Read an Identify structure, selected by `cns` and namespace, in a command set.
pub(crate) fn identify(
    file: &File,
    cns: u8,
    namespace: u32,
    command_set: u8,
    bytes: usize,
) -> std::io::Result<Vec<u8>> {
    let command = AdminCommand {
        opcode: IDENTIFY,
        nsid: namespace,
        cdw10: cns.into(),
        cdw11: u32::from(command_set) << 24,
        ..AdminCommand::default()
    };
    read(file, command, bytes)
}

/// Read a log page. `specific` is the log specific identifier, such as an endurance group.
pub(crate) fn log_page(
    file: &File,
    page: u8,
    namespace: u32,
    specific: u16,
    bytes: usize,
) -> std::io::Result<Vec<u8>> {
    read(file, log_page_command(page, namespace, specific, bytes), bytes)
}

fn log_page_command(page: u8, namespace: u32, specific: u16, bytes: usize) -> AdminCommand {
    // The number of double words minus one, in two halves.
    let dwords = (bytes / 4 - 1) as u32;
    AdminCommand {
        opcode: GET_LOG_PAGE,
        nsid: namespace,
        cdw10: (dwords & 0xFFFF) << 16 | u32::from(page),
        cdw11: u32::from(specific) << 16 | dwords >> 16,
        ..AdminCommand::default()
    }
}

fn read(file: &File, mut command: AdminCommand, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut data = vec![0; bytes];
    command.addr = data.as_mut_ptr() as u64;
    command.data_len = bytes as u32;
    // SAFETY: an open descriptor, a command in the kernel's layout, and a buffer of `data_len`
    // bytes at `addr`, which outlives the call.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command) };
    match status {
        0 => Ok(data),
        status if status < 0 => Err(std::io::Error::last_os_error()),
        status => Err(std::io::Error::other(format_status(status as u32))),
    }
}

/// Return an NVMe status in words; the names are those of the specification.
pub(crate) fn format_status(status: u32) -> String {
    let name = match status & 0x7FF {
        0x001 => "Invalid Command Opcode",
        0x002 => "Invalid Field in Command",
        0x00B => "Invalid Namespace or Format",
        0x029 => "FDP Disabled",
        0x109 => "Invalid Log Page",
        _ => return format!("NVMe status {:#05x}", status & 0x7FF),
    };
    format!("NVMe status {:#05x}: {name}", status & 0x7FF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nvme-cli prints these double words for `nvme get-log /dev/nvme0 -i 0xc0 -l 512 -v`, and for
    /// `nvme fdp stats /dev/nvme0 -e 1 -v` (64 bytes).
    #[test]
    fn log_page_commands_match_nvme_cli() {
        let ocp = log_page_command(0xC0, u32::MAX, 0, 512);
        assert_eq!((ocp.opcode, ocp.nsid, ocp.cdw10, ocp.cdw11), (2, u32::MAX, 0x007F_00C0, 0));
        let placement = log_page_command(0x22, 0, 1, 64);
        assert_eq!((placement.cdw10, placement.cdw11), (0x000F_0022, 0x0001_0000));
    }

    /// NUMDL has 16 bits: a page of 512 KiB needs NUMDU as well (Base Specification, Figure 196).
    #[test]
    fn long_pages_use_both_halves_of_the_length() {
        let long = log_page_command(0x0D, 0, 0, 512 << 10);
        assert_eq!((long.cdw10, long.cdw11), (0xFFFF_000D, 0x0001));
    }

    #[test]
    fn status_has_the_name_of_the_specification() {
        assert_eq!(format_status(0x4109), "NVMe status 0x109: Invalid Log Page");
        assert_eq!(format_status(0x1C0), "NVMe status 0x1c0");
    }
}
