"""Merge costs: Myers & Sinclair's printed values, limits, and naive FAST and BAST simulations."""

import json
import math
import random
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from uflip import _native
from uflip.errors import UsageError
from uflip.models import bast, hybrid, merges
from uflip.profiles import read_profile

TABLE_1_NS = {"read_ns": 25_250, "program_ns": 101_250, "erase_ns": 1_500_000}
COPY_NS = 126_500
TABLE_1: dict[str, Any] = {
    "data_blocks": 4096,
    "log_blocks": 128,
    "pages_per_block": 64,
    **TABLE_1_NS,
}


# --- values from elsewhere -----------------------------------------------------------------------


def test_equations_match_printed_values() -> None:
    # Section 6.2: 5548 and 356572 microseconds.
    assert merges.zero_page_merge_ns(valid_pages=32, **TABLE_1_NS) == 5_548_000
    assert merges.full_merge_ns(data_blocks=64, valid_pages=32, **TABLE_1_NS) == 356_572_000


# Log blocks: N_data, write amplification, full merge [ms], mean write [us] of a counting
# simulation of correct FAST with Table 1's geometry and timing.
SIMULATED_FAST = {
    16: (52.03, 53.18, 500.8, 7949),
    64: (31.89, 33.36, 307.6, 4977),
    128: (20.93, 22.57, 202.4, 3359),
    256: (12.26, 14.04, 119.1, 2080),
    512: (6.55, 8.43, 64.4, 1238),
}


@pytest.mark.parametrize("log_blocks", SIMULATED_FAST)
def test_fast_against_large_simulations(log_blocks: int) -> None:
    n_data, amplification, full_ms, mean_us = SIMULATED_FAST[log_blocks]
    cost = hybrid.fast(**(TABLE_1 | {"log_blocks": log_blocks}))
    assert cost.data_blocks_per_full_merge == pytest.approx(n_data, rel=2e-3)
    assert cost.write_amplification == pytest.approx(amplification, rel=2e-3)
    assert cost.full_merge_ns / 1e6 == pytest.approx(full_ms, rel=2e-3)
    assert cost.mean_write_ns / 1e3 == pytest.approx(mean_us, rel=2e-3)
    assert cost.zero_merge_ns / 1e6 == pytest.approx(9.47, abs=5e-3)


def test_flashsim2010_matches_figure_4() -> None:
    # Runs of that code: 31.3 valid pages, zero-page merges of 5.50-5.57 ms with their own write,
    # full merges of 337-347 ms, about 62 data blocks each; Myers & Sinclair print 5.5 and 356.6.
    cost = hybrid.fast_flashsim2010(**TABLE_1)
    assert 31.0 < cost.zero_merge_valid_pages < cost.full_merge_valid_pages < 31.7
    assert 5.50 < (cost.zero_merge_ns + TABLE_1_NS["program_ns"]) / 1e6 < 5.57
    assert 337 < cost.full_merge_ns / 1e6 < 347
    assert cost.data_blocks_per_full_merge == pytest.approx(62.2, abs=0.3)
    assert 2764 < cost.mean_write_ns / 1e3 < 2873


def test_bast_against_a_published_simulator() -> None:
    # flashsim's BAST, 4096 data blocks and 128 logs: 19191 merges in 20000 writes, of which the
    # first 128 log blocks came without a merge. Three standard deviations are 72 merges.
    cost = bast.bast(**TABLE_1)
    merges = cost.full_merges_per_write + cost.partial_merges_per_write
    assert merges * 20_000 - 128 == pytest.approx(19_191, abs=72)
    assert cost.write_amplification == pytest.approx(63.0, abs=0.05)


# --- limits and identities -----------------------------------------------------------------------


def test_few_log_blocks_give_printed_worst_case() -> None:
    big = {"data_blocks": 10**7, "log_blocks": 2, "pages_per_block": 64, **TABLE_1_NS}
    correct = hybrid.fast(**big)
    assert correct.data_blocks_per_full_merge == pytest.approx(64, rel=1e-4)
    assert correct.full_merge_ns == pytest.approx(
        merges.full_merge_ns(data_blocks=64, valid_pages=64, **TABLE_1_NS), rel=1e-4
    )
    broken = hybrid.fast_flashsim2010(**big)
    assert broken.data_blocks_per_full_merge == pytest.approx(64, rel=1e-4)
    assert broken.full_merge_valid_pages == pytest.approx(32, rel=1e-4)
    assert broken.full_merge_ns == pytest.approx(356_572_000, rel=1e-4)


