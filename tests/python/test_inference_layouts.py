"""Does an inference find page, dies and times where the order of pages is disturbed?

Maps on flash, SLC caches, and single dies whose pages have several units. Expected values are the
parameters of the simulated devices.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from uflip.device.cache import switched_off
from uflip.device.opener import open_device
from uflip.inference import probes
from uflip.inference.estimate import Interval
from uflip.inference.infer import infer
from uflip.inference.observations import Floats, Observations, RunKey
from uflip.inference.page_types import corrected, page_types_of
from uflip.inference.slc_cache import beyond, exceeds_window, programs, slc_cache_of, with_slc
from uflip.inference.structure import flash_ns, reads_map, structure_of
from uflip.inference.times import dies_behind_map, times_of
from uflip.inference.twin import Twin

COMMAND_NS, PROGRAM_NS, SLC_PROGRAM_NS = 9_000, 500_000, 150_000
COMMON = (
    "sim:demo?pages_per_block=96&idle_free_blocks=0&spare_factor=0.2&seed=7&read_ns=60000"
    f"&command_read_ns={COMMAND_NS}&program_ns={PROGRAM_NS}&program_high_ns={PROGRAM_NS}"
)
TLC = f"&bits_per_cell=3&read_middle_ns=75000&read_high_ns=95000&program_middle_ns={PROGRAM_NS}"
FOUR_DIES = "&channels=2&dies_per_channel=2&blocks_per_die=80"
ONE_DIE = "&channels=1&dies_per_channel=1&blocks_per_die=160"
ONE_DIE += "&page_bytes=8192&mapping_unit_bytes=4096"
MAP = FOUR_DIES + "&ftl=dftl&mapping_cache_policy=lru&mapping_batch_update=true"
SLC = FOUR_DIES + f"&slc_blocks=3&slc_blocks_max=3&slc_read_ns=40000{TLC}"
SLC += f"&slc_program_ns={SLC_PROGRAM_NS}"
MAP_CACHE_BYTES = 64 << 10
SLC_BYTES = 3 * (96 // 3) * 4 * 4096


def _measured(keys: str) -> Observations:
    with switched_off(), open_device(COMMON + keys, writable=True) as device:
        return probes.measure(device)


@pytest.fixture(scope="module")
def mapped() -> Observations:
    return _measured(f"{MAP}&mapping_cache_bytes={MAP_CACHE_BYTES}")


@pytest.fixture(scope="module")
def slc() -> Observations:
    return _measured(SLC)


@pytest.mark.parametrize("kinds", ["", TLC])
def test_single_die_has_the_page_of_its_reads(kinds: str) -> None:
    observations = _measured(ONE_DIE + kinds)
    found = structure_of(corrected(observations, page_types_of(observations)))
    assert (found.page, found.mapping_unit, found.dies) == (8192, 4096, 1)


@pytest.mark.parametrize(("share", "dies"), [(0.0, 1), (0.5, None)])
def test_pairs_of_which_some_do_not_wait_have_no_single_die(
    slc: Observations, share: float, dies: int | None
) -> None:
    key = RunKey("read_bursts", "RR", 2)
    run, flash = slc.runs[key], flash_ns(slc)
    assert flash is not None
    pairs = len(run.response_ns) // 2
    # The addresses of those that do not wait have no order.
    waits = np.random.default_rng(1).random(pairs) >= share
    second = 1e5 + flash.value * np.where(waits, 1.0, 0.4)
    times = np.column_stack([np.full(pairs, 1e5), second]).reshape(-1)
    found = structure_of(
        replace(slc, runs={**slc.runs, key: replace(run, response_ns=times)}),
    )
    assert found.dies == dies


def test_reads_without_data_show_a_command_although_some_read_the_map(mapped: Observations) -> None:
    command = times_of(mapped, structure_of(mapped)).command_read
    assert reads_map(mapped)
    assert command is not None
    assert command.value == pytest.approx(COMMAND_NS, abs=1.0)


def test_large_writes_show_the_dies_behind_a_map(mapped: Observations) -> None:
    structure = structure_of(mapped)
    _, dies = dies_behind_map(mapped, structure, times_of(mapped, structure))
    assert dies == 4


def test_a_device_with_its_map_in_memory_reads_none(slc: Observations) -> None:
    assert not reads_map(slc)


def test_durable_writes_show_the_slc_cache_and_its_programs(slc: Observations) -> None:
    found = slc_cache_of(slc)
    assert found is not None
    assert abs(found.size - SLC_BYTES) <= found.io_size
    types = page_types_of(slc, found.ordered_from)
    equal = corrected(beyond(slc, found.ordered_from), types)
    structure = structure_of(equal)
    assert (structure.page, structure.dies) == (4096, 4)
    times, quick = programs(found, structure, times_of(equal, structure))
    assert quick is not None
    assert times.write_page is not None
    difference = (times.write_page - quick).value
    assert difference == pytest.approx(PROGRAM_NS - SLC_PROGRAM_NS, rel=0.02)


def test_pages_of_the_slc_cache_that_moved_do_not_count(slc: Observations) -> None:
    found = slc_cache_of(slc)
    assert found is not None
    later = beyond(slc, found.ordered_from)
    for key, run in later.runs.items():
        if key.probe in ("read_each", "read_size", "read_bursts"):
            assert run.offset_bytes.min() >= found.ordered_from
        if key.probe == "read_bursts":
            assert len(run.offset_bytes) % key.value == 0


def test_steady_durable_writes_have_no_slc_cache(mapped: Observations) -> None:
    (key, run), *_ = [each for each in mapped.runs.items() if each[0][:2] == ("clear", "SW")]
    steady = replace(run, response_ns=run.response_ns * 0 + 1e6)
    assert slc_cache_of(replace(mapped, runs={key: steady})) is None


def test_twin_has_the_blocks_and_programs_of_the_slc_cache(slc: Observations) -> None:
    found = slc_cache_of(slc)
    assert found is not None
    layout = {"channels": 2, "dies_per_channel": 2, "pages_per_block": 96, "bits_per_cell": 3}
    transfer = 4096 * 1.055 * 1e9 / 400e6
    twin = with_slc(
        Twin().but(**layout, spare_bytes=225), found, Interval(SLC_PROGRAM_NS + transfer, 1.0)
    )
    assert twin.values["slc_blocks"] == 3
    assert twin.number("slc_program_ns") == pytest.approx(SLC_PROGRAM_NS, abs=10)


def test_a_cache_larger_than_the_window_hides_its_pages(slc: Observations) -> None:
    hidden = _with_times(slc, ("clear", "SW"), lambda times: np.full(len(times), 1e6))
    early = _with_times(
        hidden, ("fill", "SW"), lambda times: np.where(np.arange(len(times)) < 200, 1e6, 3e6)
    )
    assert exceeds_window(early)
    found = infer(early)
    assert found.twin is None
    for key in ("page_bytes", "dies", "program_ns", "slc_cache_bytes"):
        assert not found.estimate(key).is_identified
    steady = _with_times(hidden, ("fill", "SW"), lambda times: np.full(len(times), 1e6))
    assert not exceeds_window(steady)


def test_durable_writes_without_flash_do_not_prove_that_there_is_no_cache() -> None:
    keys = "&write_cache_bytes=8388608&flush=eager&power_loss_protection=true&spare_read_bytes=16"
    found = infer(_measured(FOUR_DIES + keys))
    assert not found.estimate("write_cache_bytes").is_identified


def _with_times(
    observations: Observations, probe: tuple[str, str], change: Callable[[Floats], Floats]
) -> Observations:
    runs = {
        key: replace(run, response_ns=change(run.response_ns)) if key[:2] == probe else run
        for key, run in observations.runs.items()
    }
    return replace(observations, runs=runs)
