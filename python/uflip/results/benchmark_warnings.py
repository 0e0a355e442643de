"""Warnings about a benchmark as a whole: device, path to the disk, host, files, interference.

`uflip.results.warnings` gathers those about single runs.
"""

from collections.abc import Sequence
from dataclasses import asdict

from uflip.data.device import DeviceInfo, twin_advice, twin_numbers, twin_text
from uflip.data.manifest import (
    UNKNOWN_STATE,
    After,
    DeviceState,
    Disk,
    Host,
    Interference,
    Manifest,
    StoredWarning,
    host_of,
)
from uflip.durability import CACHED
from uflip.results.integrity import UNPROVEN, FolderVerification
from uflip.results.run_warnings import CHECKS
from uflip.results.statistics import MARKS

# Half of the processors are busy: the submitting thread may have to share one.
BUSY_LOAD_PER_CPU = 0.5
# NVMe's Percentage Used at the end of the life that the vendor rates.
RATED_PERCENT = 100
# Blocks of a flash device are multiples of this, whatever the sector size [bytes].
PAGE = 4096
# Disks are rated up to 70 °C, and throttle above.
HOT_CELSIUS = 70
# Above this share one I/O in a hundred may be late for stolen time: the p99 is then the host's.
STOLEN_SHARE = 0.01
# Governors that change the clock rate of the processor with its load.
CHANGING = ("powersave", "ondemand", "conservative", "schedutil")
ENVIRONMENT_CODES = (
    "volatile_cache", "split_ios", "misaligned_partition", "scheduler_between", "changing_pace",
    "hot_disk", "limited_by_group", "stolen_time",
)  # fmt: skip


def benchmark_warnings(content: Manifest) -> list[StoredWarning]:
    """Return the warnings about a benchmark that its manifest shows."""
    return [
        *condition_warnings(content.device, host_of(content.host), content.state),
        *environment_warnings(content),
        *interference_warnings(content.interference),
    ]


def condition_warnings(device: DeviceInfo, host: Host, state: DeviceState) -> list[StoredWarning]:
    """Return warnings that concern every run: device state, how it was opened, load of the host."""
    warnings: list[StoredWarning] = []
    used = device.details.wear.percentage_used if device.details.wear else None
    if used is not None and used > RATED_PERCENT:
        warnings.append(
            StoredWarning(
                "beyond_endurance",
                f"The device reports that {used:.4g} % of its rated endurance is used",
                {"percentage_used": used},
                "read retries, failed programs and fewer spare blocks may affect these results: "
                "they do not represent a less worn device",
            )
        )
    warnings += twin_warnings(device)
    if not device.real:
        return warnings
    if state.state_id is None:
        warnings.append(StoredWarning("state_not_enforced", *_state_warning_parts(state)))
    if device.buffered:
        warnings.append(
            StoredWarning(
                "buffered_io",
                "The I/Os went through the page cache: response times include cache hits in memory",
                {"io": device.io},
                "measure without --buffered, on a file system that supports O_DIRECT; only "
                "--durability fua or flush:N ensures that writes reach the device",
            )
        )
    if device.data == "zeros":
        warnings.append(
            StoredWarning(
                "compressible_data",
                "All data written was zeros, which some devices compress or do not store at all",
                {"data": "zeros"},
                "measure with --data random, unless compression is the object of the study",
            )
        )
    allocated = device.details.allocated_bytes
    if allocated is not None and allocated < device.capacity_bytes:
        warnings.append(
            StoredWarning(
                "sparse_file",
                "The file had holes when the benchmark began: reads of them never reach the device",
                {"allocated_bytes": allocated, "capacity_bytes": device.capacity_bytes},
                "write the whole file once before, or let --size create it",
            )
        )
    if (backend := host.virtual_disk) is not None:
        warnings.append(
            StoredWarning(
                "virtual_disk",
                f"The disk is virtual: {backend}",
                {"virtual_disk": backend},
                "the results include caches, limits and other guests of its host: they describe "
                "what the host offers now; repeat them at another time, and compare only with "
                "runs on the same kind of disk",
            )
        )
    load, cpus = host.load_average_1min, host.cpus_usable or host.cpus
    if load is not None and cpus and load > BUSY_LOAD_PER_CPU * cpus:
        warnings.append(
            StoredWarning(
                "busy_host",
                f"The host was busy when the benchmark began: load {load:g} on {cpus} processors",
                {"load_average_1min": load, "cpus": cpus},
                "repeat on an idle host; delays of the host appear as response times",
            )
        )
    return warnings


