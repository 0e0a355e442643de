//! Questions to the drive below a file or block device: its identity, and its counters as the drive
//! returns them. Nothing is written. `python/uflip/device/counters.toml` describes the content.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::ata::{self, AtaCommand};
use crate::guard::machine::disk_of;
use crate::nvme::{self, CommandSet, KernelTransport};

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
    let (_, disk) = disk_of(number).map_err(|_| "it is not on a single disk".to_owned())?;
    let name = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let node: PathBuf = ["/dev", &name.replace('!', "/")].iter().collect();
    ask(&node, query).map_err(|error| describe(&node, &error))
}

fn ask(node: &Path, query: DriveQuery) -> std::io::Result<Vec<u8>> {
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(node)?;
    let identify = |cns, namespace, file| {
        let drive = KernelTransport::new(file);
        Ok(nvme::identify(&drive, cns, namespace, CommandSet::Nvm, IDENTIFY_BYTES)?)
    };
    match query {
        DriveQuery::NvmeController => identify(IDENTIFY_CONTROLLER, 0, file),
        DriveQuery::NvmeNamespace => identify(IDENTIFY_NAMESPACE, nvme::namespace_of(&file)?, file),
        DriveQuery::NvmeLog { page, specific, bytes } => {
            let bytes = bytes.clamp(4, LOG_BYTES_MAX) / 4 * 4;
            let drive = KernelTransport::new(file);
            Ok(nvme::log_page(&drive, page, ALL_NAMESPACES, specific, bytes)?)
        }
        DriveQuery::AtaIdentify => ata::read(&file, AtaCommand::Identify),
        DriveQuery::AtaSmart => ata::read(&file, AtaCommand::SmartReadData),
    }
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
}
