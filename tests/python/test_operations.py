"""Is what dies and channels did recorded as it was: nothing twice, nothing left out, every wait for
somebody?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored

from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.results import Results
from uflip.results.device_log import read_device_log
from uflip.results.operations import (
    ERASE,
    INSIDE,
    JOBS,
    MERGE,
    PROGRAM,
    READ,
    RELOCATION,
    REST,
    SCRUB,
    WHATS,
    WORDS,
    Operations,
    operations_of,
)
from uflip.spec import baseline, basic, mix, parallel
from uflip.web.die_operations import Lanes
from uflip.web.folders import Folders, key_of
from uflip.web.gantt import MAX_OPERATIONS, busy_until, gantt, io_operations, lanes_of, operation
from uflip.web.open_results import OpenResults
from uflip.web.slow_ios import io_view

SMALL = "sim:demo?blocks_per_die=64"
DEVICES = {
    "a page map": (SMALL, {}),
    "reads go first": (f"{SMALL}&die_queue=reads_first", {"queue_depth": 8}),
    "reads suspend": (
        f"{SMALL}&die_queue=reads_first&program_suspend_ns=20us&erase_suspend_ns=50us&suspensions_max=2",
        {"queue_depth": 8, "reads": True},
    ),
    "planes": (f"{SMALL}&planes_per_die=2&multi_plane=any_page", {"queue_depth": 8}),
    "copy-back": ("sim:ofc?blocks_per_die=64", {"io_count": 3000}),
    "a register": (f"{SMALL}&cache_program=true", {"queue_depth": 4}),
    "a cache": (
        "sim:tlc-nvme?blocks_per_die=40&spare_factor=0.2&write_cache_bytes=1MiB",
        {"io_count": 4000},
    ),
    "merges": ("sim:transcend-module", {"io_count": 300, "target_size": 4 << 20}),
    "a map on flash": ("sim:dftl", {"io_count": 2000}),
}
WAITS = "die_wait_ns", "relocation_ns", "erase_ns", "metadata_ns", "mapping_ns"


def recorded(path: Path, url: str, *, reads: bool = False, **changes: Any) -> Results:
    """Random writes, or as many random reads between them."""
    run = stored.baseline_run(1, "RW", **{"io_size": 8192, "io_count": 2500} | changes)
    if reads:
        sides = [baseline(label, io_size=8192, target_size=16 << 20) for label in ("RW", "RR")]
        run = replace(run, spec=mix(*sides, 1, io_count=2500, queue_depth=changes["queue_depth"]))
    with open_device(url) as device:
        device.looks_inside = True
        filled = stored.writer(path, [run], device)
        filled.commit(run, device.run(run.spec))
        filled.finish("complete")
    return Results.load(path)


def of(results: Results) -> Operations:
    found = read_device_log(results.runs[0])
    assert found is not None
    assert found.operations is not None
    return found.operations


def opened(results: Results) -> tuple[Any, Lanes]:
    key = key_of(results.path)
    return lanes_of(OpenResults(Folders([results.path])), key, results.runs[0].id)


@pytest.fixture(scope="module", params=DEVICES)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    url, changes = DEVICES[request.param]
    return recorded(tmp_path_factory.mktemp("operations") / "r", url, **changes)


def times_of(results: Results, name: str) -> Any:
    return np.asarray(results.runs[0].trace().column(name)).astype(np.int64)


def number_of(found: Operations, purpose: int, kind: int) -> int:
    return int((found.what == list(WORDS).index((purpose, kind))).sum())


def naively_overlapping(begin: Any, end: Any) -> int:
    """Pairs of neighbours, in order of their beginnings, of which the second begins too early."""
    order = np.argsort(begin, kind="stable")
    return int((begin[order][1:] < end[order][:-1]).sum())


def test_four_pages_on_two_dies_of_a_channel_are_as_worked_out_by_hand(tmp_path: Path) -> None:
    """One I/O: a page is 10 µs on the link, 100 on the channel, and programmed in 300.

    ::

        µs        10   20   30   40       110       210          410       510      610   810   910
        die a     page 1 ├ sent ┼──────── cells ─────────────────┼ page 3 sent ┼─── cells ──┤
        die b          page 2 waits ├ sent ┼──────── cells ────────────────┼ page 4 sent ┼ cells ┤
        page 3 and page 4 wait for their dies from 30 and 40 on
    """
    url = (
        "sim:demo?channels=1&dies_per_channel=2&blocks_per_die=64&buses=0&command_write_ns=0"
        "&link_bytes_per_s=409600000&channel_bytes_per_s=40960000&program_ns=300us&spare_bytes=0&state=empty"
    )
    found = of(recorded(tmp_path / "r", url, io_count=1, io_size=16384, target_size=1 << 20))
    order = np.argsort(found.asked)
    us = 1000
    for name, expected in {
        "asked": [10, 20, 30, 40],
        "begin": [10, 20, 410, 510],
        "sent": [10, 110, 410, 510],
        "sent_until": [110, 210, 510, 610],
        "cells_from": [110, 210, 510, 610],
        "end": [410, 510, 810, 910],
    }.items():
        assert getattr(found, name)[order].tolist() == [each * us for each in expected], name
    first, second, *again = found.die[order].tolist()
    assert again == [first, second]
    assert first != second
    assert found.io.tolist() == [0] * 4
    assert [WHATS[each] for each in found.what] == ["host program"] * 4


def test_no_die_and_no_channel_does_two_things_at_once(results: Results) -> None:
    found = of(results)
    assert found.recorded == len(found) > 0
    assert len(found.gaps) == 0
    assert (found.asked <= found.begin).all()
    assert (found.begin < found.end).all()
    cells = found.cells_from, found.cells_from + found.cells
    sent = found.sent_until > found.sent
    for die in np.unique(found.die):
        at = found.die == die
        assert naively_overlapping(cells[0][at], cells[1][at]) == 0
        if "cache_program" not in results.manifest.device.url:
            assert naively_overlapping(found.begin[at], found.end[at]) == 0
    for channel in np.unique(found.channel):
        at = (found.channel == channel) & sent
        assert naively_overlapping(found.sent[at], found.sent_until[at]) == 0


def test_planes_that_work_together_have_a_lane_each(tmp_path: Path) -> None:
    url, changes = DEVICES["planes"]
    run, lanes = opened(recorded(tmp_path / "r", url, **changes))
    found = lanes.operations
    shown = gantt(run, lanes, "number", (0, 10), 100).header["lanes"]
    assert isinstance(shown, list)
    names = [lane["name"] for lane in shown]
    dies = len(found.clocks) // 2
    planes = [f"die {die}, plane {plane}" for die in range(dies) for plane in range(2)]
    assert sorted(name for name in names if "die" in name) == sorted(planes)
    assert found.clocks.tolist() == [*range(dies), *range(dies)]
    # Both planes of a die mostly work at once; the operations of each name the die.
    on_first = found.clocks[found.die] == 0
    assert naively_overlapping(found.begin[on_first], found.end[on_first]) > on_first.sum() // 4
    assert operation(lanes, int(np.flatnonzero(found.die == dies)[0]))["die"] == 0


def test_a_job_is_what_its_operations_say() -> None:
    """Of an erase alone the other jobs of the device tell: an FTL merges, or it collects."""

    def jobs(*operations: tuple[int, int, int]) -> list[str]:
        job, purpose, kind = (np.array(column) for column in zip(*operations, strict=True))
        names = ["asked", "waited", "held", "cells", "to_channel", "sent"]
        columns = {f"op_{name}_ns": np.zeros(len(job)) for name in names}
        columns |= {"op_die": np.zeros(len(job)), "op_purpose": purpose, "op_kind": kind}
        columns |= {"op_io_and_one": np.zeros(len(job)), "op_block_and_one": job + 1}
        columns |= {"op_job_and_one": job + 1, "ops_all": np.array([len(job)])}
        columns |= {f"gap_{each}_ns": np.zeros(0) for each in ("from", "until")}
        found = operations_of(columns | {"die_channel": np.zeros(1)})
        assert found is not None
        return [JOBS[each] for each in found.jobs]

    merge, scrub = (0, MERGE, READ), (1, SCRUB, READ)
    assert jobs(merge, (0, ERASE, INSIDE), scrub, (1, ERASE, INSIDE), (2, ERASE, INSIDE)) == [
        "merge",
        "scrub",
        "merge",
    ]
    assert jobs((0, RELOCATION, READ), (0, ERASE, INSIDE), scrub, (2, ERASE, INSIDE)) == [
        "collection",
        "scrub",
        "collection",
    ]


def test_operations_are_those_that_the_device_counted(results: Results) -> None:
    found, counters = of(results), results.runs[0].meta.counters
    assert counters is not None
    is_program = [place for place, (_, does) in enumerate(WORDS) if does == PROGRAM]
    programs = int(np.isin(found.what, is_program).sum())
    inside = number_of(found, RELOCATION, INSIDE) + number_of(found, MERGE, INSIDE)
    if inside == 0:
        # Counted programs without their die time inside the run are in flight at its ends.
        assert abs(programs - counters["pages_programmed"]) <= 128
    assert abs(number_of(found, ERASE, INSIDE) - counters["blocks_erased"]) <= len(found.channels)
    assert not (found.what == len(WORDS)).all()


def test_what_is_suspended_is_there_in_parts_with_reads_between(tmp_path: Path) -> None:
    url, changes = DEVICES["reads suspend"]
    found = of(recorded(tmp_path / "r", url, **changes))
    parts = {WORDS[key]: place for place, key in enumerate(WORDS) if key[1] == REST}
    for word, place in parts.items():
        rests = np.flatnonzero(found.what == place)
        if word in ("host program resumed", "valid-page program resumed", "erase resumed"):
            assert len(rests) > 10, word
        for row in rests.tolist():
            # It was asked for when it stopped, and its die was given to a read of the host at once.
            on_die = np.flatnonzero(found.die == found.die[row])
            between = on_die[(found.begin[on_die] < found.begin[row])]
            between = between[found.end[between] > found.asked[row]]
            whats = {WHATS[each] for each in found.what[between]}
            assert "host read" in whats, word
            whole = word.removesuffix(" resumed")
            stopped = between[np.argmin(found.begin[between])]
            assert WHATS[found.what[stopped]] in (whole, word)
            assert found.end[stopped] - found.asked[row] in (20_000, 50_000)


def test_whoever_waits_waits_for_others(results: Results) -> None:
    _, lanes = opened(results)
    found = lanes.operations
    waited = np.flatnonzero(found.begin > found.asked)
    assert len(waited) > 0 or "transcend" in results.manifest.device.url
    for row in waited[:: max(len(waited) // 400, 1)].tolist():
        said = operation(lanes, row)
        # From the first moment to the last somebody else has the die, as a scan of all finds.
        clock = found.clocks[found.die]
        other = np.flatnonzero(clock == clock[row])
        other = other[other != row]
        low, high = int(found.asked[row]), int(found.begin[row])
        clipped = np.minimum(found.end[other], high) - np.maximum(lanes.occupied_from[other], low)
        assert int(clipped[clipped > 0].sum()) == high - low == said["waited_ns"]
        assert sum(each["ns"] for each in said["waited_for"]) == high - low
        sent = said["channel_waited_ns"]
        assert sum(each["ns"] for each in said["channel_waited_for"]) == sent


def test_the_waits_of_an_io_are_those_of_its_operations(tmp_path: Path) -> None:
    """I/Os of one page, which have one operation each: what they waited for a die is that wait."""
    results = recorded(tmp_path / "r", f"{SMALL}&die_queue=reads_first", io_size=4096)
    run, lanes = opened(results)
    found = lanes.operations
    waits = np.sum([times_of(results, name) for name in WAITS], axis=0)
    channel = times_of(results, "channel_wait_ns")
    both = times_of(results, "submit_ns") + times_of(results, "response_time_ns")
    checked = 0
    for number in range(len(waits)):
        rows = np.flatnonzero(lanes.io == number)
        assert len(rows) == 1
        row = int(rows[0])
        assert WHATS[found.what[row]] == "host program"
        assert found.begin[row] - found.asked[row] == waits[number]
        assert found.sent[row] - lanes.channel_requested_ns(row) == channel[number]
        assert found.end[row] == both[number]
        checked += int(waits[number] > 0)
    assert checked > 100
    slowest = int(np.argmax(waits))
    told = io_operations(lanes, slowest)
    assert told is not None
    assert sum(each["ns"] for each in told["waited_for"]) == waits[slowest]
    assert any(each.get("block", -1) >= 0 for each in told["waited_for"])
    assert io_view(run, slowest)["number"] == slowest


def test_waits_for_a_free_page_are_those_that_are_charged(tmp_path: Path) -> None:
    """I/Os of one page: each wait is all of its column, and its card has it."""
    results = recorded(tmp_path / "r", SMALL, io_size=4096)
    _, lanes = opened(results)
    waits, charged = lanes.operations.waits, times_of(results, "free_page_wait_ns")
    found = np.zeros(len(charged), np.int64)
    np.add.at(found, waits.io, waits.end - waits.begin)
    assert (found == charged).all()
    slowest = int(charged.argmax())
    assert charged[slowest] > 0
    told = io_operations(lanes, slowest)
    assert told is not None
    (wait,) = told["waits"]
    assert (wait["kind"], wait["ns"]) == ("free page", charged[slowest])
    assert any("block" in each for each in wait["waited_for"])


def test_a_collection_has_the_valid_pages_that_it_moves(tmp_path: Path) -> None:
    """Some of them become stale before it is their turn; a page of metadata is read as well."""
    _, lanes = opened(recorded(tmp_path / "r", f"{SMALL}&metadata_pages=0", io_size=4096))
    found = lanes.operations
    reads = found.what == WHATS.index("valid-page read")
    moved = np.bincount(found.job[reads & (found.job >= 0)], minlength=len(found.valid))
    ended = np.unique(found.job[found.what == WHATS.index("erase")])
    ended = ended[(ended >= 0) & (ended < len(found.valid))]
    stale = found.valid[ended] - moved[ended]
    assert len(ended) > 20
    assert (stale >= 0).all()
    assert (stale == 0).sum() > len(ended) / 4


def test_what_an_io_waited_for_is_a_block_that_was_erased(tmp_path: Path) -> None:
    _, lanes = opened(results := recorded(tmp_path / "r", SMALL))
    found, inside = lanes.operations, read_device_log(results.runs[0])
    assert inside is not None
    erased = found.block[found.what == WHATS.index("erase")]
    assert (erased >= 0).all()
    counts = np.bincount(erased, minlength=len(inside.erases))
    under_way = np.abs(counts - (inside.erases - inside.erases_before).astype(np.int64))
    assert int(under_way.sum()) <= len(found.channels)


def test_merges_are_told_with_the_io_that_waited_for_them(tmp_path: Path) -> None:
    url, changes = DEVICES["merges"]
    results = recorded(tmp_path / "r", url, **changes)
    _, lanes = opened(results)
    slowest = int(np.argmax(times_of(results, "merge_ns")))
    told = io_operations(lanes, slowest)
    assert told is not None
    did = {each["what"]: each for each in told["did"]}
    assert did["merge program"]["count"] > 0
    assert did["merge program"]["block"] >= 0
    assert did["host program"]["count"] == 8192 // lanes_page(results)


def lanes_page(results: Results) -> int:
    page = results.manifest.device.page_bytes
    assert page is not None
    return page


def test_numbers_are_those_of_the_run_where_streams_run_side_by_side(tmp_path: Path) -> None:
    parts = [
        basic("write", "random", io_size=4096, io_count=100, seed=place, target_size=4 << 20,
              target_offset=place * (4 << 20))
        for place in range(4)
    ]  # fmt: skip
    run = stored.planned_run(
        1, "parallelism", "RW", parameter="parallel_degree", value=4, unit="",
        spec=parallel(*parts),
    )  # fmt: skip
    with open_device(SMALL) as device:
        device.looks_inside = True
        filled = stored.writer(tmp_path / "r", [run], device)
        filled.commit(run, device.run(run.spec))
        filled.finish("complete")
    results = Results.load(tmp_path / "r")
    _, lanes = opened(results)
    ends = times_of(results, "submit_ns") + times_of(results, "response_time_ns")
    for number in range(0, len(ends), 7):
        rows = np.flatnonzero(lanes.io == number)
        assert lanes.operations.end[rows].max() == ends[number]


def test_a_long_run_keeps_what_surrounds_its_slowest_ios(tmp_path: Path) -> None:
    results = recorded(tmp_path / "r", SMALL, io_count=60_000)
    found = of(results)
    assert len(found) <= 1 << 19 < found.recorded
    run, lanes = opened(results)
    times = times_of(results, "response_time_ns")
    submitted = times_of(results, "submit_ns")
    gaps = found.gaps
    assert (gaps[1:, 0] >= gaps[:-1, 0]).all()
    for number in np.argsort(-times)[:20].tolist():
        low, high = submitted[number], submitted[number] + times[number]
        assert not ((gaps[:, 0] < high) & (gaps[:, 1] > low)).any()
        assert io_operations(lanes, number) is not None
    # Outside of the gaps nothing is missing: every I/O has its pages.
    ends = submitted + times
    whole = [
        number
        for number in range(0, len(times), 97)
        if not ((gaps[:, 0] < ends[number]) & (gaps[:, 1] > submitted[number])).any()
    ]
    assert len(whole) > 20
    for number in whole:
        assert (lanes.io == number).sum() == 2
    drawn = gantt(run, lanes, "number", (0, len(times)), 400)
    assert drawn.header["gaps"]
    json.dumps(drawn.header, allow_nan=False)


def test_what_is_drawn_of_a_long_stretch_are_the_sums_of_what_is_drawn_of_short_ones(
    tmp_path: Path,
) -> None:
    run, lanes = opened(recorded(tmp_path / "r", SMALL))
    whole = gantt(run, lanes, "number", (0, run.io_count), 100)
    assert (whole.header["kind"], whole.header["operations"] > MAX_OPERATIONS) == ("shares", True)
    shares = whole.arrays["shares"].reshape(len(whole.header["lanes"]), len(WHATS), 100)
    wide = (whole.header["until_ns"] - whole.header["from_ns"]) / 100
    for place, lane in enumerate(whole.header["lanes"]):
        if lane["die"] < 0:
            continue
        told = shares[place].astype(float).sum() / 255 * wide
        rows = lanes.dies[lane["die"]]
        low, high = (whole.header[name] + lanes.begin_ns for name in ("from_ns", "until_ns"))
        clipped = np.minimum(lanes.operations.end[rows], high) - np.maximum(
            lanes.busy_from[rows], low
        )
        busy = float(clipped[clipped > 0].sum())
        assert told == pytest.approx(busy, rel=0.02)
    few = gantt(run, lanes, "number", (100, 140), 100)
    assert few.header["kind"] == "operations"
    assert set(few.arrays["io"][few.arrays["io"] >= 0]) >= set(range(100, 140))
    again = gantt(run, lanes, "time", (few.header["from_ns"], few.header["until_ns"]), 100)
    assert np.array_equal(again.arrays["row"], few.arrays["row"])


def test_busy_time_is_that_of_a_naive_sum() -> None:
    begin, end = np.array([3, 10, 20]), np.array([7, 20, 21])
    at = np.arange(0, 25, dtype=float)
    naive = [sum(max(min(t, e) - b, 0) for b, e in zip(begin, end, strict=True)) for t in at]
    assert busy_until(begin, end, at).tolist() == naive
    assert busy_until(begin[:0], end[:0], at).tolist() == [0] * 25


def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", [stored.baseline_run(1, "RW")], SMALL)
    key = key_of(results.path)
    with pytest.raises(UsageError, match="--inside"):
        lanes_of(OpenResults(Folders([results.path])), key, results.runs[0].id)
