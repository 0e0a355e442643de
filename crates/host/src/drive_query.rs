//! Questions to the drive below a file or block device: its identity, and its counters as the drive
//! returns them. Nothing is written. `python/uflip/device/counters.toml` describes the content.
//!
//! **Source** of the ATA commands, which go through SCSI: ATA/ATAPI Command Set 3 (ACS-3) §7.12 and
//! §7.48; SCSI / ATA Translation 4 (SAT-4) §12.2.3 (ATA PASS-THROUGH (16)); `struct sg_io_hdr` of Linux.
//! **Faithful**: both commands transfer one block of 512 bytes as PIO data-in.
//! **Simplified**: no logs of the General Purpose Logging feature set.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::nvme::{self, Command, CommandSet, KernelTransport};
use crate::watch::disk_of;

const IDENTIFY_BYTES: usize = 4096;
const IDENTIFY_NAMESPACE: u8 = 0;
const IDENTIFY_CONTROLLER: u8 = 1;
/// Selects the log of the controller, not of one namespace.
const ALL_NAMESPACES: u32 = u32::MAX;
/// The largest page that is read in one command; drives split none that is shorter.
const LOG_BYTES_MAX: usize = 4096;

/// A question to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveQuery {
    /// Identify Controller of NVMe.
    NvmeController,
    /// Identify Namespace of NVMe.
    NvmeNamespace,
    /// A log page of NVMe.
    NvmeLog {
        /// The identifier of the page.
        page: u8,
        /// The log specific identifier: an endurance group, or 0.
        specific: u16,
        /// The number of bytes to read, from the begin of the page.
        bytes: usize,
    },
    /// IDENTIFY DEVICE of ATA.
    AtaIdentify,
    /// SMART READ DATA of ATA.
    AtaSmart,
}

/// Return the drive's answer to a query. `path` is a block device, a file or a folder.
///
/// # Errors
/// The reason why the drive does not answer.
pub fn query_drive(path: &str, query: DriveQuery) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    let is_block = metadata.file_type().is_block_device();
    let number = if is_block { metadata.rdev() } else { metadata.dev() };
    let disk = disk_of(number).map_err(|_| "it is not on a single disk".to_owned())?;
    let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let node: PathBuf = ["/dev", &name.replace('!', "/")].iter().collect();
    ask(&node, query).map_err(|error| describe(&node, &error))
}

fn ask(node: &Path, query: DriveQuery) -> std::io::Result<Vec<u8>> {
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(node)?;
    let (command, bytes, drive) = match query {
        DriveQuery::AtaIdentify => return read_ata(&file, AtaCommand::Identify),
        DriveQuery::AtaSmart => return read_ata(&file, AtaCommand::SmartReadData),
        DriveQuery::NvmeController => {
            let command = Command::identify(IDENTIFY_CONTROLLER, 0, CommandSet::Nvm);
            (command, IDENTIFY_BYTES, KernelTransport::new(file))
        }
        DriveQuery::NvmeNamespace => {
            let drive = KernelTransport::new(file);
            let id = drive.namespace_id()?;
            (Command::identify(IDENTIFY_NAMESPACE, id, CommandSet::Nvm), IDENTIFY_BYTES, drive)
        }
        DriveQuery::NvmeLog { page, specific, bytes } => {
            let bytes = bytes.clamp(4, LOG_BYTES_MAX) / 4 * 4;
            let command = Command::log_page(page, ALL_NAMESPACES, specific, bytes);
            (command, bytes, KernelTransport::new(file))
        }
    };
    Ok(nvme::read(&drive, command, bytes)?)
}

fn describe(node: &Path, error: &std::io::Error) -> String {
    let node = node.display();
    match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("{node}: {error}; reading the counters of a drive needs root")
        }
        _ => format!("{node}: {error}"),
    }
}

