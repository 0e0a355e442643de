//! Tests on other machines: their sysfs and proc, as text (`machines/*.txt`), are written to a
//! folder that replaces `/`.
//!
//! In the text, a line without indent is a folder (one with a `dev` is a block device, and gets its
//! link in `sys/dev/block`) or, with ` -> `, a link. Below it, `name value` is an attribute,
//! `name/` a folder, and lines with a bar are the content of the file above them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::admit::{BlockReport, report};
use super::machine::{DeviceNumber, Machine};
use super::signature::UNPROBED;
use super::{Roots, attribute};

const MACHINES: &[(&str, &str)] = &[
    ("raid", include_str!("machines/raid.txt")),
    ("lvm", include_str!("machines/lvm.txt")),
    ("crypt", include_str!("machines/crypt.txt")),
    ("multipath", include_str!("machines/multipath.txt")),
    ("btrfs", include_str!("machines/btrfs.txt")),
    ("nvme", include_str!("machines/nvme.txt")),
    ("usb", include_str!("machines/usb.txt")),
    ("zfs", include_str!("machines/zfs.txt")),
    ("layers", include_str!("machines/layers.txt")),
];

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("the path has a parent")).expect("create the folder");
    fs::write(path, text).expect("write the file");
}

/// Build one of [`MACHINES`]; it exists as long as its folder.
pub(crate) fn machine(name: &str) -> (TempDir, Machine) {
    let (_, text) = MACHINES.iter().find(|(known, _)| *known == name).expect("a known machine");
    build(text)
}

fn build(text: &str) -> (TempDir, Machine) {
    let root = tempfile::tempdir().expect("create a temporary folder");
    let mut path = root.path().to_path_buf();
    let mut content = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(bar) = line.trim_start().strip_prefix('|') {
            content += bar.strip_prefix(' ').unwrap_or(bar);
            content += "\n";
            write(&path, &content);
            continue;
        }
        content.clear();
        if let Some((link, target)) = line.split_once(" -> ") {
            let link = root.path().join(link);
            fs::create_dir_all(link.parent().expect("the path has a parent"))
                .expect("create the folder");
            symlink(target, link).expect("create the link");
        } else if let Some(attribute) = line.strip_prefix("  ") {
            match attribute.split_once(' ') {
                Some((name, value)) => write(&path.join(name), &format!("{value}\n")),
                None => fs::create_dir_all(path.join(attribute)).expect("create the folder"),
            }
        } else {
            path = root.path().join(line);
            if line.ends_with('/') {
                fs::create_dir_all(&path).expect("create the folder");
            }
        }
    }
    let roots = Roots {
        sys: root.path().join("sys"),
        proc: root.path().join("proc"),
        dev: root.path().join("dev"),
    };
    link_devices(&roots.sys.join("devices"), &roots.sys.join("dev/block"));
    let machine = Machine::examine(&roots);
    (root, machine)
}

/// Create a link by number for every block device, as the kernel does.
fn link_devices(folder: &Path, links: &Path) {
    fs::create_dir_all(links).expect("create the folder");
    for entry in
        fs::read_dir(folder).expect("list the folder").flatten().filter(|e| e.path().is_dir())
    {
        // The generic device of an NVMe namespace is a character device.
        let is_block = !entry.file_name().to_string_lossy().starts_with("ng");
        let number = DeviceNumber::parse(&attribute(&entry.path().join("dev")));
        if let Some(number) = number.filter(|_| is_block) {
            let link = links.join(format!("{}:{}", number.major, number.minor));
            symlink(entry.path(), link).expect("create the link");
        }
        link_devices(&entry.path(), links);
    }
}

/// Return the report of each device of a machine, by its name.
fn reports(name: &str) -> BTreeMap<String, BlockReport> {
    let (_, text) =
        MACHINES.iter().find(|(machine_name, _)| *machine_name == name).expect("a known machine");
    let (_root, machine) = build(text);
    let numbers = machine.nodes.values().map(|node| (node.name.clone(), node.number));
    numbers.map(|(name, number)| (name, report(&machine, number, None))).collect()
}

/// Compare the users of each device; unlisted devices have no users.
fn expect_uses(machine: &str, expected: &[(&str, &[&str])]) {
    let reports = reports(machine);
    for (name, report) in &reports {
        let expected = expected.iter().find(|(machine_name, _)| machine_name == name);
        let expected: Vec<&str> = expected.map_or_else(Vec::new, |(_, uses)| uses.to_vec());
        assert_eq!(report.uses, expected, "{name} of {machine}");
    }
    for (name, _) in expected {
        assert!(reports.contains_key(*name), "{name} of {machine} is read");
    }
}

