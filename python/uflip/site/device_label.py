"""What a simulated device is called: its profile, and how it is built otherwise.

::

    sim:demo                        demo
    sim:demo?program_ns=3ms         demo?program_ns=3000000
    sim:PATH.toml, or forged        demo, profile 1a2b3c4d

Results of devices that are built otherwise are results of different devices. A name is believed
where the built-in profile, overridden as it says, is the profile in the manifest; what a profile
lacks because it is older than a key counts as equal. Any other profile is told by its digest.
"""

from dataclasses import replace

from uflip.data import ledger
from uflip.data.device import DeviceInfo
from uflip.data.document import Table
from uflip.device.simulated import inspect_sim
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import UflipError
from uflip.profiles import profile_names

UNTOLD = "description"
"""Of a profile: not what a device is built of."""
LONGEST = 200
"""A name that is longer is read by nobody."""


def model_of(device: DeviceInfo) -> str:
    """Return what a device is called on a site: its model, and how it is built otherwise."""
    name = device.model or device.kind
    ours = _keys(device.profile_table)
    if not ours:
        return name
    told = _told(device, ours) if name in profile_names() else None
    return f"{name}, profile {ledger.digest_of(ours)[:8]}" if told is None else told


def _told(device: DeviceInfo, ours: Table) -> str | None:
    """Name a built-in device by what is overridden of it; None where that is not what it is.

    None as well where it would be too long.
    """
    plain = DeviceUrl(device.model, "sim", device.model)
    named = replace(plain, overrides=_overrides(device))
    try:
        built_in, expected = _built(plain), _built(named)
    except UflipError:  # of overrides that no device has now
        return None
    if any(expected.get(key) != value for key, value in ours.items()):
        return None
    keys = sorted({key for key, _ in named.overrides} & expected.keys())
    changed = {key: expected[key] for key in keys if expected[key] != built_in.get(key)}
    told = with_overrides(device.model, changed)
    return told if len(told) <= LONGEST else None


def _overrides(device: DeviceInfo) -> tuple[tuple[str, str], ...]:
    """What its name says is built otherwise; of a device in a snapshot the name says nothing."""
    try:
        asked = parse_url(device.url)
    except UflipError:
        return ()
    return asked.overrides if asked.name == device.model else ()


def _built(target: DeviceUrl) -> Table:
    return _keys(inspect_sim(target, any_interface=True).profile_table)


def _keys(profile: Table) -> Table:
    """Every key of a profile with its value, whichever table it stands in."""
    found: Table = {}
    for name, value in profile.items():
        if isinstance(value, dict):
            found |= value
        elif name != UNTOLD:
            found[name] = value
    return found
