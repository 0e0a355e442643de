"""Do the builders make specifications that the native module accepts, and refuse unknown names?"""

import itertools
import json
from typing import Any

import pytest

from uflip.data.spec import Job, table_of, text_of, typed_spec
from uflip.device.catalogue import inspect_device
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.spec import (
    BASELINES,
    LOCATIONS,
    MODES,
    PARAMETERS,
    TIMES,
    Basic,
    Pattern,
    baseline,
    basic,
    mix,
    parallel,
    read_spec,
    until_converged,
)

NULL = inspect_device("null")
SIM = inspect_device("sim:demo")
ALL_24 = list(itertools.product(MODES, LOCATIONS, TIMES))


@pytest.mark.parametrize(("mode", "location", "time"), ALL_24)
def test_all_24_basic_patterns_are_accepted(mode: str, location: str, time: str) -> None:
    resolved = resolve(basic(mode, location, time=time), NULL).spec
    assert isinstance(resolved, Basic)
    assert (resolved.mode, resolved.location, resolved.time) == (mode, location, time)


def test_specification_contains_only_given_parameters() -> None:
    spec = basic("read", "random", io_size="4k", pause=None, time="pause")
    assert (
        table_of(spec)
        == json.loads(text_of(spec))
        == {
            "kind": "basic",
            "mode": "read",
            "location": "random",
            "io_size": 4096,
            "time": "pause",
        }
    )


def test_parameters_keep_name_and_value() -> None:
    """Each name that Python knows, the native part knows too."""
    values: dict[str, Any] = {
        "io_size": 4096, "io_shift": 512, "target_offset": 8192, "target_size": 1 << 20,
        "partitions": 4, "incr": -3, "skew_percent": 120, "hot_space_percent": 10,
        "hot_io_percent": 90, "zone_ios": 16, "open_zones": 2, "zone_capacity_ios": 8,
        "random_turns": 1,
        "write_stream": 3, "hot_write_stream": 1, "compress_percent": 50, "duplicate_percent": 20,
        "pause": 5000, "burst": 7, "parallel_degree": 2,
        "queue_depth": 5, "io_count": 11, "io_ignore": 3, "run_time": 8_000_000,
        "ramp_time": 2_000_000, "seed": 9, "time": "burst",
    }  # fmt: skip
    assert {*values, "interval"} == set(PARAMETERS)
    open_loop = basic("read", "random", time="poisson", interval="3us")
    assert table_of(resolve(open_loop, SIM).spec)["interval"] == 3000
    by_location = {
        "ordered": {"incr"},
        "partitioned": {"partitions"},
        "zipf": {"skew_percent"},
        "hotcold": {"hot_space_percent", "hot_io_percent", "hot_write_stream"},
        "zones": {"zone_ios", "open_zones", "zone_capacity_ios", "random_turns"},
    }
    for location, theirs in by_location.items():
        foreign = set().union(*by_location.values()) - theirs
        applicable = {name: value for name, value in values.items() if name not in foreign}
        resolved = table_of(resolve(basic("write", location, **applicable), SIM).spec)
        assert {name: resolved[name] for name in applicable} == applicable


@pytest.mark.parametrize(
    ("build", "allowed"),
    [
        (lambda: basic("reed", "random"), "read, write"),
        (lambda: basic("read", "randon"), "sequential, random"),
        (lambda: basic("read", "random", time="never"), "consecutive, pause, burst"),
        (lambda: basic("read", "random", io_sise=1), "io_size, io_shift"),
        (lambda: baseline("RX"), "SR, RR, SW, RW"),
        (
            lambda: mix(baseline("SR"), baseline("RR"), 2, pause="1ms"),
            "io_count, io_ignore, run_time, ramp_time, seed",
        ),
    ],
)
def test_unknown_name_lists_known_ones(build: Any, allowed: str) -> None:
    with pytest.raises(UsageError) as caught:
        build()
    assert allowed in caught.value.allowed


def test_non_numeric_count_is_refused() -> None:
    with pytest.raises(UsageError, match="whole number"):
        basic("read", "random", io_count="many")


@pytest.mark.parametrize("name", ["io_count", "io_ignore", "seed"])
def test_counts_belong_to_mix_not_component(name: str) -> None:
    with pytest.raises(UsageError, match="belongs to the mix"):
        mix(baseline("SR"), baseline("RR", **{name: 10}), 2)


