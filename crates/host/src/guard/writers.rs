//! Processes that have a device or file open for writing: a virtual machine, `dd`, a database. They
//! need not hold a claim or lock, but their open descriptors are visible.

use std::path::Path;

use super::attribute;
use super::machine::{DeviceNumber, Machine};
use crate::cached_stat::CachedStat;

/// Return other processes that have the block device of a number, its disk or one of its partitions
/// open for writing.
pub(crate) fn find_block_writers(machine: &Machine, number: DeviceNumber) -> Vec<String> {
    let mut numbers: Vec<DeviceNumber> =
        machine.partitions(number).map(|node| node.number).collect();
    numbers.push(number);
    numbers.extend(machine.nodes.get(&number).and_then(|node| node.disk));
    let matches = |stat: CachedStat| {
        stat.is_block_device() && numbers.contains(&DeviceNumber::from_dev(stat.node))
    };
    writers(&machine.roots.proc, &matches)
}

/// Return other processes that have the file of an inode open for writing.
pub(crate) fn find_file_writers(machine: &Machine, device: u64, inode: u64) -> Vec<String> {
    let matches = |stat: CachedStat| (stat.device, stat.inode) == (device, inode);
    writers(&machine.roots.proc, &matches)
}

fn writers(proc: &Path, matches: &dyn Fn(CachedStat) -> bool) -> Vec<String> {
    let own_id = std::process::id();
    let mut writers = vec![];
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for process in numbers.filter(|process| *process != own_id) {
        let folder = proc.join(process.to_string());
        let descriptors = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let is_writer = descriptors.into_iter().any(|entry| {
            // Pipes and sockets have no path; their attributes are not read.
            let path = std::fs::read_link(entry.path());
            path.is_ok_and(|path| path.is_absolute())
                && CachedStat::at(&entry.path()).is_some_and(matches)
                && is_open_for_writing(&folder.join("fdinfo").join(entry.file_name()))
        });
        if is_writer {
            let name = attribute(&folder.join("comm"));
            writers.push(format!("open for writing in process {process} ({name})"));
        }
    }
    writers
}

/// Return whether the line `flags:`, in octal digits, means open for writing: the access mode is in
/// the last two bits.
fn is_open_for_writing(fdinfo: &Path) -> bool {
    let fdinfo = attribute(fdinfo);
    let flags = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::guard::Roots;

    #[test]
    fn find_writers_ignores_readers() {
        let machine = Machine::examine(&Roots::default());
        let folder = tempfile::tempdir().expect("create a temporary folder");
        let path = folder.path().join("f");
        let file = File::create(&path).expect("create the file");
        let metadata = file.metadata().expect("read the metadata");
        let writers = || find_file_writers(&machine, metadata.dev(), metadata.ino());
        assert_eq!(writers(), Vec::<String>::new(), "this process is not listed");
        let mut command = Command::new("sleep");
        let spawn_with = |command: &mut Command, file: File| {
            command.arg("60").stdin(Stdio::null()).stdout(file).spawn().expect("start the process")
        };
        let mut reader = spawn_with(&mut command, File::open(&path).expect("open the file"));
        assert_eq!(writers(), Vec::<String>::new());
        let mut writer = spawn_with(&mut Command::new("sleep"), file);
        let writer_list = writers();
        reader.kill().and_then(|()| reader.wait()).expect("end the process");
        writer.kill().and_then(|()| writer.wait()).expect("end the process");
        assert_eq!(writer_list, [format!("open for writing in process {} (sleep)", writer.id())]);
    }
}
