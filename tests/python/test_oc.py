"""uFLIP-OC: jobs over physical addresses, the four micro-benchmarks, results and refusals.

Expected sequences are nested loops as the paper's Table 1 prints them; the rules of NAND themselves
are tested in crates/sim/tests/open_channel/mod.rs.
"""

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import uflip
from msgspec import structs

from uflip import _native
from uflip.data.spec import Job
from uflip.errors import RefusedError, UsageError
from uflip.microbench import micro_benchmarks_for
from uflip.microbench.open_channel import oc3
from uflip.microbench.open_channel.jobs import SCALES, JobScope, Scale
from uflip.microbench.open_channel.oc0 import MIXES
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.series import READ, WRITE, degrees
from uflip.oc import FlashDevice, ResponseSeries, mb_per_s, open_flash_device
from uflip.oc.benchmark import document, layout, measure, times_summary
from uflip.oc.contract import NOT_MEASURED, VERDICTS, evaluate_rules, write_variance
from uflip.oc.session import Session, check_unused, choose_sacrifice
from uflip.profiles import profile_sources
from uflip.reproduce import oc as reproduced
from uflip.reproduce import oc_cross_fit, oc_media
from uflip.reproduce.coordinate_search import Constants
from uflip.reproduce.published import PUBLISHED

# Another geometry than the paper's: 3 channels of 2 LUNs, one plane, small blocks.
OTHER = "sim:dfc?channels=3&luns_per_channel=2&planes=1&pages_per_block=16&blocks_per_plane=8"


def columns(trace: _native.FlashTrace, *names: str) -> list[tuple[int, ...]]:
    """Rows of some columns, in the order of submission."""
    order = np.argsort(np.asarray(trace.column("submit_ns")), kind="stable")
    values = [np.asarray(trace.column(name))[order].tolist() for name in names]
    return list(zip(*values, strict=True))


@pytest.fixture(scope="module")
def benchmark_results() -> tuple[Any, FlashDevice]:
    """All four micro-benchmarks on the other geometry."""
    device = open_flash_device(OTHER)
    session = Session(device, Scale(blocks=2, cycles=30, wear_pages=8), (2, 1, 7))
    return measure(session, [*micro_benchmarks_for("physical")]), device


# Jobs


def test_job_visits_pages_in_its_order() -> None:
    device = open_flash_device(OTHER)
    job = Job(channels=2, luns=2, blocks=2, first_block=3, pages=3, mix="W")
    fields = ("channel", "lun", "block", "page")
    units = [(channel, lun) for lun in range(2) for channel in range(2)]
    round_robin = [(*unit, block, page) for block in (3, 4) for page in range(3) for unit in units]
    trace = device.run(job.but(iteration="round_robin"))
    assert columns(trace, *fields) == round_robin
    one_by_one = [(*unit, block, page) for unit in units for block in (3, 4) for page in range(3)]
    trace = device.run(job.but(iteration="sequential"))
    assert columns(trace, *fields) == one_by_one
    assert set(columns(trace, "op", "failed", "addresses")) == {(WRITE, 0, 4)}


def test_threads_own_units_or_blocks() -> None:
    device = open_flash_device(OTHER)
    trace = device.run(Job(channels=3, threads=3, pages=2))
    assert {(t, c) for t, c in columns(trace, "thread", "channel")} == {(0, 0), (1, 1), (2, 2)}
    trace = device.run(Job(blocks=4, threads=2, pages=2))
    owned = set(columns(trace, "thread", "block"))
    assert owned == {(0, 0), (0, 1), (1, 2), (1, 3)}


def test_mix_reads_follow_writes() -> None:
    trace = open_flash_device(OTHER).run(Job(pages=16, mix="WRRR"))
    expected, writes, reads = [], 0, 0
    for number in range(16):
        if number % 4 == 0:
            expected.append((WRITE, writes))
            writes += 1
        else:
            reads = 0 if reads == writes else reads
            expected.append((READ, reads))
            reads += 1
    assert columns(trace, "op", "page") == expected
    assert {failed for (failed,) in columns(trace, "failed")} == {0}


