"""Sizes, durations, counts and shares: how people write them, and how uflip prints them.

Sizes are read as fio reads them: k, m, g, t are powers of 1024, in either case and with or without
"i" and "B", so 4k = 4KiB = 4096. Durations always carry their unit, because a bare number is a
nanosecond to one reader and a second to the next.
"""

import re
from fractions import Fraction

from uflip.errors import UsageError

_NUMBER = re.compile(r"([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*([^\d\s.]*)", re.ASCII)
# "µs" exists twice in Unicode: as micro sign and as Greek mu. Both are typed.
_DURATIONS_NS = {
    "ns": 1,
    "us": 1_000,
    "\N{MICRO SIGN}s": 1_000,
    "\N{GREEK SMALL LETTER MU}s": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
}
_SIZE_PREFIXES = "kmgt"
_SIZES = {"": 1, "b": 1} | {
    prefix + suffix: 1024 ** (power + 1)
    for power, prefix in enumerate(_SIZE_PREFIXES)
    for suffix in ("", "b", "i", "ib")
}
_LARGEST = 2**63 - 1  # byte offsets are signed 64-bit numbers in every file system interface

# A number of so many characters is none that a device or a pattern has; reading it takes time.
_LONGEST = 100
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_REAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
UNSIGNED = 2**64 - 1
"""The largest number that anything counts."""

_SIZES_ALLOWED = "a whole number of bytes, as in 512, 4k, 32KiB, 1.5MiB, 1g"
_DURATIONS_ALLOWED = "a number with its unit (ns, us, ms, s, min), as in 100us, 1.5ms, 2s"


def parse_size(value: str | int, where: str = "") -> int:
    """Read a size.

    Parameters
    ----------
    value : str or int
        The size as fio users write it, or a number of bytes.
    where : str
        The option or key it came from, for the error.

    Returns
    -------
    int
        Size [bytes], at least 0.

    Raises
    ------
    UsageError
        If it is no size, negative, not a whole number of bytes, or beyond 64 bits.

    Examples
    --------
    >>> parse_size("32KiB"), parse_size("4k"), parse_size("1.5m"), parse_size(512)
    (32768, 4096, 1572864, 512)
    """
    return _parse(value, _SIZES, "size", _SIZES_ALLOWED, where)


def parse_duration(value: str | int, where: str = "") -> int:
    """Read a duration.

    Parameters
    ----------
    value : str or int
        The duration with its unit, or a number of nanoseconds. A string without a unit is an
        error: nobody can know what is meant.
    where : str
        The option or key it came from, for the error.

    Returns
    -------
    int
        Duration [ns], at least 0.

    Raises
    ------
    UsageError
        If it is no duration, negative, or not a whole number of nanoseconds.

    Examples
    --------
    >>> parse_duration("100us"), parse_duration("1.5ms"), parse_duration("2s")
    (100000, 1500000, 2000000000)
    """
    return _parse(value, _DURATIONS_NS, "duration", _DURATIONS_ALLOWED, where)


def _parse(value: str | int, units: dict[str, int], thing: str, allowed: str, where: str) -> int:
    def error(what: str) -> UsageError:
        return UsageError(
            what,
            where=where,
            got=value if isinstance(value, str) else _written(value),
            allowed=allowed,
            action=f"write the {thing} like one of these",
        )

    if isinstance(value, str) and len(value) > _LONGEST:
        raise error(f"This is not a {thing}")
    if isinstance(value, int):
        sign, number, factor = "-" if value < 0 else "", Fraction(abs(value)), 1
    else:
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            raise error(f"This is not a {thing}")
        sign, digits, unit = match.groups()
        if not unit and "" not in units:
            raise error(f"A {thing} needs its unit")
        if unit.lower() not in units:
            raise error(f"Unknown unit {unit!r} of a {thing}")
        number, factor = Fraction(digits), units[unit.lower()]
    if sign == "-" and number:
        raise error(f"A {thing} cannot be negative")
    scaled = number * factor
    if scaled.denominator != 1:
        smallest = "bytes" if "" in units else "ns"
        raise error(f"This {thing} is not a whole number of {smallest}")
    if scaled > _LARGEST:
        raise error(f"This {thing} is beyond 64 bits")
    return scaled.numerator


def parse_count(value: str, where: str = "", least: int = 0, most: int = UNSIGNED) -> int:
    """Read a whole number as people type it: ASCII digits, nothing between them.

    Raises
    ------
    UsageError
        If it is none, or outside of `least` to `most`.

    Examples
    --------
    >>> parse_count("1024"), parse_count("-3", least=-10)
    (1024, -3)
    """
    text = value.strip()
    fits = len(text) <= _LONGEST and _WHOLE.fullmatch(text) is not None
    if not fits or not least <= int(text) <= most:
        raise UsageError(
            "This is not one of the numbers that are allowed"
            if fits
            else "This is no whole number",
            where=where,
            got=value,
            allowed=f"{least} to {most}",
            action="give a whole number in digits",
        )
    return int(text)


def parse_number(value: str, where: str = "", least: float = 0.0, most: float = 1e9) -> float:
    """Read a number with a fraction; infinity and what is no number are none.

    Raises
    ------
    UsageError
        If it is none, or outside of `least` to `most`.

    Examples
    --------
    >>> parse_number("0.95"), parse_number("1e-3")
    (0.95, 0.001)
    """
    text = value.strip()
    fits = len(text) <= _LONGEST and _REAL.fullmatch(text) is not None
    if not fits or not least <= float(text) <= most:
        raise UsageError(
            "This number is not allowed" if fits else "This is no number",
            where=where,
            got=value,
            allowed=f"{least:g} to {most:g}",
            action="give a number in digits, as in 0.95",
        )
    return float(text)


def _written(value: int) -> str:
    """Write a number that may be too long to be written."""
    return str(value) if abs(value) < 1 << 200 else f"a number of {value.bit_length()} bits"


def format_size(size_bytes: int) -> str:
    """Print a size with a binary unit and at most two decimals.

    Examples
    --------
    >>> format_size(32768), format_size(1536), format_size(512), format_size(5 * 2**30)
    ('32 KiB', '1.5 KiB', '512 B', '5 GiB')
    """
    scaled, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(scaled) < 1024:
            break
        scaled, unit = scaled / 1024, larger
    return f"{scaled:.2f}".rstrip("0").rstrip(".") + f" {unit}"


def format_duration_ns(duration_ns: float) -> str:
    """Print a duration with three significant digits; from two minutes on in minutes and hours.

    Parameters
    ----------
    duration_ns : float
        Duration [ns].

    Examples
    --------
    >>> format_duration_ns(1_234_567), format_duration_ns(85), format_duration_ns(150e9)
    ('1.23 ms', '85 ns', '2 min 30 s')
    """
    seconds = round(duration_ns / 1e9)
    if seconds >= 120:
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
    scaled, unit = float(duration_ns), "ns"
    for larger in ("µs", "ms", "s"):
        if abs(scaled) < 999.5:
            break
        scaled, unit = scaled / 1000, larger
    return _three_digits(scaled) + f" {unit}"


def _three_digits(value: float) -> str:
    """Print a number below 1000 with three significant digits, without an exponent."""
    magnitude = abs(value)
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_count(count: int) -> str:
    """Print a number of things, thousands apart.

    Examples
    --------
    >>> format_count(1234567)
    '1,234,567'
    """
    return f"{count:,}"
