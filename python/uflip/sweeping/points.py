"""The combinations of a sweep, all or a sample; each is checked before any device is created.

For a sample, each name is a side of the unit cube, divided among its values. Samples are points of
the cube: random, by a Latin hypercube, or for Sobol' indices.

**Source** Latin hypercubes: McKay, Beckman, Conover (Technometrics 1979). Sobol' indices: the
design of Saltelli et al. (Computer Physics Communications 2010), on Sobol' sequences.
**Faithful** scipy draws the hypercube (`scipy.stats.qmc`), SALib the design, without second order.
**Simplified** Nothing.
**Ambiguous** Names with a list of values in a method for numbers: each value has an equal part of
the side.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from uflip.data.document import Table
from uflip.data.spec import text_of
from uflip.data.sweep import Design, Range, Sample, Value, Varied
from uflip.device.catalogue import inspect_device
from uflip.device.resolve import resolve
from uflip.device.url import parse_url, with_overrides
from uflip.durability import CACHED, durability_or_default
from uflip.errors import UsageError, unknown_name
from uflip.extras import missing_extra
from uflip.spec import CHANGEABLE, Functions, Replay, changed

# The largest number below 1: a method may return the end of a side.
LARGEST_BELOW_ONE = float(np.nextafter(1.0, 0.0))
# Each is a device of its own; a larger number is probably a typing error.
MAX_POINTS = 100_000
# Durability varies like a parameter.
DURABILITY = "durability"


@dataclass(frozen=True)
class SweepPoint:
    """One combination: a device, a complete pattern, and the varied values."""

    values: Table
    url: str
    spec: Functions
    durability: str

    @cached_property
    def identity(self) -> tuple[str, str, str]:
        """The key of a point: equal keys give equal rows, except for the varied values."""
        return self.url, self.durability, text_of(self.spec)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values.items())


@dataclass(frozen=True)
class CheckedPoints:
    """The points of a design."""

    points: list[SweepPoint]  #: In order.
    #: (values, error) of combinations of a sample that make no device or no pattern.
    impossible: list[tuple[Table, UsageError]]


def points(
    url: str, spec: Functions, vary: Mapping[str, Sequence[Any]], durability: str = CACHED
) -> list[SweepPoint]:
    """Return every combination, the last name varying fastest; all of them are checked.

    >>> from uflip.spec import baseline
    >>> chosen = points("sim:demo", baseline("RW"), {"gc": ["greedy", "cyclic"], "io_size": ["4k"]})
    >>> [(point.url, point.spec.parts[0].io_size) for point in chosen]
    [('sim:demo?gc=greedy', 4096), ('sim:demo?gc=cyclic', 4096)]
    """
    varied: Varied = {name: [*values] for name, values in vary.items()}
    design = Design(url, spec, varied, durability=durability)
    return check_points(design, combinations(design)).points


def combinations(design: Design) -> list[list[Value]]:
    """Return the values of each point, in the order of the names."""
    for name, values in design.vary.items():
        if isinstance(values, Range):
            values.check(name)
        elif not values:
            raise UsageError(
                "Nothing varies",
                where=name,
                got="no value",
                allowed="NAME=V1,V2,...",
                action="give the values, or omit the key",
            )
    if design.sample is not None:
        _check_count(design.sample.points(len(design.vary)), "--sample")
        return draw_sample(design.vary, design.sample)
    ranges = [name for name, values in design.vary.items() if isinstance(values, Range)]
    if ranges:
        _check_names(design)
        raise UsageError(
            "A continuous range needs a step or a sample",
            where="--vary",
            got=f"{ranges[0]}={design.vary[ranges[0]]}",
            allowed="values, LOW..HIGH/STEP, or a range with --sample",
            action="list the values, or draw a sample of combinations: --sample lhs:100",
        )
    lists = [values for values in design.vary.values() if not isinstance(values, Range)]
    _check_count(math.prod(map(len, lists)), "--vary")
    return [[*values] for values in itertools.product(*lists)]


def _check_names(design: Design) -> None:
    """Raise the error of an unknown name; other errors depend on the values."""
    firsts = {
        n: each.low if isinstance(each, Range) else each[0] for n, each in design.vary.items()
    }
    try:
        _point(design, firsts)
    except UsageError as error:
        if error.where in design.vary and error.what.startswith("Unknown name"):
            raise


def _check_count(count: int, where: str) -> None:
    if count > MAX_POINTS:
        raise UsageError(
            "There are too many combinations",
            where=where,
            got=str(count),
            allowed=f"at most {MAX_POINTS}",
            action="vary less at a time",
        )


def check_points(design: Design, values: Sequence[Sequence[Value]]) -> CheckedPoints:
    """Return the points of combinations; in a grid and a Sobol' design all must be possible."""
    if parse_url(design.device).kind != "sim":
        raise UsageError(
            "Only simulated devices can be swept",
            where="DEVICE",
            got=design.device,
            allowed="sim:NAME",
            action="a real device is one device: vary a pattern with `uflip run`",
        )
    may_fail = design.sample is not None and design.sample.method != "sobol"
    checked = CheckedPoints([], [])
    for each in values:
        of_names = dict(zip(design.vary, each, strict=True))
        try:
            checked.points.append(_point(design, of_names))
        except UsageError as error:
            checked.impossible.append((of_names, error))
            if not may_fail:
                raise
    if not checked.points:
        raise checked.impossible[0][1]
    return checked