def test_mixes_and_parallel_patterns_are_accepted() -> None:
    mixed = mix(baseline("SR"), baseline("RW", io_size="4k"), 4, io_count=10, io_ignore=2)
    totals = resolve(mixed, NULL).totals
    assert totals.total_ios == 50
    assert totals.bytes_written == 10 * 4096
    resolved = resolve(parallel(mixed, baseline("RR", io_count=7), seed=3), NULL)
    assert resolved.totals.total_ios == 57


def test_pattern_reports_what_it_writes() -> None:
    assert [baseline(label).writes for label in BASELINES] == [False, False, True, True]
    assert [baseline(label).writes_sequentially for label in BASELINES] == [
        False, False, True, False,
    ]  # fmt: skip
    assert basic("write", "ordered", incr=0).writes_sequentially
    assert basic("write", "partitioned", partitions=2).writes_sequentially
    mixed = mix(baseline("RW"), baseline("SW"), 2)
    assert mixed.writes_sequentially
    assert parallel(baseline("RR"), mixed).writes_sequentially
    assert len(parallel(baseline("RR"), mixed).parts) == 3
    assert not parallel(baseline("RR"), baseline("SR")).writes


EVERY_KIND = [
    basic("write", "ordered", incr=-3, time="burst", burst=2, pause="1ms", parallel_degree=2),
    mix(baseline("SR", io_size="4k"), baseline("RW"), 4, io_count=10, io_ignore=2, seed=2**64 - 1),
    mix(baseline("RR"), baseline("RW"), first_percent=70, queue_depth=4),
    parallel(mix(baseline("SR"), baseline("RR"), 2), baseline("RW", io_count=5), seed=3),
    until_converged(baseline("SW"), half_width=0.02, max_ios=5000, max_time_ns="2s"),
]


@pytest.mark.parametrize("spec", EVERY_KIND, ids=lambda spec: type(spec).__name__)
def test_specification_round_trips(spec: Pattern) -> None:
    """In three ways: as user input, as a field of a document, and as the native module reads it."""
    assert (
        read_spec(text_of(spec)) == read_spec(table_of(spec)) == typed_spec(table_of(spec)) == spec
    )
    complete = resolve(spec, SIM).spec
    assert type(complete) is type(spec)
    assert resolve(complete, SIM).spec == complete
    assert None not in json.loads(text_of(complete)).values()


def test_job_is_a_specification_without_pattern_kind() -> None:
    job = Job(kind="wear", pages=8, repeat=3)
    assert typed_spec({"kind": "wear", "pages": 8, "repeat": 3}) == job
    assert typed_spec({"pages": 8}) == Job(pages=8)
    assert (job.writes_sequentially, job.parts, job.stop, job.io_count) == (False, (), None, None)


@pytest.mark.parametrize(
    "content",
    [
        {}, 5, [], {"kind": "basic"}, {"kind": "basic", "mode": "read", "location": "circular"},
        {"kind": "basic", "mode": "read", "location": "random", "io_size": -1},
        {"kind": "basic", "mode": "read", "location": "random", "io_size": 1.5},
        {"kind": "basic", "mode": "read", "location": "random", "unheard_of": 1},
        {"kind": "mix"}, {"kind": "parallel", "patterns": ["x", {"mode": "read"}]},
        {"kind": "circular"}, {"kind": "wear", "pages": -1},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_specification_is_refused(content: Any) -> None:
    if content != {}:  # a job of defaults
        with pytest.raises(ValueError, match=r"Invalid|Expected|missing|unknown"):
            typed_spec(content)
    with pytest.raises(UsageError) as refused:
        read_spec(json.dumps(content))
    assert refused.value.what
    assert refused.value.action


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, '{"kind": "basic"'])
def test_invalid_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError):
        read_spec(text)


def test_missing_parameter_is_named() -> None:
    for name, ask in (
        ("io_count", lambda spec: spec.ios), ("io_ignore", lambda spec: spec.ignored_ios),
        ("io_size", lambda spec: spec.io_bytes), ("target_size", lambda spec: spec.end),
    ):  # fmt: skip
        with pytest.raises(UsageError) as refused:
            ask(baseline("SR"))
        assert refused.value.where == name