def test_blocks_per_full_merge_tends_to_b_over_1_plus_x() -> None:
    # Blocks so large that page 0 and rewritten pages hardly matter: x = 62.5 * 4096/131072.
    cost = hybrid.fast(data_blocks=131_072, log_blocks=64, pages_per_block=4096, **TABLE_1_NS)
    x = 62.5 * 4096 / 131_072
    assert cost.data_blocks_per_full_merge == pytest.approx(4096 / (1 + x), rel=1e-3)


@pytest.mark.parametrize("model", [hybrid.fast, hybrid.fast_flashsim2010])
def test_cost_components_add_up(model: Any) -> None:
    cost = model(**TABLE_1)
    assert cost.zero_merge_ns == pytest.approx(
        cost.zero_merge_valid_pages * COPY_NS + 1_500_000, rel=1e-12
    )
    shares = 101_250 / cost.mean_write_ns + cost.zero_merge_share + cost.full_merge_share
    assert shares == pytest.approx(1)
    free_copies = model(**(TABLE_1 | {"read_ns": 0, "erase_ns": 0}))
    assert free_copies.mean_write_ns == pytest.approx(101_250 * cost.write_amplification)


def test_more_log_blocks_make_fast_cheaper() -> None:
    means = [
        hybrid.fast(**(TABLE_1 | {"log_blocks": n})).mean_write_ns for n in (2, 8, 64, 1024, 4096)
    ]
    assert means == sorted(means, reverse=True)


def test_utilisation_tends_to_full_device() -> None:
    full = hybrid.fast(**TABLE_1)
    nearly = hybrid.fast(**TABLE_1, utilisation=1 - 1e-9)
    assert nearly.mean_write_ns == pytest.approx(full.mean_write_ns, rel=1e-6)
    assert hybrid.fast(**TABLE_1, utilisation=0.5).zero_merge_valid_pages == pytest.approx(31.5)


def test_valid_pages_while_filling() -> None:
    geometry = {"data_blocks": 64, "pages_per_block": 16}
    rng = random.Random(3)
    means: list[float] = []
    for _ in range(200):
        pages = {rng.randrange(64 * 16) for _ in range(1000)}
        means.append(len(pages) / 64)
    expected = merges.valid_pages_after(writes=1000, **geometry)
    assert sum(means) / len(means) == pytest.approx(expected, rel=5e-3)
    assert merges.valid_pages_after(writes=0, **geometry) == 0
    assert merges.valid_pages_after(writes=1, **geometry) == pytest.approx(1 / 64)
    assert merges.valid_pages_after(writes=10**9, **geometry) == pytest.approx(16)


def test_bast_with_a_log_block_for_every_data_block() -> None:
    # No eviction: one merge for every B writes, of B copies but for the rare ordered ones.
    cost = bast.bast(data_blocks=64, log_blocks=64, pages_per_block=16, **TABLE_1_NS)
    assert cost.full_merges_per_write == pytest.approx(1 / 16)
    assert cost.write_amplification == pytest.approx(2)
    nearly = bast.bast(data_blocks=10**9, log_blocks=10**9 - 1, pages_per_block=16, **TABLE_1_NS)
    assert nearly.mean_write_ns == pytest.approx(cost.mean_write_ns, rel=1e-6)


# --- naive FAST ----------------------------------------------------------------------------------

FREE, IN_PLACE, IN_LOG = range(3)


