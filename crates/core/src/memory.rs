//! The memory that this process may still use, limited by the machine, its cgroups and its own
//! limit.
//!
//! On Linux a successful allocation is not a guarantee: pages are allocated when they are touched,
//! and the kernel kills a process if no page is free. Callers check before a large allocation.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Return the usable memory [bytes]; `u64::MAX` if no limit can be read.
#[must_use]
pub fn available_bytes() -> u64 {
    let root = Path::new("/");
    let limits = [machine_available(root), cgroups_available(root), address_space_available(root)];
    limits.into_iter().flatten().min().unwrap_or(u64::MAX)
}

/// Return the memory that the kernel can provide without swapping.
fn machine_available(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// Return the smallest remainder of all enclosing cgroups; reclaimable file pages count as free.
fn cgroups_available(root: &Path) -> Option<u64> {
    let text = read_to_string(root.join("proc/self/cgroup")).ok()?;
    let remainders = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (mount, limit, usage, inactive) = match controllers {
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
        let cgroup = mount.join(path.trim_start_matches('/'));
        let folders = cgroup.ancestors().take_while(|folder| folder.starts_with(&mount));
        folders.filter_map(|folder| cgroup_available(folder, limit, usage, inactive)).min()
    });
    remainders.min()
}

fn cgroup_available(folder: &Path, limit: &str, usage: &str, inactive: &str) -> Option<u64> {
    let number =
        |name: &str| -> Option<u64> { read_to_string(folder.join(name)).ok()?.trim().parse().ok() };
    let (limit, usage) = (number(limit)?, number(usage)?);
    let statistics = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let inactive =
        statistics.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse().ok());
    Some(limit.saturating_sub(usage.saturating_sub(inactive.unwrap_or(0))))
}

/// Return the remaining address space below `ulimit -v`.
fn address_space_available(root: &Path) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    let succeeded = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if !succeeded || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let path: PathBuf = root.join("proc/self/statm");
    let pages: u64 = read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()?;
    // SAFETY: reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    Some(limit.rlim_cur.saturating_sub(pages * page))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Create the file tree of a machine with 8 GiB, in a container with a limit in a parent cgroup.
    fn machine(cgroup: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("create a temporary folder");
        let meminfo = "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n";
        let all = [("proc/meminfo", meminfo), ("proc/self/cgroup", cgroup)];
        for (name, text) in all.iter().chain(files) {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("create a temporary folder"))
                .expect("create the folder");
            std::fs::write(path, text).expect("write the file");
        }
        root
    }

    #[test]
    fn parent_cgroup_limits_count_and_page_cache_does_not() {
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
        assert_eq!(cgroups_available(root.path()), Some(500_000));
        assert_eq!(machine_available(root.path()), Some(8 << 30));
    }

    #[test]
    fn cgroup_v1_limits_are_read() {
        let root = machine(
            "4:cpu,cpuacct:/x\n7:memory:/x\n",
            &[
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "3000\n"),
                ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1000\n"),
            ],
        );
        assert_eq!(cgroups_available(root.path()), Some(2000));
    }

    #[test]
    fn missing_limit_files_mean_no_limit() {
        let root = tempfile::tempdir().expect("create a temporary folder");
        assert_eq!((machine_available(root.path()), cgroups_available(root.path())), (None, None));
        assert!(available_bytes() > 0);
    }
}
