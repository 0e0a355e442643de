"""Labels of simulated devices: the profile, and the values that differ from it.

::

    sim:demo                        demo
    sim:demo?program_ns=3ms         demo?program_ns=3000000
    sim:PATH.toml, or forged        demo, profile 1a2b3c4d

Results of devices that are built differently are results of different devices. A name is accepted
if the built-in profile with its overrides is the profile in the manifest; a key that an older
profile lacks counts as equal. The label of any other profile contains its digest.
"""

from dataclasses import replace

from uflip.data import ledger
from uflip.data.device import DeviceInfo
from uflip.data.document import Table
from uflip.device.opener import inspect_sim
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import UflipError
from uflip.profiles import profile_names

IGNORED_KEY = "description"
"""The profile key that does not affect the device."""
MAX_LABEL = 200
"""Limit for the length of a label [characters]."""


def model_of(device: DeviceInfo) -> str:
    """Return the label of a device on a site: its model, and the values that differ from it."""
    name = device.model or device.kind
    ours = _keys(device.profile_table)
    if not ours:
        return name
    label = _known_label(device, ours) if name in profile_names() else None
    return f"{name}, profile {ledger.digest_of(ours)[:8]}" if label is None else label


def _known_label(device: DeviceInfo, ours: Table) -> str | None:
    """Return the label of a built-in device with its overrides.

    None if the profile in the manifest is another one, or if the label would be too long.
    """
    plain = DeviceUrl(device.model, "sim", device.model)
    named = replace(plain, overrides=_overrides(device))
    try:
        built_in, expected = _built(plain), _built(named)
    except UflipError:  # overrides that this version does not accept
        return None
    if any(expected.get(key) != value for key, value in ours.items()):
        return None
    keys = sorted({key for key, _ in named.overrides} & expected.keys())
    changed = {key: expected[key] for key in keys if expected[key] != built_in.get(key)}
    label = with_overrides(device.model, changed)
    return label if len(label) <= MAX_LABEL else None


def _overrides(device: DeviceInfo) -> tuple[tuple[str, str], ...]:
    """Return the overrides in a device's name; the name of a snapshot contains none."""
    try:
        named = parse_url(device.url)
    except UflipError:
        return ()
    return named.overrides if named.name == device.model else ()


def _built(target: DeviceUrl) -> Table:
    return _keys(inspect_sim(target, any_interface=True).profile_table)


def _keys(profile: Table) -> Table:
    """Return all keys of a profile with their values, without their tables."""
    keys: Table = {}
    for name, value in profile.items():
        if isinstance(value, dict):
            keys |= value
        elif name != IGNORED_KEY:
            keys[name] = value
    return keys
