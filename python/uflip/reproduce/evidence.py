"""Classifies rows of reproductions: a prediction, or a value to which a constant was fitted.

A value is *fitted* if a constant of the device was fitted to it, chosen for it or inferred from it,
or to a value from which it follows (`Value.determined_by`); it is *predicted* otherwise. The class
follows from the `[sources]` of the profile and from `SETTINGS` below.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from uflip.profiles import ConstantSource, profile_sources
from uflip.reproduce.published import PUBLISHED, with_determining_values

PREDICTION, FITTED = "prediction", "fitted"

SETTINGS: Mapping[str, Mapping[str, ConstantSource]] = {
    "ofc": {
        "outstanding requests": ConstantSource(
            "fitted", "of the traffic generator; five cannot carry the writes of a clean device",
            ("ofc/random_reads", "ofc/clean_writes"),
        ),
    },
    "ofc-pipelined": {
        "outstanding requests": ConstantSource(
            "fitted", "of the traffic generator", ("ofc/random_reads",),
        ),
    },
    "fast-1gb?compat=flashsim2010": {
        "compat": ConstantSource(
            "chosen", "of two readings of what they ran, the one with which the peaks come out",
            ("ms/fig4/zero", "ms/fig4/full", "ms/fig4/n_valid", "ms/fig4/n_data"),
        ),
    },
    "dfc": {
        "LUNs that are alike": ConstantSource(
            "chosen", "the simulator has no others",
            ("oc/fig3/writes_spread", "oc/fig3/reads_spread"),
        ),
        "reads that all take the same": ConstantSource(
            "chosen", "the simulator has no others", ("oc/fig2/stable",),
        ),
        "programs that do not wear": ConstantSource(
            "chosen", "the simulator has no others",
            ("oc/fig4/write_time", "oc/fig4/failed_writes"),
        ),
    },
}  # fmt: skip
"""Settings outside of profiles that were chosen with published values in view, by device."""


def fitted_by(value_id: str, device: str | None = None) -> tuple[str, ...]:
    """Return the constants that were set with a published value in view.

    Parameters
    ----------
    value_id : str
        One of `PUBLISHED`.
    device : str, optional
        The profile, with `?key=value&...` for changed keys: a changed key is not the fitted
        one. By default the device of the value.

    Examples
    --------
    >>> fitted_by("ofc/raw_reads")
    ('bus_bytes_per_s',)
    >>> fitted_by("ofc/raw_reads", "ofc?bus_bytes_per_s=100000000"), fitted_by("ofc/raw_writes")
    ((), ())
    """
    device = PUBLISHED[value_id].device if device is None else device
    profile, _, overrides = device.partition("?")
    changed = {pair.partition("=")[0] for pair in overrides.split("&")}
    sources = {
        **{key: one for key, one in profile_sources(profile).items() if key not in changed},
        **SETTINGS.get(profile, {}),
        **SETTINGS.get(device, {}),
    }
    value_ids = with_determining_values(value_id)
    return tuple(key for key, source in sources.items() if _uses(source, value_ids))


def kind_of(value_id: str, device: str | None = None) -> str:
    """Return whether a device's result for a published value is a `PREDICTION`, or `FITTED`."""
    return FITTED if fitted_by(value_id, device) else PREDICTION


def free_constants(profile: str) -> tuple[str, ...]:
    """Return the keys of a profile that were set with published values in view."""
    return tuple(key for key, source in profile_sources(profile).items() if source.values)


def _uses(source: ConstantSource, value_ids: set[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in source.values for value in value_ids)
