"""Timers, rate limits, trends and virtual disks: are limits of the host reported?

The oracle is a queue of its own: one I/O at a time, a token bucket, and a timer that looks at it.
"""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import start, uflip
from fuse_file import stop_process
from msgspec import structs
from numpy.typing import NDArray

from uflip.benchmark import execute
from uflip.benchmark.plan import plan_pattern
from uflip.benchmark.prepare import AS_IS
from uflip.data.device import DeviceWear
from uflip.data.manifest import Disk
from uflip.data.spec import Basic
from uflip.device.disk import (
    disk_below,
    sysfs_path,
    temperature_of,
    virtual_disk_kind,
    virtual_disk_of,
)
from uflip.device.opener import open_device
from uflip.results import Results, summary
from uflip.results.benchmark_warnings import environment_warnings
from uflip.results.rate_limit import (
    TICKS_PER_S,
    TREND_Z,
    RunRate,
    find_rate_limit,
    find_ticks,
    find_trend,
    steady_rate,
)
from uflip.results.run_warnings import CHECKS, RunArrays
from uflip.spec import baseline, basic
from uflip.web import slow_ios
from uflip.web.open_run import OpenRun

Floats = NDArray[np.float64]
MS = 1e6


def throttled(
    service_ns: Floats, per_s: float, burst: float, ticks_per_s: float | None
) -> tuple[Floats, Floats]:
    """Submit and response times of I/Os that cost a token each.

    A token comes every 1 / `per_s`; the bucket holds `burst` of them and is full at first. An I/O
    that finds none waits until there is one, and beyond that until a timer expires.
    """
    now, tokens, filled_at = 0.0, burst, 0.0
    submit, response = [], []
    for service in service_ns:
        submit.append(now)
        tokens, filled_at = min(burst, tokens + (now - filled_at) * per_s / 1e9), now
        begin = now
        if tokens < 1:
            begin = now + (1 - tokens) * 1e9 / per_s
            if ticks_per_s is not None:
                tick = 1e9 / ticks_per_s
                begin = math.ceil(begin / tick) * tick
            tokens, filled_at = min(burst, tokens + (begin - now) * per_s / 1e9), begin
        tokens -= 1
        now = begin + service
        response.append(now - submit[-1])
    return np.array(submit), np.array(response)


def service(mean_ns: float, n: int, seed: int) -> Floats:
    return np.random.default_rng(seed).gamma(8, mean_ns / 8, n)


# Timers


