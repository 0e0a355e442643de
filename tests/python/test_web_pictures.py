"""Does a picture of a run show its data: every row exact, no spike lost, at any zoom?

The oracle is the whole run in memory, cut by hand.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import stored

from uflip.results import slow_traits
from uflip.results.pyramid import Pyramid
from uflip.spec import baseline, parallel
from uflip.web import open_run, slow_ios, window
from uflip.web.open_run import CLASSES, OpenRun, classes_of, edges_ns, grid_of
from uflip.web.window import Picture, picture

SMALL = "sim:demo?blocks_per_die=64"
COUNT = 3000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenRun]:
    """A run of one stream with a start-up, and one of four that run side by side."""
    single = stored.baseline_run(1, "RW", io_count=COUNT, io_ignore=100, io_size=4096)
    each = {"io_size": 4096, "io_count": COUNT // 4, "target_size": 8 << 20}
    spec = parallel(*(baseline("RW", target_offset=n * (8 << 20), **each) for n in range(4)))
    together = stored.planned_run(
        2, "parallelism", "RW", parameter="parallel_degree", value=4, unit="", spec=spec
    )
    folder = tmp_path_factory.mktemp("pictures") / "r"
    results = stored.results(folder, (single, together), SMALL)
    return {
        name: OpenRun(results, each)
        for name, each in zip(("one", "four"), results.runs, strict=True)
    }


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reduce blocks and buffers, so that three thousand I/Os are drawn like ten million."""
    monkeypatch.setattr(open_run, "BLOCKS", 128)
    monkeypatch.setattr(open_run, "PIECE_IOS", 500)
    monkeypatch.setattr(slow_traits, "PIECE_IOS", 500)
    monkeypatch.setattr(open_run, "PART", 300)
    monkeypatch.setattr(open_run, "PARTS", 5)
    monkeypatch.setattr(window, "POINTS", 200)
    monkeypatch.setattr(window, "RAW", 700)
    return


def columns_of(run: OpenRun) -> dict[str, np.ndarray]:
    trace = run.run.trace()
    return {name: np.asarray(trace.column(name)).astype(np.int64) for name in trace.columns}


STRETCHES = [(0, 1), (0.003, 0.03), (0.4, 0.6), (0.05, 0.95), (0.99, 1), (0.3, 0.3001), (-5, 9)]


@pytest.mark.parametrize("name", ["one", "four"])
@pytest.mark.parametrize("axis", window.AXES)
@pytest.mark.parametrize("stretch", STRETCHES)
@pytest.mark.parametrize("columns", [16, 100])
def test_every_row_is_exact(
    runs: dict[str, OpenRun], name: str, axis: Any, stretch: tuple[float, float], columns: int
) -> None:
    run, data = runs[name], columns_of(runs[name])
    times, since = data["response_time_ns"], data["submit_ns"] - data["submit_ns"].min()
    extent = len(times) if axis == "number" else int(since.max())
    low, high = (share * extent for share in stretch)
    drawn = picture(run, axis, low, high, columns)
    position = np.arange(len(times)) if axis == "number" else since
    below = position < np.ceil(high) if axis == "number" else position <= high
    inside = (position >= np.floor(low)) & below
    if drawn.header["kind"] == "ios":
        assert drawn.arrays["number"].tolist() == np.flatnonzero(inside).tolist()
        for column in window.POINT_COLUMNS:
            expected = since if column == "submit_ns" else data[column]
            assert drawn.arrays[column].tolist() == expected[inside].tolist(), column
        if inside.any():
            causes = np.array([data[cause] for cause in run.causes])
            assert drawn.arrays["cause"].tolist() == causes.argmax(axis=0)[inside].tolist()
    else:
        check_rows(drawn, times, since, data["stream"])
        assert len(drawn.arrays["start"]) <= 2 * columns + 4 * 2
        covered = np.zeros(len(times), bool)
        for start, stop in rows_of(drawn):
            covered[start:stop] = True
        assert covered[inside].all(), "every I/O is covered"
    if inside.any() and drawn.header["window"]["exact"]:
        assert drawn.header["window"]["max_ns"] == times[inside].max()
        assert drawn.header["window"]["count"] == inside.sum()


