"""Do the micro-benchmarks beyond the paper find known properties, and form a suite of their own?

The simulated devices have constants given here, so that findings can be compared with a closed
form: the number of dies, the size of a cache, Little's law for a server that is never idle.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import uflip

import uflip as package
from uflip.benchmark_options import SCALES
from uflip.data.device import DeviceInfo
from uflip.data.spec import Mix
from uflip.data.summary import MeasuredExperiment
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.microbench import (
    MICRO_BENCHMARKS,
    check_names,
    micro_benchmarks_for,
    suite_of,
    varied_micro_benchmarks,
)
from uflip.microbench.experiment import Context, Experiment, PlannedRun
from uflip.microbench.labels import by_pattern
from uflip.microbench.today import cache_cliff, odd_stride, queue_depth, write_rate
from uflip.microbench.today.loaded import DEPTH
from uflip.models import write_amplification as theory
from uflip.report.findings import finding
from uflip.result_views import summary
from uflip.results import Results
from uflip.results.consistency import baseline_key, baseline_key_of_run
from uflip.spec import BASELINES, basic

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NAMES = list(varied_micro_benchmarks("today"))

READ_NS, PROGRAM_NS, PAGE = 50_000, 300_000, 4 * KIB
# Nothing takes time but the cells: commands are free, links and channels are quick.
CELLS = (
    f"read_ns={READ_NS}&program_ns={PROGRAM_NS}&program_high_ns={PROGRAM_NS}&command_read_ns=0"
    "&command_write_ns=0&link_bytes_per_s=1000000000000&channel_bytes_per_s=1000000000000"
    "&erase_ns=1000&idle_free_blocks=0&spare_factor=0.4&state=sequential"
)
ONE_DIE = f"sim:demo?channels=1&dies_per_channel=1&blocks_per_die=1024&{CELLS}"
EIGHT_DIES = f"sim:demo?channels=4&dies_per_channel=2&blocks_per_die=512&{CELLS}"
SLOW_LINK = EIGHT_DIES.replace("link_bytes_per_s=1000000000000", "link_bytes_per_s=280000000")


def device(capacity: int, sector: int = 512, kind: str = "null") -> DeviceInfo:
    return stored.device_info(kind, capacity_bytes=capacity, sector_bytes=sector)


def lay_out(name: str, scale: str = "standard", **changes: Any) -> list[Experiment]:
    settings = {"info": device(2000 * GIB), "seed": 1} | changes
    return MICRO_BENCHMARKS[name].experiments(Context(scale=scale, **settings))


def runs_of(name: str, scale: str) -> list[PlannedRun]:
    return [run for experiment in lay_out(name, scale) for run in experiment.runs]


def measure_experiments(
    url: str, out: Path, name: str, **options: Any
) -> tuple[dict[str, list[MeasuredExperiment]], str]:
    """Return the results of a micro-benchmark on a device: experiments, and their finding."""
    arguments: dict[str, Any] = {"scale": "quick", "state": "sequential", "pause": "1s"} | options
    result = package.run(url, out, suite="today", only=[name], **arguments)
    document = summary(Results.load(result.path))
    return by_pattern(document["micro_benchmarks"][name]), finding(name, document)


def mean_ns(run: MeasuredExperiment) -> float:
    return run["statistics"]["mean_ns"]


# The list


def test_suites_share_only_the_baselines() -> None:
    assert set(micro_benchmarks_for("sectors")) & set(micro_benchmarks_for("sectors", "today")) == {
        "baseline"
    }
    assert NAMES == [
        "queue_depth",
        "read_under_write",
        "write_rate",
        "cache_cliff",
        "cache_refill",
        "odd_stride",
        "mixed_sizes",
        "steady_state",
        "deallocate",
    ]
    assert check_names(None, "sectors", "today") == ["baseline", *NAMES]
    assert not micro_benchmarks_for("physical", "today")


@pytest.mark.parametrize(
    ("only", "addresses", "suite", "message"),
    [
        (["mix"], "sectors", "today", "another suite"),
        (["queue_depth"], "sectors", "uflip", "--suite today"),
        (["queue_deep"], "sectors", "today", "queue_depth"),
        (None, "physical", "today", "does not support this kind of device"),
        (None, "sectors", "tomorrow", "uflip, today, iq, zones"),
    ],
)
def test_plan_belongs_to_one_suite(only: Any, addresses: Any, suite: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_names(only, addresses, suite)
    assert message in " ".join(map(str, (caught.value, caught.value.allowed, caught.value.action)))


def test_results_name_their_suite() -> None:
    for name in NAMES:
        assert suite_of(["baseline", name]) == "today"
    assert suite_of(["baseline"]) == suite_of(micro_benchmarks_for("sectors")) == "uflip"


# The layout


def value_of(experiment: Experiment, run: PlannedRun) -> float:
    """Return the value of a pattern's parameter that its run is named after."""
    spec: Any = run.spec.second if experiment.micro_benchmark == "mixed_sizes" else run.spec
    if experiment.parameter == "write_rate":
        # A share of the arrivals are writes [bytes/s]; the name has whole writes per second.
        per_s = 1e9 / spec.interval * spec.first_percent / 100
        return round(per_s) * float(spec.first.io_size)
    if experiment.parameter == "deallocated_percent":
        # All of it reads and writes the same where nothing is deallocated, and where all is.
        begin, size = spec.target_offset, spec.target_size
        boundary = begin + size if spec.mode == "write" else begin
        return float(run.value if size == 2000 * GIB else 100 - 100 * boundary / (2000 * GIB))
    return float(getattr(spec, experiment.parameter))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_micro_benchmark_varies_one_parameter(name: str, scale: str) -> None:
    about = MICRO_BENCHMARKS[name]
    assert about.name == name
    assert about.question.endswith("?")
    assert about.how_to_read.endswith(".")
    for experiment in lay_out(name, scale):
        assert not experiment.skipped
        assert len(experiment.runs) >= 2
        labels = experiment.pattern.split("/")
        for run in experiment.runs:
            assert value_of(experiment, run) == pytest.approx(run.value, rel=1e-3)
            for label, part in zip(labels, run.spec.parts, strict=True):
                mode, location = (BASELINES | {"ST": ("trim", "sequential")})[label]
                assert part.mode == mode
                assert part.location == ("ordered" if name == "odd_stride" else location)


