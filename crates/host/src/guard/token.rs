//! What a user types to say that a block device may be destroyed: a name that only this device of this
//! machine has, now, and what would be lost.
//!
//! ```text
//! MODEL:SERIAL:SIZE                     a whole disk
//! MODEL:SERIAL:p2@1048576:SIZE          its second partition, which begins at byte 1048576
//! MODEL:SERIAL:SIZE+gpt+ext4            a medium that holds something
//! MODEL:@usb-1-1.2:1.0#17:SIZE          a stick without a serial number of its own
//! ```
//!
//! Where no serial number tells two disks apart, the place where the disk is connected and its sequence
//! number (which the kernel never gives twice before the next start) stand for it: another medium
//! behind the same name has another token.

use std::path::Path;

use super::attribute;
use super::machine::{Machine, Node};
use super::signature::Signature;

/// Model, serial number and firmware, as far as a disk gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) model: String,
    pub(crate) serial: String,
    pub(crate) firmware: String,
    wwid: String,
}

impl Identity {
    /// Who the disk of `node` says it is; its name in the system stands for a missing model.
    pub(crate) fn of(disk: &Node) -> Identity {
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
            serial = page_80(&disk.folder.join("device/vpd_pg80"));
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

/// The token of a device without what it holds: the name of the device alone.
pub(crate) fn name_of(machine: &Machine, node: &Node) -> String {
    let disk = machine.disk_of(node);
    let identity = Identity::of(disk);
    let who = format!("{}:{}", plain(&identity.model), unique_serial(machine, disk, &identity));
    let size = bytes(&node.attribute("size"));
    if node.disk.is_none() {
        return format!("{who}:{size}");
    }
    let (number, start) = (node.attribute("partition"), bytes(&node.attribute("start")));
    format!("{who}:p{number}@{start}:{size}")
}

/// The part of a token that says what is lost.
pub(crate) fn held(signatures: &[Signature]) -> String {
    signatures.iter().map(|signature| format!("+{}", plain(&signature.name))).collect()
}

/// Whether what was typed names this device, or file, and everything that would be lost. More may be
/// given up than is there: what was typed before the first run is right after it as well.
pub(crate) fn permits(typed: &str, name: &str, signatures: &[Signature]) -> bool {
    let Some(rest) = typed.strip_prefix(name) else { return false };
    if !rest.is_empty() && !rest.starts_with('+') {
        return false;
    }
    let given: Vec<&str> = rest.split('+').skip(1).collect();
    !given.contains(&"") && signatures.iter().all(|s| given.contains(&plain(&s.name).as_str()))
}

/// What tells a disk from all others of this machine: its serial number, if no other disk has it, or
/// its world-wide name, or else its place and sequence number.
fn unique_serial(machine: &Machine, disk: &Node, identity: &Identity) -> String {
    let (serial, wwid) = (plain(&identity.serial), plain(&identity.wwid));
    // Asked only of what has either: loop devices have neither, and there may be hundreds.
    let others = || {
        let others = machine.nodes.values().filter(|node| node.disk.is_none());
        others.filter(|node| node.number != disk.number).map(Identity::of)
    };
    if !serial.is_empty() && !others().any(|other| plain(&other.serial) == serial) {
        return serial;
    }
    if !wwid.is_empty() && !others().any(|other| plain(&other.wwid) == wwid) {
        return wwid;
    }
    let sequence = disk.attribute("diskseq");
    format!("{serial}@{}#{sequence}", place(disk))
}

/// Where a disk is connected, in short: its USB port, or its address on the last PCI bus, with its
/// address below that; its name, for one that is connected to nothing.
fn place(disk: &Node) -> String {
    let parts: Vec<String> =
        disk.folder.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let usb = |part: &&String| {
        part.contains('-') && part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit())
    };
    let pci = |part: &&String| part.len() == 12 && part.as_bytes()[4] == b':' && part.contains('.');
    let below =
        parts.iter().rfind(|part| part.split(':').count() == 4 && !part.starts_with("target"));
    // The first part of an address, the number of the host, changes with every connection.
    let below = below.and_then(|part| part.split_once(':')).map(|(_, rest)| format!("-{rest}"));
    let below = below.unwrap_or_default();
    let found = parts.iter().rfind(usb).map(|port| format!("usb-{port}{below}"));
    let found = found.or_else(|| parts.iter().rfind(pci).map(|slot| format!("pci-{slot}{below}")));
    plain(&found.unwrap_or_else(|| disk.name.clone()))
}

/// Text that can be typed and shown anywhere: what is none of letters, digits and a few signs becomes
/// an underscore. The plus sign and the colon separate parts.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._@#:".contains(c);
    words.join("_").chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Sectors of 512 bytes, which is what sysfs counts in whatever the device has, as bytes.
fn bytes(sectors: &str) -> u64 {
    sectors.parse::<u64>().unwrap_or(0) * uflip_core::SECTOR_BYTES_MIN
}

/// The serial number in page 80h of a SCSI or SATA disk: four bytes of head, then text.
fn page_80(path: &Path) -> String {
    let page = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(page.get(4..).unwrap_or_default()).trim_matches(['\0', ' ']).to_owned()
}

/// The serial number of the USB device that a disk is a part of.
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
    fn what_is_typed_must_name_all_that_would_be_lost() {
        let (name, ext4, gpt) = ("M:S:512", signature("ext4"), signature("gpt"));
        let both = [gpt.clone(), ext4.clone()];
        assert_eq!(format!("{name}{}", held(&both)), "M:S:512+gpt+ext4");
        assert!(permits("M:S:512", name, &[]));
        assert!(permits("M:S:512+ext4", name, from_ref(&ext4)));
        assert!(permits("M:S:512+ext4+gpt", name, &both));
        assert!(permits("M:S:512+ext4", name, &[]), "more than there is");
        for wrong in ["", "M:S:512", "M:S:512+", "M:S:512+ext", "M:S:512 +ext4", "M:S:5120+ext4"] {
            assert!(!permits(wrong, name, from_ref(&ext4)), "{wrong}");
        }
        assert!(!permits("M:S:512+ext4", name, &both));
        assert!(!permits("M:S:51", name, &[]));
        assert!(!permits("M:S:5122", name, &[]));
        assert!(!permits("M:S:512++ext4", name, from_ref(&ext4)));
    }

    #[test]
    fn texts_of_devices_can_be_typed_and_do_no_harm() {
        assert_eq!(plain("Flash  Disk "), "Flash_Disk");
        assert_eq!(plain("a\u{1b}[2Jb+c'd"), "a__2Jb_c_d");
    }
}
