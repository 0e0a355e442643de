"""Counters of the host, sampled beside the runs of real devices: why was an I/O slow?

A thread of its own reads them every `PERIOD_S`; the loop of I/Os does not know of it. The windows
between two samples are aligned with the I/Os by the monotonic clock, which times both.

**Source** proc(5), Documentation/accounting/psi.rst and Documentation/scheduler/sched-stats.rst of
Linux: file names and units.
**Faithful** A counter's change in a window, also of threads that begin during the run.
**Simplified** Threads of the run that end between two samples lose their last change. Stolen time
has the resolution of the kernel's tick, and may be counted in the next window.
**Ambiguous** Pressure of I/O is left out: the run itself causes it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

from uflip.data.host_load import CPU_WAIT, INTERRUPTS, HostRecord

PERIOD_S = 0.01
MAX_SHARE = 0.02
"""Share of one processor that the sampling may take: it becomes rarer on large machines."""
MAX_SAMPLES = 4096
"""Maximum number of samples in memory: beyond it every second one is dropped."""
MAX_FILES = 16
"""Maximum number of threads, and of processors, whose files are read for a sample."""
SLOW_CLOCK = 0.8
STEAL = 8
"""Position of the stolen time in the first line of /proc/stat."""
Counters = dict[str, int]


class HostSampler:
    """Samples the counters of the host in a thread, from `start` to `finish`.

    `proc`, `sysfs`: the roots of these file systems.
    """

    def __init__(self, proc: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> None:
        self._proc = proc
        cpus = sysfs / "devices" / "system" / "cpu"
        self._throttles = _first(cpus, "cpu*/thermal_throttle/core_throttle_count")
        self._clocks = _first(cpus, "cpufreq/policy*/scaling_cur_freq")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take the first sample, and sample from now on; threads from now on are the run's."""
        self._samples: list[tuple[int, Counters]] = []
        self._others = self._threads()
        self._waited: dict[str, tuple[int, int]] = {}
        self._totals, self._fastest, self._slow = [0, 0], 0, 0
        self._period_s = PERIOD_S
        self._stop.clear()
        self.sample(time.monotonic_ns())
        self._thread = threading.Thread(target=self._run, name="host", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._others.add(str(threading.get_native_id()))
        taken, used_s = 0, 0.0
        while not self._stop.wait(max(self._period_s, used_s / max(taken, 1) / MAX_SHARE)):
            self.sample(time.monotonic_ns())
            taken, used_s = taken + 1, time.thread_time()

    def sample(self, now_ns: int) -> None:
        """Take a sample; counters that the kernel lacks are missing."""
        self._samples.append((now_ns, dict(self._counters())))
        if len(self._samples) > MAX_SAMPLES:
            del self._samples[1::2]
            self._period_s *= 2

    def finish(self, began_ns: int) -> HostRecord:
        """Stop, take the last sample, and return the windows since `began_ns`."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.sample(time.monotonic_ns())
        return host_record(self._samples, began_ns)

    def _counters(self) -> Iterator[tuple[str, int]]:
        with suppress(OSError, ValueError, IndexError):
            stat = _read(self._proc / "stat")
            yield "steal_ticks", int(stat.split(None, STEAL + 1)[STEAL])
            yield INTERRUPTS, int(stat.partition(b"\nintr ")[2].split(None, 1)[0])
        with suppress(OSError, ValueError, IndexError):
            some = _read(self._proc / "pressure" / "memory").partition(b"\n")[0]
            yield "memory_stall_us", int(some.rpartition(b"total=")[2])
        for tid in islice(sorted(self._threads() - self._others), MAX_FILES):
            with suppress(OSError, ValueError, IndexError):
                folder = self._proc / "self" / "task" / tid
                switches = _read(folder / "status").partition(b"nonvoluntary_ctxt_switches:")[2]
                now = int(_read(folder / "schedstat").split()[1]), int(switches.split(None, 1)[0])
                before = self._waited.get(tid, (0, 0))
                self._waited[tid] = now
                for number in range(2):
                    self._totals[number] += now[number] - before[number]
        yield CPU_WAIT, self._totals[0]
        yield "preemptions", self._totals[1]
        with suppress(OSError, ValueError):
            yield "throttled", sum(int(_read(path)) for path in self._throttles)
        with suppress(OSError, ValueError):
            slowest = min((int(_read(path)) for path in self._clocks), default=0)
            self._fastest = max(self._fastest, slowest)
            self._slow += slowest < SLOW_CLOCK * self._fastest
            yield "slow_clock", self._slow

    def _threads(self) -> set[str]:
        with suppress(OSError):
            return set(os.listdir(self._proc / "self" / "task"))  # noqa: PTH208 - names, quickly
        return set()


def host_record(samples: Sequence[tuple[int, Counters]], began_ns: int) -> HostRecord:
    """Return the windows between samples (time [ns], counters) that end after `began_ns`.

    A counter that a sample lacks, or that went back, is left out.
    """
    windows = [(one, two) for one, two in pairwise(samples) if two[0] > began_ns]
    names = set.intersection(*(set(counters) for _, counters in samples))
    changes = {
        name: [two[1][name] - one[1][name] for one, two in windows] for name in sorted(names)
    }
    return HostRecord(
        [two[0] - began_ns for _, two in windows],
        {name: each for name, each in changes.items() if any(each) and min(each) >= 0},
    )


def _first(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))[:MAX_FILES]


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
