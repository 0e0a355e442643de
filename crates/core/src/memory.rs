//! How much memory this process may still use: what the machine, its cgroups and its own limit leave.
//!
//! An allocation that succeeds is no promise on Linux: pages are found when they are touched, and where
//! none are left some process is killed. So whoever wants much asks first.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Memory that may still be used [bytes]; without any limit that can be found, all there is.
#[must_use]
pub fn available_bytes() -> u64 {
    let root = Path::new("/");
    let left = [of_machine(root), of_cgroups(root), of_limit(root)];
    left.into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// What the kernel says can be had without swapping.
fn of_machine(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// The least that any of the cgroups around this process leaves, files that can be dropped included.
fn of_cgroups(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/self/cgroup")).ok()?;
    let left = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (mount, limit, used, files) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
            _ if controllers.split(',').any(|name| name == "memory") => (
                "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ),
            _ => return None,
        };
        let mount = root.join(mount);
        let own = mount.join(path.trim_start_matches('/'));
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&mount));
        folders.filter_map(|folder| left_in(folder, limit, used, files)).min()
    });
    left.min()
}

fn left_in(folder: &Path, limit: &str, used: &str, files: &str) -> Option<u64> {
    let number =
        |name: &str| -> Option<u64> { read_to_string(folder.join(name)).ok()?.trim().parse().ok() };
    let (limit, used) = (number(limit)?, number(used)?);
    let statistics = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix(files)?.trim().parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(files.unwrap_or(0))))
}

/// What `ulimit -v` leaves of the address space.
fn of_limit(root: &Path) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place to write to.
    let told = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if !told || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let path: PathBuf = root.join("proc/self/statm");
    let pages: u64 = read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    Some(limit.rlim_cur.saturating_sub(pages * page))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree as a machine with 8 GiB has it, in a container with a limit on the way.
    fn machine(cgroup: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let meminfo = "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n";
        let all = [("proc/meminfo", meminfo), ("proc/self/cgroup", cgroup)];
        for (name, text) in all.iter().chain(files) {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        root
    }

    #[test]
    fn a_limit_anywhere_above_counts_and_files_that_can_be_dropped_do_not() {
        let root = machine(
            "0::/a/b\n",
            &[
                ("sys/fs/cgroup/a/memory.max", "1000000\n"),
                ("sys/fs/cgroup/a/memory.current", "700000\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 200000\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.current", "700000\n"),
            ],
        );
        assert_eq!(of_cgroups(root.path()), Some(500_000));
        assert_eq!(of_machine(root.path()), Some(8 << 30));
    }

    #[test]
    fn the_first_version_of_cgroups_is_known_too() {
        let root = machine(
            "4:cpu,cpuacct:/x\n7:memory:/x\n",
            &[
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "3000\n"),
                ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1000\n"),
            ],
        );
        assert_eq!(of_cgroups(root.path()), Some(2000));
    }

    #[test]
    fn where_nothing_is_told_nothing_is_known() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!((of_machine(root.path()), of_cgroups(root.path())), (None, None));
        assert!(available_bytes() > 0);
    }
}
