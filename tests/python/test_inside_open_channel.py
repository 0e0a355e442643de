"""Does the log of an open-channel device record what its LUNs and channels did?

The judge is the log of the job, and what a LUN and a channel can do: one thing at a time.
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
from uflip.results.device_log import DeviceLog, read_device_log
from uflip.results.integrity import verify
from uflip.results.operations import (
    HOST_READ,
    HOST_WRITE,
    PROGRAM,
    READ,
    WORDS,
    operations_of,
)
from uflip.web.device_log import inside
from uflip.web.die_operations import Lanes
from uflip.web.folders import Folders, key_of
from uflip.web.gantt import gantt, lanes_of, operation
from uflip.web.open_results import OpenResults
from uflip.web.open_run import OpenRun

PLACE = {name: number for number, name in enumerate(WORDS)}
WRITES, READS = PLACE[HOST_WRITE, PROGRAM], PLACE[HOST_READ, READ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("oc") / "r"
    told = uflip("oc", "sim:dfc", "--scale", "quick", "--only", "oc2,oc3", "--inside", "--out", out)
    assert told.code == 0, told.err
    return Results.load(out)


@pytest.fixture(scope="module")
def every(results: Results) -> list[tuple[OpenRun, Lanes]]:
    opened, key = OpenResults(Folders([results.path])), key_of(results.path)
    return [lanes_of(opened, key, run.id) for run in results.runs]


def test_a_look_changes_nothing() -> None:
    job = Job(channels=2, luns=2, pages=32, mix="WWR", threads=4)
    plain, watched = (open_flash_device("sim:dfc") for _ in range(2))
    watched.looks_inside = True
    logs = [device.run(job) for device in (plain, watched)]
    assert [log.has_inside for log in logs] == [False, True]
    for name in logs[0].columns:
        assert np.array_equal(logs[0].column(name), logs[1].column(name)), name
    assert not watched.run(Job(kind="wear", pages=4, repeat=3)).has_inside


def test_every_operation_is_that_of_its_command(every: list[tuple[OpenRun, Lanes]]) -> None:
    for run, lanes in every:
        of, log = lanes.operations, run.run.log()
        column = {name: np.asarray(log.column(name)) for name in log.columns}
        channel, lun = column["channel"][lanes.io], column["lun"][lanes.io]
        channels = int(of.channels.max()) + 1
        if len(of) == len(log):  # pages of a vector may go to other channels than its first
            assert (of.channel == channel).all()
            assert (of.die == lun * channels + channel).all()
        assert np.array_equal(of.what == READS, column["op"][lanes.io] == 0)
        assert np.array_equal(of.what == WRITES, column["op"][lanes.io] == 1)
        submitted = column["submit_ns"].astype(np.int64)[lanes.io]
        assert (submitted <= of.asked).all()
        # Of a command of several pages the last one that is sent ends it.
        ends = np.zeros(len(log), np.int64)
        np.maximum.at(ends, lanes.io, of.sent_until)
        answered = column["submit_ns"].astype(np.int64) + column["response_time_ns"]
        after = answered - ends
        assert (after == after[0]).all(), "what the card takes to answer"


def test_a_lun_and_a_channel_do_one_thing_at_a_time(
    every: list[tuple[OpenRun, Lanes]], tmp_path: Path
) -> None:
    job = Job(channels=1, luns=2, blocks=2, pages=64, mix="WR", threads=4, iteration="round_robin")
    for lanes in (*(lanes for _, lanes in every), lanes_of_job(job, tmp_path / "inside")):
        of = lanes.operations
        for rows in lanes.dies:
            assert (of.begin[rows][1:] >= of.end[rows][:-1]).all()
        # While a program holds a channel only its own die uses that: it has to be read out first.
        for rows in lanes.channels:
            programs = rows[of.what[rows] == WRITES]
            if not len(programs):
                continue
            assert (of.sent[programs][1:] >= of.sent_until[programs][:-1]).all()
            reads = rows[of.what[rows] == READS]
            assert (of.sent[reads][1:] >= of.sent_until[reads][:-1]).all()
            before = np.searchsorted(of.sent[programs], of.sent[reads], "right") - 1
            within = (before >= 0) & (of.sent_until[programs[before]] > of.sent[reads])
            assert (of.die[programs[before]][within] == of.die[reads][within]).all()


def lanes_of_job(job: Job, path: Path) -> Lanes:
    device = open_flash_device("sim:dfc")
    device.looks_inside = True
    device.run(job).write_inside(str(path), "{}")
    columns, _ = _native.read_inside(str(path))
    operations = operations_of({name: np.asarray(column) for name, column in columns})
    assert operations is not None
    return Lanes(operations, None, 0, holds=True)


def test_waits_are_what_the_log_says(every: list[tuple[OpenRun, Lanes]]) -> None:
    """Of commands of one page: what they waited for is the whole of their waits, by cause."""
    held = 0
    for run, lanes in every:
        of, log = lanes.operations, run.run.log()
        if len(lanes.operations) > len(log):
            continue  # its vectors have several pages
        waits = {
            name: np.asarray(log.column(name), np.int64)[lanes.io]
            for name in log.columns
            if name.endswith("_wait_ns")
        }
        writes = of.what == WRITES
        assert (waits["channel_wait_ns"][writes] == (of.sent - of.asked)[writes]).all()
        by_die = sum(values for name, values in waits.items() if name != "channel_wait_ns")
        assert (by_die[writes] == (of.begin - of.sent)[writes]).all()
        assert (by_die[~writes] == (of.begin - of.asked)[~writes]).all()
        held += int((of.begin > of.sent)[writes].sum())
        row = int(np.argmax(of.begin - of.sent))
        told = operation(lanes, row)
        assert told["waited_ns"] == sum(each["ns"] for each in told["waited_for"])
        assert told["channel_waited_ns"] == sum(each["ns"] for each in told["channel_waited_for"])
    assert held, "a busy LUN makes a program hold its channel"


def test_the_explorer_draws_it(every: list[tuple[OpenRun, Lanes]], results: Results) -> None:
    run, lanes = every[0]
    picture = gantt(run, lanes, "io", (0, run.io_count), 400)
    assert picture.header["kind"] == "operations"
    assert picture.header["operations"] == len(lanes.operations) == picture.header["recorded"]
    opened, key = OpenResults(Folders([results.path])), key_of(results.path)
    seen = inside(opened, key, run.run.id)
    assert seen is not None
    written = [each for each in seen["write_amplification"] if each is not None]
    assert set(written) <= {1.0}, "nobody else writes"


def test_samples_are_what_was_counted(results: Results) -> None:
    for run in results.runs:
        found, log = seen(run), run.log()
        writes = int((np.asarray(log.column("op")) == 1).sum())
        assert int(found.samples["ios"][-1]) == len(log)
        assert int(found.samples["pages_programmed"][-1]) * found.page_bytes == int(
            found.samples["written_bytes"][-1]
        )
        assert bool(writes) == bool(found.samples["written_bytes"][-1])
        assert (found.erases == found.erases_before).all(), "blocks are erased before"


def test_the_file_is_proven_like_any_other(results: Results) -> None:
    names = [each.file for each in verify(results.path) if "inside/" in each.file]
    assert len(names) == len(results.runs)
    assert uflip("verify", results.path).code == 0


def seen(run: Any) -> DeviceLog:
    found = read_device_log(run)
    assert found is not None
    return found
