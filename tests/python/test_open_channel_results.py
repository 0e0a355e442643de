"""Results of an open-channel device are stored, read, shown and resumed like any other."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import uflip

import uflip as api
from uflip import _native
from uflip.analysis import analyse
from uflip.benchmark import BenchmarkRequest, begin, resume
from uflip.data.run_summary import FOLDER
from uflip.data.summary import OpenChannel
from uflip.errors import InterruptedRun, ResultsError, UflipError, UsageError
from uflip.microbench import micro_benchmarks_for
from uflip.microbench.open_channel.jobs import SCALES
from uflip.oc import Job, open_flash_device
from uflip.oc.benchmark import layout, measure, name_of
from uflip.oc.result_dir import OpenChannelResult
from uflip.oc.session import Session
from uflip.report.findings import finding
from uflip.results import Results
from uflip.results.statistics import job_convergence

# Another geometry than the paper's.
OTHER = "sim:dfc?channels=3&luns_per_channel=2&planes=1&pages_per_block=16&blocks_per_plane=8"
# Mixes, LUNs, wear; LUNs of a channel; vectors and threads, all LUNs, shares; order.
JOBS = (5 + 2 * 6 + 1) + 4 * 2 + (4 * 2 + 2 + 4) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("oc") / "r"
    return begin(BenchmarkRequest(device=OTHER, scale="quick"), out)


def plain(result: Any) -> Any:
    """Everything that was found, for comparison."""
    if is_dataclass(result):
        return {each.name: plain(getattr(result, each.name)) for each in fields(result)}
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    return result.tolist() if isinstance(result, np.ndarray) else result


def test_stored_results_match_measurement(folder: Path) -> None:
    """Compare with the same benchmark on a second device, whose logs were never stored."""
    session = Session(open_flash_device(OTHER), SCALES["quick"], (2, 1, 7))
    loaded = OpenChannelResult(Results.load(folder))
    assert plain(loaded.measured) == plain(measure(session, [*micro_benchmarks_for("physical")]))
    assert loaded.measured.oc1 is not None
    assert loaded.measured.oc1.cycles > 10


def test_command_log_is_not_reported_as_damaged_trace(folder: Path, workdir: Path) -> None:
    result = api.load(folder)
    run = result.runs[0]
    for read in (run.trace, run.response_time_ns, lambda: result.trace(run.id)):
        with pytest.raises(UsageError, match="a command log") as raised:
            read()
        assert "log()" in raised.value.action
    assert len(run.log()) > 0
    outcome = uflip("replay", run.path, "sim:demo", "--out", "out", "-q")
    assert (outcome.code, Path("out").exists()) == (5, False)
    assert "the log of a job over physical addresses" in outcome.err
    assert "damaged" not in outcome.err
    # The commands that the advice names.
    assert uflip("analyse", run.path).code == 0
    assert uflip("export", folder, "-o", "tables").code == 0


def test_log_round_trips_through_parquet(tmp_path: Path) -> None:
    device = open_flash_device(OTHER)
    jobs: list[dict[str, Any]] = [
        {"channels": 3, "threads": 3, "pages": 16, "mix": "WWR", "blocks": 2},
        {"channels": 3, "vector": 3, "pages": 4, "mix": "W", "iteration": "round_robin"},
        {"first_page": 1, "mix": "W"},
        {"kind": "wear", "blocks": 1, "pages": 8, "repeat": 40},
    ]
    for number, job in enumerate(jobs):
        log, path = device.run(job), tmp_path / f"{number}.parquet"
        log.write_parquet(str(path), '{"id": "x"}')
        reread = _native.read_flash_trace(str(path))
        assert (reread.columns, reread.causes, len(reread)) == (log.columns, log.causes, len(log))
        assert json.loads(reread.job_json) == json.loads(log.job_json)
        assert reread.elapsed_ns() == log.elapsed_ns()
        assert reread.erase_failed == log.erase_failed
        assert reread.metadata_json == '{"id": "x"}'
        for name in log.columns:
            one, other = np.asarray(reread.column(name)), np.asarray(log.column(name))
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        table = pq.read_table(path)
        assert table.num_rows == len(log)


def test_corrupted_log_is_refused_or_unchanged(folder: Path, tmp_path: Path) -> None:
    """As those of patterns: without a digest to hold them against."""
    content = (folder / "runs" / "0003-oc0-WRWR.parquet").read_bytes()
    before = _native.read_flash_trace(str(folder / "runs" / "0003-oc0-WRWR.parquet"))
    path, rng, refused = tmp_path / "x.parquet", random.Random(5), 0
    for case in range(400):
        changed = bytearray(content)
        if case % 4 == 0:
            del changed[rng.randrange(len(changed)) :]
        else:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            log = _native.read_flash_trace(str(path))
        except _native.NativeError:
            refused += 1
            continue
        if case % 4 == 0:
            assert len(log) == len(before)
    assert refused > 150
    digest = (len(content), _native.digest(content))
    path.write_bytes(content)
    assert len(_native.read_flash_trace(str(path), digest)) == len(before)
    path.write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(_native.NativeError):
        _native.read_flash_trace(str(path), digest)


def test_folder_has_the_common_format(folder: Path) -> None:
    results = Results.load(folder)
    assert (results.status, results.missing, len(results.runs)) == ("complete", [], JOBS)
    assert {verdict.state for verdict in results.verification.verdicts} == {"proven"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["device"]["details"]["interface"] == "open_channel"
    assert manifest["host"]["kernel"]
    outcome = uflip("verify", folder, "--json")
    assert outcome.code == 0, outcome.err
    shutil.copytree(folder, folder.with_name("broken"))
    path = folder.with_name("broken") / "runs" / "0003-oc0-WRWR.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    broken = Results.load(folder.with_name("broken"))
    assert len(broken.runs) == JOBS - 1
    assert OpenChannelResult(broken).measured.oc0 is None
    assert OpenChannelResult(broken).measured.oc2 is not None
    assert [each["code"] for each in broken.warnings] == ["damaged"]


def test_result_is_shown_reported_and_compared(folder: Path, tmp_path: Path) -> None:
    text = uflip("show", folder)
    assert text.code == 0, text.err
    for part in ("oc0: one LUN", "oc1: block 2:1:7", "oc3: channels", "holds and is trivial"):
        assert part in text.out
    document = json.loads(uflip("show", folder, "--json").out)
    assert list(document["micro_benchmarks"]) == ["oc0", "oc1", "oc2", "oc3"]
    assert document["open_channel"]["oc2"]["writes, one thread"]["mb_per_s"]["1"] > 0
    assert len(document["open_channel"]["contract"]) == 5
    # The document has the fields of its type, and no others.
    typed = msgspec.convert(document["open_channel"], OpenChannel)
    assert msgspec.to_builtins(typed) == document["open_channel"]
    page = tmp_path / "r.html"
    assert uflip("report", folder, "-o", page).code == 0
    html = page.read_text()
    for anchor in ("oc0", "oc1", "oc2", "oc3", "contract", "warnings", "provenance"):
        assert f'<section id="{anchor}">' in html
    assert html.count("<svg") == 6
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "<script" not in html
    compared = uflip("compare", folder, folder, "--json")
    assert compared.code == 0, compared.err


def test_largest_effect_varies_one_parameter(folder: Path) -> None:
    """A write out of order is rejected at once, and no cheaper one than those of the LUNs."""
    document = OpenChannelResult(Results.load(folder)).summary()
    runs = document["micro_benchmarks"]["oc0"]
    (order,) = (run for run in runs if run["parameter"] == "first_page")
    assert order["statistics"]["mean_ns"] == min(run["statistics"]["mean_ns"] for run in runs)
    means = [
        run["statistics"]["mean_ns"]
        for run in runs
        if (run["parameter"], run["pattern"]) == ("lun", order["pattern"])
    ]
    assert max(means) / min(means) < 1.05 < max(means) / order["statistics"]["mean_ns"]
    assert finding("oc0", document) == "No decided mean varies by more than 5%."


def test_logs_are_exported(folder: Path, tmp_path: Path) -> None:
    for file_format in ("csv", "parquet"):
        out = tmp_path / file_format
        outcome = uflip("export", folder, "--format", file_format, "--out", out)
        assert outcome.code == 0, outcome.err
        logs = sorted(path.name for path in (out / "logs").iterdir())
        assert len(logs) == JOBS
        assert "0018-oc1-wear.parquet" in logs
        assert f"0003-oc0-WRWR.{file_format}" in logs
        assert len((out / "summary.csv").read_text().splitlines()) == JOBS + 1
        assert "unknown" not in (out / "columns.csv").read_text()
    rows = (tmp_path / "csv" / "logs" / "0003-oc0-WRWR.csv").read_text().splitlines()
    assert len(rows) == 1 + pq.read_table(folder / "runs" / "0003-oc0-WRWR.parquet").num_rows


def test_result_is_read_from_python(folder: Path) -> None:
    result = api.load(folder)
    assert result.summary["open_channel"]["oc0"]["mixes"]["WWWWW"]["mb_per_s"] > 0
    assert result.frame().num_rows == JOBS
    pyramid = result.pyramid("0003-oc0-WRWR")
    assert pyramid is not None
    assert int(pyramid.over_number["count"].sum()) == len(result.runs[2].log())


def test_summary_does_not_depend_on_cache(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "r"
    shutil.copytree(folder, bare)
    shutil.rmtree(bare / FOLDER)
    assert (
        OpenChannelResult(Results.load(bare)).summary()
        == OpenChannelResult(Results.load(folder)).summary()
    )


def test_interrupted_benchmark_resumes_to_same_result(folder: Path, tmp_path: Path) -> None:
    request = BenchmarkRequest(device=OTHER, scale="quick", only=["oc0", "oc2"])
    whole = begin(request, tmp_path / "whole")
    cut = tmp_path / "cut"
    with pytest.raises(InterruptedRun, match="Interrupted after"):
        begin(request, cut, interrupt_after(7))
    results = Results.load(cut)
    assert (results.status, len(results.runs)) == ("interrupted", 7)
    assert OpenChannelResult(results).measured.oc0 is None
    assert uflip("show", cut).code == 0
    outcome = uflip("run", "--resume", cut, "-q")
    assert outcome.code == 0, outcome.err
    one, two = OpenChannelResult(Results.load(whole)), OpenChannelResult(Results.load(cut))
    assert plain(one.measured) == plain(two.measured)
    with pytest.raises(ResultsError, match="complete"):
        resume(cut)


def interrupt_after(jobs: int) -> Callable[[Any], None]:
    finished = 0

    def watch(event: Any) -> None:
        nonlocal finished
        if type(event).__name__ == "RunFinished":
            finished += 1
            if finished == jobs:
                raise KeyboardInterrupt

    return watch


def test_resume_on_another_device_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    with pytest.raises(InterruptedRun):
        begin(BenchmarkRequest(device=OTHER, scale="quick", only=["oc2"]), cut, interrupt_after(3))
    with pytest.raises(UflipError, match="another device"):
        resume(cut, device="sim:dfc")


def test_run_selects_benchmark_of_the_device(tmp_path: Path) -> None:
    result = api.run(OTHER, tmp_path / "r", scale="quick", only=["oc2"])
    assert result.status == "complete"
    assert list(result.summary["open_channel"]) == ["oc2", "contract"]
    outcome = uflip("run", OTHER, "--scale", "quick", "--only", "oc2", "--io-size", "4k")
    assert outcome.code == 2
    assert "--io-size" in outcome.err
    outcome = uflip("run", OTHER, "--only", "granularity")
    assert outcome.code == 2
    assert "oc0, oc1, oc2, oc3" in outcome.err


def test_refused_benchmark_creates_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "r"
    outcome = uflip("oc", OTHER, "--scale", "quick", "--sacrifice", "0:0:1", "--out", out)
    assert outcome.code == 3
    assert "in use" in outcome.err
    assert not out.exists()
    out.mkdir()
    outcome = uflip("oc", OTHER, "--scale", "quick", "--only", "oc2", "--out", out)
    assert outcome.code == 5
    assert "never overwritten" in outcome.err


def test_planned_jobs_have_unique_names() -> None:
    session = Session(open_flash_device(OTHER), SCALES["standard"], (2, 1, 7))
    runs = layout(session.scope, [*micro_benchmarks_for("physical")])
    names = [name_of(run.id) for run in runs]
    jobs = {(run.micro_benchmark, run.pattern, run.parameter, run.value) for run in runs}
    assert len(set(names)) == len(jobs) == len(runs) == JOBS


def test_runs_with_failed_commands_are_in_no_finding(folder: Path) -> None:
    document = OpenChannelResult(Results.load(folder)).summary()
    runs = document["micro_benchmarks"]["oc3"]
    (one,) = (
        each for each in runs
        if (each["pattern"], each["parameter"], each["value"]) == ("W", "threads", 3)
    )  # fmt: skip
    assert "threads = 3" in finding("oc3", document)
    # Commands that fail are over at once.
    quick = {**one, "statistics": {**(one["statistics"] or {}), "mean_ns": 1e3}}
    others = [quick if each is one else each for each in runs]
    broken: Any = {**document, "micro_benchmarks": {"oc3": others}}
    assert "1 µs at threads = 3" in finding("oc3", broken)
    numbers = {"runs": [one["run"]]}
    failed = {"code": "failed_commands", "message": "", "advice": "", "numbers": numbers}
    assert "threads = 3" not in finding("oc3", {**broken, "warnings": [failed]})


def test_plan_lists_what_is_run(folder: Path) -> None:
    entries = Results.load(folder).manifest.plan
    assert [(run.id, run.spec) for run in api.plan(OTHER, scale="quick").runs] == [
        (run.id, run.spec) for run in entries
    ]
    document = json.loads(uflip("plan", OTHER, "--scale", "quick", "--json").out)
    assert [run["id"] for run in document["runs"]] == [run.id for run in entries]
    assert len(document["totals"]) == len(entries) == JOBS
    logs = [run for run in Results.load(folder).runs if run.micro_benchmark == "oc2"]
    commands = sum(len(run.log()) for run in logs)
    outcome = uflip("plan", OTHER, "--scale", "quick", "--runs")
    assert outcome.code == 0, outcome.err
    table = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line.strip()}
    assert table["oc2"][1:3] == [str(len(logs)), f"{commands:,}"]
    assert table["total"][1] == str(JOBS)
    assert "oc1 wears out block 2:1:7" in outcome.out
    assert all(run.id in table for run in entries)


# A saved open-channel device continues as it would have, and differs from a block device.


# Worn blocks, so that random cell errors matter.
WORN = "sim:dfc?channels=2&luns_per_channel=2&blocks_per_plane=8&pages_per_block=16&erases=3000"
WRITES = Job(channels=2, luns=2, blocks=2, pages=16, mix="WR")


def test_saved_device_continues_identically(tmp_path: Path) -> None:
    device = open_flash_device(WORN)
    device.run(WRITES)
    path = tmp_path / "written.snapshot"
    device.save(path)
    other = open_flash_device(f"sim:{path}")
    assert other.geometry == device.geometry
    assert other.info.details.snapshot is not None
    # The last page of block 1 is written already, block 3 is not.
    old = [(1, 1, 1, plane, 15, sector) for plane in range(2) for sector in range(4)]
    new = [(1, 1, 3, plane, 0, sector) for plane in range(2) for sector in range(4)]
    for op, addresses in [("read", old), ("write", old), ("write", new), ("read", new)]:
        assert other.command(op, addresses) == device.command(op, addresses)
    assert device.command("write", old)[1] == ["out_of_order"] * 8
    logs = [np.asarray(one.run(WRITES).column("response_time_ns")) for one in (device, other)]
    assert np.array_equal(*logs)


def test_device_is_saved_and_read_from_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = ["--blocks", "1", "--pages", "8", "--mix", "W"]
    saved = uflip("oc", "pattern", WORN, *job, "--save", "half.snapshot")
    assert saved.code == 0, saved.err
    assert open_flash_device("sim:half.snapshot").block_state(0, 0, 0) == (3001, 8, False)
    read = uflip("oc", "pattern", "sim:half.snapshot", "--pages", "8", "--log", "read.parquet")
    assert read.code == 0, read.err
    assert not any(pq.read_table("read.parquet").column("failed").to_pylist())
    info = json.loads(uflip("info", "sim:half.snapshot", "--json").out)
    assert info["details"]["interface"] == "open_channel"
    assert info["details"]["snapshot"]
    refused = uflip("oc", "pattern", WORN, *job, "--save", "half.snapshot")
    assert refused.code != 0
    assert "half.snapshot" in refused.err


def test_benchmark_of_saved_device_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_flash_device(WORN).save("new.snapshot")
    for name, device in [("a", WORN), ("b", "sim:new.snapshot")]:
        outcome = uflip("oc", device, "--scale", "quick", "--only", "oc0", "--out", name, "-q")
        assert outcome.code == 0, outcome.err
    one, other = (Results.load(Path(name)) for name in "ab")
    assert [run.id for run in one.runs] == [run.id for run in other.runs]
    for first, second in zip(one.runs, other.runs, strict=True):
        times = [np.asarray(run.log().column("response_time_ns")) for run in (first, second)]
        assert np.array_equal(*times)


def test_snapshot_of_other_device_kind_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_flash_device(WORN).save("flash.snapshot")
    with pytest.raises(ResultsError, match="The file exists"):
        open_flash_device(WORN).save("flash.snapshot")
    refused = uflip("pattern", "sim:flash.snapshot", "--pattern", "SR")
    assert refused.code == 2
    assert "has no sectors to address" in refused.err
    assert "uflip oc" in refused.err
    small = "sim:fast-1gb?blocks_per_die=512&spare_factor=0.3"
    outcome = uflip(
        "prepare",
        small,
        "--state",
        "sequential",
        "--save",
        "block.snapshot",
    )
    assert outcome.code == 0, outcome.err
    with pytest.raises(UsageError, match="hides its flash"):
        open_flash_device("sim:block.snapshot")
    with pytest.raises(UsageError, match="cannot be combined with overrides"):
        open_flash_device("sim:flash.snapshot?channels=3")


# Open-channel devices side by side: write completion on each, and which of them is slower.


SMALL = "sim:dfc?channels=3&luns_per_channel=2&planes=1&pages_per_block=16&blocks_per_plane=8"


@pytest.fixture(scope="module")
def compared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(BenchmarkRequest(device=SMALL, scale="quick"), tmp_path_factory.mktemp("oc") / "r")


def test_manifest_durability_follows_write_completion(compared_folder: Path, workdir: Path) -> None:
    """Comparing a device that writes back with one that writes through warns."""
    command = ("oc", "run", f"{SMALL}&write_back=false", "--scale", "quick", "--only", "oc0")
    assert uflip(*command, "--out", "through", "-q").code == 0
    for results, expected in ((compared_folder, "cached"), (Path("through"), "fua")):
        assert json.loads((results / "manifest.json").read_text())["durability"] == expected
    text = " ".join(uflip("compare", compared_folder, "through").out.split())
    assert "cached" in text
    assert "a write is complete when its data would survive a loss of power" in text


def test_compare_finds_slower_reads_of_twin_device(compared_folder: Path, workdir: Path) -> None:
    """A twin with twice the cell read time differs only in reads."""
    options = ("--scale", "quick", "--only", "oc0,oc2,oc3", "--out")
    assert uflip("oc", "run", f"{SMALL}&read_ns=300us", *options, "twin", "-q").code == 0
    comparison = api.compare(compared_folder, "twin")
    # A single write, out of its order; the wear job has no mean.
    assert [row.parameter for row in comparison.rows if row.verdict == "unknown"] == ["first_page"]
    verdicts: dict[str, set[str]] = {row.pattern: set() for row in comparison.rows}
    for row in comparison.rows:
        verdicts[row.pattern].add(row.verdict)
    assert verdicts["R"] == verdicts["RRRR"] == {"slower"}
    assert verdicts["WWWWW"] | verdicts["W"] <= {"same", "not_apart", "unknown"}
    assert comparison.slower_than(0.05)
    # The mean is that of all commands, and the interval of the same.
    run = next(each for each in api.load("twin").runs if each.pattern == "WRRR")
    log = run.log()
    analysis = analyse(np.asarray(log.column("response_time_ns")))
    row = next(row for row in comparison.rows if row.pattern == "WRRR")
    assert row.second_ns == pytest.approx(np.asarray(log.column("response_time_ns")).mean())
    assert row.second_half_ns is not None
    assert row.second_half_ns >= (analysis.half_width_ns or 0) - 1e-3
    # The advice can be followed.
    advice = {each.code: each.advice for each in comparison.conditions}
    assert "different_state" not in advice
    assert "measure one of the devices twice" in advice["one_repetition"]
    assert not [text for text in advice.values() if "--repetitions" in text or "--state" in text]
    self_comparison = api.compare(compared_folder, compared_folder)
    assert {row.verdict for row in self_comparison.rows} == {"same", "not_apart", "unknown"}


def test_job_interval_combines_threads_in_step() -> None:
    rng = np.random.default_rng(5)
    pace = rng.normal(1e6, 2e5, 4000)
    threads = np.tile([3, 5], 4000)
    together = np.repeat(pace, 2)
    two, one = job_convergence(together, threads), job_convergence(pace, np.zeros(4000, int))
    assert two == one
    assert one["half_width_ns"] == pytest.approx(1.96 * 2e5 / np.sqrt(4000), rel=0.4)
    # Threads of different lengths have no pace in common, and one command none at all.
    for times, streams in ((pace, np.arange(4000) // 3000), (pace[:1], np.zeros(1, int))):
        convergence = job_convergence(times, streams)
        assert (convergence["converged"], convergence["half_width_ns"]) == (None, None)