#[test]
fn array_members_and_their_disks_are_in_use() {
    let root = "held by md0, which is mounted on /";
    expect_uses(
        "raid",
        &[
            (
                "sda",
                &[
                    "its partition sda1 is mounted on /boot/efi",
                    "its partition sda2 is held by md0, which is mounted on /",
                ],
            ),
            ("sda1", &["mounted on /boot/efi"]),
            ("sda2", &[root]),
            ("sdb", &["its partition sdb2 is held by md0, which is mounted on /"]),
            ("sdb2", &[root]),
            ("sdc", &["a member of the array md127"]),
            ("md0", &["mounted on /"]),
        ],
    );
}

#[test]
fn unused_volume_is_free_next_to_used_ones() {
    let (root, swap) = (
        "held by dm-0 (vg0-root), which is mounted on /",
        "held by dm-1 (vg0-swap_1), which is swapped to",
    );
    let scratch = "held by dm-2 (vg0-scratch)";
    let of_disk = |user: &str| format!("its partition nvme0n1p3 is {user}");
    expect_uses(
        "lvm",
        &[
            (
                "nvme0n1",
                &[
                    "its partition nvme0n1p1 is mounted on /boot/efi",
                    &of_disk(root),
                    &of_disk(swap),
                    &of_disk(scratch),
                ],
            ),
            ("nvme0n1p1", &["mounted on /boot/efi"]),
            ("nvme0n1p3", &[root, swap, scratch]),
            ("dm-0", &["mounted on /"]),
            ("dm-1", &["swapped to"]),
        ],
    );
}

#[test]
fn use_is_found_through_any_number_of_layers() {
    let home =
        "held by dm-0 (luks-5a1d), which is held by dm-1 (vg-home), which is mounted on /home";
    expect_uses(
        "crypt",
        &[
            ("sda", &[&format!("its partition sda1 is {home}")]),
            ("sda1", &[home]),
            ("dm-0", &["held by dm-1 (vg-home), which is mounted on /home"]),
            ("dm-1", &["mounted on /home"]),
        ],
    );
}

#[test]
fn every_multipath_path_to_a_mounted_disk_is_in_use() {
    let data = "held by dm-0 (mpatha), which is held by dm-1 (mpatha1), which is mounted on /data";
    expect_uses(
        "multipath",
        &[
            ("sda", &[data]),
            ("sdb", &[data]),
            ("sdc", &["held by dm-2 (mpathb)"]),
            ("sdd", &["held by dm-2 (mpathb)"]),
            ("dm-0", &["held by dm-1 (mpatha1), which is mounted on /data"]),
            ("dm-1", &["mounted on /data"]),
        ],
    );
}

#[test]
fn every_member_of_a_mounted_btrfs_is_in_use() {
    let member = "a device of the mounted btrfs 0c9ab35c-7a0f-4b7a-9d2e-5f1f6a1f0001";
    expect_uses("btrfs", &[("sda", &["mounted on /data"]), ("sdb", &[member])]);
}

#[test]
fn swap_journals_loops_and_other_namespaces_are_uses() {
    expect_uses(
        "layers",
        &[
            ("zram0", &["swapped to"]),
            ("loop0", &["the backing device of loop1, which is mounted on /mnt/inner"]),
            ("loop1", &["mounted on /mnt/inner"]),
            ("sda", &["mounted on /pool"]),
            ("sdb", &["mounted on /pool"]),
            (
                "sdc",
                &[
                    "its partition sdc1 is mounted on /journalled",
                    "its partition sdc2 is mounted on /inside (as process 4711 sees it)",
                ],
            ),
            ("sdc1", &["mounted on /journalled"]),
            ("sdc2", &["mounted on /inside (as process 4711 sees it)"]),
            ("cciss!c0d0", &["its partition cciss/c0d0p1 is swapped to"]),
            ("cciss!c0d0p1", &["swapped to"]),
            ("sde", &["mounted on /whole"]),
            ("sde1", &["its disk sde is mounted on /whole"]),
        ],
    );
}

