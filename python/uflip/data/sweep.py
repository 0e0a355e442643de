"""Sweeps: device, pattern, varied names, drawn combinations; and the manifest.

::

    {"format": "uflip-sweep", "format_version": 1, "uflip_version": …, "simulator": …,
     "created_utc": …, "design": {…}, "points": [[0.15, "greedy"], …], "rows": null | digest}

The manifest contains the combinations, drawn once, so that a resumed sweep uses the same ones, even
years later with another version of the sampler. `points` has the values of `vary` in its order.
`rows` is the digest of `points.parquet`, which is written at the end.
"""

from math import exp, floor, log
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.document import (
    Count,
    DigestText,
    DocumentKind,
    Instant,
    Name,
    Positive,
    Text,
    decode,
    read_document,
)
from uflip.data.spec import Basic, Mix, Parallel, Spec, spec_hook
from uflip.errors import UsageError

FILE_NAME = "sweep.json"
KIND = DocumentKind(
    "sweep", 256 << 20, "name the folder that `uflip sweep --data` made", format="uflip-sweep"
)

Value = bool | int | float | str
"""Possible values of a varied name."""

# Digits of a drawn value, few enough to type again.
DIGITS = 6


class Range(Struct, frozen=True, forbid_unknown_fields=True):
    """All numbers between two limits, both included; whole numbers if both limits are whole."""

    #: The limits.
    low: int | float
    high: int | float
    #: Whether equal factors are equally likely, instead of equal distances.
    logarithmic: bool = False

    def check(self, name: str) -> None:
        """Refuse an empty range."""
        if not self.low < self.high or (self.logarithmic and self.low <= 0):
            raise UsageError(
                "The end of the range must exceed its beginning",
                where=name,
                got=str(self),
                allowed="LOW..HIGH with LOW below HIGH; above 0 with :log",
                action="give both ends in order",
            )

    def at(self, share: float) -> int | float:
        """Return the value at a share of the range, from 0 to below 1.

        Examples
        --------
        >>> Range(1, 4).at(0.0), Range(1, 4).at(0.99), Range(0.0, 1.0).at(0.25)
        (1, 4, 0.25)
        >>> [Range(1, 1000, True).at(share) for share in (0.0, 0.5, 0.99)]
        [1, 31, 934]
        """
        if isinstance(self.low, int) and isinstance(self.high, int):
            # A whole number covers the interval from itself to the next one.
            return min(self.high, max(self.low, floor(self._between(self.high + 1, share))))
        return float(f"{self._between(self.high, share):.{DIGITS}g}")

    def _between(self, high: float, share: float) -> float:
        if self.logarithmic:
            return exp(log(self.low) + share * (log(high) - log(self.low)))
        return self.low + share * (high - self.low)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}{':log' if self.logarithmic else ''}"


METHODS = ("lhs", "random", "sobol")


class Sample(Struct, frozen=True, forbid_unknown_fields=True):
    """The sampling of combinations, if not all of them are taken."""

    #: lhs: Latin hypercube; random; sobol: the design of Sobol' indices.
    method: Literal["lhs", "random", "sobol"]
    #: Number of combinations; for sobol the base sample, of which the design makes count × (names +
    #: 2).
    count: Positive
    seed: Count = 0  #: The same seed gives the same combinations.

    def points(self, names: int) -> int:
        """Return the number of combinations for this number of names."""
        return self.count * (names + 2) if self.method == "sobol" else self.count

    def __str__(self) -> str:
        return f"{self.method}:{self.count}"


Varied = dict[Name, list[Value] | Range]


class Design(Struct, frozen=True, forbid_unknown_fields=True):
    """The design of a sweep."""

    device: Text  #: A simulated device; its own overrides hold at every point.
    spec: Spec  #: The pattern.
    vary: Varied  #: Name -> its values, or a range of numbers.
    sample: Sample | None = None  #: None: every combination.
    durability: Text = "cached"  #: Durability of writes, if it does not vary.
    #: Writes before the run, in multiples of the device size.
    warm_up: Annotated[float, Meta(ge=0)] = 0.0
    timed: bool = True  #: False: in functional mode.


class SweepManifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole document."""

    format: Literal["uflip-sweep"] = "uflip-sweep"
    format_version: Literal[1] = 1
    uflip_version: Text
    simulator: Text
    created_utc: Instant
    design: Design
    points: list[list[Value]]
    rows: DigestText | None = None


def read(folder: Path) -> SweepManifest:
    """Read the manifest of a sweep."""
    path = folder / FILE_NAME
    manifest = decode(path, KIND, read_document(path, KIND), SweepManifest, spec_hook)
    if not isinstance(manifest.design.spec, Basic | Mix | Parallel):
        raise KIND.unreadable(path, "another kind of pattern", "basic, mix or parallel")
    names = len(manifest.design.vary)
    if any(len(values) != names for values in manifest.points):
        raise KIND.unreadable(path, "a point without all values", f"{names} values a point")
    return manifest


def encode(manifest: SweepManifest) -> bytes:
    """Return the bytes of a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)
