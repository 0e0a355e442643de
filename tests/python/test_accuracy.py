"""Do long runs show the behaviour of a device, and are claims and headlines compared with them?"""

import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import uflip
from uflip.accuracy import long_run
from uflip.accuracy.__main__ import folder_name
from uflip.accuracy.claims import ClaimComparison, Key, compare, key_of, long_run_specs
from uflip.accuracy.long_run import LongRun, LongRunSpec, absorbed_bytes
from uflip.accuracy.table import DEVICES, SCALES, TableEntry, format_table, results, rows
from uflip.benchmark.interference import REST_NS
from uflip.data.spec import typed_spec
from uflip.data.summary import Summary
from uflip.device.resolve import resolve
from uflip.results import Results, summary
from uflip.results.startup_check import mark_of
from uflip.spec import Mix, Spec, baseline, mix

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accuracy.md"
MARK = r"<!-- python -m uflip.accuracy (.*?) -->"
SMALL = "sim:demo?blocks_per_die=128"
CACHED = SMALL + "&write_cache_bytes=8388608"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _private_device_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UFLIP_CACHE_DIR", str(tmp_path / "devices"))


def long_run_spec(url: str, spec: Spec) -> LongRunSpec:
    return LongRunSpec(url, None, 10**9, resolve(spec, uflip.inspect_device(url)).spec)


def test_absorbed_bytes_match_the_profile_description() -> None:
    # The description of the profile: "an SLC cache of 0.19 to 2.2 GiB"; 4 MiB of cache; and spare
    # space of 0.1171 of all flash.
    qlc = uflip.inspect_device("sim:qlc-nvme")
    flash = qlc.capacity_bytes / (1 - 0.1171)
    assert absorbed_bytes(qlc) == pytest.approx(
        4 * MIB + 0.1171 * flash + 2.2 * 1024 * MIB, rel=0.02
    )


def test_long_reads_take_the_time_of_the_profile() -> None:
    # A page of 4 KiB of the demo: command 20 µs, sense 50 µs, channel 166 MB/s, link 280 MB/s.
    by_hand_us = 20 + 50 + (4096 + 224) / 166 + 4096 / 280
    run = long_run.long_run(long_run_spec(SMALL, baseline("RR", io_size=4096, io_count=100)))
    assert run.settled
    assert run.mean_ns / 1e3 == pytest.approx(by_hand_us, rel=0.05)
    assert run.ios_per_s == pytest.approx(1e9 / run.mean_ns, rel=0.01)


def test_long_run_outgrows_the_write_cache() -> None:
    spec = baseline("RW", io_size=4096, io_count=500)
    short = uflip.open_device(CACHED, writable=True).run(spec)
    cached_ns = float(memoryview(short.column("response_time_ns"))[-1])
    long = long_run.long_run(long_run_spec(CACHED, spec))
    assert long.settled
    assert long.bytes_written > 2 * 8 * MIB
    # Each write takes at least one program (300 µs) on one of eight dies.
    assert long.mean_ns > max(5 * cached_ns, 300_000 / 8)


def test_patterns_are_lengthened_within_their_target() -> None:
    info = uflip.inspect_device(SMALL)
    once = baseline("SW", io_size=4096, io_count=100, target_size=100 * 4096, target_offset=MIB)
    longer = long_run._lengthen(once, 1000, info)
    assert (longer.io_count, longer.target_size, longer.target_offset) == (1000, 1000 * 4096, 0)
    wrapping = once.but(target_size=50 * 4096)
    assert long_run._lengthen(wrapping, 1000, info).target_size == 50 * 4096
    half = info.capacity_bytes // 2 // 4096 * 4096
    first = baseline("SR", io_size=4096, target_offset=0, target_size=400 * 4096)
    second = baseline("RW", io_size=4096, target_offset=half, target_size=half)
    both = long_run._lengthen(mix(first, second, 4, io_count=100), 5000, info)
    assert isinstance(both, Mix)
    assert (both.io_count, both.first.target_size) == (1000, 4000 * 4096)
    assert both.second.target_size == half


