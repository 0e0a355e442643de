"""Does written data have the given content, and does verification find every wrong sector?

Compressibility is measured with zlib, duplicates by counting blocks. The write amplification of a
device that compresses or deduplicates is compared with OFC's equation (2) at the spare factor that
its smaller data leaves.
"""

import json
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from command_line import uflip
from nbd import serving
from test_nbd_device import URL, fake_server

import uflip as package
from uflip.benchmark.fio_job_file import read_job_file
from uflip.device.catalogue import with_power_loss
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UsageError
from uflip.microbench.iq import content
from uflip.models import relocation
from uflip.models import write_amplification as theory
from uflip.report.findings import finding
from uflip.result_views import summary
from uflip.results import Results
from uflip.results.fio_job import JobSettings, _sections
from uflip.spec import Mix, baseline, basic, mix, parallel

MIB = 1 << 20
BLOCK = 4096
# One die without any time but that of its cells; 16 KiB pages of 32 mapping units.
BLOCKS, PAGES, UNIT = 128, 32, 512
SPARE = 0.15
REDUCING = (
    f"sim:demo?channels=1&dies_per_channel=1&blocks_per_die={BLOCKS}&pages_per_block={PAGES}"
    f"&page_bytes=16384&mapping_unit_bytes={UNIT}&gc=cyclic&state=sequential"
    f"&spare_factor={SPARE}&write_cache_bytes=0"
)


def write_file(path: Path, **shares: int) -> bytes:
    spec = basic("write", "sequential", io_size="64k", io_count=64, **shares)
    with open_device(f"file:{path}", writable=True, size=4 * MIB, buffered=True) as device:
        device.run(spec)
    return path.read_bytes()


def blocks_of(data: bytes) -> list[bytes]:
    return [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]


def removed(data: bytes) -> float:
    """Return the share of the data that zlib removes, block by block."""
    return 1 - sum(len(zlib.compress(block)) for block in blocks_of(data)) / len(data)


def different(data: bytes) -> float:
    """Return the share of different blocks."""
    blocks = blocks_of(data)
    return len(set(blocks)) / len(blocks)


@pytest.mark.parametrize("percent", [0, 25, 50, 75, 90])
def test_zlib_removes_the_given_share(workdir: Path, percent: int) -> None:
    data = write_file(workdir / "data.bin", compress_percent=percent)
    assert removed(data) == pytest.approx(percent / 100, abs=0.04)


@pytest.mark.parametrize("percent", [0, 50, 90])
def test_given_share_of_blocks_repeats_others(workdir: Path, percent: int) -> None:
    data = write_file(workdir / "data.bin", duplicate_percent=percent)
    # Four standard deviations of 1,024 draws; and 32 contents that repeat.
    assert different(data) == pytest.approx(1 - percent / 100, abs=4 * 0.5 / 32 + 32 / 1024)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    "shares",
    [
        {"compress_percent": 25}, {"compress_percent": 75}, {"duplicate_percent": 25},
        {"duplicate_percent": 75},
    ],
)  # fmt: skip
def test_exported_job_of_fio_writes_the_same_kind_of_data(
    workdir: Path, shares: dict[str, int]
) -> None:
    spec = basic(
        "write", "sequential", io_size="64k", io_count=64, io_ignore=0, io_shift=0, target_offset=0,
        target_size=4 * MIB, **shares,
    )  # fmt: skip
    job = "\n".join(_sections(spec, "job", JobSettings("cached", is_polled=False)))
    (workdir / "job.fio").write_text(f"[global]\nfilename=fio.bin\nthread=1\n{job}\n")
    subprocess.run(["fio", "job.fio"], check=True, capture_output=True)
    theirs, ours = (workdir / "fio.bin").read_bytes(), write_file(workdir / "our.bin", **shares)
    assert removed(ours) == pytest.approx(removed(theirs), abs=0.05)
    # Their blocks repeat the one before, ours one of 32.
    assert different(ours) == pytest.approx(different(theirs), abs=32 / 1024 + 0.06)


