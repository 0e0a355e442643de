"""A fitted drive as a profile, which any command simulates: `sim:FOLDER/DRIVE.toml`.

**Source**: the constants that `fit` and `loaded_response` found.
**Faithful**: the rate of long writes and of random ones at a depth of 8 or more, write
amplification, the time of single reads.
**Simplified**: lines hide the dies. So the device has one die, whose blocks are the lines, and
whose program time is that of a page at the sequential rate of the drive. It has a GiB of flash in
256 lines, as in the fit. Zones would need other lines. Waits of reads
for a die, and turns of collection, are those of one fast die, and not of the drive.
**Ambiguous**: NAND, channels and dies of these drives. No data sheet of a drive has them, and no
row of the tables shows them apart.
"""

from collections.abc import Iterable, Iterator

from uflip.device.catalogue import profile_text
from uflip.profiles import ConstantSource, profile_sources
from uflip.reproduce.drives.comparison import SimulatedDrive
from uflip.reproduce.drives.line_device import PAGE_BYTES, RANDOM_LINES
from uflip.reproduce.simulated_device import device_url

SSD_IQ = "SSD-iq (PVLDB 2025)"
BASE = "ofc"
"""The built-in profile whose other keys stay: a page map with a victim policy."""
PROFILE_LINE_PAGES = 1024
"""As many lines as the constants were fitted with: two of them hold no victim."""
FAST_BYTES_PER_S = 10**15
"""A rate that limits nothing."""
MIB = 1 << 20
SMALLEST_WHOLE_GIB = 10
"""Smaller capacities have two digits."""


def drive_profiles(drives: Iterable[SimulatedDrive]) -> Iterator[tuple[str, str]]:
    """Yield name and profile of each drive that has constants."""
    for drive in drives:
        if drive.constants is not None:
            yield drive.name, drive_profile(drive)


def drive_profile(drive: SimulatedDrive, table: str = SSD_IQ) -> str:
    """Return the profile of a drive as TOML; `table`: the source of its rows."""
    keys = {**_structure(drive, table), **_times(drive, table)}
    values = {key: value for key, (value, _) in keys.items()}
    unchanged = dict.fromkeys(profile_sources(BASE), ConstantSource("guess", f"as in sim:{BASE}"))
    return profile_text(
        device_url(BASE, **values),
        sources={**unchanged, **{key: source for key, (_, source) in keys.items()}},
        description=_description(drive),
    )


Keys = dict[str, tuple[int | float | str | bool, ConstantSource]]


def _fitted(table: str, detail: str) -> ConstantSource:
    return ConstantSource("inferred", f"fitted to rates of {table}: {detail}")


def _method(table: str, detail: str) -> ConstantSource:
    """Return a source for how the rows were measured: other tables are assumed to be alike."""
    kind = "paper" if table == SSD_IQ else "guess"
    return ConstantSource(kind, f"{SSD_IQ}: {detail}")


def _scaled(detail: str) -> ConstantSource:
    return ConstantSource("guess", f"scaled: {detail}")


def _description(drive: SimulatedDrive) -> str:
    one = drive.constants
    assert one is not None
    return (
        f"{drive.name} at {RANDOM_LINES * PROFILE_LINE_PAGES * PAGE_BYTES >> 30} of "
        f"{_gib(one.physical_gib)}: rates and write amplification as fitted, lines as blocks"
    )


def _gib(size: float) -> str:
    return f"{size:.0f} GiB" if size >= SMALLEST_WHOLE_GIB else f"{size:.2g} GiB"


def _structure(drive: SimulatedDrive, table: str) -> Keys:
    one = drive.constants
    assert one is not None
    spare = round(1 - drive.capacity_gib / one.physical_gib, 6)
    return {
        "channels": (1, _scaled("a line is a block on every die, so lines hide the dies")),
        "dies_per_channel": (1, _scaled("as channels")),
        "blocks_per_die": (RANDOM_LINES, _scaled(f"{one.physical_gib / one.line_gib:.0f} lines")),
        "pages_per_block": (PROFILE_LINE_PAGES, _scaled(f"a line of {one.line_gib:.2f} GiB")),
        "metadata_pages": (0, _scaled("part of the physical capacity that data cannot fill")),
        "page_bytes": (PAGE_BYTES, _method(table, "the size of its writes")),
        "sector_bytes": (PAGE_BYTES, _method(table, "the size of its writes")),
        "spare_bytes": (0, _scaled("as metadata_pages")),
        "buses": (0, ConstantSource("off")),
        "spare_factor": (spare, _fitted(table, f"{_gib(one.physical_gib)}, uniform writes")),
        "gc": (one.policy, _fitted(table, "the policy with the least error")),
        "separate_streams": (one.apart, _fitted(table, "skewed writes")),
        "idle_free_blocks": (0, ConstantSource("guess", "no row has an idle drive")),
        "state": ("sequential", _method(table, "written once in sequence")),
    }  # fmt: skip


def _times(drive: SimulatedDrive, table: str) -> Keys:
    one = drive.constants
    assert one is not None
    page_ns = PAGE_BYTES / (one.sequential_mib_s * MIB) * 1e9
    limit = one.limit_mib_s
    keys: Keys = {
        "program_ns": (
            round(page_ns),
            _fitted(table, f"{one.sequential_mib_s:.0f} MiB/s in sequence"),
        ),
        "program_high_ns": (round(page_ns), _fitted(table, "as program_ns")),
        "read_ns": (
            round((one.relocation_cost - 1) * page_ns),
            _fitted(table, f"a relocated page takes {one.relocation_cost:.2f} times a written one"),
        ),
        "erase_ns": (
            round(page_ns),
            _scaled("part of program_ns: the rates include the erases"),
        ),
        "channel_bytes_per_s": (FAST_BYTES_PER_S, _scaled("part of program_ns")),
        "command_read_ns": (0, ConstantSource("off")),
        "command_write_ns": (
            0 if limit is None else round(PAGE_BYTES / (limit * MIB) * 1e9),
            ConstantSource("off")
            if limit is None
            else _fitted(table, f"a limit of {limit:.0f} MiB/s"),
        ),
        "relocate_ns": (0, ConstantSource("off")),
        "collect_ns": (0, ConstantSource("off")),
    }
    if (load := drive.load) is not None:
        response = f"fitted to response times of {table}, 10,000 writes/s"
        source = ConstantSource("inferred", response)
        for key, time_us in (
            ("command_read_latency_ns", load.read_us),
            ("command_write_latency_ns", load.buffered_us),
        ):
            if time_us is not None:
                keys[key] = round(time_us * 1e3), source
    return keys
