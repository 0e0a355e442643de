"""Do the builders make specifications that the native part takes, and refuse unknown names?"""

import itertools
from typing import Any

import pytest

from uflip.device.catalogue import inspect_device
from uflip.device.resolving import resolve
from uflip.errors import UsageError
from uflip.spec import (
    BASELINES,
    LOCATIONS,
    MODES,
    PARAMETERS,
    TIMES,
    baseline,
    basic,
    components,
    mix,
    parallel,
    writes,
    writes_sequentially,
)

NULL = inspect_device("null")
SIM = inspect_device("sim:demo")
ALL_24 = list(itertools.product(MODES, LOCATIONS, TIMES))


@pytest.mark.parametrize(("mode", "location", "time"), ALL_24)
def test_all_24_basic_patterns_are_taken(mode: str, location: str, time: str) -> None:
    resolved = resolve(basic(mode, location, time=time), NULL)
    assert (resolved["mode"], resolved["location"], resolved["time"]) == (mode, location, time)


def test_only_what_is_given_is_in_a_specification() -> None:
    spec = basic("read", "random", io_size="4k", pause=None, time="pause")
    assert spec == {
        "kind": "basic",
        "mode": "read",
        "location": "random",
        "io_size": 4096,
        "time": "pause",
    }


def test_every_parameter_keeps_its_name_and_value() -> None:
    """Each name that Python knows, the native part knows too."""
    values: dict[str, Any] = {
        "io_size": 4096, "io_shift": 512, "target_offset": 8192, "target_size": 1 << 20,
        "partitions": 4, "incr": -3, "pause": 5000, "burst": 7, "parallel_degree": 2,
        "queue_depth": 5, "io_count": 11, "io_ignore": 3, "seed": 9, "time": "burst",
    }  # fmt: skip
    assert set(values) == set(PARAMETERS)
    for location, foreign in (("ordered", "partitions"), ("partitioned", "incr")):
        given = {name: value for name, value in values.items() if name != foreign}
        resolved = resolve(basic("write", location, **given), SIM)
        assert {name: resolved[name] for name in given} == given


@pytest.mark.parametrize(
    ("build", "known"),
    [
        (lambda: basic("reed", "random"), "read, write"),
        (lambda: basic("read", "randon"), "sequential, random"),
        (lambda: basic("read", "random", time="never"), "consecutive, pause, burst"),
        (lambda: basic("read", "random", io_sise=1), "io_size, io_shift"),
        (lambda: baseline("RX"), "SR, RR, SW, RW"),
        (lambda: mix(baseline("SR"), baseline("RR"), 2, pause="1ms"), "io_count, io_ignore, seed"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(build: Any, known: str) -> None:
    with pytest.raises(UsageError) as caught:
        build()
    assert known in caught.value.allowed


def test_a_count_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="whole number"):
        basic("read", "random", io_count="many")


@pytest.mark.parametrize("name", ["io_count", "io_ignore", "seed"])
def test_counts_belong_to_the_mix_and_not_to_a_component(name: str) -> None:
    with pytest.raises(UsageError, match="belongs to the mix"):
        mix(baseline("SR"), baseline("RR", **{name: 10}), 2)


def test_mixes_and_parallel_patterns_are_taken() -> None:
    mixed = mix(baseline("SR"), baseline("RW", io_size="4k"), 4, io_count=10, io_ignore=2)
    resolved = resolve(mixed, NULL)
    assert resolved["totals"]["total_ios"] == 50
    assert resolved["totals"]["bytes_written"] == 10 * 4096
    both = resolve(parallel(mixed, baseline("RR", io_count=7), seed=3), NULL)
    assert both["totals"]["total_ios"] == 57


def test_what_a_pattern_writes() -> None:
    assert [writes(baseline(label)) for label in BASELINES] == [False, False, True, True]
    assert [writes_sequentially(baseline(label)) for label in BASELINES] == [
        False, False, True, False,
    ]  # fmt: skip
    assert writes_sequentially(basic("write", "ordered", incr=0))
    assert writes_sequentially(basic("write", "partitioned", partitions=2))
    mixed = mix(baseline("RW"), baseline("SW"), 2)
    assert writes_sequentially(mixed)
    assert writes_sequentially(parallel(baseline("RR"), mixed))
    assert len(components(parallel(baseline("RR"), mixed))) == 3
    assert not writes(parallel(baseline("RR"), baseline("SR")))


def test_a_malformed_specification_is_no_crash() -> None:
    """It counts as one that writes, so that it is never let through as harmless."""
    assert writes({"kind": "mix"}) is False
    assert writes({}) is True
    assert components({"kind": "parallel", "patterns": ["x", {"mode": "read"}]}) == [
        {"mode": "read"}
    ]
