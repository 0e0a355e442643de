"""Is every run stored before the next one starts, however the work ends?"""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import stored

from uflip.benchmark import (
    Calibration,
    Choices,
    History,
    Plan,
    RunEvent,
    RunFinished,
    RunProgress,
    RunStarted,
    make_plan,
    measure_harness,
)
from uflip.benchmark.execute import execute
from uflip.data.manifest import DeviceState
from uflip.data.run import metadata_of
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import InterruptedRun, ResultsError, UflipError
from uflip.results import Results


class Writer:
    """A writer that records its runs, and fails at the run `fail_at`."""

    def __init__(self, fail_at: int = -1, finish_fails: bool = False) -> None:
        self.path = Path("results/here")
        self.spool = Path("results/here/runs")
        self.committed: list[str] = []
        self.lengths: list[int] = []
        self.status = ""
        self.fail_at = fail_at
        self.finish_fails = finish_fails

    def commit(self, run: Any, trace: Any, extra: Any) -> None:
        assert "state_id" in extra
        if len(self.committed) == self.fail_at:
            raise ResultsError("The disk is full", action="free some space")
        self.committed.append(run.id)
        self.lengths.append(len(trace))

    def note(self, key: str, value: Any) -> None:
        raise AssertionError("this plan has no calibration")

    def trace_of(self, run_id: str) -> Any:
        raise AssertionError("this plan has no baseline runs")

    def finish(self, status: str, warnings: Any = ()) -> None:
        if self.finish_fails:
            raise ResultsError("The disk is still full")
        assert not self.status, "a plan ends once"
        self.status = status
        self.warnings = list(warnings)


@pytest.fixture
def device() -> Device:
    return open_device("null")


@pytest.fixture
def plan(device: Device) -> Plan:
    return make_plan(device.info, "quick", 1, Choices(only=("order",)))


def test_runs_are_made_in_order_and_stored_one_by_one(plan: Plan, device: Device) -> None:
    writer = Writer()
    events: list[RunEvent] = []

    def watch(event: RunEvent) -> None:
        events.append(event)
        stored = event.index + isinstance(event, RunFinished)
        assert len(writer.committed) == stored

    execute(
        plan, device, writer, watch, history=History(None), calibration=Calibration(plan, writer)
    )
    assert writer.status == "complete"
    assert writer.committed == [run.id for run in plan.runs]
    assert writer.lengths == [run.spec.io_count for run in plan.runs]
    started = [event for event in events if isinstance(event, RunStarted)]
    finished = [event for event in events if isinstance(event, RunFinished)]
    assert [event.run for event in started] == [event.run for event in finished]
    assert all(event.taken_ns > 0 for event in finished)
    last = [event for event in events if isinstance(event, RunProgress)][-1]
    assert last.done == last.total


def test_device_is_idle_before_each_run(device: Device) -> None:
    plan = make_plan(device.info, "quick", 1, Choices(only=("order",), pause_ns=20_000_000))
    durations_ns: list[int] = []
    writer = Writer()
    execute(
        plan,
        device,
        writer,
        lambda event: (
            durations_ns.append(event.taken_ns) if isinstance(event, RunFinished) else None
        ),
        history=History(None),
        calibration=Calibration(plan, writer),
    )
    assert min(durations_ns) >= 20_000_000


def test_no_run_starts_after_the_time_limit(device: Device) -> None:
    plan = make_plan(device.info, "quick", 1, Choices(only=("order",), pause_ns=50_000_000))
    writer = Writer()
    execute(
        plan,
        device,
        writer,
        history=History(None),
        calibration=Calibration(plan, writer),
        max_time_ns=120_000_000,
    )
    assert writer.status == "interrupted"
    assert 1 <= len(writer.committed) <= 3
    assert [warning["code"] for warning in writer.warnings] == ["out_of_time"]


def test_failing_writer_ends_the_plan_and_keeps_finished_runs(plan: Plan, device: Device) -> None:
    writer = Writer(fail_at=2)
    with pytest.raises(ResultsError, match="disk is full") as caught:
        execute(plan, device, writer, history=History(None), calibration=Calibration(plan, writer))
    assert writer.status == "failed"
    assert caught.value.action.splitlines() == [
        "free some space",
        "the 2 finished runs are kept, see `uflip show results/here`; "
        "`uflip run --resume results/here` makes the others",
    ]