def test_job_of_fio_determines_the_content(workdir: Path) -> None:
    text = "[job]\nrw=randrw\nsize=1m\nbuffer_compress_percentage=40\ndedupe_percentage=20\n"
    (workdir / "job.fio").write_text(text)
    (spec,) = read_job_file(workdir / "job.fio", lambda: 1 << 30)
    assert isinstance(spec, Mix)
    assert (spec.first.compress_percent, spec.second.compress_percent) == (None, 40)
    assert spec.second.duplicate_percent == 20


def reduced_amplification(url: str, spare_factor: float, **shares: int) -> tuple[float, float]:
    """Return the programmed units per written unit in steady state, and that of equation (2)."""
    device = open_device(url, writable=True)
    spec = baseline("RW", io_size=BLOCK, **shares)
    ios = device.info.capacity_bytes // BLOCK
    for seed in range(3):
        device.apply(spec.but(io_count=2 * ios, seed=seed + 10))
    counters = device.apply(spec.but(io_count=4 * ios, seed=20))
    host, programmed = counters["host_pages_written"], counters["pages_programmed"]
    pages = relocation.relocated_pages_simplified(
        spare_factor=spare_factor, pages_per_block=PAGES * 16384 // UNIT
    )
    share = 1 - pages / (PAGES * 16384 / UNIT)
    return programmed / host, 1 / share