@pytest.mark.parametrize(
    ("read", "pages", "reads"), [(33, 64, 21), (25, 64, 16), (75, 4, 3), (100, 4, 4), (0, 4, 0)]
)
def test_share_of_reads_is_spread_over_job(read: int, pages: int, reads: int) -> None:
    job = ("oc", "pattern", "sim:dfc", "--read", str(read), "--pages", str(pages))
    document = json.loads(uflip(*job, "--json", "-q").out)
    counts = [(document[kind] or {"count": 0})["count"] for kind in ("reads", "writes")]
    assert counts == [reads, pages - reads]


@pytest.mark.parametrize(
    "options", [("--pages", "1"), ("--channels", "3", "--threads", "3", "--iteration", "isolated")]
)
def test_impossible_share_of_reads_is_refused(options: tuple[str, ...]) -> None:
    outcome = uflip("oc", "pattern", "sim:dfc", "--read", "50", *options)
    assert outcome.code == 2
    assert "50 % of reads" in outcome.err


def test_isolated_threads_read_or_write() -> None:
    job = Job(
        channels=3,
        luns=2,
        threads=6,
        pages=4,
        mix="WRR",
        iteration="isolated",
    )
    trace = open_flash_device(OTHER).run(job)
    by_thread = {t: {op for thread, op in columns(trace, "thread", "op") if thread == t}
                 for t in range(6)}  # fmt: skip
    assert [by_thread[t] for t in range(6)] == [{READ}] * 4 + [{WRITE}] * 2


def test_repeated_job_erases_between_repetitions() -> None:
    trace = open_flash_device(OTHER).run(Job(blocks=2, pages=2, mix="W", repeat=3))
    writes = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)]
    erases = [(2, 0, 0), (2, 1, 0)]
    assert columns(trace, "op", "block", "page") == [*writes, *erases, *writes, *erases, *writes]
    totals = open_flash_device(OTHER).resolve(Job(blocks=2, pages=2, mix="W", repeat=3)).totals
    assert totals.total_ios == len(trace)
    assert (totals.blocks_erased, totals.pages_written) == (4, 12)


def test_sleep_separates_two_commands() -> None:
    trace = open_flash_device(OTHER).run(Job(pages=4, sleep=5_000_000))
    times = columns(trace, "submit_ns", "response_time_ns")
    for (begin, duration_ns), (after, _) in pairwise(times):
        assert after - begin - duration_ns == 5_000_000


def test_vector_is_one_command_over_several_channels() -> None:
    trace = open_flash_device("sim:dfc").run(
        Job(channels=8, vector=4, pages=4, mix="W", iteration="round_robin")
    )
    assert columns(trace, "channel", "page", "addresses") == [
        (channel, page, 32) for page in range(4) for channel in (0, 4)
    ]


