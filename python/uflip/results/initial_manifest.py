"""The manifest of a new result folder: everything that is known before the first run.

It describes the host, as a response time belongs to a device behind a kernel on a processor.
Results are made to be shared: they contain no host name, no user name and no environment.
"""

import os
import platform
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.manifest import UNKNOWN_STATE, DeviceState, Manifest, entry_of, skipped_entry_of
from uflip.data.summary import WarningSummary
from uflip.device.disk import limits_of_group
from uflip.durability import CACHED


def manifest_of(
    *,
    device: DeviceInfo,
    host: Mapping[str, object],
    harness: Mapping[str, float],
    scale: str,
    seed: int,
    pause_ns: int,
    state: DeviceState = UNKNOWN_STATE,
    target_size_bytes: int | None = None,
    repetitions: int = 1,
    method: str = "paper",
    durability: str = CACHED,
    plan: Sequence[object],
    skipped: Sequence[object] = (),
    warnings: Sequence[WarningSummary] = (),
) -> Manifest:
    """Return the manifest of a benchmark that is about to run.

    `device`, `host`, `harness`: properties of the device, the host's provenance, the cost of the
    harness per I/O. `scale`, `seed`, `pause_ns`: as planned. `state`: the state of the device.
    `target_size_bytes`: the part of the device that is used, from its beginning. `repetitions`:
    number of repetitions of each run. `method`: rule for the length of runs: "auto" or "paper".
    `durability`: durability of writes, see `uflip.durability`. `plan`, `skipped`: planned runs, and
    skipped ones with reasons: objects with the fields of their entries. `warnings`: warnings of the
    plan, plain dictionaries.
    """
    return msgspec.convert(
        {
            "uflip_version": _native.__version__,
            "folder_id": new_folder_id(),
            "created_utc": utc_now(),
            "finished_utc": None,
            "status": "running",
            "device": device,
            "host": dict(host),
            "harness": dict(harness),
            "scale": scale,
            "seed": seed,
            "pause_ns": pause_ns,
            "target_size_bytes": target_size_bytes,
            "repetitions": repetitions,
            "method": method,
            "durability": durability,
            "state": state,
            "plan": [entry_of(run) for run in plan],
            "skipped": [skipped_entry_of(each) for each in skipped],
            "warnings": [dict(entry) for entry in warnings],
            "elapsed_s": None,
        },
        Manifest,
    )


def utc_now(after: timedelta = timedelta()) -> str:
    """Return the time, or one after it, as results store it: ISO 8601, UTC, whole seconds."""
    return (datetime.now(UTC) + after).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_folder_id() -> str:
    """Draw a unique id for a result folder."""
    return secrets.token_hex(16)


# Reading a version from a checkout is optional; it must never delay a benchmark.
GIT_TIMEOUT_S = 2.0


def host_provenance(command_line: Sequence[str]) -> dict[str, object]:
    """Describe the host for a manifest; unknown values are null.

    >>> host_provenance(["uflip", "run", "null"])["command_line"]
    ['uflip', 'run', 'null']
    """
    return {
        "uflip_version": _native.__version__,
        "git_commit": _git_commit(Path(__file__).parent),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu_model": _cpu_model(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "cpus_of_group": _below(limits_of_group(None).cpus, len(os.sched_getaffinity(0))),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "cpu_governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": _first_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "load_average_1min": round(os.getloadavg()[0], 2),
        # Only the program's name: its installation path is private.
        "command_line": [Path(word).name if not i else word for i, word in enumerate(command_line)],
        "executable": Path(sys.executable).name,
    }


def processor_time(system: Path = Path("/proc/stat")) -> tuple[int, int]:
    """Return the processor time stolen by a hypervisor, and the time demanded, over all processors.

    Both are counted since boot, in ticks; zeros where the kernel does not report them. Demanded is
    worked plus stolen time: an idle processor loses nothing.
    """
    try:
        words = system.read_text(encoding="utf-8").split("\n", 1)[0].split()
        user, nice, kernel, _idle, _waiting, interrupt, soft, stolen = map(int, words[1:9])
    except (OSError, ValueError):
        return 0, 0
    return stolen, user + nice + kernel + interrupt + soft + stolen


def _below(limit: float | None, most: float) -> float | None:
    return limit if limit is not None and limit < most else None


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[0].strip()
    except (OSError, IndexError):
        return None


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu_model() -> str | None:
    """Return the name of the processor, where /proc/cpuinfo has it (on x86; not everywhere)."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        return None
    return None


@cache
def _git_commit(package: Path) -> str | None:
    """Return the commit of the checkout that tracks this package, "+changes" if files differ.

    Cached: a process runs what it has imported, whatever is checked out later.
    """
    if _git(package, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = _git(package, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(package, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+changes" if changes else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
