"""Are operations of dies and channels recorded once and completely, and is every wait explained?"""

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
from uflip.results.device_log import (
    ERASE,
    INSIDE,
    JOBS,
    MERGE,
    NAMES_BY_PURPOSE,
    OPERATION_NAMES,
    PROGRAM,
    READ,
    RELOCATION,
    RESUMED,
    SCRUB,
    Operations,
    operations_of,
    read_device_log,
)
from uflip.results.die_lanes import Lanes
from uflip.spec import baseline, basic, mix, parallel
from uflip.web.gantt import (
    MAX_OPERATIONS,
    busy_until,
    gantt,
    io_operations,
    lanes_of,
    operation,
)
from uflip.web.open_results import Folders, OpenResults, key_of
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


def record_run(path: Path, url: str, *, reads: bool = False, **changes: Any) -> Results:
    """Run random writes, alternating with random reads if `reads`."""
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


def load_operations(results: Results) -> Operations:
    log = read_device_log(results.runs[0])
    assert log is not None
    return log.operations


def open_lanes(results: Results) -> tuple[Any, Lanes]:
    key = key_of(results.path)
    return lanes_of(OpenResults(Folders([results.path])), key, results.runs[0].id)


@pytest.fixture(scope="module", params=DEVICES)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    url, changes = DEVICES[request.param]
    return record_run(tmp_path_factory.mktemp("operations") / "r", url, **changes)


def times_of(results: Results, name: str) -> Any:
    return np.asarray(results.runs[0].trace().column(name)).astype(np.int64)


def number_of(operations: Operations, purpose: int, kind: int) -> int:
    return int((operations.code == list(NAMES_BY_PURPOSE).index((purpose, kind))).sum())


def naively_overlapping(begin: Any, end: Any) -> int:
    """Pairs of neighbours, in order of their beginnings, of which the second begins too early."""
    order = np.argsort(begin, kind="stable")
    return int((begin[order][1:] < end[order][:-1]).sum())


def test_page_operations_match_hand_worked_timeline(tmp_path: Path) -> None:
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
    operations = load_operations(
        record_run(tmp_path / "r", url, io_count=1, io_size=16384, target_size=1 << 20)
    )
    order = np.argsort(operations.requested)
    us = 1000
    for name, expected in {
        "requested": [10, 20, 30, 40],
        "begin": [10, 20, 410, 510],
        "sent": [10, 110, 410, 510],
        "sent_until": [110, 210, 510, 610],
        "cells_from": [110, 210, 510, 610],
        "end": [410, 510, 810, 910],
    }.items():
        assert getattr(operations, name)[order].tolist() == [each * us for each in expected], name
    first, second, *later = operations.die[order].tolist()
    assert later == [first, second]
    assert first != second
    assert operations.io.tolist() == [0] * 4
    assert [OPERATION_NAMES[each] for each in operations.code] == ["host program"] * 4


def test_die_and_channel_do_one_thing_at_a_time(results: Results) -> None:
    operations = load_operations(results)
    assert operations.recorded == len(operations) > 0
    assert len(operations.gaps) == 0
    assert (operations.requested <= operations.begin).all()
    assert (operations.begin < operations.end).all()
    cells = operations.cells_from, operations.cells_from + operations.cells
    sent = operations.sent_until > operations.sent
    for die in np.unique(operations.die):
        at = operations.die == die
        assert naively_overlapping(cells[0][at], cells[1][at]) == 0
        if "cache_program" not in results.manifest.device.url:
            assert naively_overlapping(operations.begin[at], operations.end[at]) == 0
    for channel in np.unique(operations.channel):
        at = (operations.channel == channel) & sent
        assert naively_overlapping(operations.sent[at], operations.sent_until[at]) == 0


