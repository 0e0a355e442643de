"""Warnings about the path between benchmark and disk: queue, cache, partition, processor.

They use what was recorded when the benchmark began (`device.block_queue`, `results.provenance`),
and do not concern the device itself. A value that could not be read gives no warning.
"""

from uflip.data.manifest import After, Disk, Host, Manifest, host_of
from uflip.durability import CACHED
from uflip.results.warnings import StoredWarning

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


def environment_warnings(manifest: Manifest) -> list[StoredWarning]:
    """Return warnings about the path to a real device; none if no disk was measured."""
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
