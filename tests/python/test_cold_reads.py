"""Are reads of a map that is loaded on demand told from reads of a map in memory?"""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import uflip
from uflip.data.summary import ExperimentSummary
from uflip.results import Results, summary
from uflip.results.summary_document import _first_visits
from uflip.spec import Basic, basic

Locality = Mapping[int, ExperimentSummary]


@pytest.fixture(scope="module")
def locality(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Locality]:
    """Return the random reads of `locality` of a device, by the size of their target [KiB]."""

    def measure(device: str) -> Locality:
        folder = tmp_path_factory.mktemp("locality") / "result"
        options = {"scale": "quick", "only": ("baseline", "locality")}
        uflip.run(device, folder, **options)
        runs = summary(Results.load(folder))["micro_benchmarks"]["locality"]
        return {int(run["value"] or 0) >> 10: run for run in runs if run["pattern"] == "RR"}

    return measure


def is_cold(run: ExperimentSummary) -> bool:
    return all("cold_reads" in (each["reasons"] or ()) for each in run["repetitions"])


def test_first_reads_of_a_map_on_flash_are_cold(locality: Callable[[str], Locality]) -> None:
    """A cache of 32,768 entries holds 128 MiB: 256 reads of 32 KiB fill a sixteenth of it."""
    runs = locality("sim:dftl?blocks_per_die=256")
    assert is_cold(runs[8 << 10])
    assert is_cold(runs[128 << 10])
    assert runs[128 << 10]["together"]["converged"] is False
    # A longer run of the same pattern reads 4,096 warm addresses.
    device = uflip.open_device("sim:dftl?blocks_per_die=256")
    spec = basic("read", "random", io_size=32768, target_size=128 << 20, io_count=40_000, seed=1)
    times = np.asarray(device.run(spec).column("response_time_ns"))
    statistics = runs[128 << 10]["statistics"]
    assert statistics is not None
    assert times[20_000:].mean() < 0.9 * statistics["mean_ns"]


def test_reads_of_a_map_in_memory_are_not_cold(locality: Callable[[str], Locality]) -> None:
    assert not [
        size for size, run in locality("sim:demo?blocks_per_die=256").items() if is_cold(run)
    ]


@pytest.mark.parametrize(("addresses", "ignored"), [(8, 0), (64, 0), (64, 50), (1024, 10)])
def test_share_of_first_visits_is_that_of_random_draws(addresses: int, ignored: int) -> None:
    spec = basic(
        "read", "random", io_size=4096, target_size=addresses * 4096, io_count=300,
        io_ignore=ignored,
    )  # fmt: skip
    assert isinstance(spec, Basic)
    draws = np.random.default_rng(1).integers(0, addresses, (400, 300))
    first = [len({*row}) - len({*row[:ignored]}) for row in draws.tolist()]
    assert _first_visits(spec) == pytest.approx(np.mean(first) / (300 - ignored), abs=0.004)
