"""Does the suite iq measure the write amplification that theory predicts, and find the knee?

The expected values are closed forms of a cyclic buffer and of greedy victims, for any popularity of
pages; and the service time of a device with one die.
"""

import math
from pathlib import Path
from typing import Any

import pytest
import stored
from command_line import uflip

import uflip as package
from uflip.device.opener import open_device
from uflip.microbench import MICRO_BENCHMARKS, check_names, suite_of, varied_micro_benchmarks
from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.iq.long_writes import IO_SIZE
from uflip.models import hot_cold
from uflip.models import write_amplification as theory
from uflip.report.findings import finding
from uflip.result_views import summary
from uflip.results import Results

GIB = 1 << 30
NAMES = list(varied_micro_benchmarks("iq"))
READ_NS, PROGRAM_NS = 50_000, 300_000
BLOCKS, PAGES = 256, 64
# One die, and nothing takes time but its cells.
ONE_DIE = (
    f"sim:demo?channels=1&dies_per_channel=1&blocks_per_die={BLOCKS}&pages_per_block={PAGES}"
    f"&read_ns={READ_NS}&program_ns={PROGRAM_NS}&program_high_ns={PROGRAM_NS}&command_read_ns=0"
    "&command_write_ns=0&link_bytes_per_s=1000000000000&channel_bytes_per_s=1000000000000"
    "&erase_ns=1000&idle_free_blocks=0&spare_factor=0.25"
)
# Blocks that are no victims: one kept free, one open.
HELD = 2
# Pages that are overwritten so often are never moved: e to this power is no number.
MAX_EXPONENT = 700


def lay_out(name: str, capacity: int, scale: str = "standard") -> Experiment:
    info = stored.device_info("null", capacity_bytes=capacity, sector_bytes=512)
    (experiment,) = MICRO_BENCHMARKS[name].experiments(Context(info, scale, seed=1))
    return experiment


def amplification(url: str, name: str, value: int) -> float:
    """Return the write amplification of a run after another one of the same pattern."""
    device = open_device(url, writable=True)
    (run,) = [run for run in lay_out(name, device.info.capacity_bytes).runs if run.value == value]
    device.run(run.spec)
    before = device.counters()
    device.run(run.spec.but(seed=2))
    after = device.counters()
    assert before is not None
    assert after is not None
    programmed, written = (
        after[key] - before[key] for key in ("pages_programmed", "host_pages_written")
    )
    return programmed / written


def logical_pages(url: str) -> int:
    return package.inspect_device(url).capacity_bytes // IO_SIZE


def spare(pages: float, blocks: int = BLOCKS) -> float:
    return theory.pool_spare_factor(
        physical_blocks=blocks, pages_per_block=PAGES, logical_pages=pages, held_blocks=HELD
    )


def cyclic(popularity: list[float], spare_factor: float) -> float:
    """Return the write amplification of a cyclic buffer, for the popularity of each page.

    A copy of a page with popularity p is valid after h host writes with a probability of e^(-p h),
    and then it is written again: p e^(-p h) / (1 - e^(-p h)) copies of it a host write. The buffer
    is written once in h host writes: h A pages.
    """
    physical = len(popularity) / (1 - spare_factor)
    low, high = 1.0, physical
    for _ in range(60):
        writes = (low + high) / 2
        moved = sum(p / math.expm1(p * writes) for p in popularity if p * writes < MAX_EXPONENT)
        low, high = (low, writes) if writes * (1 + moved) > physical else (writes, high)
    return physical / low


def zipf(pages: int, exponent: float) -> list[float]:
    weights = [rank**-exponent for rank in range(1, pages + 1)]
    return [weight / sum(weights) for weight in weights]


def test_suite_is_its_own() -> None:
    assert NAMES == ["skew", "hot_zone", "read_only", "offered_load"]
    assert check_names(None, "sectors", "iq") == ["baseline", *NAMES]
    assert all(suite_of(["baseline", name]) == "iq" for name in NAMES)
    for name in NAMES:
        assert len(lay_out(name, GIB, "quick").runs) < len(lay_out(name, GIB).runs)