@pytest.mark.parametrize("name", NAMES)
def test_quick_ranges_are_subsets_of_standard_ones(name: str) -> None:
    for quick, standard in zip(lay_out(name, "quick"), lay_out(name), strict=True):
        assert {run.value for run in quick.runs} < {run.value for run in standard.runs}
        for run in quick.runs:
            totals = resolve(run.spec, device(2000 * GIB)).totals
            assert totals.pause_ns <= 3_000_000_000, run.id
            assert totals.bytes_written <= 2 * GIB, run.id


@pytest.mark.parametrize("name", micro_benchmarks_for("sectors", "today"))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("capacity", "sector"),
    [(32 * GIB, 512), (GIB + 13 * 512, 512), (64 * MIB, 4096), (5 * MIB, 512), (32 * KIB, 512)],
)
def test_run_fits_device_or_is_skipped_with_reason(
    name: str, scale: str, capacity: int, sector: int
) -> None:
    info = device(capacity, sector)
    for fitted, full in zip(lay_out(name, scale, info=info), lay_out(name, scale), strict=True):
        for run in fitted.runs:
            resolve(run.spec, info)
        values = [run.value for run in fitted.runs] + [skip.value for skip in fitted.skipped]
        assert sorted(values) == sorted(run.value for run in full.runs)
        assert all(skip.reason for skip in fitted.skipped)


def test_export_over_nbd_is_measured_at_every_depth() -> None:
    for experiment in lay_out("queue_depth", info=device(64 * GIB, kind="nbd")):
        assert [run.value for run in experiment.runs] == [2**k for k in range(9)]
        assert not experiment.skipped


