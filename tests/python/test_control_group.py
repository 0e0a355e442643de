"""Are limits of control groups read, from this kernel (version 1), and from files in the documented
layout of version 2?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stored
from msgspec import structs

from uflip.device.disk import GroupLimits, limits_of_group
from uflip.results.benchmark_warnings import STOLEN_SHARE, environment_warnings
from uflip.results.initial_manifest import processor_time

DISK = (259, 3)


def hierarchy(tmp_path: Path, group: str, files: dict[str, str], root: str = "/") -> Path:
    """Lay out a process in `group` of version 2; `files` are by their path below the mount."""
    mount, process = tmp_path / "mount", tmp_path / "process"
    process.mkdir()
    mount.mkdir()
    for name, text in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(text)
    (process / "cgroup").write_text(f"0::{group}\n")
    (process / "mountinfo").write_text(
        "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
        f"30 22 0:26 {root} {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    return process


def test_no_limit_files_give_no_limits(tmp_path: Path) -> None:
    process = hierarchy(tmp_path, "/a.slice/b", {"a.slice/b/cpu.max": "max 100000\n"})
    assert limits_of_group(DISK, process) == GroupLimits()
    assert limits_of_group(DISK, tmp_path / "nowhere") == GroupLimits()


def test_tightest_limit_of_the_ancestors_applies(tmp_path: Path) -> None:
    files = {
        "a.slice/cpu.max": "50000 100000\n",
        "a.slice/b/cpu.max": "300000 200000\n",
        "other/cpu.max": "1000 100000\n",
        "a.slice/io.max": "8:16 rbps=2097152 wbps=max riops=max wiops=120\n"
        "259:3 rbps=max wbps=1000000 riops=90 wiops=max\n",
        "a.slice/b/io.max": "259:3 rbps=max wbps=3000000 riops=80 wiops=max\n",
    }
    process = hierarchy(tmp_path, "/a.slice/b", files)
    assert limits_of_group(DISK, process) == GroupLimits(0.5, {"wbps": 1_000_000, "riops": 80})
    assert limits_of_group((8, 16), process).disk == {"rbps": 2_097_152, "wiops": 120}
    assert limits_of_group(None, process) == GroupLimits(0.5)


def test_container_mount_starts_at_its_own_group(tmp_path: Path) -> None:
    files = {"cpu.max": "150000 100000\n"}
    process = hierarchy(tmp_path, "/docker/abc", files, root="/docker/abc")
    assert limits_of_group(None, process).cpus == 1.5


@pytest.fixture
def limited_group(tmp_path: Path) -> Iterator[Path]:
    """Make a control group of version 1 on this machine, with half a processor."""
    group = Path("/sys/fs/cgroup/cpu") / f"uflip-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control groups of version 1 can be made here: {error}")
    try:
        (group / "cpu.cfs_quota_us").write_text("50000")
        (group / "cpu.cfs_period_us").write_text("100000")
        yield group
    finally:
        group.rmdir()


def test_limits_of_this_kernel_are_read(limited_group: Path) -> None:
    program = (
        "from pathlib import Path; import sys, os\n"
        "from uflip.device.disk import limits_of_group\n"
        "before = limits_of_group(None).cpus\n"
        "(Path(sys.argv[1]) / 'cgroup.procs').write_text(str(os.getpid()))\n"
        "print(before, limits_of_group(None).cpus)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, limited_group], capture_output=True, text=True, check=True
    )
    before, after = process.stdout.split()
    assert after == "0.5"
    assert before != after


def warning_codes(host: dict[str, Any], tmp_path: Path) -> list[str]:
    manifest = stored.results(tmp_path / "r").manifest
    real = stored.device_info("file", io="O_DIRECT")
    warnings = environment_warnings(structs.replace(manifest, device=real, host=host))
    assert all(warning.numbers and warning.advice for warning in warnings)
    return [warning.code for warning in warnings]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ({"cpus_of_group": 1.5}, ["limited_by_group"]),
        ({"cpus_of_group": None}, []),
        ({"disk": {"group_rates": {"wbps": 1_000_000}}}, ["limited_by_group"]),
        ({"disk": {"group_rates": {}}}, []),
        ({"after": {"stolen_share": 2 * STOLEN_SHARE}}, ["stolen_time"]),
        ({"after": {"stolen_share": STOLEN_SHARE}}, []),
        ({"after": {"stolen_share": None}}, []),
    ],
)
def test_resource_limits_give_warnings(
    host: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    assert warning_codes(host, tmp_path) == expected


def test_stolen_time_is_read_from_proc_stat(tmp_path: Path) -> None:
    """proc(5): user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 5000 70 1 2 40 50 6\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert processor_time(stat) == (40, 100 + 20 + 30 + 1 + 2 + 40)
    stat.write_text("cpu  100 20\n")
    assert processor_time(stat) == (0, 0)
    stolen, runnable = processor_time()
    assert 0 <= stolen <= runnable