def twin_warnings(device: DeviceInfo) -> list[StoredWarning]:
    """Return a warning with the error of a twin."""
    twin = device.details.twin
    if twin is None:
        return []
    message = f"The device is {twin_text(twin)}"
    return [StoredWarning("twin", message, {**twin_numbers(twin)}, twin_advice(twin))]


def _state_warning_parts(state: DeviceState) -> tuple[str, dict[str, object], str]:
    """Return message, numbers (none) and advice for a state that was not enforced."""
    comparable = "compare only with runs on a device that was filled in the same way"
    if state == UNKNOWN_STATE:
        cause = "The initial state of the device is unknown: earlier writes"
        return f"{cause} affect its response times", {}, comparable
    return (
        "The device was not preconditioned: earlier writes affect its response times",
        {},
        "use `uflip prepare` before (`uflip run` does it itself, except with --state as-is); until "
        f"then {comparable}",
    )


def interference_warnings(interference: Interference | None) -> list[StoredWarning]:
    """Return warnings about the pause between runs (uFLIP §4.3)."""
    if interference is None or interference["over"]:
        return []
    return [
        StoredWarning(
            "pause_too_short",
            "After random writes, even the last sequential reads were slower than those before: "
            "the time for which a run affects the next one is unknown",
            {
                "reads_affected": interference["reads_affected"],
                "lingering_ns": interference["lingering_ns"],
                "pause_ns": interference["pause_ns"],
            },
            "repeat with a longer pause (--pause), or in the standard scale, which reads longer",
        )
    ]


def file_warnings(verification: FolderVerification) -> list[StoredWarning]:
    """Return warnings about damaged files and about files that cannot be verified."""
    warnings = []
    if verification.lost:
        named = "; ".join(f"{each.file}: {each.reason}" for each in verification.lost[:3])
        more = f" and {len(verification.lost) - 3} more" if len(verification.lost) > 3 else ""
        warnings.append(
            StoredWarning(
                "damaged",
                f"{len(verification.lost)} of {len(verification.verdicts)} files are damaged or "
                f"missing, and are left out ({named}{more})",
                {"files": [asdict(each) for each in verification.lost]},
                "`uflip run --resume FOLDER` measures lost runs again; `uflip verify FOLDER` lists "
                "the status of each file",
            )
        )
    unproven = [each for each in verification.verdicts if each.state == UNPROVEN]
    if unproven:
        warnings.append(
            StoredWarning(
                "unproven",
                f"{len(unproven)} of {len(verification.verdicts)} files cannot be verified "
                f"({unproven[0].reason})",
                {"files": [each.file for each in unproven]},
                "the files are readable and consistent, but the ledger, which has their digests, "
                "is damaged or missing",
            )
        )
    return warnings


# Warnings that follow from data and conditions: a resumed benchmark computes them again.
CONDITIONS = (
    "pause_too_short",
    "beyond_endurance",
    "state_not_enforced",
    "buffered_io",
    "compressible_data",
    "sparse_file",
    "busy_host",
    "virtual_disk",
    "out_of_time",
)


def plan_warnings(warnings: Sequence[StoredWarning]) -> list[StoredWarning]:
    """Return the stored warnings that existed before the first run."""
    recomputed = {
        *MARKS,
        "rate_limited",
        "drift",
        "repetitions_disagree",
        "consistency",
        *CONDITIONS,
        *ENVIRONMENT_CODES,
        *(check.code for check in CHECKS),
    }
    return [warning for warning in warnings if warning.code not in recomputed]


def environment_warnings(manifest: Manifest) -> list[StoredWarning]:
    """Return warnings about the path to a real device: queue, cache, partition, processor.

    They use what was recorded when the benchmark began (`device.disk`, `initial_manifest`).
    A value that could not be read gives no warning.
    """
    if not manifest.device.real:
        return []
    host = host_of(manifest.host)
    disk, after = host.disk or Disk(), host.after or After()
    warnings = [
        _cache(manifest, disk),
        _splits(manifest, disk),
        _partition(disk),
        _scheduler(manifest, disk),
        _governor(host),
        _temperature(disk, after.temperature_celsius),
        _group(disk, host),
        _stolen(after.stolen_share),
    ]
    return [each for each in warnings if each is not None]


