"""Runs over time: against a plain count, and against the whole run."""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.results.time_rows import COLUMNS, time_rows
from uflip.spec import baseline

DEVICE = "sim:demo?blocks_per_die=64"


@pytest.mark.parametrize("interval_ns", [100_000, 1_000_000, 7_777_777])
@pytest.mark.parametrize("depth", [1, 8])
def test_rows_match_a_plain_count(interval_ns: int, depth: int) -> None:
    with open_device(DEVICE) as device:
        trace = device.run(baseline("RW", io_count=400, queue_depth=depth, io_size=16384))
    begins, took, sizes = (
        [int(each) for each in np.asarray(trace.column(name))]
        for name in ("submit_ns", "response_time_ns", "io_size_bytes")
    )
    begins = [each - min(begins) for each in begins]
    ios = list(zip(begins, took, sizes, strict=True))
    rows = time_rows(trace, interval_ns)
    last = max(begin + time for begin, time, _ in ios)
    assert sum(row.length_ns for row in rows) == last
    for row in rows:
        low, high = row.start_ns, row.start_ns + row.length_ns
        ended = [io for io in ios if low < io[0] + io[1] <= high]
        assert (row.ios, row.bytes) == (len(ended), sum(size for *_, size in ended))
        overlap = sum(max(0, min(begin + time, high) - max(begin, low)) for begin, time, _ in ios)
        assert row.in_flight == pytest.approx(overlap / row.length_ns)
        assert row.in_flight <= depth + 1e-9
        assert row.ios_per_s == pytest.approx(len(ended) * 1e9 / row.length_ns)
        expected = np.percentile([time for _, time, _ in ended], 99) if ended else None
        assert row.p99_ns == pytest.approx(expected)
    assert sum(row.ios for row in rows) == 400
    with pytest.raises(UsageError, match="too short"):
        time_rows(trace, 1)


def test_show_prints_text_csv_and_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pattern = ("--pattern", "RW", "--io-count", "300", "--inside", out, "-q")
    outcome = uflip("pattern", DEVICE, *pattern)
    assert outcome.code == 0, outcome.err
    document = json.loads(uflip("show", out, "--every", "5ms", "--json").out)
    (run,) = document["runs"]
    assert sum(row["ios"] for row in run["rows"]) == 300
    table = list(csv.DictReader(io.StringIO(uflip("show", out, "--every", "5ms", "--csv").out)))
    assert list(table[0]) == ["run", *COLUMNS]
    assert [int(row["ios"]) for row in table] == [row["ios"] for row in run["rows"]]
    assert {row["run"] for row in table} == {run["run"]}
    text = uflip("show", out, "--every", "5ms").out
    assert len(text.splitlines()) == 2 + len(table), "a title, a head, and the rows"
    for wrong in (("--csv",), ("--every", "0"), ("--every", "x")):
        assert uflip("show", out, *wrong).code == 2


@pytest.mark.parametrize("depth", [1, 8])
def test_live_rows_match_those_of_the_trace(depth: int, workdir: Path) -> None:
    """Compare the rows printed during a run with plain counts over its trace."""
    every = 20_000_000
    pattern = ("--pattern", "RW", "--io-size", "4k", "--io-count", "3000", "--queue-depth", depth)
    more = ("--live", "--every", "20ms", "--json", "--trace", "ios.csv")
    outcome = uflip("pattern", DEVICE, *pattern, *more)
    assert outcome.code == 0, outcome.err
    *lines, last = map(json.loads, outcome.out.splitlines())
    rows = [line["row"] for line in lines]
    assert {line["clock"] for line in lines} == {"virtual"}
    ios = list(csv.DictReader(Path("ios.csv").read_text().splitlines()))
    begins, took = ([int(io[name]) for io in ios] for name in ("submit_ns", "response_time_ns"))
    ends = [begin + time for begin, time in zip(begins, took, strict=True)]
    assert len(rows) == -(-max(ends) // every)
    for number, row in enumerate(rows):
        low, high = number * every, number * every + row["length_ns"]
        times = sorted(time for end, time in zip(ends, took, strict=True) if low < end <= high)
        assert (row["start_ns"], row["ios"], row["bytes"]) == (low, len(times), 4096 * len(times))
        assert row["ios_per_s"] == pytest.approx(len(times) * 1e9 / row["length_ns"])
        assert row["in_flight"] == pytest.approx(sum(times) / row["length_ns"])
        for name, share in (("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)):
            exact = times[max(1, math.ceil(len(times) * share)) - 1]
            assert exact <= row[name] <= exact * (1 + 1 / 128)
    amplified = sum(row["bytes"] * row["write_amplification"] for row in rows)
    pages = last["counters"]["pages_programmed"]
    assert amplified == pytest.approx(
        pages * last["device"]["details"]["profile"]["geometry"]["page_bytes"]
    )


def test_live_lines_are_one_for_each_interval() -> None:
    outcome = uflip(
        "pattern", DEVICE, "--pattern", "RR", "--io-count", "200", "--live", "--every", "5ms"
    )
    assert outcome.code == 0, outcome.err
    head, *rows = outcome.out.split("\nrandom")[0].splitlines()
    assert head.startswith("simulated time")
    assert sum(int(row.split()[2]) for row in rows[:-1]) <= 200
    refused = uflip("pattern", DEVICE, "--pattern", "RR", "--every", "1s")
    assert (refused.code, "--live" in refused.err) == (2, True)
