"""Exported fio jobs: fio runs them on a file, and logs its I/Os.

Sequences and logs must have exactly the run's I/Os; random I/Os must have the same distribution.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

from uflip import spec
from uflip.data.spec import Spec
from uflip.device.opener import open_device
from uflip.results.fio_job import JobSettings, _sections

CACHED_WRITES = JobSettings("cached", is_polled=False)

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

SPACE = 1 << 20
COUNT = 40
RANGE = {"target_offset": 64 << 10, "target_size": 256 << 10, "io_size": 4096, "io_count": COUNT}

EXACT = {
    "sequential": spec.baseline("SR", **RANGE),
    "writes": spec.baseline("SW", **RANGE | {"io_size": 16 << 10}),
    "round": spec.baseline("SW", **RANGE | {"io_count": 100}),
    "pauses": spec.baseline("SR", time="burst", burst=8, pause="1ms", **RANGE),
    "shifted": spec.baseline("SR", **RANGE | {"io_shift": 512}),
}
RANDOM = {
    "random": spec.baseline("RR", **RANGE),
    "writes": spec.baseline("RW", **RANGE),
    "shifted reads": spec.baseline("RR", **RANGE | {"io_shift": 512}),
    "shifted writes": spec.baseline("RW", **RANGE | {"io_shift": 512}),
    "queue": spec.baseline("RR", queue_depth=4, **RANGE),
    "mix": spec.mix(
        *(
            spec.baseline(label, target_offset=64 << 10, target_size=256 << 10, io_size=4096)
            for label in ("RR", "RW")
        ),
        first_percent=70,
        io_count=400,
    ),
    "zipf": spec.basic("read", "zipf", skew_percent=120, **RANGE),
    "hotcold": spec.basic("write", "hotcold", **RANGE),
    "poisson": spec.baseline("RR", time="poisson", interval="100us", **RANGE),
}


def resolve_and_run(pattern: Spec) -> tuple[Spec, Any]:
    """Return the pattern with every default, and its I/Os in uflip."""
    with open_device("sim:demo?blocks_per_die=64") as device:
        trace = device.run(pattern)
    columns = (np.asarray(trace.column(n)) for n in ("offset_bytes", "io_size_bytes", "mode"))
    return spec.read_spec(trace.spec_json), np.stack([each.astype(int) for each in columns], 1)


def run_fio(lines: list[str], log: str = "write_iolog=run") -> Any:
    """Return fio's log of a job: (offset, size, 1 for a write) of each I/O."""
    job = ["[global]", "filename=${UFLIP_TARGET}", "thread=1", "allow_file_create=0", *lines]
    Path("job.fio").write_text("\n".join([*job, log]) + "\n")
    Path("scratch").write_bytes(bytes(SPACE))
    process = subprocess.run(
        ["fio", "job.fio"],
        env=os.environ | {"UFLIP_TARGET": "scratch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    if not log.startswith("write_iolog"):
        # time, response time, direction, size, offset, ...
        (path,) = Path().glob("run_lat*.log")
        times = [line.split(", ") for line in path.read_text().splitlines()]
        return np.array([(int(row[4]), int(row[3]), int(row[2])) for row in times])
    rows = [line.split() for line in Path("run").read_text().splitlines()]
    ios = [
        (int(row[3]), int(row[4]), int(row[2] == "write"))
        for row in rows
        if row[2:3] in (["read"], ["write"])
    ]
    return np.array(ios)


@pytest.mark.parametrize("name", EXACT)
def test_sequences_are_identical(name: str, workdir: Path) -> None:
    resolved, expected = resolve_and_run(EXACT[name])
    by_fio = run_fio(_sections(resolved, "run", CACHED_WRITES))
    np.testing.assert_array_equal(by_fio, expected)


@pytest.mark.parametrize("name", RANDOM)
def test_random_ios_have_the_same_distribution(name: str, workdir: Path) -> None:
    resolved, expected = resolve_and_run(RANDOM[name])
    by_fio = run_fio(_sections(resolved, "run", CACHED_WRITES))
    assert len(by_fio) == len(expected)
    assert set(by_fio[:, 1]) == set(expected[:, 1])
    assert by_fio[:, 0].min() >= 64 << 10
    assert by_fio[:, 0].max() < 320 << 10
    assert (
        set(by_fio[:, 0] % 4096) == set(expected[:, 0] % 4096) == {resolved.parts[0].shift % 4096}
    )
    if name == "mix":
        # 400 draws of 70 %: four standard deviations are 37.
        assert abs(by_fio[:, 2].sum() - 120) < 37
    else:
        assert set(by_fio[:, 2]) == set(expected[:, 2])


TIMES: dict[str, dict[str, Any]] = {
    "closed": {},
    "fixed": {"time": "fixed", "interval": "2ms"},
    "poisson": {"time": "poisson", "interval": "2ms"},
    "pause": {"time": "pause", "pause": "1ms"},
    "bursts": {"time": "burst", "burst": 20, "pause": "40ms"},
}
MANY = 60


def pattern_of(kind: str, times: str, depth: int, io_size: int) -> Spec:
    place = {"target_size": SPACE, "io_size": io_size}
    if kind != "mix":
        more = {"io_count": MANY, "queue_depth": depth}
        return spec.baseline(kind, **place, **more, **TIMES[times])
    parts = (spec.baseline(label, **place) for label in ("RR", "RW"))
    return spec.mix(*parts, first_percent=70, io_count=MANY, queue_depth=depth, **TIMES[times])


@pytest.mark.parametrize("io_size", [4096, 65536])
@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("kind", ["SR", "RW", "mix"])
def test_job_makes_the_load_of_the_run(
    kind: str, times: str, depth: int, io_size: int, workdir: Path
) -> None:
    """fio runs the job: number of I/Os, mix, rate and duration are those of uflip's own run."""
    if kind == "mix" and times in ("pause", "bursts"):
        pytest.skip("a mix has no pauses of its own")
    resolved, expected = resolve_and_run(pattern_of(kind, times, depth, io_size))
    log = "direct=1\nwrite_lat_log=run\nlog_offset=1"
    by_fio = run_fio(_sections(resolved, "run", CACHED_WRITES), log)
    assert len(by_fio) == len(expected) == MANY
    assert set(by_fio[:, 1]) == {io_size}
    if kind == "mix":
        # Of 60 draws of 30 % writes, or of two rates: four standard deviations are 14.
        assert abs(by_fio[:, 2].sum() - 18) < 14
        if times == "fixed":
            assert abs(by_fio[:, 2].sum() - 18) <= 2
    else:
        assert set(by_fio[:, 2]) == set(expected[:, 2])
    (path,) = Path().glob("run_lat*.log")
    ends = np.array([int(line.split(",")[0]) for line in path.read_text().splitlines()])
    last = ends[-1]  # from the start of the job: a late first I/O is caught up
    if times == "fixed":
        # One every 2 ms: a busy machine is late, but never faster.
        assert 0.9 * 2 * (MANY - 1) <= last < 3 * 2 * MANY
    elif times == "poisson":
        # The sum of 59 intervals of 2 ms each: four standard deviations are 52 %.
        assert 0.45 * 2 * MANY <= last < 4 * 2 * MANY
    elif times == "pause":
        assert last >= 0.9 * (MANY - 1)
    elif times == "bursts":
        starts = np.flatnonzero(np.diff(ends) > 25) + 1
        assert starts.tolist() == [20, 40], "bursts of 20, 40 ms apart"


def test_rate_of_a_mix_is_divided_by_direction() -> None:
    """fio's rate is that of each direction."""
    resolved, _ = resolve_and_run(pattern_of("mix", "poisson", 8, 4096))
    assert "rate_iops=350,150" in _sections(resolved, "run", CACHED_WRITES)


def test_random_mix_with_a_sequential_part_uses_a_log() -> None:
    parts = (
        spec.baseline(label, target_offset=64 << 10, target_size=256 << 10, io_size=4096)
        for label in ("RR", "SW")
    )
    resolved, _ = resolve_and_run(spec.mix(*parts, first_percent=70, io_count=COUNT))
    assert "read_iolog=run.iolog" in _sections(resolved, "run", CACHED_WRITES)


@pytest.mark.parametrize(
    ("interval", "rate"),
    [("100us", "rate_iops=10000"), ("7ms", "rate_iops=143"), ("400ms", None), ("3s", None)],
)
@pytest.mark.parametrize("time", ["fixed", "poisson"])
def test_unsupported_rate_is_omitted_with_a_comment(
    time: str, interval: str, rate: str | None
) -> None:
    """fio has whole I/Os a second only: it cannot make one arrival every 3 s."""
    resolved, _ = resolve_and_run(spec.baseline("RR", time=time, interval=interval, **RANGE))
    lines = _sections(resolved, "run", CACHED_WRITES)
    assert [line for line in lines if line.startswith("rate_iops")] == [rate] * bool(rate)
    assert any("whole I/Os a second" in line for line in lines) == (interval != "100us")
    assert any("are left out, fio submits" in line for line in lines) == (rate is None)


@pytest.mark.parametrize(
    ("location", "skew", "share"),
    [("hotcold", {}, 0.8), ("zipf", {"skew_percent": 120}, None), ("random", {}, None)],
)
def test_skewed_ios_have_the_same_skew(
    location: str, skew: Any, share: float | None, workdir: Path
) -> None:
    """Return the share of the most frequent fifth of 64 slots: by fio, by uflip, and by the law."""
    resolved, expected = resolve_and_run(
        spec.basic("read", location, **RANGE | {"io_count": 4000}, **skew)
    )
    by_fio = run_fio(_sections(resolved, "run", CACHED_WRITES))

    def hottest_fifth(rows: Any) -> float:
        counts = np.bincount((rows[:, 0] - (64 << 10)) // 4096, minlength=64)
        return float(np.sort(counts)[::-1][:12].sum() / len(rows))

    weights = np.arange(1, 65) ** -(skew.get("skew_percent", 0) / 100)
    law = share or weights[:12].sum() / weights.sum()
    # The most frequent slots are taken from the sample, where equal slots differ by chance.
    assert hottest_fifth(expected) == pytest.approx(law, abs=0.06)
    # fio's hash maps several ranks to one slot, so that likely slots are a little likelier.
    assert hottest_fifth(by_fio) == pytest.approx(hottest_fifth(expected), abs=0.08)
    if location == "hotcold":
        # The hot zone is at the same offset: fio ends it within a slot, uflip before it.
        for rows in (by_fio, expected):
            assert np.mean(rows[:, 0] < (64 + 13 * 4) << 10) > 0.77


def test_every_run_is_a_valid_fio_job(workdir: Path) -> None:
    """Patterns without an option in fio have jobs that read logs, and are exact."""
    device = "sim:demo?blocks_per_die=64"
    names = "order,parallelism,mix,bursts"
    outcome = uflip("run", device, "--scale", "quick", "--only", names, "--out", "r", "-q")
    assert outcome.code == 0, outcome.err
    outcome = uflip("export", "r", "--format", "fio-job", "-o", "jobs", "-q")
    assert outcome.code == 0, outcome.err
    from uflip.results import Results

    results = Results.load(Path("r"))
    jobs = {path.stem for path in Path("jobs").glob("*.fio")}
    assert jobs == {run.id for run in results.runs}
    checked = subprocess.run(
        ["fio", "--parse-only", *(f"{job}.fio" for job in sorted(jobs))],
        cwd="jobs",
        env=os.environ | {"UFLIP_TARGET": "scratch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    for run in results.runs:
        log = Path("jobs") / f"{run.id}.iolog"
        if log.exists():
            trace = run.trace()
            rows = [line.split() for line in log.read_text().splitlines()[3:-1]]
            offsets = np.asarray(trace.column("offset_bytes"))
            np.testing.assert_array_equal([int(row[2]) for row in rows], offsets)
    logs = {path.stem for path in Path("jobs").glob("*.iolog")}
    assert logs == {run.id for run in results.runs if run.micro_benchmark in
                    ("order", "partitioning", "mix")}  # fmt: skip


def test_fio_replays_an_exported_log(workdir: Path) -> None:
    """A backward sequence, for which fio has no option."""
    resolved, expected = resolve_and_run(spec.basic("read", "ordered", incr=-1, **RANGE))
    rows = "".join(f"target read {offset} {size}\n" for offset, size, _ in expected)
    text = f"fio version 2 iolog\ntarget add\ntarget open\n{rows}target close\n"
    Path("run.iolog").write_text(text)
    log = "write_lat_log=run\nlog_offset=1"
    by_fio = run_fio(_sections(resolved, "run", CACHED_WRITES), log)
    np.testing.assert_array_equal(by_fio, expected)


@pytest.mark.parametrize(
    ("times", "omitted"),
    [
        ({"time": "poisson", "interval": "100us"}, ["arrivals"]),
        ({"time": "burst", "burst": 8, "pause": "1ms"}, ["pauses"]),
        ({}, []),
    ],
)
def test_log_job_names_the_times_it_omits(times: Any, omitted: list[str]) -> None:
    resolved, _ = resolve_and_run(spec.basic("read", "ordered", incr=-1, **RANGE, **times))
    lines = _sections(resolved, "run", CACHED_WRITES)
    assert "replay_no_stall=1" in lines
    comments = [line for line in lines if line.startswith(";") and "left out" in line]
    assert [line.split()[2] for line in comments] == omitted


def test_open_loop_job_of_a_suite_names_the_omitted_arrivals(workdir: Path) -> None:
    """fio makes all I/Os as fast as possible: its log is version 2, without times."""
    device = "sim:demo?blocks_per_die=64"
    only = ("--suite", "today", "--only", "write_rate", "--scale", "quick")
    outcome = uflip("run", device, *only, "--out", "r", "-q")
    assert outcome.code == 0, outcome.err
    outcome = uflip("export", "r", "--format", "fio-job", "-o", "jobs", "-q")
    assert outcome.code == 0, outcome.err
    logged = [Path(f"jobs/{log.stem}.fio").read_text() for log in Path("jobs").glob("*.iolog")]
    assert logged
    assert all("their arrivals are left out" in job for job in logged)