def test_planes_have_a_lane_each(tmp_path: Path) -> None:
    url, changes = DEVICES["planes"]
    run, lanes = open_lanes(record_run(tmp_path / "r", url, **changes))
    operations = lanes.operations
    drawn_lanes = gantt(run, lanes, "number", (0, 10), 100).header["lanes"]
    assert isinstance(drawn_lanes, list)
    names = [lane["name"] for lane in drawn_lanes]
    dies = len(operations.clocks) // 2
    planes = [f"die {die}, plane {plane}" for die in range(dies) for plane in range(2)]
    assert sorted(name for name in names if "die" in name) == sorted(planes)
    assert operations.clocks.tolist() == [*range(dies), *range(dies)]
    # Both planes of a die mostly work at once; the operations of each name the die.
    on_first = operations.clocks[operations.die] == 0
    assert (
        naively_overlapping(operations.begin[on_first], operations.end[on_first])
        > on_first.sum() // 4
    )
    assert operation(lanes, int(np.flatnonzero(operations.die == dies)[0]))["die"] == 0


def test_jobs_are_named_by_their_operations() -> None:
    """The other jobs of a device classify a lone erase: an FTL either merges or collects."""

    def jobs(*operations: tuple[int, int, int]) -> list[str]:
        job, purpose, kind = (np.array(column) for column in zip(*operations, strict=True))
        names = ["asked", "waited", "held", "cells", "to_channel", "channel_first", "sent"]
        columns = {f"op_{name}_ns": np.zeros(len(job)) for name in names}
        columns |= {"op_die": np.zeros(len(job)), "op_purpose": purpose, "op_kind": kind}
        columns |= {"op_io_and_one": np.zeros(len(job)), "op_block_and_one": job + 1}
        columns |= {"op_job_and_one": job + 1, "ops_all": np.array([len(job)])}
        columns |= {f"gap_{each}_ns": np.zeros(0) for each in ("from", "until")}
        columns |= {f"die_{each}": np.zeros(1) for each in ("channel", "clock")}
        columns |= {f"valid_{each}": np.zeros(0, int) for each in ("job", "pages")}
        waits = ("from_ns", "ns", "io_and_one", "die", "page", "kind")
        columns |= {f"wait_{each}": np.zeros(0) for each in waits}
        return [JOBS[each] for each in operations_of(columns).jobs]

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


def test_operations_match_device_counters(results: Results) -> None:
    operations, counters = load_operations(results), results.runs[0].meta.counters
    assert counters is not None
    is_program = [index for index, (_, kind) in enumerate(NAMES_BY_PURPOSE) if kind == PROGRAM]
    programs = int(np.isin(operations.code, is_program).sum())
    inside = number_of(operations, RELOCATION, INSIDE) + number_of(operations, MERGE, INSIDE)
    if inside == 0:
        # Counted programs without their die time inside the run are in flight at its ends.
        assert abs(programs - counters["pages_programmed"]) <= 128
    assert abs(number_of(operations, ERASE, INSIDE) - counters["blocks_erased"]) <= len(
        operations.channels
    )
    assert not (operations.code == len(NAMES_BY_PURPOSE)).all()


def test_suspended_operation_has_reads_between_its_parts(tmp_path: Path) -> None:
    url, changes = DEVICES["reads suspend"]
    operations = load_operations(record_run(tmp_path / "r", url, **changes))
    parts = {
        NAMES_BY_PURPOSE[key]: index
        for index, key in enumerate(NAMES_BY_PURPOSE)
        if key[1] == RESUMED
    }
    for word, index in parts.items():
        resumed = np.flatnonzero(operations.code == index)
        if word in ("host program resumed", "valid-page program resumed", "erase resumed"):
            assert len(resumed) > 10, word
        for row in resumed.tolist():
            # Its request time is when it stopped, and a host read got its die at once.
            on_die = np.flatnonzero(operations.die == operations.die[row])
            between = on_die[(operations.begin[on_die] < operations.begin[row])]
            between = between[operations.end[between] > operations.requested[row]]
            whats = {OPERATION_NAMES[each] for each in operations.code[between]}
            assert "host read" in whats, word
            whole = word.removesuffix(" resumed")
            stopped = between[np.argmin(operations.begin[between])]
            assert OPERATION_NAMES[operations.code[stopped]] in (whole, word)
            assert operations.end[stopped] - operations.requested[row] in (20_000, 50_000)


