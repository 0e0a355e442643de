"""Counters of the drive below a file or block device, read by the drive's own commands.

    NVMe   Identify ─▶ which pages it has ─▶ log pages of `counters.toml`
    ATA    IDENTIFY DEVICE ─▶ model ─▶ SMART READ DATA: the attributes of that model
    eMMC   sysfs

**Source** `counters.toml` names the specification of each page, and the origin of each unit.
**Faithful** A page is used only if its length, its GUID and its version are those of the table.
**Simplified** Of ATA drives only SMART attributes are read, no logs; of eMMC what the kernel reads
from EXT_CSD. A page is read again for every run, but those that a drive refused once are not.
**Ambiguous** A drive may update its counters with a delay of minutes; nothing reports it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from uflip import _native
from uflip.data.counters import Counter, CounterSource, DriveCounters, UnknownCounter
from uflip.data.device import DeviceInfo
from uflip.data.document import MAX_INTEGER
from uflip.device.disk import device_number, sysfs_path
from uflip.device.power import PowerState, nvme_power_states
from uflip.device.url import parse_url

Query = Callable[[str, str, int, int, int], tuple[bytes, str]]
"""Path, query, page, log specific identifier, size → answer, reason without one."""

NO_SUCH_PAGE = "the drive does not have it"
REFUSALS = ("Invalid Log Page", "Invalid Field")
# Bytes of Identify Controller, Identify Namespace and IDENTIFY DEVICE.
MODEL, FIRMWARE = slice(24, 64), slice(64, 72)
CTRATT, LPA, TNVMCAP, UNVMCAP = slice(96, 100), 261, slice(280, 296), slice(296, 312)
ENDURANCE_GROUP = slice(102, 104)
ATA_FIRMWARE, ATA_MODEL = slice(46, 54), slice(54, 94)
# Bits of CTRATT: endurance groups, flexible data placement. Of LPA: log page 0.
ENDURANCE_GROUPS, PLACEMENT, LISTS_PAGES = 1 << 4, 1 << 19, 1 << 5
VENDOR_PAGES = range(0xC0, 0x100)
ATA_ITEMS, NVME_ITEMS, ITEM_BYTES = (2, 30), (0, 42), 12
"""Begin and number of the items of a page; each has an id, a normalized and a raw value."""
NEARLY = 0.99
SECTOR = 512


class CounterDefinition(Struct, frozen=True, forbid_unknown_fields=True):
    """A known counter; `counters.toml` explains the fields."""

    name: str
    unit: str
    offset: int = 0
    size: int = 6
    step: int = 1
    origin: int = 0
    zero: Literal["value", "unknown"] = "value"
    id: int | None = None
    field: Literal["raw", "value"] = "raw"
    file: str = ""

    def counter(self, source: str, raw: int) -> Counter | None:
        """Return the counter for a raw value; None if the value means that it is not reported."""
        if raw == 0 and self.zero == "unknown":
            return None
        is_count = self.unit in ("bytes", "pages", "") and self.field == "raw"
        limit = self.step << (8 * self.size) if is_count else None
        value = min(raw * self.step + self.origin, MAX_INTEGER)
        bounded = limit if limit is not None and limit <= MAX_INTEGER else None
        return Counter(f"{source}.{self.name}", value, self.unit, self.step, bounded)


class SourceDefinition(Struct, frozen=True, forbid_unknown_fields=True):
    """A page with counters."""

    name: str
    query: Literal["nvme_log", "ata_smart", "emmc"]
    reference: str
    counters: tuple[CounterDefinition, ...]
    page: int = 0
    size_bytes: int = 512
    layout: Literal["fixed", "nvme_items", "ata_attributes"] = "fixed"
    needs: Literal["", "placement", "endurance_groups"] = ""
    models: str = ".*"
    guid: str = ""
    guid_at: int = 0
    version_at: int | None = None
    versions: tuple[int, ...] = ()


class ModelDefinition(Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes of a family of ATA drives."""

    family: str
    models: str
    reference: str
    counters: tuple[CounterDefinition, ...]
    firmware: str = ".*"


class CounterTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of known counters."""

    source: dict[str, SourceDefinition]
    model: tuple[ModelDefinition, ...]


@cache
def counter_table() -> CounterTable:
    """Return the table of known counters."""
    text = Path(__file__).with_name("counters.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), CounterTable)


class _PageError(Exception):
    """A page that cannot be used; the text is the reason."""


class CounterReader:
    """Reads the counters of one drive, before and after each run.

    `info`: a device, open or inspected. `query`: asks the drive. `system`: the sysfs mount.
    """

    def __init__(
        self,
        info: DeviceInfo,
        query: Query = _native.query_drive,
        system: Path = Path("/sys"),
    ) -> None:
        self._query = query
        self._info = info
        self._path = _existing_path(info) if info.real and info.kind != "nbd" else ""
        number = device_number(info) if self._path else None
        self._sysfs = None if number is None else sysfs_path(*number, system)
        self._refused: set[str] = set()

    def read(self) -> DriveCounters:
        """Read all counters; without any, the result has the reason."""
        if not self._path:
            kinds = {"null": "the null device", "nbd": "an export over NBD"}
            kind = kinds.get(self._info.kind, "a simulated device")
            return DriveCounters(problem=f"{kind} is not a drive")
        if self._sysfs is None:
            return DriveCounters(problem="it is not on a single disk")
        is_partition = (self._sysfs / "partition").exists()
        disk = self._sysfs.parent if is_partition else self._sysfs
        shared = "the target is a partition of the drive" if is_partition else ""
        if self._info.kind == "file":
            shared = "the target is a file on the drive"
        if disk.name.startswith("nvme"):
            return self._read_nvme(disk, shared)
        if disk.name.startswith("mmcblk"):
            return self._read_emmc(disk, shared)
        if disk.name.startswith("sd"):
            return self._read_ata(shared)
        return DriveCounters(problem=f"{disk.name} is not an NVMe, ATA or eMMC drive")

    def power_states(self) -> list[PowerState]:
        """Return the power states that an NVMe drive declares; none of other drives."""
        if self._sysfs is None or not self._path:
            return []
        is_partition = (self._sysfs / "partition").exists()
        disk = self._sysfs.parent if is_partition else self._sysfs
        if not disk.name.startswith("nvme"):
            return []
        try:
            return nvme_power_states(self._ask("nvme_controller"))
        except _PageError:
            return []

    def _ask(self, query: str, page: int = 0, specific: int = 0, size: int = 512) -> bytes:
        answer, problem = self._query(self._path, query, page, specific, size)
        if problem:
            raise _PageError(problem)
        return answer

    def _read_nvme(self, disk: Path, shared: str) -> DriveCounters:
        try:
            controller = self._ask("nvme_controller")
            features = _integer(controller[CTRATT])
            group = 0
            if features & ENDURANCE_GROUPS:
                group = _integer(self._ask("nvme_namespace")[ENDURANCE_GROUP])
            listed = None
            if controller[LPA] & LISTS_PAGES:
                pages = self._ask("nvme_log", 0, size=1024)
                listed = {page for page in range(256) if pages[4 * page] & 1}
        except _PageError as error:
            return DriveCounters(problem=str(error))
        model = _text(controller[MODEL])
        sources: list[CounterSource] = []
        counters: list[Counter] = []
        for name, source in counter_table().source.items():
            if source.query == "nvme_log" and re.fullmatch(source.models, model):
                there = _has_page(source, features, group, listed) and name not in self._refused
                problem = self._read_page(name, group, counters) if there else NO_SUCH_PAGE
                sources.append(CounterSource(name, source.name, problem))
        known = {source.page for source in counter_table().source.values()}
        vendor = [page for page in sorted(listed or ()) if page in VENDOR_PAGES]
        return DriveCounters(
            f"{model} {_text(controller[FIRMWARE])}",
            tuple(sources),
            tuple(counters),
            tuple(
                UnknownCounter("nvme", f"log page {page:02X}h")
                for page in vendor
                if page not in known
            ),
            shared or _part_of_drive(disk, controller),
        )

    def _read_page(self, name: str, group: int, counters: list[Counter]) -> str:
        """Add the counters of a log page; return the reason if it cannot be used."""
        source = counter_table().source[name]
        specific = group if source.needs else 0
        try:
            content = self._ask("nvme_log", source.page, specific, source.size_bytes)
            counters += list(_decode(name, source, source.counters, content))
        except _PageError as error:
            if any(each in str(error) for each in REFUSALS):
                # Each refusal becomes an entry of the drive's error log.
                self._refused.add(name)
                return NO_SUCH_PAGE
            return str(error)
        return ""

    def _read_ata(self, shared: str) -> DriveCounters:
        source = counter_table().source["ata"]
        try:
            identity = self._ask("ata_identify")
            model, firmware = _ata_text(identity[ATA_MODEL]), _ata_text(identity[ATA_FIRMWARE])
            content = self._ask("ata_smart")
            if sum(content) % 256:
                raise _PageError("the SMART data have a wrong checksum")
        except _PageError as problem:
            return DriveCounters(problem=str(problem))
        definitions = source.counters
        for family in counter_table().model:
            if re.fullmatch(family.models, model) and re.fullmatch(family.firmware, firmware):
                definitions = (*definitions, *family.counters)
        ids = {definition.id for definition in definitions}
        return DriveCounters(
            f"{model} {firmware}",
            (CounterSource("ata", source.name),),
            tuple(_decode("ata", source, definitions, content)),
            tuple(
                UnknownCounter("ata", f"attribute {number}", _integer(raw))
                for number, (_, raw) in _items(content, ATA_ITEMS).items()
                if number not in ids
            ),
            shared,
        )

    def _read_emmc(self, disk: Path, shared: str) -> DriveCounters:
        source = counter_table().source["emmc"]
        counters = []
        for definition in source.counters:
            try:
                text = (disk / "device" / definition.file).read_text(encoding="ascii")
                # Of two types of memory (SLC and MLC) the one that is worn more.
                raw = max(int(word, 16) for word in text.split())
            except (OSError, ValueError):
                continue
            if raw and (counter := definition.counter("emmc", raw)) is not None:
                counters.append(counter)
        problem = "" if counters else "the kernel returns no EXT_CSD wear values"
        return DriveCounters(
            sources=(CounterSource("emmc", source.name, problem),),
            counters=tuple(counters),
            shared=shared,
            problem=problem,
        )


def _existing_path(info: DeviceInfo) -> str:
    """Return a path on the drive: a file that does not exist yet will be in its folder."""
    path = Path(parse_url(info.url).name)
    return str(path if path.exists() else path.absolute().parent)


def _has_page(source: SourceDefinition, features: int, group: int, listed: set[int] | None) -> bool:
    if source.needs == "placement" and not features & PLACEMENT:
        return False
    if source.needs and not group:
        return False
    return listed is None or source.page in listed


def _part_of_drive(disk: Path, controller: bytes) -> str:
    """Return a note if the namespace is smaller than the allocated space of the drive."""
    allocated = _integer(controller[TNVMCAP]) - _integer(controller[UNVMCAP])
    try:
        size = int((disk / "size").read_text(encoding="ascii")) * SECTOR
    except (OSError, ValueError):
        return ""
    if size >= NEARLY * allocated:
        return ""
    return f"the target is a namespace of {size} bytes, of {allocated} that are allocated"


def _decode(
    name: str,
    source: SourceDefinition,
    definitions: tuple[CounterDefinition, ...],
    content: bytes,
) -> Iterator[Counter]:
    """Yield the known counters of a page."""
    if len(content) < source.size_bytes:
        raise _PageError(f"{len(content)} bytes instead of {source.size_bytes}")
    guid = content[source.guid_at :][: len(source.guid) // 2]
    if guid.hex() != source.guid:
        raise _PageError(f"the page has another GUID: {guid.hex()}")
    if source.version_at is not None:
        version = _integer(content[source.version_at :][:2])
        if version not in source.versions:
            known = f"{source.versions[0]} to {source.versions[-1]}"
            raise _PageError(f"the page has version {version}; known are {known}")
    for definition, raw in _raw_values(source, definitions, content):
        if (counter := definition.counter(name, raw)) is not None:
            yield counter


def _raw_values(
    source: SourceDefinition, definitions: tuple[CounterDefinition, ...], content: bytes
) -> Iterator[tuple[CounterDefinition, int]]:
    if source.layout == "fixed":
        for each in definitions:
            yield each, _integer(content[each.offset : each.offset + each.size])
        return
    where = ATA_ITEMS if source.layout == "ata_attributes" else NVME_ITEMS
    items = _items(content, where)
    for each in definitions:
        if each.id in items:
            normalized, raw = items[each.id]
            yield each, normalized if each.field == "value" else _integer(raw[: each.size])


def _items(content: bytes, where: tuple[int, int]) -> Mapping[int | None, tuple[int, bytes]]:
    """Return the items of a page by id: normalized value, raw value."""
    begin, count = where
    items: dict[int | None, tuple[int, bytes]] = {}
    for number in range(count):
        item = content[begin + number * ITEM_BYTES :][:ITEM_BYTES]
        if item[0]:
            items.setdefault(item[0], (item[3], item[5:11]))
    return items


def _integer(content: bytes) -> int:
    return int.from_bytes(content, "little")


def _text(content: bytes) -> str:
    return content.decode("ascii", "replace").strip("\0 ")


def _ata_text(content: bytes) -> str:
    """Return a text of ATA, whose words have their bytes swapped."""
    swapped = bytes(content[at ^ 1] for at in range(len(content)))
    return _text(swapped)
