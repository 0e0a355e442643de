"""Are the counters of drives decoded as the specifications and other programs decode them?

Pages are made from the structures that NVMe, OCP and ATA publish, with the values of published
readings where there are any. A drive of these tests answers queries with such pages.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import stored
from command_line import uflip

from uflip.benchmark import execute
from uflip.benchmark.plan import plan_pattern
from uflip.benchmark.prepare import AS_IS
from uflip.data.counters import (
    Counter,
    CounterChange,
    CounterSource,
    DriveCounters,
    DriveSummary,
    change_of,
    combine,
)
from uflip.data.summary import Summary
from uflip.device.counters import CounterReader, counter_table
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.report.drive_counters import drive_facts
from uflip.report.html import build_page
from uflip.report.text import render
from uflip.results import Results, summary
from uflip.spec import baseline

OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
UNIT = 512_000
Pages = dict[int, bytes]


def page(size: int, *parts: tuple[int, int, int]) -> bytes:
    """Make a page of (offset, size, value)."""
    content = bytearray(size)
    for offset, length, value in parts:
        content[offset : offset + length] = value.to_bytes(length, "little")
    return bytes(content)


def smart(written: int = 15, temperature_k: int = 314, spare: int = 98, used: int = 0) -> bytes:
    """Make log page 02h; by default that of a real drive (google/ecclesia-machine-management,
    smart_log_page_test.cc), for which nvme-cli prints 41 °C, 98 %, 0 %, 1,044 and 15 units."""
    return page(
        512, (1, 2, temperature_k), (3, 1, spare), (5, 1, used), (32, 16, 1044), (48, 16, written),
        (112, 16, 4), (144, 16, 1),
    )  # fmt: skip


def ocp(written: int, version: int = 3, guid: bytes = OCP_GUID) -> bytes:
    """Make log page C0h."""
    content = page(512, (0, 16, written), (16, 16, 7), (120, 1, 96), (494, 2, version))
    return content[:496] + guid


def items(*each: tuple[int, int, int], begin: int = 0) -> bytes:
    """Make a page of items (id, normalized, raw) of 12 bytes."""
    content = bytearray(512)
    for number, (key, normalized, raw) in enumerate(each):
        at = begin + 12 * number
        content[at], content[at + 3] = key, normalized
        content[at + 5 : at + 11] = raw.to_bytes(6, "little")
    content[511] = -sum(content) % 256
    return bytes(content)


@dataclass
class FakeDrive:
    """Answers queries with pages, which a test can exchange."""

    pages: Pages
    model: str = "DRIVE"
    features: int = 0
    listed: bool = False
    ata: bytes = b""
    group: int = 1
    refusal: str = ""
    allocated: int = 0
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def __call__(
        self, path: str, query: str, number: int, specific: int, size: int
    ) -> tuple[bytes, str]:
        assert Path(path).exists()
        self.asked.append((query, number, specific))
        if self.refusal or (query == "nvme_log" and number and number not in self.pages):
            return b"", self.refusal or "/dev/nvme0n1: NVMe status 0x109: Invalid Log Page"
        answers = {
            "nvme_controller": self._controller,
            "nvme_namespace": lambda: page(4096, (102, 2, self.group)),
            "nvme_log": lambda: self.pages[number] if number else self._list(),
            "ata_identify": self._ata_identity,
            "ata_smart": lambda: self.ata,
        }
        return answers[query]()[: size if query == "nvme_log" else 4096], ""

    def _controller(self) -> bytes:
        identity = bytearray(page(4096, (96, 4, self.features), (261, 1, self.listed << 5),
                                  (280, 16, self.allocated)))  # fmt: skip
        identity[24:64] = self.model.ljust(40).encode()
        identity[64:72] = b"FW1     "
        return bytes(identity)

    def _list(self) -> bytes:
        return b"".join(bytes([number in self.pages, 0, 0, 0]) for number in range(256))

    def _ata_identity(self) -> bytes:
        words = b"FW1".ljust(8) + self.model.encode().ljust(40)
        return bytes(46) + bytes(words[at ^ 1] for at in range(48)) + bytes(418)


@pytest.fixture
def reader(tmp_path: Path) -> Callable[..., CounterReader]:
    """Return a function that makes a reader of a drive, whose disk has a name in sysfs."""

    def make(drive: FakeDrive, disk: str = "nvme0n1", kind: str = "file") -> CounterReader:
        target = tmp_path / "target"
        target.touch()
        # A file is no device, and has the number 0 as one.
        number = target.stat().st_dev if kind == "file" else 0
        sysfs = tmp_path / "sys" / "devices" / disk
        sysfs.mkdir(parents=True)
        links = tmp_path / "sys" / "dev" / "block"
        links.mkdir(parents=True)
        (links / f"{number >> 8}:{number & 255}").symlink_to(sysfs)
        info = stored.device_info(kind, url=f"file:{target}")
        return CounterReader(info, drive, tmp_path / "sys")

    return make


Reader = Callable[..., CounterReader]


def test_smart_log_of_a_real_drive_matches_nvme_cli(reader: Reader) -> None:
    values = reader(FakeDrive({2: smart()})).read().values
    assert values == {
        "smart.temperature_celsius": 41,
        "smart.available_spare_percent": 98,
        "smart.percentage_used": 0,
        "smart.host_bytes_read": 1044 * UNIT,
        "smart.host_bytes_written": 15 * UNIT,
        "smart.power_cycles": 4,
        "smart.unsafe_shutdowns": 1,
        "smart.media_errors": 0,
    }


def test_data_units_match_smartctl(reader: Reader) -> None:
    """smartctl 7.2 on a Samsung PM981a: Data Units Written: 17,586,666 [9.00 TB]."""
    written = reader(FakeDrive({2: smart(17_586_666)})).read().find("host_bytes_written")
    assert written is not None
    assert f"{written.value / 1e12:.2f} TB" == "9.00 TB"


def test_ocp_page_has_physical_bytes(reader: Reader) -> None:
    """Offsets of `struct ocp_smart_extended_log` of nvme-cli."""
    counters = reader(FakeDrive({2: smart(), 0xC0: ocp(123_456_789_012_345)})).read()
    assert counters.values["ocp.physical_bytes_written"] == 123_456_789_012_345
    assert counters.values["ocp.free_blocks_percent"] == 96
    assert all(not source.problem for source in counters.sources if source.id in ("ocp", "smart"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (ocp(1, version=9), "the page has version 9; known are 1 to 6"),
        (ocp(1, guid=bytes(16)), f"the page has another GUID: {'00' * 16}"),
        (ocp(1)[:100], "100 bytes instead of 512"),
    ],
)
def test_page_of_another_kind_is_named_and_not_decoded(
    reader: Reader, content: bytes, problem: str
) -> None:
    counters = reader(FakeDrive({2: smart(), 0xC0: content})).read()
    assert {each.id: each.problem for each in counters.sources}["ocp"] == problem
    assert {each.source for each in counters.counters} == {"smart"}


def test_placement_statistics_are_those_of_the_endurance_group(reader: Reader) -> None:
    """Log page 22h: HBMW, MBMW and MBE, 16 bytes each (`struct nvme_fdp_stats_log`)."""
    statistics = page(64, (0, 16, 1000), (16, 16, 1500), (32, 16, 400))
    drive = FakeDrive({2: smart(), 0x22: statistics}, features=1 << 19 | 1 << 4, group=3)
    values = reader(drive).read().values
    assert [values[f"fdp.{name}_bytes_{what}"] for name, what in (
        ("host", "written"), ("physical", "written"), ("physical", "erased"),
    )] == [1000, 1500, 400]  # fmt: skip
    assert ("nvme_log", 0x22, 3) in drive.asked


def test_media_units_of_an_endurance_group(reader: Reader) -> None:
    """Log page 09h: `struct nvme_endurance_group_log`; 0 means not reported."""
    group = page(512, (3, 1, 100), (5, 1, 2), (64, 16, 10), (80, 16, 25))
    drive = FakeDrive({2: smart(), 9: group}, features=1 << 4)
    values = reader(drive).read().values
    assert values["endurance_group.physical_bytes_written"] == 25 * UNIT
    assert "endurance_group.host_bytes_read" not in values


def test_items_of_intel_are_in_units_of_32_mib(reader: Reader) -> None:
    """nvme-cli, `solidigm-smart.c`: F4h NAND, F5h host; the product specification has the unit."""
    log = items((0xAB, 100, 0), (0xF4, 100, 300), (0xF5, 100, 200))
    counters = reader(FakeDrive({2: smart(), 0xCA: log}, "INTEL SSDPE2KX010T8")).read()
    assert counters.values["intel.physical_bytes_written"] == 300 << 25
    assert counters.values["intel.host_bytes_written"] == 200 << 25


def test_page_of_another_vendor_is_not_read(reader: Reader) -> None:
    drive = FakeDrive({2: smart(), 0xCA: items((0xF4, 100, 300))}, "OTHER")
    assert {each.source for each in reader(drive).read().counters} == {"smart"}
    assert ("nvme_log", 0xCA, 0) not in drive.asked


def test_unknown_pages_are_listed(reader: Reader) -> None:
    drive = FakeDrive({2: smart(), 0xC0: ocp(1), 0xC3: b"", 0xDE: b""}, listed=True)
    counters = reader(drive).read()
    assert [each.name for each in counters.unknown] == ["log page C3h", "log page DEh"]
    assert ("nvme_log", 0xC3, 0) not in drive.asked


def test_refused_page_is_not_asked_for_again(reader: Reader) -> None:
    """Each refusal would add an entry to the error log of the drive."""
    drive = FakeDrive({2: smart()})
    counters = reader(drive)
    counters.read()
    counters.read()
    assert drive.asked.count(("nvme_log", 0xC0, 0)) == 1
    assert drive.asked.count(("nvme_log", 0x02, 0)) == 2


def test_ata_attributes_have_the_units_of_smartmontools(reader: Reader) -> None:
    """smartmontools issue 296, CT1000MX500SSD1: 246 raw 23,996,625,190, "~12.3TB"."""
    attributes = items(
        (12, 100, 9), (194, 61, 39 | 0x0015_0000_0000), (246, 100, 23_996_625_190),
        (247, 100, 1000), (248, 100, 2500), (199, 100, 3), begin=2,
    )  # fmt: skip
    drive = FakeDrive({}, "CT1000MX500SSD1", ata=attributes)
    counters = reader(drive, "sda").read()
    assert counters.drive == "CT1000MX500SSD1 FW1"
    assert f"{counters.values['ata.host_bytes_written'] / 1e12:.1f}TB" == "12.3TB"
    assert counters.values["ata.temperature_celsius"] == 39
    assert [(each.name, each.raw) for each in counters.unknown] == [("attribute 199", 3)]


def test_ata_attributes_of_unknown_model_are_listed_and_not_guessed(reader: Reader) -> None:
    attributes = items((241, 100, 5), (243, 100, 8), begin=2)
    counters = reader(FakeDrive({}, "NEW DRIVE", ata=attributes), "sda").read()
    assert counters.counters == ()
    assert [(each.name, each.raw) for each in counters.unknown] == [
        ("attribute 241", 5), ("attribute 243", 8),
    ]  # fmt: skip


def test_damaged_ata_block_is_refused(reader: Reader) -> None:
    damaged = bytearray(items((241, 100, 5), begin=2))
    damaged[100] ^= 1
    counters = reader(FakeDrive({}, "INTEL SSDSC2KG019T8", ata=bytes(damaged)), "sda").read()
    assert counters.problem == "the SMART data have a wrong checksum"


@pytest.mark.parametrize(
    ("model", "names"),
    [
        # Models of smartmontools' drivedb.h.
        ("INTEL SSDSC2BX200G4", {"host_bytes_written", "physical_bytes_written"}),
        ("INTEL SSDSC2BB960G7", {"host_bytes_written", "physical_bytes_written"}),
        ("SOLIDIGM SSDSC2KB960GZ", {"host_bytes_written", "physical_bytes_written"}),
        ("INTEL SSDSC2KW512G8", {"host_bytes_written", "physical_bytes_written"}),
        ("Micron_5300_MTFDDAK1T9TDS", {"host_page_programs", "background_page_programs"}),
        ("CT120BX500SSD1", {"host_page_programs", "background_page_programs"}),
        ("SanDisk SDSSDA240G", {"host_bytes_written", "physical_bytes_written"}),
        ("Samsung SSD 850 PRO 128GB", {"host_bytes_written"}),
        ("WDC WD40EFRX-68N32N0", set()),
        ("INTEL SSDSA2M080G2GC", set()),
    ],
)
def test_families_are_found_by_model(model: str, names: set[str]) -> None:
    found = [each for each in counter_table().model if re.fullmatch(each.models, model)]
    assert len(found) == bool(names)
    assert names <= {counter.name for each in found for counter in each.counters}


def test_wear_of_emmc_is_the_worse_of_both_types(reader: Reader, tmp_path: Path) -> None:
    """JESD84-B51: 03h is 20 % to 30 % of the life time; PRE_EOL_INFO 01h is normal."""
    counters = reader(FakeDrive({}), "mmcblk0")
    assert "EXT_CSD" in counters.read().problem
    folder = tmp_path / "sys" / "devices" / "mmcblk0" / "device"
    folder.mkdir()
    (folder / "life_time").write_text("0x01 0x03\n")
    (folder / "pre_eol_info").write_text("0x01\n")
    assert counters.read().values == {"emmc.percentage_used": 30, "emmc.pre_end_of_life": 1}


def test_drive_without_permission_has_the_reason(reader: Reader) -> None:
    drive = FakeDrive({})
    drive.refusal = "/dev/nvme0n1: Permission denied; reading the counters of a drive needs root"
    assert reader(drive).read().problem == drive.refusal


def test_file_is_a_part_of_a_drive(reader: Reader) -> None:
    counters = reader(FakeDrive({2: smart()})).read()
    assert counters.shared == "the target is a file on the drive"


@pytest.mark.parametrize(("allocated", "is_part"), [(1 << 40, True), (1 << 30, False), (0, False)])
def test_namespace_that_is_not_the_whole_drive_is_marked(
    reader: Reader, tmp_path: Path, allocated: int, is_part: bool
) -> None:
    """The drive counts what is written to its other namespaces, too."""
    counter_reader = reader(FakeDrive({2: smart()}, allocated=allocated), kind="block")
    (tmp_path / "sys" / "devices" / "nvme0n1" / "size").write_text(str((1 << 30) // 512))
    expected = f"the target is a namespace of {1 << 30} bytes, of {allocated} that are allocated"
    assert counter_reader.read().shared == (expected if is_part else "")


def test_other_devices_are_no_drives() -> None:
    assert "null device" in CounterReader(stored.device_info("null", url="null")).read().problem
    assert CounterReader(stored.device_info("nbd", url="nbd://x/y")).read().counters == ()


def reading(host: int, physical: int | None = None, *others: Counter) -> DriveCounters:
    counters = [Counter("smart.host_bytes_written", host * UNIT, "bytes", UNIT)]
    if physical is not None:
        counters.insert(0, Counter("ocp.physical_bytes_written", physical, "bytes"))
    return DriveCounters(counters=(*counters, *others))


def codes(change: CounterChange) -> list[tuple[str, str]]:
    return [(mark.code, mark.counter.partition(".")[2]) for mark in change.marks]


def test_write_amplification_is_the_quotient_of_differences() -> None:
    change = change_of(reading(1000, 0), reading(2000, 2500 * UNIT), 1000 * UNIT)
    assert change.write_amplification == 2.5
    # One unit of a thousand, and one byte.
    assert change.relative_error == pytest.approx(1 / 1000 + 1 / (2500 * UNIT))
    assert (change.source, change.marks) == ("ocp", ())


def test_page_programs_give_a_write_amplification_without_their_size() -> None:
    """Micron TN-FD-23: (247 + 248) / 247."""

    def at(host: int, background: int) -> DriveCounters:
        return DriveCounters(
            counters=(
                Counter("ata.host_bytes_written", host << 15, "bytes", 512),
                Counter("ata.host_page_programs", host, "pages"),
                Counter("ata.background_page_programs", background, "pages"),
            )
        )

    change = change_of(at(1000, 50), at(3000, 3050), 2000 << 15)
    assert (change.write_amplification, change.unit) == (2.5, "pages")


def test_coarse_counter_gives_no_write_amplification() -> None:
    change = change_of(reading(1000, 0), reading(1010, 30 * UNIT), 10 * UNIT)
    assert change.write_amplification is None
    assert codes(change) == [("too_few_steps", "host_bytes_written")]


def test_counter_that_goes_back_is_marked_and_not_used() -> None:
    change = change_of(reading(1000, 5000), reading(2000, 100), 1000 * UNIT)
    assert (change.write_amplification, change.physical_written) == (None, None)
    assert codes(change) == [("went_back", "physical_bytes_written")]


def test_counter_that_wraps_is_continued() -> None:
    size = 1 << 48
    before = Counter("ata.physical_bytes_written", size - 1000, "bytes", 1, size)
    after = Counter("ata.physical_bytes_written", 2000, "bytes", 1, size)
    host = [Counter("ata.host_bytes_written", at, "bytes") for at in (0, 1500)]
    change = change_of(
        DriveCounters(counters=(before, host[0])), DriveCounters(counters=(after, host[1])), 1500
    )
    assert change.write_amplification == 2
    assert codes(change) == [("wrapped", "physical_bytes_written")]


def test_power_loss_and_other_writers_are_marked() -> None:
    cycles = [Counter("smart.power_cycles", count) for count in (4, 5)]
    change = change_of(
        reading(1000, 0, cycles[0]), reading(3000, 4000 * UNIT, cycles[1]), 1000 * UNIT
    )
    assert codes(change) == [("power_lost", "power_cycles"), ("others_wrote", "host_bytes_written")]


def test_reading_that_fails_during_a_reset_names_the_reason() -> None:
    lost = DriveCounters(problem="/dev/nvme0n1: Resource temporarily unavailable")
    change = change_of(reading(1000, 0), lost, 1000 * UNIT)
    assert {code for code, _ in codes(change)} == {"not_read"}
    assert change.marks[0].detail == lost.problem
    part = DriveCounters(
        sources=(CounterSource("ocp", "OCP", "the page has version 9"),),
        counters=reading(2000).counters,
    )
    (mark,) = change_of(reading(1000, 0), part, 1000 * UNIT).marks
    assert (mark.code, mark.detail) == ("not_read", "the page has version 9")


def test_counter_of_a_new_drive_begins_at_zero(reader: Reader) -> None:
    """A drive that was never written reports 0 data units, which also means not reported."""
    drive = FakeDrive({2: smart(0)})
    counters = reader(drive)
    before = counters.read()
    assert before.find("host_bytes_written") is None
    drive.pages[2] = smart(100)
    change = change_of(before, counters.read(), 100 * UNIT)
    assert (change.host_written, change.marks) == (100 * UNIT, ())


def test_runs_are_combined_by_their_sums() -> None:
    assert combine([]) is None
    runs = [
        change_of(reading(0, 0), reading(100, 100 * UNIT), 100 * UNIT),
        change_of(reading(500, 900 * UNIT), reading(510, 940 * UNIT), 10 * UNIT),
        change_of(reading(510, 940 * UNIT), reading(510, 940 * UNIT), 0),
    ]
    both = combine(runs)
    assert both is not None
    # The second run alone is too short: 10 units.
    assert runs[1].write_amplification is None
    assert both.write_amplification == pytest.approx(140 / 110)
    assert both.after["smart.host_bytes_written"] == 510 * UNIT


def measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readings: Iterator[DriveCounters]
) -> Summary:
    """Measure a file, on a drive that returns these readings: one at first, two for each run."""
    monkeypatch.setattr(Device, "drive_counters", lambda _device: next(readings))
    device = open_device(f"file:{tmp_path / 'file'}", size=1 << 20, buffered=True)
    spec = baseline("SW", io_size=4096, io_count=256, io_ignore=0, target_size=1 << 20)
    plan = plan_pattern(spec, device.info, label="SW", durability="cached")
    with device:
        execute.new_benchmark_run(device, plan, tmp_path / "out", AS_IS).carry_out()
    return summary(Results.load(tmp_path / "out"))


def test_counters_are_stored_with_each_run_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(host: int, physical: int, temperature: int) -> DriveCounters:
        return DriveCounters(
            counters=(
                Counter("fdp.host_bytes_written", host, "bytes"),
                Counter("fdp.physical_bytes_written", physical, "bytes"),
                Counter("smart.temperature_celsius", temperature, "°C"),
            ),
            shared="the target is a file on the drive",
        )

    size = 256 * 4096
    readings = [at(0, 0, 40), at(1000, 2000, 41), at(1000 + size, 2000 + 3 * size, 47)]
    document = measured(tmp_path, monkeypatch, iter(readings))
    drive = document["drive"]
    assert drive is not None
    assert drive.change is not None
    assert drive.change.write_amplification == 3
    (run,) = Results.load(tmp_path / "out").runs
    assert run.meta.drive == drive.change
    assert run.meta.drive.before["fdp.physical_bytes_written"] == 2000
    shown = render(document, full=True)
    page = build_page(document, {})
    for text in ("41 to 47 °C", "3.000", "the target is a file on the drive"):
        assert text in shown
        assert text in page
    assert "implied" not in shown
    assert [each for each in document["warnings"] if each["code"] == "drive_counters"] == []


def test_one_pattern_prints_its_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 64 * 4096
    readings = iter([reading(9, 0), reading(9, 0), reading(2009, 5000 * UNIT)])
    monkeypatch.setattr(Device, "drive_counters", lambda _device: next(readings))
    next(readings)
    options = ("--size", "1MiB", "--buffered", "--pattern", "SW", "--io-size", 4096)
    outcome = uflip("pattern", f"file:{tmp_path / 'file'}", *options, "--io-count", 64, "--json")
    assert outcome.code == 0, outcome.err
    drive = json.loads(outcome.out)["drive"]
    assert drive["write_amplification"] == 2.5
    (mark,) = drive["marks"]
    assert (mark["code"], mark["detail"]) == ("others_wrote", f"{2000 * UNIT - written} bytes")


def test_counter_that_goes_back_becomes_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([reading(9, 9), reading(9, 9), reading(11, 3)])
    document = measured(tmp_path, monkeypatch, readings)
    (doubt,) = (each for each in document["warnings"] if each["code"] == "drive_counters")
    assert "ocp.physical_bytes_written went back" in doubt["message"]


def test_implied_write_amplification_is_a_ratio_of_rates_with_its_label() -> None:
    drive = DriveSummary(DriveCounters(problem="vda is not a drive"), None, 3.25)
    facts = dict(drive_facts({"drive": drive}))  # type: ignore[typeddict-item]
    assert facts["counters"] == "unknown: vda is not a drive"
    assert facts["write amplification, implied"].startswith("3.25 (implied: ")


def test_every_counter_has_a_source_and_a_unit() -> None:
    table = counter_table()
    for each in (*table.source.values(), *table.model):
        assert each.reference
        for counter in each.counters:
            assert counter.unit in ("bytes", "pages", "%", "°C", "")
            ends = counter.offset + counter.size
            if isinstance(size := getattr(each, "size_bytes", None), int):
                assert ends <= size