def test_same_seed_gives_same_log(tmp_path: Path) -> None:
    job = Job(channels=3, threads=3, blocks=2, pages=16, mix="WR")
    for name in ("a.parquet", "b.parquet"):
        open_flash_device(OTHER).run(job).write_parquet(str(tmp_path / name), "{}")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_causes_sum_to_response_time() -> None:
    trace = open_flash_device(OTHER).run(Job(luns=2, blocks=2, pages=16, mix="WR"))
    parts = sum(np.asarray(trace.column(cause)).astype(np.int64) for cause in trace.causes)
    assert np.array_equal(parts, np.asarray(trace.column("response_time_ns")))


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({"channels": 4}, "channels 0 to 2"),
        ({"first_lun": 1, "luns": 2}, "luns 0 to 1"),
        ({"first_block": 8}, "blocks 0 to 7"),
        ({"pages": 17}, "pages 0 to 15"),
        ({"vector": 65, "pages": 16}, "at most 64 addresses"),
        ({"vector": 3, "pages": 16}, "a divisor"),
        ({"mix": "WX"}, "letters W and R"),
        ({"mix": "RW"}, "a W first"),
        ({"threads": 2, "channels": 3}, "a divisor of the number of LUNs"),
        ({"iteration": "random"}, "sequential, round_robin, isolated"),
        ({"kind": "wear", "blocks": 2}, "blocks = 1"),
        ({"repeat": 0}, "1 or more"),
    ],
)
def test_impossible_job_is_refused_with_allowed_values(job: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        open_flash_device(OTHER).resolve(Job(**job))
    assert says in str(error.value)


# Commands one by one


def test_too_long_vector_and_unknown_operation_are_refused() -> None:
    device = open_flash_device("sim:dfc")
    with pytest.raises(UsageError, match="1 to 64"):
        device.command("read", [(0, 0, 0, 0, 0, 0)] * 65)
    with pytest.raises(UsageError, match="read, write, erase"):
        device.command("trim", [(0, 0, 0, 0, 0, 0)])
    with pytest.raises(UsageError, match="The channel"):
        device.block_state(8, 0, 0)


def test_command_reports_status_of_each_address() -> None:
    device = open_flash_device("sim:dfc")
    page = [(0, 0, 0, plane, 0, sector) for plane in range(2) for sector in range(4)]
    assert device.command("write", page[:3])[1] == ["partial_page"] * 3
    assert device.command("write", page)[1] == ["done"] * 8
    assert device.command("write", page)[1] == ["out_of_order"] * 8
    assert device.command("read", [page[0], (9, 0, 0, 0, 0, 0)])[1] == ["done", "out_of_range"]
    assert device.block_state(0, 0, 0) == (0, 1, False)


# The micro-benchmarks


def test_four_micro_benchmarks_run_on_another_geometry(
    benchmark_results: tuple[Any, FlashDevice],
) -> None:
    results, _ = benchmark_results
    assert results.oc0.write_mb_per_s.shape == (3, 2)
    assert list(results.oc2["writes, one thread"].mb_per_s) == [1, 2]
    # Ranges are powers of two up to the geometry, and divide its channels.
    assert list(results.oc3.scaling["writes, threads"].mb_per_s) == [1, 3]
    assert results.oc1.cycles == 30
    assert not any(series.failed for series in results.oc0.mixes.values())
    json.dumps(document(results), allow_nan=False)


# Writes that take no time, no read made again, erases as short as writes: nothing to keep apart.
HARMLESS = OTHER + (
    "&program_low_ns=20000&program_high_ns=20000&quick_low_pages=0&retry_permille=0&erase_ns=20000"
)
# One thread of the controller takes all the time there is: more requests gain nothing.
SERIAL = OTHER + "&queue_thread_ns=3000000"


def measured_at_length(url: str) -> tuple[Any, FlashDevice]:
    """Measure with 200 reads and more, so that each mix has a 95th percentile."""
    device = open_flash_device(url.replace("blocks_per_plane=8", "blocks_per_plane=32"))
    session = Session(device, Scale(blocks=32, cycles=30, wear_pages=8), (2, 1, 7))
    return measure(session, [*micro_benchmarks_for("physical")]), device


def verdicts(url: str) -> dict[str, str]:
    results, device = measured_at_length(url)
    rules = evaluate_rules(results, device.geometry)
    assert all(rule.verdict in VERDICTS and rule.evidence for rule in rules)
    return {rule.name: rule.verdict for rule in rules}


def test_verdicts_of_dfc_match_paper() -> None:
    assert verdicts(OTHER) == {
        "Request scale": "comes at a price",
        "Locality": "does not apply",
        "Aligned sequentiality": "holds and is trivial",
        "Grouping by death time": "is the host's own decision",
        "Uniform data lifetime": "is the host's own decision",
    }


def test_verdicts_differ_on_other_devices() -> None:
    harmless = verdicts(HARMLESS)
    assert harmless["Request scale"] == "holds"
    assert harmless["Locality"] == "makes no difference"
    assert harmless["Grouping by death time"] == "makes no difference"
    assert harmless["Uniform data lifetime"] == "makes no difference"
    assert verdicts(SERIAL)["Request scale"] == "does not apply"


def test_verdicts_for_unordered_medium_and_slowed_reads() -> None:
    """A medium without order, and reads that writes elsewhere slow down."""
    results, device = measured_at_length(OTHER)
    geometry = device.geometry
    for order, verdict in (
        (["done"] * 4, "does not apply"),
        (None, NOT_MEASURED),
        (["retired"] * 4, NOT_MEASURED),
    ):
        assert evaluate_rules(replace(results, order=order), geometry)[2].verdict == verdict
    mixed = results.oc3.mixes["67 % writes"]
    slow = replace(mixed, response_time_ms=mixed.response_time_ms * 2)
    oc3 = replace(results.oc3, mixes=results.oc3.mixes | {"67 % writes": slow})
    assert (
        evaluate_rules(replace(results, oc3=oc3), geometry)[3].verdict == "is not the host's alone"
    )
    nothing = replace(results, oc0=None, oc1=None, oc3=None, order=None)
    assert {rule.verdict for rule in evaluate_rules(nothing, geometry)} == {NOT_MEASURED}


def test_medium_and_ecc_change_findings_as_expected() -> None:
    """Slower cells write slower, and stronger ECC fails at a later age."""
    slow, fast = (oc_media.measure_medium((name, "of today")) for name in ("QLC", "SLC"))
    # With a thread for each LUN the programs of pages of both planes are the bottleneck.
    pages = 2 * 4 * 4096 * 32
    for found, program_ns in ((slow, 1_860_000), (fast, 200_000)):
        assert found.all_luns["writes"] == pytest.approx(pages / program_ns * 1e3, rel=0.15)
    weak, strong = (oc_media.first_failing_age(oc_media.SMALL, bits) for bits in (20, 40))
    assert weak is not None
    assert strong is not None
    assert weak < strong


def test_too_few_reads_give_no_verdict(
    benchmark_results: tuple[Any, FlashDevice],
) -> None:
    results, device = benchmark_results
    assert len(results.oc0.mixes["WRWR"].times(READ)) < 200
    rules = {rule.name: rule for rule in evaluate_rules(results, device.geometry)}
    for name in ("Locality", "Grouping by death time"):
        assert rules[name].verdict == NOT_MEASURED
        assert "200 reads" in rules[name].evidence
    # How throughput grows needs no percentile.
    assert rules["Request scale"].verdict == "holds"
    assert "twentieth" not in rules["Request scale"].evidence


def test_verdict_percentile_is_nearest_rank_and_spread_is_of_sample() -> None:
    results, device = measured_at_length(OTHER)
    reads = np.sort(results.oc0.mixes["WRWR"].times(READ))
    nearest_rank = reads[math.ceil(0.95 * len(reads)) - 1]
    (locality,) = (r for r in evaluate_rules(results, device.geometry) if r.name == "Locality")
    assert f"up to {nearest_rank:.2f} ms in 95 %" in locality.evidence
    three = replace(
        results.oc3.halves, op=np.array([1, 1, 1]), response_time_ms=np.array([1.0, 2.0, 3.0])
    )
    one = replace(three, op=np.array([1]), response_time_ms=np.array([1.0]))
    oc3 = replace(results.oc3, mixes={"all": three, "one": one})
    sentence = write_variance(replace(results, oc3=oc3))
    assert sentence == "Standard deviation of the response times of writes: 1.00 ms at all."


def test_partial_block_wear_makes_no_claim_about_other_pages(
    benchmark_results: tuple[Any, FlashDevice],
) -> None:
    results, device = benchmark_results
    failed = np.zeros(30, np.uint64)
    failed[20] = 1

    def evidence(pages: int, failed: Any) -> str:
        worn = replace(results.oc1, pages=pages, failed_reads=failed)
        return evaluate_rules(replace(results, oc1=worn), device.geometry)[4].evidence

    assert "safe up to 21 erases" in evidence(16, failed)
    assert "No read failed in 30 cycles" in evidence(16, 0 * failed)
    for some in (evidence(8, failed), evidence(8, 0 * failed)):
        assert "read of the 8 pages that were worn, of 16" in some
        assert "the other pages were not tested" in some
        assert "safe" not in some


def test_quarter_reads_is_three_writes_and_a_read() -> None:
    """uFLIP-OC §5.1.1, where Table 1 prints WWWWR."""
    shares = [mix.count("R") / len(mix) for mix in MIXES]
    assert shares == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("channels", "written"), [(1, [100, 0]), (3, [100, 67, 33, 0]), (6, [100, 83, 50, 33, 0])]
)
def test_mix_is_named_by_its_share_of_writes(channels: int, written: list[int]) -> None:
    """Threads cannot be divided by four everywhere."""
    geometry = open_flash_device(f"sim:dfc?channels={channels}&luns_per_channel=1").geometry
    jobs = oc3.mixes(JobScope(geometry, SCALES["quick"]))
    assert [job.value for job in jobs.values()] == [100 - each for each in written]
    assert list(jobs) == [f"{each} % writes" if each else "100 % reads" for each in written]
    for job, each in zip(jobs.values(), written, strict=True):
        small = job.spec.but(blocks=1, pages=2)
        trace = open_flash_device(f"sim:dfc?channels={channels}&luns_per_channel=1").run(small)
        op = np.asarray(trace.column("op"))
        writers = np.unique(np.asarray(trace.column("thread"))[op == WRITE])
        assert round(100 * len(writers) / channels) == each


