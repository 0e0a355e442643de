"""Does `uflip pattern` do what fio users expect of it, for every pattern of the paper?"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip, unchanged

import uflip as package
from uflip.cli.pattern import spool_folder
from uflip.data.device import ZoneLimits
from uflip.device.catalogue import inspect_device
from uflip.device.resolve import resolve
from uflip.errors import EXIT_CODES, UsageError
from uflip.spec import basic

SMALL_SIM = "sim:demo?blocks_per_die=64"


def run_pattern(*arguments: object) -> Any:
    outcome = uflip("pattern", *arguments, "--json")
    assert outcome.code == 0, outcome.out
    return json.loads(outcome.out)


def test_pattern_prints_its_statistics() -> None:
    arguments = "--mode write --location random --io-size 32KiB --io-count 1000"
    outcome = uflip("pattern", SMALL_SIM, *arguments.split())
    assert outcome.code == 0
    assert "random write of 32 KiB" in outcome.out
    for text in ("1,000", "IOPS", "p99", "time spent on", "write amplification"):
        assert text in outcome.out


def test_every_option_reaches_the_spec() -> None:
    spec = run_pattern(
        "null", "--mode", "read", "--location", "ordered", "--time", "burst",
        "--io-size", "4k", "--io-shift", "512", "--target-offset", "1m", "--target-size", "8m",
        "--incr", "-2", "--pause", "1us", "--burst", "3", "--parallel-degree", "2",
        "--io-count", "20", "--io-ignore", "5", "--seed", "9",
    )["spec"]  # fmt: skip
    expected = {
        "mode": "read", "location": "ordered", "time": "burst", "io_size": 4096, "io_shift": 512,
        "target_offset": 1 << 20, "target_size": 8 << 20, "incr": -2, "pause": 1000, "burst": 3,
        "parallel_degree": 2, "io_count": 20, "io_ignore": 5, "seed": 9,
    }  # fmt: skip
    assert {key: spec[key] for key in expected} == expected
    arguments = ["--mode", "read", "--location", "partitioned", "--partitions", "4"]
    assert run_pattern("null", *arguments)["spec"]["partitions"] == 4


def test_printed_numbers_are_consistent() -> None:
    document = run_pattern(SMALL_SIM, "--pattern", "RW", "--io-count", "200", "--io-ignore", "50")
    assert (document["ios"], document["ignored"]) == (200, 50)
    assert document["bytes"] == 200 * 32768
    assert document["statistics"]["count"] == 150
    mean = document["statistics"]["mean_ns"]
    # I/Os are serial, and the start-up is ignored.
    assert document["ios_per_s"] == pytest.approx(1e9 / mean)
    assert document["bytes_per_s"] == pytest.approx(32768e9 / mean)
    assert sum(document["causes_ns"].values()) == pytest.approx(mean)
    assert document["counters"]["host_pages_written"] == 200 * 8


def test_mix_has_statistics_of_both_patterns() -> None:
    arguments = ("--pattern", "SR", "--mix", "RW", "--ratio", "4", "--io-count", "50")
    document = run_pattern(SMALL_SIM, *arguments, "--io-size", "8k")
    assert document["ios"] == 250
    assert document["components"]["first"]["count"] == 200
    assert document["components"]["second"]["count"] == 50
    assert document["spec"]["second"]["io_size"] == 8192
    outcome = uflip("pattern", SMALL_SIM, *arguments)
    assert "4 × sequential read of 32 KiB / 1 × random write of 32 KiB" in outcome.out
    assert "  read: response time" in outcome.out
    assert "  write: response time" in outcome.out


def test_spool_needs_no_output_folder(tmp_path: Path) -> None:
    """The folder of the output may be created at the end of the run only."""
    info = inspect_device("sim:demo")
    assert spool_folder(info, tmp_path / "new" / "newer" / "trace.csv") == tmp_path
    assert spool_folder(info, tmp_path / "trace.csv") == tmp_path


def test_printed_spec_can_be_run_again(workdir: Path) -> None:
    first = run_pattern(SMALL_SIM, "--pattern", "RW", "--io-count", "100", "--seed", "4")
    (workdir / "spec.json").write_text(json.dumps(first["spec"]))
    again = run_pattern(SMALL_SIM, "--spec", "spec.json")
    assert again == first


def test_parallel_patterns_are_read_from_json(workdir: Path) -> None:
    part = {"kind": "basic", "mode": "read", "location": "random", "io_count": 10}
    (workdir / "spec.json").write_text(json.dumps({"kind": "parallel", "patterns": [part, part]}))
    assert run_pattern("null", "--spec", "spec.json")["ios"] == 20
    assert "∥" in uflip("pattern", "null", "--spec", "spec.json").out


def test_reads_need_no_write_permission(workdir: Path) -> None:
    path = workdir / "kept.bin"
    path.write_bytes(bytes(1 << 20))
    path.chmod(0o444)
    with unchanged(workdir):
        assert uflip("pattern", "file:kept.bin", "--pattern", "RR", "--buffered").code == 0
        assert uflip("pattern", "file:kept.bin", "--pattern", "RW", "--buffered").code == 4


def test_every_io_is_written_as_csv(workdir: Path) -> None:
    document = run_pattern(SMALL_SIM, "--pattern", "RW", "--io-count", "50", "--trace", "ios.csv")
    with (workdir / "ios.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50
    assert {row["mode"] for row in rows} == {"write"}
    times = np.array([int(row["response_time_ns"]) for row in rows])
    assert times.mean() == pytest.approx(document["statistics"]["mean_ns"])
    assert (np.diff([int(row["submit_ns"]) for row in rows]) > 0).all()


def test_every_io_is_written_as_parquet(workdir: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run_pattern("null", "--pattern", "RR", "--io-count", "50", "--trace", "ios.parquet")
    table = parquet.read_table(workdir / "ios.parquet")
    assert table.num_rows == 50
    assert {"response_time_ns", "offset_bytes"} <= set(table.column_names)


BAD_PATTERNS: list[tuple[str, str, list[str]]] = [
    ("", "usage", ["not complete", "--mode"]),
    ("--mode read", "usage", ["not complete", "--location", "sequential, random"]),
    ("--mode reed --location random", "usage", ["Unknown mode", "read, write"]),
    ("--mode read --location randon", "usage", ["Unknown location", "did you mean random?"]),
    ("--pattern RX", "usage", ["Unknown pattern", "SR, RR, SW, RW"]),
    ("--pattern RR --mode read", "usage", ["--pattern determines the mode already"]),
    ("--pattern RR --time never", "usage", ["Unknown time", "consecutive, pause, burst"]),
    ("--pattern RR --nope 1", "usage", ["--nope"]),
    ("--pattern RW --io-size 0", "usage", ["io_size", "multiples of the sector of 512"]),
    ("--pattern RW --io-size -4k", "usage", ["negative", "--io-size"]),
    ("--pattern RW --io-size 1000", "usage", ["io_size", "multiples of the sector of 512"]),
    ("--pattern RW --io-size 2m", "usage", ["too small for one I/O"]),
    ("--pattern RW --target-size 2m", "usage", ["outside the device", "1 MiB"]),
    ("--pattern RW --target-offset 1m", "usage", ["target_offset", "below 1048576"]),
    ("--pattern RW --io-count 0", "usage", ["--io-count", "1 to 4294967296"]),
    ("--pattern RW --io-count many", "usage", ["--io-count"]),
    ("--pattern RW --io-count 9 --io-ignore 9", "usage", ["io_ignore", "0 to 8"]),
    ("--pattern RW --parallel-degree 0", "usage", ["parallel_degree"]),
    ("--pattern RW --time burst --burst -1", "usage", ["--burst", "out of range"]),
    ("--pattern RW --burst 4", "usage", ["burst", "no meaning"]),
    ("--pattern RW --time pause --pause 4", "usage", ["needs its unit", "--pause"]),
    ("--pattern RW --mix SW --ratio 0", "usage", ["ratio", "1 or more"]),
    ("--pattern RW --mix SW", "usage", ["--ratio"]),
    ("--pattern RW --ratio 4", "usage", ["--mix"]),
    ("--mode write --location partitioned --partitions 0", "usage", ["partitions"]),
    ("--spec no.json", "usage", ["cannot be read", "no.json"]),
    ("--spec list.json", "usage", ["cannot be read", "list"]),
    ("--spec text.json", "usage", ["cannot be read"]),
    ("--spec circle.json", "usage", ["kind of pattern", "basic, mix, parallel"]),
    ("--spec circle.json --seed 3", "usage", ["combined with options of the pattern", "--seed"]),
    ("--pattern RW --trace ios.txt", "usage", ["ios.txt", "FILE.csv, FILE.parquet"]),
    ("--pattern RW --trace list.csv", "refused", ["list.csv", "--force"]),
    ("--pattern RW --trace no/ios.csv", "usage", ["does not exist"]),
]


@pytest.mark.parametrize(("arguments", "kind", "texts"), BAD_PATTERNS, ids=str)
def test_invalid_pattern_changes_no_file(
    workdir: Path, arguments: str, kind: str, texts: list[str]
) -> None:
    """A late error would leave the created file of 1 MiB."""
    (workdir / "list.json").write_text("[]")
    (workdir / "list.csv").write_text("precious")
    (workdir / "text.json").write_text("write!")
    (workdir / "circle.json").write_text('{"kind": "circle"}')
    with unchanged(workdir):
        outcome = uflip("pattern", "file:new.bin", "--size", "1MiB", *arguments.split())
    assert outcome.code == EXIT_CODES[kind][0], outcome.err
    assert outcome.out == ""
    for text in texts:
        assert text in outcome.err


def test_queue_on_a_file_records_every_response_time(workdir: Path) -> None:
    arguments = ["file:f.bin", "--size", "1MiB", "--buffered", "--durability", "cached"]
    arguments += ["--pattern", "RW", "--queue-depth", "8", "--io-size", "4k", "--io-count", "400"]
    outcome = uflip("pattern", *arguments, "--trace", "ios.csv", "--json")
    if outcome.code == EXIT_CODES["unavailable"][0]:
        pytest.skip("this system does not support io_uring")
    assert outcome.code == 0, outcome.err
    with (workdir / "ios.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [(int(row["submit_ns"]), int(row["response_time_ns"])) for row in rows]
    assert len(times) == 400
    assert all(took > 0 for _, took in times)
    under_way = [sum(submit <= at < submit + took for submit, took in times) for at, _ in times]
    assert 1 < max(under_way) <= 8


def test_queue_depth_raises_throughput() -> None:
    one, many = (
        run_pattern(SMALL_SIM, "--pattern", "RR", "--io-size", "4k", "--queue-depth", depth)
        for depth in (1, 16)
    )
    assert (one["spec"]["queue_depth"], many["spec"]["queue_depth"]) == (1, 16)
    assert many["ios_per_s"] > 3 * one["ios_per_s"], "16 dies read in parallel"


def test_weighted_mix_has_statistics_of_every_pattern() -> None:
    parts = [
        basic("read", "random", io_size=4096),
        basic("write", "sequential", io_size=65536),
        basic("read", "sequential", io_size=32768),
    ]
    spec = package.mix(parts[0], parts[1], others=parts[2:], weights=(5, 2, 3), io_count=200)
    trace = package.pattern(SMALL_SIM, spec)
    component = np.asarray(trace.column("component"))
    assert [int((component == k).sum()) for k in range(3)] == [100, 40, 60]
    sizes = np.asarray(trace.column("io_size_bytes"))
    assert {k: set(sizes[component == k].tolist()) for k in range(3)} == {
        0: {4096}, 1: {65536}, 2: {32768},
    }  # fmt: skip


def test_bssplit_draws_sizes_by_weight() -> None:
    arguments = ("--pattern", "RW", "--bssplit", "4k/60:64k/30:16k/10", "--io-count", 4000)
    document = run_pattern(SMALL_SIM, *arguments)
    counts = [one["count"] for one in document["components"].values()]
    # Five standard deviations of a binomial of 4,000 draws.
    for count, share in zip(counts, (0.6, 0.3, 0.1), strict=True):
        assert abs(count - 4000 * share) < 5 * (4000 * share * (1 - share)) ** 0.5
    assert list(document["components"]) == ["first", "second", "pattern_3"]
    outcome = uflip("pattern", SMALL_SIM, *arguments)
    assert "60 × random write of 4 KiB / 30 × random write of 64 KiB" in outcome.out
    assert "16 KiB: response time" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--pattern", "SW", "--bssplit", "4k/60:64k/40"), "random addresses"),
        (("--pattern", "RW", "--bssplit", "4k/60"), "two sizes"),
        (("--pattern", "RW", "--bssplit", "4k/60:64k"), "--bssplit"),
        (("--pattern", "RW", "--bssplit", "4k/60:64k/0"), "--bssplit"),
        (("--pattern", "RW", "--bssplit", "4k/1:8k/1", "--mix", "RR", "--ratio", 2), "--mix"),
        (("--pattern", "RW", "--bssplit", "4k/1:8k/1", "--io-size", "4k"), "--io-size"),
    ],
)
def test_unclear_bssplit_is_refused(arguments: tuple[object, ...], named: str) -> None:
    outcome = uflip("pattern", SMALL_SIM, *arguments)
    assert outcome.code == EXIT_CODES["usage"][0]
    assert named in outcome.err


def test_random_mix_prints_its_share_and_both_patterns(workdir: Path) -> None:
    arguments = ["--pattern", "RR", "--mix", "RW", "--first-percent", "70", "--io-count", "5000"]
    arguments += ["--io-size", "4k", "--queue-depth", "8"]
    document = run_pattern(SMALL_SIM, *arguments, "--trace", "ios.csv")
    with (workdir / "ios.csv").open(encoding="utf-8") as file:
        modes = [row["mode"] for row in csv.DictReader(file)]
    assert modes.count("read") == document["components"]["first"]["count"]
    # Binomial with n = 5000, p = 0.7: five standard deviations are 162.
    assert abs(modes.count("read") - 3500) < 162
    outcome = uflip("pattern", SMALL_SIM, *arguments)
    assert outcome.out.startswith("70 % random read of 4 KiB / 30 % random write of 4 KiB")


def test_component_without_ios_is_omitted() -> None:
    document = run_pattern("null", "--pattern", "SR", "--mix", "RR", "--first-percent", "99",
                   "--io-count", "1")  # fmt: skip
    assert list(document["components"]) == ["first"]


@pytest.mark.parametrize("device", ["file:new.bin", "sim:demo"])
@pytest.mark.parametrize("mode", ["append", "reset", "finish", "open", "close"])
def test_device_without_zones_is_refused_before_its_file_is_created(
    workdir: Path, mode: str, device: str
) -> None:
    size = ("--size", "4MiB") if device.startswith("file:") else ()
    options = ("--mode", mode, "--location", "sequential", "--io-count", 4)
    outcome = uflip("pattern", device, *size, *options)
    assert (outcome.code, [*workdir.iterdir()]) == (2, []), outcome.err
    assert outcome.err.startswith("error: The device has no zones")
    for words in (device, mode, "read, write, trim", "sim:zns"):
        assert words in outcome.err
    with pytest.raises(UsageError, match="no zones"):
        package.pattern(device, basic(mode, "sequential"), **({"size": "4MiB"} if size else {}))
    assert not [*workdir.iterdir()]
    # The null device accepts every mode.
    assert uflip("pattern", "null", *options).code == 0


def test_device_without_streams_is_refused_before_its_file_is_created(workdir: Path) -> None:
    options = ("--pattern", "SW", "--write-stream", 1, "--io-count", 4)
    outcome = uflip("pattern", "file:new.bin", "--size", "4MiB", *options)
    assert (outcome.code, [*workdir.iterdir()]) == (2, []), outcome.err
    simulated = uflip("pattern", "sim:demo", *options)
    assert outcome.err == simulated.err.replace("sim:demo", "file:new.bin")


def test_appends_to_a_zoned_block_device_are_refused() -> None:
    limits = ZoneLimits(zone_bytes=1 << 20, zone_count=4, zone_capacity_bytes=1 << 20)
    disk = stored.device_info("block", capacity_bytes=4 << 20, details={"zones": limits})
    with pytest.raises(UsageError, match="does not support zone append"):
        resolve(basic("append", "sequential"), disk)
    assert resolve(basic("reset", "sequential", io_size=1 << 20), disk).spec.mode == "reset"
