"""Do sizes and durations read as people write them, and are unclear ones refused?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uflip.errors import UsageError
from uflip.units import (
    format_count,
    format_duration_ns,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("512B", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KiB", 4096),
        ("4 KiB", 4096),
        (" 32kib ", 32768),
        ("1.5m", 3 << 19),
        (".5k", 512),
        ("1g", 1 << 30),
        ("1GiB", 1 << 30),
        ("2T", 2 << 40),
        (4096, 4096),
    ],
)
def test_sizes_are_parsed_like_fio(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "k", "-4k", "-1", "4x", "4kk", "0.3", "1.0001k", "1e3", "0x10", "4,5k", "١k", "9t9"],
)
def test_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text, where="--size")
    assert caught.value.where == "--size"
    assert caught.value.got == text
    assert "32KiB" in caught.value.allowed


def test_sizes_beyond_64_bits_are_refused() -> None:
    assert parse_size(2**63 - 1) == 2**63 - 1
    with pytest.raises(UsageError, match="64 bits"):
        parse_size("8388608t")


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0s", 0),
        ("85ns", 85),
        ("100us", 100_000),
        ("100µs", 100_000),
        ("100μs", 100_000),
        ("1.5ms", 1_500_000),
        ("2 s", 2_000_000_000),
        ("1min", 60_000_000_000),
        (7, 7),
    ],
)
def test_durations_are_parsed_with_unit(text: str | int, duration: int) -> None:
    assert parse_duration(text) == duration


def test_duration_without_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="needs its unit") as caught:
        parse_duration("100")
    assert "100us" in caught.value.allowed


@pytest.mark.parametrize("text", ["", "ms", "-1ms", "1d", "0.5ns", "1.5.2s"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=2**20), st.sampled_from("kmgt"))
def test_units_are_powers_of_1024(number: int, prefix: str) -> None:
    expected = number * 1024 ** ("kmgt".index(prefix) + 1)
    assert parse_size(f"{number}{prefix}") == expected
    assert parse_size(f"{number}{prefix.upper()}iB") == expected


@given(st.integers(min_value=0, max_value=2**53))
def test_formatted_size_parses_back(size: int) -> None:
    value, unit = format_size(size).split()
    factor = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(float(value) * factor - size) <= 0.005 * factor * (1 + 1e-9)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0 ns"),
        (85, "85 ns"),
        (999.6, "1 µs"),
        (1234, "1.23 µs"),
        (12_345, "12.3 µs"),
        (123_456_789, "123 ms"),
        (1.5e9, "1.5 s"),
        (119.4e9, "119 s"),
        (119.6e9, "2 min 00 s"),
        (3725e9, "1 h 02 min"),
    ],
)
def test_durations_show_three_digits(duration: float, text: str) -> None:
    assert format_duration_ns(duration) == text


def test_counts_show_thousands() -> None:
    assert format_count(3_240_704) == "3,240,704"
