"""Parser of the varied parameters of a sweep: NAME=V1,V2,... or NAME=LOW..HIGH."""

import re
from collections.abc import Sequence
from typing import Any

from uflip.data.sweep import METHODS, Range, Sample, Varied
from uflip.device.url import read_override
from uflip.errors import UflipError, UsageError, unknown_name
from uflip.units import parse_count, parse_duration, parse_size

FORMS = "NAME=V1,V2,... | NAME=LOW..HIGH[/STEP][:log]"
_RANGE = re.compile(
    r"(?P<low>[^.,/:]+(\.\d+)?)\.\.(?P<high>[^,/:]+)(/(?P<step>[^,/:]+)|:(?P<log>log))?"
)
# A range with a step becomes a list; a longer list is probably a typing error.
MAX_STEPS = 10_000


def read_varied(arguments: Sequence[str]) -> Varied:
    """Parse the values of --vary, NAME=V1,V2,... each.

    Examples
    --------
    >>> read_varied(["gc=greedy,cyclic", "queue_depth=1..4/1", "spare_factor=0.1..0.3"])
    {'gc': ['greedy', 'cyclic'], 'queue_depth': [1, 2, 3, 4], \
'spare_factor': Range(low=0.1, high=0.3, logarithmic=False)}
    """
    varied: Varied = {}
    for text in arguments:
        name, equals, values = text.partition("=")
        items = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not items or name in varied:
            raise UsageError(
                "The values to vary cannot be parsed"
                if name not in varied
                else "A name is varied twice",
                where="--vary",
                got=text,
                allowed=f"{FORMS}, as in spare_factor=0.1,0.2 or spare_factor=0.1..0.3",
                action="give a name and its values, separated by commas, or two ends of a range",
            )
        # Values with units stay texts until the pattern or the profile parses them.
        ends = _RANGE.fullmatch(values.strip())
        varied[name.strip()] = (
            [read_override("", value) for value in items] if ends is None else _range(text, ends)
        )
    return varied


def _range(text: str, match: re.Match[str]) -> list[Any] | Range:
    low, high = (_number(text, match[end]) for end in ("low", "high"))
    full_range = Range(low, high, match["log"] is not None)
    full_range.check(text)
    if match["step"] is None:
        return full_range
    step = _number(text, match["step"])
    if step <= 0 or (high - low) / step > MAX_STEPS:
        raise UsageError(
            "The step does not lead from one end of the range to the other",
            where=text,
            got=match["step"],
            allowed=f"a number above 0, with at most {MAX_STEPS} steps",
            action="correct the step",
        )
    count = int((high - low) / step * (1 + 1e-12)) + 1
    values = [low + step * number for number in range(count)]
    return [float(f"{value:.12g}") if isinstance(value, float) else value for value in values]


def _number(text: str, end: str) -> int | float:
    """Parse an end of a range: a number, a size or a duration."""
    value = read_override("", end.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    for read in (parse_size, parse_duration):
        try:
            return read(end.strip(), text)
        except UflipError:
            continue
    raise UsageError(
        "An end of the range is not a number",
        where=text,
        got=end,
        allowed="numbers, sizes or durations, as in 1..64, 4KiB..64KiB, 10us..1ms",
        action="list the values instead: NAME=V1,V2,...",
    )


def read_sample(text: str | None, seed: int | None) -> Sample | None:
    """Parse METHOD:COUNT.

    Examples
    --------
    >>> read_sample("lhs:200", 7)
    Sample(method='lhs', count=200, seed=7)
    """
    if text is None:
        if seed is not None:
            raise UsageError(
                "--sample-seed requires --sample",
                where="--sample-seed",
                got=str(seed),
                allowed="a seed with --sample",
                action="select a sampling method: --sample lhs:100",
            )
        return None
    method, _, count = text.partition(":")
    if method not in METHODS:
        raise unknown_name("sampling method", method, METHODS, where="--sample")
    return Sample(method, parse_count(count, "--sample", 1, 100_000), seed or 0)  # type: ignore[arg-type]
