"""Does `uflip infer` name the FTL family of a device that merges blocks, and only of such a one?

Expected values are the parameters of the devices.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from uflip.device.cache import switched_off
from uflip.device.opener import open_device
from uflip.inference import probes
from uflip.inference.family import PROBE, merging_family
from uflip.inference.infer import OF_PAGE_MAPS, Inference, infer
from uflip.inference.observations import Observations

BLOCK_MAP = Path(__file__).parents[2] / "crates/sim/tests/swarm/block-map.toml"
PAGES, PAGE_BYTES, DIES, PROGRAM_NS = 64, 8192, 4, 400_000
NOISE_NS = 20_000


def keys(**changes: str | float) -> str:
    """Return the keys of a device of 96 MiB, with changes."""
    values: dict[str, str | float] = {
        "channels": 2, "dies_per_channel": 2, "blocks_per_die": 60, "pages_per_block": PAGES,
        "page_bytes": PAGE_BYTES, "read_ns": 50_000, "program_ns": PROGRAM_NS,
        "program_high_ns": PROGRAM_NS, "channel_bytes_per_s": 400_000_000,
        "command_read_ns": 5000, "command_write_ns": 8000, "link_bytes_per_s": 500_000_000,
        "spare_factor": 0.2,
    }  # fmt: skip
    return "&".join(f"{key}={value}" for key, value in (values | changes).items())


MERGING = {
    "block_map": f"sim:{BLOCK_MAP}?{keys()}",
    "bast": f"sim:fast-1gb?{keys(ftl='bast', log_blocks=20)}",
    # A log for every block: only writes in place show it.
    "bast with many logs": "sim:fast-1gb?"
    + keys(ftl="bast", log_blocks=140, blocks_per_die=70, spare_factor=0.52),
    "fast": f"sim:fast-1gb?{keys(ftl='fast', log_blocks=20)}",
    "superblock": f"sim:fast-1gb?{keys(ftl='superblock', log_blocks=12, superblock_blocks=4)}",
}
OTHERS = {
    "random victims": f"sim:demo?{keys(gc='random', spare_factor=0.09)}",
    "map on flash": "sim:dftl?channels=2&dies_per_channel=2&blocks_per_die=64&spare_factor=0.2",
    "merge units": "sim:kingston-dti?blocks_per_die=64&unit_bytes=2097152&spare_factor=0.25",
}


@cache
def observed(url: str) -> Observations:
    with switched_off(), open_device(url, writable=True) as device:
        return probes.measure(device)


@cache
def inferred(name: str) -> Inference:
    return infer(observed(MERGING[name]))


@pytest.mark.parametrize("name", MERGING)
def test_merging_family_is_named(name: str) -> None:
    found = inferred(name)
    assert found.estimate("ftl").value == name.split(maxsplit=1)[0]
    assert found.twin is None
    assert found.why_no_twin == f"the search has no twins of the family {name.split(maxsplit=1)[0]}"


@pytest.mark.parametrize("name", ["block_map", "bast", "fast"])
def test_blocks_of_reads_that_meet_show_the_layout(name: str) -> None:
    found = inferred(name)
    known = {"page_bytes": PAGE_BYTES, "dies": DIES, "pages_per_block": PAGES}
    assert {key: found.estimate(key).value for key in known} == known
    assert found.estimate("program_ns").number() == pytest.approx(PROGRAM_NS, rel=0.05)


def test_irregular_blocks_show_no_dies() -> None:
    found = inferred("superblock")
    assert found.estimate("page_bytes").value == PAGE_BYTES
    assert not found.estimate("dies").is_identified


@pytest.mark.parametrize("key", OF_PAGE_MAPS[:3])
def test_estimates_for_page_maps_are_withdrawn(key: str) -> None:
    found = inferred("fast").estimate(key)
    assert not found.is_identified
    assert found.reason == "fast merges blocks: the estimator is for page maps"


@pytest.mark.parametrize("url", OTHERS.values(), ids=OTHERS)
def test_other_devices_have_no_merging_family(url: str) -> None:
    assert merging_family(observed(url)) is None


@pytest.mark.parametrize("name", MERGING)
def test_family_is_named_despite_the_noise_of_a_host(name: str) -> None:
    chance = np.random.default_rng(8)
    observations = observed(MERGING[name])
    runs = {
        key: replace(
            run, response_ns=run.response_ns + chance.exponential(NOISE_NS, len(run.is_write))
        )
        for key, run in observations.runs.items()
    }
    assert merging_family(replace(observations, runs=runs)) == name.split(maxsplit=1)[0]


def test_without_the_probe_no_family_is_named() -> None:
    observations = observed(MERGING["bast"])
    runs = {key: run for key, run in observations.runs.items() if key.probe != PROBE}
    assert merging_family(replace(observations, runs=runs)) is None


def test_transfers_of_parts_of_a_page_show_those_of_a_device_that_merges() -> None:
    changes = {"ftl": "fast", "log_blocks": 20, "partial_transfer": "true", "spare_bytes": 0}
    found = infer(observed(f"sim:fast-1gb?{keys(**changes)}"))
    assert found.estimate("ftl").value == "fast"
    assert found.estimate("read_ns").number() == pytest.approx(50_000, rel=0.001)
    assert found.estimate("program_ns").number() == pytest.approx(400_000, rel=0.001)
    rate = found.estimate("channel_bytes_per_s").number()
    assert rate == pytest.approx(400_000_000, rel=0.06), "an unknown spare area is part of it"