def in_slices(service_ns: Floats, per_slice: int, slice_ns: float) -> tuple[Floats, Floats]:
    """Return submit and response times where each time slice has room for `per_slice` I/Os."""
    now, remaining, slice_end = 0.0, per_slice, slice_ns
    submit, response = [], []
    for service in service_ns:
        submit.append(now)
        if now >= slice_end:
            slice_end, remaining = (now // slice_ns + 1) * slice_ns, per_slice
        if remaining == 0:
            now, remaining, slice_end = slice_end, per_slice, slice_end + slice_ns
        remaining -= 1
        now += service
        response.append(now - submit[-1])
    return np.array(submit), np.array(response)


@pytest.mark.parametrize("ticks_per_s", TICKS_PER_S)
@pytest.mark.parametrize("share", [0.3819, 0.7071, 1.6180])
def test_rate_limit_checked_by_timer_is_found(ticks_per_s: int, share: float) -> None:
    """The service takes a tenth of the interval; a token more or less often than a tick."""
    quick = service(0.1 * 1e9 / ticks_per_s, 600, 1)
    timer = find_ticks(*throttled(quick, share * ticks_per_s, 8, ticks_per_s))
    assert timer is not None
    assert timer.tick_ns == pytest.approx(1e9 / ticks_per_s)
    assert timer.share_of_time > 0.5


def test_rate_limit_in_time_slices_is_found() -> None:
    """A rate limit like blk-throttle's: forty I/Os at once, and none for the rest of 0.1 s."""
    timer = find_ticks(*in_slices(service(0.15 * MS, 800, 1), 40, 100 * MS))
    assert timer is not None
    assert timer.ios == 19
    assert timer.share_of_time > 0.9


def closed_loop(times: Floats, gap_ns: float = 3000.0) -> tuple[Floats, Floats]:
    return np.concatenate([[0], np.cumsum(times + gap_ns)[:-1]]), times


@pytest.mark.parametrize(
    "times",
    [
        np.random.default_rng(1).exponential(4 * MS, 4000),
        np.random.default_rng(2).uniform(0.05 * MS, 12 * MS, 4000),
        np.random.default_rng(3).lognormal(np.log(0.9 * MS), 0.6, 4000),
        np.random.default_rng(5).normal(4.0 * MS, 0.05 * MS, 4000),
        np.random.default_rng(6).normal(1.0 * MS, 0.01 * MS, 9000),
        np.tile([0.4, 0.4, 27.0], 1000) * MS * np.random.default_rng(8).normal(1, 0.01, 3000),
        service(1.0 * MS, 4000, 4),
        np.concatenate([np.full(3990, 0.1), np.full(10, 4.0)]) * MS,
    ],
    ids=["exponential", "uniform", "lognormal", "4 ms", "1 ms", "mtron", "gamma", "few"],
)  # fmt: skip
def test_device_noise_is_no_timer(times: Floats) -> None:
    assert find_ticks(*closed_loop(times)) is None


def test_random_series_show_no_timer() -> None:
    """Five hundred series of two modes: each with one of a million, for four intervals."""
    rng = np.random.default_rng(7)
    for _ in range(500):
        slow = rng.uniform(0.5, 40) * MS
        noise = rng.normal(1, rng.uniform(0.02, 0.5), 512).clip(0.1)
        times = np.where(rng.random(512) < 0.5, slow / 40, slow) * noise
        assert find_ticks(*closed_loop(times)) is None


BLKIO = Path("/sys/fs/cgroup/blkio")

THROTTLED = """
import json, sys
import numpy as np
from uflip.results.rate_limit import find_rate_limit, steady_rate
from uflip.results.rate_limit import find_ticks
from uflip.device.opener import open_device
from uflip.data.spec import read_spec
from uflip.spec import baseline

paces, ticks = [], []
with open_device(f"file:{sys.argv[1]}", size=16 << 20) as device:
    open(f"{sys.argv[2]}/cgroup.procs", "w").write("0")
    for size in (512, 4096, 65536):
        trace = device.run(baseline("RR", io_size=size, io_count=1000))
        submit = np.asarray(trace.column("submit_ns"))
        times = np.asarray(trace.column("response_time_ns"))
        ticks.append(find_ticks(submit, times) is not None)
        paces.append(steady_rate(str(size), read_spec(trace.spec_json), submit, times))
limit = find_rate_limit(paces)
rate = None if limit is None else [limit.unit, limit.per_s]
print(json.dumps([ticks, rate, (submit[-1] + times[-1]) / 1e9]))
"""


def test_kernel_control_group_limit_is_found(tmp_path: Path) -> None:
    """A file on a disk that is limited to 500 reads a second for one process."""
    number = tmp_path.stat().st_dev
    group = BLKIO / f"uflip-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group for block I/O: {error}")
    try:
        rule = f"{os.major(number)}:{os.minor(number)} 500"
        try:
            (group / "blkio.throttle.read_iops_device").write_text(rule)
        except OSError as error:
            pytest.skip(f"no limit for the disk of {tmp_path}: {error}")
        process = subprocess.run(
            [sys.executable, "-c", THROTTLED, tmp_path / "t.bin", group],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        ticks, rate, lasted = json.loads(process.stdout)
        if lasted < 1.5:
            pytest.skip("this kernel takes the limit and does not keep it")
        # A busy host disturbs the one or the other.
        assert any(ticks) or rate is not None
        assert rate is None or rate[0] == "ios_per_s"
    finally:
        group.rmdir()


# Rates


def runs(**options: Any) -> list[RunRate]:
    """Reads and writes of four sizes, by themselves or limited."""
    rates = []
    for mode, size in itertools.product(("read", "write"), (512, 4096, 32768, 262144)):
        mean_ns = (60e3 if mode == "read" else 250e3) + size * (4.0 if mode == "read" else 9.0)
        times = service(mean_ns, 512, size)
        submit = np.concatenate([[0], np.cumsum(times)[:-1]])
        if "per_s" in options:
            tokens = size if options["unit"] == "bytes_per_s" else 1
            submit, times = throttled(times, options["per_s"] / tokens, 40, None)
        label = "RR" if mode == "read" else "RW"
        spec = baseline(label, io_size=size, time="consecutive")
        pace = steady_rate(f"{mode}-{size}", spec, submit, times)
        assert pace is not None
        rates.append(pace)
    return rates


@pytest.mark.parametrize(("unit", "per_s"), [("ios_per_s", 300.0), ("bytes_per_s", 1.0e6)])
def test_common_rate_limit_is_found(unit: str, per_s: float) -> None:
    limit = find_rate_limit(runs(unit=unit, per_s=per_s))
    assert limit is not None
    assert limit.unit == unit
    assert limit.per_s == pytest.approx(per_s, rel=0.01)
    assert len(limit.runs) >= 6


def test_device_limited_rates_are_no_rate_limit() -> None:
    assert find_rate_limit(runs()) is None
    same = [pace for pace in runs(unit="ios_per_s", per_s=300.0) if pace.mode == "write"]
    assert find_rate_limit(same) is None, "writes alone may be equal: that of a page, or of a merge"
    small = [RunRate(str(size), "read", size, 4000.0) for size in (512, 1024, 2048, 4096)]
    assert find_rate_limit(small) is None, "reads of a page may be equal"


def test_exceeded_rate_is_no_limit() -> None:
    """A host that takes 60 µs for any small I/O, one at a time; several at a time are quicker."""
    alike = [
        RunRate(f"{mode}-{size}", mode, size, 16_000.0)
        for mode in ("read", "write")
        for size in (512, 4096, 16384)
    ]
    limit = find_rate_limit(alike)
    assert limit is not None
    assert len(limit.runs) == 6
    assert find_rate_limit([*alike, RunRate("at it", "write", 32768, 16_500.0)]) is not None
    assert find_rate_limit([*alike, RunRate("read-16", "read", 32768, 54_000.0)]) is None
    reads = [RunRate(f"r-{size}", "read", size, 500.0) for size in (512, 4096, 32768)]
    assert find_rate_limit([*reads, RunRate("w", "write", 4096, 9_000.0)]) is not None, (
        "of reads alone"
    )


def test_rates_of_parallel_processes_are_summed() -> None:
    spec = baseline("SR", io_size=512, time="consecutive", parallel_degree=4)
    submit = np.tile(np.arange(100) * 1e5, 4)
    rate = steady_rate("a", spec, submit, np.full(400, 1e5))
    assert rate is not None
    assert rate.ios_per_s == pytest.approx(40_000, rel=0.01)


def test_steady_rate_needs_consecutive_ios() -> None:
    times = np.full(100, 1e5)
    submit = np.arange(100) * 1e5
    spec = baseline("SR", io_size=512, time="consecutive")
    assert steady_rate("a", spec, submit, times) is not None
    assert steady_rate("a", spec.but(time="pause", pause=5), submit, times) is None
    assert steady_rate("a", spec.but(parallel_degree=2), submit, times) is None, "too few of each"
    assert steady_rate("a", spec, submit[:9], times[:9]) is None


# Trends


def test_trend_is_rarely_found_by_chance() -> None:
    """Of all orders of six means, only the rare ones are reported."""
    counts = dict.fromkeys((True, False), 0)
    orders = list(itertools.permutations([100.0, 110.0, 121.0, 133.0, 146.0, 161.0]))
    for order in orders:
        trend = find_trend({"SW": order, "RW": order})
        if trend is not None:
            counts[trend.z > 0] += 1
            assert abs(trend.z) >= TREND_Z
    assert counts[True] == counts[False] > 0
    assert sum(counts.values()) / len(orders) < 0.03


def test_small_changes_and_few_values_are_no_trend() -> None:
    assert find_trend({"SW": [100.0 + i for i in range(7)]}) is None, (
        "no pair differs by 2 % enough"
    )
    assert find_trend({"SW": [100.0, 200.0, 400.0]}) is None
    assert find_trend({}) is None
    trend = find_trend({"SW": [100.0 * 1.2**i for i in range(8)], "RW": [5.0, 5.0]})
    assert trend is not None
    assert (trend.pattern, trend.first_ns, trend.measurements) == ("SW", 100.0, 8)
    falling = find_trend({"SW": [100.0 * 0.8**i for i in range(8)]})
    assert falling is not None
    assert falling.z < 0


def test_change_is_that_of_most_measurements() -> None:
    # Steps of 3 %: the medians of the halves are four steps apart, all eight values seven.
    rising = [100.0 * 1.03**i for i in range(8)]
    trend = find_trend({"SW": rising})
    assert trend is not None
    assert trend.change == pytest.approx(1.03**8 - 1)
    few = find_trend({"SW": rising, "RW": [100.0, 100.0, 300.0, 400.0]})
    assert few is not None
    assert few.change == pytest.approx(trend.change)
    falling = find_trend({"SW": rising[::-1]})
    assert falling is not None
    assert falling.change == pytest.approx(1.03**-8 - 1)


def test_writes_on_a_drifting_device_have_not_converged(tmp_path: Path) -> None:
    """Random writes to sequential data get slower while blocks fill with old copies."""
    runs = [
        stored.baseline_run(number, pattern, io_count=50, target_size=96 << 20, seed=number)
        for number, pattern in enumerate(8 * ["RR"] + 24 * ["RW"], 1)
    ]
    drifting = stored.results(tmp_path / "r", runs, "sim:demo?blocks_per_die=64&state=sequential")
    (warning,) = (each for each in drifting.warnings if each["code"] == "drift")
    change = warning["numbers"]["writes"]["change"]
    assert change > 0.05
    assert f"writes became slower by {change:.0%}" in warning["message"]
    assert "reads" not in warning["numbers"]
    reads, writes = (
        [run for run in summary(drifting)["baselines"] if run["pattern"] == pattern]
        for pattern in ("RR", "RW")
    )
    for run in writes:
        assert run["together"]["converged"] is False
        assert all("device_changed" in (each["reasons"] or ()) for each in run["repetitions"])
    for run in reads:
        assert not any("device_changed" in (each["reasons"] or ()) for each in run["repetitions"])

    assert reads
    assert writes


# Virtual disks


def tree(system: Path, path: str, number: str, **attributes: str) -> Path:
    """Make a disk as the system shows one; returns its folder."""
    disk = system / "devices" / path
    (disk / "device").mkdir(parents=True)
    for name, text in attributes.items():
        (disk / "device" / name).write_text(text + "\n")
    (system / "dev" / "block").mkdir(parents=True, exist_ok=True)
    (system / "dev" / "block" / number).symlink_to(disk)
    return disk


@pytest.mark.parametrize(
    ("path", "attributes", "expected"),
    [
        ("pci0000:00/0000:00:02.0/virtio1/block/vda", {}, "vda is a disk of virtio"),
        ("vbd-51712/block/xvda", {}, "xvda is a disk of Xen"),
        ("pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda",
         {"vendor": "ATA", "model": "QEMU HARDDISK"}, "sda is a disk of QEMU"),
        ("pci0000:00/nvme/nvme0/nvme0n1", {"model": "Amazon Elastic Block Store"},
         "nvme0n1 is a disk of Amazon EBS"),
        ("virtual/block/loop7", {}, "loop7 is a loop device"),
        ("virtual/block/zram0", {}, "zram0 is memory (zram)"),
        ("pci0000:00/nvme/nvme0/nvme0n1", {"model": "Samsung SSD 990 PRO"}, None),
        ("pci0000:00/ata1/block/sda", {"vendor": "ATA", "model": "INTEL SSDSC2BB48"}, None),
        ("virtual/block/dm-0", {}, None),
    ],
)  # fmt: skip
def test_virtual_disk_is_recognised_by_path_or_model(
    tmp_path: Path, path: str, attributes: dict[str, str], expected: str | None
) -> None:
    disk = tree(tmp_path, path, "8:0", **attributes)
    assert virtual_disk_kind(8, 0, tmp_path) == expected
    partition = disk / f"{disk.name}p1"
    partition.mkdir()
    (partition / "partition").write_text("1\n")
    (tmp_path / "dev" / "block" / "8:1").symlink_to(partition)
    assert virtual_disk_kind(8, 1, tmp_path) == expected
    assert virtual_disk_kind(8, 2, tmp_path) is None


def test_simulated_device_has_no_virtual_disk() -> None:
    assert virtual_disk_of(open_device("null").info) is None


DISK = {
    "model": "Fast 9000\n",
    "hwmon1/temp1_input": "71850\n",
}
QUEUE = {
    "scheduler": "none [mq-deadline] kyber\n",
    "write_cache": "write back\n",
    "zoned": "none\n",
    "logical_block_size": "512\n",
    "physical_block_size": "4096\n",
    "max_sectors_kb": "128\n",
    "nr_requests": "1023\n",
}


def make_disk(system: Path, number: str, *, begin_sectors: int) -> None:
    """A tree of devices with one NVMe disk, and a partition of it that has the number."""
    disk = system / "devices" / "pci0" / "nvme" / "nvme0" / "nvme0n1"
    partition = disk / "nvme0n1p2"
    for folder, files in ((disk / "device", DISK), (disk / "queue", QUEUE)):
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
    partition.mkdir()
    (partition / "partition").write_text("2\n")
    (partition / "start").write_text(f"{begin_sectors}\n")
    (system / "dev" / "block").mkdir(parents=True)
    (system / "dev" / "block" / number).symlink_to(partition)


def test_disk_below_file_reports_its_queue(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    number = target.stat().st_dev
    make_disk(tmp_path / "sys", f"{os.major(number)}:{os.minor(number)}", begin_sectors=63)
    info = stored.device_info("file", url=f"file:{target}")
    assert structs.asdict(disk_below(info, tmp_path / "sys") or Disk()) == {
        "name": "nvme0n1",
        "model": "Fast 9000",
        "transport": "nvme",
        "scheduler": "mq-deadline",
        "write_cache": "write back",
        "zoned": "none",
        "logical_block_bytes": 512,
        "physical_block_bytes": 4096,
        "io_bytes_max": 128 << 10,
        "queue_requests": 1023,
        "partition_begin_bytes": 63 * 512,
        "temperature_celsius": 71.85,
        "unknown": (),
        "group_rates": {},
    }
    (tmp_path / "sys/devices/pci0/nvme/nvme0/nvme0n1/device/model").unlink()
    disk = disk_below(info, tmp_path / "sys")
    assert disk is not None
    assert disk.unknown == ("model",)
    assert disk_below(info, tmp_path / "nowhere") is None
    assert disk_below(open_device("null").info) is None


@pytest.mark.parametrize(
    ("disk", "durability", "doubts"),
    [
        ({"write_cache": "write back"}, "cached", ["volatile_cache"]),
        ({"write_cache": "write back"}, "fua", []),
        ({"write_cache": "write through"}, "cached", []),
        ({"io_bytes_max": 128 << 10}, "fua", ["split_ios"]),
        ({"io_bytes_max": 256 << 10}, "fua", []),
        ({"partition_begin_bytes": 63 * 512}, "fua", ["misaligned_partition"]),
        ({"partition_begin_bytes": 1 << 20}, "fua", []),
        ({"scheduler": "bfq"}, "fua", ["scheduler_between"]),
        ({"scheduler": "none"}, "fua", []),
        ({"temperature_celsius": 71.0}, "fua", ["hot_disk"]),
        ({"temperature_celsius": 40.0}, "fua", []),
        (None, "cached", []),
    ],
)
def test_environment_warnings_carry_numbers(
    disk: dict[str, Any] | None, durability: str, doubts: list[str], tmp_path: Path
) -> None:
    manifest = stored.results(tmp_path / "r").manifest
    specs = (
        baseline("SW", io_size=256 << 10, io_count=1),
        baseline("RR", io_size=4096, io_count=1, queue_depth=8),
    )
    plan = tuple(
        structs.replace(entry, spec=spec) for entry, spec in zip(manifest.plan, specs, strict=False)
    )
    real = stored.device_info("file", io="O_DIRECT")
    measured = structs.replace(
        manifest, device=real, host={"disk": disk}, plan=plan, durability=durability
    )
    warnings = environment_warnings(measured)
    assert [doubt.code for doubt in warnings] == doubts
    assert all(doubt.numbers and doubt.advice for doubt in warnings)
    paced = structs.replace(measured, host={"cpu_governor": "powersave"})
    assert [doubt.code for doubt in environment_warnings(paced)] == ["changing_pace"]
    assert environment_warnings(structs.replace(paced, device=stored.device_info("sim"))) == []


def test_benchmark_on_virtual_disk_is_marked(tmp_path: Path) -> None:
    """On this machine, whatever its disk is."""
    target, out = tmp_path / "target.bin", tmp_path / "out"
    number = tmp_path.stat().st_dev
    expected = virtual_disk_kind(os.major(number), os.minor(number))
    chosen = ("--size", "4MiB", "--buffered", "--scale", "quick", "--only", "order", "--pause",
              "1ms", "--state", "as-is", "--quiet", "--out", out)  # fmt: skip
    outcome = uflip("run", f"file:{target}", *chosen)
    assert outcome.code == 0, outcome.err
    warnings = [each for each in Results.load(out).warnings if each["code"] == "virtual_disk"]
    assert bool(warnings) is (expected is not None)
    if warnings:
        assert warnings[0]["numbers"] == {"virtual_disk": expected}
        disk = json.loads((out / "manifest.json").read_text())["host"]["disk"]
        path = sysfs_path(os.major(number), os.minor(number))
        assert disk is None if path is None else disk["name"] in path.parts
        assert json.loads((out / "manifest.json").read_text())["host"]["virtual_disk"] == expected


def test_disk_is_read_again_after_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warmer, and more worn: as a tree of devices and a SMART log say it by then."""
    target = tmp_path / "target"
    number = tmp_path.stat().st_dev
    make_disk(tmp_path / "sys", f"{os.major(number)}:{os.minor(number)}", begin_sectors=64)
    info = stored.device_info("file", url=f"file:{target}")
    target.touch()
    assert temperature_of(info, tmp_path / "sys") == 71.85
    worn = DeviceWear(4.0, 10**12, 25 * 10**12, available_spare_percent=98.0)
    monkeypatch.setattr(execute, "wear_of", lambda _info: worn)
    monkeypatch.setattr(
        execute, "temperature_of", lambda info: temperature_of(info, tmp_path / "sys")
    )
    state = execute.final_state(info, (0, 0))
    assert state.temperature_celsius == 71.85
    assert state.stolen_share is None or 0 <= state.stolen_share <= 1
    out = tmp_path / "out"
    device = open_device(f"file:{tmp_path / 'scratch'}", size=1 << 20, buffered=True)
    plan = plan_pattern(
        baseline("RR", io_size=4096, io_count=40, io_ignore=0, target_size=1 << 20),
        device.info,
        label="RR",
        durability="fua",
    )
    with device:
        execute.new_benchmark_run(device, plan, out, AS_IS).carry_out()
    manifest = Results.load(out).manifest
    after = manifest.host["after"]
    assert isinstance(after, dict)
    assert after["temperature_celsius"] == 71.85
    assert after["wear"]["available_spare_percent"] == 98.0
    assert after["wear"]["percentage_used"] == 4.0
    (hot,) = (doubt for doubt in manifest.warnings if doubt.code == "hot_disk")
    assert "71.85 °C when the benchmark ended" in hot.message


# Host stalls while I/Os are due are reported: before which I/O, and for how long.


INTERVAL_NS, COUNT, STOPPED_S = 2_000_000, 700, 0.15
(CHECK,) = (check for check in CHECKS if check.code == "host_stalls")


def write_iolog(path: Path) -> Path:
    """Write a log of I/Os every two milliseconds, in the format of fio 3."""
    lines = ["fio version 3 iolog", "0 target add", "0 target open"]
    lines += [f"{n * INTERVAL_NS // 1000} target read {n % 64 * 4096} 4096" for n in range(COUNT)]
    path.write_text("\n".join([*lines, f"{COUNT * INTERVAL_NS // 1000} target close"]) + "\n")
    return path


def wait_until_running(out: Path) -> None:
    """Wait until a replay makes its I/Os."""
    deadline = time.monotonic() + 60
    while not (out / "manifest.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)


def test_stopped_process_is_reported(workdir: Path) -> None:
    trace = write_iolog(Path("t.iolog"))
    with open_device("file:f", size=1 << 20, buffered=True):
        pass
    process = start("replay", trace, "file:f", "--buffered", "--speed", "1", "--out", "out")
    wait_until_running(Path("out"))
    stop_process(process.pid)
    began = time.monotonic()
    time.sleep(STOPPED_S)
    stopped_ns = (time.monotonic() - began) * 1e9
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    results = Results.load(Path("out"))
    (run,) = results.runs
    gaps = np.asarray(run.trace().column("host_gap_ns"))
    # The stop began at most an interval before an I/O was due.
    assert gaps.max() >= stopped_ns - INTERVAL_NS - 20e6
    at = int(gaps.argmax())
    waited = np.asarray(run.trace().column("submission_wait_ns"))
    assert waited[at] == gaps[at], "the device was free: all of the wait is the host's"
    (warning,) = (one for one in results.manifest.warnings if one.code == "host_stalls")
    assert warning.numbers["worst"]["longest_ns"] == gaps.max()
    assert "host_stalls" in uflip("show", "out", "--json").out
    opened = OpenRun(results, run)
    assert slow_ios.io_view(opened, at).get("host_gap_ns") == gaps[at]
    # Host stalls are one of the marks that explain slow I/Os.
    marks = dict(slow_ios._marks(opened, 0, COUNT, 0, COUNT))
    assert (marks["host gap", "more than 50 µs"] == (gaps > 50_000)).all()


def test_simulated_run_has_no_host_gaps() -> None:
    with open_device("sim:demo?blocks_per_die=64") as device:
        trace = device.run(basic("read", "random", io_count=10))
    assert "host_gap_ns" not in trace.columns


def test_pauses_queues_and_processes_are_not_stalls(workdir: Path) -> None:
    """Delays that the pattern requests on an idle null device are not stalls."""
    patterns = [
        basic("read", "random", time="burst", burst=5, pause=300_000, io_count=50),
        basic("read", "random", queue_depth=8, io_count=500),
        basic("read", "random", parallel_degree=3, io_count=200),
        basic("read", "random", time="poisson", interval=200_000, io_count=100),
    ]
    with open_device("null") as device:
        for pattern in patterns:
            gaps = np.asarray(device.run(pattern).column("host_gap_ns"))
            # The median is that of the loop itself, even on a busy machine.
            assert np.median(gaps) < 50_000, pattern


def run_arrays(gaps: list[int], took: int = 100_000, kind: str = "file") -> RunArrays:
    times = np.full(len(gaps), took, dtype=np.uint64)
    begins = np.cumsum(np.array(gaps, dtype=np.uint64) + times) - times
    spec = basic("read", "random", io_size=4096, io_count=len(gaps))
    assert isinstance(spec, Basic)
    return RunArrays(
        micro_benchmark="mix", spec=spec, device=stored.device_info(kind), harness={},
        stream=np.zeros(len(gaps)), submit_ns=begins, response_time_ns=times, measured_ns=times,
        host_gap_ns=np.array(gaps, dtype=np.uint64),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gaps", "count"),
    [
        ([0] * 1999 + [60_000], None),  # one in two thousand, 0.03 % of the time
        ([0] * 499 + [60_000], 1),  # one in five hundred
        ([0] * 1999 + [60_000_000], 1),  # a quarter of the time
        ([50_000] * 100, None),
        ([0, 50_001, 0], 1),
    ],
)
def test_few_short_gaps_give_no_warning(gaps: list[int], count: int | None) -> None:
    warning = CHECK.check(run_arrays(gaps))
    assert (warning and warning[1]["count"]) == count
    assert CHECK.check(run_arrays(gaps, kind="null")) is None