def test_long_run_is_cached_by_its_spec() -> None:
    spec = long_run_spec(SMALL, baseline("RR", io_size=4096, io_count=100))
    first = long_run.long_run(spec)
    # Neither seed nor length is part of the cache key.
    again = long_run_spec(SMALL, baseline("RR", io_size=4096, io_count=200, seed=5))
    assert again.name == spec.name
    assert long_run.long_run(again) == first


def test_reads_do_not_wait_for_work_of_the_state(tmp_path: Path) -> None:
    # Idle, this device collects up to 40 of the 45 spare blocks of each die: for more than 5 s.
    url = "sim:dftl?blocks_per_die=301&idle_free_blocks=40"
    entry = TableEntry(url, "uflip", "quick", 1, tmp_path / "result", ("baseline",))
    (folder,) = results([entry])
    document = summary(Results.load(folder))
    assert Results.load(folder).runs[0].meta.pause_ns > REST_NS
    (random_reads,) = (run for run in document["baselines"] if run["pattern"] == "RR")
    assert random_reads["together"]["converged"]
    spec = long_run_specs(document)[key_of("baseline", random_reads)]
    long = long_run.long_run(spec)
    assert random_reads["statistics"] is not None
    assert random_reads["statistics"]["mean_ns"] == pytest.approx(long.mean_ns, rel=0.05)
    # The long run of reads is as quick from its begin: nothing is left to collect.
    assert long.high_ns < 1.05 * long.low_ns


def test_scan_that_finds_map_entries_in_memory_is_marked(tmp_path: Path) -> None:
    # 300,000 bytes hold 37,500 of 130,816 entries. In the long run a scan evicts them unread.
    url = "sim:dftl?blocks_per_die=301&mapping_cache_bytes=300000"
    entry = TableEntry(url, "uflip", "quick", 1, tmp_path / "result", ("baseline",))
    document = summary(Results.load(*results([entry])))
    scan, random_reads = (
        next(run for run in document["baselines"] if run["pattern"] == pattern)
        for pattern in ("SR", "RR")
    )
    assert mark_of(scan) == "inside_startup"
    assert mark_of(random_reads) is None
    for run, longer in ((scan, 1.11), (random_reads, 1.01)):
        assert run["statistics"] is not None
        long = long_run.long_run(long_run_spec(url, typed_spec(run["spec"])))
        assert long.mean_ns / run["statistics"]["mean_ns"] == pytest.approx(longer, abs=0.03)


def test_single_place_of_few_addresses_makes_no_claim(document: Summary) -> None:
    (run,) = (
        run
        for run in document["micro_benchmarks"]["locality"]
        if run["pattern"] == "SR" and run["value"] == 512 << 10
    )
    assert run["together"]["converged"] is False
    assert all("few_places" in (each["reasons"] or ()) for each in run["repetitions"])
    device = uflip.open_device(SMALL, writable=True)
    spec = baseline("SR", io_size=32 << 10, io_count=256, target_size=512 << 10)
    means = [
        np.mean(device.run(spec.but(target_offset=place * 4 * MIB)).column("response_time_ns"))
        for place in range(50)
    ]
    # Fewer than 98 of 100 such means are within 5 % of that of all places.
    assert 2.33 * np.std(means) > 0.05 * np.mean(means)


def long_run_result(mean_ns: float, *, settled: bool = True) -> LongRun:
    return LongRun(mean_ns, 1e9 / mean_ns, mean_ns / 2, mean_ns, 1, 0, settled)


def confirming_long_runs(document: Summary) -> dict[Key, LongRun]:
    """Return long runs that have the means of a summary."""
    return {
        key_of(name, run): long_run_result(run["statistics"]["mean_ns"])
        for name, runs in (
            ("baseline", document["baselines"]),
            *document["micro_benchmarks"].items(),
        )
        for run in runs
        if run["statistics"] is not None
    }


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("accuracy") / "result"
    entry = TableEntry(SMALL, "uflip", "quick", 1, folder, ("baseline", "order", "locality"))
    assert results([entry]) == [folder]
    return summary(Results.load(folder))


