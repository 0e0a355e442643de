"""Samples of combinations: random, by a Latin hypercube, or for Sobol' indices.

Each name is a side of the unit cube, divided among its values. Samples are points of the cube:

**Source** Latin hypercubes: McKay, Beckman, Conover (Technometrics 1979). Sobol' indices: the
design of Saltelli et al. (Computer Physics Communications 2010), on Sobol' sequences.
**Faithful** scipy draws the hypercube (`scipy.stats.qmc`), SALib the design, without second order.
**Simplified** Nothing.
**Ambiguous** Names with a list of values in a method for numbers: each value has an equal part of
the side.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from uflip.data.document import Table
from uflip.data.sweep import Range, Sample, Value
from uflip.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The largest number below 1: a method may return the end of a side.
LARGEST_BELOW_ONE = float(np.nextafter(1.0, 0.0))


def draw_sample(vary: Mapping[str, list[Value] | Range], sample: Sample) -> list[list[Value]]:
    """Draw the values of each point, reproducibly from the seed.

    Examples
    --------
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


def _draw_cube_points(names: int, sample: Sample) -> "NDArray[Any]":
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
    """Import a library of `uflip[sweep]`.

    Raises
    ------
    UnavailableError
        If it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise UnavailableError(
            "This kind of sample needs an optional library",
            where=where,
            got=f"no module {error.name}",
            allowed="scipy and SALib",
            action="install them: pip install 'uflip[sweep]'",
        ) from error