def rows_of(drawn: Picture) -> list[tuple[int, int]]:
    ends = (drawn.arrays[name].tolist() for name in ("start", "stop"))
    return list(zip(*ends, strict=True))


def check_rows(drawn: Picture, times: Any, since: Any, stream: Any) -> None:
    n, first = drawn.header["classes"], drawn.header["first_class"]
    spread = drawn.arrays["spread"].reshape(-1, n)
    for i, (start, stop) in enumerate(rows_of(drawn)):
        part = times[start:stop]
        row = {key: drawn.arrays[key][i] for key in ("min_ns", "max_ns", "first_ns", "last_ns")}
        assert row["min_ns"] == part.min()
        assert row["max_ns"] == part.max()
        assert row["first_ns"] == since[start:stop].min()
        assert row["last_ns"] == since[start:stop].max()
        assert drawn.arrays["mean_ns"][i] == pytest.approx(part.mean())
        assert len(set(stream[start:stop])) == 1, "a row is of one stream"
        counted = np.histogram(part, bins=edges_ns()[first : first + n + 1])[0]
        assert spread[i].tolist() == counted.tolist()


def test_pictures_cover_all_three_kinds(runs: dict[str, OpenRun]) -> None:
    run = runs["one"]
    kinds = [picture(run, "number", 0, high, 50) for high in (150, 600, COUNT)]
    lengths = [len(each.arrays.get("start", ())) for each in kinds]
    assert [each.header["kind"] for each in kinds] == ["ios", "rows", "rows"]
    assert run.grid() is not None
    assert [each.header["window"]["exact"] for each in kinds] == [True, True, False]
    assert lengths[1] > 0


@pytest.mark.parametrize("stop", [150, 600, COUNT])
def test_running_means_include_all_before(runs: dict[str, OpenRun], stop: int) -> None:
    times = columns_of(runs["one"])["response_time_ns"]
    drawn = picture(runs["one"], "number", 40, stop, 60)
    ends = drawn.arrays["stop"] if "stop" in drawn.arrays else drawn.arrays["number"] + 1
    for end, without, with_startup in zip(
        ends, drawn.arrays["average_ns"], drawn.arrays["average_with_ns"], strict=True
    ):
        assert with_startup == pytest.approx(times[:end].mean())
        if end <= 100:
            assert np.isnan(without)
        else:
            assert without == pytest.approx(times[100:end].mean())