const ATA_BLOCK_BYTES: usize = 512;
const SG_IO: u32 = 0x2285;
const SG_DXFER_FROM_DEV: libc::c_int = -3;
const ATA_TIMEOUT_MS: u32 = 10_000;
const ATA_PASS_THROUGH_16: u8 = 0x85;
const PIO_DATA_IN: u8 = 4 << 1;
/// The length is in the sector count, in blocks of 512 bytes, from the device.
const LENGTH_IN_COUNT: u8 = 0x0E;

/// An ATA command that returns one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtaCommand {
    Identify,
    SmartReadData,
}

/// `struct sg_io_hdr` of `scsi/sg.h`.
#[repr(C)]
struct SgIoHeader {
    interface_id: libc::c_int,
    dxfer_direction: libc::c_int,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut u8,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: libc::c_int,
    usr_ptr: *mut u8,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: libc::c_int,
    duration: u32,
    info: u32,
}

/// Execute an ATA command and return its block.
fn read_ata(file: &File, command: AtaCommand) -> std::io::Result<Vec<u8>> {
    let mut data = vec![0; ATA_BLOCK_BYTES];
    let mut sense = [0u8; 32];
    let block = ata_descriptor(command);
    let mut header = SgIoHeader {
        interface_id: 'S' as libc::c_int,
        dxfer_direction: SG_DXFER_FROM_DEV,
        cmd_len: block.len() as u8,
        mx_sb_len: sense.len() as u8,
        dxfer_len: ATA_BLOCK_BYTES as u32,
        dxferp: data.as_mut_ptr(),
        cmdp: block.as_ptr(),
        sbp: sense.as_mut_ptr(),
        timeout: ATA_TIMEOUT_MS,
        // SAFETY: integers and pointers, for which all zeros is a valid value.
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: an open descriptor, a header in the kernel's layout; command, data and sense buffers
    // outlive the call and have the given lengths.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO as _, &raw mut header) };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    if header.status != 0 || header.host_status != 0 {
        return Err(std::io::Error::other(format!(
            "SCSI status {:#04x}, host status {:#04x}",
            header.status, header.host_status
        )));
    }
    Ok(data)
}

/// Return the SCSI command that contains an ATA command.
fn ata_descriptor(command: AtaCommand) -> [u8; 16] {
    let mut block = [0; 16];
    block[..3].copy_from_slice(&[ATA_PASS_THROUGH_16, PIO_DATA_IN, LENGTH_IN_COUNT]);
    block[6] = 1;
    match command {
        AtaCommand::Identify => block[14] = 0xEC,
        AtaCommand::SmartReadData => {
            block[4] = 0xD0;
            // The signature of SMART.
            (block[10], block[12]) = (0x4F, 0xC2);
            block[14] = 0xB0;
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_answer_has_a_reason() {
        let smart = DriveQuery::NvmeLog { page: 2, specific: 0, bytes: 512 };
        let missing = query_drive("/nowhere/at/all", smart).expect_err("there is no device");
        assert!(missing.contains("No such file"));
        assert!(query_drive("/proc", smart).expect_err("no disk").contains("disk"));
    }

    #[test]
    fn refused_permission_names_what_is_needed() {
        let refused = std::io::Error::from_raw_os_error(libc::EACCES);
        let text = describe(Path::new("/dev/nvme0n1"), &refused);
        assert!(text.starts_with("/dev/nvme0n1: Permission denied"), "{text}");
        assert!(text.ends_with("needs root"), "{text}");
    }

    /// The command of the manual of sg3_utils: `sg_raw -r 512 /dev/sda 85 08 0e 00 d0 00 01 …`.
    #[test]
    fn smart_read_data_matches_sg_raw() {
        let expected = [0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];
        assert_eq!(ata_descriptor(AtaCommand::SmartReadData), expected);
    }

    /// `sg_sat_identify -v` of sg3_utils prints this command.
    #[test]
    fn identify_matches_sg_sat_identify() {
        let expected = [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0];
        assert_eq!(ata_descriptor(AtaCommand::Identify), expected);
    }

    #[test]
    fn header_has_the_size_of_the_kernel() {
        // `sizeof(sg_io_hdr_t)` on 64-bit Linux.
        assert_eq!(size_of::<SgIoHeader>(), 88);
    }
}