class NaiveFast:
    """FAST by its description, page by page, counting copies; `lossy` as FlashSim 2010.

    A merge drops the log entries of its data block. The lossy one does not copy the pages that they
    name and keeps the entries, each of which brings about another merge later.
    """

    def __init__(self, data_blocks: int, log_blocks: int, pages_per_block: int, lossy: bool):
        self.block, self.lossy = pages_per_block, lossy
        self.state = [IN_PLACE] * (data_blocks * pages_per_block)
        self.ring: list[int | None] = [None] * ((log_blocks - 1) * pages_per_block)
        self.slot_of: dict[int, int] = {}  # page to its newest slot in the ring
        self.logged = 0
        self.owner: int | None = None  # data block in the sequential log, which holds its page 0
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self.writes = self.zero_merges = self.full_merges = self.merged = 0
        self.zero_copies = self.full_copies = 0

    def write(self, page: int) -> None:
        """Serve one host write."""
        self.writes += 1
        block, offset = divmod(page, self.block)
        if self.state[page] == FREE:
            self.state[page] = IN_PLACE
        elif offset == 0:
            if self.owner is not None:
                self.merge_sequential()
            self.owner = block
        elif block == self.owner:  # as far as random writes go, never the next page in order
            self.state[page] = IN_PLACE
            if not self.lossy:
                self.forget(page)
            self.merge_sequential()
        else:
            self.log(page)

    def log(self, page: int) -> None:
        """Append to the ring of random log blocks; reclaim the oldest when it is full."""
        if page in self.slot_of:
            self.ring[self.slot_of[page]] = None
        else:
            self.state[page] = IN_LOG
        slot = self.logged % len(self.ring)
        if self.logged >= len(self.ring) and slot % self.block == 0:
            self.reclaim(slot)
        self.ring[slot] = page
        self.slot_of[page] = slot
        self.logged += 1

    def reclaim(self, first: int) -> None:
        """Merge every data block that the log block at `first` names."""
        self.full_merges += 1
        for slot in range(first, first + self.block):
            page = self.ring[slot]
            if page is None:
                continue
            block = page // self.block
            if self.lossy:
                self.forget(page)
            self.merged += 1
            self.full_copies += self.copy(block, from_page=int(block == self.owner))
            if block == self.owner:
                self.owner = None

    def merge_sequential(self) -> None:
        """Complete the owner's block in the sequential log block."""
        assert self.owner is not None
        self.zero_merges += 1
        self.zero_copies += self.copy(self.owner, from_page=1)
        self.owner = None

    def copy(self, block: int, from_page: int) -> int:
        """Move a data block's pages to a fresh block; return how many were copied."""
        copies = 0
        for page in range(block * self.block + from_page, (block + 1) * self.block):
            if self.lossy and self.state[page] == IN_LOG:
                self.state[page] = FREE
            if self.state[page] == FREE:
                continue
            copies += 1
            self.state[page] = IN_PLACE
            if not self.lossy:
                self.forget(page)
        return copies

    def forget(self, page: int) -> None:
        """Drop the log entry of a page, if it has one."""
        slot = self.slot_of.pop(page, None)
        if slot is not None:
            self.ring[slot] = None

    def mean_write_ns(self) -> float:
        """Return the mean time of a write with Table 1's timing [ns]."""
        copies = self.zero_copies + self.full_copies
        erases = self.zero_merges + self.merged + self.full_merges
        return 101_250 + (copies * COPY_NS + erases * 1_500_000) / self.writes


def run_fast(geometry: dict[str, int], *, lossy: bool, pages: list[int]) -> NaiveFast:
    device = NaiveFast(**geometry, lossy=lossy)
    if len(pages) < len(device.state):
        device.state = [FREE] * len(device.state)
        for page in pages:
            device.state[page] = IN_PLACE
    rng = random.Random(7)
    for _ in range(6 * len(pages)):
        device.write(rng.choice(pages))
    device.reset()
    for _ in range(150_000):
        device.write(rng.choice(pages))
    return device


def assert_matches_model(device: NaiveFast, cost: merges.FastCost, within: float) -> None:
    """Compare everything that was counted with the model."""
    near = {"rel": within}
    assert device.merged / device.full_merges == pytest.approx(
        cost.data_blocks_per_full_merge, **near
    )
    assert device.zero_copies / device.zero_merges == pytest.approx(
        cost.zero_merge_valid_pages, **near
    )
    assert device.full_copies / device.merged == pytest.approx(cost.full_merge_valid_pages, **near)
    assert device.full_merges / device.writes == pytest.approx(cost.full_merges_per_write, **near)
    copies = device.zero_copies + device.full_copies
    assert 1 + copies / device.writes == pytest.approx(cost.write_amplification, **near)
    assert device.mean_write_ns() == pytest.approx(cost.mean_write_ns, **near)


@pytest.mark.parametrize("log_blocks", [3, 24, 150])
def test_fast_against_simulation(log_blocks: int) -> None:
    geometry = {"data_blocks": 600, "log_blocks": log_blocks, "pages_per_block": 16}
    device = run_fast(geometry, lossy=False, pages=list(range(600 * 16)))
    assert_matches_model(device, hybrid.fast(**geometry, **TABLE_1_NS), within=0.01)