def test_one_channel_gives_no_verdict_on_read_write_separation() -> None:
    url = "sim:dfc?channels=1&luns_per_channel=2&planes=1&pages_per_block=16&blocks_per_plane=8"
    device = open_flash_device(url)
    results = measure(
        Session(device, Scale(2, 30, 8), (0, 1, 7)), [*micro_benchmarks_for("physical")]
    )
    rules = evaluate_rules(results, device.geometry)
    assert not any("nan" in rule.evidence for rule in rules)
    assert rules[3].verdict == NOT_MEASURED


def test_throughput_counts_bytes_over_elapsed_time() -> None:
    device = open_flash_device("sim:dfc")
    trace = device.run(Job(pages=8))
    assert mb_per_s(trace, 4096) == pytest.approx(8 * 32_768 / trace.elapsed_ns() * 1e3)


def test_percentiles_need_ten_operations_beyond() -> None:
    """As of every other run: ten on the thinner side."""

    def summarise(count: int) -> dict[str, Any]:
        times = np.arange(1.0, count + 1)
        return dict(times_summary(ResponseSeries(np.zeros(count, np.uint8), times, 0), READ) or {})

    few, many = summarise(150), summarise(1000)
    assert (few["count"], few["p50_ms"], few["max_ms"]) == (150, 75.0, 150.0)
    assert few["p5_ms"] is few["p95_ms"] is few["p99_ms"] is None
    assert (many["p5_ms"], many["p95_ms"], many["p99_ms"]) == (50.0, 950.0, 990.0)