def test_long_run_is_drawn_from_pyramid_until_loaded(
    runs: dict[str, OpenRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = runs["one"]
    times = columns_of(one)["response_time_ns"]
    monkeypatch.setattr(open_run, "MAX_SYNC_IOS", 0)
    run = OpenRun(one.results, one.run)
    monkeypatch.setattr(run, "_is_making", True)  # it is being read, for as long as we look
    for axis in window.AXES:
        drawn = picture(run, axis, 0, 1e18, 40)
        assert not drawn.header["complete"]
        assert drawn.arrays["max_ns"].max() == times.max()
        assert drawn.arrays["min_ns"].min() == times.min()
    pyramid: Pyramid | None = run.pyramid
    assert pyramid is not None
    run.wait()
    assert picture(run, "number", 0, COUNT, 40).header["complete"]


def test_run_is_awaited_before_its_thread_starts(
    runs: dict[str, OpenRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = OpenRun(runs["one"].results, runs["one"].run)
    counts: list[int] = []

    class LateThread(Thread):
        def start(self) -> None:
            counts.append(len(run.wait()))
            super().start()

    monkeypatch.setattr(open_run, "MAX_SYNC_IOS", 0)
    monkeypatch.setattr(open_run, "Thread", LateThread)
    counts.append(len(run.wait()))
    assert counts[0] == counts[1] > 0


def test_classes_match_their_edges() -> None:
    rng = np.random.default_rng(3)
    times = np.exp(rng.uniform(0, np.log(4e9), 20_000)).astype(np.int64)
    edges = edges_ns()
    assert classes_of(np.array([0, 1])).tolist() == [0, 0]
    assert classes_of(np.array([2**63 - 1])).tolist() == [CLASSES - 1]
    # A value of more than 24 bits is rounded to 24 bits first.
    rounded = times.astype(np.float32).astype(np.float64)
    codes = classes_of(times)
    assert (edges[codes] <= rounded).all()
    assert (rounded < edges[codes + 1]).all()


def test_packed_picture_reads_back(runs: dict[str, OpenRun]) -> None:
    drawn = picture(runs["one"], "number", 0, 150, 50)
    content = drawn.pack()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    offset = 8 + length
    assert offset % 8 == 0
    for about in head["arrays"]:
        size = {"f8": 8, "u4": 4, "u1": 1}[about["type"]] * about["length"]
        values = np.frombuffer(content[offset : offset + size], f"<{about['type']}")
        assert np.array_equal(values, drawn.arrays[about["name"]].ravel(), equal_nan=True)
        offset += -(-size // 8) * 8
    assert offset == len(content)


# The slowest


@pytest.mark.parametrize("stretch", [(0, COUNT), (700, 1900), (5, 8)])
def test_slowest_ios_are_listed(runs: dict[str, OpenRun], stretch: tuple[int, int]) -> None:
    run, times = runs["one"], columns_of(runs["one"])["response_time_ns"]
    answer = slow_ios.slowest(run, *stretch)
    part = times[slice(*stretch)]
    expected = np.argsort(-part, kind="stable")[: len(answer["ios"])] + stretch[0]
    assert [io["number"] for io in answer["ios"]] == expected.tolist()
    for io in answer["ios"]:
        assert sum(each["ns"] for each in io["causes"]) == io["response_time_ns"]
    assert answer["slow"] == min(max(len(part) // 100, slow_traits.MIN_SLOW), len(part))


def test_traits_of_slow_ios_are_counted(runs: dict[str, OpenRun]) -> None:
    run, data = runs["one"], columns_of(runs["one"])
    answer = slow_ios.slowest(run, 0, COUNT)
    slowest = np.argsort(-data["response_time_ns"], kind="stable")[: answer["slow"]]
    causes = np.array([data[cause] for cause in run.causes])
    words = {slow_ios.cause_name(cause): index for index, cause in enumerate(run.causes)}
    checked = 0
    for trait in answer["traits"]:
        if trait["name"] not in ("most of the time", "waited for"):
            continue
        cause = words[trait["value"]]
        most = trait["name"] == "most of the time"
        has = causes.argmax(axis=0) == cause if most else causes[cause] > 0
        assert trait["every"] == pytest.approx(has.mean())
        assert trait["slow"] == pytest.approx(has[slowest].mean())
        assert trait["lift"] == pytest.approx(trait["slow"] / trait["every"])
        checked += 1
    assert checked, "a simulated device reports causes"


def test_random_choice_has_no_traits(runs: dict[str, OpenRun]) -> None:
    """Slow ones that are picked blindly have no traits, but of a few in fifty tries."""
    run = runs["one"]
    rng = np.random.default_rng(5)
    tries = [slow_ios._traits(run, 0, COUNT, np.sort(rng.choice(COUNT, 30))) for _ in range(20)]
    assert sum(map(len, tries)) < 20


def test_addresses_include_slowest_and_a_sample(runs: dict[str, OpenRun]) -> None:
    run, data = runs["one"], columns_of(runs["one"])
    drawn = window.addresses(run, 0, COUNT)
    numbers = drawn.arrays["number"]
    assert len(numbers) <= window.POINTS
    assert drawn.arrays["offset_bytes"].tolist() == data["offset_bytes"][numbers].tolist()
    slowest = np.argsort(-data["response_time_ns"], kind="stable")[: window.POINTS // 4]
    assert set(slowest.tolist()) <= set(numbers.tolist())
    whole = window.addresses(run, 10, 60)
    assert whole.arrays["number"].tolist() == list(range(10, 60))


def test_grid_of_empty_stretch_and_of_all_streams(runs: dict[str, OpenRun]) -> None:
    streams_grid = grid_of(runs["four"].log)
    stream = columns_of(runs["four"])["stream"]
    assert streams_grid.streams.tolist() == [
        *np.searchsorted(stream, range(4)).tolist(),
        len(stream),
    ]
    assert picture(runs["one"], "number", 7, 7, 20).header["window"]["count"] == 0
    assert Path(runs["one"].run.path).exists()