def test_fast_with_part_of_the_pages_in_use_against_simulation() -> None:
    geometry = {"data_blocks": 600, "log_blocks": 40, "pages_per_block": 32}
    rng = random.Random(11)
    pages = [page for page in range(600 * 32) if rng.random() < 0.5]
    device = run_fast(geometry, lossy=False, pages=pages)
    used = len(pages) / (600 * 32)
    assert_matches_model(
        device, hybrid.fast(**geometry, **TABLE_1_NS, utilisation=used), within=0.015
    )


@pytest.mark.parametrize("log_blocks", [3, 24])
def test_flashsim2010_against_simulation(log_blocks: int) -> None:
    geometry = {"data_blocks": 600, "log_blocks": log_blocks, "pages_per_block": 16}
    device = run_fast(geometry, lossy=True, pages=list(range(600 * 16)))
    assert_matches_model(device, hybrid.fast_flashsim2010(**geometry, **TABLE_1_NS), within=0.015)


# --- naive BAST ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data_blocks", "log_blocks", "block"), [(64, 8, 8), (64, 56, 8), (128, 64, 4), (50, 25, 2)]
)
def test_bast_against_simulation(data_blocks: int, log_blocks: int, block: int) -> None:
    rng = random.Random(5)
    logs: OrderedDict[int, list[int]] = OrderedDict()
    kinds = {"switch": 0, "partial": 0, "full": 0}
    copies = erases = 0

    def merge(offsets: list[int]) -> None:
        nonlocal copies, erases
        in_order = offsets == list(range(len(offsets)))
        if not in_order:
            kinds["full"] += 1
            copies, erases = copies + block, erases + 2
            return
        kinds["switch" if len(offsets) == block else "partial"] += 1
        copies, erases = copies + block - len(offsets), erases + 1

    writes = 200_000
    for _ in range(writes):
        owner, offset = divmod(rng.randrange(data_blocks * block), block)
        if owner not in logs:
            if len(logs) == log_blocks:
                merge(logs.popitem(last=False)[1])
            logs[owner] = []
        if len(logs[owner]) == block:
            merge(logs[owner])
            logs[owner] = []
        logs[owner].append(offset)
        logs.move_to_end(owner)

    cost = bast.bast(
        data_blocks=data_blocks, log_blocks=log_blocks, pages_per_block=block, **TABLE_1_NS
    )
    assert kinds["full"] / writes == pytest.approx(cost.full_merges_per_write, rel=0.01)
    assert kinds["partial"] / writes == pytest.approx(
        cost.partial_merges_per_write, rel=0.03, abs=2e-4
    )
    assert kinds["switch"] / writes == pytest.approx(
        cost.switch_merges_per_write, rel=0.05, abs=2e-5
    )
    assert 1 + copies / writes == pytest.approx(cost.write_amplification, rel=0.005)
    mean_ns = 101_250 + (copies * COPY_NS + erases * 1_500_000) / writes
    assert mean_ns == pytest.approx(cost.mean_write_ns, rel=0.005)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (hybrid.fast, {"data_blocks": 0}),
        (hybrid.fast, {"log_blocks": 1}),
        (hybrid.fast, {"log_blocks": 4097}),
        (hybrid.fast, {"pages_per_block": 3}),
        (hybrid.fast, {"erase_ns": -1}),
        (hybrid.fast, {"utilisation": 0}),
        (hybrid.fast, {"utilisation": 0.1}),
        (hybrid.fast, {"utilisation": 1.5}),
        (hybrid.fast, {"utilisation": float("nan")}),
        (hybrid.fast_flashsim2010, {"log_blocks": 1}),
        (hybrid.fast_flashsim2010, {"read_ns": float("nan")}),
        (bast.bast, {"log_blocks": 0}),
        (bast.bast, {"log_blocks": 5000}),
        (bast.bast, {"pages_per_block": 1}),
        (bast.bast, {"program_ns": -1}),
    ],
)
def test_values_out_of_range_are_usage_errors(model: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        model(**(TABLE_1 | wrong))
    assert all(caught.value.parts().values())
    assert caught.value.where == next(iter(wrong))


def test_negative_counts_in_the_printed_equations_are_usage_errors() -> None:
    with pytest.raises(UsageError):
        merges.zero_page_merge_ns(valid_pages=-1, **TABLE_1_NS)
    with pytest.raises(UsageError):
        merges.full_merge_ns(data_blocks=float("inf"), valid_pages=1, **TABLE_1_NS)
    with pytest.raises(UsageError):
        merges.valid_pages_after(writes=-1, data_blocks=4, pages_per_block=4)


# The closed forms of FAST and BAST against the simulator.


PAGE_BYTES = 4096
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