def test_wear_is_counted_by_cycle() -> None:
    failed = np.zeros(1000, np.uint64)
    failed[500:] = 1
    ones = np.ones(1000)
    worn = Oc1((0, 0, 0), 10, ones, ones, ones, failed, np.zeros(1000, np.uint64), False)
    assert worn.first_failure() == 501
    # A step from 0 to 10 %: half of it is reached where the window is half over it.
    assert worn.cycles_until(0.0499) == 500
    assert worn.cycles_until(0.2) is None


def test_degrees_are_powers_of_two_and_maximum() -> None:
    assert degrees(1) == [1]
    assert degrees(12) == [1, 2, 4, 8, 12]


def test_series_is_in_submission_order() -> None:
    trace = open_flash_device(OTHER).run(
        Job(channels=3, threads=3, pages=4, mix="WRR", iteration="isolated")
    )
    assert ResponseSeries.from_trace(trace).op[:3].tolist() == [READ, READ, WRITE]


# Sacrifice


def test_real_device_requires_explicit_sacrifice() -> None:
    simulated = open_flash_device(OTHER).info
    info = structs.replace(simulated, kind="block", simulated=False, url="/dev/nvme0n1")
    with pytest.raises(RefusedError, match="--sacrifice CHANNEL:LUN:BLOCK"):
        choose_sacrifice(info, None)
    assert choose_sacrifice(info, "1:0:5") == (1, 0, 5)
    assert choose_sacrifice(simulated, None) == (2, 1, 7)
    for wrong in ("3:0:0", "0:0", "a:b:c", "0:0:-1"):
        with pytest.raises(UsageError, match="0:0:0 to 2:1:7"):
            choose_sacrifice(info, wrong)