def test_burst_above_a_quarter_of_device_is_skipped() -> None:
    (bursts,) = lay_out("cache_cliff", info=device(GIB))
    assert bursts.runs[-1].value == GIB // 4
    assert bursts.skipped[0].reason == "512 MiB are more than a quarter of the device of 1 GiB"


@pytest.mark.parametrize("method", ["auto", "startup", "paper"])
def test_method_keeps_length_of_cache_cliff(method: str) -> None:
    plan = package.plan(EIGHT_DIES, suite="today", only=["cache_cliff"], method=method)
    for run in plan.runs:
        if run.micro_benchmark == "cache_cliff":
            assert run.spec.io_count == run.value // cache_cliff.IO_SIZE
            assert (run.spec.stop, run.spec.io_ignore) == (None, 0)


def test_runs_differing_only_in_length_are_no_repetitions() -> None:
    (bursts,) = lay_out("cache_cliff")
    for run in bursts.runs:
        assert baseline_key(run.spec, run.spec.ios) == ("SW", cache_cliff.IO_SIZE)
        assert baseline_key_of_run(run.micro_benchmark, run.spec, run.spec.ios) is None
    (deep, *_) = lay_out("queue_depth")
    first = deep.runs[0]
    assert baseline_key_of_run(first.micro_benchmark, first.spec, first.spec.ios) == (
        "SR",
        32 * KIB,
    )


def test_deallocated_share_is_trimmed_once_then_read_and_rest_written() -> None:
    whole = 2000 * GIB
    trims, reads, writes = (
        {run.value: run.spec for run in experiment.runs} for experiment in lay_out("deallocate")
    )
    end = whole
    for percent, trim in sorted(trims.items()):
        assert trim.target_offset + trim.target_size == end
        assert trim.io_count * trim.io_size == trim.target_size
        end = trim.target_offset
        assert (reads[percent].target_offset, reads[percent].target_size) == (end, whole - end)
        assert (writes[percent].target_offset, writes[percent].target_size) == (0, end or whole)
    assert end == 0


# Findings


def test_knee_of_queue_is_the_number_of_dies(tmp_path: Path) -> None:
    """Sequential pages alternate between dies: 8 are busy from a depth of 8 on, and N* = 8.

    At random a closed network of 8 equal servers gives 8 × n / (n + 7) of what one does where its
    times are exponential (J. Buzen 1973), and more, but never 8, where they are all the same.
    """
    experiments, text = measure_experiments(
        EIGHT_DIES, tmp_path / "r", "queue_depth", io_size=PAGE, method="paper", seed=2
    )
    for pattern in ("SR", "RR"):
        assert mean_ns(experiments[pattern][0]) == pytest.approx(READ_NS, rel=0.002)
    sequential, random = (queue_depth.knee(experiments[pattern]) for pattern in ("SR", "RR"))
    assert sequential == pytest.approx(8, rel=0.005)
    deepest = experiments["RR"][-1]["value"]
    assert deepest == 256
    assert random is not None
    assert 8 * deepest / (deepest + 7) * 0.98 < random < 8.01
    assert "SR: 19,99" in text
    assert "the knee is at depth 8.0" in text


def test_stride_on_one_die_costs_factor_of_dies(tmp_path: Path) -> None:
    """A closed loop of 16 on one of 8 dies takes 16 reads each, on all of them two."""
    experiments, text = measure_experiments(
        EIGHT_DIES, tmp_path / "r", "odd_stride", method="paper"
    )
    reads = {run["value"]: mean_ns(run) for run in experiments["SR"]}
    for stride, dies in ((1, 8), (4, 2), (5, 8), (64, 1), (65, 8)):
        assert reads[stride] == pytest.approx(DEPTH / dies * READ_NS, rel=0.05), stride
    assert odd_stride.conflicts(experiments["SR"]) == pytest.approx({4: 4, 64: 8}, rel=0.05)
    assert "SR: strides conflict from 4 on (16 KiB)" in text


