"""Is an idle time before an I/O one of the whole device, whatever else is in flight?

The oracle looks at all I/Os that were submitted before, one by one.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import stored
from command_line import uflip

from uflip.results import Results, slow_traits
from uflip.spec import baseline, parallel
from uflip.web import open_run, slow_ios, window
from uflip.web.open_run import OpenRun
from uflip.web.slow_ios import NO_EARLIER_IO, idle_before

SMALL = "sim:demo?blocks_per_die=64"
EACH = {"io_size": 4096, "target_size": 8 << 20}
IDLE = {"time": "pause", "pause": "3ms"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenRun]:
    """One I/O at a time, I/Os that arrive while others are under way, and four at a time."""
    specs = {
        "closed": baseline("RW", io_count=1500, time="pause", pause="500us", **EACH),
        "open": baseline("RW", io_count=1500, time="poisson", interval="700us", **EACH),
        "four": parallel(*(baseline("RW", io_count=375, seed=n, **IDLE, **EACH) for n in range(4))),
    }
    planned = [
        stored.planned_run(n, "pause", "RW", parameter="pause", value=n, unit="ns", spec=spec)
        for n, spec in enumerate(specs.values(), 1)
    ]
    results = stored.results(tmp_path_factory.mktemp("idle_before") / "r", planned, SMALL)
    return dict(zip(specs, (OpenRun(results, each) for each in results.runs), strict=True))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_run, "BLOCKS", 128)
    monkeypatch.setattr(slow_traits, "PIECE_IOS", 400)
    monkeypatch.setattr(open_run, "PART", 300)


def naive(run: OpenRun) -> np.ndarray:
    count = run.io_count
    begins, took = (run.column(name, 0, count).astype(np.int64) for name in
                    ("submit_ns", "response_time_ns"))  # fmt: skip
    stream = run.column("stream" if run.has("stream") else "thread", 0, count)
    number, idle_ns = np.arange(count), np.full(count, NO_EARLIER_IO)
    for i in number:
        before = (begins < begins[i]) | (
            (begins == begins[i]) & (stream == stream[i]) & (number < i)
        )
        if before.any():
            idle_ns[i] = max(begins[i] - (begins + took)[before].max(), 0)
    return idle_ns


@pytest.mark.parametrize("name", ["closed", "open", "four"])
def test_no_io_is_in_flight_during_idle_time(runs: dict[str, OpenRun], name: str) -> None:
    run = runs[name]
    expected = naive(run)
    assert (expected > 0).any()
    assert (expected[1:] == 0).any() == (name != "closed")
    for low, high in pairwise([0, 1, 2, 370, 380, 1000, run.io_count]):
        assert idle_before(run, low, high).tolist() == expected[low:high].tolist()
    for number in (0, 1, 374, 375, 800, run.io_count - 1):
        idle_ns = slow_ios.io_view(run, number).get("idle_before_ns", NO_EARLIER_IO)
        assert idle_ns == expected[number]


@pytest.mark.parametrize("name", ["open", "four"])
def test_traits_count_the_same_idle_times(runs: dict[str, OpenRun], name: str) -> None:
    run = runs[name]
    expected = naive(run)
    counted = {
        value: sum(int(has.sum()) for low, high in slow_traits.piece_ranges(0, run.io_count)
                   for (trait, each), has in slow_ios._marks(run, low, high, 0, run.io_count)
                   if (trait, each) == ("idle before", value))
        for value in ("none", "more than 100 µs")
    }  # fmt: skip
    assert counted == {"none": (expected <= 1000).sum(), "more than 100 µs": (expected > 1e5).sum()}


def test_open_channel_threads_are_streams(tmp_path: Path) -> None:
    options = ("--scale", "quick", "--only", "oc2", "--out", tmp_path / "oc")
    assert uflip("oc", "run", "sim:dfc", *options).code == 0
    results = Results.load(tmp_path / "oc")
    several = next(each for each in results.runs if each.id.endswith("W-2-luns-threads"))
    run = OpenRun(results, several)
    run_grid = run.grid()
    assert run_grid is not None
    assert len(run_grid.streams) - 1 == several.value
    assert idle_before(run, 0, run.io_count).tolist() == naive(run).tolist()
    submitted = run.column("submit_ns", 0, run.io_count).astype(np.int64)
    until = float(np.median(submitted - submitted.min()))
    drawn = window.picture(run, "time", 0, until, 50).header["window"]
    assert drawn["count"] == (submitted - submitted.min() <= until).sum()  # type: ignore[index]