def test_block_in_use_is_not_sacrificed() -> None:
    device = open_flash_device(OTHER)
    scope = JobScope(device.geometry, Scale(blocks=2, cycles=1, wear_pages=1), (0, 0, 1))
    with pytest.raises(RefusedError, match="blocks 0 to 1"):
        check_unused(device, scope)
    other = replace(scope, sacrifice=(0, 0, 2))
    check_unused(device, other)
    device.run(Job(first_block=2, pages=3, mix="W"))
    with pytest.raises(RefusedError, match="3 pages of it are written"):
        check_unused(device, other)


# The command line


def test_job_log_is_written_as_csv_and_parquet(tmp_path: Path) -> None:
    job = [
        "oc",
        "pattern",
        OTHER,
        "--channels",
        "3",
        "--threads",
        "3",
        "--pages",
        "8",
        "--read",
        "25",
    ]
    text, table = tmp_path / "io.csv", tmp_path / "io.parquet"
    outcome = uflip(*job, "--log", text, "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert document["job"]["mix"] == "WWWR"
    assert uflip(*job, "--log", table).code == 0
    with text.open() as file:
        lines = list(csv.DictReader(file, delimiter=";"))
    assert len(lines) == document["commands"] == pq.read_table(table).num_rows == 24
    assert [int(line["sequence"]) for line in lines] == list(range(24))
    assert {line["type"] for line in lines} == {"r", "w"}
    starts = [int(line["start_ns"]) for line in lines]
    assert starts == sorted(starts)
    assert uflip(*job, "--log", text).code != 0, "a log is never overwritten"
    assert uflip(*job, "--log", "io.txt").code == 2


def test_job_with_failing_reads_reports_first_failure() -> None:
    outcome = uflip("oc", "pattern", "sim:dfc?erases=19000", "--pages", "512", "--json")
    document = json.loads(outcome.out)
    assert outcome.code == 0
    assert document["failed"] == document["failures"]["uncorrectable"] > 0
    assert document["first_failure"]["op"] == "read"
    text = uflip("oc", "pattern", "sim:dfc?erases=19000", "--pages", "512").out
    assert f"page {document['first_failure']['page']} by thread 0" in text
    assert "uncorrectable" in text


def test_retired_block_fails_each_command() -> None:
    url = "sim:dfc?erase_step_cycles=1&erase_steps_max=2&erases=3"
    document = json.loads(uflip("oc", "pattern", url, "--pages", "4", "--mix", "W", "--json").out)
    assert document["failures"] == {"retired": 4}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("oc", "sim:demo"), "block device"),
        (("oc", "file:x"), "Only simulated open-channel devices"),
        (("plan", "sim:dfc", "--out", "plan.toml"), "--out"),
        (("plan", "sim:dfc", "--pause", "1s"), "--pause"),
        (("oc", "sim:dfc", "--only", "oc0", "--sacrifice", "0:0:77"), "add oc1 to --only"),
        (("pattern", "sim:dfc", "--pattern", "RR"), "uflip oc"),
        (("oc", "sim:dfc", "--only", "oc9"), "oc0, oc1, oc2, oc3"),
        (("oc", "sim:dfc", "--scale", "huge"), "standard, quick"),
        (("oc", "sim:dfc", "--sacrifice", "9:0:0"), "0:0:0 to 7:3:1023"),
        (("oc", "pattern", "sim:dfc", "--mix", "W", "--read", "5"), "omit one"),
    ],
)
def test_invalid_options_are_refused_before_work(arguments: tuple[str, ...], says: str) -> None:
    outcome = uflip(*arguments)
    assert outcome.code != 0
    assert says in outcome.err


def test_info_prints_geometry() -> None:
    outcome = uflip("info", "sim:dfc", "--json")
    assert json.loads(outcome.out)["details"]["geometry"]["vector_max"] == 64


