"""Does the log of an open-channel device record what its LUNs and channels did?

It is checked against the log of the job; LUNs and channels do one thing at a time.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

from uflip import _native
from uflip.data.spec import Job
from uflip.oc.device import open_flash_device
from uflip.results import Results
from uflip.results.device_log import (
    HOST_READ,
    HOST_WRITE,
    NAMES_BY_PURPOSE,
    PROGRAM,
    READ,
    DeviceLog,
    operations_of,
    read_device_log,
)
from uflip.results.die_lanes import Lanes
from uflip.results.integrity import verify
from uflip.web.device_log import device_log_view
from uflip.web.gantt import gantt, lanes_of, operation
from uflip.web.open_results import Folders, OpenResults, key_of
from uflip.web.open_run import OpenRun

CODES = {name: number for number, name in enumerate(NAMES_BY_PURPOSE)}
WRITES, READS = CODES[HOST_WRITE, PROGRAM], CODES[HOST_READ, READ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("oc") / "r"
    outcome = uflip(
        "oc", "sim:dfc", "--scale", "quick", "--only", "oc2,oc3", "--inside", "--out", out
    )
    assert outcome.code == 0, outcome.err
    return Results.load(out)


@pytest.fixture(scope="module")
def all_lanes(results: Results) -> list[tuple[OpenRun, Lanes]]:
    opened, key = OpenResults(Folders([results.path])), key_of(results.path)
    return [lanes_of(opened, key, run.id) for run in results.runs]


def test_recording_changes_no_response_time() -> None:
    job = Job(channels=2, luns=2, pages=32, mix="WWR", threads=4)
    plain, watched = (open_flash_device("sim:dfc") for _ in range(2))
    watched.looks_inside = True
    logs = [device.run(job) for device in (plain, watched)]
    assert [log.has_inside for log in logs] == [False, True]
    for name in logs[0].columns:
        assert np.array_equal(logs[0].column(name), logs[1].column(name)), name
    assert not watched.run(Job(kind="wear", pages=4, repeat=3)).has_inside


def test_every_operation_matches_its_command(all_lanes: list[tuple[OpenRun, Lanes]]) -> None:
    for run, lanes in all_lanes:
        operations, log = lanes.operations, run.run.log()
        column = {name: np.asarray(log.column(name)) for name in log.columns}
        channel, lun = column["channel"][lanes.io], column["lun"][lanes.io]
        channels = int(operations.channels.max()) + 1
        if len(operations) == len(log):  # pages of a vector may go to other channels than its first
            assert (operations.channel == channel).all()
            assert (operations.die == lun * channels + channel).all()
        assert np.array_equal(operations.code == READS, column["op"][lanes.io] == 0)
        assert np.array_equal(operations.code == WRITES, column["op"][lanes.io] == 1)
        submitted = column["submit_ns"].astype(np.int64)[lanes.io]
        assert (submitted <= operations.requested).all()
        # A command of several pages ends with the last page sent.
        ends = np.zeros(len(log), np.int64)
        np.maximum.at(ends, lanes.io, operations.sent_until)
        answered = column["submit_ns"].astype(np.int64) + column["response_time_ns"]
        after = answered - ends
        assert (after == after[0]).all(), "the constant time of the card's answer"


def test_luns_and_channels_do_one_operation_at_a_time(
    all_lanes: list[tuple[OpenRun, Lanes]], tmp_path: Path
) -> None:
    job = Job(channels=1, luns=2, blocks=2, pages=64, mix="WR", threads=4, iteration="round_robin")
    for lanes in (*(lanes for _, lanes in all_lanes), lanes_of_job(job, tmp_path / "inside")):
        operations = lanes.operations
        for rows in lanes.dies:
            assert (operations.begin[rows][1:] >= operations.end[rows][:-1]).all()
        # While a program holds a channel, only its own die uses it, to be read out first.
        for rows in lanes.channels:
            programs = rows[operations.code[rows] == WRITES]
            if not len(programs):
                continue
            assert (operations.sent[programs][1:] >= operations.sent_until[programs][:-1]).all()
            reads = rows[operations.code[rows] == READS]
            assert (operations.sent[reads][1:] >= operations.sent_until[reads][:-1]).all()
            before = np.searchsorted(operations.sent[programs], operations.sent[reads], "right") - 1
            within = (before >= 0) & (
                operations.sent_until[programs[before]] > operations.sent[reads]
            )
            assert (operations.die[programs[before]][within] == operations.die[reads][within]).all()


def lanes_of_job(job: Job, path: Path) -> Lanes:
    device = open_flash_device("sim:dfc")
    device.looks_inside = True
    device.run(job).write_inside(str(path), "{}")
    columns, _ = _native.read_inside(str(path))
    operations = operations_of({name: np.asarray(column) for name, column in columns})
    assert operations is not None
    return Lanes(operations, None, 0, holds=True)


def test_waits_match_the_log(all_lanes: list[tuple[OpenRun, Lanes]]) -> None:
    """For commands of one page, waits by cause add up to the whole wait."""
    blocked_programs = 0
    for run, lanes in all_lanes:
        operations, log = lanes.operations, run.run.log()
        if len(lanes.operations) > len(log):
            continue  # its vectors have several pages
        waits = {
            name: np.asarray(log.column(name), np.int64)[lanes.io]
            for name in log.columns
            if name.endswith("_wait_ns")
        }
        writes = operations.code == WRITES
        assert (
            waits["channel_wait_ns"][writes] == (operations.sent - operations.requested)[writes]
        ).all()
        by_die = sum(values for name, values in waits.items() if name != "channel_wait_ns")
        assert (by_die[writes] == (operations.begin - operations.sent)[writes]).all()
        assert (by_die[~writes] == (operations.begin - operations.requested)[~writes]).all()
        blocked_programs += int((operations.begin > operations.sent)[writes].sum())
        row = int(np.argmax(operations.begin - operations.sent))
        details = operation(lanes, row)
        assert details["waited_ns"] == sum(each["ns"] for each in details["waited_for"])
        assert details["channel_waited_ns"] == sum(
            each["ns"] for each in details["channel_waited_for"]
        )
    assert blocked_programs, "a busy LUN makes a program hold its channel"


def test_explorer_draws_the_operations(
    all_lanes: list[tuple[OpenRun, Lanes]], results: Results
) -> None:
    run, lanes = all_lanes[0]
    picture = gantt(run, lanes, "io", (0, run.io_count), 400)
    assert picture.header["kind"] == "operations"
    assert picture.header["operations"] == len(lanes.operations) == picture.header["recorded"]
    opened, key = OpenResults(Folders([results.path])), key_of(results.path)
    view = device_log_view(opened, key, run.run.id)
    assert view is not None
    written = [each for each in view["write_amplification"] if each is not None]
    assert set(written) <= {1.0}, "only the host writes"


def test_samples_match_the_log(results: Results) -> None:
    for run in results.runs:
        device_log, log = device_log_of(run), run.log()
        writes = int((np.asarray(log.column("op")) == 1).sum())
        assert int(device_log.samples["ios"][-1]) == len(log)
        assert int(device_log.samples["pages_programmed"][-1]) * device_log.page_bytes == int(
            device_log.samples["written_bytes"][-1]
        )
        assert bool(writes) == bool(device_log.samples["written_bytes"][-1])
        assert (device_log.erases == device_log.erases_before).all(), (
            "blocks are erased before the job"
        )


def test_device_log_is_in_the_ledger(results: Results) -> None:
    names = [each.file for each in verify(results.path) if "inside/" in each.file]
    assert len(names) == len(results.runs)
    assert uflip("verify", results.path).code == 0


def device_log_of(run: Any) -> DeviceLog:
    device_log = read_device_log(run)
    assert device_log is not None
    return device_log
