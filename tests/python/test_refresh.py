"""Rewriting after runs: how much, after which runs, and its accounting."""

from pathlib import Path
from typing import Any

import pytest
import stored

from uflip.benchmark import Calibration, Choices, History, make_plan
from uflip.benchmark.execute import execute
from uflip.data.manifest import DeviceState
from uflip.data.run import metadata_of
from uflip.device.opener import open_device
from uflip.results import Results

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
