"""How worn a device is, and how much of its rated endurance a plan will use up.

**Source**: uFLIP (CIDR 2009) §4.2 asks what a benchmark costs before it is run; what a device says
about its wear: NVM Express Base Specification 2.0, SMART / Health Information (`Percentage Used`,
`Data Units Written`).
**Faithful**: a device's own figures, read when the plan is made.
**Simplified**: only NVMe devices are asked; others say it in ways of their vendors' own. The writes
of the plan are taken to wear like all that were made before them.
**Ambiguous**: a percentage is a whole number. Where it is 0 an upper bound is all that follows. A
simulated device has its rated erases; how many of them a write takes depends on its write
amplification, so that what follows for 1 is a lower bound.
"""

from pathlib import Path

import msgspec

from uflip import _native
from uflip.data.device import DeviceInfo, DeviceWear, Profile
from uflip.units import format_size

BOUNDS = ("about", "less than", "at least")


class _NativeWear(msgspec.Struct, frozen=True):
    """What the native part says of a disk: why it knows nothing, or its log."""

    unknown: str | None = None
    percentage_used: int = 0
    bytes_written: int = 0
    available_spare_percent: float | None = None
    temperature_celsius: float | None = None


def wear_of(info: DeviceInfo) -> DeviceWear:
    """Ask a device how worn it is. Nothing is written.

    Parameters
    ----------
    info : DeviceInfo
        The device.

    Returns
    -------
    Wear
    """
    if info.simulated:
        return of_profile(info.profile)
    if info.null:
        return DeviceWear(unknown="there is nothing that could wear")
    path = Path(info.url.removeprefix("file:").removeprefix("block:"))
    # A file that does not exist yet will be on the disk of its folder.
    text = _native.wear(str(path if path.exists() else path.absolute().parent))
    told = msgspec.json.decode(text, type=_NativeWear)
    if told.unknown is not None:
        return DeviceWear(unknown=told.unknown)
    return msgspec.structs.replace(
        of_smart_log(told.percentage_used, told.bytes_written),
        available_spare_percent=told.available_spare_percent,
        temperature_celsius=told.temperature_celsius,
    )


def of_smart_log(percentage_used: int, bytes_written: int) -> DeviceWear:
    """Read what an NVMe device says.

    Examples
    --------
    >>> of_smart_log(5, 10**12).endurance_bytes
    20000000000000
    >>> of_smart_log(0, 10**12).bound
    'less than'
    """
    if not bytes_written:
        why = "the device does not report how much was written to it"
        return DeviceWear(float(percentage_used), None, None, unknown=why)
    # So much took less than one per cent: all of it is a hundred times as much, or more.
    endurance = bytes_written * 100 // max(percentage_used, 1)
    bound = BOUNDS[0] if percentage_used else BOUNDS[1]
    return DeviceWear(float(percentage_used), bytes_written, endurance, bound)


def of_profile(profile: Profile) -> DeviceWear:
    """Read the profile of a simulated device."""
    if profile.reliability is None:
        return DeviceWear(unknown="the profile has no rated erases (rated_cycles)")
    shape, rated = profile.geometry, profile.reliability.rated_cycles
    dies = shape.channels * shape.dies_per_channel
    pages = dies * shape.blocks_per_die * shape.pages_per_block
    before = (profile.recovery.cycles_before if profile.recovery else None) or 0
    endurance = rated * pages * (shape.page_bytes or 0)
    return DeviceWear(100 * before / rated, None, endurance, BOUNDS[2])


def describe_used(wear: DeviceWear) -> str:
    """Say how worn a device is.

    Examples
    --------
    >>> describe_used(of_smart_log(5, 10**12))
    '5 % of the rated endurance, after 931.32 GiB written'
    """
    if wear.percentage_used is None:
        return f"unknown: {wear.unknown}"
    after = f", after {format_size(wear.bytes_written)} written" if wear.bytes_written else ""
    return f"{wear.percentage_used:.4g} % of the rated endurance{after}"


def describe_wear(wear: DeviceWear, size_bytes: int) -> str:
    """Say how worn a device is, and what so many bytes add to it.

    Examples
    --------
    >>> describe_wear(of_smart_log(5, 10**12), 10**11)
    '0.5 % of the rated endurance, for 93.13 GiB written; the device says 5 % are used'
    >>> describe_wear(of_smart_log(0, 10**12), 10**11)
    'less than 0.1 % of the rated endurance, for 93.13 GiB written; the device says 0 % are used'
    >>> describe_wear(of_smart_log(0, 10**9), 174 * 10**9)
    'less than 174 % of the rated endurance, for 162.05 GiB written; the device says 0 % are used'
    """
    used = ""
    if wear.percentage_used is not None:
        used = f"the device says {wear.percentage_used:.4g} % are used"
    share = wear.share(size_bytes)
    if share is None:
        return "; ".join(part for part in (f"unknown: {wear.unknown}", used) if part)
    bound = "" if wear.bound == BOUNDS[0] else f"{wear.bound} "
    written = format_size(size_bytes)
    percent = f"{100 * share:.2g}" if share < 1 else f"{100 * share:.0f}"
    return f"{bound}{percent} % of the rated endurance, for {written} written; {used}"
