"""The closed forms of FAST and BAST against the simulator."""

import json
import math

import numpy as np
import pytest

from uflip import _native
from uflip.models import bast, hybrid
from uflip.profiles import read_profile

PAGE_BYTES = 4096
TABLE_1_NS = {"read_ns": 25_250, "program_ns": 101_250, "erase_ns": 1_500_000}
MEAN_TOLERANCE = 0.02

# (data blocks, log blocks, pages per block): around Table 1, and far from it.
FAST = [
    (4096, 128, 64),
    (4096, 16, 64),
    (4096, 64, 64),
    (4096, 256, 64),
    (4096, 512, 64),
    (2048, 8, 64),
    (2048, 32, 64),
    (2048, 128, 64),
    (2048, 64, 32),
    (2048, 64, 128),
    (1024, 24, 128),
    (1024, 100, 32),
    (1024, 256, 16),
]
FLASHSIM_2010 = [(4096, 128, 64), (4096, 32, 64), (2048, 16, 64), (2048, 64, 64), (2048, 64, 32)]
BAST = [(2048, 16, 64), (1024, 128, 32), (1024, 512, 16), (512, 256, 8), (2048, 1, 64)]


def simulate(
    ftl: str, data_blocks: int, log_blocks: int, pages: int, compat: str = "none"
) -> tuple[float, dict[str, int]]:
    """Return the mean time of a random write in the steady state [ns], and its counters."""
    blocks = data_blocks + log_blocks + 1
    overrides = {
        "ftl": ftl,
        "compat": compat,
        "log_blocks": log_blocks,
        "blocks_per_die": blocks,
        "pages_per_block": pages,
        # Half a page more, so that rounding down leaves the data blocks whole.
        "spare_factor": 1 - (data_blocks * pages + 0.5) / (blocks * pages),
        "state": "sequential",
    }
    name, text, source = read_profile("fast-1gb")
    device = _native.Device.sim(name, text, source, json.dumps(overrides)).result()
    assert json.loads(device.info_json())["capacity_bytes"] == data_blocks * pages * PAGE_BYTES
    writes = {"kind": "basic", "mode": "write", "location": "random", "io_size": PAGE_BYTES}
    # Every data block and every log block many times over; the log has forgotten its beginning.
    settle = 12 * (data_blocks + log_blocks) * pages
    device.apply(json.dumps(writes | {"io_count": settle, "seed": 1})).result()
    handle = device.start(json.dumps(writes | {"io_count": 1_000_000, "io_ignore": 0, "seed": 2}))
    while not handle.wait(0.1):
        pass
    trace = handle.result()
    response_ns = np.asarray(trace.column("response_time_ns"))
    return float(response_ns.mean()), json.loads(trace.counters_json() or "{}")


@pytest.mark.parametrize(("data_blocks", "log_blocks", "pages"), FAST)
def test_fast_model_matches_simulator(data_blocks: int, log_blocks: int, pages: int) -> None:
    mean_ns, counted = simulate("fast", data_blocks, log_blocks, pages)
    model = hybrid.fast(
        data_blocks=data_blocks, log_blocks=log_blocks, pages_per_block=pages, **TABLE_1_NS
    )
    n_data = counted["full_merges"] / counted["blocks_collected"]
    amplification = counted["pages_programmed"] / counted["host_pages_written"]
    assert mean_ns == pytest.approx(model.mean_write_ns, rel=MEAN_TOLERANCE)
    assert n_data == pytest.approx(model.data_blocks_per_full_merge, rel=MEAN_TOLERANCE)
    assert amplification == pytest.approx(model.write_amplification, rel=MEAN_TOLERANCE)


@pytest.mark.parametrize(("data_blocks", "log_blocks", "pages"), FLASHSIM_2010)
def test_flashsim2010_model_matches_simulator(
    data_blocks: int, log_blocks: int, pages: int
) -> None:
    mean_ns, counted = simulate("fast", data_blocks, log_blocks, pages, "flashsim2010")
    model = hybrid.fast_flashsim2010(
        data_blocks=data_blocks, log_blocks=log_blocks, pages_per_block=pages, **TABLE_1_NS
    )
    n_data = counted["full_merges"] / counted["blocks_collected"]
    assert mean_ns == pytest.approx(model.mean_write_ns, rel=MEAN_TOLERANCE)
    # The model counts entries, the code data blocks: some of n entries are in the same block.
    entries = model.data_blocks_per_full_merge
    distinct = data_blocks * -math.expm1(entries * math.log1p(-1 / data_blocks))
    assert n_data == pytest.approx(distinct, rel=MEAN_TOLERANCE)


@pytest.mark.parametrize(("data_blocks", "log_blocks", "pages"), BAST)
def test_bast_model_matches_simulator(data_blocks: int, log_blocks: int, pages: int) -> None:
    mean_ns, counted = simulate("bast", data_blocks, log_blocks, pages)
    model = bast.bast(
        data_blocks=data_blocks, log_blocks=log_blocks, pages_per_block=pages, **TABLE_1_NS
    )
    full = counted["full_merges"] / counted["host_pages_written"]
    assert mean_ns == pytest.approx(model.mean_write_ns, rel=MEAN_TOLERANCE)
    assert full == pytest.approx(model.full_merges_per_write, rel=MEAN_TOLERANCE)


def test_at_least_twenty_configurations_are_compared() -> None:
    assert len(FAST) + len(FLASHSIM_2010) + len(BAST) >= 20
