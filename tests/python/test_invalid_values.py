"""Errors of Python functions for invalid values: which value, and what is allowed."""

from pathlib import Path
from typing import Any

import pytest

import uflip
from uflip.device.opener import open_device
from uflip.errors import UsageError

SMALL = "sim:demo?blocks_per_die=64"
OPTIONS: Any = {"scale": "quick", "only": ["order"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wrong") / "r"
    uflip.run(SMALL, out, **OPTIONS)
    return out


@pytest.mark.parametrize("name", [name for name in uflip.spec.COUNTS if name != "incr"])
def test_negative_count_is_named(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        uflip.basic("read", "random", **{name: -1})
    assert (raised.value.where, raised.value.got) == (name, "-1")
    assert raised.value.allowed.startswith("0 to ")
    assert uflip.basic("read", "ordered", incr=-1).incr == -1


def test_slice_of_trace_must_be_within_its_ios() -> None:
    trace = uflip.pattern("null", "RR", io_count=10)
    for part in ((-3,), (0, -3), (5, 11)):
        with pytest.raises(UsageError, match="no such I/Os") as raised:
            trace.column("response_time_ns", *part)
        assert raised.value.allowed == "0 to 10, in order"
        assert "a number below 0" in raised.value.got or part == (5, 11)
        assert "1844674407370955" not in raised.value.got


def test_compare_accepts_what_load_accepts(folder: Path) -> None:
    result = uflip.load(folder)
    for other in (folder, str(folder), result):
        comparison = result.compare(other)
        assert comparison == uflip.compare(folder, folder)
    assert comparison.slower_than(0.02) == []
    for share in ("2%", None, -1, float("nan")):
        with pytest.raises(UsageError) as raised:
            comparison.slower_than(share)
        assert raised.value.where == "share"


def test_zone_number_must_be_an_integer() -> None:
    with open_device("sim:zns") as device:
        for number in ("a", 1.5, None):
            with pytest.raises(UsageError) as raised:
                device.zone(number)  # type: ignore[arg-type]
            assert raised.value.where == "number of a zone"
        for number in (-1, 10**9):
            with pytest.raises(UsageError, match="no such zone"):
                device.zone(number)


@pytest.mark.parametrize("switch", ["yes", "no", 2, 0, [], 0.5])
def test_until_converged_must_be_a_boolean(switch: Any) -> None:
    with pytest.raises(UsageError) as raised:
        uflip.pattern("null", "RR", until_converged=switch, max_ios=1000)
    assert (raised.value.where, raised.value.allowed) == ("until_converged", "True or False")
    assert len(uflip.pattern("null", "RR", until_converged=False, io_count=10)) == 10
    assert len(uflip.pattern("null", "RR", until_converged=True, max_ios=1000)) == 1000
