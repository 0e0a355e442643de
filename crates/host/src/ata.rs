//! ATA commands that only read, through SCSI: IDENTIFY DEVICE and SMART READ DATA.
//!
//! **Source**: ATA/ATAPI Command Set 3 (ACS-3) §7.12 and §7.48; SCSI / ATA Translation 4 (SAT-4)
//! §12.2.3 (ATA PASS-THROUGH (16)); `struct sg_io_hdr` of Linux.
//! **Faithful**: both commands transfer one block of 512 bytes as PIO data-in.
//! **Simplified**: no logs of the General Purpose Logging feature set.

use std::fs::File;
use std::os::fd::AsRawFd;

pub(crate) const BLOCK_BYTES: usize = 512;
const SG_IO: u32 = 0x2285;
const SG_DXFER_FROM_DEV: libc::c_int = -3;
const TIMEOUT_MS: u32 = 10_000;
const ATA_PASS_THROUGH_16: u8 = 0x85;
const PIO_DATA_IN: u8 = 4 << 1;
/// The length is in the sector count, in blocks of 512 bytes, from the device.
const LENGTH_IN_COUNT: u8 = 0x0E;

/// A command that returns one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtaCommand {
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

/// Execute a command and return its block.
pub(crate) fn read(file: &File, command: AtaCommand) -> std::io::Result<Vec<u8>> {
    let mut data = vec![0; BLOCK_BYTES];
    let mut sense = [0u8; 32];
    let block = descriptor(command);
    let mut header = SgIoHeader {
        interface_id: 'S' as libc::c_int,
        dxfer_direction: SG_DXFER_FROM_DEV,
        cmd_len: block.len() as u8,
        mx_sb_len: sense.len() as u8,
        iovec_count: 0,
        dxfer_len: BLOCK_BYTES as u32,
        dxferp: data.as_mut_ptr(),
        cmdp: block.as_ptr(),
        sbp: sense.as_mut_ptr(),
        timeout: TIMEOUT_MS,
        flags: 0,
        pack_id: 0,
        usr_ptr: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
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
fn descriptor(command: AtaCommand) -> [u8; 16] {
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

    /// The command of the manual of sg3_utils: `sg_raw -r 512 /dev/sda 85 08 0e 00 d0 00 01 …`.
    #[test]
    fn smart_read_data_matches_sg_raw() {
        let expected = [0x85, 0x08, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0];
        assert_eq!(descriptor(AtaCommand::SmartReadData), expected);
    }

    /// `sg_sat_identify -v` of sg3_utils prints this command.
    #[test]
    fn identify_matches_sg_sat_identify() {
        let expected = [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0];
        assert_eq!(descriptor(AtaCommand::Identify), expected);
    }

    #[test]
    fn header_has_the_size_of_the_kernel() {
        // `sizeof(sg_io_hdr_t)` on 64-bit Linux.
        assert_eq!(size_of::<SgIoHeader>(), 88);
    }
}