@pytest.mark.parametrize("name", NAMES)
def test_run_on_a_drive_has_the_value_it_is_named_after(name: str) -> None:
    for run in lay_out(name, 1000 * GIB).runs:
        spec: Any = run.spec
        if name == "offered_load":
            assert 1e9 / spec.interval == pytest.approx(run.value, rel=0.01)
            continue
        assert spec.io_size == IO_SIZE
        # Twice the device, however small the part that is written.
        assert spec.stop.min_ios == 2000 * GIB // IO_SIZE
        shares = {
            "skew": spec.skew_percent or 0,
            "hot_zone": spec.hot_io_percent,
            "read_only": 100 - 100 * spec.target_size / (1000 * GIB),
        }
        assert shares[name] == pytest.approx(run.value, abs=1e-6)


def test_cyclic_closed_form_agrees_with_that_of_equal_pages() -> None:
    assert cyclic([1 / 5000] * 5000, 0.2) == pytest.approx(theory.fifo(spare_factor=0.2), rel=1e-3)


@pytest.mark.parametrize("percent", [0, 40, 100])
def test_skew_matches_cyclic_buffer(percent: int) -> None:
    url = f"{ONE_DIE}&gc=cyclic&state=random"
    pages = logical_pages(url)
    expected = cyclic(zipf(pages, percent / 100), spare(pages))
    assert amplification(url, "skew", percent) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("percent", [60, 80, 95])
def test_hot_zone_matches_cyclic_buffer_of_two_classes(percent: int) -> None:
    url = f"{ONE_DIE}&gc=cyclic&state=random"
    hot = percent / 100
    expected = hot_cold.mixed_fifo(
        spare_factor=spare(logical_pages(url)), hot_writes=hot, hot_pages=1 - hot
    )
    assert amplification(url, "hot_zone", percent) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("percent", [0, 40, 80])
def test_read_only_data_in_blocks_of_its_own_leaves_its_spare_to_the_rest(percent: int) -> None:
    """Data that was written in order fills blocks that a greedy collection never chooses."""
    url = f"{ONE_DIE}&gc=greedy&state=sequential"
    pages = logical_pages(url)
    written = pages * (100 - percent) // 100
    factor = spare(written, BLOCKS - (pages - written) // PAGES)
    expected = theory.greedy(spare_factor=factor, pages_per_block=PAGES)
    assert amplification(url, "read_only", percent) == pytest.approx(expected, rel=0.05)


def test_offered_load_is_served_up_to_the_rate_of_the_die() -> None:
    """The die is busy for a program a write; reads of addresses without data take no time."""
    url = f"{ONE_DIE.replace(f'blocks_per_die={BLOCKS}', 'blocks_per_die=4096')}&state=empty"
    capacity = package.inspect_device(url).capacity_bytes
    limit = 1e9 / (0.9 * PROGRAM_NS)
    for run in lay_out("offered_load", capacity, "quick").runs:
        trace = open_device(url, writable=True).run(run.spec)
        served = len(trace) / trace.elapsed_ns() * 1e9
        assert served == pytest.approx(min(run.value, limit), rel=0.05), run.value


def test_plan_and_report_show_the_suite(tmp_path: Path) -> None:
    out, page = tmp_path / "r", tmp_path / "report.html"
    outcome = uflip("run", "sim:demo?blocks_per_die=256", "--suite", "iq", "--scale", "quick",
                    "--out", out)  # fmt: skip
    assert outcome.code == 0, outcome.err
    for title in ("Skew", "Hot zone", "Read-only share", "Offered load"):
        assert title in outcome.out
    assert uflip("report", out, "-o", page).code == 0
    html = page.read_text()
    assert all(f'id="{name}"' in html for name in NAMES)
    document = summary(Results.load(out))
    (uniform, skewed, _) = document["micro_benchmarks"]["skew"]
    # The device was prepared by uniform writes; a quick run of others writes too little.
    assert "too_little_written" not in uniform["steadiness"]["reasons"]
    assert "too_little_written" in skewed["steadiness"]["reasons"]
    assert not skewed["together"]["converged"]
    assert "not steady" in finding("skew", document)
