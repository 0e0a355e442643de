"""Reads, writes and trims are reported separately, in any run that mixes them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

import uflip as package
from uflip import _native, stats
from uflip.data.spec import MODES
from uflip.device.opener import open_device
from uflip.results import Results, columns, run_statistics
from uflip.results.run_statistics import measured_amount, rates, statistics_of
from uflip.spec import Spec, baseline, basic, mix, parallel
from uflip.stats import Distribution
from uflip.web import views
from uflip.web.open_results import Folders, OpenResults, key_of

DEVICE = "sim:demo?blocks_per_die=128"
SECTOR = 512


def modes_by_hand(trace: _native.Trace) -> dict[str, dict[str, float]]:
    """Compute count, bytes, mean, standard deviation, extremes and median of each mode."""
    measured = np.asarray(trace.column("ignored")) == 0
    modes, sizes, times = (
        np.asarray(trace.column(name))[measured]
        for name in ("mode", "io_size_bytes", "response_time_ns")
    )
    modes_found = {}
    for code in sorted(set(modes.tolist())):
        mode_times = sorted(times[modes == code].tolist())
        modes_found[MODES[code]] = {
            "count": len(mode_times),
            "bytes": sum(sizes[modes == code].tolist()),
            "mean_ns": sum(mode_times) / len(mode_times),
            "std_ns": np.std(np.array(mode_times, dtype=float), ddof=1),
            "min_ns": mode_times[0],
            "max_ns": mode_times[-1],
            "p50_ns": mode_times[(len(mode_times) + 1) // 2 - 1],
        }
    return modes_found


def check_modes(reported: Any, trace: _native.Trace) -> None:
    expected = modes_by_hand(trace)
    assert list(reported) == list(expected)
    for mode, numbers in expected.items():
        for name, value in numbers.items():
            record = reported[mode] if name == "bytes" else reported[mode]["statistics"]
            assert record[name] == pytest.approx(value, rel=1e-12), (mode, name)


def trace_text(ios: int) -> str:
    """Return an iolog of fio with 3 reads to 1 write of another size."""
    lines = ["fio version 2 iolog", "/dev/sdx add", "/dev/sdx open"]
    for number in range(ios):
        verb, size = ("write", 65_536) if number % 4 == 3 else ("read", 4096)
        lines.append(f"/dev/sdx {verb} {number % 50 * 65_536} {size}")
    return "\n".join([*lines, "/dev/sdx close", ""])


PATTERNS: dict[str, Spec] = {
    "mix": mix(basic("read", "random", io_size=4096), basic("write", "random", io_size=32_768),
               first_percent=70, io_count=400, io_ignore=50, queue_depth=4),
    "parallel": parallel(
        basic("read", "random", io_size=4096, io_count=600, io_ignore=100),
        basic("write", "random", io_size=8192, time="fixed", interval=2_000_000, io_count=90),
        basic("trim", "random", io_size=4096, io_count=40, io_ignore=0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PATTERNS)
def test_run_has_statistics_of_each_mode(kind: str) -> None:
    with open_device(DEVICE) as device:
        trace = device.run(PATTERNS[kind])
    statistics = statistics_of([trace])
    check_modes(statistics.by_mode, trace)
    for name in ("ios_per_s", "bytes_per_s"):
        rate = sum(of[name] for of in statistics.by_mode.values())  # type: ignore[literal-required]
        assert rate == pytest.approx(getattr(statistics, name))
    if kind == "mix":  # its patterns are its modes
        assert statistics.components["first"] == statistics.by_mode["read"]["statistics"]


def test_run_of_one_mode_is_not_split(workdir: Path) -> None:
    outcome = uflip("pattern", DEVICE, "--pattern", "RW", "--io-count", "300", "--json")
    assert "by_mode" not in json.loads(outcome.out)
    with open_device(DEVICE) as device:
        statistics = statistics_of([device.run(baseline("RW", io_count=300))])
    assert not statistics.separate_modes
    assert statistics.by_mode["write"]["statistics"] == statistics.statistics
    assert statistics.by_mode["write"]["ios_per_s"] == statistics.ios_per_s


def test_each_mode_is_in_the_text_of_a_pattern(workdir: Path) -> None:
    arguments = ["pattern", DEVICE, "--pattern", "RR", "--mix", "RW", "--ratio", "3",
                 "--io-count", "100", "--trace", "t.csv"]  # fmt: skip
    outcome = uflip(*arguments)
    with Path("t.csv").open(newline="") as file:
        modes = [row["mode"] for row in csv.DictReader(file)]
    assert f"reads                 {modes.count('read')} (" in outcome.out
    assert f"writes                {modes.count('write')} (" in outcome.out
    for text in ("read: response time", "write: percentiles"):
        assert text in outcome.out


def test_replay_reports_each_mode_in_every_output(workdir: Path) -> None:
    Path("trace.iolog").write_text(trace_text(200))
    outcome = uflip("replay", "trace.iolog", DEVICE, "--out", "r")
    assert outcome.code == 0, outcome.err
    results = Results.load(Path("r"))
    (run,) = results.runs
    expected = modes_by_hand(run.trace())
    assert [expected[mode]["count"] for mode in ("read", "write")] == [150, 50]
    assert "uflip hints" not in outcome.out
    lines = outcome.out.splitlines()
    for mode, words in (("read", "reads"), ("write", "writes")):
        (line,) = [each for each in lines if f" {words} " in each]
        assert f" {expected[mode]['count']} " in line
    shown = json.loads(uflip("show", "r", "--json").out)
    ((experiment,),) = shown["micro_benchmarks"].values()
    check_modes(experiment["by_mode"], run.trace())
    uflip("export", "r", "--format", "csv", "-o", "csv")
    with Path("csv/summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["write_mean_ns"]) == pytest.approx(expected["write"]["mean_ns"])
    assert int(row["read_bytes"]) == 150 * 4096
    with Path("csv/columns.csv").open(newline="") as file:
        meanings = {row["column"]: row for row in csv.DictReader(file)}
    assert meanings["write_bytes_per_s"]["unit"] == "bytes a second"
    assert meanings["read_p50_ns"]["meaning"].endswith("of the reads alone")
    uflip("report", "r", "-o", "report.html")
    report = Path("report.html").read_text()
    assert "Reads, writes and other modes" in report
    folder = results.path.resolve()
    view = views.run(OpenResults(Folders([folder])), key_of(folder), run.id)["by_mode"]
    check_modes(
        {mode.removesuffix("s"): experiment for mode, experiment in view.items()}, run.trace()
    )


def test_imported_log_has_each_mode(workdir: Path) -> None:
    lines = [f"{n}, {100_000 + 50_000 * (n % 2)}, {n % 2}, 4096, {n * 4096}" for n in range(1, 101)]
    Path("a_clat.1.log").write_text("\n".join([*lines, ""]))
    outcome = uflip("import", "fio-log", "a_clat.1.log", "--out", "r", "--json")
    assert outcome.code == 0, outcome.err
    ((experiment,),) = json.loads(outcome.out)["micro_benchmarks"].values()
    means = {mode: each["statistics"]["mean_ns"] for mode, each in experiment["by_mode"].items()}
    assert means == {"read": 100_000, "write": 150_000}
    shown = uflip("show", "r").out
    assert "real device" not in shown
    assert "imported log" in shown


def test_repetitions_are_combined_per_mode(tmp_path: Path) -> None:
    result = package.run(DEVICE, tmp_path / "r", only=["mix"], scale="quick", repetitions=2)
    runs = result.summary["micro_benchmarks"]["mix"]
    with_both = [run for run in runs if "by_mode" in run]
    assert with_both
    for run in with_both:
        total = sum(of["statistics"]["count"] for of in run["by_mode"].values())
        assert total == run["statistics"]["count"]
    both = {tuple(sorted(run["by_mode"])) for run in with_both}
    assert both == {("read", "write")}


@pytest.mark.parametrize("kind", [*PATTERNS, "queue"])
def test_statistics_do_not_depend_on_the_piece_size(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = PATTERNS.get(kind) or baseline(
        "RR", io_size=4096, queue_depth=8, io_count=900, io_ignore=70, parallel_degree=3
    )
    with open_device(DEVICE) as device:
        trace = device.run(spec)
    whole, amount = statistics_of([trace]), measured_amount(trace)
    for module in (columns, run_statistics):
        monkeypatch.setattr(module, "PIECE_IOS", 64)
    monkeypatch.setattr(Distribution, "FEW", 32)
    pieces = statistics_of([trace])
    for computed, expected in [(pieces.statistics, whole.statistics), *(
        (pieces.by_mode[mode]["statistics"], whole.by_mode[mode]["statistics"])
        for mode in whole.by_mode
    )]:  # fmt: skip
        assert expected is not None
        assert computed is not None
        for name, value in expected.items():
            assert computed[name] == (None if value is None else pytest.approx(value, rel=1e-12)), (
                name
            )
    assert pieces.causes_ns == whole.causes_ns
    if kind == "parallel":  # an open loop: its queue depth is not fixed
        assert rates([measured_amount(trace)]) == pytest.approx(rates([amount]), rel=0.05)
    else:
        assert rates([measured_amount(trace)]) == pytest.approx(rates([amount]), rel=1e-12)
        for mode in range(len(MODES)):
            one, other = measured_amount(trace).of_mode(mode), amount.of_mode(mode)
            assert one.ios == pytest.approx(other.ios)


def test_large_distribution_is_approximated_within_its_precision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(5)
    times = np.concatenate([
        random.lognormal(11, 1, 20_000).astype(np.uint64),
        np.array([1, 1, 3 << 40, (1 << 62) + 1], dtype=np.uint64),
    ])  # fmt: skip
    expected = stats.summarise(times)
    for most, precision in ((1 << 21, 0.0), (64, 1 / Distribution.PRECISION)):
        monkeypatch.setattr(Distribution, "MAX_VALUES", most)
        monkeypatch.setattr(Distribution, "FEW", 1000)
        distribution = Distribution()
        for part in np.array_split(times, 70):
            distribution.add(part)
        assert len(distribution) == len(times)
        statistics = distribution.summary()
        assert statistics is not None
        for name, value in statistics.items():
            exact = expected[name]
            assert exact is not None
            assert value is not None
            if name.startswith("p"):
                assert exact <= value <= exact * (1 + precision)
            else:
                assert value == pytest.approx(exact, rel=1e-9)


def test_stored_mode_statistics_are_read_back(workdir: Path) -> None:
    Path("trace.iolog").write_text(trace_text(40))
    assert uflip("replay", "trace.iolog", DEVICE, "--out", "r", "-q").code == 0
    (path,) = Path("r/summaries").glob("0001-*.json")
    by_mode = json.loads(path.read_text())["experiments"][0]["summary"]["by_mode"]
    assert {mode: each["statistics"]["count"] for mode, each in by_mode.items()} == {
        "read": 30, "write": 10,
    }  # fmt: skip
