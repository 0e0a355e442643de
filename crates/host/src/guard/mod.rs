//! The guard: every target of writes passes through here, and no other code opens a target for
//! writing.
//!
//! ```text
//! name ── Target ──▶ kind ──▶ users ──▶ contents ──▶ confirmation ──▶ descriptor
//!         (once)     (kind)   (uses)    (signature)  (token, mark)    (lock)
//! ```
//!
//! A name is resolved once ([`target`]), and the descriptor is held from then on. A changed link or
//! a replaced file has no effect: the checked file is the written file. The checks are made before
//! the target is opened for writing, and again under the exclusive lock ([`lock`]), because a
//! volume can be mounted in between.
//!
//! The kernel's description of devices and processes is read below [`Roots`], so that a test can
//! represent a machine with RAID, LVM or ZFS by a folder.

pub(crate) mod admit;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod ownership;
pub(crate) mod signature;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod uses;

#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;

/// The folders in which the kernel describes itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// Devices, usually `/sys`.
    pub sys: PathBuf,
    /// Processes, mounts and swap, usually `/proc`.
    pub proc: PathBuf,
    /// Device nodes, usually `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }
}

/// Return a sysfs attribute or another short kernel text; empty if it does not exist.
pub(crate) fn attribute(path: &std::path::Path) -> String {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .unwrap_or_default()
}