def test_job_is_one_step_of_a_reproduction() -> None:
    """Progress may report the end of a job several times; it counts as one step."""
    steps: list[tuple[float, str]] = []
    session = reproduced.open_session(lambda done, name: steps.append((done, name)))
    first, second, *_ = layout(session.scope, ["oc2"])

    for job in (first, second):
        for share in (0.0, 0.5, 1.0, 1.0):
            session.on_step(job.id, share)
    assert steps == [(1, first.id), (2, second.id)]


def test_address_beyond_field_width_is_out_of_range() -> None:
    wide = open_flash_device("sim:dfc?channels=256&luns_per_channel=1&blocks_per_plane=8")
    for outside in [(256, 0, 5), (300, 0, 5), (-1, 0, 5), (2**70, 0, 5), (0, 999, 5), (0, 0, -9)]:
        assert wide.command("erase", [(*outside, 0, 0, 0)])[1] == ["out_of_range"], outside
        with pytest.raises(UsageError, match="of an address is outside") as refused:
            wide.block_state(*outside)
        assert refused.value.got.split()[0] in ("channel", "lun", "block")
    assert [wide.block_state(channel, 0, 5)[0] for channel in (0, 44, 255)] == [0, 0, 0]
    addresses = [(255, 0, 5, 0, 0, 0), (300, 0, 5, 0, 0, 0)]
    assert wide.command("erase", addresses)[1] == ["done", "out_of_range"]
    with pytest.raises(UsageError) as refused:
        wide.block_state(300, 0, 0)
    assert refused.value.got == "channel 300"


def test_erases_take_time_but_are_not_ios() -> None:
    """Two writes of a page with an erase between them, worked out from what each took."""
    named = ("oc", "pattern", "sim:dfc", "--mix", "W", "--repeat", 2)
    document = json.loads(uflip(*named, "--json").out)
    took = 2 * document["writes"]["mean_ms"] + document["erases"]["mean_ms"]
    assert document["elapsed_ns"] == pytest.approx(took * 1e6)
    assert (document["commands"], document["erases"]["count"]) == (3, 1)
    assert document["ios_per_s"] == pytest.approx(2e3 / took)
    assert document["commands_per_s"] == pytest.approx(3e3 / took)
    assert f"{round(2e3 / took)} IOPS" in uflip(*named).out


# Does a fit to one table of uFLIP-OC see nothing of the other one?


RATES = {
    table: [key for key in PUBLISHED if fnmatchcase(key, f"oc/{table}/*") and "factor" not in key]
    for table in oc_cross_fit.OTHER
}


def test_every_constant_fitted_to_the_tables_is_searched() -> None:
    named = {
        key
        for key, source in profile_sources("dfc").items()
        if any(fnmatchcase(rate, value) for rate in RATES["table2"] for value in source.values)
    }
    assert named == set(oc_cross_fit.START)


def model(table: str, calls: list[str]) -> Callable[[Constants], dict[str, float]]:
    """A card whose rates are proportional to one constant."""

    def measure(constants: Constants) -> dict[str, float]:
        calls.append(table)
        scale = constants["channel_bytes_per_s"] / 73e6
        return {key: scale * float(PUBLISHED[key].number or 0) for key in RATES[table]}

    return measure


def test_every_rate_of_the_tables_is_measured() -> None:
    for table, measured in oc_cross_fit.MEASURE.items():
        assert sorted(measured(oc_cross_fit.START)) == sorted(RATES[table])


@pytest.mark.parametrize("fitted", ["table2", "table3"])
def test_search_measures_only_the_fitted_table(
    fitted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for table in oc_cross_fit.OTHER:
        monkeypatch.setitem(oc_cross_fit.MEASURE, table, model(table, calls))
    found = oc_cross_fit.fit((fitted, dict(oc_cross_fit.START)))
    assert set(calls[: found.devices]) == {fitted}
    assert calls.count(oc_cross_fit.OTHER[fitted]) == 1, "the score, at the end"
    assert found.constants["channel_bytes_per_s"] == pytest.approx(73e6, rel=0.02)
    assert found.ratios(oc_cross_fit.OTHER[fitted]) == pytest.approx(
        [found.constants["channel_bytes_per_s"] / 73e6] * len(RATES[oc_cross_fit.OTHER[fitted]])
    )
