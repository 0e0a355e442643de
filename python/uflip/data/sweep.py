"""What a sweep is to do: device, pattern, what varies, which combinations; its manifest.

::

    {"format": "uflip-sweep", "format_version": 1, "uflip_version": …, "simulator": …,
     "created_utc": …, "design": {…}, "points": [[0.15, "greedy"], …], "rows": null | digest}

The combinations stand in the manifest, drawn once: whoever goes on after years, with another
version of whatever drew them, goes on with the same. `points` has the values of `vary` in its
order. `rows` is the digest of `points.parquet`, which is there once all is done.

Version history
---------------
1   first version.
"""

from math import exp, floor, log
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.bounded_read import DocumentKind, read_document
from uflip.data.document import Count, DigestText, Instant, Name, Positive, Text, decode
from uflip.data.spec import Basic, Mix, Parallel, Spec, spec_hook
from uflip.errors import UsageError

FORMAT_VERSION: Literal[1] = 1
FILE_NAME = "sweep.json"
KIND = DocumentKind("sweep", 256 << 20, "name the folder that `uflip sweep --data` made")

Value = bool | int | float | str
"""What a name that varies can be."""

# As many digits of a value as anybody wants to type again.
DIGITS = 6


class Range(Struct, frozen=True, forbid_unknown_fields=True):
    """All numbers between two, both included; whole numbers where both are whole.

    Attributes
    ----------
    low, high : int or float
        The ends.
    logarithmic : bool
        Whether each factor is as likely, and not each distance.
    """

    low: int | float
    high: int | float
    logarithmic: bool = False

    def check(self, name: str) -> None:
        """Refuse a range without anything between its ends.

        Raises
        ------
        UsageError
        """
        if not self.low < self.high or (self.logarithmic and self.low <= 0):
            raise UsageError(
                "The end of the range must exceed its beginning",
                where=name,
                got=str(self),
                allowed="LOW..HIGH with LOW below HIGH; above 0 with :log",
                action="give both ends in order",
            )

    def at(self, share: float) -> int | float:
        """Return the value at a share of the range, 0 up to but without 1.

        Examples
        --------
        >>> Range(1, 4).at(0.0), Range(1, 4).at(0.99), Range(0.0, 1.0).at(0.25)
        (1, 4, 0.25)
        >>> [Range(1, 1000, True).at(share) for share in (0.0, 0.5, 0.99)]
        [1, 31, 934]
        """
        if isinstance(self.low, int) and isinstance(self.high, int):
            # A whole number has the stretch from itself up to the next one.
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
    """How combinations are drawn, where not all of them are taken.

    Attributes
    ----------
    method : str
        lhs: Latin hypercube; random; sobol: the design of Sobol' indices.
    count : int
        How many; for sobol the base sample, of which the design makes count × (names + 2).
    seed : int
        The same seed, the same combinations.
    """

    method: Literal["lhs", "random", "sobol"]
    count: Positive
    seed: Count = 0

    def points(self, names: int) -> int:
        """Say how many combinations of so many names it makes."""
        return self.count * (names + 2) if self.method == "sobol" else self.count

    def __str__(self) -> str:
        return f"{self.method}:{self.count}"


Varied = dict[Name, list[Value] | Range]


class Design(Struct, frozen=True, forbid_unknown_fields=True):
    """What a sweep does.

    Attributes
    ----------
    device : str
        A simulated device; its own overrides hold at every point.
    spec : Spec
        The pattern.
    vary : dict
        Name -> its values, or a range of numbers.
    sample : Sample or None
        None: every combination.
    durability : str
        What writes wait for, where it does not vary.
    warm_up : float
        Before the run, so many times the size of the device are written.
    timed : bool
        False: in functional mode.
    """

    device: Text
    spec: Spec
    vary: Varied
    sample: Sample | None = None
    durability: Text = "cached"
    warm_up: Annotated[float, Meta(ge=0)] = 0.0
    timed: bool = True


class SweepManifest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole document."""

    format: Literal["uflip-sweep"] = "uflip-sweep"
    format_version: Literal[1] = FORMAT_VERSION
    uflip_version: Text
    simulator: Text
    created_utc: Instant
    design: Design
    points: list[list[Value]]
    rows: DigestText | None = None


def read(folder: Path) -> SweepManifest:
    """Read the manifest of a sweep.

    Raises
    ------
    ResultsError
        If there is none, or not one that this version reads.
    """
    path = folder / FILE_NAME
    manifest = decode(path, KIND, read_document(path, KIND), SweepManifest, spec_hook)
    if not isinstance(manifest.design.spec, Basic | Mix | Parallel):
        raise KIND.unreadable(path, "another kind of pattern", "basic, mix or parallel")
    names = len(manifest.design.vary)
    if any(len(values) != names for values in manifest.points):
        raise KIND.unreadable(path, "a point without all values", f"{names} values a point")
    return manifest


def encoded(manifest: SweepManifest) -> bytes:
    """Return the bytes of a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)
