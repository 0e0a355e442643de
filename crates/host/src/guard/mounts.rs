//! The mounts of every mount namespace of a visible process.

use std::collections::BTreeSet;
use std::path::Path;

use super::machine::DeviceNumber;

/// One line of a `mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    /// The number of the device below; a pseudo number for zero or several devices.
    pub(crate) number: DeviceNumber,
    pub(crate) point: String,
    /// The kind of file system, `fuse.NAME` cut to `fuse`.
    pub(crate) kind: String,
    pub(crate) source: String,
    /// Device paths in the options of the file system (a journal, a log).
    pub(crate) option_devices: Vec<String>,
    /// A process in the namespace, if it is not our own.
    pub(crate) process: Option<u32>,
}

/// Return the mounts of all visible namespaces, our own first.
pub(crate) fn all_mounts(proc: &Path) -> Vec<Mount> {
    let mut namespaces = BTreeSet::new();
    let mut mounts = vec![];
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut processes: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    processes.sort_unstable();
    let others = processes.into_iter().map(|process| (process.to_string(), Some(process)));
    for (name, process) in std::iter::once(("self".to_owned(), None)).chain(others) {
        let folder = proc.join(name);
        // The namespace is a link to something like mnt:[4026531841].
        if let Ok(namespace) = std::fs::read_link(folder.join("ns/mnt"))
            && !namespaces.insert(namespace)
        {
            continue;
        }
        let table = std::fs::read(folder.join("mountinfo")).unwrap_or_default();
        mounts.extend(parse(&String::from_utf8_lossy(&table), process));
    }
    mounts
}

/// Return the mount with an identifier from `fdinfo`.
pub(crate) fn by_id(mounts: &[Mount], id: u64) -> Option<&Mount> {
    mounts.iter().find(|mount| mount.id == id)
}

fn parse(table: &str, process: Option<u32>) -> Vec<Mount> {
    table.lines().filter_map(|line| parse_line(line, process)).collect()
}

/// Parse a line such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root
/// rw,errors=continue`, with any number of optional fields before the dash (proc(5)).
fn parse_line(line: &str, process: Option<u32>) -> Option<Mount> {
    let (fields, system) = line.split_once(" - ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let mut system = system.split(' ');
    let kind = system.next()?;
    let source = unescape(system.next()?);
    let options = system.next().unwrap_or("").split(',');
    let values = options.filter_map(|option| option.split_once('=')).map(|(_, value)| value);
    Some(Mount {
        id: fields.first()?.parse().ok()?,
        number: DeviceNumber::parse(fields.get(2)?)?,
        point: unescape(fields.get(4)?),
        kind: kind.split_once('.').map_or(kind, |(family, _)| family).to_owned(),
        source,
        option_devices: values.filter(|value| value.starts_with("/dev/")).map(unescape).collect(),
        process,
    })
}

/// Decode the octal escapes of blank, tab, line feed and backslash.
pub(crate) fn unescape(text: &str) -> String {
    let mut decoded = vec![];
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if *byte == b'\\' => {
                decoded.push(code);
                rest = &tail[3..];
            }
            _ => {
                decoded.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line is the example of proc(5).
    #[test]
    fn mount_lines_with_optional_fields_are_parsed() {
        let table = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
            29 1 8:2 / / rw shared:1 master:2 propagate_from:3 - xfs /dev/sda2 rw,logdev=/dev/sdb1\n\
            40 29 0:44 / /mnt/my\\040disk rw - fuse.sshfs a@b:/c rw\n\
            41 29 0:45 / /x rw - ext4\n\
            nonsense\n";
        let mounts = parse(table, None);
        assert_eq!(mounts.len(), 3);
        assert_eq!(
            (mounts[0].number, mounts[0].point.as_str()),
            (DeviceNumber { major: 98, minor: 0 }, "/mnt2")
        );
        assert_eq!(mounts[1].option_devices, ["/dev/sdb1"]);
        assert_eq!((mounts[2].point.as_str(), mounts[2].kind.as_str()), ("/mnt/my disk", "fuse"));
        assert_eq!(by_id(&mounts, 29), Some(&mounts[1]));
    }

    #[test]
    fn mounts_include_the_root() {
        assert!(all_mounts(Path::new("/proc")).iter().any(|mount| mount.point == "/"));
    }
}