def test_second_writer_failure_does_not_hide_the_first(plan: Plan, device: Device) -> None:
    writer = Writer(fail_at=0, finish_fails=True)
    with pytest.raises(ResultsError, match="The disk is full"):
        execute(plan, device, writer, history=History(None), calibration=Calibration(plan, writer))


def test_device_refusing_a_run_ends_the_plan(plan: Plan) -> None:
    small = open_device("null", size="1MiB")
    writer = Writer()
    with pytest.raises(UflipError) as caught:
        execute(plan, small, writer, history=History(None), calibration=Calibration(plan, writer))
    assert writer.status == "failed"
    assert "no run was finished" in caught.value.action


def test_interrupt_ends_the_plan_and_keeps_finished_runs(device: Device) -> None:
    plan = make_plan(device.info, "quick", 1, Choices(only=("order",), pause_ns=50_000_000))
    writer = Writer()
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(InterruptedRun, match="Interrupted after") as caught:
        execute(plan, device, writer, history=History(None), calibration=Calibration(plan, writer))
    assert writer.status == "interrupted"
    assert 0 < len(writer.committed) < len(plan.runs)
    assert "uflip show results/here" in caught.value.action


def test_harness_overhead_is_some_nanoseconds() -> None:
    harness = measure_harness()
    assert 5 < harness["null_ns_per_io"] < 100_000
    assert 1 < harness["clock_ns"] < 100_000


# Rewriting after runs: how much, after which runs, and its accounting.


MIB = 1 << 20
SMALL = "sim:demo?channels=1&dies_per_channel=2&blocks_per_die=150"


def benchmark(folder: Path, **choices: Any) -> tuple[Results, int, int]:
    """Make a benchmark; return it, how many bytes were written on the whole, and the target."""
    with open_device(SMALL) as device:
        chosen = Choices(only=("locality",), pause_ns=0, repetitions=1, **choices)
        plan = make_plan(device.info, "quick", 1, chosen)
        initial_state = DeviceState("random", "x", "profile", None)
        writer = stored.writer(
            folder,
            plan.runs,
            device,
            target_size_bytes=plan.target_size,
            repetitions=1,
            method=plan.method,
            state=initial_state,
        )
        before = (device.counters() or {})["host_pages_written"]
        execute(plan, device, writer, history=History("x"), calibration=Calibration(plan, writer))
        pages = (device.counters() or {})["host_pages_written"] - before
        resets = plan.resets * (plan.state.bytes_written if plan.state else 0)
        return Results.load(folder), pages * 4096 - resets, plan.target_size


def test_disturbing_runs_are_followed_by_fourfold_rewrite(tmp_path: Path) -> None:
    results, written, target = benchmark(tmp_path / "r", method="auto")
    expected, run_bytes, disturbing = [0], 0, 0
    for run in results.runs:
        made = run.trace().bytes_written
        run_bytes += made
        confined = run.pattern == "SW" or (run.pattern == "RW" and run.value < 0.9 * target)
        disturbing += confined
        expected.append(min(4 * made, target) // (128 << 10) * (128 << 10) if confined else 0)
    # A state that is enforced again leaves nothing to write over.
    plan = {entry.id: entry for entry in results.manifest.plan}
    for number, run in enumerate(results.runs):
        expected[number] *= not plan[run.id].reset_before
    stored = [metadata_of(run.path, run.trace().metadata_json) for run in results.runs]
    assert [each.refreshed_bytes for each in stored] == expected[:-1]
    assert disturbing >= 5
    assert sum(expected) > 0
    assert written == run_bytes + sum(expected[:-1])


@pytest.mark.parametrize("choices", [{"method": "startup"}, {"method": "auto", "state": "as-is"}])
def test_fixed_lengths_and_as_is_devices_are_not_rewritten(
    tmp_path: Path, choices: dict[str, Any]
) -> None:
    results, written, _ = benchmark(tmp_path / "r", **choices)
    assert written == sum(run.trace().bytes_written for run in results.runs)