def _point(design: Design, values: Table) -> SweepPoint:
    overrides = {}
    durability = design.durability
    spec = cast("Functions", design.spec)
    for name, value in values.items():
        if name == DURABILITY:
            durability = str(value)
        elif name in CHANGEABLE:
            spec = changed(spec, name, value)
        else:
            overrides[name] = value
    url = with_overrides(design.device, overrides)
    try:
        info = inspect_device(url)
    except UsageError as error:
        # An unknown profile key may be a misspelt parameter of the pattern.
        unknown = error.got.strip("'")
        if unknown not in overrides or not error.what.startswith("Unknown key"):
            raise
        names = (*CHANGEABLE, DURABILITY, *error.allowed.split(", "))
        raise unknown_name("name of what varies", unknown, names, where=unknown) from None
    complete = resolve(spec, info).spec
    assert not isinstance(complete, Replay), "resolving keeps the kind of a pattern"
    durability = durability_or_default(durability)
    if not design.timed and durability != CACHED:
        raise UsageError(
            "`--untimed` cannot be combined with `--durability`",
            where=DURABILITY,
            got=durability,
            allowed=CACHED,
            action="measure times (without --untimed), or omit the durability",
        )
    return SweepPoint(values, url, complete, durability)


def draw_sample(vary: Mapping[str, list[Value] | Range], sample: Sample) -> list[list[Value]]:
    """Draw the values of each point, reproducibly from the seed.

    >>> vary = {"gc": ["greedy", "cyclic"], "spare_factor": Range(0.1, 0.3)}
    >>> draw_sample(vary, Sample("random", 2, 1))
    [['cyclic', 0.290093], ['greedy', 0.28973]]
    """
    shares = np.minimum(_draw_cube_points(len(vary), sample), LARGEST_BELOW_ONE)
    return [
        [_value(values, float(share)) for values, share in zip(vary.values(), row, strict=True)]
        for row in shares
    ]


def _value(values: list[Value] | Range, share: float) -> Value:
    if isinstance(values, Range):
        return values.at(share)
    return values[int(share * len(values))]


def _draw_cube_points(names: int, sample: Sample) -> NDArray[Any]:
    """Draw points of the unit cube (points, names)."""
    if sample.method == "random":
        return np.random.default_rng(sample.seed).random((sample.count, names))
    if sample.method == "lhs":
        qmc = library("scipy.stats.qmc", "--sample lhs")
        cube = qmc.LatinHypercube(names, rng=np.random.default_rng(sample.seed))
        return np.asarray(cube.random(sample.count))
    if sample.count & (sample.count - 1):
        raise UsageError(
            "A Sobol' sequence is balanced at powers of two",
            where="--sample",
            got=str(sample),
            allowed="sobol:64, sobol:128, sobol:256, ...",
            action="use the next power of two",
        )
    sobol = library("SALib.sample.sobol", "--sample sobol")
    design = sobol.sample(problem(names), sample.count, calc_second_order=False, seed=sample.seed)
    return np.asarray(design)


def problem(names: int) -> Table:
    """Return the problem for SALib: sides of the unit cube."""
    return {
        "num_vars": names,
        "names": [str(number) for number in range(names)],
        "bounds": [[0.0, 1.0]] * names,
    }


def library(module: str, where: str) -> Any:
    """Import a library of `uflip[sweep]`."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        what = "This kind of sample needs scipy and SALib"
        raise missing_extra("sweep", what, where=where) from error