@pytest.mark.parametrize("cache", [16 * MIB, 24 * MIB])
def test_cliff_is_at_configured_cache_size(tmp_path: Path, cache: int) -> None:
    url = f"{SLOW_LINK}&write_cache_bytes={cache}&flush=eager"
    experiments, text = measure_experiments(url, tmp_path / "r", "cache_cliff")
    cliff = cache_cliff.cliff(experiments["SW"])
    assert cliff is not None
    # The flash programs a page of each of eight dies at a time; the link limits the cache.
    assert cliff.slow * PAGE == pytest.approx(PROGRAM_NS / 8, rel=0.05)
    assert cliff.fast == pytest.approx(1e9 / 280_000_000, rel=0.05)
    assert cliff.tolerance < cache / 8, "the printed value is precise enough"
    assert abs(cliff.holds - cache) < cliff.tolerance
    assert f"it holds {cliff.holds / MIB:.2f}".rstrip("0").rstrip(".") in text


@pytest.mark.parametrize("blocks", [32, 48])
def test_cliff_is_at_configured_slc_cache_size(tmp_path: Path, blocks: int) -> None:
    """A QLC block of 64 pages has 16 in SLC mode; nothing leaves the cache during a burst."""
    slc_ns = 50_000
    url = (
        f"{EIGHT_DIES}&bits_per_cell=4&program_middle_ns={PROGRAM_NS}&slc_blocks={blocks}"
        f"&slc_blocks_max={blocks}&slc_read_ns=20000&slc_program_ns={slc_ns}"
    )
    experiments, _ = measure_experiments(url, tmp_path / "r", "cache_cliff")
    cliff = cache_cliff.cliff(experiments["SW"])
    assert cliff is not None
    assert cliff.fast * PAGE == pytest.approx(slc_ns / 8, rel=0.02)
    assert cliff.slow * PAGE == pytest.approx(PROGRAM_NS / 8, rel=0.02)
    holds = 8 * blocks * 16 * PAGE
    assert cliff.tolerance < holds / 8, "the printed value is precise enough"
    assert abs(cliff.at - holds) < cliff.tolerance


def test_device_without_cache_has_no_cliff(tmp_path: Path) -> None:
    experiments, text = measure_experiments(EIGHT_DIES, tmp_path / "r", "cache_cliff")
    assert cache_cliff.cliff(experiments["SW"]) is None
    assert text.startswith("No cliff")


def test_cache_refills_at_flash_rate(tmp_path: Path) -> None:
    """After idling for p the cache has free space for p × d; further writes wait for the flash."""
    cache = 8 * MIB
    url = f"{SLOW_LINK}&write_cache_bytes={cache}&flush=eager"
    experiments, _ = measure_experiments(url, tmp_path / "r", "cache_refill")
    fast, slow = 1e9 / 280_000_000, PROGRAM_NS / 8 / PAGE
    for run in experiments["SW"]:
        burst = run["spec"]["burst"] * run["spec"]["io_size"]
        assert burst > 2 * cache
        free_bytes = min(run["value"] / slow, cache) / (1 - fast / slow)
        expected = (
            (fast * free_bytes + slow * (burst - free_bytes)) / burst * run["spec"]["io_size"]
        )
        assert mean_ns(run) == pytest.approx(expected, rel=0.05), run["value"]


def test_reads_during_writes_follow_littles_law(tmp_path: Path) -> None:
    """One die is never idle: 16 under way take 16 times what one takes on average."""
    experiments, text = measure_experiments(
        ONE_DIE, tmp_path / "r", "read_under_write", io_size=PAGE
    )
    for run in experiments["RW/RR"]:
        share = run["value"] / 100
        served = share * PROGRAM_NS + (1 - share) * READ_NS
        assert mean_ns(run) == pytest.approx(DEPTH * served, rel=0.1), run["value"]
        assert isinstance(run["components"]["second"]["statistics"], dict)
    assert " of reads is " in text
    assert "(50 %)" in text