def pool_spare(stored: float) -> float:
    """Return the spare factor without the block kept free and the open one."""
    logical = round(BLOCKS * PAGES * 16384 * (1 - SPARE) // MIB * MIB / UNIT)
    return theory.pool_spare_factor(
        physical_blocks=BLOCKS,
        pages_per_block=PAGES * 16384 // UNIT,
        logical_pages=round(logical * stored),
        held_blocks=2,
    )


@pytest.mark.parametrize("percent", [0, 25, 50, 75])
def test_compression_is_spare_space_of_equation_2(percent: int) -> None:
    """A share c of the data on flash leaves the spare factor 1 - c (1 - A)."""
    stored = 1 - percent / 100
    measured, closed_form = reduced_amplification(
        f"{REDUCING}&compression_unit_bytes={BLOCK}", pool_spare(stored), compress_percent=percent
    )
    assert measured == pytest.approx(stored * closed_form, rel=0.03)


@pytest.mark.parametrize("percent", [0, 40, 80])
def test_duplicates_are_spare_space_of_equation_2(percent: int) -> None:
    stored = 1 - percent / 100
    url = f"{REDUCING.replace(f'mapping_unit_bytes={UNIT}', 'mapping_unit_bytes=4096')}"
    device_url = f"{url}&deduplicates=true"
    device = open_device(device_url, writable=True)
    spec = baseline("RW", io_size=BLOCK, duplicate_percent=percent)
    ios = device.info.capacity_bytes // BLOCK
    device.apply(spec.but(io_count=6 * ios, seed=10))
    counters = device.apply(spec.but(io_count=4 * ios, seed=20))
    pages = PAGES * 4
    spare = theory.pool_spare_factor(
        physical_blocks=BLOCKS,
        pages_per_block=pages,
        logical_pages=round(ios * stored),
        held_blocks=2,
    )
    valid = relocation.relocated_pages_simplified(spare_factor=spare, pages_per_block=pages)
    expected = stored / (1 - valid / pages)
    measured = counters["pages_programmed"] / counters["host_pages_written"]
    assert measured == pytest.approx(expected, rel=0.03)


def test_device_without_the_keys_ignores_the_content() -> None:
    url = "sim:demo?blocks_per_die=64"
    plain = package.pattern(url, "RW", io_count=300)
    packed = package.pattern(url, "RW", io_count=300, compress_percent=90, duplicate_percent=90)
    assert plain.mean == packed.mean


def test_compressed_writes_are_faster() -> None:
    url = f"{REDUCING}&compression_unit_bytes={BLOCK}"
    plain, packed = (
        package.pattern(url, "RW", io_size=BLOCK, io_count=3000, compress_percent=percent)
        for percent in (0, 75)
    )
    assert packed.mean < 0.6 * plain.mean


# Verification.


@pytest.mark.parametrize(
    "url",
    [
        "sim:demo?blocks_per_die=64",
        "sim:fast-1gb?log_blocks=16",
        f"{REDUCING}&compression_unit_bytes={BLOCK}&deduplicates=true",
    ],
)
def test_simulated_devices_hold_what_was_written(url: str) -> None:
    shares = {"compress_percent": 60, "duplicate_percent": 30}
    trace = package.pattern(
        url, "RW", io_size=BLOCK, io_count=5000, queue_depth=4, verify=True, **shares
    )
    assert trace.verified_sectors is not None
    assert trace.verified_sectors > 5000


def test_silent_error_of_a_simulated_device_is_found() -> None:
    url = "sim:demo?blocks_per_die=64&silent_errors_per_million=2000"
    with pytest.raises(DeviceError) as caught:
        package.pattern(url, "RW", io_count=2000, verify=True)
    assert "sectors differ: byte" in caught.value.got
    assert "found damaged data" in caught.value.got
    # Nothing else finds it.
    package.pattern(with_power_loss(url), "RW", io_count=2000)


@pytest.mark.parametrize("depth", [1, 8])
def test_file_holds_what_was_written(workdir: Path, depth: int) -> None:
    trace = package.pattern(
        "file:data.bin", "RW", io_size=BLOCK, io_count=500, size=MIB, buffered=True,
        queue_depth=depth, verify=True, compress_percent=40, duplicate_percent=20,
    )  # fmt: skip
    written = {int(each) for each in memoryview(trace.column("offset_bytes"))}
    assert trace.verified_sectors == len(written) * BLOCK // 512


def test_processes_and_mixes_are_verified(workdir: Path) -> None:
    writes = baseline("RW", io_size=BLOCK, target_size=MIB, io_count=200)
    reads = baseline("SR", io_size=BLOCK, target_size=MIB)
    for spec in (
        writes.but(parallel_degree=4),
        mix(reads, writes.but(io_count=None), 2, io_count=100),
        parallel(writes, writes.but(io_size=8192)),
    ):
        trace = package.pattern("file:data.bin", spec, size=MIB, buffered=True, verify=True)
        assert trace.verified_sectors


def test_flipped_byte_of_a_file_is_found(workdir: Path) -> None:
    """A byte of the first write flips while the run waits before its last ones."""
    path = workdir / "data.bin"
    spec = basic("write", "sequential", io_size=BLOCK, io_count=8, time="pause", pause="100ms")

    def flip(done: int, _total: int, _last_ns: int) -> None:
        if 1 <= done < 8:
            with path.open("r+b") as file:
                file.seek(1000)
                file.write(b"\x00\x01\x02\x03")

    with (
        open_device(f"file:{path}", writable=True, size=MIB, buffered=True) as device,
        pytest.raises(DeviceError) as caught,
    ):
        device.run(spec, flip, verify=True)
    assert caught.value.got.startswith("1 of 64 sectors differ: byte 512: expected stamp ")
    assert "found damaged or foreign data" in caught.value.got


def test_lost_write_shows_the_stamp_of_the_earlier_run(workdir: Path) -> None:
    path = workdir / "data.bin"
    spec = basic("write", "sequential", io_size=BLOCK, io_count=8, time="pause", pause="100ms")
    with open_device(f"file:{path}", writable=True, size=MIB, buffered=True) as device:
        device.run(spec.but(time="consecutive", pause=None), verify=True)
        before = path.read_bytes()[:BLOCK]

        def lose(done: int, _total: int, _last_ns: int) -> None:
            if 1 <= done < 8:
                with path.open("r+b") as file:
                    file.write(before)

        with pytest.raises(DeviceError) as caught:
            device.run(spec, lose, verify=True)
    assert caught.value.got.startswith("8 of 64 sectors differ")
    assert "(sector 0, write 0) of an earlier run" in caught.value.got


def test_served_device_holds_what_was_written(workdir: Path) -> None:
    with serving("sim:demo?blocks_per_die=64"):
        options = ("--pattern", "RW", "--io-count", "50", "--verify", "--destroy", URL, "--json")
        outcome = uflip("pattern", URL, *options, "--compress-percent", "50")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["verified_sectors"] > 50 * 64 // 2


def test_server_that_stores_nothing_is_found(workdir: Path) -> None:
    with fake_server(MIB):
        options = ("--pattern", "RW", "--io-count", "5", "--verify", "--destroy", URL, "-q")
        outcome = uflip("pattern", URL, *options)
    assert outcome.code == 4, outcome
    assert "Data that was read back differs from what was written" in outcome.err
    assert "found zeros" in outcome.err


def test_what_cannot_be_verified_is_refused(workdir: Path) -> None:
    for arguments, words in (
        (("null", "--pattern", "RW"), "stores no data"),
        (("sim:demo", "--pattern", "RR"), "writes nothing"),
        (("sim:demo", "--pattern", "RW", "--until-converged"), "until convergence"),
        (("sim:zns", "--mode", "append", "--location", "zones"), "cannot have [power_loss]"),
        (("sim:fast-1gb", "--preset", "myers-sinclair"), "preset"),
        (
            ("file:x.bin", "--size", "1MiB", "--buffered", "--data", "zeros", "--pattern", "RW"),
            "given twice",
        ),
    ):
        outcome = uflip("pattern", *arguments, "--verify", "-q")
        assert outcome.code in (1, 2), outcome
        assert words in outcome.err, outcome.err


def test_contents_of_a_run_must_agree() -> None:
    one = baseline("RW", compress_percent=50)
    with pytest.raises(UsageError, match="one content"):
        package.pattern("sim:demo", parallel(one, one.but(compress_percent=60)))
    with pytest.raises(UsageError, match="no meaning"):
        package.pattern("sim:demo", "RR", compress_percent=50)


# Open-channel devices (FOX's comparison of data that was read back).

DFC = "sim:dfc?blocks_per_plane=8&pages_per_block=64"
READ_BACK = ("--pages", "64", "--luns", "2", "--mix", "WR", "--verify")


def test_open_channel_device_returns_what_was_written() -> None:
    outcome = uflip("oc", "pattern", DFC, *READ_BACK, "--repeat", "3", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["failures"] == {}


def test_silent_error_of_an_open_channel_device_is_found() -> None:
    wrong = f"{DFC}&silent_errors_per_million=20000"
    outcome = uflip("oc", "pattern", wrong, *READ_BACK, "--json")
    assert outcome.code == 4, outcome
    # 64 pages of 8 sectors in two LUNs: about 20 of 1,024 differ.
    assert 5 <= json.loads(outcome.out)["failures"]["mismatch"] <= 45
    text = uflip("oc", "pattern", wrong, *READ_BACK)
    assert text.code == 4
    assert "Data that was read back differs" in text.err
    unchecked = uflip("oc", "pattern", wrong, *READ_BACK[:-1], "--json")
    assert unchecked.code == 0
    assert json.loads(unchecked.out)["failures"] == {}


def test_error_of_the_device_is_no_difference_of_data() -> None:
    """Sectors that the ECC cannot correct have a status of their own."""
    worn = f"{DFC}&erases=12000"
    failures = json.loads(uflip("oc", "pattern", worn, *READ_BACK, "--json").out)["failures"]
    assert failures.keys() <= {"uncorrectable", "program_failed", "erase_failed", "unwritten"}


# The micro-benchmark.


@pytest.mark.parametrize(
    ("keys", "compresses", "deduplicates"),
    [
        ("", False, False),
        (f"&compression_unit_bytes={BLOCK}", True, False),
        ("&deduplicates=true", False, True),
    ],
)
def test_micro_benchmark_finds_what_the_device_does(
    workdir: Path, keys: str, compresses: bool, deduplicates: bool
) -> None:
    url = f"{REDUCING}{keys}".replace("state=sequential", "state=random")
    package.run(url, "r", suite="iq", only=["content"], scale="quick")
    sentences = finding("content", summary(Results.load(Path("r"))))
    assert ("The device compresses data" in sentences) == compresses, sentences
    assert ("The device deduplicates data" in sentences) == deduplicates, sentences
    assert sentences.count("shows no sign") == 2 - compresses - deduplicates, sentences


def test_decision_needs_an_effect_beyond_the_noise() -> None:
    assert content.decide(100, 250, 0.02) is True
    assert content.decide(100, 103, 0.02) is False
    assert content.decide(100, 130, 0.2) is None
    assert content.decide(100, 90, 0.5) is None
