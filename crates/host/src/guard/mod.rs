//! One guard before the first byte: whatever is to be written to passes through here, and nothing
//! else opens anything for writing.
//!
//! ```text
//! name ── Named ──▶ what it is ──▶ who uses it ──▶ what it holds ──▶ what was typed ──▶ descriptor
//!         (once)    (kind)         (uses)          (signature)       (token, mark)      (lock)
//! ```
//!
//! A name is followed once ([`named`]). What is behind it is held from then on, so that a link that
//! is changed, or a file that is put into its place, changes nothing: what was checked is what is
//! written. The checks are made before anything is opened for writing, and once more when the
//! descriptor that will be written is exclusively ours ([`lock`]), because a volume can be mounted
//! in between.
//!
//! What the kernel says about devices and processes is read below [`Roots`], so that a machine with
//! RAID, LVM or ZFS can be a folder in a test.

pub(crate) mod admit;
pub(crate) mod data_mark;
pub(crate) mod kind;
pub(crate) mod lock;
pub(crate) mod loops;
pub(crate) mod machine;
pub(crate) mod mark;
pub(crate) mod mounts;
pub(crate) mod named;
pub(crate) mod signature;
pub(crate) mod token;
pub(crate) mod uses;
pub(crate) mod writers;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

/// Where the kernel tells about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// Devices, usually `/sys`.
    pub sys: PathBuf,
    /// Processes, mounts and swap, usually `/proc`.
    pub proc: PathBuf,
    /// Names of devices, usually `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

/// A sysfs attribute or another short text of the kernel; empty where it does not exist.
pub(crate) fn attribute(path: &std::path::Path) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .unwrap_or_default()
}