def test_wait_is_fully_explained_by_other_operations(results: Results) -> None:
    _, lanes = open_lanes(results)
    operations = lanes.operations
    waited = np.flatnonzero(operations.begin > operations.requested)
    assert len(waited) > 0 or "transcend" in results.manifest.device.url
    for row in waited[:: max(len(waited) // 400, 1)].tolist():
        card = operation(lanes, row)
        # Other operations occupy the die during the whole wait, as a scan of all shows.
        clock = operations.clocks[operations.die]
        other = np.flatnonzero(clock == clock[row])
        other = other[other != row]
        low, high = int(operations.requested[row]), int(operations.begin[row])
        clipped = np.minimum(operations.end[other], high) - np.maximum(
            lanes.occupied_from[other], low
        )
        assert int(clipped[clipped > 0].sum()) == high - low == card["waited_ns"]
        assert sum(each["ns"] for each in card["waited_for"]) == high - low
        sent = card["channel_waited_ns"]
        assert sum(each["ns"] for each in card["channel_waited_for"]) == sent


def test_waits_of_io_are_those_of_its_operations(tmp_path: Path) -> None:
    """I/Os of one page have one operation each: their die wait is that of the operation."""
    results = record_run(tmp_path / "r", f"{SMALL}&die_queue=reads_first", io_size=4096)
    run, lanes = open_lanes(results)
    operations = lanes.operations
    waits = np.sum([times_of(results, name) for name in WAITS], axis=0)
    channel = times_of(results, "channel_wait_ns")
    completed = times_of(results, "submit_ns") + times_of(results, "response_time_ns")
    checked = 0
    for number in range(len(waits)):
        rows = np.flatnonzero(lanes.io == number)
        assert len(rows) == 1
        row = int(rows[0])
        assert OPERATION_NAMES[operations.code[row]] == "host program"
        assert operations.begin[row] - operations.requested[row] == waits[number]
        assert operations.sent[row] - lanes.channel_requested_ns(row) == channel[number]
        assert operations.end[row] == completed[number]
        checked += int(waits[number] > 0)
    assert checked > 100
    slowest = int(np.argmax(waits))
    card = io_operations(lanes, slowest)
    assert card is not None
    assert sum(each["ns"] for each in card["waited_for"]) == waits[slowest]
    assert any(each.get("block", -1) >= 0 for each in card["waited_for"])
    assert io_view(run, slowest)["number"] == slowest


def test_free_page_waits_match_charged_column(tmp_path: Path) -> None:
    """I/Os of one page: each wait is all of its column, and its card has it."""
    results = record_run(tmp_path / "r", SMALL, io_size=4096)
    _, lanes = open_lanes(results)
    waits, charged = lanes.operations.waits, times_of(results, "free_page_wait_ns")
    summed = np.zeros(len(charged), np.int64)
    np.add.at(summed, waits.io, waits.end - waits.begin)
    assert (summed == charged).all()
    slowest = int(charged.argmax())
    assert charged[slowest] > 0
    card = io_operations(lanes, slowest)
    assert card is not None
    (wait,) = card["waits"]
    assert (wait["kind"], wait["ns"]) == ("free page", charged[slowest])
    assert any("block" in each for each in wait["waited_for"])


def test_collection_moves_at_most_its_valid_pages(tmp_path: Path) -> None:
    """Some of them become stale before it is their turn; a page of metadata is read as well."""
    _, lanes = open_lanes(record_run(tmp_path / "r", f"{SMALL}&metadata_pages=0", io_size=4096))
    operations = lanes.operations
    reads = operations.code == OPERATION_NAMES.index("valid-page read")
    moved = np.bincount(
        operations.job[reads & (operations.job >= 0)], minlength=len(operations.valid)
    )
    erased = np.unique(operations.job[operations.code == OPERATION_NAMES.index("erase")])
    erased = erased[(erased >= 0) & (erased < len(operations.valid))]
    stale = operations.valid[erased] - moved[erased]
    assert len(erased) > 20
    assert (stale >= 0).all()
    assert (stale == 0).sum() > len(erased) / 4


def test_erase_operations_match_block_erase_counts(tmp_path: Path) -> None:
    _, lanes = open_lanes(results := record_run(tmp_path / "r", SMALL))
    operations, inside = lanes.operations, read_device_log(results.runs[0])
    assert inside is not None
    erased = operations.block[operations.code == OPERATION_NAMES.index("erase")]
    assert (erased >= 0).all()
    counts = np.bincount(erased, minlength=len(inside.erases))
    under_way = np.abs(counts - (inside.erases - inside.erases_before).astype(np.int64))
    assert int(under_way.sum()) <= len(operations.channels)


def test_merges_are_reported_with_the_waiting_io(tmp_path: Path) -> None:
    url, changes = DEVICES["merges"]
    results = record_run(tmp_path / "r", url, **changes)
    _, lanes = open_lanes(results)
    slowest = int(np.argmax(times_of(results, "merge_ns")))
    card = io_operations(lanes, slowest)
    assert card is not None
    did = {each["what"]: each for each in card["did"]}
    assert did["merge program"]["count"] > 0
    assert did["merge program"]["block"] >= 0
    assert did["host program"]["count"] == 8192 // lanes_page(results)


def lanes_page(results: Results) -> int:
    page = results.manifest.device.page_bytes
    assert page is not None
    return page


def test_io_numbers_hold_with_parallel_streams(tmp_path: Path) -> None:
    parts = [
        basic("write", "random", io_size=4096, io_count=100, seed=index, target_size=4 << 20,
              target_offset=index * (4 << 20))
        for index in range(4)
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
    _, lanes = open_lanes(results)
    ends = times_of(results, "submit_ns") + times_of(results, "response_time_ns")
    for number in range(0, len(ends), 7):
        rows = np.flatnonzero(lanes.io == number)
        assert lanes.operations.end[rows].max() == ends[number]


def test_long_run_keeps_surroundings_of_slowest_ios(tmp_path: Path) -> None:
    results = record_run(tmp_path / "r", SMALL, io_count=60_000)
    operations = load_operations(results)
    assert len(operations) <= 1 << 19 < operations.recorded
    run, lanes = open_lanes(results)
    times = times_of(results, "response_time_ns")
    submitted = times_of(results, "submit_ns")
    gaps = operations.gaps
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


def test_shares_are_sums_of_busy_time(
    tmp_path: Path,
) -> None:
    run, lanes = open_lanes(record_run(tmp_path / "r", SMALL))
    whole = gantt(run, lanes, "number", (0, run.io_count), 100)
    assert (whole.header["kind"], whole.header["operations"] > MAX_OPERATIONS) == ("shares", True)
    shares = whole.arrays["shares"].reshape(len(whole.header["lanes"]), len(OPERATION_NAMES), 100)
    wide = (whole.header["until_ns"] - whole.header["from_ns"]) / 100
    for index, lane in enumerate(whole.header["lanes"]):
        if lane["die"] < 0:
            continue
        drawn_busy = shares[index].astype(float).sum() / 255 * wide
        rows = lanes.dies[lane["die"]]
        low, high = (whole.header[name] + lanes.begin_ns for name in ("from_ns", "until_ns"))
        clipped = np.minimum(lanes.operations.end[rows], high) - np.maximum(
            lanes.busy_from[rows], low
        )
        busy = float(clipped[clipped > 0].sum())
        assert drawn_busy == pytest.approx(busy, rel=0.02)
    few = gantt(run, lanes, "number", (100, 140), 100)
    assert few.header["kind"] == "operations"
    assert set(few.arrays["io"][few.arrays["io"] >= 0]) >= set(range(100, 140))
    by_time = gantt(run, lanes, "time", (few.header["from_ns"], few.header["until_ns"]), 100)
    assert np.array_equal(by_time.arrays["row"], few.arrays["row"])


def test_busy_time_matches_naive_sum() -> None:
    begin, end = np.array([3, 10, 20]), np.array([7, 20, 21])
    at = np.arange(0, 25, dtype=float)
    naive = [sum(max(min(t, e) - b, 0) for b, e in zip(begin, end, strict=True)) for t in at]
    assert busy_until(begin, end, at).tolist() == naive
    assert busy_until(begin[:0], end[:0], at).tolist() == [0] * 25


def test_missing_recording_is_reported(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", [stored.baseline_run(1, "RW")], SMALL)
    key = key_of(results.path)
    with pytest.raises(UsageError, match="--inside"):
        lanes_of(OpenResults(Folders([results.path])), key, results.runs[0].id)
