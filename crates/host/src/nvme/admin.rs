//! Admin commands that only read: Identify and Get Log Page.
//!
//! **Source**: NVM Express Base Specification 2.0, §5.16 (Get Log Page) and §5.17 (Identify);
//! `struct nvme_passthru_cmd` of Linux.
//! **Faithful**: the fields of both commands that select a structure or a page.
//! **Simplified**: a page is read in one command, from its begin.
//! **Ambiguous**: nothing.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::command::{Command, CommandSet};
use super::transport::{CommandError, Transport};

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
/// `_IO('N', 0x40)`: returns the number of the namespace.
const NVME_IOCTL_ID: u32 = 0x4E40;

/// Return the number of the namespace behind an open block or character device.
pub(crate) fn namespace_of(file: &File) -> std::io::Result<u32> {
    // SAFETY: an open descriptor; the call has no argument.
    let number = unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ID as _) };
    u32::try_from(number).map_err(|_| std::io::Error::last_os_error())
}

/// Read an Identify structure, selected by `cns` and namespace, in a command set.
pub(crate) fn identify(
    drive: &dyn Transport,
    cns: u8,
    namespace: u32,
    command_set: CommandSet,
    bytes: usize,
) -> Result<Vec<u8>, CommandError> {
    let command = Command {
        opcode: IDENTIFY,
        nsid: namespace,
        cdw10: cns.into(),
        cdw11: (command_set as u32) << 24,
        ..Command::default()
    };
    read(drive, command, bytes)
}

/// Read a log page. `specific` is the log specific identifier, such as an endurance group.
pub(crate) fn log_page(
    drive: &dyn Transport,
    page: u8,
    namespace: u32,
    specific: u16,
    bytes: usize,
) -> Result<Vec<u8>, CommandError> {
    read(drive, log_page_command(page, namespace, specific, bytes), bytes)
}

fn log_page_command(page: u8, namespace: u32, specific: u16, bytes: usize) -> Command {
    // The number of double words minus one, in two halves.
    let dwords = (bytes / 4 - 1) as u32;
    Command {
        opcode: GET_LOG_PAGE,
        nsid: namespace,
        cdw10: (dwords & 0xFFFF) << 16 | u32::from(page),
        cdw11: u32::from(specific) << 16 | dwords >> 16,
        ..Command::default()
    }
}

fn read(drive: &dyn Transport, command: Command, bytes: usize) -> Result<Vec<u8>, CommandError> {
    let mut data = vec![0; bytes];
    drive.admin(command, &mut data)?;
    Ok(data)
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
}
