"""Does the suite of streams write through the streams that a device has, and skip all others?"""

from pathlib import Path

import pytest
import stored

import uflip as package
from uflip.benchmark.plan import Choices, make_plan
from uflip.data.device import DeviceInfo, NvmeNamespace
from uflip.device.catalogue import inspect_device
from uflip.microbench import MICRO_BENCHMARKS, suite_of, varied_micro_benchmarks
from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.labels import by_pattern
from uflip.results import Results, summary

SMALL = "sim:demo?blocks_per_die=128&spare_factor=0.2&write_streams=2&gc=greedy"
NAMES = ["each_stream", "hot_stream"]


def namespace(handles: int) -> DeviceInfo:
    found = NvmeNamespace(nsid=1, command_bytes_max=512 << 10, placement_handles=handles)
    return stored.device_info("nvme", capacity_bytes=1 << 40, details={"namespace": found})


def lay_out(name: str, info: DeviceInfo) -> Experiment:
    (experiment,) = MICRO_BENCHMARKS[name].experiments(Context(info, "standard", seed=1))
    return experiment


def test_suite_is_its_own() -> None:
    assert list(varied_micro_benchmarks("streams")) == NAMES
    assert all(suite_of([name]) == "streams" for name in NAMES)


@pytest.mark.parametrize(("handles", "values"), [(8, list(range(8))), (3, [0, 1, 2]), (0, [])])
def test_each_placement_handle_of_a_drive_has_a_run(handles: int, values: list[int]) -> None:
    experiment = lay_out("each_stream", namespace(handles))
    assert [run.value for run in experiment.runs] == values
    streams = [part.write_stream or 0 for run in experiment.runs for part in run.spec.parts]
    assert streams == values
    assert len(experiment.skipped) == 8 - len(values)
    assert all("write stream" in each.reason for each in experiment.skipped)


def test_hot_stream_differs_in_the_stream_only() -> None:
    first, second = (run.spec for run in lay_out("hot_stream", namespace(2)).runs)
    (one,), (own,) = first.parts, second.parts
    assert (one.hot_write_stream or 0, own.hot_write_stream) == (0, 1)
    assert (one.location, one.hot_io_percent, one.target_size) == (
        own.location, own.hot_io_percent, own.target_size,
    )  # fmt: skip


def test_device_without_streams_skips_the_suite() -> None:
    plan = make_plan(inspect_device("sim:demo"), "quick", 1, Choices(suite="streams"))
    assert plan.skipped
    assert all("one write stream" in each.reason for each in plan.skipped)


def test_own_stream_lowers_write_amplification(tmp_path: Path) -> None:
    """Hot and cold data in blocks of their own: victims have fewer valid pages."""
    results = package.run(SMALL, tmp_path / "out", suite="streams", only=["hot_stream"])
    measured = summary(Results.load(results.path))["micro_benchmarks"]["hot_stream"]
    runs = by_pattern(measured)["RW"]
    shared, own = (run["steadiness"]["write_amplification"] for run in runs)
    assert own < 0.85 * shared
