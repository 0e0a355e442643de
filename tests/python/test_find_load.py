"""`uflip pattern --find`: does it find the load that queueing theory gives, and its limits?"""

import json
from math import exp, factorial

import numpy as np
import pytest
from command_line import uflip

from uflip.benchmark.find_load import LoadTarget, find_load
from uflip.device.opener import open_device
from uflip.spec import baseline

# One die, no controller, a fast link: each read of a page takes the same time, one after another.
SERVER = (
    "sim:demo?channels=1&dies_per_channel=1&blocks_per_die=64&command_read_ns=0"
    "&link_bytes_per_s=1000000000000&page_bytes=4096"
)
READS = ("--pattern", "RR", "--io-size", "4KiB")


def waiting_probability(time: float, load: float) -> float:
    """Return P(W <= time) of M/D/1, time in units of the service (Erlang 1909, Crommelin 1932)."""
    terms = [
        (load * (k - time)) ** k * exp(-load * (k - time)) / factorial(k)
        for k in range(int(time) + 1)
    ]
    return (1 - load) * sum(terms)


def largest_load(time: float, share: float) -> float:
    """Return the load at which this share of the waits is within a time, by bisection."""
    low, high = 0.01, 0.999
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if waiting_probability(time, middle) >= share else (low, middle)
    return low


def service_ns() -> int:
    with open_device(SERVER) as device:
        took = np.asarray(
            device.run(baseline("RR", io_size=4096, io_count=100)).column("response_time_ns")
        )
    assert took.min() == took.max()
    return int(took[0])


@pytest.mark.parametrize(("statistic", "share"), [("p50", 0.5), ("p99", 0.99)])
def test_rate_is_that_of_an_m_d_1_queue(statistic: str, share: float) -> None:
    service = service_ns()
    target = LoadTarget("rate", statistic, 5 * service)
    with open_device(SERVER) as device:
        found = find_load(device, baseline("RR", io_size=4096, io_count=10_000), target)
    expected = largest_load(4, share) * 1e9 / service
    assert found.answer == "found"
    assert found.load == pytest.approx(expected, rel=0.08)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= expected <= found.high


def test_depth_is_that_of_a_closed_loop() -> None:
    # One server: with a depth of d each I/O takes d services.
    service = service_ns()
    with open_device(SERVER) as device:
        found = find_load(
            device,
            baseline("RR", io_size=4096),
            LoadTarget("depth", "mean", round(7.5 * service)),
        )
    assert (found.load, found.low, found.high) == (7, 7, 8)


def test_limits_that_are_never_or_always_met() -> None:
    never = json.loads(
        uflip("pattern", SERVER, *READS, "--find", "rate", "--p50", "1us", "--json").out
    )
    assert (never["answer"], never["load"]) == ("never", None)
    always = uflip("pattern", SERVER, *READS, "--find", "depth", "--p50", "10s", "--quiet")
    assert "is always met: up to depth 1024" in always.out


@pytest.mark.parametrize(("cache", "is_marked"), [("4MiB", False), ("4GiB", True)])
def test_load_of_a_cache_is_marked(cache: str, is_marked: bool) -> None:
    # At most 63 runs of 4,096 writes of 4 KiB warm up: less than 1 GiB.
    device = f"sim:tlc-nvme?write_cache_bytes={cache}"
    arguments = ("--pattern", "RW", "--io-size", "4KiB", "--find", "depth", "--mean", "100us")
    outcome = uflip("pattern", device, *arguments, "--json")
    warnings = json.loads(outcome.out)["warnings"]
    assert any("never waited for flash" in each for each in warnings) == is_marked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--p99", "1ms"), "--p99 needs --find"),
        (("--find", "rate"), "--find needs one limit"),
        (("--find", "rate", "--p99", "1ms", "--mean", "1ms"), "--find needs one limit"),
        (("--find", "speed", "--p99", "1ms"), "speed"),
        (("--find", "rate", "--p99", "1ms", "--io-count", "100"), "The runs are too short"),
        (("--find", "rate", "--p99", "1ms", "--mix", "RW", "--ratio", "1"), "one pattern"),
        (("--find", "rate", "--p99", "1ms", "--trace", "t.csv"), "cannot be combined"),
        (("--find", "depth", "--p99", "1ms", "--time", "poisson", "--interval", "1ms"), "closed"),
    ],
)
def test_misuse_is_refused(arguments: tuple[str, ...], message: str) -> None:
    outcome = uflip("pattern", SERVER, *READS, *arguments)
    assert outcome.code == 2
    assert message in outcome.err