def test_small_reads_wait_for_pages_of_long_ones(tmp_path: Path) -> None:
    """Little's law, if half of the I/Os have several pages."""
    experiments, text = measure_experiments(ONE_DIE, tmp_path / "r", "mixed_sizes")
    for run in experiments["RR/RR"]:
        pages = run["value"] / PAGE
        assert mean_ns(run) == pytest.approx(DEPTH * READ_NS * (1 + pages) / 2, rel=0.1)
    assert "among writes of 4 KiB a small read takes" in text


def test_used_up_free_blocks_are_no_steady_state(tmp_path: Path) -> None:
    """No block is full before the run ends: each write is a program, from the first to the last."""
    experiments, text = measure_experiments(ONE_DIE, tmp_path / "r", "steady_state")
    first = experiments["RW"][0]
    assert mean_ns(first) == pytest.approx(PROGRAM_NS, rel=0.01)
    assert first["repetitions"][0]["converged"]
    assert first["together"]["converged"] is False
    assert first["steadiness"]["reasons"] == ["too_little_written"]
    # The device was written in order: twice its 153 MiB, at 300 µs for 4 KiB each.
    size = first["steadiness"]["needed_bytes"]
    assert first["steadiness"]["needed_ns"] == pytest.approx(size / PAGE * PROGRAM_NS, rel=0.01)
    assert text.startswith("4 KiB: not steady after 38.25 MiB (too little was written): 3,333 IOPS")


def test_steady_rate_matches_greedy_model(tmp_path: Path) -> None:
    blocks, size, spare = 128, 512, 0.25
    url = ONE_DIE.replace("state=sequential", "state=random") + f"&gc=greedy&pages_per_block={size}"
    url = url.replace("blocks_per_die=1024", f"blocks_per_die={blocks}")
    url = url.replace("spare_factor=0.4", f"spare_factor={spare}")
    experiments, text = measure_experiments(
        url, tmp_path / "r", "steady_state", scale="standard", state="random", repetitions=2
    )
    pages = package.inspect_device(url).capacity_bytes // PAGE
    pool = theory.pool_spare_factor(
        physical_blocks=blocks, pages_per_block=size, logical_pages=pages, held_blocks=2
    )
    moved = theory.greedy(spare_factor=pool, pages_per_block=size)
    first = experiments["RW"][0]
    verdict = first["steadiness"]
    assert verdict["steady"], verdict["reasons"]
    assert verdict["write_amplification"] == pytest.approx(moved, rel=0.05)
    each_ns = PROGRAM_NS + (moved - 1) * (READ_NS + PROGRAM_NS)
    assert verdict["ios_per_s"] == pytest.approx(1e9 / each_ns, rel=0.05)
    assert f"4 KiB: {round(verdict['ios_per_s']):,} IOPS" in text
    assert len(first["rounds"]) == 2
    # No other recording of the device is stored.
    assert not (tmp_path / "r" / "inside").exists()
    page = tmp_path / "page.html"
    assert uflip("report", tmp_path / "r", "-o", page).code == 0
    assert "written [GiB]" in page.read_text()


# End to end


