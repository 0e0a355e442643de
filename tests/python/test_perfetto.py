"""`uflip export --format perfetto`: structure of the trace, and agreement with the device log."""

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

from uflip.results import Results
from uflip.results.device_log import read_device_log
from uflip.results.perfetto import CHANNELS, DIES, HOST, WAITING, tracks_of

SMALL = "sim:demo?blocks_per_die=32&write_cache_bytes=256KiB"
Event = dict[str, Any]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, list[Event]]:
    folder = tmp_path_factory.mktemp("perfetto")
    uflip(
        "pattern", SMALL, "--pattern", "RR", "--mix", "RW", "--ratio", "1", "--queue-depth", "4",
        "--io-count", "300", "--inside", str(folder / "r"), "--quiet",
    )  # fmt: skip
    uflip("export", folder / "r", "--format", "perfetto", "-o", folder / "p", "--quiet")
    (file,) = (folder / "p").iterdir()
    assert file.name.endswith(".json.gz")
    document = json.loads(gzip.decompress(file.read_bytes()))
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    return Results.load(folder / "r"), document["traceEvents"]


def slices(events: list[Event], process: int) -> list[Event]:
    return [each for each in events if each["ph"] == "X" and each["pid"] == process]


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def test_every_io_is_a_slice(exported: tuple[Results, list[Event]]) -> None:
    results, events = exported
    trace = results.runs[0].trace()
    shown = sorted(slices(events, HOST), key=lambda each: int(each["args"]["io"]))
    assert [ns(each["dur"]) for each in shown] == np.asarray(
        trace.column("response_time_ns")
    ).tolist()
    begin = np.asarray(trace.column("submit_ns")).astype(int)
    assert [ns(each["ts"]) for each in shown] == (begin - begin.min()).tolist()
    assert len({each["tid"] for each in shown}) == 4  # the queue depth


def test_every_operation_is_a_slice_of_its_die(exported: tuple[Results, list[Event]]) -> None:
    results, events = exported
    log = read_device_log(results.runs[0])
    assert log is not None
    shown = {each["args"]["op"]: each for each in slices(events, DIES)}
    assert sorted(shown) == list(range(len(log.operations)))
    assert all(shown[op]["tid"] == die for op, die in enumerate(log.operations.die.tolist()))
    sent = log.operations.sent_until > log.operations.sent
    assert len(slices(events, CHANNELS)) == int(sent.sum())


def test_slices_of_a_track_do_not_overlap(exported: tuple[Results, list[Event]]) -> None:
    tracks = defaultdict(list)
    for each in exported[1]:
        if each["ph"] == "X":
            tracks[each["pid"], each["tid"]].append((ns(each["ts"]), ns(each["ts"] + each["dur"])))
    assert {process for process, _ in tracks} == {HOST, WAITING, CHANNELS, DIES}
    for rows in tracks.values():
        rows.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(rows))


def test_arrows_lead_from_a_slice_to_a_slice(exported: tuple[Results, list[Event]]) -> None:
    _, events = exported
    on_track = defaultdict(list)
    for each in events:
        if each["ph"] == "X":
            on_track[each["pid"], each["tid"]].append(each)
    flows = defaultdict(list)
    for each in events:
        if each["ph"] in "stf":
            flows[each["id"]].append(each)
            inside = [
                one
                for one in on_track[each["pid"], each["tid"]]
                if ns(one["ts"]) <= ns(each["ts"]) <= ns(one["ts"] + one["dur"])
            ]
            assert inside, each
    assert flows
    for chain in flows.values():
        assert "".join(each["ph"] for each in chain) in ("sf", "stf")
        assert chain[-1]["bp"] == "e"
        times = [each["ts"] for each in chain]
        assert times == sorted(times)


def test_occupant_is_the_longest_by_a_naive_search(exported: tuple[Results, list[Event]]) -> None:
    _, events = exported
    dies = slices(events, DIES)
    checked = 0
    for wait in slices(events, WAITING):
        if not wait["name"].startswith("die") or "waited_for" not in wait["args"]:
            continue
        begin, end = ns(wait["ts"]), ns(wait["ts"] + wait["dur"])
        waited_for = next(each for each in dies if each["args"]["op"] == wait["args"]["waited_for"])
        overlaps = [
            min(ns(each["ts"] + each["dur"]), end) - max(ns(each["ts"]), begin)
            for each in dies
            if each["tid"] == waited_for["tid"]
        ]
        busy = min(ns(waited_for["ts"] + waited_for["dur"]), end) - max(ns(waited_for["ts"]), begin)
        assert busy == max(overlaps)
        checked += 1
    assert checked > 100


def test_tracks_are_as_few_as_intervals_at_a_time() -> None:
    random = np.random.default_rng(3)
    begin = random.integers(0, 1000, 200)
    end = begin + random.integers(1, 60, 200)
    most = max(int(((begin <= at) & (end > at)).sum()) for at in range(1100))
    assert tracks_of(begin, end).max() + 1 == most


def test_run_without_a_log_has_its_ios(workdir: Path) -> None:
    uflip("run", "null", "--only", "baseline", "--scale", "quick", "--out", "r", "--quiet")
    outcome = uflip("export", "r", "--format", "perfetto", "--quiet")
    assert outcome.code == 0, outcome.err
    file = next((workdir / "r-perfetto").iterdir())
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert slices(events, HOST)
    assert not slices(events, DIES)
