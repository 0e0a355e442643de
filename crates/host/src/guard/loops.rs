//! The backing of a loop device: a file, or another block device.
//!
//! sysfs gives a path, as it was at the time of attachment, relative to the root of the attaching
//! process. The device itself gives the inode, which is reliable. Both are read, and either counts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use super::attribute;
use super::machine::{BlockOrFile, DeviceNumber, Machine};

const LOOP_GET_STATUS64: u32 = 0x4C05;

/// The backing of a loop device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Backing {
    /// The path in sysfs.
    pub(crate) path: String,
    /// The target of that path now, and the one that the device reports; one entry if they are
    /// the same.
    pub(crate) targets: Vec<BlockOrFile>,
    /// The range of bytes; `to` is `u64::MAX` for a range up to the end.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Backing {
    /// Return whether two loop devices share a byte.
    pub(crate) fn overlaps(&self, other: &Backing) -> bool {
        let shared = self.targets.iter().any(|target| other.targets.contains(target));
        shared && self.from < other.to && other.from < self.to
    }
}

/// The beginning of `struct loop_info64` of `linux/loop.h`, as far as it is used here.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    real_device: u64,
    offset: u64,
    size_limit: u64,
    rest: [u8; 192],
}

const _: () = assert!(size_of::<LoopInfo>() == 232, "the size of the kernel's structure");

/// Return the backing of the loop device of a number; `None` for any other device, and for a
/// detached loop device.
pub(crate) fn backing(machine: &Machine, number: DeviceNumber) -> Option<Backing> {
    let node = &machine.nodes[&number];
    let folder = node.folder.join("loop");
    if !folder.is_dir() {
        return None;
    }
    let path = attribute(&folder.join("backing_file"));
    let from = attribute(&folder.join("offset")).parse().unwrap_or(0);
    let limit = attribute(&folder.join("sizelimit")).parse().unwrap_or(0);
    let mut targets: Vec<BlockOrFile> = machine.resolve(&path).into_iter().collect();
    targets.extend(
        query_device(machine, &node.name, number).filter(|target| !targets.contains(target)),
    );
    let to = if limit == 0 { u64::MAX } else { from + limit };
    Some(Backing { path, targets, from, to })
}

/// Return the backing that the device reports; `None` without permission to open it.
fn query_device(machine: &Machine, name: &str, number: DeviceNumber) -> Option<BlockOrFile> {
    let path = machine.roots.dev.join(name);
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.file_type().is_block_device() || DeviceNumber::from_dev(metadata.rdev()) != number
    {
        return None;
    }
    // SAFETY: plain data, for which all zeros is a valid value.
    let mut info: LoopInfo = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a structure of the size that the kernel copies.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    if status != 0 {
        return None;
    }
    // `real_device` is the backing block device if there is one, else the device of the file
    // system.
    let real = decode_device(info.real_device);
    if info.real_device != info.device && machine.nodes.contains_key(&real) {
        return Some(BlockOrFile::Block(real));
    }
    let DeviceNumber { major, minor } = decode_device(info.device);
    Some(BlockOrFile::File(libc::makedev(major, minor), info.inode))
}

/// Decode a number from the kernel's `huge_encode_dev`.
fn decode_device(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: (device >> 8 & 0xfff) as u32,
        minor: (device & 0xff | device >> 12 & 0xfff00) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_decode_like_the_kernel_s() {
        for (major, minor) in [(7u64, 0u64), (254, 0), (8, 17), (259, 300), (4095, 0xf_ffff)] {
            let encoded = minor & 0xff | major << 8 | (minor & !0xff) << 12;
            let expected = DeviceNumber { major: major as u32, minor: minor as u32 };
            assert_eq!(decode_device(encoded), expected);
        }
    }

    #[test]
    fn loops_over_disjoint_parts_of_a_file_do_not_overlap() {
        let backing = |from, to| Backing {
            path: "f".into(),
            targets: vec![BlockOrFile::File(1, 2)],
            from,
            to,
        };
        assert!(backing(0, u64::MAX).overlaps(&backing(512, 1024)));
        assert!(!backing(0, 512).overlaps(&backing(512, 1024)));
        assert!(
            !backing(0, 512)
                .overlaps(&Backing { targets: vec![BlockOrFile::File(1, 3)], ..backing(0, 512) })
        );
    }
}
