"""Changes of a simulated device that would have avoided a slow I/O, to run the same I/Os on.

A remedy is offered if it acts on a cause of the I/O, and if the device accepts the changed keys.
The host's capacity stays: more spare space means more flash, not a smaller device.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TypedDict

from uflip.data.device import DeviceInfo
from uflip.data.spec import Spec
from uflip.device.opener import inspect_sim
from uflip.device.resolve import resolve
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import UflipError, UsageError, unknown_name
from uflip.play.form import PATTERN, PlayRequest, check_flash, check_length
from uflip.profiles import profile_names

Keys = Mapping[str, str]
COLLECTION = {"relocation_ns", "erase_ns", "free_page_wait_ns", "die_wait_ns"}
MAX_SPARE = 0.5
SPARE_FACTOR = 2.0
SUSPEND_NS = 20_000
SUSPENSIONS = 8
MIN_CACHE_BYTES = 1 << 20
CACHE_FACTOR = 4
MAX_BLOCK_STEPS = 64
"""Blocks that are added at most until the capacity is that of the original."""
UNCHANGED = ""
"""Name of the device as it was."""


class Remedy(TypedDict):
    """A change: its name, its title, how it acts, and the changed keys."""

    name: str
    title: str
    why: str
    keys: Keys


@dataclass(frozen=True)
class SlowIo:
    """An I/O to be avoided: its mode, and its causes [ns]."""

    mode: str
    causes_ns: Mapping[str, int]

    def large(self, names: Collection[str]) -> bool:
        """Return whether these causes take a tenth of its time or more."""
        total = sum(self.causes_ns.values())
        return sum(self.causes_ns.get(name, 0) for name in names) * 10 >= total


def remedies(url: str, io: SlowIo) -> list[Remedy]:
    """Return the changes of a built-in device that act on the causes of an I/O."""
    target = built_in(url)
    info = inspect_sim(target)
    return [each for each in _candidates(info, io) if _accepted(target, info, each["keys"])]


def built_in(url: str) -> DeviceUrl:
    """Return the parsed URL of a built-in device; results name no files of this machine."""
    names = profile_names("block")
    target = parse_url(url) if url.startswith("sim:") else None
    if target is None or target.name not in names:
        raise UsageError(
            "The I/Os cannot be repeated on a changed device",
            where="device",
            got=url,
            allowed="a built-in simulated device",
            action="replay the trace on one: uflip replay",
        )
    return target


def request(url: str, spec: Spec, label: str, io: SlowIo, name: str) -> PlayRequest:
    """Return the request to run the same I/Os on the device with a remedy, or as it was."""
    target = built_in(url)
    if name != UNCHANGED:
        offered = {each["name"]: each for each in remedies(url, io)}
        if name not in offered:
            raise unknown_name("remedy", name, list(offered), where="remedy")
        target = changed(target, offered[name]["keys"])
    info = inspect_sim(target)
    check_flash(info)
    complete = resolve(spec, info)
    check_length(complete.totals)
    return PlayRequest(target.text, PATTERN, complete.spec, label)


def changed(target: DeviceUrl, keys: Keys) -> DeviceUrl:
    """Return the device with other keys, those of its URL kept."""
    return parse_url(with_overrides(f"sim:{target.name}", {**dict(target.overrides), **keys}))


def _accepted(target: DeviceUrl, before: DeviceInfo, keys: Keys) -> bool:
    try:
        info = inspect_sim(changed(target, keys))
    except UflipError:
        return False
    return info.capacity_bytes >= before.capacity_bytes


def _candidates(info: DeviceInfo, io: SlowIo) -> Iterator[Remedy]:
    table = info.profile_table
    ftl, gc = table.get("ftl") or {}, table.get("gc") or {}
    collects = io.large(COLLECTION)
    if collects and (keys := _more_spare(info)) is not None:
        old_spare = float(ftl["spare_factor"])
        yield {
            "name": "spare",
            "title": f"spare factor {keys['spare_factor']} instead of {old_spare:.2g}",
            "why": "a collection copies fewer valid pages, because blocks are emptier",
            "keys": keys,
        }
    if collects and (policy := gc.get("gc")) is not None:
        better = "greedy" if policy != "greedy" else "cost_benefit"
        yield {
            "name": "policy",
            "title": f"victims by {better} instead of {policy}",
            "why": "it selects other blocks to collect",
            "keys": {"gc": better},
        }
    if io.mode == "read" and io.large({*COLLECTION, "program_wait_ns", "erase_wait_ns"}):
        yield {
            "name": "suspend",
            "title": "suspend programs and erases",
            "why": "a read interrupts the program or erase of its die",
            "keys": {
                "die_queue": "reads_first",
                "program_suspend_ns": str(SUSPEND_NS),
                "erase_suspend_ns": str(SUSPEND_NS),
                "suspensions_max": str(SUSPENSIONS),
            },
        }
    if io.mode == "write":
        old = (table.get("cache") or {}).get("write_cache_bytes") or 0
        size = max(int(old) * CACHE_FACTOR, MIN_CACHE_BYTES)
        yield {
            "name": "cache",
            "title": f"write cache of {size >> 20} MiB",
            "why": "a burst of writes fits, and pages are programmed later",
            "keys": {"write_cache_bytes": str(size)},
        }
    if io.large({"mapping_ns"}) and (old := ftl.get("mapping_cache_bytes")):
        yield {
            "name": "map",
            "title": f"map cache × {CACHE_FACTOR}",
            "why": "fewer pages of the map are read and written",
            "keys": {"mapping_cache_bytes": str(int(old) * CACHE_FACTOR)},
        }
    if io.large({"merge_ns"}):
        yield {
            "name": "ftl",
            "title": "page map instead of merges",
            "why": "pages are mapped one by one, so that no block is merged",
            "keys": {"ftl": "page_map", "gc": "greedy"},
        }


def _more_spare(info: DeviceInfo) -> dict[str, str] | None:
    """Return twice the spare factor, with the blocks that keep the host's capacity."""
    old = info.profile_table.get("ftl", {}).get("spare_factor")
    if not old or old >= MAX_SPARE:
        return None
    new = float(f"{min(float(old) * SPARE_FACTOR, MAX_SPARE):.2g}")
    blocks = info.profile.geometry.blocks_per_die
    target = built_in(info.url)
    for more in range(MAX_BLOCK_STEPS):
        keys = {
            "spare_factor": f"{new:g}",
            "blocks_per_die": str(ceil(blocks * (1 - float(old)) / (1 - new)) + more),
        }
        if _accepted(target, info, keys):
            return keys
    return None
