"""`uflip analyse` and `uflip.analysis`: results, input files, and error messages."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from command_line import uflip
from pyarrow import parquet
from scipy import stats

from uflip import _native
from uflip.analysis import PHASES, REASONS, analyse, run_length
from uflip.data.spec import text_of
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.spec import Pattern, baseline, parallel

MTRON = np.concatenate([np.full(125, 4e5), np.resize([4e5, 4e5, 27e6], 3000)])


def noisy(times: np.ndarray, seed: int = 1) -> np.ndarray:
    return times * np.exp(np.random.default_rng(seed).normal(0, 0.02, len(times)))


# The kernels against other libraries


def test_student_quantiles_match_scipy() -> None:
    for freedom in (1, 2, 3, 4, 7, 15, 31, 200):
        for p in (0.5, 0.1, 0.05, 0.01, 0.001):
            expected = stats.t.ppf(1 - p / 2, freedom)
            assert _native.student_quantile(p, freedom) == pytest.approx(expected, rel=2e-3)


def test_autocorrelation_matches_numpy() -> None:
    series = np.random.default_rng(3).gamma(2, size=500).cumsum() % 7
    computed = _native.autocorrelation(series, 200)
    expected = [np.corrcoef(series[: 500 - k], series[k:])[0, 1] for k in range(1, 201)]
    assert np.allclose(computed[1:], expected)


def naive_segments(values: np.ndarray, penalty: float) -> list[int]:
    """Return the optimal segmentation, by dynamic programming over all last segments."""
    n = len(values)
    best, last = [-penalty], [0]
    for to in range(1, n + 1):
        costs = [best[a] + ((values[a:to] - values[a:to].mean()) ** 2).sum() for a in range(to)]
        best.append(min(costs) + penalty)
        last.append(int(np.argmin(costs)))
    points, at = [], last[n]
    while at:
        points.append(at)
        at = last[at]
    return points[::-1]


@pytest.mark.parametrize("seed", range(8))
def test_change_points_are_optimal(seed: int) -> None:
    random = np.random.default_rng(seed)
    levels = random.normal(0, 3, 5).repeat(random.integers(5, 40, 5))
    values = levels + random.normal(size=len(levels))
    assert _native.pelt(values, 10.0) == naive_segments(values, 10.0)


def test_percentile_intervals_cover_the_truth() -> None:
    covered = dict.fromkeys((0.5, 0.9, 0.95), 0)
    for seed in range(100):
        random = np.random.default_rng(seed)
        analysis = analyse(np.exp(random.normal(10, 0.5, 2000)))
        shares = [each.share for each in analysis.percentiles]
        assert shares[:4] == [0.05, 0.5, 0.9, 0.95]
        assert 0.999 not in shares, "the 99.9th percentile of 2,000 values depends on two"
        for each in analysis.percentiles:
            truth = np.exp(10 + 0.5 * stats.norm.ppf(each.share))
            if each.share in covered:
                covered[each.share] += each.low_ns <= truth <= each.high_ns
    assert min(covered.values()) >= 88, (
        covered
    )  # 95 of 100 on average; 88 comes by chance 3 in 1,000


# Results of an analysis


def test_startup_and_period_of_the_papers_device() -> None:
    analysis = analyse(noisy(MTRON))
    assert (analysis.phase, analysis.period_ios) == ("start-up", 3)
    assert analysis.startup_ios in (125, 126, 127), (
        "two cheap writes of the period look like the start-up"
    )
    assert [round(level.share, 2) for level in analysis.levels] == [0.67, 0.33]
    assert analysis.converged
    assert abs(analysis.mean_ns - (2 * 4e5 + 27e6) / 3) <= (analysis.half_width_ns or 0) + 1e4
    assert analysis.slow_episodes == pytest.approx(1000, abs=2)


def test_512_ios_without_ioignore_underestimate_the_mean() -> None:
    """UFLIP §4.2: "the measured time will be about 25% lower than it should be"."""
    truth = (2 * 4e5 + 27e6) / 3
    assert MTRON[:512].mean() / truth - 1 == pytest.approx(-0.25, abs=0.03)
    assert run_length(noisy(MTRON), min_ios=64).mean_ns == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize(
    ("times", "phase"),
    [
        (noisy(np.full(2000, 1e5)), "flat"),
        (noisy(np.resize([1e5, 1e5, 1e5, 9e5], 2000)), "oscillating"),
        (noisy(np.linspace(1e5, 2e5, 4000)), "drifting"),
        (noisy(np.resize(np.repeat([1e5, 9e5, 1e5], [300, 50, 150]), 900)), "too-short"),
        (noisy(np.concatenate([np.full(3900, 1e5), np.full(100, 5e5)])), "never-steady"),
        (noisy(np.concatenate([np.full(1000, x) for x in (1e5, 3e5, 1e5, 4e5)])), "never-steady"),
        (noisy(MTRON), "start-up"),
    ],
)
def test_phases(times: np.ndarray, phase: str) -> None:
    assert phase in PHASES
    analysis = analyse(times)
    assert analysis.phase == phase, analysis
    assert set(analysis.reasons) <= set(REASONS)
    assert analysis.converged == (not analysis.reasons)


def test_burst_is_one_slow_episode() -> None:
    """Ten bursts of 50 slow I/Os are ten observations of a burst, not five hundred."""
    random = np.random.default_rng(5)
    parts = [np.repeat([1e5, 1e6], [int(random.exponential(900)) + 1, 50]) for _ in range(40)]
    analysis = analyse(noisy(np.concatenate(parts)))
    assert analysis.slow_episodes == pytest.approx(40, abs=10)


# Files


def analyse_json(*arguments: object) -> dict[str, object]:
    outcome = uflip("analyse", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    document: dict[str, object] = json.loads(outcome.out)
    assert document.pop("read_as")
    return document


def test_every_file_format_gives_the_same_analysis(workdir: Path) -> None:
    times = noisy(MTRON).round()
    lines = "\n".join
    (workdir / "us.csv").write_text(
        lines(["n,took_us", *(f"{i},{t / 1e3}" for i, t in enumerate(times))])
    )
    (workdir / "plain").write_text(lines(f"{t:.0f}" for t in times))
    (workdir / "fio_lat.1.log").write_text(
        lines(f"{i}, {t:.0f}, 1, 4096, 0" for i, t in enumerate(times))
    )
    parquet.write_table(pa.table({"x": times / 1e6, "y": times}), workdir / "other.parquet")
    expected = analyse(times)
    for arguments in (
        ("us.csv", "--column", "took_us"),
        ("plain", "--unit", "ns"),
        ("fio_lat.1.log",),
        ("other.parquet", "--column", "x", "--unit", "ms"),
    ):
        analysis = analyse_json(*arguments)
        assert analysis["startup_ios"] == expected.startup_ios
        assert analysis["mean_ns"] == pytest.approx(expected.mean_ns), arguments
    text = uflip("analyse", "fio_lat.1.log").out
    assert f"start-up       {expected.startup_ios} I/Os" in text
    assert "period         3 I/Os" in text


def test_msr_cambridge_trace_counts_in_100_ns(workdir: Path) -> None:
    times = noisy(MTRON).round(-2)
    lines = [
        f"{128166372003061629 + i},hm,{i % 2},{'Read' if i % 3 else 'Write'},{i * 512},512,{t:.0f}"
        for i, t in enumerate(times / 100)
    ]
    head = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"
    (workdir / "bare.csv").write_text("\n".join(lines))
    (workdir / "named.csv").write_text("\n".join([head, *lines]))
    expected = json.loads(msgspec.json.encode(analyse(times)))
    for arguments in (("bare.csv",), ("named.csv",), ("named.csv", "--column", "ResponseTime")):
        assert analyse_json(*arguments) == expected, arguments
    assert analyse_json("bare.csv", "--unit", "us")["mean_ns"] == pytest.approx(
        10 * analyse(times).mean_ns
    )
    outcome = uflip("analyse", "named.csv", "--column", "Size", "--unit", "ns")
    assert "equal" in outcome.err, "the named column is analysed"
    outcome = uflip("explore", "named.csv", "--no-browser")
    assert (outcome.code, "uflip replay FILE DEVICE" in outcome.err) == (2, True)


def test_run_and_export_give_the_same_analysis(workdir: Path) -> None:
    trace = open_device("sim:demo").run(baseline("RW", io_count=5000))
    trace.write_parquet("run.parquet", "{}")
    trace.write_table("table.parquet", "[]", trace.columns)
    direct = analyse(np.asarray(trace.column("response_time_ns")))
    expected = json.loads(msgspec.json.encode(direct))
    assert analyse_json("run.parquet") == analyse_json("table.parquet") == expected
    assert analyse_json("run.parquet", "--unit", "ns") == analyse_json("run.parquet")
    outcome = uflip("analyse", "run.parquet", "--unit", "s")
    assert (outcome.code, "in nanoseconds" in outcome.err) == (2, True)


def test_parallel_processes_are_averaged_or_refused(workdir: Path) -> None:
    """Processes with equal counts are averaged, in every file format; others are an error."""
    files = ("run.parquet", "table.parquet", "table.csv")

    def traced(spec: Pattern) -> np.ndarray:
        (workdir / "spec.json").write_text(text_of(spec))
        for name in files:
            (workdir / name).unlink(missing_ok=True)
        for name in files[1:]:
            assert uflip("pattern", "sim:demo", "--spec", "spec.json", "--trace", name).code == 0
        trace = open_device("sim:demo").run(spec)
        trace.write_parquet("run.parquet", "{}")
        return np.asarray(trace.column("response_time_ns"))

    in_step = traced(baseline("RR", parallel_degree=2, io_count=2000)).reshape(2, -1).mean(axis=0)
    expected = json.loads(msgspec.json.encode(analyse(in_step)))
    for name in files:
        assert analyse_json(name) == expected, name
    traced(parallel(baseline("RR", io_count=900), baseline("RW", io_count=100)))
    for name in files:
        outcome = uflip("analyse", name)
        assert outcome.code == 2
        for word in (name, "different numbers of I/Os", "900, 100"):
            assert word in outcome.err


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("a,b\n1,2\n", (), ["no such column", "a, b"]),
        ("response_time_ns\n" + "5\n6\n" * 10, (), ["too few", "20", "32 or more"]),
        ("response_time_ns\n" + "5\n" * 40, (), ["equal", "40 times 5 ns"]),
        ("response_time_ns\n5\n-3\nsix\n", (), ["-3", "one number in every line"]),
        ("response_time_ns\n5\nsix\nnan\nx\n", (), ["six", "one number in every line"]),
        ("1,2\n3,4\n", (), ["no column names"]),
        ("latency\n" + "5\n6\n" * 20, (), ["no unit of time", "--unit"]),
        ("", (), ["no data"]),
        ("run,response_time_ns\n" + "a,5\nb,6\n" * 20, (), ["several runs", "2 runs"]),
        ("x_ns\n" + "5\n6\n" * 20, ("--confidence", "2"), ["confidence", "0.5 to 0.999"]),
        ("PAR1 and then nothing", (), ["Parquet"]),
        ("\x94\0\1\n\0" * 20, (), ["as a trace or log", "bytes that are not text"]),
    ],
)
def test_bad_file_is_named_with_its_fault(
    workdir: Path, content: str, arguments: tuple[str, ...], words: list[str]
) -> None:
    (workdir / "bad").write_text(content)
    outcome = uflip("analyse", "bad", *arguments)
    assert outcome.code in (2, 5), outcome.err
    for word in ("bad", *words):
        assert word in outcome.err
    assert "Traceback" not in outcome.err


def test_empty_table_has_too_few_values(workdir: Path) -> None:
    no_rows = {"response_time_ns": pa.array([], pa.uint64()), "stream": pa.array([], pa.uint32())}
    parquet.write_table(pa.table(no_rows), workdir / "bad.parquet")
    (workdir / "bad.csv").write_text("response_time_ns,stream\n")
    for name in ("bad.parquet", "bad.csv"):
        outcome = uflip("analyse", name)
        assert outcome.code == 2, outcome.err
        assert "too few" in outcome.err


def test_missing_file_or_folder_is_named(workdir: Path) -> None:
    for name, got in (("nowhere", "no such file"), (".", "a folder")):
        outcome = uflip("analyse", name)
        assert (outcome.code, got in outcome.err) == (2, True)
    assert workdir.is_dir()


def test_two_dimensional_array_is_refused() -> None:
    with pytest.raises(UsageError, match="one-dimensional"):
        analyse(np.ones((40, 2)))


@pytest.mark.parametrize("ios", [33, 63, 64, 100, 159, 1023, 1024, 3125])
@pytest.mark.parametrize("pattern", [[1.0], [1.0, 9.0], [1.0] * 9 + [50.0]])
def test_mean_covers_the_reported_number_of_ios(ios: int, pattern: list[float]) -> None:
    quick = np.full(40, 1e4) if ios > 1000 else np.array([])
    series = noisy(np.concatenate([quick, np.resize(np.array(pattern) * 1e6, ios)]), ios)
    analysis = analyse(series)
    assert 0 < analysis.mean_ios <= analysis.ios - analysis.startup_ios
    assert analysis.mean_ns == pytest.approx(series[-analysis.mean_ios :].mean(), rel=1e-9)


def test_mean_of_half_a_series_is_reported(tmp_path: Path) -> None:
    # As docs/reference/analysis.md has it: a run of 63 I/Os without a period.
    series = np.random.default_rng(5).normal(1e6, 1e4, 63)
    table = tmp_path / "short.csv"
    table.write_text("took_ns\n" + "\n".join(map(str, series)))
    arguments = ("analyse", table, "--column", "took_ns")
    assert json.loads(uflip(*arguments, "--json").out)["mean_ios"] == 32
    assert "confidence, of the last 32\n" in uflip(*arguments).out
    table.write_text("took_ns\n" + "\n".join(map(str, np.resize(series, 64))))
    assert json.loads(uflip(*arguments, "--json").out)["mean_ios"] == 64
    assert "of the last" not in uflip(*arguments).out


def test_durations_are_read_in_their_unit(workdir: Path) -> None:
    ns = (noisy(MTRON[:400]) // 1000 * 1000).astype(np.int64)
    expected = analyse(ns)
    us = (ns // 1000).astype("timedelta64[us]")
    of_polars = polars.Series(us)
    assert of_polars.dtype == polars.Duration("us")
    for durations in (
        us,
        of_polars,
        pandas.Series(us),
        pa.array(us),
        list(us),
        [timedelta(microseconds=int(each)) for each in ns // 1000],
        list(pandas.Series(us)),
        np.ma.masked_array(us, mask=False),
        [Decimal(int(each)) for each in ns],
    ):
        assert analyse(durations) == expected
        assert run_length(durations) == run_length(ns)
    parquet.write_table(pa.table({"took": pa.array(us)}), workdir / "d.parquet")
    outcome = uflip("analyse", "d.parquet", "--json")
    assert json.loads(outcome.out)["mean_ns"] == expected.mean_ns
    outcome = uflip("analyse", "d.parquet", "--unit", "ms")
    assert (outcome.code, "a unit of their own" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("times", "got"),
    [
        (np.ma.masked_array(MTRON, mask=MTRON > 1e6), "1000 of 3125 masked"),
        (np.arange(40).astype("datetime64[us]"), "dates (datetime64[us])"),
        (np.arange(40).astype("timedelta64"), "without a unit"),
        ([timedelta(microseconds=5)] * 39 + [5], "39 durations among 40"),
        (["5"] * 40, "text"),
        (np.array(["5"] * 40, object), "str '5'"),
        (np.full(40, 5 + 2j), "complex"),
        ([True] * 40, "truth values"),
        ([datetime(2026, 1, 1)] * 40, "datetime"),
        ([[1], [1, 2]] * 20, "inhomogeneous"),
    ],
)
def test_non_numeric_times_are_refused(times: Any, got: str) -> None:
    for function in (analyse, run_length):
        with pytest.raises(UsageError, match="numbers or durations") as raised:
            function(times)
        assert got in raised.value.got
        assert "timedelta64" in raised.value.allowed


@pytest.mark.parametrize(
    "times",
    [np.array([*range(5, 40), "NaT"], "timedelta64[us]"), [*range(5, 40), None]],
)
def test_missing_value_is_not_a_positive_number(times: Any) -> None:
    with pytest.raises(UsageError, match="positive") as raised:
        analyse(times)
    assert "NaN" in raised.value.got
    assert "number 35" in raised.value.where


def test_gaps_and_zeros_are_counted(workdir: Path) -> None:
    """Odd lines are left out, and a time of 0 is one tick of the clock."""
    values = ["5", "", "0", "six", "7"] * 20
    Path("t.csv").write_text("lat_us\n" + "\n".join(f"{value}" for value in values))
    Path("pairs.csv").write_text("n;lat_us\n" + "\n".join(f"1;{value}" for value in values))
    kept = [1000.0 if value == "0" else float(value) * 1000 for value in values
            if value not in ("", "six")]  # fmt: skip
    outcome = uflip("analyse", "pairs.csv", "--column", "lat_us", "--json")
    document = json.loads(outcome.out)
    assert document["ios"] == len(kept)
    assert document["mean_ns"] == pytest.approx(analyse(np.array(kept)).mean_ns)
    read_as = document["read_as"]
    assert (read_as["left_out"], read_as["odd_lines"], read_as["zero_times"]) == (
        {"empty": 20}, 20, 20,
    )  # fmt: skip
    text = uflip("analyse", "pairs.csv", "--column", "lat_us").out
    assert "20 odd lines, the first 5: 1;six" in text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("job_bw.1.log", "0, 51922, 0, 4096, 0, 0\n1, 36536, 0, 4096, 0, 0\n" * 20, ["KiB/s"]),
        ("job_iops.1.log", "0, 1, 0, 4096, 0, 0\n" * 40, ["numbers of I/Os"]),
        ("fin.spc", "0,303567,3584,w,0.026214\n0,303574,3584,w,0.5\n" * 20,
         ["no response times", "uflip replay"]),
        ("t.csv", "submit_ns\n" + "\n".join(map(str, range(10**9, 10**9 + 90))), ["only grow"]),
        ("t.csv", "offset\n" + "4096\n8192\n" * 40, ["no unit of time"]),
    ],
)  # fmt: skip
def test_other_quantities_are_no_response_times(
    name: str, content: str, words: list[str], workdir: Path
) -> None:
    Path(name).write_text(content)
    for arguments in (("analyse", name), ("import", "auto", name, "--out", "r")):
        outcome = uflip(*arguments)
        assert outcome.code in (2, 5)
    outcome = uflip("analyse", name)
    for word in words:
        assert word in outcome.err
    assert not Path("r").exists()


def test_averages_have_no_levels_and_percentiles(workdir: Path) -> None:
    values = np.random.default_rng(1).normal(2e6, 1e5, 100).astype(int)
    lines = [f"{500 * n}, {value}, 0, 0, 0, 0" for n, value in enumerate(values, 1)]
    Path("job_clat.1.log").write_text("\n".join(lines))
    text = uflip("analyse", "job_clat.1.log").out
    assert "averages of 500 ms, not single I/Os" in text
    assert "mean of averages" in text
    assert "levels" not in text
    assert "percentiles" not in text
    document = json.loads(uflip("analyse", "job_clat.1.log", "--json").out)
    assert (document["levels"], document["percentiles"]) == ([], [])
    assert document["read_as"]["averaged_ns"] == 500_000_000
