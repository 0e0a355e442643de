//! The `--destroy` token of a block device: a name that is unique on this machine at this moment,
//! and the contents that would be lost.
//!
//! ```text
//! MODEL:SERIAL:SIZE                     a whole disk
//! MODEL:SERIAL:p2@1048576:SIZE          its second partition, which begins at byte 1048576
//! MODEL:SERIAL:SIZE+gpt+ext4            a medium with contents
//! MODEL:@usb-1-1.2:1.0#17:SIZE          a stick without a serial number
//! ```
//!
//! If serial numbers do not distinguish two disks, the token uses the port of the disk and its
//! sequence number (which the kernel never repeats before the next boot): another medium behind the
//! same name has another token.

use std::path::Path;

use super::attribute;
use super::machine::{BlockNode, Machine};
use super::signature::Signature;

/// Model, serial number and firmware of a disk, if it reports them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) model: String,
    pub(crate) serial: String,
    pub(crate) firmware: String,
    wwid: String,
}

impl Identity {
    /// Return the identity of the disk; its kernel name replaces a missing model.
    pub(crate) fn read(disk: &BlockNode) -> Identity {
        let first = |names: &[&str]| {
            let mut texts = names.iter().map(|name| disk.attribute(name));
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        let model = match disk.mapped_name.as_str() {
            "" => disk.attribute("device/model"),
            mapped => mapped.to_owned(),
        };
        let wwid = first(&["wwid", "device/wwid", "dm/uuid", "md/uuid"]);
        let mut serial = first(&["device/serial", "serial"]);
        if serial.is_empty() {
            serial = serial_page(&disk.folder.join("device/vpd_pg80"));
        }
        if serial.is_empty() {
            serial = usb_serial(&disk.folder);
        }
        Identity {
            model: if model.is_empty() { disk.name.clone() } else { model },
            serial: if serial.is_empty() { wwid.clone() } else { serial },
            firmware: first(&["device/firmware_rev", "device/rev"]),
            wwid,
        }
    }
}

/// Return the token of a device without its contents.
pub(crate) fn device_name(machine: &Machine, node: &BlockNode) -> String {
    let disk = machine.disk_of(node);
    let identity = Identity::read(disk);
    let model =
        format!("{}:{}", sanitise(&identity.model), unique_serial(machine, disk, &identity));
    let size = sectors_to_bytes(&node.attribute("size"));
    if node.disk.is_none() {
        return format!("{model}:{size}");
    }
    let (number, start) = (node.attribute("partition"), sectors_to_bytes(&node.attribute("start")));
    format!("{model}:p{number}@{start}:{size}")
}

/// Return the part of a token that lists the contents.
pub(crate) fn contents(signatures: &[Signature]) -> String {
    signatures.iter().map(|signature| format!("+{}", sanitise(&signature.name))).collect()
}

/// Return whether `typed` names this device or file and all of its contents. It may list more
/// contents than there are: a token that was valid before the first run stays valid after it.
pub(crate) fn permits(typed: &str, name: &str, signatures: &[Signature]) -> bool {
    let Some(rest) = typed.strip_prefix(name) else { return false };
    if !rest.is_empty() && !rest.starts_with('+') {
        return false;
    }
    let contents: Vec<&str> = rest.split('+').skip(1).collect();
    !contents.contains(&"")
        && signatures.iter().all(|signature| contents.contains(&sanitise(&signature.name).as_str()))
}

/// Return a unique identifier of a disk on this machine: its serial number, else its world-wide
/// name, else its port and sequence number.
fn unique_serial(machine: &Machine, disk: &BlockNode, identity: &Identity) -> String {
    let (serial, wwid) = (sanitise(&identity.serial), sanitise(&identity.wwid));
    // Computed only on demand: loop devices have neither number, and there may be hundreds.
    let others = || {
        let others = machine.nodes.values().filter(|node| node.disk.is_none());
        others.filter(|node| node.number != disk.number).map(Identity::read)
    };
    if !serial.is_empty() && !others().any(|other| sanitise(&other.serial) == serial) {
        return serial;
    }
    if !wwid.is_empty() && !others().any(|other| sanitise(&other.wwid) == wwid) {
        return wwid;
    }
    let sequence = disk.attribute("diskseq");
    format!("{serial}@{}#{sequence}", port(disk))
}

/// Return the port of a disk: its USB port, or its address on the last PCI bus, and its address
/// below that; its name if it has no connection.
fn port(disk: &BlockNode) -> String {
    let parts: Vec<String> =
        disk.folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let usb = |part: &&String| {
        part.contains('-') && part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit())
    };
    let pci = |part: &&String| part.len() == 12 && part.as_bytes()[4] == b':' && part.contains('.');
    let address =
        parts.iter().rfind(|part| part.split(':').count() == 4 && !part.starts_with("target"));
    // The first part of an address, the host number, changes with every connection.
    let address = address.and_then(|part| part.split_once(':')).map(|(_, rest)| format!("-{rest}"));
    let address = address.unwrap_or_default();
    let port = parts.iter().rfind(usb).map(|port| format!("usb-{port}{address}"));
    let port = port.or_else(|| parts.iter().rfind(pci).map(|slot| format!("pci-{slot}{address}")));
    sanitise(&port.unwrap_or_else(|| disk.name.clone()))
}