#[test]
fn tokens_are_unique_and_typeable() {
    for (machine, _) in MACHINES {
        let mut owners: BTreeMap<String, String> = BTreeMap::new();
        for (name, report) in reports(machine) {
            assert!(report.token.ends_with("+unprobed"), "{}", report.token);
            let typeable = |c: char| c.is_ascii_graphic() && !"'\"\\$`!*?()[]{}<>|&;".contains(c);
            assert!(report.token.chars().all(typeable), "{}", report.token);
            let other = owners.insert(report.token.clone(), name.clone());
            assert_eq!(other, None, "{} of {machine} as well as {name}", report.token);
        }
    }
}

#[test]
fn token_contains_the_serial_number_of_the_label() {
    let token = |machine: &str, name: &str| {
        let token = reports(machine)[name].token.clone();
        token.strip_suffix("+unprobed").expect("the contents are not probed").to_owned()
    };
    let evo = "Samsung_SSD_970_EVO_Plus_1TB:S4EWNX0M123456A";
    assert_eq!(token("lvm", "nvme0n1"), format!("{evo}:1024209543168"));
    assert_eq!(token("lvm", "nvme0n1p2"), format!("{evo}:p2@537919488:1073741824"));
    assert_eq!(token("lvm", "dm-2"), "vg0-scratch:LVM-f3TQm0aBcDeF3:107374182400");
    // Two namespaces share one serial number: the EUI replaces it.
    let second = "SAMSUNG_MZVLB512HAJQ:eui.36344630528029080025384500000002:512110190592";
    assert_eq!(token("nvme", "nvme0n2"), second);
    assert_eq!(token("usb", "sde"), "Cruzer_Blade:4C530001230412104052:31037849600");
    assert_eq!(token("usb", "sda"), "Flash_Disk:@usb-1-1.1:1.0-0:0:0#21:8053063680");
    assert_eq!(token("usb", "sdb"), "Flash_Disk:@usb-1-1.2:1.0-0:0:0#22:8053063680");
    let cheap = "USB_DISK_2.0:0123456789ABCDEF@usb-1-3:1.0-0:0:0#23:15518924800";
    assert_eq!(token("usb", "sdc"), cheap);
    assert_eq!(token("usb", "sdg"), "Card_Reader:@usb-1-6:1.0-0:0:1#27:7948206080");
}

/// A stick is replaced by another of its model in the same port: the kernel's disk number changes,
/// and so does the token.
#[test]
fn token_changes_with_the_medium() {
    let (_, text) =
        MACHINES.iter().find(|(name, _)| *name == "usb").expect("the machine is listed");
    let token = |text: &str| {
        let (_root, machine) = build(text);
        report(&machine, DeviceNumber { major: 8, minor: 0 }, None).token
    };
    assert_ne!(token(text), token(&text.replace("diskseq 21", "diskseq 28")));
}

/// Build the first label of a ZFS member: the name of the pool in the list at 16 KiB, and
/// uberblocks.
fn zfs_member(pool: &str) -> fs::File {
    use std::os::unix::fs::FileExt;
    let medium = tempfile::tempfile().expect("create a temporary file");
    medium.set_len(64 << 20).expect("resize the file");
    let mut list = vec![1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    // Size of the pair, zero, and length and text of its name; then type, count, length and text.
    let pair = [28 + pool.len() as u32, 0, 4];
    list.extend(pair.iter().flat_map(|word| word.to_be_bytes()));
    list.extend(b"name");
    list.extend([9, 1, pool.len() as u32].iter().flat_map(|word: &u32| word.to_be_bytes()));
    list.extend(pool.as_bytes());
    medium.write_all_at(&list, 16384).expect("write the file");
    let uberblock = [0x00BA_B10C_u64, 5000, 1].map(u64::to_le_bytes).concat();
    for number in 0..16 {
        medium.write_all_at(&uberblock, 131_072 + 1024 * number).expect("write the file");
    }
    medium
}

#[test]
fn zfs_member_is_in_use_only_while_the_pool_is_imported() {
    let (_, text) =
        MACHINES.iter().find(|(name, _)| *name == "zfs").expect("the machine is listed");
    let (_root, machine) = build(text);
    let report_with =
        |pool| report(&machine, DeviceNumber { major: 8, minor: 0 }, Some(&zfs_member(pool)));
    if report_with("tank").signatures.iter().any(|signature| signature.name == UNPROBED) {
        eprintln!("skipped: libblkid is missing");
        return;
    }
    assert_eq!(report_with("tank").uses, ["a device of the imported ZFS pool tank"]);
    let exported = report_with("pond");
    assert_eq!(exported.uses, Vec::<String>::new());
    assert!(exported.token.ends_with("+zfs_member"), "{}", exported.token);
}
