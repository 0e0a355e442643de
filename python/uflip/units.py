"""Parse and print sizes, durations, counts and shares.

The native part parses them (`crates/core/src/quantity.rs`), for profiles too: options, device names
and profiles accept the same forms.
"""

import operator
import re
from os import PathLike, fspath
from pathlib import Path
from typing import SupportsIndex

from uflip import _native
from uflip.errors import UflipError, UsageError, native_errors

_MAX_INTEGER = 2**63 - 1  # byte offsets are signed 64-bit numbers in every file system interface

# No device or pattern needs a number of more characters; parsing one takes time.
_MAX_TEXT_LENGTH = 100
_REAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
UNSIGNED = 2**64 - 1
"""The largest count."""


def parse_size(value: str | SupportsIndex, where: str = "") -> int:
    """Parse a size.

    The size [bytes] is at least 0.

    Examples
    --------
    >>> parse_size("32KiB"), parse_size("4k"), parse_size("1.5m"), parse_size(512)
    (32768, 4096, 1572864, 512)
    """
    return _read("size", value, where)


def parse_signed_size(value: str | SupportsIndex, where: str = "") -> int:
    """Parse a size that can be negative.

    Examples
    --------
    >>> parse_signed_size("-1MiB"), parse_signed_size(-512), parse_signed_size("4k")
    (-1048576, -512, 4096)
    """
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_size(value.strip()[1:], where)
    if isinstance(value, int) and value < 0:
        return -parse_size(-value, where)
    return parse_size(value, where)


def parse_duration(value: str | SupportsIndex, where: str = "") -> int:
    """Parse a duration.

    The duration [ns] is at least 0.

    Examples
    --------
    >>> parse_duration("100us"), parse_duration("1.5ms"), parse_duration("2s")
    (100000, 1500000, 2000000000)
    """
    return _read("duration", value, where)


def _read(thing: str, value: str | SupportsIndex, where: str) -> int:
    if not isinstance(value, str):
        return _check_range(thing, _integer(thing, value, where), where)
    try:
        with native_errors():
            return _native.read_quantity(thing, value)
    except UflipError as error:
        error.where = where
        raise


def _integer(thing: str, value: SupportsIndex, where: str) -> int:
    """Return an int of Python or numpy; reject bool and float, 4096.0 included."""
    try:
        return operator.index(() if isinstance(value, bool) else value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(
            f"This is not a {thing}",
            where=where,
            got=repr(value),
            allowed="a whole number, or a text",
            action=f"give another {thing}",
        ) from None


def _check_range(thing: str, value: int, where: str) -> int:
    if 0 <= value <= _MAX_INTEGER:
        return value
    raise UsageError(
        f"A {thing} cannot be negative" if value < 0 else f"This {thing} is beyond 64 bits",
        where=where,
        got=_format_number(value),
        allowed=f"0 to {_MAX_INTEGER}",
        action=f"give another {thing}",
    )


def parse_count(
    value: str | SupportsIndex, where: str = "", least: int = 0, most: int = UNSIGNED
) -> int:
    """Parse a whole number; k, M and G are thousands, millions and billions.

    `value`: ASCII digits without separators, with an optional suffix; or a number. `where`: the
    option or key it came from, for the error. `least`, `most`: the range that is allowed.

    Examples
    --------
    >>> parse_count("1024"), parse_count("100k"), parse_count("1.5M"), parse_count("-3", least=-10)
    (1024, 100000, 1500000, -3)
    """
    if isinstance(value, str):
        count = _read("count", value, where)
    else:
        count = _integer("number", value, where)
    if least <= count <= most:
        return count
    raise UsageError(
        "The number is out of range",
        where=where,
        got=value if isinstance(value, str) else _format_number(count),
        allowed=f"{least} to {most}",
        action="give another number",
    )


def parse_path(value: object, where: str) -> Path:
    """Return the path of a file or folder, given as text or path object.

    Examples
    --------
    >>> parse_path("results/demo", "out").name
    'demo'
    """
    if isinstance(value, str | PathLike) and isinstance(name := fspath(value), str):
        return Path(name)
    raise UsageError(
        "Not the name of a file or folder",
        where=where,
        got=repr(value),
        allowed="a text, or a pathlib.Path",
        action="give one name",
    )


def parse_number(
    value: str | float, where: str = "", least: float = 0.0, most: float = 1e9
) -> float:
    """Parse a number with a fraction, or a text of one; reject infinity and NaN.

    Examples
    --------
    >>> parse_number("0.95"), parse_number("1e-3")
    (0.95, 0.001)
    """
    text = str(value if isinstance(value, bool | str) else _float(value)).strip()
    fits = len(text) <= _MAX_TEXT_LENGTH and _REAL.fullmatch(text) is not None
    if not fits or not least <= float(text) <= most:
        raise UsageError(
            "The number is out of range" if fits else "Not a number",
            where=where,
            got=str(value),
            allowed=f"{least:g} to {most:g}",
            action="give a number in digits, as in 0.95",
        )
    return float(text)


def _float(value: object) -> object:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return value


def _format_number(value: int) -> str:
    """Return a number as text; only its length if it is very long."""
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

    `duration_ns`: duration [ns].

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
    """Print a count with thousands separators.

    Examples
    --------
    >>> format_count(1234567)
    '1,234,567'
    """
    return f"{count:,}"