def test_suite_runs_on_a_file_and_is_reported(tmp_path: Path) -> None:
    target, out, page = tmp_path / "target.bin", tmp_path / "r", tmp_path / "report.html"
    only = ("--only", "queue_depth,read_under_write,cache_cliff")
    outcome = uflip(
        "run", f"file:{target}", "--size", "48MiB", "--suite", "today", *only, "--scale", "quick",
        "--io-size", "4KiB", "--buffered", "--durability", "cached", "--pause", "1ms", "--out", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "Queue depth   queue_depth 1 … 256" in outcome.out
    assert "the knee is at depth" in outcome.out
    assert "Read under write   first_percent 1 … 50" in outcome.out
    assert "cache_cliff SW: 16 MiB are more than a quarter of the device of 48 MiB" in outcome.out
    assert uflip("report", out, "-o", page).code == 0
    html = page.read_text()
    for name in NAMES:
        assert f'id="{name}"' in html
    assert 'id="granularity"' not in html
    assert "share of the first pattern [%]" in html
    experiments = package.load(out).summary["micro_benchmarks"]
    assert set(experiments) == {"queue_depth", "read_under_write", "cache_cliff"}
    refused = uflip("run", f"file:{target}", "--suite", "uflip", "--only", "queue_depth")
    assert refused.code == 2
    assert "--suite today" in refused.err


def test_plan_file_keeps_suite_and_scale(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    outcome = uflip("plan", EIGHT_DIES, "--suite", "today", "--scale", "quick", "--out", path)
    assert outcome.code == 0, outcome.err
    expected = package.plan(EIGHT_DIES, suite="today", scale="quick")
    read = package.plan(EIGHT_DIES, plan=path)
    assert [run.id for run in read.runs] == [run.id for run in expected.runs]
    assert any(isinstance(run.spec, Mix) for run in read.runs)
    refused = uflip("run", EIGHT_DIES, "--suite", "today", "--plan", path)
    assert refused.code == 2
    assert "--suite" in refused.err


# Reads during writes at a set rate, on a simulated device with one die: a queue with one server.


# Commands, link and channel take no time: only the die does. Half of it is free.
ONE_DIE_DEVICE = (
    "sim:ofc?channels=1&dies_per_channel=1&blocks_per_die=4096&pages_per_block=64&metadata_pages=0"
    "&spare_factor=0.5&state=sequential&command_read_ns=0&command_write_ns=0"
    "&channel_bytes_per_s=1000000000000000&bus_bytes_per_s=1000000000000000"
)


@pytest.mark.parametrize("percent", [80, 90, 93])
def test_reads_wait_as_queueing_theory_predicts(percent: int) -> None:
    with open_device(ONE_DIE_DEVICE) as device:
        context = Context(device.info, "quick", 1, io_size=PAGE)
        single_ns = {
            mode: int(np.median(np.asarray(device.run(
                basic(mode, "random", io_size=PAGE, io_count=99)).column("response_time_ns"))))
            for mode in ("read", "write")
        }  # fmt: skip
        spec = write_rate._describe(context, percent).but(
            io_count=100_000, io_ignore=0, seed=percent
        )
        trace = device.run(spec)
    assert spec.interval is not None
    rate, share = 1e9 / spec.interval, percent / 100
    assert rate * (1 - share) == pytest.approx(write_rate.READS_PER_S, rel=1e-3)
    assert rate * share == pytest.approx(write_rate.rate_of(percent), rel=0.01)
    service = {mode: ns / 1e9 for mode, ns in single_ns.items()}
    busy = rate * (share * service["write"] + (1 - share) * service["read"])
    square = share * service["write"] ** 2 + (1 - share) * service["read"] ** 2
    expected = rate * square / (2 * (1 - busy))
    took = np.asarray(trace.column("response_time_ns"))
    reads = np.asarray(trace.column("component")) == 1
    waited = took[reads].mean() / 1e9 - service["read"]
    assert waited == pytest.approx(expected, rel=0.08)
    # Theory predicts the same wait for reads and writes together.
    overall = (took.mean() / 1e9) - (share * service["write"] + (1 - share) * service["read"])
    assert overall == pytest.approx(expected, rel=0.05)


def test_suite_reports_cost_of_write_rate(workdir: Path) -> None:
    outcome = uflip("run", "sim:demo", "--suite", "today", "--scale", "quick", "--only",
                    "write_rate", "--out", "out", "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert uflip("report", "out", "-o", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "At 200 reads per second, their p95 is" in page
    assert "56.25 MiB/s of writes are too many" in page
    runs = Results.load(Path("out")).runs
    rates = [run.value for run in runs if run.micro_benchmark == "write_rate"]
    assert rates == [32768 * rate for rate in (2, 200, 1800, 9800)]