/// Return text that can be typed and shown anywhere: characters other than letters, digits and a
/// few signs become underscores. The plus sign and the colon separate parts.
fn sanitise(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._@#:".contains(c);
    words.join("_").chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

/// Convert sectors of sysfs, always of 512 bytes, to bytes.
fn sectors_to_bytes(sectors: &str) -> u64 {
    sectors.parse::<u64>().unwrap_or(0) * uflip_core::SECTOR_BYTES_MIN
}

/// Return the serial number in page 80h of a SCSI or SATA disk: a header of four bytes, then text.
fn serial_page(path: &Path) -> String {
    let page = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(page.get(4..).unwrap_or_default()).trim_matches(['\0', ' ']).to_owned()
}

/// Return the serial number of the USB device of a disk.
fn usb_serial(folder: &Path) -> String {
    let device = folder.ancestors().find(|folder| folder.join("idVendor").exists());
    device.map(|device| attribute(&device.join("serial"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn signature(name: &str) -> Signature {
        Signature { name: name.into(), label: String::new() }
    }

    #[test]
    fn typed_token_must_name_all_contents() {
        let (name, ext4, gpt) = ("M:S:512", signature("ext4"), signature("gpt"));
        let both = [gpt.clone(), ext4.clone()];
        assert_eq!(format!("{name}{}", contents(&both)), "M:S:512+gpt+ext4");
        assert!(permits("M:S:512", name, &[]));
        assert!(permits("M:S:512+ext4", name, from_ref(&ext4)));
        assert!(permits("M:S:512+ext4+gpt", name, &both));
        assert!(permits("M:S:512+ext4", name, &[]), "more contents than the device has");
        for wrong in ["", "M:S:512", "M:S:512+", "M:S:512+ext", "M:S:512 +ext4", "M:S:5120+ext4"] {
            assert!(!permits(wrong, name, from_ref(&ext4)), "{wrong}");
        }
        assert!(!permits("M:S:512+ext4", name, &both));
        assert!(!permits("M:S:51", name, &[]));
        assert!(!permits("M:S:5122", name, &[]));
        assert!(!permits("M:S:512++ext4", name, from_ref(&ext4)));
    }

    #[test]
    fn device_texts_are_sanitised_for_the_shell() {
        assert_eq!(sanitise("Flash  Disk "), "Flash_Disk");
        assert_eq!(sanitise("a\u{1b}[2Jb+c'd"), "a__2Jb_c_d");
    }
}
