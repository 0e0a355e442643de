"""Do long runs show the behaviour of a device, and are claims and headlines compared with them?"""

import re
from pathlib import Path

import pytest

import uflip
from uflip.accuracy import long_run
from uflip.accuracy.claims import ClaimComparison, compare, key_of, long_run_specs
from uflip.accuracy.long_run import LongRun, LongRunSpec, absorbed_bytes
from uflip.accuracy.table import DEVICES, TableEntry, format_table, results, rows
from uflip.data.summary import Summary
from uflip.device.resolve import resolve
from uflip.results import Results, summary
from uflip.spec import Mix, Spec, baseline, mix

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accuracy.md"
MARK = r"<!-- python -m uflip.accuracy (.*?) -->"
SMALL = "sim:demo?blocks_per_die=128"
CACHED = SMALL + "&write_cache_bytes=8388608"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UFLIP_CACHE_DIR", str(tmp_path / "devices"))


def question(url: str, spec: Spec) -> LongRunSpec:
    return LongRunSpec(url, None, 10**9, resolve(spec, uflip.inspect_device(url)).spec)


def test_what_a_device_takes_in_advance_is_what_its_profile_describes() -> None:
    # The description of the profile: "an SLC cache of 0.19 to 2.2 GiB"; 4 MiB of cache; and spare
    # space of 0.1171 of all flash.
    qlc = uflip.inspect_device("sim:qlc-nvme")
    flash = qlc.capacity_bytes / (1 - 0.1171)
    assert absorbed_bytes(qlc) == pytest.approx(
        4 * MIB + 0.1171 * flash + 2.2 * 1024 * MIB, rel=0.02
    )


def test_a_long_run_of_reads_takes_what_the_profile_says() -> None:
    # A page of 4 KiB of the demo: command 20 µs, sense 50 µs, channel 166 MB/s, link 280 MB/s.
    by_hand_us = 20 + 50 + (4096 + 224) / 166 + 4096 / 280
    found = long_run.long_run(question(SMALL, baseline("RR", io_size=4096, io_count=100)))
    assert found.settled
    assert found.mean_ns / 1e3 == pytest.approx(by_hand_us, rel=0.05)
    assert found.ios_per_s == pytest.approx(1e9 / found.mean_ns, rel=0.01)


def test_a_long_run_leaves_the_write_cache_that_a_short_one_stays_in() -> None:
    spec = baseline("RW", io_size=4096, io_count=500)
    short = uflip.open_device(CACHED, writable=True).run(spec)
    cached_ns = float(memoryview(short.column("response_time_ns"))[-1])
    found = long_run.long_run(question(CACHED, spec))
    assert found.settled
    assert found.bytes_written > 2 * 8 * MIB
    # One program (300 µs) on one of eight dies for each write, at least.
    assert found.mean_ns > max(5 * cached_ns, 300_000 / 8)


def test_patterns_are_lengthened_over_the_device_or_within_their_space() -> None:
    info = uflip.inspect_device(SMALL)
    once = baseline("SW", io_size=4096, io_count=100, target_size=100 * 4096, target_offset=MIB)
    longer = long_run._lengthened(once, 1000, info)
    assert (longer.io_count, longer.target_size, longer.target_offset) == (1000, 1000 * 4096, 0)
    round_and_round = once.but(target_size=50 * 4096)
    assert long_run._lengthened(round_and_round, 1000, info).target_size == 50 * 4096
    half = info.capacity_bytes // 2 // 4096 * 4096
    first = baseline("SR", io_size=4096, target_offset=0, target_size=400 * 4096)
    second = baseline("RW", io_size=4096, target_offset=half, target_size=half)
    both = long_run._lengthened(mix(first, second, 4, io_count=100), 5000, info)
    assert isinstance(both, Mix)
    assert (both.io_count, both.first.target_size) == (1000, 4000 * 4096)
    assert both.second.target_size == half


def test_a_long_run_is_asked_for_once() -> None:
    asked = question(SMALL, baseline("RR", io_size=4096, io_count=100))
    first = long_run.long_run(asked)
    # Neither its seed nor its length is a part of the question.
    again = question(SMALL, baseline("RR", io_size=4096, io_count=200, seed=5))
    assert again.name == asked.name
    assert long_run.long_run(again) == first


def answer(mean_ns: float, *, settled: bool = True) -> LongRun:
    return LongRun(mean_ns, 1e9 / mean_ns, mean_ns / 2, mean_ns, 1, 0, settled)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("accuracy") / "result"
    wanted = TableEntry(SMALL, "uflip", "quick", 1, folder, ("baseline", "order", "locality"))
    assert results([wanted]) == [folder]
    return summary(Results.load(folder))


def test_claims_and_headlines_are_held_against_long_runs(document: Summary) -> None:
    asked = long_run_specs(document)
    answers = {
        key_of(name, run): answer(run["statistics"]["mean_ns"])
        for name, runs in (
            ("baseline", document["baselines"]),
            *document["micro_benchmarks"].items(),
        )
        for run in runs
        if run["statistics"] is not None
    }
    exact = compare(document, answers)
    assert exact.claims
    assert not exact.claims_off
    assert not exact.headlines_off
    # Every claim and every headline is asked about.
    assert {*asked} <= {*answers}
    # A claim that is 20 % too low is off; where the mean never settles it is within the range.
    worse = {key: answer(1.25 * each.mean_ns) for key, each in answers.items()}
    assert len(compare(document, worse).claims_off) == len(exact.claims)
    drifting = {key: answer(1.25 * each.mean_ns, settled=False) for key, each in answers.items()}
    assert not compare(document, drifting).claims_off


def test_a_headline_that_is_marked_is_no_offender() -> None:
    off = ClaimComparison("baseline RW", "1 ms", "2 ms", 0.5)
    assert off.is_off(0.15)
    assert not ClaimComparison("baseline RW", "1.1 ms", "1 ms", 1.1).is_off(0.15)
    assert ClaimComparison("pause", "none", "found", None).is_off(0.15)


def test_a_part_of_the_table_comes_out_again(tmp_path: Path) -> None:
    wanted = TableEntry(SMALL, "uflip", "quick", 1, tmp_path / "result", ("baseline", "order"))
    (row,) = rows(results([wanted]))
    assert (row.device, row.scale) == (SMALL, "quick")
    assert len(row.accuracy.claims) >= 5
    reads = [each for each in row.accuracy.claims if " SR " in each.name or " RR " in each.name]
    assert reads
    assert not any(each.is_off(0.10) for each in reads)
    assert f"| {SMALL} | quick | {len(row.accuracy.claims)} |" in format_table([row], 3)


def test_the_page_keeps_the_limits_of_claims_and_headlines() -> None:
    found = re.search(MARK + r"\n(.*?)\n<!-- end -->", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    command = found[1].split()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[2].splitlines()]
    measured = [row for row in table if len(row) == 9 and row[0].startswith("sim:")]
    named = [word for word in command if word.startswith("sim:")] or [*DEVICES]
    assert [row[0] for row in measured] == named
    for row in measured:
        claims, off, headlines, unmarked = (int(row[column]) for column in (2, 3, 5, 6))
        assert headlines > 0
        assert row[4] == f"{off / claims:.1%}"
        assert unmarked == 0
    claims, off = (sum(int(row[column]) for row in measured) for column in (2, 3))
    assert claims >= 400
    assert off <= 0.02 * claims
