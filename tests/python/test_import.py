"""Import of fio logs as results; the logs are those of crates/foreign/tests/data."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.results import Results
from uflip.results.rate_limit import find_ticks
from uflip.results.run_warnings import STALL_NS
from uflip.web import slow_ios
from uflip.web.open_run import OpenRun

DATA = Path(__file__).resolve().parents[2] / "crates" / "foreign" / "tests" / "data"
LOG, QUEUE = DATA / "fio-3.33_lat.1.log", DATA / "fio-3.33-queue_lat.1.log"


def fields(path: Path) -> list[list[int]]:
    return [[int(field, 0) for field in line.split(", ")] for line in path.read_text().splitlines()]


def test_imported_run_has_fios_measurements(tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = uflip("import", "fio-log", LOG, QUEUE, "--out", out, "-q")
    assert outcome.code == 0, outcome.err
    results = Results.load(out)
    assert results.manifest.status == "complete"
    first, second = results.runs
    trace = first.trace()
    rows = fields(LOG)
    assert np.asarray(trace.column("response_time_ns")).tolist() == [row[1] for row in rows]
    assert np.asarray(trace.column("offset_bytes")).tolist() == [row[4] for row in rows]
    assert np.asarray(trace.column("mode")).tolist() == [row[2] for row in rows]
    times = np.sort(np.asarray(second.trace().column("response_time_ns")))
    assert times.tolist() == sorted(row[1] for row in fields(QUEUE))
    assert [each.code for each in results.manifest.warnings if each.code == "no_offsets"]
    mean = np.mean([row[1] for row in rows])
    assert results.summary_of([first]).statistics["mean_ns"] == pytest.approx(mean)


def test_imported_durability_is_unknown(tmp_path: Path) -> None:
    """The import and a comparison warn of it, also a comparison with itself."""
    folder = tmp_path / "out"
    assert uflip("import", "fio-log", LOG, "--out", folder, "-q").code == 0
    assert Results.load(folder).manifest.durability == "unknown"
    text = uflip("compare", str(folder), str(folder)).out
    assert "unknown: it is unknown when a write was complete" in text
    assert uflip("show", str(folder)).code == 0
    assert uflip("report", str(folder), "-o", str(tmp_path / "r.html")).code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "it is unknown when a write was complete" in page


def write_fio_log(
    path: Path, mean_ns: float, ios: int = 3000, mode: int = 0, seed: int = 1, *, depth: int = 1
) -> Path:
    """Write a fio log of `depth` parallel I/Os, 10 µs apart, with millisecond timestamps."""
    took = np.random.default_rng(seed).normal(mean_ns, mean_ns / 20, ios).astype(int)
    ends = np.cumsum(took + 10_000) // depth // 1_000_000
    rows = zip(ends.tolist(), took.tolist(), range(ios), strict=True)
    path.write_text(
        "".join(f"{end}, {ns}, {mode}, 4096, {4096 * index}, 0\n" for end, ns, index in rows)
    )
    return path


def experiment_names(folder: Path) -> list[tuple[str, str | None, float | None]]:
    results = Results.load(folder)
    return [(each.pattern, each.parameter, each.value) for each in results.manifest.plan]


def test_experiment_is_named_after_its_job(workdir: Path) -> None:
    """The prefix of a log names the measurement: before, after."""
    before = [write_fio_log(Path(f"before_clat.{job}.log"), 1e5 * job, seed=job) for job in (1, 2)]
    after = [
        write_fio_log(Path(f"after_clat.{job}.log"), 1.2e5 * job, seed=job + 2) for job in (1, 2)
    ]
    for logs, out in ((before, "before"), (after, "after"), (reversed(before), "turned")):
        assert uflip("import", "fio-log", *logs, "--out", out, "-q").code == 0
    assert experiment_names(Path("before")) == [("read-clat", "job", 1), ("read-clat", "job", 2)]
    assert experiment_names(Path("turned")) == [("read-clat", "job", 2), ("read-clat", "job", 1)]
    # The manifest names the files.
    results = Results.load(Path("before"))
    assert results.manifest.host["imported_from"] == ["before_clat.1.log", "before_clat.2.log"]
    assert [run.id for run in results.runs] == [
        "0001-imported-before-clat.1", "0002-imported-before-clat.2",
    ]  # fmt: skip
    outcome = uflip("compare", "before", "after", "--fail-if-slower", "5%")
    assert "2 experiments in both: 2 slower" in outcome.out
    assert outcome.code == 7
    assert "imported read-clat job 1: x1.2" in outcome.err
    assert uflip("compare", "before", "turned", "--fail-if-slower", "5%").code == 0


def test_names_contain_mode_and_kind_of_latency(workdir: Path) -> None:
    logs = [
        write_fio_log(Path("a_lat.1.log"), 1e5, 100),
        write_fio_log(Path("a_slat.1.log"), 1e5, 100),
        write_fio_log(Path("a_lat.2.log"), 1e5, 100, mode=1),
        LOG,
        write_fio_log(Path("b_lat.1.log"), 1e5, 100),
        write_fio_log(Path("whatever.txt"), 1e5, 100),
    ]
    refused = uflip("import", "fio-log", *logs, "--out", "out", "-q")
    assert (refused.code, "give --unit ns" in refused.err) == (5, True)
    assert uflip("import", "fio-log", *logs, "--unit", "ns", "--out", "out", "-q").code == 0
    assert experiment_names(Path("out")) == [
        ("read-lat", "job", 1), ("read-slat", "job", 1), ("write-lat", "job", 2),
        ("rw-lat", "job", 1),
        # Another job 1 that does the same.
        ("read-lat", "job", 2), ("read-log", "job", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("took_ns", "depth"), [(4_000_000, 4), (70_000, 1)])
def test_millisecond_timestamps_give_no_host_or_tick_warnings(
    workdir: Path, took_ns: int, depth: int
) -> None:
    """Millisecond timestamps are not timer ticks, and gaps between I/Os are not host stalls."""
    log = write_fio_log(Path("a_lat.1.log"), took_ns, depth=depth)
    assert uflip("import", "fio-log", log, "--out", "out", "-q").code == 0
    results = Results.load(Path("out"))
    assert not {"at_ticks", "host_stalls"} & {each.code for each in results.manifest.warnings}
    (run,) = results.runs
    trace = run.trace()
    gaps, begins, took = (
        np.asarray(trace.column(name)) for name in ("host_gap_ns", "submit_ns", "response_time_ns")
    )
    mistaken = (
        find_ticks(begins, took) is not None if depth > 1 else np.mean(gaps > STALL_NS) > 0.001
    )
    assert mistaken == (depth == 1), "idle times of one I/O at a time look like stalls"
    opened = OpenRun(results, run)
    names = {name for (name, _), _ in slow_ios._marks(opened, 0, 3000, 0, 3000)}
    assert "position" in names
    assert not {"host gap", "idle before"} & names
    assert not {"host_gap_ns", "idle_before_ns"} & set(slow_ios.io_view(opened, 1))


AVERAGES = "5, 4258006, 0, 0, 0, 0\n10, 307794, 0, 0, 0, 0\n15, 310547, 0, 0, 0, 0\n"
"""A log of fio 3.33 with log_avg_msec=5."""
BOTH = "15, 17198, 26389, 1, 0, 0\n17, 16353, 16353, 0, 0, 0\n"
"""A log of fio 3.42 with log_window_value=both too."""


@pytest.mark.parametrize("content", [AVERAGES, BOTH])
def test_log_of_averages_is_refused(workdir: Path, content: str) -> None:
    Path("a_lat.1.log").write_text(content)
    outcome = uflip("import", "fio-log", "a_lat.1.log", "--out", "out", "-q")
    assert outcome.code == 5
    assert "The log contains averages" in outcome.err
    assert "log_avg_msec" in outcome.err
    # Other faults are reported as they are.
    Path("b_lat.1.log").write_text("5, 4258006, 7, 4096, 0, 0\n")
    assert "averages" not in uflip("import", "fio-log", "b_lat.1.log", "--out", "out", "-q").err
    assert "No such file" in uflip("import", "fio-log", "nowhere", "--out", "out", "-q").err
    assert not Path("out").exists()


def test_advice_names_available_options(workdir: Path) -> None:
    """Neither `import` nor `replay` has --state, so the advice does not name it."""
    write_fio_log(Path("a_lat.1.log"), 1e5, 100)
    assert uflip("import", "fio-log", "a_lat.1.log", "--out", "out", "-q").code == 0
    trace = next(Path("out/runs").glob("*.parquet"))
    arguments = ("replay", trace, "file:f", "--size", "1MiB", "--buffered", "--out", "again", "-q")
    assert uflip(*arguments).code == 0
    imported, replayed = (
        next(
            each
            for each in Results.load(Path(folder)).manifest.warnings
            if each.code == "state_not_enforced"
        )
        for folder in ("out", "again")
    )
    assert "The initial state of the device is unknown" in imported.message
    assert imported.advice.startswith("compare only with runs on a device")
    assert replayed.advice.startswith("use `uflip prepare` before")


@pytest.mark.parametrize("version", ["3.17_lat", "3.42_clat"])
def test_fifth_field_is_the_offset_in_every_fio_version(workdir: Path, version: str) -> None:
    log = DATA / f"fio-{version}.1.log"
    assert uflip("import", "fio-log", log, "--out", "out", "-q").code == 0
    results = Results.load(Path("out"))
    assert "no_offsets" not in {each.code for each in results.manifest.warnings}
    (run,) = results.runs
    offsets = [int(line.split(", ")[4]) for line in log.read_text().splitlines()]
    assert np.asarray(run.trace().column("offset_bytes")).tolist() == offsets


def test_log_of_mixed_versions_is_refused(workdir: Path) -> None:
    Path("a_lat.1.log").write_text("1, 900, 0, 4096, 0x2000\n2, 900, 0, 4096, 8192\n")
    outcome = uflip("import", "fio-log", "a_lat.1.log", "--out", "out", "-q")
    assert (outcome.code, Path("out").exists()) == (5, False)
    assert "field 5: decimal and hexadecimal numbers" in outcome.err


def test_every_verb_reads_an_imported_log(tmp_path: Path) -> None:
    out = tmp_path / "out"
    uflip("import", "fio-log", LOG, "--out", out, "-q")
    for verb in (
        ("show", out, "--full"),
        ("verify", out),
        ("report", out, "-o", tmp_path / "page.html"),
        ("export", out, "-o", tmp_path / "tables"),
        ("compare", out, out),
        ("analyse", next((out / "runs").glob("*.parquet"))),
    ):
        outcome = uflip(*verb)
        assert outcome.code == 0, (verb[0], outcome.err)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_log_of_the_installed_fio_is_imported(workdir: Path) -> None:
    job = ["--name=j", "--rw=randrw", "--filename=target", "--size=1m", "--bs=4k"]
    subprocess.run(
        ["fio", *job, "--ioengine=psync", "--write_lat_log=j", "--log_offset=1"],
        check=True,
        capture_output=True,
    )
    (log,) = Path().glob("j_lat*.log")
    assert uflip("import", "fio-log", log, "--out", "out", "-q").code == 0
    (run,) = Results.load(Path("out")).runs
    trace = run.trace()
    rows = fields(log)
    assert np.asarray(trace.column("response_time_ns")).tolist() == [row[1] for row in rows]
    assert np.asarray(trace.column("offset_bytes")).tolist() == [row[4] for row in rows]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize(
    ("engine", "depth", "jobs"), [("psync", 1, 1), ("psync", 1, 4), ("libaio", 16, 1)]
)
def test_queue_depth_is_that_of_the_job(engine: str, depth: int, jobs: int, workdir: Path) -> None:
    """The log has whole milliseconds, in which all I/Os of a millisecond overlap."""
    Path("target").write_bytes(bytes(8 << 20))
    job = ["--name=j", "--rw=randread", "--filename=target", "--size=8m", "--direct=1"]
    options = [f"--ioengine={engine}", f"--iodepth={depth}", f"--numjobs={jobs}"]
    log = ["--write_lat_log=j", "--per_job_logs=0", "--norandommap", "--io_size=16m"]
    subprocess.run(["fio", *job, *options, *log], check=True, capture_output=True)
    assert uflip("import", "fio-log", "j_lat.log", "--out", "out", "-q").code == 0
    (run,) = Results.load(Path("out")).runs
    found = json.loads(run.trace().spec_json)["queue_depth"]
    # By chance, or a busy machine, fewer are in flight than may be.
    assert 0.7 * depth * jobs <= found <= depth * jobs + 1
    if depth * jobs == 1:
        assert found == 1


def test_unknown_conditions_are_reported_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert uflip("import", "fio-log", LOG, "--out", out, "-q").code == 0
    outcome = uflip("compare", out, out)
    assert outcome.code == 0, outcome.err
    printed = " ".join(outcome.out.split())  # without the ends of lines
    for unknown in ("durability", "data", "state"):
        assert printed.count(f"same conditions. {unknown} of both unknown") == 1, outcome.out
    assert "unknown and unknown" not in printed
    assert printed.count("it is unknown when a write was complete") == 1