def test_claims_and_headlines_are_compared_with_long_runs(document: Summary) -> None:
    specs = long_run_specs(document)
    long_runs = confirming_long_runs(document)
    exact = compare(document, long_runs)
    assert exact.claims
    assert not exact.claims_off
    assert not exact.headlines_off
    # There is a long run for every claim and every headline.
    assert {*specs} <= {*long_runs}
    # A claim that is 20 % too low is off; where the mean never settles it is within the range.
    worse = {key: long_run_result(1.25 * each.mean_ns) for key, each in long_runs.items()}
    assert len(compare(document, worse).claims_off) == len(exact.claims)
    drifting = {
        key: long_run_result(1.25 * each.mean_ns, settled=False) for key, each in long_runs.items()
    }
    assert not compare(document, drifting).claims_off


@pytest.mark.parametrize(
    ("reasons", "keeps"),
    [
        (["free_space_left"], True),
        (["free_space_left", "inside_startup"], False),
        (["inside_startup"], False),
        (["interval_too_wide"], False),
        ([], False),
    ],
)
def test_headline_without_mark_has_long_run(
    document: Summary, reasons: list[str], keeps: bool
) -> None:
    changed = deepcopy(document)
    run = next(each for each in changed["baselines"] if each["pattern"] == "RW")
    run["together"]["converged"] = False
    for each in run["repetitions"]:
        each["reasons"] = reasons
    assert (key_of("baseline", run) in long_run_specs(changed)) is keeps
    headlines = compare(changed, confirming_long_runs(changed)).headlines
    (headline,) = (each for each in headlines if each.name == "baseline RW")
    assert set(headline.marks) == (set() if keeps else {"not_converged", *reasons})


def test_claim_is_off_beyond_the_tolerance() -> None:
    off = ClaimComparison("baseline RW", "1 ms", "2 ms", 0.5)
    assert off.is_off(0.15)
    assert not ClaimComparison("baseline RW", "1.1 ms", "1 ms", 1.1).is_off(0.15)
    assert ClaimComparison("pause", "none", "found", None).is_off(0.15)


def test_device_of_any_length_has_a_folder_of_its_own() -> None:
    devices = [f"{SMALL}&seed={'0' * 300}{seed}" for seed in (1, 2)]
    names = {folder_name(each, "uflip", "quick") for each in (*devices, SMALL)}
    assert len(names) == 3
    assert max(map(len, names)) < 128


def test_part_of_the_accuracy_table_is_reproduced(tmp_path: Path) -> None:
    entry = TableEntry(SMALL, "uflip", "quick", 1, tmp_path / "result", ("baseline", "order"))
    (row,) = rows(results([entry]))
    assert (row.device, row.scale) == (SMALL, "quick")
    assert len(row.accuracy.claims) >= 5
    reads = [each for each in row.accuracy.claims if " SR " in each.name or " RR " in each.name]
    assert reads
    assert not any(each.is_off(0.10) for each in reads)
    assert f"| {SMALL} | quick | {len(row.accuracy.claims)} |" in format_table([row], 3)


@pytest.mark.parametrize("scale", SCALES)
def test_accuracy_page_stays_within_its_limits(scale: str) -> None:
    tables = re.findall(MARK + r"\n(.*?)\n<!-- end -->", PAGE.read_text(encoding="utf-8"), re.S)
    ((command, text),) = (each for each in tables if f"--scale {scale}" in each[0])
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    measured = [row for row in table if len(row) == 9 and row[0].startswith("sim:")]
    named = [word for word in command.split() if word.startswith("sim:")] or [*DEVICES]
    assert [row[:2] for row in measured] == [[device, scale] for device in named]
    for row in measured:
        claims, off, headlines, unmarked = (int(row[column]) for column in (2, 3, 5, 6))
        assert headlines > 0
        assert row[4] == f"{off / claims:.1%}"
        assert unmarked == 0
    claims, off = (sum(int(row[column]) for row in measured) for column in (2, 3))
    assert claims >= 400
    assert off <= 0.02 * claims
