//! Errors of unusable snapshots, reported before anything is built from them.

use std::path::{Path, PathBuf};

use uflip_core::{Bytes, Device, DeviceInfo, ErrorKind, Io, Mode};
use uflip_sim::{Profile, SimDevice, Snapshot, inspect_snapshot, snapshot};

const DEMO: &str = include_str!("../../../python/uflip/profiles/demo.toml");

fn save_demo(folder: &Path) -> PathBuf {
    let profile = Profile::parse(DEMO, "demo.toml", r#"{"blocks_per_die": 24}"#).unwrap();
    let mut device = SimDevice::new("demo", profile).unwrap();
    device
        .submit(&Io { offset: Bytes(8192), size: Bytes(4096), mode: Mode::Write, stream: 0 })
        .unwrap();
    let path = folder.join("demo.snapshot");
    device.save(&path).unwrap();
    path
}

/// Return kind and text of the error for `bytes`.
fn refused(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("changed.snapshot");
    std::fs::write(&path, bytes).unwrap();
    let error = SimDevice::restore(&path).expect_err("the snapshot is damaged");
    assert_eq!(error.kind(), ErrorKind::Results, "{error}");
    assert!(error.to_string().contains("changed.snapshot"), "{error}");
    error.to_string()
}

#[test]
fn truncated_or_changed_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(save_demo(folder.path())).unwrap();
    for length in (0..whole.len()).step_by(997) {
        let message = refused(folder.path(), &whole[..length]);
        assert!(message.contains("not a snapshot") || message.contains("damaged"), "{message}");
    }
    assert!(refused(folder.path(), &[&whole[..], b"x"].concat()).contains("damaged"));
    for position in (0..whole.len()).step_by(499) {
        let mut changed = whole.clone();
        changed[position] ^= 0x10;
        refused(folder.path(), &changed);
    }
}

fn header_of(file: &[u8]) -> String {
    let header_bytes = u64::from_le_bytes(file[8..16].try_into().unwrap()) as usize;
    String::from_utf8(file[40..40 + header_bytes].to_vec()).unwrap()
}

/// Return the file with another header and the matching checksum.
fn with_header(file: &[u8], header: &str) -> Vec<u8> {
    let state = &file[40 + header_of(file).len()..];
    let sum = twox_hash::XxHash3_64::oneshot(header.as_bytes());
    let length = (header.len() as u64).to_le_bytes();
    [&file[..8], &length, &sum.to_le_bytes(), &file[24..40], header.as_bytes(), state].concat()
}

#[test]
fn invalid_header_history_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(save_demo(folder.path())).unwrap();
    let mut header: serde_json::Value = serde_json::from_str(&header_of(&file)).unwrap();
    for wrong in [serde_json::json!("x"), serde_json::json!(-0.5), serde_json::json!([1])] {
        header["history"] = wrong;
        let message = refused(folder.path(), &with_header(&file, &header.to_string()));
        assert!(message.contains("damaged") && message.contains("history"), "{message}");
        let inspected = inspect_snapshot(&folder.path().join("changed.snapshot"), None);
        assert_eq!(inspected.expect_err("the snapshot is damaged").kind(), ErrorKind::Results);
    }
}

#[test]
fn foreign_file_or_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = refused(folder.path(), DEMO.as_bytes());
    assert!(other.contains("not a snapshot"), "{other}");

    // A whole file of another schema: its header is changed together with its checksum.
    let file = std::fs::read(save_demo(folder.path())).unwrap();
    let text = header_of(&file);
    let schema_field = format!("\"schema\":{}", snapshot::SCHEMA);
    assert!(text.contains(&schema_field), "{text}");
    let file = with_header(&file, &text.replacen(&schema_field, "\"schema\":0", 1));
    let version = refused(folder.path(), &file);
    assert!(version.contains("another version"), "{version}");
    let version_text = snapshot::VERSION;
    assert!(
        version.contains(&format!("got: schema 0, written by uflip {version_text}")),
        "{version}"
    );
}

#[test]
fn save_never_overwrites_and_leaves_no_temporary() {
    let folder = tempfile::tempdir().unwrap();
    let path = save_demo(folder.path());
    let before = std::fs::read(&path).unwrap();
    let device = SimDevice::restore(&path).unwrap();
    let error = device.save(&path).unwrap_err();
    assert!(error.to_string().contains("The file exists"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(device.save(&folder.path().join("missing/demo.snapshot")).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = SimDevice::restore(&folder.path().join("none.snapshot")).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}

#[test]
fn snapshot_header_describes_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = save_demo(folder.path());
    let mut info = inspect_snapshot(&path, None).unwrap();
    assert_eq!(info.details["profile"]["geometry"]["blocks_per_die"], 24);
    assert!(info.details["history"]["pages_written"].as_u64().unwrap() > 0);
    let mut device = SimDevice::restore(&path).unwrap();
    let same = folder.path().join("same.snapshot");
    device.save(&same).unwrap();
    assert_eq!(inspect_snapshot(&same, None).unwrap(), info, "the same state has the same info");
    device.complete().unwrap();
    let other = folder.path().join("other.snapshot");
    device.save(&other).unwrap();
    let named = |info: &DeviceInfo| info.details["snapshot"].clone();
    assert_ne!(named(&inspect_snapshot(&other, None).unwrap()), named(&info));
    info.details.remove("snapshot");
    assert_eq!(&info, device.info());
}

#[test]
fn stopped_save_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let device = SimDevice::restore(&save_demo(folder.path())).unwrap();
    let path = folder.path().join("stopped.snapshot");
    let error = device.save_unless(&path, &|| true).unwrap_err();
    assert_eq!(error.kind(), uflip_core::ErrorKind::Interrupted, "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