def _cache(manifest: Manifest, disk: Disk) -> StoredWarning | None:
    writes = any(entry.spec.writes for entry in manifest.plan)
    if disk.write_cache != "write back" or manifest.durability != CACHED or not writes:
        return None
    return StoredWarning(
        "volatile_cache",
        "Writes completed when they were in the cache of the disk, which may be volatile",
        {"write_cache": disk.write_cache, "durability": CACHED},
        "these are the response times of an application that does not flush; measure writes that "
        "survive a power loss with --durability fua or flush:N",
    )


def _splits(manifest: Manifest, disk: Disk) -> StoredWarning | None:
    most = disk.io_bytes_max
    longest = [max((part.io_size or 0 for part in e.spec.parts), default=0) for e in manifest.plan]
    split = [size for size in longest if most and size > most]
    if not split:
        return None
    return StoredWarning(
        "split_ios",
        f"I/Os of {len(split)} runs were larger than {most} bytes, the limit of one request of the "
        "kernel to this disk",
        {"io_bytes_max": most, "longest_bytes": max(split), "runs": len(split)},
        "the kernel split each of them into several requests: raise max_sectors_kb in "
        f"/sys/block/{disk.name}/queue, or omit these sizes",
    )


def _partition(disk: Disk) -> StoredWarning | None:
    begin = disk.partition_begin_bytes or 0
    block = max(disk.physical_block_bytes or PAGE, PAGE)
    if begin % block == 0:
        return None
    return StoredWarning(
        "misaligned_partition",
        f"The partition begins at byte {begin}, within a block of {block} bytes",
        {"partition_begin_bytes": begin, "block_bytes": block},
        "every I/O touches one block more than necessary: measure the whole disk, or move the "
        "partition to a multiple of 1 MiB",
    )


def _scheduler(manifest: Manifest, disk: Disk) -> StoredWarning | None:
    scheduler = disk.scheduler
    several = sum(
        entry.spec.depth > 1 or any(part.processes > 1 for part in entry.spec.parts)
        for entry in manifest.plan
    )
    if scheduler in (None, "none") or not several:
        return None
    return StoredWarning(
        "scheduler_between",
        f"In {several} runs with several I/Os in flight the I/O scheduler of the kernel, "
        f"{scheduler}, chose the order in which the disk received them",
        {"scheduler": scheduler, "runs": several},
        "the results include reordering and merging by the kernel; disable both with: echo none > "
        f"/sys/block/{disk.name}/queue/scheduler",
    )


def _governor(host: Host) -> StoredWarning | None:
    governor = host.cpu_governor
    if governor not in CHANGING:
        return None
    return StoredWarning(
        "changing_pace",
        f"The processor changed its frequency with its load (governor {governor})",
        {"cpu_governor": governor},
        "a low frequency adds microseconds to each I/O: measure with the governor performance "
        "(`cpupower frequency-set -g performance`)",
    )


def _temperature(disk: Disk, after: float | None) -> StoredWarning | None:
    readings = {"began": disk.temperature_celsius, "ended": after}
    measured = {when: celsius for when, celsius in readings.items() if celsius is not None}
    if max(measured.values(), default=0) < HOT_CELSIUS:
        return None
    hot = ", ".join(f"{celsius:g} °C when the benchmark {at}" for at, celsius in measured.items())
    return StoredWarning(
        "hot_disk",
        f"The disk was hot: {hot}",
        {"temperature_celsius": max(measured.values())},
        "disks slow down when they are hot: cool it, wait, and measure again",
    )


def _group(disk: Disk, host: Host) -> StoredWarning | None:
    limits: dict[str, float] = dict(disk.group_rates)
    if host.cpus_of_group is not None:
        limits["cpus"] = host.cpus_of_group
    if not limits:
        return None
    text = ", ".join(f"{name} {limit:g}" for name, limit in limits.items())
    return StoredWarning(
        "limited_by_group",
        f"The control group of the benchmark has limits: {text}",
        limits,
        "runs that reached a limit measured it instead of the device: repeat outside of the "
        "container or service, or without cpu.max and io.max (CPUQuota=, IOReadBandwidthMax= of "
        "systemd)",
    )


def _stolen(share: float | None) -> StoredWarning | None:
    if share is None or share <= STOLEN_SHARE:
        return None
    return StoredWarning(
        "stolen_time",
        f"The host gave {share:.1%} of the processor time of this virtual machine to other guests",
        {"stolen_share": share, "limit": STOLEN_SHARE},
        f"above {STOLEN_SHARE:.0%}, one I/O in {1 / STOLEN_SHARE:.0f} can be late because no "
        "processor submitted it or detected its completion: prefer medians to high percentiles, "
        "or measure on a machine without other guests",
    )
