//! The wear that a device reports, and the bytes written to it so far.
//!
//! **Source**: NVM Express Base Specification 2.0, §5.16.1.3 (SMART / Health Information, log page
//! 02h) and Figure 194 (Get Log Page); `struct nvme_passthru_cmd` of Linux.
//! **Faithful**: `Percentage Used` as the device gives it: the vendor's estimate of the endurance
//! spent, 100 at the rated end of life and beyond it up to 255; `Data Units Written` in thousands of
//! 512 bytes, rounded up; `Available Spare` in percent; `Composite Temperature` in kelvins.
//! **Simplified**: NVMe only. Other devices report wear in vendor-specific places.
//! **Ambiguous**: the rounding of `Percentage Used`, which the specification does not define.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::guard::machine::disk_of;

const LOG_BYTES: usize = 512;
const SMART_LOG: u32 = 0x02;
const GET_LOG_PAGE: u8 = 0x02;
/// Selects the log of the controller, not of one namespace.
const ALL_NAMESPACES: u32 = u32::MAX;
/// `_IOWR('N', 0x41, struct nvme_passthru_cmd)`.
const NVME_IOCTL_ADMIN_CMD: u32 = 0xC048_4E41;
/// Thousands of 512 bytes.
const DATA_UNIT_BYTES: u128 = 512_000;

/// The wear values of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WearValues {
    /// The part of the rated endurance used [%]; may exceed 100.
    pub percentage_used: u8,
    /// Bytes written by the host over the life of the device; 0 if not reported.
    pub bytes_written: u64,
    /// The remaining spare blocks [%].
    pub available_spare: u8,
    /// The composite temperature [°C]; `None` if not reported.
    pub temperature_celsius: Option<i32>,
}

/// 0 °C.
const KELVIN: i32 = 273;

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

/// Return the wear of the device at `path`; for a file, or a folder, that of the disk below.
/// Nothing is written.
///
/// # Errors
/// The reason why it is unknown.
pub fn read_wear(path: &str) -> Result<WearValues, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    let is_block = metadata.file_type().is_block_device();
    let number = if is_block { metadata.rdev() } else { metadata.dev() };
    let (_, disk) = disk_of(number).map_err(|_| "it is not on a single disk".to_owned())?;
    let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.starts_with("nvme") {
        return Err(format!(
            "{name} is not an NVMe device; other devices have no standard wear attribute"
        ));
    }
    let node: PathBuf = ["/dev", &name.replace('!', "/")].iter().collect();
    let log = smart_log(&node).map_err(|error| format!("{}: {error}", node.display()))?;
    Ok(read_smart_log(&log))
}

/// Read the SMART / Health Information of an NVMe device.
fn smart_log(node: &Path) -> std::io::Result<[u8; LOG_BYTES]> {
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_CLOEXEC).open(node)?;
    let mut log = [0; LOG_BYTES];
    // The number of double words, minus one, in the upper half.
    let dwords = (LOG_BYTES / 4 - 1) as u32;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        nsid: ALL_NAMESPACES,
        addr: log.as_mut_ptr() as u64,
        data_len: LOG_BYTES as u32,
        cdw10: dwords << 16 | SMART_LOG,
        ..AdminCommand::default()
    };
    // SAFETY: an open descriptor, a command in the kernel's layout, and a buffer of `data_len`
    // bytes at `addr`, which outlives the call.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command) };
    match status {
        0 => Ok(log),
        status if status < 0 => Err(std::io::Error::last_os_error()),
        status => Err(std::io::Error::other(format!("NVMe status {status:#x}"))),
    }
}

/// Parse log page 02h.
fn read_smart_log(log: &[u8; LOG_BYTES]) -> WearValues {
    let units = u128::from_le_bytes(log[48..64].try_into().expect("16 bytes"));
    let bytes = units.saturating_mul(DATA_UNIT_BYTES);
    let kelvins = i32::from(u16::from_le_bytes([log[1], log[2]]));
    WearValues {
        percentage_used: log[5],
        bytes_written: u64::try_from(bytes).unwrap_or(u64::MAX),
        available_spare: log[3],
        temperature_celsius: (kelvins > 0).then_some(kelvins - KELVIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(parts: &[(usize, &[u8])]) -> [u8; LOG_BYTES] {
        let mut log = [0; LOG_BYTES];
        for (at, bytes) in parts {
            log[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        log
    }

    /// A page that a real SSD returned, published with the output of nvme-cli for it (google/
    /// ecclesia-machine-management, smart_log_page_test.cc): 41 °C, spare 98 %, threshold 10 %,
    /// used 0 %, units read 1,044, units written 15, reads 1,027,083, writes 1,905, 4 power cycles,
    /// 408 hours. All bytes not given here are zero.
    #[test]
    fn smart_log_of_a_real_device_matches_nvme_cli() {
        let real = log(&[
            (0x00, &[0x00, 0x3a, 0x01, 0x62, 0x0a, 0x00]),
            (0x20, &[0x14, 0x04]),
            (0x30, &[0x0f]),
            (0x40, &[0x0b, 0xac, 0x0f]),
            (0x50, &[0x71, 0x07]),
            (0x70, &[0x04]),
            (0x80, &[0x98, 0x01]),
            (0x90, &[0x01]),
        ]);
        let expected = WearValues {
            percentage_used: 0,
            bytes_written: 15 * 512_000,
            available_spare: 98,
            temperature_celsius: Some(41),
        };
        assert_eq!(read_smart_log(&real), expected);
    }

    /// smartctl 7.2 on a Samsung PM981a (linux-hardware.org, probe 543d2dfef7): "Data Units Written:
    /// 17,586,666 [9.00 TB]".
    #[test]
    fn data_units_are_thousands_of_512_bytes() {
        let units = 17_586_666u64.to_le_bytes();
        let wear = read_smart_log(&log(&[(5, &[3]), (48, &units)]));
        assert_eq!(wear.percentage_used, 3);
        assert_eq!(format!("{:.2} TB", wear.bytes_written as f64 / 1e12), "9.00 TB");
    }

    #[test]
    fn out_of_range_wear_values_are_clamped() {
        let wear = read_smart_log(&log(&[(5, &[255]), (48, &[0xff; 16])]));
        assert_eq!((wear.percentage_used, wear.bytes_written), (255, u64::MAX));
        assert_eq!(wear.temperature_celsius, None, "zero kelvins mean not reported");
    }

    #[test]
    fn missing_wear_value_has_a_reason() {
        assert!(
            read_wear("/nowhere/at/all")
                .expect_err("the device does not exist")
                .contains("No such file")
        );
        assert!(read_wear("/proc").expect_err("the file is not a disk").contains("disk"));
    }
}
