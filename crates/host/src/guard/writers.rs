//! Processes that have a device or file open for writing: a virtual machine, `dd`, a database. They
//! need not hold a claim or lock, but their open descriptors are visible.

use std::path::Path;

use super::attribute;
use super::machine::{Machine, Number};
use crate::cached_stat::CachedStat;

/// Return other processes that have the block device of a number, its disk or one of its partitions
/// open for writing.
pub(crate) fn find_block_writers(machine: &Machine, number: Number) -> Vec<String> {
    let mut numbers: Vec<Number> = machine.partitions(number).map(|node| node.number).collect();
    numbers.push(number);
    numbers.extend(machine.nodes.get(&number).and_then(|node| node.disk));
    let is_it =
        |stat: CachedStat| stat.is_block_device() && numbers.contains(&Number::from_dev(stat.node));
    writers(&machine.roots.proc, &is_it)
}

/// Return other processes that have the file of an inode open for writing.
pub(crate) fn find_file_writers(machine: &Machine, device: u64, inode: u64) -> Vec<String> {
    let is_it = |stat: CachedStat| (stat.device, stat.inode) == (device, inode);
    writers(&machine.roots.proc, &is_it)
}

fn writers(proc: &Path, is_it: &dyn Fn(CachedStat) -> bool) -> Vec<String> {
    let ours = std::process::id();
    let mut found = vec![];
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for process in numbers.filter(|process| *process != ours) {
        let folder = proc.join(process.to_string());
        let open = std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let written = open.into_iter().any(|entry| {
            // Pipes and sockets have no path; their attributes are not read.
            let path = std::fs::read_link(entry.path());
            path.is_ok_and(|path| path.is_absolute())
                && CachedStat::at(&entry.path()).is_some_and(is_it)
                && is_open_for_writing(&folder.join("fdinfo").join(entry.file_name()))
        });
        if written {
            let name = attribute(&folder.join("comm"));
            found.push(format!("open for writing in process {process} ({name})"));
        }
    }
    found
}

/// Return whether the line `flags:`, in octal digits, says open for writing: the access mode is in
/// the last two bits.
fn is_open_for_writing(about: &Path) -> bool {
    let about = attribute(about);
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
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
    fn writers_are_found_and_readers_are_not() {
        let machine = Machine::look(&Roots::default());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let ours = File::create(&path).expect("made");
        let metadata = ours.metadata().expect("it is there");
        let writers = || find_file_writers(&machine, metadata.dev(), metadata.ino());
        assert_eq!(writers(), Vec::<String>::new(), "we ourselves do not count");
        let mut start = Command::new("sleep");
        let with = |command: &mut Command, file: File| {
            command.arg("60").stdin(Stdio::null()).stdout(file).spawn().expect("started")
        };
        let mut reader = with(&mut start, File::open(&path).expect("there"));
        assert_eq!(writers(), Vec::<String>::new());
        let mut writer = with(&mut Command::new("sleep"), ours);
        let found = writers();
        reader.kill().and_then(|()| reader.wait()).expect("over");
        writer.kill().and_then(|()| writer.wait()).expect("over");
        assert_eq!(found, [format!("open for writing in process {} (sleep)", writer.id())]);
    }
}
