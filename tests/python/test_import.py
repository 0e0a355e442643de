"""Logs that fio wrote, as results; the logs are those of crates/foreign/tests/data."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.results import Results

DATA = Path(__file__).resolve().parents[2] / "crates" / "foreign" / "tests" / "data"
LOG, QUEUE = DATA / "fio-3.33_lat.1.log", DATA / "fio-3.33-queue_lat.1.log"


def fields(path: Path) -> list[list[int]]:
    return [[int(field, 0) for field in line.split(", ")] for line in path.read_text().splitlines()]


def test_a_run_has_what_fio_measured(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = uflip("import", "fio-log", LOG, QUEUE, "--out", out, "-q")
    assert done.code == 0, done.err
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
    assert results.summary_of([first]).statistics.mean_ns == pytest.approx(mean)


def test_nobody_knows_what_its_writes_waited_for(tmp_path: Path) -> None:
    """It says so, and so does whoever compares it, with itself as well."""
    folder = tmp_path / "out"
    assert uflip("import", "fio-log", LOG, "--out", folder, "-q").code == 0
    assert Results.load(folder).manifest.durability == "unknown"
    told = uflip("compare", str(folder), str(folder)).out
    assert "unknown: nobody has said when a write was over" in told
    assert uflip("show", str(folder)).code == 0
    assert uflip("report", str(folder), "-o", str(tmp_path / "r.html")).code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "nobody has said when a write was over" in page


def test_every_verb_opens_it(tmp_path: Path) -> None:
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
        done = uflip(*verb)
        assert done.code == 0, (verb[0], done.err)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_what_fio_logs_here_is_imported(here: Path) -> None:
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
