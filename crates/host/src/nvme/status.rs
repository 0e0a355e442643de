//! The status of a command: its name in the specification, and what a user can do about it.

use uflip_core::{Error, Io};

use crate::zoned::{TOO_MANY_ACTIVE, TOO_MANY_OPEN};

/// The status code and its type; the bits above are hints for retries.
const CODE: u32 = 0x7FF;

/// Name and number of each status, by the Base Specification 2.1 (generic: 0x0.., command specific:
/// 0x1.., media: 0x2.., path: 0x3..), the NVM and the Zoned Namespace Command Set.
const NAMES: &[(u32, &str)] = &[
    (0x001, "Invalid Command Opcode"),
    (0x002, "Invalid Field in Command"),
    (0x003, "Command ID Conflict"),
    (0x004, "Data Transfer Error"),
    (0x005, "Commands Aborted due to Power Loss Notification"),
    (0x006, "Internal Error"),
    (0x007, "Command Abort Requested"),
    (0x008, "Command Aborted due to SQ Deletion"),
    (0x00B, "Invalid Namespace or Format"),
    (0x00C, "Command Sequence Error"),
    (0x015, "Operation Denied"),
    (0x01D, "Sanitize In Progress"),
    (0x020, "Namespace is Write Protected"),
    (0x021, "Command Interrupted"),
    (0x022, "Transient Transport Error"),
    (0x029, "FDP Disabled"),
    (0x02A, "Invalid Placement Handle List"),
    (0x080, "LBA Out of Range"),
    (0x081, "Capacity Exceeded"),
    (0x082, "Namespace Not Ready"),
    (0x083, "Reservation Conflict"),
    (0x084, "Format In Progress"),
    (0x109, "Invalid Log Page"),
    (0x10A, "Invalid Format"),
    (0x180, "Conflicting Attributes"),
    (0x181, "Invalid Protection Information"),
    (0x182, "Attempted Write to Read Only Range"),
    (0x183, "Command Size Limits Exceeded"),
    (0x1B8, "Zone Boundary Error"),
    (0x1B9, "Zone Is Full"),
    (0x1BA, "Zone Is Read Only"),
    (0x1BB, "Zone Is Offline"),
    (0x1BC, "Zone Invalid Write"),
    (0x1BD, "Too Many Active Zones"),
    (0x1BE, "Too Many Open Zones"),
    (0x1BF, "Invalid Zone State Transition"),
    (0x280, "Write Fault"),
    (0x281, "Unrecovered Read Error"),
    (0x286, "Access Denied"),
    (0x287, "Deallocated or Unwritten Logical Block"),
    (0x302, "Asymmetric Access Inaccessible"),
    (0x303, "Asymmetric Access Transition"),
    (0x370, "Host Pathing Error"),
    (0x371, "Command Aborted By Host"),
];

/// Return an NVMe status in words; the names are those of the specification.
pub(crate) fn format_status(status: u32) -> String {
    let code = status & CODE;
    match NAMES.iter().find(|(number, _)| *number == code) {
        Some((_, name)) => format!("NVMe status {code:#05x}: {name}"),
        None => format!("NVMe status {code:#05x}"),
    }
}

/// Return what a user can do about a status.
fn action_for(status: u32) -> &'static str {
    match status & CODE {
        0x001 | 0x002 => {
            "the drive does not support the command, or not on this namespace: see `uflip info DEVICE`"
        }
        0x005 | 0x007 | 0x008 | 0x021 | 0x022 | 0x370 | 0x371 => {
            "the controller was reset or the path lost: see the kernel's log, and repeat the run"
        }
        0x020 | 0x182 => "remove the write protection, or measure reads only",
        0x029 | 0x02A => "see the placement handles in `uflip info DEVICE`",
        0x01D | 0x082 | 0x084 => "wait until the drive is ready, and repeat the command",
        0x080 => "the namespace is smaller than it was when it was opened",
        0x081 => {
            "the drive has no more unallocated capacity: deallocate data, or use a smaller part"
        }
        0x083 | 0x286 => "another host has reserved or locked the namespace: release it",
        0x1BD => TOO_MANY_ACTIVE,
        0x1BE => TOO_MANY_OPEN,
        0x1B8..=0x1BF => "the state of the zone does not allow this: see `uflip zones DEVICE`",
        _ => "the drive failed: see its SMART log (`uflip info DEVICE`) and the kernel's log",
    }
}

/// Return the error of an I/O whose command ended with `number`: a status, or a negative error
/// number of the system.
pub(crate) fn io_error(url: &str, io: &Io, number: i32) -> Error {
    let problem = format!("{io} failed");
    if number >= 0 {
        let status = number as u32;
        return Error::device(problem)
            .at(url)
            .got(format_status(status))
            .action(action_for(status));
    }
    let error = std::io::Error::from_raw_os_error(-number);
    Error::os(problem, url, &error).action(os_action(&error))
}

/// Return what a user can do about an error of the system.
pub(crate) fn os_action(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "passthrough needs CAP_SYS_ADMIN: run as root, or measure the block device"
        }
        Some(libc::EINTR | libc::ENODEV | libc::ENXIO) => {
            "the controller was reset or removed: see the kernel's log, and repeat the run"
        }
        Some(libc::EINVAL) => {
            "the kernel does not accept a command of this size or kind: use a smaller --io-size, or \
             measure the block device"
        }
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS) => {
            "the kernel has no io_uring passthrough (Linux 5.19): measure the block device"
        }
        _ => "see the message of the system above",
    }
}

#[cfg(test)]
mod tests {
    use uflip_core::{Bytes, Mode};

    use super::*;

    #[test]
    fn status_has_the_name_of_the_specification() {
        assert_eq!(format_status(0x4109), "NVMe status 0x109: Invalid Log Page");
        assert_eq!(format_status(0x41BD), "NVMe status 0x1bd: Too Many Active Zones");
        assert_eq!(format_status(0x1C0), "NVMe status 0x1c0");
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn every_failure_has_a_cause_and_an_action() {
        let io = Io { offset: Bytes(4096), size: Bytes(4096), mode: Mode::Append, stream: 0 };
        for (number, cause, action) in [
            (0x41BC, "Zone Invalid Write", "uflip zones"),
            (0x1BE, "Too Many Open Zones", "max_open_zones"),
            (-libc::EACCES, "Permission denied", "CAP_SYS_ADMIN"),
            (-libc::EINTR, "Interrupted", "controller was reset"),
            (0x371, "Command Aborted By Host", "controller was reset"),
        ] {
            let text = io_error("nvme:/dev/nvme0n1", &io, number).to_string();
            assert!(text.contains("An append of 4 KiB at byte 4096 failed"), "{text}");
            assert!(text.contains(cause) && text.contains(action), "{text}");
        }
    }
}
